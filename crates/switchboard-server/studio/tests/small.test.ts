import assert from "node:assert/strict";
import { test } from "node:test";
import { EventParser } from "../src/api/sse";
import { AGENT_COLOURS, agentColour } from "../src/logic/colours";
import { fromPcm16, Resampler, toPcm16 } from "../src/logic/pcm";
import { lineAndColumn, offsetOf, tomlTokens } from "../src/logic/toml";
import { parseRoute, routeHash } from "../src/state/router";

test("events are read whatever pieces they come in", () => {
  const text = ": hello\r\n\r\nid: 1\nevent: a\ndata: x\ndata: y\n\ndata:z\r\rid: 3\ndata: {}\r\n\r\n";
  const expected = [
    { id: "1", type: "a", data: "x\ny" },
    { id: "1", type: "message", data: "z" },
    { id: "3", type: "message", data: "{}" },
  ];
  for (let size = 1; size <= text.length; size += 1) {
    const parser = new EventParser();
    const events = [];
    for (let at = 0; at < text.length; at += size) events.push(...parser.push(text.slice(at, at + size)));
    assert.deepEqual(events, expected, `pieces of ${size}`);
  }
});

test("agents of a team have different colours, and others always the same", () => {
  const team = ["A", "B", "C"];
  assert.deepEqual(team.map((agent) => agentColour(agent, team)), [0, 1, 2]);
  assert.equal(agentColour("X", team), agentColour("X", []));
  assert.equal(agentColour(null, team), AGENT_COLOURS);
});

test("sound is the same after it was written and read", () => {
  const samples = Float32Array.from([0, 0.5, -0.5, 1, -1, 2]);
  const read = fromPcm16(toPcm16(samples));
  assert.deepEqual([...read].map((sample) => Math.round(sample * 100) / 100), [0, 0.5, -0.5, 1, -1, 1]);
});

test("sound of another rate has the same length, whatever pieces it comes in", () => {
  for (const rate of [16_000, 44_100, 48_000]) {
    const resampler = new Resampler(rate, 24_000);
    let made = 0;
    for (let piece = 0; piece < 100; piece += 1) made += resampler.push(new Float32Array(rate / 100)).length;
    assert.ok(Math.abs(made - 24_000) <= 2, `${rate}: ${made}`);
  }
});

test("tokens of TOML are the whole text, and know keys, strings and comments", () => {
  const text = '[agents."A b"] # x\nname = "a # b"\nlist = [1, true, \'c\']\ntext = """\n# no\n"""\nopen = "';
  const tokens = tomlTokens(text);
  assert.equal(tokens.map((token) => token.text).join(""), text);
  assert.deepEqual(tokens.filter((token) => token.kind === "key").map((token) => token.text), ["name", "list", "text", "open"]);
  assert.deepEqual(tokens.filter((token) => token.kind === "comment").map((token) => token.text), ["# x"]);
  assert.deepEqual(tokens.filter((token) => token.kind === "string").map((token) => token.text), ['"a # b"', "'c'", '"""\n# no\n"""', '"']);
});

test("lines and columns count characters, and lead back", () => {
  const text = "ab\n🙂中c\n";
  assert.deepEqual(lineAndColumn(text, text.indexOf("c")), { line: 2, column: 3 });
  assert.equal(offsetOf(text, 2, 3), text.indexOf("c"));
  assert.equal(offsetOf(text, 9, 1), text.length);
});

test("an address leads to the place that it was made for", () => {
  for (const route of [
    { view: "talk", id: "a/b? c", at: 4, row: { run: "run_1", id: 7 } },
    { view: "talk", id: null, at: null, row: null },
    { view: "compare", left: "x", right: "y z" },
    { view: "team", agent: "中文" },
    { view: "file" },
  ] as const) {
    assert.deepEqual(parseRoute(routeHash(route)), route);
  }
  assert.deepEqual(parseRoute("#/c/%E0%A4%A"), { view: "talk", id: "%E0%A4%A", at: null, row: null });
});
