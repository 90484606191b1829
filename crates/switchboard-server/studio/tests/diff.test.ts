import assert from "node:assert/strict";
import { test } from "node:test";
import { diffLists, diffTexts, words } from "../src/logic/diff";

const kinds = (old: string[], next: string[]): string[] =>
  diffLists(old, next, (entry) => entry, (entry) => entry, (entry) => entry[0]!).map((step) =>
    step.kind === "added" ? `+${step.next}` : step.kind === "removed" ? `-${step.old}` : step.kind === "changed" ? `${step.old}~${step.next}` : step.old,
  );

test("equal lists have no differences", () => {
  assert.deepEqual(kinds(["a", "b"], ["a", "b"]), ["a", "b"]);
  assert.deepEqual(kinds([], []), []);
});

test("entries are removed and added where they were", () => {
  assert.deepEqual(kinds(["a", "b", "c", "d"], ["a", "c", "e", "d"]), ["a", "-b", "c", "+e", "d"]);
});

test("an entry that another of its group replaces is changed, also across others that are removed", () => {
  assert.deepEqual(kinds(["u1", "c1", "o1"], ["u2"]), ["u1~u2", "-c1", "-o1"]);
  assert.deepEqual(kinds(["c1", "u1"], ["x1", "u2"]), ["-c1", "+x1", "u1~u2"]);
});

test("any two lists are turned into each other", () => {
  let seed = 7;
  const random = (below: number): number => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % below;
  for (let round = 0; round < 300; round += 1) {
    const list = (): string[] => Array.from({ length: random(12) }, () => "abcd"[random(4)]!);
    const [old, next] = [list(), list()];
    const steps = diffLists(old, next, (entry) => entry, (entry) => entry, (entry) => entry);
    assert.deepEqual(steps.flatMap((step) => (step.kind === "added" ? [] : [step.old])), old);
    assert.deepEqual(steps.flatMap((step) => (step.kind === "removed" ? [] : [step.next])), next);
  }
});

test("lists that are too long for the table are still turned into each other", () => {
  const old = Array.from({ length: 3000 }, (_, index) => `a${index}`);
  const next = Array.from({ length: 3000 }, (_, index) => `b${index}`);
  assert.equal(diffLists(old, next, (entry) => entry).length, 6000);
});

test("texts are compared by words, and Chinese by characters", () => {
  assert.deepEqual(diffTexts("write to ann@example.com now", "write to [EMAIL] now"), [
    { kind: "same", text: "write to " },
    { kind: "removed", text: "ann@example.com" },
    { kind: "added", text: "[EMAIL]" },
    { kind: "same", text: " now" },
  ]);
  assert.deepEqual(diffTexts("我的账单", "我的发票"), [
    { kind: "same", text: "我的" },
    { kind: "removed", text: "账单" },
    { kind: "added", text: "发票" },
  ]);
});

test("the words of a text are the whole text", () => {
  for (const text of ["", "a  b\n", "x@y.z, 中文 and ünïcode 🙂!"]) assert.equal(words(text).join(""), text);
});
