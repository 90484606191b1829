// The studio over a real store with 10,000 conversations and one of 5,000 items, and how smoothly they scroll. Run by
// ./test, which sets SWITCHBOARD_FILL_STORE to the example that fills the store.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { fileURLToPath } from "node:url";
import { pause, Studio } from "./support.mjs";

const CONVERSATIONS = 10_000;
/** A step of scrolling that a person would notice, with room for a busy machine. */
const LONGEST_STEP = 400;

let studio;
let folder;
before(async () => {
  folder = mkdtempSync(join(tmpdir(), "large-"));
  const store = `sqlite:${join(folder, "store.db")}`;
  const here = dirname(fileURLToPath(import.meta.url));
  const fill = process.env.SWITCHBOARD_FILL_STORE ?? join(here, "../../../../target/debug/examples/fill_store");
  execFileSync(fill, [store, String(CONVERSATIONS), "5000"]);
  studio = await Studio.start({ store });
});
after(async () => {
  await studio?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Turns the wheel over an element, and measures each frame and each long task meanwhile. */
async function wheel(selector, delta, steps) {
  const page = studio.page;
  const box = await (await studio.see(selector)).boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height / 2);
  await page.evaluate(() => {
    const measured = { frames: [], tasks: [], isOn: true };
    window.measured = measured;
    new PerformanceObserver((list) => measured.tasks.push(...list.getEntries().map((task) => task.duration))).observe({ type: "longtask" });
    let last = performance.now();
    const frame = (now) => {
      measured.frames.push(now - last);
      last = now;
      if (measured.isOn) requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  });
  for (let step = 0; step < steps; step += 1) {
    await page.mouse.wheel({ deltaY: delta });
    await pause(16);
  }
  await pause(200);
  const { frames, tasks } = await page.evaluate(() => {
    window.measured.isOn = false;
    return window.measured;
  });
  frames.sort((one, other) => one - other);
  const at = (share) => Math.round(frames[Math.min(frames.length - 1, Math.floor(frames.length * share))]);
  const rows = await page.$$eval(`${selector} [data-row]`, (rows) => rows.length);
  return { frames: frames.length, p50: at(0.5), p95: at(0.95), longest: at(1), longTasks: tasks.length, longestTask: Math.round(Math.max(0, ...tasks)), rows };
}

function isSmooth(name, measured) {
  console.log(`${name}: ${JSON.stringify(measured)}`);
  assert.ok(measured.longest < LONGEST_STEP, `${name}: a frame took ${measured.longest} ms`);
  assert.ok(measured.longestTask < LONGEST_STEP, `${name}: a task took ${measured.longestTask} ms`);
  assert.ok(measured.rows < 80, `${name}: ${measured.rows} rows are in the page`);
}

test("the list of 10,000 conversations is scrolled to its end without a stutter", async () => {
  await studio.see(".list-rows [data-row]");
  isSmooth("list", await wheel(".list-rows", 600, 120));
  // The first 64 were made side by side, and one of them is the last of the list.
  const isAtEnd = () =>
    studio.page.$eval(".list-rows", (box) => {
      box.scrollTop = box.scrollHeight;
      const last = [...box.querySelectorAll("[data-key]")].at(-1);
      return Number(last?.dataset.key.replace("conversation-", "")) < 64;
    });
  let atEnd = false;
  for (let tries = 0; tries < 600 && !atEnd; tries += 1) {
    atEnd = await isAtEnd();
    await pause(25);
  }
  assert.ok(atEnd, "the end of the list is reached");
  isSmooth("list, back from its end", await wheel(".list-rows", -600, 60));
});

test("a search among all of them finds one", async () => {
  await studio.page.focus("#search");
  await studio.page.keyboard.type("Question 7777");
  const began = performance.now();
  await studio.read("Question 7777", ".list-excerpt");
  console.log(`search: ${Math.round(performance.now() - began)} ms`);
});

test("a conversation of 5,000 items opens, and is scrolled from its end to its beginning and back", async () => {
  const began = performance.now();
  await studio.page.evaluate(() => (location.hash = "#/c/long"));
  await studio.see(".part");
  console.log(`opened: ${Math.round(performance.now() - began)} ms`);
  isSmooth("conversation", await wheel(".parts", -900, 120));
  await studio.page.focus(".ribbon-bar");
  await studio.page.keyboard.press("Home");
  // The first turn, which begins with 99 items.
  await studio.read("Message 98 of the user", ".part.user");
  await studio.page.$eval(".parts", (box) => (box.scrollTop = 0));
  await studio.read("Message 0 of the user", ".part.user");
  isSmooth("conversation, from its beginning", await wheel(".parts", 900, 60));
  await studio.click(studio.test("now"));
  await studio.read("Message 4949 of the user", ".part.user");
  assert.deepEqual(studio.errors, []);
});
