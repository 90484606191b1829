/** The drawing beside a conversation: it follows the run, or shows the turn that time travel is at. */

import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import { agentAfter, movesOfParts, movesOfTurns } from "../logic/path";
import { Dialog } from "../parts/basics";
import type { GraphEdge } from "../api/types";
import type { OpenConversation } from "../state/conversation";
import { server, teamNamed } from "../state/server";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";
import { AgentPanel } from "./agent_panel";
import { Drawing } from "./drawing";
import { EdgeFacts } from "./agent_panel";

export function LiveDrawing({ conversation, at }: { conversation: OpenConversation; at: number | null }): VNode | null {
  const t = useTexts();
  const serial = useStore(conversation.changed);
  const graphs = useStore(server, (value) => value.graphs);
  const selectedTeam = useStore(server, (value) => value.team);
  const team = (conversation.head ? conversation.team : selectedTeam) ?? "";
  const graph = graphs[team];
  const [agent, setAgent] = useState<string | null>(null);
  const [edge, setEdge] = useState<GraphEdge | null>(null);
  const moves = useMemo(() => {
    const stored = movesOfTurns(conversation.turns, at ?? conversation.turns.length - 1, graph);
    return at === null && conversation.live ? [...stored, ...movesOfParts(conversation.live.parts)] : withReasons(stored, conversation);
  }, [conversation, serial, at, graph]);
  if (!graph) return null;
  const start = teamNamed(team)?.agents.find((candidate) => candidate.is_start)?.name ?? null;
  const active = at === null ? (conversation.agent ?? start) : agentAfter(conversation.turns, at, start);
  return (
    <>
      <Drawing graph={graph} active={active} moves={moves} selected={agent} onAgent={setAgent} onEdge={setEdge} />
      {agent !== null && (
        <Dialog title={agent} onClose={() => setAgent(null)} class="wide">
          <AgentPanel team={team} agent={agent} />
        </Dialog>
      )}
      {edge !== null && (
        <Dialog title={`${edge.from} → ${edge.to}`} onClose={() => setEdge(null)}>
          <EdgeFacts edge={edge} />
          <RefusedHere conversation={conversation} edge={edge} title={t.refusedHere} />
        </Dialog>
      )}
    </>
  );
}

/** Adds the reasons of refused handoffs, which the record has. */
function withReasons(moves: ReturnType<typeof movesOfTurns>, conversation: OpenConversation): ReturnType<typeof movesOfTurns> {
  const refused = conversation.parts.filter((part) => part.kind === "handoff" && part.status !== "taken");
  return moves.map((move) => {
    if (move.taken) return move;
    const part = refused.find((candidate) => candidate.kind === "handoff" && candidate.from === move.from && candidate.to === move.to);
    return part?.kind === "handoff" ? { ...move, reason: part.reason } : move;
  });
}

function RefusedHere({ conversation, edge, title }: { conversation: OpenConversation; edge: GraphEdge; title: string }): VNode | null {
  const refused = conversation.parts.filter(
    (part) => part.kind === "handoff" && part.from === edge.from && part.to === edge.to && part.status !== "taken",
  );
  if (refused.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <ul class="refusals">{refused.map((part) => part.kind === "handoff" && <li key={part.key}>{part.reason ?? part.status}</li>)}</ul>
    </section>
  );
}
