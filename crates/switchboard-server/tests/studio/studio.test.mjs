// The studio in a browser: every feature is used against the real program. Run by ./test.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { pause, POEM, Studio } from "./support.mjs";
import { longConversation, manyConversations } from "./large.mjs";

let studio;
before(async () => {
  studio = await Studio.start();
});
after(async () => {
  await studio?.stop();
});

let tests = 0;
afterEach(async () => {
  tests += 1;
  if (process.env.SWITCHBOARD_SCREENSHOTS) await studio.page.screenshot({ path: join(process.env.SWITCHBOARD_SCREENSHOTS, `after-${tests}.png`) });
});

const hash = () => studio.page.evaluate(() => location.hash);
const shot = async (name) => {
  const folder = process.env.SWITCHBOARD_SCREENSHOTS;
  if (folder) await studio.page.screenshot({ path: join(folder, `${name}.png`) });
};

/** No rule of axe is broken, nothing was asked of another machine, and the page had no error. */
async function isSound(view) {
  assert.deepEqual(await studio.axe(), [], `axe finds something in: ${view}`);
  assert.deepEqual(studio.elsewhere, [], "the page asked another machine for something");
  assert.deepEqual(studio.errors, [], `the page had an error in: ${view}`);
}

test("the token leaves the address, and a tab without it asks for one", async () => {
  assert.equal(await hash(), "#/");
  await isSound("start");
  await shot("start");
  const context = await studio.browser.createBrowserContext();
  const other = await context.newPage();
  await other.goto(new URL(studio.address).origin, { waitUntil: "load" });
  await other.waitForSelector(".token input");
  await other.type(".token input", studio.address);
  await other.click(".token button");
  await other.waitForSelector(".start h1");
  await context.close();
});

test("a message is answered, and it is plain who speaks and who has the conversation", async () => {
  await studio.talk("I was charged twice for invoice INV-1042");
  await studio.read("the second charge is being reversed", ".part.agent");
  assert.deepEqual(await studio.texts(".part .part-head .agent-name"), ["Billing"]);
  assert.deepEqual(await studio.texts(".part.handoff .agent-name"), ["Triage", "Billing"]);
  assert.match((await studio.texts(".part.tool summary"))[0], /find_invoice.*INV-1042/);
  assert.equal(await studio.page.$eval(".drawn-agent.active", (agent) => agent.dataset.agent), "Billing");
  assert.equal(await studio.page.$eval(".drawn-edge.taken", (edge) => edge.dataset.edge), "Triage>Billing");
  assert.deepEqual(await studio.texts(".order text"), ["1"]);
  await isSound("conversation");
});

test("an answer is streamed, a refused request is made again, and markup of a model is text", async () => {
  await studio.newConversation();
  await studio.say("Please write a poem");
  await studio.see(".part.agent .streaming");
  const early = (await studio.texts(".part.agent"))[0];
  await studio.idle();
  const text = (await studio.texts(".part.agent .message-text"))[0];
  assert.ok(early.length < text.length, "the answer came at once");
  assert.ok(text.includes("<img src=x onerror=alert(1)><script>alert(2)</script>"));
  assert.ok(text.includes("[here](javascript:alert(3))"));
  assert.deepEqual(await studio.page.$$eval(".part.agent .markdown strong, .part.agent .markdown li, .part.agent .markdown code", (nodes) => nodes.map((node) => node.textContent)),
    ["switchboard", "one", "two", "code"]);
  assert.equal(await studio.page.$(".part.agent img, .part.agent script, .part.agent a"), null);
  assert.ok(POEM.join("").startsWith("## A poem"));
  await studio.read("1 retry", ".row-line.model");
  await isSound("poem");
});

