/** The way of a conversation through its team, at any point of it. */

import type { Graph, Turn } from "../api/types";
import type { Part } from "./transcript";

export interface Move {
  from: string;
  to: string;
  taken: boolean;
  reason: string | null;
}

/** The handoffs of the turns up to an index (inclusive), in their order, taken or not. */
export function movesOfTurns(turns: readonly Turn[], last: number, graph: Graph | undefined): Move[] {
  const edges = new Map<string, string>();
  for (const edge of graph?.edges ?? []) {
    if (edge.kind === "handoff" && edge.tool) edges.set(`${edge.from}\n${edge.tool}`, edge.to);
  }
  const moves: Move[] = [];
  for (let index = 0; index <= last && index < turns.length; index += 1) {
    const turn = turns[index]!;
    if (turn.agent === null) continue;
    let taken = false;
    for (const call of turn.calls) {
      const to = edges.get(`${turn.agent}\n${call}`);
      if (to === undefined) continue;
      const isTaken: boolean = !taken && turn.handoff?.to === to;
      taken ||= isTaken;
      moves.push({ from: turn.agent, to, taken: isTaken, reason: null });
    }
    // A condition of the team has made it, and no call of the model.
    if (turn.handoff && !taken) moves.push({ from: turn.agent, to: turn.handoff.to, taken: true, reason: null });
  }
  return moves;
}

/** The handoffs of the parts of a run under way. */
export function movesOfParts(parts: readonly Part[]): Move[] {
  const moves: Move[] = [];
  for (const part of parts) {
    if (part.kind === "handoff") {
      moves.push({ from: part.from, to: part.to, taken: part.status === "taken" || part.status === "fanned_out", reason: part.reason });
    }
  }
  return moves;
}

/** The agent that has the conversation after a turn. */
export function agentAfter(turns: readonly Turn[], index: number, start: string | null): string | null {
  for (let at = Math.min(index, turns.length - 1); at >= 0; at -= 1) {
    const turn = turns[at]!;
    if (turn.handoff) return turn.handoff.to;
    if (turn.agent !== null) return turn.agent;
  }
  return start;
}

/** The place to copy a conversation from, so that the copy ends after a turn. */
export interface ForkPoint {
  before: number | null;
  /** Set if the copy ends before the turn, as it cannot end after it. */
  isBefore: boolean;
}

/** The fork point of a turn: after it where that is possible, and otherwise before it. */
export function forkPoint(turns: readonly Turn[], index: number): ForkPoint {
  const next = turns[index + 1];
  if (!next) return { before: null, isBefore: false };
  if (next.fork_before !== null) return { before: next.fork_before, isBefore: false };
  for (let at = index; at >= 0; at -= 1) {
    const before = turns[at]!.fork_before;
    if (before !== null) return { before, isBefore: true };
  }
  return { before: 0, isBefore: true };
}

/** The index of the turn that holds a position, or of the last one before it. */
export function turnAt(turns: readonly Turn[], position: number): number {
  let low = 0;
  let high = turns.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (turns[middle]!.position <= position) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}

/** Joins turns into at most so many stretches of the same length; each is shown as one mark. */
export function stretches(count: number, most: number): { from: number; to: number }[] {
  const size = Math.max(1, Math.ceil(count / most));
  const joined: { from: number; to: number }[] = [];
  for (let from = 0; from < count; from += size) joined.push({ from, to: Math.min(count, from + size) - 1 });
  return joined;
}
