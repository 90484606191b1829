import assert from "node:assert/strict";
import { test } from "node:test";
import type { Graph, Row, Turn } from "../src/api/types";
import { agentAfter, forkPoint, movesOfTurns, stretches, turnAt } from "../src/logic/path";
import { timelineLines } from "../src/logic/timeline";

const turn = (position: number, fields: Partial<Turn>): Turn => ({
  kind: "agent", position, end: position + 1, fork_before: position, run: "r", turn: 1, agent: "Triage", time: 0, text: "", calls: [],
  handoff: null, refused: false, recording: null, tokens: null, ...fields,
});
const turns = [
  turn(0, { kind: "message", agent: null }),
  turn(1, { fork_before: null, calls: ["go_ann", "go_billing"], handoff: { to: "Billing" } }),
  turn(4, { agent: "Billing", turn: 2 }),
  turn(5, { kind: "message", agent: null, turn: 0 }),
  turn(6, { agent: "Billing", fork_before: null, handoff: { to: "Night" } }),
];
const edge = (from: string, to: string, tool: string): Graph["edges"][number] => ({
  from, to, path: "", label: [], kind: "handoff", is_conditional: false, is_back: false, tool, condition: null, payload: null, guardrails: [], filters: [], needs_approval: "never",
});
const graph: Graph = { width: 1, height: 1, agents: [], findings: [], edges: [edge("Triage", "Ann", "go_ann"), edge("Triage", "Billing", "go_billing")] };

test("the way through the team has refused handoffs, and those that no model asked for", () => {
  assert.deepEqual(movesOfTurns(turns, 4, graph), [
    { from: "Triage", to: "Ann", taken: false, reason: null },
    { from: "Triage", to: "Billing", taken: true, reason: null },
    { from: "Billing", to: "Night", taken: true, reason: null },
  ]);
  assert.equal(movesOfTurns(turns, 0, graph).length, 0);
});

test("the agent after a turn is the one that it handed over to", () => {
  assert.deepEqual([0, 1, 2, 3, 4].map((index) => agentAfter(turns, index, "Triage")), ["Triage", "Billing", "Billing", "Billing", "Night"]);
});

test("a fork goes on after a turn, or before a message that is not answered yet", () => {
  assert.deepEqual(forkPoint(turns, 0), { before: 0, isBefore: true });
  assert.deepEqual(forkPoint(turns, 1), { before: 4, isBefore: false });
  assert.deepEqual(forkPoint(turns, 2), { before: 5, isBefore: false });
  assert.deepEqual(forkPoint(turns, 4), { before: null, isBefore: false });
});

test("a position belongs to the turn that holds it", () => {
  assert.deepEqual([-1, 0, 1, 3, 4, 99].map((position) => turnAt(turns, position)), [-1, 0, 1, 1, 2, 4]);
});

test("many turns are joined into few marks", () => {
  assert.deepEqual(stretches(3, 10), [{ from: 0, to: 0 }, { from: 1, to: 1 }, { from: 2, to: 2 }]);
  assert.equal(stretches(5000, 240).length <= 240, true);
  assert.deepEqual(stretches(5000, 240).at(-1)!.to, 4999);
});

test("the timeline leaves out rows that only hold others, and dims what came later", () => {
  const row = (id: number, parent: number | null, kind: Row["kind"], number: number): Row => ({
    id, parent, kind, name: kind, agent: "A", turn: number, status: "ok", started: id * 10, seconds: 0.01, tokens: null, cost: null, retries: 0, summary: null, error: null, seq: id,
  });
  const recording = { run: "r", started: 0, ended: 1, status: "completed", rows: 5, tokens: null, cost: null, dropped: 0 };
  const rows = [row(1, null, "run", 0), row(2, 1, "agent", 0), row(3, 2, "turn", 1), row(4, 3, "model", 1), row(5, 2, "turn", 2)];
  const seen = turn(0, { recording: "r", turn: 1 });
  const lines = timelineLines([{ recording, rows, loaded: true }], [turn(0, { kind: "message", recording: "r", text: "hi" })], () => true, seen);
  assert.deepEqual(
    lines.map((line) => (line.kind === "run" ? line.title : [line.row.kind, line.depth, line.isLater])),
    ["hi", ["turn", 0, false], ["model", 1, false], ["turn", 0, true]],
  );
});
