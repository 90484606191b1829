/** Calls that wait for a decision, and people who are asked for an answer: always in sight. */

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import type { Waiting, WaitingConversation } from "../api/types";
import { fullMoment } from "../logic/format";
import { asText, isObject } from "../logic/items";
import { AgentName, Button, Code } from "../parts/basics";
import { Icon } from "../parts/icons";
import { OpenConversation } from "../state/conversation";
import { openConversation, type Route } from "../state/router";
import { server } from "../state/server";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";

/** The strip under the bar: what waits in any conversation but the open one. */
export function WaitingStrip({ place }: { place: Route }): VNode | null {
  const t = useTexts();
  const waiting = useStore(server, (value) => value.waiting);
  const [open, setOpen] = useState(false);
  const shownHere = place.view === "talk" ? place.id : null;
  const elsewhere = waiting.filter((entry) => entry.conversation !== shownHere);
  const isEmpty = elsewhere.length === 0;
  // It is closed by what comes next: another place, or nothing that waits.
  useEffect(() => setOpen(false), [place, isEmpty]);
  if (isEmpty) return null;
  const calls = elsewhere.reduce((sum, entry) => sum + entry.calls.length, 0);
  const unreadable = elsewhere.filter((entry) => entry.error !== null).length;
  const counts = [...(calls > 0 ? [t.waitingCount(calls)] : []), ...(unreadable > 0 ? [t.unreadableCount(unreadable)] : [])];
  return (
    <section class="waiting-strip" aria-label={t.waitingElsewhere} onKeyDown={(event) => event.key === "Escape" && setOpen(false)}>
      <button type="button" class="waiting-summary" aria-expanded={open} onClick={() => setOpen(!open)} data-test="waiting-open">
        <span class="pulse" aria-hidden="true" />
        <strong>{counts.join(" · ")}</strong>
        <span class="waiting-names">{elsewhere.slice(0, 4).map((entry) => entry.title || entry.conversation).join(" · ")}</span>
        <Icon name="down" />
      </button>
      {open && (
        <div class="waiting-list">
          {elsewhere.map((entry) => (
            <WaitingElsewhere key={entry.conversation} entry={entry} onDone={() => setOpen(false)} />
          ))}
        </div>
      )}
    </section>
  );
}

function WaitingElsewhere({ entry, onDone }: { entry: WaitingConversation; onDone: () => void }): VNode {
  const t = useTexts();
  return (
    <article class="waiting-entry">
      <header>
        <button
          type="button"
          class="link"
          data-test="waiting-conversation"
          onClick={() => {
            openConversation(entry.conversation);
            onDone();
          }}
        >
          {entry.title || entry.conversation}
        </button>
        <span class="quiet-text">{t.since(fullMoment(entry.since))}</span>
      </header>
      {entry.error !== null && <p class="problem">{entry.error}</p>}
      <WaitingCalls calls={entry.calls} conversation={entry.conversation} />
    </article>
  );
}

/** The calls that wait in a conversation, each with its arguments and a place for words. */
export function WaitingCalls({ calls, conversation }: { calls: Waiting[]; conversation: OpenConversation | string }): VNode | null {
  const t = useTexts();
  if (calls.length === 0) return null;
  const target = (): OpenConversation => (typeof conversation === "string" ? OpenConversation.forOneRun(conversation) : conversation);
  return (
    <div class="waiting-calls" role="group" aria-label={t.waiting}>
      {calls.map((call) =>
        call.kind === "person" ? (
          <PersonCard key={call.call_id || call.agent} call={call} target={target} />
        ) : (
          <ApprovalCard key={call.call_id} call={call} target={target} />
        ),
      )}
    </div>
  );
}

function ApprovalCard({ call, target }: { call: Waiting; target: () => OpenConversation }): VNode {
  const t = useTexts();
  const [words, setWords] = useState("");
  const decide = (approve: boolean, always: boolean): void =>
    target().decide([{ call_id: call.call_id, approve, always, ...(words.trim() ? { message: words.trim() } : {}) }]);
  const to = isObject(call.details ?? undefined) ? asText(call.details!.to) : "";
  return (
    <article class="waiting-card" data-test="approval">
      <header>
        <AgentName name={call.agent} />
        <span>{to ? t.wantsToHandTo : t.wantsToRun}</span>
        {to ? <AgentName name={to} /> : <code>{call.tool}</code>}
      </header>
      <Code value={call.arguments || "{}"} label={t.arguments} />
      <label class="words">
        <span class="screen-reader">{t.words}</span>
        <input type="text" placeholder={t.words} value={words} onInput={(event) => setWords(event.currentTarget.value)} data-test="words" />
      </label>
      <div class="waiting-actions">
        <Button kind="primary" icon="check" label={t.approve} onClick={() => decide(true, false)} testId="approve" />
        <Button label={t.approveAlways} onClick={() => decide(true, true)} testId="approve-always" />
        <span class="spring" />
        <Button kind="danger" label={t.reject} onClick={() => decide(false, false)} testId="reject" />
        <Button kind="quiet" label={t.rejectAlways} onClick={() => decide(false, true)} testId="reject-always" />
      </div>
    </article>
  );
}

function PersonCard({ call, target }: { call: Waiting; target: () => OpenConversation }): VNode {
  const t = useTexts();
  const [text, setText] = useState("");
  const [note, setNote] = useState("");
  const [to, setTo] = useState("");
  const details = isObject(call.details ?? undefined) ? call.details! : {};
  const agents = Array.isArray(details.may_hand_to) ? details.may_hand_to.map((name) => asText(name)) : [];
  const problem = asText(details.problem);
  const answer = (handOn: boolean): void =>
    target().answer({
      person: call.agent,
      ...(text.trim() ? { text: text.trim() } : {}),
      ...(note.trim() && handOn ? { note: note.trim() } : {}),
      ...(handOn ? (to === "" ? { hand_back: true } : { hand_to: to }) : {}),
    });
  return (
    <article class="waiting-card person" data-test="person">
      <header>
        <Icon name="person" />
        <AgentName name={call.agent} />
        <span>{t.isAsked(asText(details.from))}</span>
      </header>
      {problem && <p class="problem">{problem}</p>}
      {call.arguments && call.arguments !== "{}" && <Code value={call.arguments} label={t.payload} />}
      <label class="words">
        <span class="screen-reader">{t.answerAs(call.agent)}</span>
        <textarea rows={2} placeholder={t.answerAs(call.agent)} value={text} onInput={(event) => setText(event.currentTarget.value)} data-test="person-text" />
      </label>
      <div class="waiting-actions">
        <Button kind="primary" label={t.answer} disabled={text.trim() === ""} onClick={() => answer(false)} testId="person-answer" />
        <span class="spring" />
        {agents.length > 0 && (
          <>
            <input type="text" aria-label={t.noteForNext} placeholder={t.noteForNext} value={note} onInput={(event) => setNote(event.currentTarget.value)} />
            <select aria-label={t.handTo} value={to} onChange={(event) => setTo(event.currentTarget.value)} data-test="person-to">
              <option value="">{t.handBackTo(asText(details.from))}</option>
              {agents.map((name) => (
                <option key={name} value={name}>
                  {name}
                </option>
              ))}
            </select>
            <Button icon="arrow" label={t.handTo} onClick={() => answer(true)} testId="person-hand" />
          </>
        )}
      </div>
    </article>
  );
}