test("a row of the timeline opens to what was sent and what came back", async () => {
  await studio.click(".row-line.model:has(.badge)");
  await studio.read("You write.", ".row-panel .instructions");
  await studio.read("Please write a poem", ".row-panel .item");
  await studio.read("Attempt 2", ".row-panel .retries");
  await isSound("model call");
  await studio.click('.row-panel [data-tab="back"]');
  await studio.read("hums all night", ".row-panel .item");
  assert.match((await studio.texts(".row-facts"))[0], /40 tokens in, 30 out.*cost 0\.00032/);
  await studio.page.keyboard.press("Escape");
  await studio.see(".row-panel", { hidden: true });
});

test("a run is stopped", async () => {
  await studio.newConversation();
  await studio.say("My internet is slow, please measure the line of C-17");
  await studio.see(".part.tool.pending");
  assert.equal(await studio.page.$eval(".drawn-agent.active", (agent) => agent.dataset.agent), "Technical");
  await studio.click(studio.test("stop"));
  await studio.idle();
  await studio.see(".run-line .badge");
  assert.match((await studio.texts(".run-line"))[0], /stopped/);
});

test("a message is sent again, and edited and sent again, here and in a copy", async () => {
  const id = await studio.talk("my router blinks red");
  const count = async () => (await studio.texts(".part.user")).length;
  await studio.page.hover(".part.user");
  await studio.click(studio.test("retry"));
  await pause(200);
  await studio.idle();
  assert.equal(await count(), 1);
  await studio.click(studio.test("edit"));
  await studio.see(studio.test("edit-text"));
  await studio.page.$eval(studio.test("edit-text"), (field) => field.select());
  await studio.page.keyboard.type("I was charged twice for invoice INV-1042");
  await studio.click(studio.test("resend"));
  await studio.read("being reversed", ".part.agent");
  await studio.idle();
  assert.deepEqual(await studio.texts(".user-text"), ["I was charged twice for invoice INV-1042"]);
  await studio.page.hover(".part.user");
  await studio.click(studio.test("edit"));
  await studio.page.$eval(studio.test("edit-text"), (field) => field.select());
  await studio.page.keyboard.type("my internet blinks red");
  await studio.click(studio.test("resend-copy"));
  await studio.page.waitForFunction((id) => !location.hash.includes(encodeURIComponent(id)), {}, id);
  await studio.read("switch the router off", ".part.agent");
  await studio.read("my internet blinks red", ".user-text");
  assert.deepEqual(await studio.texts(".user-text"), ["my internet blinks red"]);
});

