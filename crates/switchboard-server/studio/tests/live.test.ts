import assert from "node:assert/strict";
import { test } from "node:test";
import type { Entry, RunEvent } from "../src/api/types";
import { LiveRun } from "../src/logic/live";
import { commonParts, partsOfEntries, partText } from "../src/logic/transcript";

const event = (type: string, fields: object = {}): RunEvent => ({ type, agent: "Triage", turn: 1, ...fields }) as RunEvent;

test("the events of a run become messages, tools and handoffs", () => {
  const run = new LiveRun("r");
  run.showInput("My bill is wrong");
  run.apply(event("turn_started"));
  run.apply(event("model_retry", { attempt: 2, reason: "busy" }));
  assert.equal(run.retry, "busy");
  run.apply(event("handoff", { from: "Triage", to: "Billing", tool: "transfer_to_billing", call_id: "c", payload: {}, status: "taken" }));
  assert.equal(run.agent, "Billing");
  run.apply(event("tool_started", { agent: "Billing", turn: 2, call_id: "d", tool: "find", arguments: { n: 1 } }));
  run.apply(event("tool_ended", { agent: "Billing", turn: 2, call_id: "d", tool: "find", arguments: { n: 1 }, output: "found", failed: false, seconds: 0.5 }));
  run.apply(event("text_delta", { agent: "Billing", turn: 3, item: "m", text: "It is " }));
  run.apply(event("text_delta", { agent: "Billing", turn: 3, item: "m", text: "fixed." }));
  assert.equal(run.parts.at(-1)!.kind === "agent" && run.parts.at(-1)!.streaming, true);
  run.apply(event("item", { agent: "Billing", turn: 3, name: "message_output_created", text: "It is fixed.", item: {} }));
  run.apply(event("run_finished", { agent: "Billing", turn: 3, output: "It is fixed." }));
  assert.deepEqual(run.parts.map(partText), [
    "user\nMy bill is wrong",
    "handoff Triage Billing taken\nnull",
    'tool find\n{"n":1}\nfound',
    "agent Billing\nIt is fixed.",
  ]);
  assert.deepEqual([run.status, run.agent, run.retry], ["completed", "Billing", null]);
});

test("a run that waits has the calls in the form of the API", () => {
  const run = new LiveRun("r");
  run.apply(event("run_interrupted", { interruptions: [{ kind: { handoff: { to: "Ann" } }, agent: "Triage", tool: "t", call_id: "c", arguments: "{}" }] }));
  assert.deepEqual(run.waiting, [{ kind: "handoff", details: { to: "Ann" }, agent: "Triage", tool: "t", call_id: "c", arguments: "{}" }]);
  assert.equal(run.status, "waiting");
});

const entry = (position: number, content: object, agent: string | null = "Triage"): Entry => ({ position, kind: "item", content: content as Entry["content"], run: "r", turn: 1, agent, time: 1 });
const lookup = (_agent: string | null, tool: string): string | null => (tool === "go" ? "Billing" : null);

test("the record becomes the same parts, with refused handoffs and their reasons", () => {
  const parts = partsOfEntries(
    [
      entry(0, { role: "user", content: [{ type: "input_text", text: "hi" }, { type: "input_file", filename: "a.pdf" }] }, null),
      entry(1, { type: "function_call", name: "go", call_id: "a", arguments: '{"why":"x"}' }),
      entry(2, { type: "function_call_output", call_id: "a", output: "Not now." }),
      entry(3, { type: "function_call", name: "go", call_id: "b", arguments: "" }),
      entry(4, { type: "function_call_output", call_id: "b", output: '{"assistant":"Billing"}' }),
      entry(5, { type: "unheard_of" }),
    ],
    lookup,
  );
  assert.deepEqual(parts.map(partText), [
    "user\nhi",
    'handoff Triage Billing refused\n{"why":"x"}',
    "handoff Triage Billing taken\nnull",
    '{"type":"unheard_of"}',
  ]);
  assert.deepEqual(parts[0]!.kind === "user" && parts[0]!.attachments, [{ kind: "file", name: "a.pdf", data: null }]);
  assert.equal(parts[1]!.kind === "handoff" && parts[1]!.reason, "Not now.");
});

test("two conversations part at the first difference", () => {
  const left = partsOfEntries([entry(0, { role: "user", content: "a" }), entry(1, { role: "user", content: "b" })], lookup);
  const right = partsOfEntries([entry(0, { role: "user", content: "a" }), entry(1, { role: "user", content: "c" })], lookup);
  assert.equal(commonParts(left, right), 1);
  assert.equal(commonParts(left, left), 2);
});
