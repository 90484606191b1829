/** Starts the program, a scripted model and the browser, for the tests of the studio. */

import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const program = process.env.SWITCHBOARD_PROGRAM ?? join(here, "../../../../target/debug/switchboard");
const packages = createRequire(join(process.env.SWITCHBOARD_STUDIO_PACKAGES ?? here, "package.json"));
const puppeteer = packages("puppeteer-core");
const axe = readFileSync(packages.resolve("axe-core/axe.min.js"), "utf8");

export const pause = (ms) => new Promise((wake) => setTimeout(wake, ms));

/** The words of the scripted model: Markdown, and markup that must not become part of the page. */
export const POEM = [
  "## A poem\n\n", "The **switch", "board** hums", " all night,\n\n", "- one\n", "- two\n\n",
  "<img src=x onerror=alert(1)><script>alert(2)</script> ", "[here](javascript:alert(3)) and `code`.",
];

/** A server of Chat Completions: refuses the first request, then answers one piece at a time. */
async function scriptedModel() {
  let requests = 0;
  const server = createServer(async (request, response) => {
    for await (const _ of request);
    requests += 1;
    if (requests === 1) {
      response.writeHead(503, { "content-type": "application/json", "retry-after": "0" });
      response.end(JSON.stringify({ error: { message: "try again", type: "server_error" } }));
      return;
    }
    response.writeHead(200, { "content-type": "text/event-stream" });
    const chunk = (delta, finish, usage) =>
      response.write(`data: ${JSON.stringify({ id: "c", object: "chat.completion.chunk", created: 1, model: "scripted", choices: usage ? [] : [{ index: 0, delta, finish_reason: finish }], usage })}\n\n`);
    for (const piece of POEM) {
      chunk({ role: "assistant", content: piece }, null);
      await pause(120);
    }
    chunk({}, "stop");
    chunk({}, null, { prompt_tokens: 40, completion_tokens: 30, total_tokens: 70 });
    response.end("data: [DONE]\n\n");
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  return server;
}

export class Studio {
  /** `store` is an address; `program` and `chromium` are further arguments. */
  static async start({ store = "memory:", program: programArguments = [], chromium = [] } = {}) {
    const studio = new Studio();
    studio.folder = mkdtempSync(join(tmpdir(), "studio-"));
    studio.model = await scriptedModel();
    cpSync(join(here, "team"), studio.folder, { recursive: true });
    studio.file = join(studio.folder, "team.toml");
    const text = readFileSync(studio.file, "utf8").replace("127.0.0.1:1/", `127.0.0.1:${studio.model.address().port}/`);
    writeFileSync(studio.file, text);
    studio.process = spawn(program, ["studio", studio.file, "--no-open", "--store", store, ...programArguments], {
      env: { ...process.env, HOME: studio.folder, SWITCHBOARD_DATA: studio.folder, LC_ALL: "C" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    studio.address = await new Promise((resolve, reject) => {
      let out = "";
      studio.process.stdout.on("data", (data) => {
        out += data;
        const found = /http:\S+/.exec(out);
        if (found) resolve(found[0]);
      });
      studio.process.on("exit", (code) => reject(new Error(`the program ended with ${code}`)));
    });
    studio.browser = await puppeteer.launch({
      executablePath: process.env.SWITCHBOARD_CHROMIUM ?? "/usr/bin/chromium",
      args: ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--use-fake-ui-for-media-stream", "--use-fake-device-for-media-stream", ...chromium],
    });
    await studio.open();
    return studio;
  }

  /**
   * Opens the page in a new tab. Every request to elsewhere, and every error of the page, is collected. `answers` are
   * functions that change the service's answers, by path; `script` runs in the page before its own.
   */
  async open(answers = {}, script = null) {
    await this.page?.close();
    this.page = await this.browser.newPage();
    if (script) await this.page.evaluateOnNewDocument(script);
    if (Object.keys(answers).length > 0) {
      await this.page.setRequestInterception(true);
      this.page.on("request", (request) => void this.answer(request, answers));
    }
    this.errors = [];
    this.elsewhere = [];
    const origin = new URL(this.address).origin;
    this.page.on("pageerror", (error) => this.errors.push(String(error.stack ?? error)));
    this.page.on("console", (message) => message.type() === "error" && this.errors.push(message.text()));
    this.page.on("dialog", (dialog) => {
      this.errors.push(`a dialog: ${dialog.message()}`);
      void dialog.dismiss();
    });
    this.page.on("request", (request) => {
      const url = request.url();
      if (!url.startsWith(origin) && !url.startsWith("data:") && !url.startsWith("blob:")) this.elsewhere.push(url);
    });
    await this.page.setViewport({ width: 1440, height: 900 });
    await this.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
    await this.page.goto(this.address, { waitUntil: "load" });
    await this.see(".start h1");
    return this.page;
  }

  async answer(request, answers) {
    const url = new URL(request.url());
    const change = answers[url.pathname];
    if (!change) return request.continue();
    let body = {};
    if (request.method() === "GET") {
      const response = await fetch(url, { headers: request.headers() });
      if (response.ok) body = await response.json();
    }
    return request.respond({ status: 200, contentType: "application/json", body: JSON.stringify(change(body, url)) });
  }

  async stop() {
    await this.browser?.close();
    this.process?.kill("SIGTERM");
    this.model?.close();
    this.model?.closeAllConnections();
    rmSync(this.folder, { recursive: true, force: true });
  }

  see(selector, options = {}) {
    return this.page.waitForSelector(selector, { timeout: 10_000, ...options });
  }

  /** Waits until the page shows a text. */
  async read(text, within = "body") {
    await this.page.waitForFunction(
      (text, within) => [...document.querySelectorAll(within)].some((element) => element.textContent.includes(text)),
      { timeout: 10_000 }, text, within,
    );
  }

  async click(selector) {
    await this.see(selector);
    await this.page.$eval(selector, (element) => element.scrollIntoView({ block: "nearest" }));
    // The place must be the same for a while, so that the click does not go beside it.
    await this.page.evaluate(async (selector) => {
      const place = () => JSON.stringify(document.querySelector(selector)?.getBoundingClientRect());
      for (let same = 0, last = place(); same < 4; ) {
        await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn, 10)));
        const next = place();
        same = next === last ? same + 1 : 0;
        last = next;
      }
    }, selector);
    await this.page.click(selector);
  }

  test(name) {
    return `[data-test="${name}"]`;
  }

  async newConversation() {
    await this.page.evaluate(() => (location.hash = "#/"));
    await this.see(".start h1");
  }

  async say(text) {
    await this.see("#message");
    await this.page.type("#message", text);
    await this.page.keyboard.press("Enter");
  }

  /** Says something in a new conversation, and waits for the end of the run. Returns the conversation's identifier. */
  async talk(...messages) {
    await this.newConversation();
    for (const message of messages) {
      await this.say(message);
      await this.page.waitForFunction(() => location.hash.startsWith("#/c/"));
      await this.idle();
    }
    return decodeURIComponent(await this.page.evaluate(() => location.hash.replace(/^#\/c\//, "").replace(/\?.*/, "")));
  }

  async idle() {
    await this.page.waitForFunction(() => !document.querySelector("[data-test=stop]") && !document.querySelector(".thinking"), { timeout: 15_000 });
    await pause(150);
  }

  texts(selector) {
    return this.page.$$eval(selector, (elements) => elements.map((element) => element.textContent.trim()));
  }

  /** Runs axe on the page as it is. Returns the rules that are broken, with the elements. */
  async axe() {
    await this.page.evaluate(axe);
    return this.page.evaluate(async () => {
      const { violations } = await window.axe.run(document, { resultTypes: ["violations"] });
      return violations.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((node) => `${node.target.join(" ")} ${node.any[0]?.message ?? node.html.slice(0, 120)}`).join(" | ")}`);
    });
  }
}
