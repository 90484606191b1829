/**
 * A parser for the part of Markdown that models write. It makes a tree of known nodes and never HTML; `parts/markdown.tsx`
 * turns the tree into elements. Each step consumes its input, so that any text is read in linear time but for emphasis,
 * which is bounded by the length of a paragraph that is looked at.
 */

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "strong" | "emphasis" | "deleted"; content: Inline[] }
  | { kind: "link"; href: string; content: Inline[] }
  | { kind: "break" };

export type Block =
  | { kind: "paragraph"; content: Inline[] }
  | { kind: "heading"; level: number; content: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "quote"; content: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: Block[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

/** Quotes and lists inside each other beyond this depth are shown as text. */
const MAX_DEPTH = 8;
/** The longest stretch in which the end of an emphasis is searched. */
const MAX_SPAN = 2000;

/** Parses a text. */
export function parseMarkdown(text: string): Block[] {
  return parseBlocks(text.replace(/\r\n?/g, "\n").split("\n"), 0);
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([^\s`]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const BULLET = /^( {0,3})([-*+])(\s+|$)(.*)$/;
const NUMBER = /^( {0,3})(\d{1,9})[.)](\s+|$)(.*)$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const DELIMITER_ROW = /^\s*\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;

function parseBlocks(lines: string[], depth: number): Block[] {
  const blocks: Block[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at]!;
    if (line.trim() === "") {
      at += 1;
      continue;
    }
    const fence = FENCE.exec(line);
    if (fence) {
      const [block, next] = fencedCode(lines, at, fence[1]!, fence[2]!);
      blocks.push(block);
      at = next;
      continue;
    }
    const heading = HEADING.exec(line);
    if (heading) {
      blocks.push({ kind: "heading", level: heading[1]!.length, content: parseInline(heading[2]!) });
      at += 1;
      continue;
    }
    if (RULE.test(line)) {
      blocks.push({ kind: "rule" });
      at += 1;
      continue;
    }
    if (depth < MAX_DEPTH && QUOTE.test(line)) {
      const inner: string[] = [];
      for (; at < lines.length; at += 1) {
        const quoted = QUOTE.exec(lines[at]!);
        if (!quoted) break;
        inner.push(quoted[1]!);
      }
      blocks.push({ kind: "quote", content: parseBlocks(inner, depth + 1) });
      continue;
    }
    if (depth < MAX_DEPTH && (BULLET.test(line) || NUMBER.test(line))) {
      const [block, next] = list(lines, at, depth);
      blocks.push(block);
      at = next;
      continue;
    }
    if (line.includes("|") && at + 1 < lines.length && lines[at + 1]!.includes("-") && DELIMITER_ROW.test(lines[at + 1]!)) {
      const [block, next] = table(lines, at);
      blocks.push(block);
      at = next;
      continue;
    }
    const paragraph = [line];
    for (at += 1; at < lines.length && !interruptsParagraph(lines[at]!); at += 1) paragraph.push(lines[at]!);
    blocks.push({ kind: "paragraph", content: parseInline(paragraph.map((row) => row.trimStart()).join("\n")) });
  }
  return blocks;
}

function interruptsParagraph(line: string): boolean {
  return (
    line.trim() === "" ||
    FENCE.test(line) ||
    HEADING.test(line) ||
    RULE.test(line) ||
    QUOTE.test(line) ||
    /^ {0,3}([-*+]|1[.)])\s+\S/.test(line)
  );
}

/** A block of code. One without an end goes on to the end of the text, as while it is being written. */
function fencedCode(lines: string[], start: number, mark: string, language: string): [Block, number] {
  const text: string[] = [];
  let at = start + 1;
  for (; at < lines.length; at += 1) {
    const line = lines[at]!.trim();
    if (line.length >= mark.length && line.startsWith(mark) && line === mark[0]!.repeat(line.length)) {
      at += 1;
      break;
    }
    text.push(lines[at]!);
  }
  return [{ kind: "code", language, text: text.join("\n") }, at];
}

function list(lines: string[], start: number, depth: number): [Block, number] {
  const ordered = !BULLET.test(lines[start]!);
  const marker = ordered ? NUMBER : BULLET;
  const items: Block[][] = [];
  const first = ordered ? Number(NUMBER.exec(lines[start]!)![2]) : 1;
  let at = start;
  while (at < lines.length) {
    const match = marker.exec(lines[at]!);
    if (!match || RULE.test(lines[at]!)) break;
    const indent = match[1]!.length + match[2]!.length + (ordered ? 1 : 0) + 1;
    const inner = [match[4]!];
    at += 1;
    for (; at < lines.length; at += 1) {
      const line = lines[at]!;
      if (line.trim() === "") {
        const next = lines[at + 1];
        if (next === undefined || (leadingSpaces(next) < 2 && !marker.test(next))) break;
        inner.push("");
        continue;
      }
      const spaces = leadingSpaces(line);
      if (spaces >= Math.min(indent, 2)) inner.push(line.slice(Math.min(spaces, indent)));
      else if (BULLET.test(line) || NUMBER.test(line) || interruptsParagraph(line)) break;
      else if (inner[inner.length - 1] === "") break;
      else inner.push(line);
    }
    while (inner[inner.length - 1] === "") inner.pop();
    items.push(parseBlocks(inner, depth + 1));
    while (at < lines.length && lines[at]!.trim() === "" && marker.test(lines[at + 1] ?? "")) at += 1;
  }
  return [{ kind: "list", ordered, start: first, items }, at];
}

function leadingSpaces(line: string): number {
  return line.length - line.trimStart().length;
}

function table(lines: string[], start: number): [Block, number] {
  const head = cells(lines[start]!);
  const rows: Inline[][][] = [];
  let at = start + 2;
  for (; at < lines.length && lines[at]!.includes("|") && lines[at]!.trim() !== ""; at += 1) {
    const row = cells(lines[at]!).slice(0, head.length);
    while (row.length < head.length) row.push("");
    rows.push(row.map(parseInline));
  }
  return [{ kind: "table", head: head.map(parseInline), rows }, at];
}

function cells(line: string): string[] {
  const inner = line.trim().replace(/^\|/, "").replace(/\|$/, "");
  return inner.split("|").map((cell) => cell.trim());
}

/** Parses the text of a paragraph. */
export function parseInline(text: string): Inline[] {
  return inline(text, 0);
}

function inline(text: string, depth: number): Inline[] {
  const nodes: Inline[] = [];
  let plain = "";
  const flush = (): void => {
    if (plain !== "") nodes.push({ kind: "text", text: plain });
    plain = "";
  };
  let at = 0;
  while (at < text.length) {
    const found = depth < MAX_DEPTH ? span(text, at, depth) : null;
    if (found) {
      flush();
      nodes.push(found[0]);
      at = found[1];
      continue;
    }
    const char = text[at]!;
    if (char === "\\" && /[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) {
      plain += text[at + 1]!;
      at += 2;
    } else if (char === "\n") {
      flush();
      nodes.push({ kind: "break" });
      at += 1;
    } else {
      // A run of the same mark is one piece: what is not the beginning of a span is text as a whole.
      let end = at + 1;
      if ("*_~`".includes(char)) while (text[end] === char) end += 1;
      plain += text.slice(at, end);
      at = end;
    }
  }
  flush();
  return nodes;
}

/** The span that begins at a position, with the position after it. */
function span(text: string, at: number, depth: number): [Inline, number] | null {
  switch (text[at]) {
    case "`":
      return codeSpan(text, at);
    case "*":
    case "_":
      return (
        delimited(text, at, text[at]!.repeat(2), depth, "strong") ?? delimited(text, at, text[at]!, depth, "emphasis")
      );
    case "~":
      return delimited(text, at, "~~", depth, "deleted");
    case "!":
      // An image is a link: nothing is loaded from elsewhere.
      return text[at + 1] === "[" ? link(text, at + 1, depth) : null;
    case "[":
      return link(text, at, depth);
    case "h":
      return bareLink(text, at);
    default:
      return null;
  }
}

function codeSpan(text: string, at: number): [Inline, number] | null {
  let length = 1;
  while (text[at + length] === "`") length += 1;
  const mark = "`".repeat(length);
  let end = text.indexOf(mark, at + length);
  while (end >= 0 && text[end + length] === "`") {
    while (text[end] === "`") end += 1;
    end = text.indexOf(mark, end);
  }
  if (end < 0 || end - at > MAX_SPAN) return null;
  const code = text.slice(at + length, end).replace(/\n/g, " ");
  const trimmed = /^ .*[^ ].* $/.test(code) ? code.slice(1, -1) : code;
  return [{ kind: "code", text: trimmed }, end + length];
}

function delimited(
  text: string,
  at: number,
  mark: string,
  depth: number,
  kind: "strong" | "emphasis" | "deleted",
): [Inline, number] | null {
  if (!text.startsWith(mark, at)) return null;
  const start = at + mark.length;
  const isWord = (char: string | undefined): boolean => char !== undefined && /[\p{L}\p{N}]/u.test(char);
  if (text[start] === undefined || /\s/.test(text[start]!)) return null;
  if (mark === "_" || mark === "__") if (isWord(text[at - 1])) return null;
  const limit = Math.min(text.length, start + MAX_SPAN);
  for (let end = text.indexOf(mark, start + 1); end >= 0 && end < limit; end = text.indexOf(mark, end + 1)) {
    if (/\s/.test(text[end - 1]!) || text[end - 1] === "\\") continue;
    if (mark.length === 1 && (text[end + 1] === mark || text[end - 1] === mark)) continue;
    if (mark[0] === "_" && isWord(text[end + mark.length])) continue;
    return [{ kind, content: inline(text.slice(start, end), depth + 1) }, end + mark.length];
  }
  return null;
}

const LINK = /^\[((?:[^[\]\\]|\\.){0,1000})\]\(\s*<?([^\s()<>]{1,2000}(?:\([^\s()<>]{0,200}\))?[^\s()<>]{0,200})>?(?:\s+(?:"[^"]{0,200}"|'[^']{0,200}'))?\s*\)/;

function link(text: string, at: number, depth: number): [Inline, number] | null {
  const match = LINK.exec(text.slice(at, at + 4000));
  if (!match) return null;
  const content = inline(match[1]!, depth + 1);
  const end = at + match[0].length;
  const href = safeAddress(match[2]!);
  // An address that is not safe is shown, and leads nowhere.
  if (!href) return [{ kind: "text", text: match[0] }, end];
  return [{ kind: "link", href, content }, end];
}

const BARE_LINK = /^https?:\/\/[^\s<>"'`{}|\\^]{1,2000}/;

function bareLink(text: string, at: number): [Inline, number] | null {
  if (!text.startsWith("http", at) || /[\p{L}\p{N}]/u.test(text[at - 1] ?? " ")) return null;
  const match = BARE_LINK.exec(text.slice(at, at + 2100));
  if (!match) return null;
  const address = match[0].replace(/[.,;:!?)\]*_~，。；：！？）】]+$/u, "");
  const href = safeAddress(address);
  if (!href) return null;
  return [{ kind: "link", href, content: [{ kind: "text", text: address }] }, at + address.length];
}

/** The address if it may be a link: of the web or of mail, and nothing that runs. */
export function safeAddress(address: string): string | null {
  if (/[\u0000-\u0020\u007f-\u009f]/.test(address)) return null;
  return /^(https?:\/\/[^/]|mailto:[^/])/i.test(address) ? address : null;
}
