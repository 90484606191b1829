/** A field for code: a text area over a coloured copy of its text, with line numbers, marked problems and completions. */

import type { VNode } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import type { Completion, Problem } from "../api/types";
import { lineAndColumn, offsetOf, tomlTokens } from "../logic/toml";
import { useTexts } from "../state/settings";

interface Props {
  text: string;
  problems: Problem[];
  isReadOnly: boolean;
  isToml: boolean;
  field: { current: HTMLTextAreaElement | null };
  onChange: (text: string) => void;
  onSave: () => void;
  complete: (text: string, line: number, column: number) => Promise<{ start_column: number; items: Completion[] }>;
}

interface Offered {
  from: number;
  to: number;
  items: Completion[];
  selected: number;
  line: number;
  column: number;
}

/** The size of a line and of a character, as in `styles/file.css`. */
const LINE = 20;

export function Editor(props: Props): VNode {
  const t = useTexts();
  const { text, problems, field } = props;
  const [offered, setOffered] = useState<Offered | null>(null);
  const request = useRef(0);
  const timer = useRef(0);
  const lines = useMemo(() => text.split("\n").length, [text]);
  const tokens = useMemo(() => (props.isToml ? tomlTokens(text) : [{ kind: "plain" as const, text }]), [text, props.isToml]);
  const worst = useMemo(() => {
    const found = new Map<number, Problem>();
    for (const problem of problems) if (problem.line !== null && (!found.has(problem.line) || problem.severity === "error")) found.set(problem.line, problem);
    return found;
  }, [problems]);

  const ask = async (isExplicit: boolean): Promise<void> => {
    const element = field.current!;
    const offset = element.selectionStart;
    const { line, column } = lineAndColumn(element.value, offset);
    request.current += 1;
    const mine = request.current;
    try {
      const answer = await props.complete(element.value, line, column);
      if (mine !== request.current || element.selectionStart !== offset) return;
      const from = offsetOf(element.value, line, answer.start_column);
      const typed = element.value.slice(from, offset);
      const isDone = answer.items.length === 1 && answer.items[0]!.insert === typed;
      if (answer.items.length === 0 || isDone || (!isExplicit && typed === "")) setOffered(null);
      else setOffered({ from, to: offset, items: answer.items.slice(0, 50), selected: 0, line, column: answer.start_column });
    } catch {
      setOffered(null);
    }
  };
  const take = (completion: Completion): void => {
    const element = field.current!;
    element.setRangeText(completion.insert, offered!.from, offered!.to, "end");
    setOffered(null);
    props.onChange(element.value);
    element.focus({ preventScroll: true });
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if ((event.ctrlKey || event.metaKey) && event.key === "s") {
      event.preventDefault();
      props.onSave();
      return;
    }
    if ((event.ctrlKey || event.metaKey) && event.key === " ") {
      event.preventDefault();
      void ask(true);
      return;
    }
    if (!offered) return;
    const count = offered.items.length;
    if (event.key === "ArrowDown") setOffered({ ...offered, selected: (offered.selected + 1) % count });
    else if (event.key === "ArrowUp") setOffered({ ...offered, selected: (offered.selected - 1 + count) % count });
    else if (event.key === "Enter" || event.key === "Tab") take(offered.items[offered.selected]!);
    else if (event.key === "Escape") setOffered(null);
    else return;
    event.preventDefault();
  };
  return (
    <div class="editor">
      <div class="editor-inner">
        <ol class="line-numbers" aria-hidden="true">
          {Array.from({ length: lines }, (_, index) => {
            const problem = worst.get(index + 1);
            return (
              <li key={index} class={problem?.severity ?? ""} title={problem?.message}>
                {index + 1}
              </li>
            );
          })}
        </ol>
        <div class="editor-text">
          <pre class="marks" aria-hidden="true">
            {problems.map((problem, index) => (
              <Mark key={index} text={text} problem={problem} />
            ))}
          </pre>
          <pre class="colours" aria-hidden="true">
            {tokens.map((token, index) => (token.kind === "plain" ? token.text : <span key={index} class={`t-${token.kind}`}>{token.text}</span>))}
            {"\n"}
          </pre>
          <textarea
            ref={(element) => {
              field.current = element;
            }}
            id="editor"
            spellcheck={false}
            autocomplete="off"
            autocapitalize="off"
            wrap="off"
            readOnly={props.isReadOnly}
            aria-label={t.teamFile}
            aria-describedby="editor-help"
            aria-autocomplete="list"
            aria-controls={offered ? "completions" : undefined}
            value={text}
            onInput={(event) => {
              props.onChange(event.currentTarget.value);
              clearTimeout(timer.current);
              timer.current = window.setTimeout(() => void ask(false), 120);
            }}
            onKeyDown={onKeyDown}
            onBlur={() => setTimeout(() => setOffered(null), 150)}
            onClick={() => setOffered(null)}
          />
          {offered && (
            <ul
              id="completions"
              class="completions"
              role="listbox"
              aria-label={t.completions}
              data-test="completions"
              style={{ top: `${offered.line * LINE + 6}px`, left: `calc(${offered.column - 1}ch + 8px)` }}
            >
              {offered.items.map((item, index) => (
                <li
                  key={item.label}
                  role="option"
                  aria-selected={index === offered.selected}
                  onPointerDown={(event) => {
                    event.preventDefault();
                    take(item);
                  }}
                >
                  <code>{item.label}</code>
                  {item.detail && <span class="quiet-text">{item.detail}</span>}
                  {index === offered.selected && item.documentation && <p>{item.documentation}</p>}
                </li>
              ))}
            </ul>
          )}
        </div>
      </div>
      <p id="editor-help" class="screen-reader">{t.editorHelp}</p>
    </div>
  );
}

/** A wavy line under the place of a problem: spaces and line ends bring it there. */
function Mark({ text, problem }: { text: string; problem: Problem }): VNode | null {
  if (problem.line === null) return null;
  const from = offsetOf(text, problem.line, problem.column ?? 1);
  const lineEnd = offsetOf(text, problem.line, 100_000);
  const to = problem.end_line === problem.line ? offsetOf(text, problem.line, problem.end_column ?? 1) : lineEnd;
  const lineStart = offsetOf(text, problem.line, 1);
  return (
    <span class="mark-line" style={{ top: `${(problem.line - 1) * LINE}px` }}>
      {text.slice(lineStart, from)}
      <span class={`squiggle ${problem.severity}`}>{text.slice(from, Math.max(to, from + 1)) || " "}</span>
    </span>
  );
}
