/** The timeline: turns, model calls, tools, handoffs, guardrails, with their time, tokens and cost. */

import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { Row } from "../api/types";
import { cost, count, duration, fullMoment } from "../logic/format";
import { type Line, timelineLines } from "../logic/timeline";
import { agentClass } from "../parts/basics";
import { Icon, type IconName } from "../parts/icons";
import { VirtualList } from "../parts/virtual_list";
import type { OpenConversation } from "../state/conversation";
import { server } from "../state/server";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";

interface Props {
  conversation: OpenConversation;
  at: number | null;
  selected: { run: string; id: number } | null;
  onOpen: (run: string, row: number) => void;
}

export function Timeline({ conversation, at, selected, onOpen }: Props): VNode {
  const t = useTexts();
  const serial = useStore(conversation.changed);
  const isRecording = useStore(server, (value) => value.info?.recording ?? true);
  const [toggled, setToggled] = useState<Record<string, boolean>>({});
  const last = at === null ? null : (conversation.turns[at] ?? null);
  const lines = useMemo(() => {
    const runs = [...conversation.recordings.values()];
    const recent = new Set(runs.slice(-3).map((run) => run.recording.run));
    return timelineLines(runs, conversation.turns, (run) => toggled[run] ?? recent.has(run), last);
  }, [conversation, serial, toggled, last]);
  if (!isRecording) return <p class="empty">{t.notRecording}</p>;
  if (lines.length === 0) return <p class="empty">{t.noTimeline}</p>;
  return (
    <VirtualList
      key={conversation.id}
      class="timeline"
      label={t.timeline}
      count={lines.length}
      rowKey={(row) => lines[row]!.key}
      estimate={34}
      followEnd
      render={(row) => {
        const line = lines[row]!;
        return line.kind === "run" ? (
          <RunLine
            line={line}
            onToggle={() => {
              setToggled({ ...toggled, [line.key]: !line.isOpen });
              if (!line.isOpen) void conversation.loadRows(line.key);
            }}
          />
        ) : (
          <RowLine line={line} isSelected={selected?.run === line.run && selected.id === line.row.id} onOpen={() => onOpen(line.run, line.row.id)} />
        );
      }}
    />
  );
}

function RunLine({ line, onToggle }: { line: Extract<Line, { kind: "run" }>; onToggle: () => void }): VNode {
  const t = useTexts();
  const { recording } = line;
  const seconds = recording.ended === null ? null : (recording.ended - recording.started) / 1000;
  return (
    <button type="button" class={`run-line ${line.isLater ? "later" : ""}`} aria-expanded={line.isOpen} onClick={onToggle} title={fullMoment(recording.started)}>
      <span class={`twist ${line.isOpen ? "open" : ""}`}>
        <Icon name="chevron" size={12} />
      </span>
      <span class="run-title">{line.title || t.goesOn}</span>
      {recording.status !== "completed" && recording.status !== "ok" && <span class={`badge ${statusClass(recording.status)}`}>{t.status(recording.status)}</span>}
      <Figures tokens={recording.tokens ? recording.tokens.input + recording.tokens.output : null} price={recording.cost} seconds={seconds} />
    </button>
  );
}

const ICONS: Record<string, IconName> = { turn: "turn", model: "model", tool: "tool", handoff: "arrow", guardrail: "shield", custom: "clock" };

function RowLine({ line, isSelected, onOpen }: { line: Extract<Line, { kind: "row" }>; isSelected: boolean; onOpen: () => void }): VNode {
  const t = useTexts();
  const { row } = line;
  return (
    <button
      type="button"
      class={`row-line ${row.kind} ${agentClass(row.agent)} ${statusClass(row.status)} ${line.isLater ? "later" : ""}`}
      aria-current={isSelected ? "true" : undefined}
      onClick={onOpen}
      data-kind={row.kind}
      style={{ paddingLeft: `${12 + line.depth * 14}px` }}
    >
      <span class="row-icon">
        <Icon name={ICONS[row.kind] ?? "clock"} size={14} />
      </span>
      <span class="row-name">
        {rowTitle(row, t.turnTitle)}
        {row.kind !== "turn" && row.summary && <span class="row-summary">{row.summary}</span>}
        {row.error && <span class="row-error">{row.error}</span>}
      </span>
      {row.retries > 0 && <span class="badge warn">{t.retries(row.retries)}</span>}
      {row.status !== "ok" && <span class={`badge ${statusClass(row.status)}`}>{t.status(row.status)}</span>}
      <span class="row-bar" aria-hidden="true">
        <span style={{ left: `${line.left * 100}%`, width: `max(2px, ${line.width * 100}%)` }} />
      </span>
      <Figures tokens={row.kind === "model" && row.tokens ? row.tokens.input + row.tokens.output : null} price={row.kind === "model" ? row.cost : null} seconds={row.seconds} />
    </button>
  );
}

function rowTitle(row: Row, turn: (number: number, agent: string) => string): string {
  return row.kind === "turn" ? turn(row.turn ?? 0, row.agent ?? "") : row.name;
}

export function statusClass(status: string): string {
  if (status === "running") return "running";
  if (status === "waiting") return "waiting";
  return ["failed", "refused", "tripped", "ignored"].includes(status) ? "bad" : "";
}

function Figures({ tokens, price, seconds }: { tokens: number | null; price: number | null; seconds: number | null }): VNode {
  const t = useTexts();
  return (
    <span class="figures">
      {tokens !== null && tokens > 0 && <span title={t.tokens(String(tokens))}>{t.tokensShort(count(tokens))}</span>}
      {price !== null && <span title={t.cost(cost(price))}>{cost(price)}</span>}
      <span class="figure-time">{duration(seconds)}</span>
    </span>
  );
}
