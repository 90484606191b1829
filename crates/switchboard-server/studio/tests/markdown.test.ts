import assert from "node:assert/strict";
import { test } from "node:test";
import { type Block, type Inline, parseInline, parseMarkdown, safeAddress } from "../src/logic/markdown";

/** The tree in a short form: tags around texts. */
function inline(nodes: Inline[]): string {
  return nodes
    .map((node) => {
      if (node.kind === "text") return node.text;
      if (node.kind === "code") return `<code>${node.text}</code>`;
      if (node.kind === "break") return "<br>";
      const attribute = node.kind === "link" ? ` ${node.href}` : "";
      return `<${node.kind}${attribute}>${inline(node.content)}</${node.kind}>`;
    })
    .join("");
}

function block(node: Block): string {
  switch (node.kind) {
    case "paragraph":
      return `<p>${inline(node.content)}</p>`;
    case "heading":
      return `<h${node.level}>${inline(node.content)}</h${node.level}>`;
    case "code":
      return `<pre ${node.language}>${node.text}</pre>`;
    case "quote":
      return `<quote>${node.content.map(block).join("")}</quote>`;
    case "list":
      return `<${node.ordered ? `ol ${node.start}` : "ul"}>${node.items.map((item) => `<li>${item.map(block).join("")}</li>`).join("")}</list>`;
    case "table":
      return `<table>${[node.head, ...node.rows].map((row) => row.map(inline).join("|")).join(";")}</table>`;
    case "rule":
      return "<hr>";
  }
}

const show = (text: string): string => parseMarkdown(text).map(block).join("");

test("paragraphs, headings, rules and line breaks", () => {
  assert.equal(show("# Title #\n\none\ntwo\n\n---\n\nthree"), "<h1>Title</h1><p>one<br>two</p><hr><p>three</p>");
});

test("emphasis, code and what only looks like them", () => {
  assert.equal(show("**bold *and* it**, __u__, ~~no~~"), "<p><strong>bold <emphasis>and</emphasis> it</strong>, <strong>u</strong>, <deleted>no</deleted></p>");
  assert.equal(show("snake_case_name and 2 * 3 * 4"), "<p>snake_case_name and 2 * 3 * 4</p>");
  assert.equal(show("`a *b*` and ``c`d``"), "<p><code>a *b*</code> and <code>c`d</code></p>");
  assert.equal(show("\\*not\\* **open"), "<p>*not* **open</p>");
});

test("lists, nested lists and their numbers", () => {
  assert.equal(show("- a\n- b\n  - c\n\ntext"), "<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c</p></li></list></li></list><p>text</p>");
  assert.equal(show("3. a\n4. b"), "<ol 3><li><p>a</p></li><li><p>b</p></li></list>");
  assert.equal(show("1. a\n\n2. b"), "<ol 1><li><p>a</p></li><li><p>b</p></li></list>");
});

test("code blocks keep their text, also while they are being written", () => {
  assert.equal(show("```js\nlet a = '**';\n```\nend"), "<pre js>let a = '**';</pre><p>end</p>");
  assert.equal(show("```\n<script>"), "<pre ><script></pre>");
});

test("quotes and tables", () => {
  assert.equal(show("> a\n> - b"), "<quote><p>a</p><ul><li><p>b</p></li></list></quote>");
  assert.equal(show("|a|b|\n|-|-|\n|1|**2**|\n|3|"), "<table>a|b;1|<strong>2</strong>;3|</table>");
});

test("HTML is text", () => {
  assert.equal(show('<img src=x onerror="a()"><b>x</b>'), '<p><img src=x onerror="a()"><b>x</b></p>');
});

test("links lead to the web and to mail, and nowhere else", () => {
  assert.equal(inline(parseInline("[a](https://x.example/(b)) <mailto:x>")), "<link https://x.example/(b)>a</link> <mailto:x>");
  assert.equal(inline(parseInline("see https://x.example/a?b=1.")), "see <link https://x.example/a?b=1>https://x.example/a?b=1</link>.");
  assert.equal(inline(parseInline("![pic](https://x.example/p.png)")), "<link https://x.example/p.png>pic</link>");
  for (const address of ["javascript:alert(1)", "JaVaScRiPt:alert(1)", "data:text/html,x", "//x.example", "/a", "java\tscript:a", "\u0001javascript:a", "https:x"]) {
    assert.equal(safeAddress(address), null, address);
    assert.equal(parseInline(`[a](${address})`).some((node) => node.kind === "link"), false, address);
  }
});

test("texts made to be slow are read in time", () => {
  for (const piece of ["*", "**a", "[", "[a](", "`", "> ", "- ", "_a", "|", "![", "~~", "1. ", "#", "h", "http://"]) {
    const began = performance.now();
    parseMarkdown(piece.repeat(20_000));
    parseMarkdown(`${piece}\n`.repeat(5_000));
    assert.ok(performance.now() - began < 5_000, `${JSON.stringify(piece)} took ${performance.now() - began} ms`);
  }
});
