/** Differences between two lists and between two texts. */

/** A step that turns the old list into the new one. */
export type Step<T> =
  | { kind: "same"; old: T; next: T }
  | { kind: "removed"; old: T }
  | { kind: "added"; next: T }
  | { kind: "changed"; old: T; next: T };

/** The largest number of cells of the table that finds the longest common subsequence. */
const MAX_CELLS = 4_000_000;

/**
 * Compares two lists. Entries with the same `identity` are the same entry; of those, ones with different `content` are
 * changed. A removed entry that is directly followed by an added one of the same `group` counts as changed as well.
 */
export function diffLists<T>(
  old: readonly T[],
  next: readonly T[],
  identity: (entry: T) => string,
  content: (entry: T) => string = identity,
  group: (entry: T) => string = () => "",
): Step<T>[] {
  const steps: Step<T>[] = [];
  for (const step of alignedSteps(old, next, identity)) {
    if (step.kind === "same" && content(step.old) !== content(step.next)) {
      steps.push({ kind: "changed", old: step.old, next: step.next });
    } else {
      steps.push(step);
    }
  }
  return pairReplacements(steps, group);
}

/** Joins runs of removed and added entries into changed ones, where their groups are the same and not empty. */
function pairReplacements<T>(steps: Step<T>[], group: (entry: T) => string): Step<T>[] {
  const paired: Step<T>[] = [];
  let at = 0;
  while (at < steps.length) {
    const removed: T[] = [];
    const added: T[] = [];
    let end = at;
    for (; end < steps.length; end += 1) {
      const step = steps[end]!;
      if (step.kind === "removed") removed.push(step.old);
      else if (step.kind === "added") added.push(step.next);
      else break;
    }
    if (end === at) {
      paired.push(steps[at]!);
      at += 1;
      continue;
    }
    let taken = 0;
    for (const old of removed) {
      const name = group(old);
      const match = name === "" ? -1 : added.findIndex((entry, index) => index >= taken && group(entry) === name);
      if (match < 0) {
        paired.push({ kind: "removed", old });
        continue;
      }
      for (; taken < match; taken += 1) paired.push({ kind: "added", next: added[taken]! });
      paired.push({ kind: "changed", old, next: added[match]! });
      taken = match + 1;
    }
    for (; taken < added.length; taken += 1) paired.push({ kind: "added", next: added[taken]! });
    at = end;
  }
  return paired;
}

/** Aligns two lists by their longest common subsequence. */
function alignedSteps<T>(old: readonly T[], next: readonly T[], identity: (entry: T) => string): Step<T>[] {
  const oldKeys = old.map(identity);
  const nextKeys = next.map(identity);
  let start = 0;
  while (start < old.length && start < next.length && oldKeys[start] === nextKeys[start]) start += 1;
  let oldEnd = old.length;
  let nextEnd = next.length;
  while (oldEnd > start && nextEnd > start && oldKeys[oldEnd - 1] === nextKeys[nextEnd - 1]) {
    oldEnd -= 1;
    nextEnd -= 1;
  }
  const steps: Step<T>[] = [];
  for (let at = 0; at < start; at += 1) steps.push({ kind: "same", old: old[at]!, next: next[at]! });
  const rows = oldEnd - start;
  const columns = nextEnd - start;
  if (rows * columns <= MAX_CELLS) {
    steps.push(...middleSteps(old, next, oldKeys, nextKeys, start, rows, columns));
  } else {
    // Too large for the table: everything between the common ends is replaced.
    for (let at = start; at < oldEnd; at += 1) steps.push({ kind: "removed", old: old[at]! });
    for (let at = start; at < nextEnd; at += 1) steps.push({ kind: "added", next: next[at]! });
  }
  for (let at = 0; oldEnd + at < old.length; at += 1) {
    steps.push({ kind: "same", old: old[oldEnd + at]!, next: next[nextEnd + at]! });
  }
  return steps;
}

function middleSteps<T>(
  old: readonly T[],
  next: readonly T[],
  oldKeys: readonly string[],
  nextKeys: readonly string[],
  start: number,
  rows: number,
  columns: number,
): Step<T>[] {
  const width = columns + 1;
  const lengths = new Uint32Array((rows + 1) * width);
  for (let row = rows - 1; row >= 0; row -= 1) {
    for (let column = columns - 1; column >= 0; column -= 1) {
      const cell = row * width + column;
      lengths[cell] =
        oldKeys[start + row] === nextKeys[start + column]
          ? lengths[cell + width + 1]! + 1
          : Math.max(lengths[cell + width]!, lengths[cell + 1]!);
    }
  }
  const steps: Step<T>[] = [];
  let row = 0;
  let column = 0;
  while (row < rows || column < columns) {
    const cell = row * width + column;
    if (row < rows && column < columns && oldKeys[start + row] === nextKeys[start + column]) {
      steps.push({ kind: "same", old: old[start + row]!, next: next[start + column]! });
      row += 1;
      column += 1;
    } else if (column >= columns || (row < rows && lengths[cell + width]! >= lengths[cell + 1]!)) {
      steps.push({ kind: "removed", old: old[start + row]! });
      row += 1;
    } else {
      steps.push({ kind: "added", next: next[start + column]! });
      column += 1;
    }
  }
  return steps;
}

/** A piece of a text that both sides have, or only one of them. */
export interface TextPiece {
  kind: "same" | "removed" | "added";
  text: string;
}

/** Compares two texts by words; characters of Chinese and Japanese count as words. */
export function diffTexts(old: string, next: string): TextPiece[] {
  const pieces: TextPiece[] = [];
  for (const step of alignedSteps(words(old), words(next), (word) => word)) {
    const [kind, text] =
      step.kind === "added" ? (["added", step.next] as const) : ([step.kind === "removed" ? "removed" : "same", step.old] as const);
    const last = pieces[pieces.length - 1];
    if (last?.kind === kind) last.text += text;
    else pieces.push({ kind, text });
  }
  return pieces;
}

/** Splits a text into words, spaces and single other characters. Joined they are the text again. */
export function words(text: string): string[] {
  return text.match(/[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}]|[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];
}
