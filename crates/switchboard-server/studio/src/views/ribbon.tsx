/** The whole of a conversation at a glance: a mark for each turn, in the colour of its agent. It is also the slider of time travel. */

import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import { cost, count, duration } from "../logic/format";
import { stretches } from "../logic/path";
import { agentClass, Button } from "../parts/basics";
import type { OpenConversation } from "../state/conversation";
import { useTexts } from "../state/settings";

/** The largest number of marks; more turns are joined. */
const MOST_MARKS = 240;

export function Ribbon(props: { conversation: OpenConversation; at: number | null; onTravel: (turn: number | null) => void }): VNode | null {
  const t = useTexts();
  const { conversation, at, onTravel } = props;
  const { turns } = conversation;
  const bar = useRef<HTMLDivElement>(null);
  if (turns.length === 0) return null;
  const last = turns.length - 1;
  const current = at ?? last;
  const marks = stretches(turns.length, MOST_MARKS);

  const move = (turn: number): void => onTravel(turn >= last ? null : Math.max(0, turn));
  const onKeyDown = (event: KeyboardEvent): void => {
    const big = Math.max(1, Math.round(turns.length / 10));
    const steps: Record<string, number> = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1, PageDown: -big, PageUp: big };
    const step = steps[event.key];
    if (step !== undefined) move(current + step);
    else if (event.key === "Home") move(0);
    else if (event.key === "End") move(last);
    else return;
    event.preventDefault();
  };
  const pick = (event: PointerEvent): void => {
    const box = bar.current!.getBoundingClientRect();
    const share = (event.clientX - box.left) / Math.max(1, box.width);
    move(Math.max(0, Math.min(last, Math.floor(share * turns.length))));
  };
  const turn = turns[current]!;
  const valueText = `${t.turnOf(current + 1, turns.length)}: ${turn.agent ?? t.you}${turn.handoff ? ` → ${turn.handoff.to}` : ""} ${turn.text}`;

  return (
    <div class="ribbon">
      <Button icon="back" iconOnly kind="quiet" label={t.earlier} disabled={current === 0} onClick={() => move(current - 1)} testId="earlier" />
      <div
        ref={bar}
        class="ribbon-bar"
        role="slider"
        tabIndex={0}
        aria-label={t.timeTravel}
        aria-valuemin={1}
        aria-valuemax={turns.length}
        aria-valuenow={current + 1}
        aria-valuetext={valueText}
        onKeyDown={onKeyDown}
        onPointerDown={(event) => {
          bar.current!.setPointerCapture(event.pointerId);
          pick(event);
        }}
        onPointerMove={(event) => event.buttons === 1 && pick(event)}
      >
        {marks.map(({ from, to }) => {
          const shown = turns[to]!;
          const isUser = shown.kind === "message" && from === to;
          return (
            <span
              key={from}
              class={`mark ${isUser ? "user" : agentClass(shown.agent)} ${from > current ? "later" : ""} ${
                current >= from && current <= to ? "current" : ""
              } ${shown.refused ? "refused" : ""} ${shown.handoff ? "handoff" : ""}`}
              title={`${shown.agent ?? t.you}${shown.handoff ? ` → ${shown.handoff.to}` : ""}\n${shown.text}`}
            />
          );
        })}
      </div>
      <Button icon="arrow" iconOnly kind="quiet" label={t.later} disabled={at === null} onClick={() => move(current + 1)} testId="later" />
      <Totals conversation={conversation} />
    </div>
  );
}

function Totals({ conversation }: { conversation: OpenConversation }): VNode {
  const t = useTexts();
  let tokens = 0;
  let price: number | null = null;
  let seconds = 0;
  for (const { recording } of conversation.recordings.values()) {
    if (recording.tokens) tokens += recording.tokens.input + recording.tokens.output;
    if (recording.cost !== null) price = (price ?? 0) + recording.cost;
    if (recording.ended !== null) seconds += (recording.ended - recording.started) / 1000;
  }
  const handoffs = conversation.turns.filter((turn) => turn.handoff !== null).length;
  const turns = conversation.turns.filter((turn) => turn.kind === "agent").length;
  const facts = [t.turns(turns), t.handoffs(handoffs)];
  if (tokens > 0) facts.push(t.tokens(count(tokens)));
  if (price !== null) facts.push(t.cost(cost(price)));
  if (seconds > 0) facts.push(duration(seconds));
  return <p class="totals">{facts.join(" · ")}</p>;
}