test("an image and a file go with a message", async () => {
  await studio.newConversation();
  const image = join(studio.folder, "dot.png");
  writeFileSync(image, Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64"));
  const input = await studio.see(studio.test("file"));
  await input.uploadFile(image, join(studio.folder, "refunds.toml"));
  await studio.page.waitForFunction(() => document.querySelectorAll(".files li").length === 2);
  await studio.say("my router blinks red, see the picture");
  await studio.see(".attachments img");
  await studio.idle();
  await studio.see(".attachments img");
  assert.deepEqual(await studio.texts(".attachments .chip"), ["refunds.toml"]);
  await studio.click(studio.test("edit"));
  await studio.page.type(studio.test("edit-text"), " again");
  await studio.click(studio.test("resend"));
  await pause(200);
  await studio.idle();
  assert.deepEqual(await studio.texts(".user-text"), ["my router blinks red, see the picture again"]);
  assert.deepEqual(await studio.texts(".attachments .chip"), ["refunds.toml"], "the files stay");
  await isSound("attachments");
});

test("a refused handoff is shown with its reason, in the conversation and on the edge", async () => {
  await studio.talk("we are a reseller and want wholesale, account DE12345678901234567890");
  await studio.read("Partners must not see account numbers.", ".handoff-reason");
  assert.equal(await studio.page.$eval(".drawn-edge.refused", (edge) => edge.dataset.edge), "Triage>Partners");
  await studio.page.$eval(".drawn-edge.refused", (edge) => edge.dispatchEvent(new MouseEvent("click", { bubbles: true })));
  await studio.read("Partners must not see account numbers.", ".refusals");
  await studio.read("no_account_numbers", ".dialog");
  await isSound("edge");
  await studio.page.keyboard.press("Escape");
});

test("a guardrail that stops a message is shown", async () => {
  await studio.talk("My password is hunter2");
  await studio.read("no_passwords");
  await studio.read("Please never send us a password or a PIN.");
  await isSound("guardrail");
});

test("a handoff shows the record beside what the next agent saw, and what each filter did", async () => {
  await studio.talk("I was charged twice for invoice INV-1042", "My router blinks red, write to ann@example.com");
  await studio.read("switch the router off", ".part.agent");
  const rows = await studio.page.$$('.row-line[data-kind="handoff"]');
  await rows.at(-1).click();
  await studio.see(studio.test("diff"));
  await studio.read("What Technical saw", ".diff th");
  assert.deepEqual(await studio.texts(".filter-steps button"), ["All filters", "1 remove_all_tools −6", "2 redact_pii ~1"]);
  assert.deepEqual(await studio.texts(".diff .changed del"), ["ann@example.com"]);
  assert.deepEqual(await studio.texts(".diff .changed ins"), ["[EMAIL]"]);
  assert.equal((await studio.texts(".diff .removed")).length, 6);
  await isSound("handoff");
  await shot("handoff");
  await studio.page.$$eval(".filter-steps button", (buttons) => buttons[2].click());
  await studio.read("After the filter", ".diff th");
  assert.equal((await studio.texts(".diff .removed")).length, 0);
  await studio.click(studio.test("caused-by"));
  await studio.read("What was sent", ".row-panel");
  await studio.click(studio.test("row-close"));
});

test("an agent opens to its instructions, tools, handoffs and checks", async () => {
  await studio.page.$eval('.drawn-agent[data-agent="Triage"]', (agent) => agent.focus());
  await studio.page.keyboard.press("Enter");
  await studio.read("Find out what the customer needs", ".dialog .instructions");
  await studio.read("no_account_numbers", ".dialog");
  await studio.read("filter: redact_pii", ".dialog");
  await isSound("agent in a dialog");
  await studio.page.keyboard.press("Escape");
  await studio.click(studio.test("nav-team"));
  await studio.page.$eval('.team-view .drawn-agent[data-agent="Billing"]', (agent) => agent.dispatchEvent(new MouseEvent("click", { bubbles: true })));
  await studio.read("needs approval", ".team-agent");
  await studio.read("if tier == 'premium'", ".team-agent");
  await isSound("team");
  await shot("team");
});

test("the drawing has a dashed line for each condition, a shield for each guardrail, and plain lines for the rest", async () => {
  await studio.page.evaluate(() => (location.hash = "#/team"));
  await studio.see(".team-view .drawn-edge");
  const edges = await studio.page.$$eval(".team-view .drawn-edge", (edges) => {
    const shields = [...document.querySelectorAll(".team-view .guard")].map((shield) => {
      const { e, f } = shield.transform.baseVal.consolidate().matrix;
      return new DOMPoint(e + 7, f + 7);
    });
    return edges.map((edge) => {
      const line = edge.querySelector(".line");
      // The shields of other lines are farther away than their own size.
      const along = (at) => line.getPointAtLength((at / 200) * line.getTotalLength());
      const distance = (shield) => Math.min(...[...Array(100).keys()].map((at) => Math.hypot(along(at).x - shield.x, along(at).y - shield.y)));
      return {
        edge: edge.dataset.edge,
        isDashed: getComputedStyle(line).strokeDasharray !== "none",
        shields: shields.filter((shield) => distance(shield) < 2).length,
        label: edge.getAttribute("aria-label"),
      };
    });
  });
  // A person hands back only what she was given.
  assert.deepEqual(edges.filter(({ isDashed }) => isDashed).map(({ edge }) => edge), ["Billing>Ann", "Ann>Triage"]);
  assert.deepEqual(edges.filter(({ shields }) => shields > 0).map(({ edge, shields }) => [edge, shields]), [["Triage>Partners", 1]]);
  assert.equal((await studio.page.$$(".team-view .guard path")).length, 1);
  assert.ok(edges.length > 5, `${edges.length} lines`);
  const label = (name) => edges.find(({ edge }) => edge === name).label;
  assert.match(label("Billing>Ann"), /tier == 'premium'/);
  assert.match(label("Triage>Partners"), /no_account_numbers/);
  // The legend says what they are.
  const legend = await studio.page.$$eval(".legend li", (lines) => lines.map((line) => [line.textContent.trim(), getComputedStyle(line.querySelector("span")).borderTopStyle]));
  assert.deepEqual(legend.filter(([, style]) => style === "dashed").map(([text]) => text), ["depends on a condition"]);
  assert.ok(await studio.page.$(".legend .legend-guard"));
});

test("an approval is in sight everywhere; words go with it; it is given once, always, or refused", async () => {
  const id = await studio.talk("Refund the order A-17, amount 35");
  await studio.see(`.waiting-calls ${studio.test("approval")}`);
  await studio.read('"amount": 35', ".waiting-card");
  await isSound("approval");
  await shot("approval");
  await studio.click(studio.test("nav-team"));
  await studio.click(studio.test("waiting-open"));
  await studio.see(`.waiting-list ${studio.test("approval")}`);
  await isSound("waiting elsewhere");
  await studio.click(studio.test("waiting-conversation"));
  await studio.page.waitForFunction((id) => location.hash.includes(id), {}, id);
  await studio.see(`.chat ${studio.test("words")}`);
  await studio.page.type(`.chat ${studio.test("words")}`, "the manager has agreed");
  await studio.click(`.chat ${studio.test("approve")}`);
  await studio.read("were paid back", ".part.tool");
  await studio.see(".chat .waiting-calls", { hidden: true });

  await studio.talk("Refund the order A-17, amount 36");
  await studio.see(`.chat ${studio.test("words")}`);
  await studio.page.type(`.chat ${studio.test("words")}`, "it was paid back on Monday");
  await studio.click(`.chat ${studio.test("reject")}`);
  await studio.idle();
  await studio.read("it was paid back on Monday", ".part");

  const third = await studio.talk("Refund the order A-17, amount 37");
  await studio.click(studio.test("nav-file"));
  await studio.click(studio.test("waiting-open"));
  await studio.click(`.waiting-list ${studio.test("approve-always")}`);
  await studio.see(".waiting-strip", { hidden: true });
  await studio.page.evaluate((id) => (location.hash = `#/c/${id}`), third);
  await studio.read("were paid back", ".part.tool");
  await studio.talk("Refund the order A-17, amount 38");
  await studio.click(`.chat ${studio.test("reject-always")}`);
  await studio.see(".chat .waiting-calls", { hidden: true });
});

test("a conversation that cannot be read is told of beside those that wait", async () => {
  const broken = { conversation: "broken", title: null, team: null, agent: null, since: 1_790_000_000_000, calls: [], error: "the conversation cannot be read" };
  await studio.open({ "/api/waiting": ({ waiting }) => ({ waiting: [...waiting, broken] }) });
  await studio.read("1 conversation cannot be read", ".waiting-summary");
  await studio.click(studio.test("waiting-open"));
  await studio.read("the conversation cannot be read", ".waiting-entry");
  await isSound("a conversation that cannot be read");
  await studio.open();
});

test("a person answers, and hands the conversation on", async () => {
  await studio.talk("I am angry, I want a person, my lawyer calls");
  await studio.see(studio.test("person"));
  await studio.read("my lawyer calls", ".waiting-card .code");
  await isSound("person");
  await studio.page.type(studio.test("person-text"), "I am here. What happened?");
  await studio.click(studio.test("person-answer"));
  await studio.read("I am here. What happened?", ".part.agent");
  await studio.idle();
  assert.deepEqual(await studio.texts(".chat-title .agent-name"), ["Ann"]);
  await studio.say("I was charged twice for invoice INV-1042");
  await studio.see(studio.test("person"));
  await studio.page.select(studio.test("person-to"), "Billing");
  await studio.click(studio.test("person-hand"));
  await studio.read("being reversed", ".part.agent");
});

test("conversations are listed, searched, and opened from the keyboard", async () => {
  await studio.newConversation();
  await studio.read("Please write a poem", ".list-title");
  await studio.page.focus("main");
  await studio.page.keyboard.press("/");
  await studio.page.waitForFunction(() => document.activeElement?.id === "search");
  await studio.page.keyboard.type("hums");
  await studio.read("hums all night", ".list-excerpt");
  assert.deepEqual(await studio.texts(".list-row mark"), ["hums"]);
  await isSound("search");
  await studio.click(".list-row");
  await studio.page.waitForFunction(() => location.hash.includes("at="));
  await studio.page.$eval("#search", (field) => {
    field.value = "";
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  await studio.newConversation();
  await studio.page.waitForFunction(() => document.querySelectorAll(".list-row").length > 3);
  await studio.page.focus(".list-rows");
  await studio.page.keyboard.press("ArrowDown");
  const first = await hash();
  await studio.page.keyboard.press("ArrowDown");
  assert.notEqual(await hash(), first);
  await studio.page.keyboard.press("?");
  await studio.see(".dialog .keys");
  await isSound("keys");
  await studio.page.keyboard.press("Escape");
});

test("time travel shows any turn as it was; a fork goes on from there; both stand side by side", async () => {
  const id = await studio.talk("I was charged twice for invoice INV-1042", "My router blinks red");
  await studio.read("switch the router off", ".part.agent");
  assert.match((await studio.texts(".totals"))[0], /5 turns · 2 handoffs · .* tokens · cost /);
  await studio.page.focus(".ribbon-bar");
  await studio.page.keyboard.press("Home");
  for (let turn = 0; turn < 3; turn += 1) await studio.page.keyboard.press("ArrowRight");
  await studio.read("As it was after turn 4 of 7.", ".travel-bar");
  await studio.page.waitForFunction(() => !document.querySelector(".parts").textContent.includes("switch the router off"));
  assert.equal(await studio.page.$eval(".drawn-agent.active", (agent) => agent.dataset.agent), "Billing");
  assert.deepEqual(await studio.texts(".user-text"), ["I was charged twice for invoice INV-1042"]);
  assert.match(await hash(), /at=\d+/);
  await isSound("time travel");
  await shot("time-travel");
  await studio.click(studio.test("fork-here"));
  await studio.page.waitForFunction((id) => !location.hash.includes(`${encodeURIComponent(id)}?`) && location.hash.includes("copy"), {}, id);
  await studio.read("copied from", ".chat-title");
  await studio.see(".part.agent");
  await studio.say("Refund the order A-17, amount 12");
  await studio.click(`.chat ${studio.test("approve")}`);
  await studio.read("were paid back", ".part.tool");
  await studio.idle();
  await studio.click(studio.test("compare"));
  await studio.see(".compare-side .parting");
  await studio.page.waitForFunction(() => document.querySelectorAll(".compare-side .parting").length === 2);
  assert.equal((await studio.texts(".shared .user-text")).length, 2);
  await isSound("compare");
  await shot("compare");
});

test("a message that is written in the past goes on in a copy", async () => {
  const id = await studio.talk("I was charged twice for invoice INV-1042", "My router blinks red");
  await studio.page.focus(".ribbon-bar");
  await studio.page.keyboard.press("Home");
  for (let turn = 0; turn < 3; turn += 1) await studio.page.keyboard.press("ArrowRight");
  await studio.see(".travel-bar");
  await studio.say("my internet blinks red");
  await studio.page.waitForFunction((id) => location.hash.includes("copy") && !location.hash.includes("at="), {}, id);
  await studio.read("switch the router off", ".part.agent");
  await studio.read("my internet blinks red", ".user-text");
  assert.deepEqual(await studio.texts(".user-text"), ["I was charged twice for invoice INV-1042", "my internet blinks red"]);
});

test("context and agent are chosen at the start", async () => {
  await studio.newConversation();
  await studio.page.$eval('.agent-choice input[value="Billing"]', (input) => input.click());
  await studio.page.$eval(".start-context input", (input) => input.select());
  await studio.page.type(".start-context input", "premium");
  await studio.say("I am angry, I want a person");
  await studio.see(studio.test("person"));
  assert.deepEqual(await studio.texts(".chat-title .chip"), ["tier = premium"]);
  assert.deepEqual(await studio.texts(".part.handoff .agent-name"), ["Billing", "Ann"]);
});

test("a conversation is exported, saved as a routing test, and deleted", async () => {
  const id = await studio.talk("I was charged twice for invoice INV-1042");
  const client = await studio.page.createCDPSession();
  await client.send("Browser.setDownloadBehavior", { behavior: "allow", downloadPath: studio.folder });
  for (const [format, extension] of [["json", "json"], ["trace", "jsonl"], ["markdown", "md"]]) {
    await studio.click(studio.test("more"));
    await studio.see(studio.test(`export-${format}`));
    if (format === "json") await isSound("menu");
    await studio.click(studio.test(`export-${format}`));
    const file = join(studio.folder, `${id}.${extension}`);
    for (let tries = 0; ; tries += 1) {
      try {
        assert.ok(readFileSync(file, "utf8").includes("INV-1042"));
        break;
      } catch (error) {
        if (tries > 50) throw error;
        await pause(100);
      }
    }
  }
  await studio.click(studio.test("more"));
  await studio.click(studio.test("export-case"));
  await studio.read('"Billing"', studio.test("case-text"));
  await isSound("routing test");
  await studio.page.keyboard.press("Escape");
  await studio.click(studio.test("more"));
  await studio.click(studio.test("delete"));
  await studio.click(studio.test("delete-yes"));
  await studio.see(".start h1");
  await studio.page.waitForFunction((id) => !document.querySelector(`[data-key="${id}"]`), {}, id);
});

test("the team file is checked and completed as it is written, and takes effect without a restart", async () => {
  await studio.click(studio.test("nav-file"));
  await studio.see("#editor");
  const edit = (from, to) =>
    studio.page.$eval("#editor", (field, from, to) => {
      const at = field.value.indexOf(from);
      field.focus();
      field.setSelectionRange(at, at + from.length);
      document.execCommand("insertText", false, to);
    }, from, to);
  await edit('"Billing",', '"Biling",');
  await studio.read("Biling", ".problems .error");
  assert.equal(await studio.page.$eval(studio.test("save"), (button) => button.disabled), true);
  await isSound("team file with a problem");
  await shot("file");
  await edit('"Biling",', '"Billing",');
  await studio.page.waitForFunction(() => !document.querySelector(".problems .error"));
  await edit('instructions = "You write."', 'instructions = "You write short texts."\nou');
  await studio.see(studio.test("completions"));
  assert.ok((await studio.texts(".completions li code")).some((label) => label.startsWith("output")));
  await isSound("completions");
  await studio.page.keyboard.press("Escape");
  await edit('texts."\nou', 'texts."');
  await studio.page.waitForFunction(() => !document.querySelector(".problems .error") && !document.querySelector("[data-test=save]").disabled);
  await studio.click(studio.test("save"));
  await studio.read("Saved. The team was reloaded.", studio.test("file-state"));
  assert.ok(readFileSync(studio.file, "utf8").includes("You write short texts."));
  await studio.page.evaluate(() => (location.hash = "#/team/Writer"));
  await studio.read("You write short texts.", ".team-agent .instructions");
});

test("what is found in a text that was changed meanwhile is dropped", async () => {
  const page = await studio.open({}, function delayFirstCheck() {
    const ask = window.fetch;
    let checks = 0;
    window.fetch = async (...request) => {
      const isFirst = String(request[0]).endsWith("/file/check") && (checks += 1) === 2;
      if (isFirst) await new Promise((later) => setTimeout(later, 2500));
      return ask(...request);
    };
  });
  await studio.click(studio.test("nav-file"));
  await studio.see("#editor");
  await pause(600);
  const edit = (from, to) =>
    page.$eval("#editor", (field, from, to) => {
      const at = field.value.indexOf(from);
      field.focus();
      field.setSelectionRange(at, at + from.length);
      document.execCommand("insertText", false, to);
    }, from, to);
  await edit('"Billing",', '"Biling",');
  await pause(400);
  await edit('"Biling",', '"Billing",');
  await pause(3000);
  assert.deepEqual(await studio.texts(".problems .error"), []);
  await studio.open();
});

test("the page is sound in the dark, and in Chinese", async () => {
  await studio.talk("I was charged twice for invoice INV-1042", "My router blinks red");
  await studio.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "dark" }]);
  const ground = () => studio.page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = await ground();
  await isSound("dark");
  await shot("dark");
  await studio.click(studio.test("theme"));
  assert.notEqual(await ground(), dark, "the switch chooses light");
  await studio.click(studio.test("theme"));
  assert.equal(await ground(), dark);
  for (const place of ["#/team/Billing", "#/file"]) {
    await studio.page.evaluate((place) => (location.hash = place), place);
    await pause(400);
    await isSound(`dark ${place}`);
  }
  await studio.click(studio.test("language"));
  await studio.read("团队文件", ".bar");
  assert.equal(await studio.page.$eval("html", (html) => html.lang), "zh-CN");
  await studio.talk("my router blinks red");
  await studio.read("正在负责对话", ".chat-title");
  await isSound("Chinese");
  await shot("chinese");
  await studio.click(studio.test("language"));
  await studio.click(studio.test("theme"));
  await studio.page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: "light" }]);
});

