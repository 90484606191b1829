import assert from "node:assert/strict";
import { test } from "node:test";
import { RowHeights } from "../src/logic/heights";

test("sums and searches agree with plain ones, whatever is measured", () => {
  let seed = 3;
  const random = (below: number): number => (seed = (seed * 1103515245 + 12345) & 0x7fffffff) % below;
  const plain = new Array<number>(137).fill(20);
  const rows = new RowHeights(137, 20);
  for (let round = 0; round < 500; round += 1) {
    const row = random(137);
    const height = 1 + random(90);
    if (Math.abs(plain[row]! - height) >= 0.5) plain[row] = height;
    rows.measure(row, height);
    const at = random(138);
    assert.equal(rows.offset(at), plain.slice(0, at).reduce((sum, next) => sum + next, 0));
    const position = random(4000);
    let expected = 0;
    for (let sum = plain[0]!; sum <= position && expected < 136; sum += plain[expected]!) expected += 1;
    assert.equal(rows.rowAt(position), expected);
  }
});

test("rows that stay keep their heights when the number of rows changes", () => {
  const rows = new RowHeights(3, 10);
  rows.measure(1, 50);
  rows.resize(5);
  assert.deepEqual([rows.total, rows.offset(2)], [90, 60]);
  rows.prepend(2);
  assert.deepEqual([rows.length, rows.height(3), rows.total], [7, 50, 110]);
  rows.resize(1);
  assert.equal(rows.total, 10);
});

test("the window has its rows and a few more", () => {
  const rows = new RowHeights(10_000, 20);
  assert.deepEqual(rows.range(2000, 100, 2), [98, 108]);
  assert.deepEqual(rows.range(0, 100, 2), [0, 8]);
  assert.deepEqual(rows.range(199_990, 100, 2), [9997, 10_000]);
  assert.deepEqual(new RowHeights(0, 20).range(0, 100, 2), [0, 0]);
});
