// Talks to a team with the official client of AG-UI, which checks every event. Usage: agui_client.mjs URL
import assert from "node:assert/strict";
import { HttpAgent, buildResumeArray } from "@ag-ui/client";

const url = `${process.argv[2]}/agui/support`;
let ids = 0;
const user = (content) => ({ id: `user-${++ids}`, role: "user", content });
const answers = (agent) => agent.messages.filter((message) => message.role === "assistant" && message.content);
const last = (agent) => answers(agent).at(-1);

// Runs the agent and collects the types of events, the handoffs and the last event.
async function run(agent, parameters = {}) {
  const seen = { types: [], handoffs: [], outcome: undefined, error: undefined };
  await agent.runAgent(parameters, {
    onEvent: ({ event }) => { seen.types.push(event.type); },
    onCustomEvent: ({ event }) => {
      if (event.name === "switchboard.handoff") seen.handoffs.push(`${event.value.from} -> ${event.value.to}`);
    },
    onRunFinishedEvent: ({ event }) => { seen.outcome = event.outcome; seen.usage = event.usage; },
    onRunErrorEvent: ({ event }) => { seen.error = event; },
  });
  return seen;
}

// A message, a handoff, several turns: the client sends its whole list each time.
const agent = new HttpAgent({ url, threadId: "agui-talk" });
agent.addMessage(user("my bill"));
const first = await run(agent);
assert.deepEqual(first.handoffs, ["Triage -> Billing"]);
assert.deepEqual([last(agent).name, last(agent).content], ["Billing", "Billing: you said my bill"]);
assert.deepEqual(first.types.filter((type) => type.startsWith("STEP")),
  ["STEP_STARTED", "STEP_FINISHED", "STEP_STARTED", "STEP_FINISHED"]);
assert.ok(first.types.filter((type) => type === "TEXT_MESSAGE_CONTENT").length > 1);
assert.equal(first.usage[0].totalTokens, 15);
agent.addMessage(user("two"));
await run(agent);
assert.equal(last(agent).content, "Billing: you said two");

// A tool of the team, and reasoning.
agent.addMessage(user("think"));
const thought = await run(agent);
assert.ok(thought.types.includes("REASONING_MESSAGE_CONTENT"));
const looked = new HttpAgent({ url, threadId: "agui-tool" });
looked.addMessage(user("lookup"));
await run(looked);
assert.equal(looked.messages.find((message) => message.role === "tool").content, "open");
assert.equal(last(looked).content, "Triage: I got open.");

// An approval: an interrupt, then approved and rejected.
for (const [payload, expected] of [
  [{ approved: true }, 'Billing: I got refunded {"amount":5}.'],
  [{ approved: false, message: "No" }, "Billing: I got No."],
]) {
  const asked = new HttpAgent({ url, threadId: `agui-approval-${payload.approved}` });
  asked.addMessage(user("refund my bill"));
  const interrupted = await run(asked);
  assert.equal(interrupted.outcome.type, "interrupt");
  const interrupts = interrupted.outcome.interrupts;
  const resume = buildResumeArray(interrupts, { [interrupts[0].id]: { status: "resolved", payload } });
  const resumed = await run(asked, { resume });
  assert.equal(resumed.outcome.type, "success");
  assert.equal(last(asked).content, expected);
  const result = asked.messages.find((message) => message.toolCallId === interrupts[0].toolCallId);
  assert.equal(`Billing: I got ${result.content}.`, expected);
}

// A tool of the user interface.
const tools = [{ name: "get_weather", description: "The weather.", parameters: { type: "object" } }];
const front = new HttpAgent({ url, threadId: "agui-frontend" });
front.addMessage(user("weather"));
const called = await run(front, { tools });
assert.equal(called.outcome.pendingToolCallIds.length, 1);
front.addMessage({ id: "result-1", role: "tool", toolCallId: called.outcome.pendingToolCallIds[0], content: "rain" });
await run(front, { tools });
assert.equal(last(front).content, "Triage: I got rain.");

// A run that fails, and the next message after it.
const failing = new HttpAgent({ url, threadId: "agui-error" });
failing.addMessage(user("fail"));
const failed = await run(failing).catch((error) => ({ error }));
assert.match(failed.error.message, /provider is down/);
failing.addMessage(user("hello"));
await run(failing);
assert.equal(last(failing).content, "Triage: you said hello");

// An agent of the team.
const billing = new HttpAgent({ url: `${url}/Billing`, threadId: "agui-agent" });
billing.addMessage(user("hello"));
await run(billing);
assert.equal(last(billing).content, "Billing: you said hello");
// An agent as a tool is a subagent; one that waits is suspended, and goes on.
const desk = new HttpAgent({ url: url.replace("support", "desk"), threadId: "agui-desk" });
desk.addMessage(user("expert lookup"));
const delegated = await run(desk);
assert.deepEqual(delegated.types.filter((type) => type.startsWith("SUBAGENT")), ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]);
const expert = desk.messages.find((message) => message.role === "assistant" && message.subagentRunId && message.content);
assert.deepEqual([expert.name, expert.content], ["Expert", "Expert: I got open."]);
assert.deepEqual([last(desk).content, last(desk).subagentRunId], ["Desk: I got Expert: I got open..", undefined]);
desk.addMessage(user("expert refund"));
const suspended = await run(desk);
assert.equal(suspended.outcome.type, "interrupt");
const [interrupt] = suspended.outcome.interrupts;
const decided = buildResumeArray([interrupt], { [interrupt.id]: { status: "resolved", payload: { approved: true } } });
const continued = await run(desk, { resume: decided });
assert.deepEqual(continued.types.filter((type) => type.startsWith("SUBAGENT")), ["SUBAGENT_STARTED", "SUBAGENT_FINISHED"]);
assert.equal(last(desk).content, 'Desk: I got Expert: I got refunded {"amount":5}..');
desk.addMessage(user("hello"));
await run(desk);
assert.equal(last(desk).content, "Desk: you said hello");
desk.addMessage(user("expert fail"));
const broken = await run(desk).catch((error) => ({ error }));
assert.ok(broken.error || broken.types.includes("SUBAGENT_ERROR"));
// So are agents that answer side by side.
const crew = new HttpAgent({ url: url.replace("support", "crew"), threadId: "agui-crew" });
crew.addMessage(user("ask"));
const both = await run(crew);
assert.equal(both.types.filter((type) => type === "SUBAGENT_FINISHED").length, 2);
assert.equal(last(crew).content, "Both say yes.");
assert.deepEqual(answers(crew).filter((message) => message.subagentRunId).map((message) => message.content).sort(), ["Bills: yes.", "Law: yes."]);
console.log("AG-UI client: ok");