test("everything is within reach on a screen of 400 pixels", async () => {
  await studio.page.setViewport({ width: 400, height: 780, hasTouch: true });
  await studio.talk("Refund the order A-17, amount 35");
  await studio.see(`.chat ${studio.test("approval")}`);
  await isSound("narrow conversation");
  await shot("narrow");
  for (const pane of ["list", "team", "timeline"]) {
    await studio.click(`[data-pane="${pane}"]`);
    await pause(150);
    assert.equal(await studio.page.evaluate(() => document.documentElement.scrollWidth), 400, `${pane} is too wide`);
    await isSound(`narrow ${pane}`);
    await shot(`narrow-${pane}`);
  }
  await studio.click('.row-line[data-kind="handoff"]');
  await studio.see(studio.test("diff"));
  await isSound("narrow handoff");
  await studio.click(studio.test("row-close"));
  for (const place of ["#/team/Billing", "#/file"]) {
    await studio.page.evaluate((place) => (location.hash = place), place);
    await pause(400);
    assert.equal(await studio.page.evaluate(() => document.documentElement.scrollWidth), 400, `${place} is too wide`);
    await isSound(`narrow ${place}`);
  }
  await studio.page.setViewport({ width: 1440, height: 900 });
});

test("speech goes to the service as 16 bit sound, and its answer is heard and read", async () => {
  const page = await studio.open({
    "/api/teams": (teams) => ({ teams: teams.teams.map((team) => ({ ...team, speech: "voice" })) }),
    "/api/teams/support/realtime/tickets": () => ({ ticket: "rt_1", conversation: "x", expires_in: 30, protocol: "switchboard.realtime.v1", mode: "voice" }),
  }, fakeSocket);
  await studio.talk("my router blinks red");
  await studio.click(studio.test("speak"));
  await studio.read("Triage", ".voice");
  // The microphone of the browser under test beeps once a second.
  const isLoud = () => window.socket.frames.some((frame) => new Int16Array(frame).some((sample) => Math.abs(sample) > 300));
  await page.waitForFunction(isLoud, { timeout: 10_000 });
  const { protocols, sizes } = await page.evaluate(() => ({
    protocols: window.socket.protocols,
    sizes: window.socket.frames.map((frame) => frame.byteLength),
  }));
  assert.deepEqual(protocols, ["switchboard.realtime.v1", "ticket.rt_1"]);
  assert.ok(sizes.every((size) => size % 2 === 0 && size >= 900 && size <= 1000), `frames of 20 ms: ${sizes.slice(0, 5)}`);
  await page.evaluate(() => {
    window.socket.tell({ type: "handoff", from: "Triage", to: "Billing", status: "taken" });
    window.socket.tell({ type: "agent", agent: "Billing" });
    window.socket.tell({ type: "answer_started", agent: "Billing" });
    window.socket.tell({ type: "text_delta", agent: "Billing", text: "Good morning." });
    window.socket.onmessage({ data: new Int16Array(2400).buffer });
    window.socket.tell({ type: "approval_required", waiting: [{ kind: "tool", details: null, agent: "Billing", tool: "refund", call_id: "c1", arguments: "{}" }] });
  });
  await studio.read("Good morning.", ".voice-words");
  await studio.read("is speaking", ".voice");
  await isSound("speech");
  await page.$eval(".voice-call .primary", (button) => button.click());
  await studio.click(studio.test("end-call"));
  await studio.see("#message");
  await page.waitForFunction(() => window.socket.sent.length === 2, { timeout: 5_000 });
  assert.deepEqual(await page.evaluate(() => window.socket.sent), ['{"type":"decide","call_id":"c1","approve":true}', '{"type":"close"}']);
});

