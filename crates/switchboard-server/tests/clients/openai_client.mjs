// Talks to a team with the official JavaScript client. Usage: openai_client.mjs URL
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: `${process.argv[2]}/v1`, apiKey: "none", maxRetries: 0 });
const parameters = { type: "object", properties: { city: { type: "string" } } };
const tool = { type: "function", name: "get_weather", description: "The weather.", parameters, strict: false };
const chatTool = { type: "function", function: { name: "get_weather", parameters } };

// Responses: plain, streamed, several turns, across a handoff.
const first = await client.responses.create({ model: "support", input: "my bill" });
assert.equal(first.output_text, "Billing: you said my bill");
const stream = await client.responses.create({
  model: "support", input: "two", previous_response_id: first.id, stream: true,
});
let text = "";
const ends = [];
for await (const event of stream) {
  if (event.type === "response.output_text.delta") text += event.delta;
  if (["response.completed", "response.failed", "response.incomplete"].includes(event.type)) ends.push(event.type);
}
assert.equal(text, "Billing: you said two");
assert.deepEqual(ends, ["response.completed"]);

// Responses with tools.
const asked = await client.responses.create({ model: "support", input: "weather for my bill", tools: [tool] });
const call = asked.output.at(-1);
assert.equal(call.name, "get_weather");
const told = await client.responses.create({
  model: "support", previous_response_id: asked.id, tools: [tool],
  input: [{ type: "function_call_output", call_id: call.call_id, output: "rain" }],
});
assert.equal(told.output_text, "Billing: I got rain.");

// Chat Completions: plain, streamed, with tools.
const messages = [{ role: "user", content: "my bill" }];
const chat = await client.chat.completions.create({ model: "support", messages });
assert.equal(chat.choices[0].message.content, "Billing: you said my bill");
const runner = client.chat.completions.stream({ model: "support", messages });
assert.equal(await runner.finalContent(), "Billing: you said my bill");
const question = { role: "user", content: "weather for my bill" };
const calling = await client.chat.completions.create({ model: "support", messages: [question], tools: [chatTool] });
const message = calling.choices[0].message;
assert.equal(calling.choices[0].finish_reason, "tool_calls");
const done = await client.chat.completions.create({
  model: "support", tools: [chatTool],
  messages: [question, message, { role: "tool", tool_call_id: message.tool_calls[0].id, content: "rain" }],
});
assert.equal(done.choices[0].message.content, "Billing: I got rain.");

const names = [];
for await (const model of client.models.list()) names.push(model.id);
assert.deepEqual(names, ["support", "support/Triage", "support/Billing", "support/Ann"]);
await assert.rejects(client.responses.create({ model: "gpt-5", input: "x" }), OpenAI.NotFoundError);
console.log("the JavaScript client is content");
