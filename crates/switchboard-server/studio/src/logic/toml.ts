/** Tokens of TOML, for the colours of the editor. It colours what it knows and never fails. */

export interface Token {
  kind: "plain" | "comment" | "header" | "key" | "string" | "number" | "keyword";
  text: string;
}

/** Splits a text into tokens. Joined they are the text again. */
export function tomlTokens(text: string): Token[] {
  const tokens: Token[] = [];
  const push = (kind: Token["kind"], piece: string): void => {
    if (piece === "") return;
    const last = tokens[tokens.length - 1];
    if (last?.kind === kind) last.text += piece;
    else tokens.push({ kind, text: piece });
  };
  let at = 0;
  let isLineStart = true;
  while (at < text.length) {
    const rest = text.slice(at, at + 400);
    const char = text[at]!;
    if (char === "\n") {
      push("plain", char);
      at += 1;
      isLineStart = true;
      continue;
    }
    if (char === "#") {
      const end = lineEnd(text, at);
      push("comment", text.slice(at, end));
      at = end;
      continue;
    }
    if (isLineStart && char === "[") {
      const end = lineEnd(text, at);
      const line = text.slice(at, end);
      const header = /^\[\[?[^\]\n]*\]?\]?/.exec(line)![0];
      push("header", header);
      at += header.length;
      isLineStart = false;
      continue;
    }
    const string = stringEnd(text, at);
    if (string !== null) {
      const isKey = /^\s*=/.test(text.slice(string, string + 40));
      push(isKey ? "key" : "string", text.slice(at, string));
      at = string;
      isLineStart = false;
      continue;
    }
    const word = /^[A-Za-z0-9_.+:-]+/.exec(rest);
    if (word) {
      const piece = word[0];
      const isKey = /^\s*=/.test(text.slice(at + piece.length, at + piece.length + 40));
      push(isKey ? "key" : /^(true|false)$/.test(piece) ? "keyword" : /^[+-]?\d/.test(piece) ? "number" : "plain", piece);
      at += piece.length;
      isLineStart = false;
      continue;
    }
    push("plain", char);
    if (!/\s/.test(char)) isLineStart = false;
    at += 1;
  }
  return tokens;
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf("\n", at);
  return end < 0 ? text.length : end;
}

/** The end of the string that begins at a position; one without an end goes to the end of its line, or of the text. */
function stringEnd(text: string, at: number): number | null {
  const quote = text[at];
  if (quote !== '"' && quote !== "'") return null;
  const triple = quote.repeat(3);
  if (text.startsWith(triple, at)) {
    const end = text.indexOf(triple, at + 3);
    return end < 0 ? text.length : end + 3;
  }
  for (let next = at + 1; next < text.length; next += 1) {
    if (text[next] === "\n") return next;
    if (text[next] === "\\" && quote === '"') next += 1;
    else if (text[next] === quote) return next + 1;
  }
  return text.length;
}

/** The line and the column of an offset, both from 1; columns in characters. */
export function lineAndColumn(text: string, offset: number): { line: number; column: number } {
  const before = text.slice(0, offset);
  const start = before.lastIndexOf("\n") + 1;
  let line = 1;
  for (let at = before.indexOf("\n"); at >= 0; at = before.indexOf("\n", at + 1)) line += 1;
  return { line, column: [...before.slice(start)].length + 1 };
}

/** The offset of a line and a column. */
export function offsetOf(text: string, line: number, column: number): number {
  let start = 0;
  for (let at = 1; at < line; at += 1) {
    const end = text.indexOf("\n", start);
    if (end < 0) return text.length;
    start = end + 1;
  }
  const end = lineEnd(text, start);
  const characters = [...text.slice(start, end)].slice(0, Math.max(0, column - 1));
  return start + characters.join("").length;
}