/** Stands for the WebSocket of the service, which the tests of the service itself use. */
function fakeSocket() {
  window.WebSocket = class {
    static OPEN = 1;
    readyState = 1;
    bufferedAmount = 0;
    frames = [];
    sent = [];
    constructor(_address, protocols) {
      this.protocols = protocols;
      window.socket = this;
      setTimeout(() => {
        this.onopen();
        this.tell({ type: "session", agent: "Triage" });
      });
    }
    tell(event) {
      this.onmessage({ data: JSON.stringify(event) });
    }
    send(data) {
      (typeof data === "string" ? this.sent : this.frames).push(data);
    }
    close() {}
  };
}

test("10,000 conversations and one of 5,000 items are scrolled with few elements in the page", async () => {
  const large = (_, url) => manyConversations(url) ?? longConversation(url);
  await studio.open({ "/api/conversations": large, "/api/conversations/long": large, "/api/conversations/long/turns": large, "/api/conversations/long/recordings": large });
  await studio.page.evaluate(() => (location.hash = "#/c/long"));
  await studio.see(".part");
  const scroll = (selector, to) =>
    studio.page.evaluate(async (selector, to) => {
      const box = document.querySelector(selector);
      let longest = 0;
      let rows = 0;
      for (let step = 0; step < 60; step += 1) {
        const began = performance.now();
        if (to === "end") box.scrollTop += Math.max(900, (box.scrollHeight - box.scrollTop) / 20);
        else box.scrollTop -= Math.max(900, box.scrollTop / 20);
        await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
        longest = Math.max(longest, performance.now() - began);
        rows = Math.max(rows, box.querySelectorAll("[data-row]").length);
      }
      return { longest: Math.round(longest), rows };
    }, selector, to);
  const list = await scroll(".list-rows", "end");
  for (let tries = 0; tries < 400 && !(await studio.page.$('[data-key="conversation-9999"]')); tries += 1) {
    await studio.page.$eval(".list-rows", (box) => (box.scrollTop = box.scrollHeight));
    await pause(20);
  }
  assert.ok(await studio.page.$('[data-key="conversation-9999"]'), "the last of 10,000 conversations is reached");
  assert.ok(list.rows < 60, `${list.rows} rows of the list are in the page`);
  await studio.page.focus(".ribbon-bar");
  await studio.page.keyboard.press("Home");
  await studio.read("message 0 of the user", ".part.user");
  await studio.click(studio.test("now"));
  await studio.read("answer 4999", ".part.agent");
  const parts = await scroll(".parts", "start");
  assert.ok(parts.rows < 60, `${parts.rows} parts are in the page`);
  console.log(`longest step of scrolling: list ${list.longest} ms, conversation ${parts.longest} ms`);
  assert.deepEqual(studio.errors, []);
});
