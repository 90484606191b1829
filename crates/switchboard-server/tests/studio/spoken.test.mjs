// Speaking in the studio: the browser's microphone hears a recording of flite, and the program answers with its own
// recogniser and voice. Run by ./test, which sets SWITCHBOARD_PYTHON to a Python with pocketsphinx.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { Studio } from "./support.mjs";

const RATE = 16_000;
let studio;
let folder;

/** A recording of a sentence between pauses. The browser plays it again and again. */
function recording(text) {
  const spoken = join(folder, "spoken.wav");
  execFileSync("flite", ["-voice", "rms", "-t", text, "-o", spoken]);
  const bytes = readFileSync(spoken);
  assert.equal(bytes.readUInt32LE(24), RATE, "flite speaks at another rate");
  const speech = bytes.subarray(bytes.indexOf("data") + 8);
  const pause = (seconds) => Buffer.alloc(seconds * RATE * 2);
  const samples = Buffer.concat([pause(3), speech, pause(90)]);
  const head = Buffer.from(bytes.subarray(0, 44));
  head.writeUInt32LE(36 + samples.length, 4);
  head.writeUInt32LE(samples.length, 40);
  const path = join(folder, "microphone.wav");
  writeFileSync(path, Buffer.concat([head, samples]));
  return path;
}

before(async () => {
  folder = mkdtempSync(join(tmpdir(), "spoken-"));
  const path = recording("i was charged twice this month");
  studio = await Studio.start({
    program: ["--speech", "offline", "--model", "offline"],
    chromium: [`--use-file-for-fake-audio-capture=${path}`],
  });
});
after(async () => {
  await studio?.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** Counts the pieces of sound that the page plays, and those that are not silence. */
function countSound() {
  window.sound = { pieces: 0, loud: 0 };
  const start = AudioBufferSourceNode.prototype.start;
  AudioBufferSourceNode.prototype.start = function (...when) {
    window.sound.pieces += 1;
    if (this.buffer?.getChannelData(0).some((sample) => Math.abs(sample) > 0.05)) window.sound.loud += 1;
    return start.apply(this, when);
  };
}

test("what is said into the microphone is understood, handed over and answered aloud", async () => {
  const page = await studio.open({}, countSound);
  await studio.talk("hello");
  await studio.click(studio.test("speak"));
  await studio.read("Triage", ".voice");
  await page.waitForFunction(
    () => [...document.querySelectorAll(".part.user")].some((part) => part.textContent.includes("charged")),
    { timeout: 60_000 },
  );
  await page.waitForFunction(() => document.querySelector(".voice .agent-name")?.textContent.includes("Billing"), { timeout: 60_000 });
  await page.waitForFunction(() => document.querySelector(".voice-words")?.textContent.includes("I can help with"), { timeout: 60_000 });
  await studio.read("is speaking", ".voice");
  await page.waitForFunction(() => window.sound.loud > 5, { timeout: 60_000 });
  // It is speaking until its sound has ended, which is after its words.
  await page.waitForFunction(() => document.querySelector(".voice").textContent.includes("is listening"), { timeout: 60_000 });
  await studio.read("i was charged twice this month", ".timeline");
  assert.deepEqual(await studio.axe(), []);
  if (process.env.SWITCHBOARD_SCREENSHOTS) await page.screenshot({ path: join(process.env.SWITCHBOARD_SCREENSHOTS, "spoken.png") });
  await studio.click(studio.test("end-call"));
  await studio.see("#message");
  // The conversation goes on as text, with the agent that has it.
  await studio.say("thank you");
  await studio.idle();
  assert.deepEqual(await studio.texts(".chat-title .agent-name"), ["Billing"]);
  assert.deepEqual(studio.errors, []);
  assert.deepEqual(studio.elsewhere, []);
  console.log(`pieces of sound: ${JSON.stringify(await page.evaluate(() => window.sound))}`);
});

test("the microphone is let go of when a call ends before it has begun", async () => {
  const page = await studio.open({}, function trackMicrophones() {
    window.tracks = [];
    const ask = navigator.mediaDevices.getUserMedia.bind(navigator.mediaDevices);
    navigator.mediaDevices.getUserMedia = async (wish) => {
      await new Promise((later) => setTimeout(later, 800));
      const stream = await ask(wish);
      window.tracks.push(...stream.getTracks());
      return stream;
    };
  });
  await studio.talk("hello");
  await studio.click(studio.test("speak"));
  await studio.click(studio.test("end-call"));
  await page.waitForFunction(() => window.tracks.length > 0 && window.tracks.every((track) => track.readyState === "ended"), { timeout: 5_000 });
  assert.deepEqual(studio.errors, []);
});
