/** The rows of a timeline, as a tree that is shown flat. */

import type { Recording, Row, Turn } from "../api/types";

export interface TimelineRun {
  recording: Recording;
  rows: readonly Row[];
  loaded: boolean;
}

export type Line =
  | { kind: "run"; key: string; recording: Recording; title: string; isOpen: boolean; isLater: boolean }
  | { kind: "row"; key: string; run: string; row: Row; depth: number; left: number; width: number; isLater: boolean };

/** Kinds of rows that only hold others, and say nothing of their own. */
const HIDDEN: ReadonlySet<string> = new Set(["run", "agent"]);

/** Makes the lines of all runs, oldest first. `last` is the turn that time travel is at. */
export function timelineLines(
  runs: readonly TimelineRun[],
  turns: readonly Turn[],
  open: (run: string) => boolean,
  last: Turn | null,
): Line[] {
  const titles = new Map<string, string>();
  const positions = new Map<string, number>();
  for (const turn of turns) {
    if (turn.recording === null) continue;
    if (!positions.has(turn.recording)) positions.set(turn.recording, turn.position);
    if (turn.kind === "message" && !titles.has(turn.recording)) titles.set(turn.recording, turn.text);
  }
  const lines: Line[] = [];
  for (const { recording, rows } of runs) {
    const position = positions.get(recording.run);
    const isLaterRun = last !== null && position !== undefined && position > last.position;
    const isOpen = open(recording.run);
    lines.push({
      kind: "run", key: recording.run, recording, title: titles.get(recording.run) ?? "", isOpen, isLater: isLaterRun,
    });
    if (!isOpen) continue;
    const depths = new Map<number, number>();
    const span = spanOf(rows);
    for (const row of rows) {
      const parentDepth = row.parent === null ? -1 : (depths.get(row.parent) ?? -1);
      const isHidden = HIDDEN.has(row.kind);
      const depth = isHidden ? parentDepth : parentDepth + 1;
      depths.set(row.id, depth);
      if (isHidden) continue;
      const isLaterTurn = last !== null && last.recording === recording.run && row.turn !== null && row.turn > last.turn;
      lines.push({
        kind: "row", key: `${recording.run}.${row.id}`, run: recording.run, row, depth, ...bar(row, span), isLater: isLaterRun || isLaterTurn,
      });
    }
  }
  return lines;
}

function spanOf(rows: readonly Row[]): { start: number; length: number } {
  let start = Infinity;
  let end = -Infinity;
  for (const row of rows) {
    start = Math.min(start, row.started);
    end = Math.max(end, row.started + (row.seconds ?? 0) * 1000);
  }
  return rows.length === 0 ? { start: 0, length: 1 } : { start, length: Math.max(end - start, 0.001) };
}

/** The place of a row's bar, as shares of the run's time. */
function bar(row: Row, span: { start: number; length: number }): { left: number; width: number } {
  const left = Math.max(0, Math.min(1, (row.started - span.start) / span.length));
  const width = row.seconds === null ? 1 - left : Math.min(1 - left, (row.seconds * 1000) / span.length);
  return { left, width };
}
