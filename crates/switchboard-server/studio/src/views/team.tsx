/** The team: its drawing, and the agent that was clicked. */

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { GraphEdge } from "../api/types";
import { AgentName, Dialog } from "../parts/basics";
import { go } from "../state/router";
import { currentTeam, server } from "../state/server";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";
import { AgentPanel, EdgeFacts, Findings } from "./agent_panel";
import { Drawing } from "./drawing";

export function TeamView({ agent }: { agent: string | null }): VNode {
  const t = useTexts();
  useStore(server, (value) => value.teams);
  useStore(server, (value) => value.team);
  const team = currentTeam();
  const graph = useStore(server, (value) => value.graphs[team?.name ?? ""]);
  const [edge, setEdge] = useState<GraphEdge | null>(null);
  if (!team || !graph) return <div class="team-view" />;
  const select = (name: string): void => go({ view: "team", agent: name }, agent !== null);
  return (
    <div class="team-view">
      <section class="team-drawing" aria-label={t.drawing}>
        <header>
          <h1>{team.name}</h1>
          {team.description && <p class="lead">{team.description}</p>}
        </header>
        <div class="team-drawing-box">
          <Drawing graph={graph} active={null} moves={[]} selected={agent} onAgent={select} onEdge={setEdge} />
        </div>
        <Findings findings={graph.findings} />
        <ul class="legend" aria-label={t.legend}>
          <li><span class="legend-line" /> {t.legendHandoff}</li>
          <li><span class="legend-line conditional" /> {t.legendConditional}</li>
          <li><span class="legend-guard" /> {t.legendGuard}</li>
          <li><span class="legend-start" /> {t.startsHere}</li>
        </ul>
      </section>
      <aside class="team-agent" aria-label={agent ?? t.agents}>
        {agent !== null ? (
          <>
            <h2 class="screen-reader">{agent}</h2>
            <AgentPanel team={team.name} agent={agent} />
          </>
        ) : (
          <>
            <h2>{t.agents}</h2>
            <ul class="agents">
              {team.agents.map((candidate) => (
                <li key={candidate.name}>
                  <button type="button" onClick={() => select(candidate.name)}>
                    <AgentName name={candidate.name} />
                    <span class="quiet-text">{candidate.description}</span>
                  </button>
                </li>
              ))}
            </ul>
          </>
        )}
      </aside>
      {edge !== null && (
        <Dialog title={`${edge.from} → ${edge.to}`} onClose={() => setEdge(null)}>
          <EdgeFacts edge={edge} />
        </Dialog>
      )}
    </div>
  );
}
