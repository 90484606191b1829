/** An open conversation: its head, its messages, what waits in it, and the field for the next message. */

import type { VNode } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { api, errorText } from "../api/client";
import type { JsonObject, MessageInput } from "../api/types";
import { fullMoment, newConversationId } from "../logic/format";
import { forkPoint, turnAt } from "../logic/path";
import type { Part } from "../logic/transcript";
import { AgentName, Button, Dialog, ErrorBar, Menu } from "../parts/basics";
import { VirtualList, type VirtualListHandle } from "../parts/virtual_list";
import type { OpenConversation } from "../state/conversation";
import { refreshList } from "../state/conversations";
import { go, openConversation } from "../state/router";
import { currentTeam, server } from "../state/server";
import { texts, useTexts } from "../state/settings";
import { useStore } from "../state/store";
import { Composer } from "./composer";
import { PartView } from "./message";
import { Ribbon } from "./ribbon";
import { emptyStart, StartForm, type StartChoice } from "./start_form";
import { WaitingCalls } from "./waiting";

interface Props {
  conversation: OpenConversation;
  isNew: boolean;
  at: number | null;
  onTravel: (turn: number | null) => void;
  onOpenRow: (run: string, row: number) => void;
}

export function ChatPane({ conversation, isNew, at, onTravel, onOpenRow }: Props): VNode {
  const t = useTexts();
  useStore(conversation.changed);
  const [start, setStart] = useState<StartChoice>(emptyStart);
  // Before the form is shown: a choice that is made at once must not be taken back.
  useLayoutEffect(() => setStart(emptyStart()), [conversation.id]);
  if (!isNew && conversation.missing && !conversation.live) {
    return (
      <div class="chat">
        <p class="empty">{t.noSuchConversation(conversation.id)}</p>
      </div>
    );
  }
  const send = (input: MessageInput): void => {
    if (at !== null) void sendFromThePast(conversation, at, input);
    else if (isNew || conversation.missing) conversation.send(input, startOf(start));
    else conversation.send(input);
  };
  const isEmpty = isNew && !conversation.live;
  return (
    <section class="chat" aria-label={t.conversation}>
      {!isEmpty && <Head conversation={conversation} at={at} />}
      {!isEmpty && <Ribbon conversation={conversation} at={at} onTravel={onTravel} />}
      {at !== null && <TravelBar conversation={conversation} at={at} onNow={() => onTravel(null)} />}
      {isEmpty ? <StartForm choice={start} onChange={setStart} /> : <Parts conversation={conversation} at={at} onOpenRow={onOpenRow} />}
      <ErrorBar text={conversation.error} onClose={() => conversation.fail("")} />
      {at === null && <WaitingCalls calls={conversation.waiting} conversation={conversation} />}
      <Composer conversation={conversation} onSend={send} placeholder={at === null ? null : t.writeFromHere} isNew={isNew} start={startOf(start)} />
      <Announcer conversation={conversation} />
    </section>
  );
}

function startOf(choice: StartChoice): { team?: string; agent?: string; context?: JsonObject } {
  const team = currentTeam()?.name;
  return {
    ...(team ? { team } : {}),
    ...(choice.agent ? { agent: choice.agent } : {}),
    ...(Object.keys(choice.context).length > 0 ? { context: choice.context } : {}),
  };
}

/** Copies the conversation up to the turn that is shown, and sends the message to the copy. */
async function sendFromThePast(conversation: OpenConversation, at: number, input: MessageInput): Promise<void> {
  const copy = await fork(conversation, at);
  if (copy === null) return;
  const connection = new AbortController();
  try {
    await api.send(copy, { input }, connection.signal);
  } catch (error) {
    conversation.fail(errorText(error));
    return;
  }
  // The run goes on without this connection; the view of the copy attaches to it.
  connection.abort();
  openConversation(copy);
}

/** Copies the conversation up to a turn. Returns the identifier of the copy. */
async function fork(conversation: OpenConversation, at: number | null): Promise<string | null> {
  const point = at === null ? { before: null } : forkPoint(conversation.turns, at);
  const to = `${conversation.id.slice(0, 150)} ${texts().copyOf} ${newConversationId().slice(-4)}`;
  try {
    await api.fork(conversation.id, to, point.before);
    void refreshList();
    return to;
  } catch (error) {
    conversation.fail(errorText(error));
    return null;
  }
}

function Head({ conversation, at }: { conversation: OpenConversation; at: number | null }): VNode {
  const t = useTexts();
  const [caseText, setCaseText] = useState<string | null>(null);
  const [deleting, setDeleting] = useState(false);
  const head = conversation.head;
  const agent = conversation.agent;
  const download = async (format: string, extension: string): Promise<void> => {
    const blob = await api.exported(conversation.id, format);
    const link = document.createElement("a");
    link.href = URL.createObjectURL(blob);
    link.download = `${conversation.id.replace(/[^\p{L}\p{N}._-]+/gu, "-")}.${extension}`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  };
  const context = Object.entries(head?.context ?? {});
  return (
    <header class="chat-head">
      <div class="chat-title">
        <h1 title={conversation.id}>{head?.title || conversation.id}</h1>
        <p>
          {agent && <AgentName name={agent} />}
          <span class="quiet-text">{t.hasIt}</span>
          {context.map(([path, value]) => (
            <span class="chip" key={path}>
              {path} = {typeof value === "string" ? value : JSON.stringify(value)}
            </span>
          ))}
          {head?.forked_from && (
            <button type="button" class="link" onClick={() => openConversation(head.forked_from!.conversation)}>
              {t.forkedFrom(head.forked_from.conversation)}
            </button>
          )}
        </p>
      </div>
      <div class="chat-actions">
        <Button
          icon="fork"
          iconOnly
          kind="quiet"
          label={t.fork}
          testId="fork"
          onClick={async () => {
            const copy = await fork(conversation, at);
            if (copy !== null) openConversation(copy);
          }}
        />
        <Button
          icon="compare"
          iconOnly
          kind="quiet"
          label={t.compare}
          testId="compare"
          onClick={() => go({ view: "compare", left: conversation.id, right: head?.forked_from?.conversation ?? null })}
        />
        <Menu
          label={t.exportAndMore}
          icon="more"
          testId="more"
          items={[
            { label: t.exportJson, icon: "download", testId: "export-json", onClick: () => void download("json", "json") },
            { label: t.exportTrace, icon: "download", testId: "export-trace", onClick: () => void download("trace", "jsonl") },
            { label: t.exportMarkdown, icon: "download", testId: "export-markdown", onClick: () => void download("markdown", "md") },
            {
              label: t.saveAsTest,
              icon: "check",
              testId: "export-case",
              onClick: () => void api.exported(conversation.id, "case").then(async (blob) => setCaseText(await blob.text())),
            },
            { label: t.delete, icon: "trash", danger: true, testId: "delete", onClick: () => setDeleting(true) },
          ]}
        />
      </div>
      {caseText !== null && <CaseDialog text={caseText} onClose={() => setCaseText(null)} onDownload={() => void download("case", "toml")} />}
      {deleting && (
        <Dialog title={t.deleteTitle} onClose={() => setDeleting(false)}>
          <p>{t.deleteText(head?.title || conversation.id)}</p>
          <div class="dialog-actions">
            <Button label={t.cancel} onClick={() => setDeleting(false)} />
            <Button
              kind="danger"
              label={t.delete}
              testId="delete-yes"
              onClick={async () => {
                setDeleting(false);
                await api.remove(conversation.id);
                await refreshList();
                openConversation(null);
              }}
            />
          </div>
        </Dialog>
      )}
    </header>
  );
}

function CaseDialog({ text, onClose, onDownload }: { text: string; onClose: () => void; onDownload: () => void }): VNode {
  const t = useTexts();
  const [copied, setCopied] = useState(false);
  return (
    <Dialog title={t.saveAsTest} onClose={onClose}>
      <p>{t.caseText}</p>
      <pre class="case" tabIndex={0} aria-label={t.saveAsTest} data-test="case-text">
        {text}
      </pre>
      <div class="dialog-actions">
        <Button icon="download" label={t.download} onClick={onDownload} />
        <Button
          icon={copied ? "check" : "copy"}
          kind="primary"
          label={copied ? t.copied : t.copy}
          onClick={() => void navigator.clipboard?.writeText(text).then(() => setCopied(true))}
        />
      </div>
    </Dialog>
  );
}

/** Tells that the conversation is shown as it was at an earlier turn. */
function TravelBar({ conversation, at, onNow }: { conversation: OpenConversation; at: number; onNow: () => void }): VNode {
  const t = useTexts();
  const turn = conversation.turns[at];
  const point = forkPoint(conversation.turns, at);
  return (
    <div class="travel-bar" role="status">
      <span>
        {t.lookingAt(at + 1, conversation.turns.length)}
        {turn && <span class="quiet-text"> {fullMoment(turn.time)}</span>}
      </span>
      <Button
        icon="fork"
        label={point.isBefore ? t.forkBefore : t.forkHere}
        testId="fork-here"
        onClick={async () => {
          const copy = await fork(conversation, at);
          if (copy !== null) openConversation(copy);
        }}
      />
      <Button label={t.backToNow} onClick={onNow} testId="now" />
    </div>
  );
}

function Parts({ conversation, at, onOpenRow }: { conversation: OpenConversation; at: number | null; onOpenRow: (run: string, row: number) => void }): VNode {
  const t = useTexts();
  const handle = useRef<VirtualListHandle | null>(null);
  const graph = useStore(server, (value) => value.graphs[conversation.team ?? ""]);
  const end = at === null ? null : (conversation.turns[at]?.end ?? 0);
  const all = conversation.parts;
  const parts = useMemo(
    () => (end === null ? all : all.filter((part) => part.position !== null && part.position < end)),
    [all, end, graph],
  );
  const first = at === null ? undefined : conversation.turns[at]?.position;
  useEffect(() => {
    if (at === null) return;
    void conversation.loadOlder(first).then(() => handle.current?.scrollToEnd());
  }, [at, conversation, first]);
  if (parts.length === 0 && !conversation.loading && !conversation.isRunning) return <p class="empty">{t.nothingSaid}</p>;
  const isLast = (row: number): boolean => row === parts.length - 1;
  return (
    <VirtualList
      key={conversation.id}
      class="parts"
      label={t.messages}
      count={parts.length}
      rowKey={(row) => parts[row]!.key}
      estimate={72}
      followEnd
      handle={handle}
      onNearStart={() => void (conversation.more && at === null && conversation.loadOlder())}
      render={(row) => (
        <PartView
          part={parts[row]!}
          previous={parts[row - 1]}
          isLast={isLast(row)}
          conversation={conversation}
          onOpen={openerOf(conversation, parts[row]!, onOpenRow)}
        />
      )}
      footer={<Thinking conversation={conversation} at={at} />}
    />
  );
}

/** The line under the messages while an agent is at work and says nothing. */
function Thinking({ conversation, at }: { conversation: OpenConversation; at: number | null }): VNode | null {
  const t = useTexts();
  const live = conversation.live;
  if (at !== null || !live || live.status !== "running") return null;
  const last = live.parts[live.parts.length - 1];
  if (last?.kind === "agent" && last.streaming) return null;
  return (
    <p class="thinking">
      {live.agent && <AgentName name={live.agent} />}
      <span class="dots" aria-hidden="true" />
      <span class="quiet-text">{live.retry === null ? t.working : t.retrying(live.retry)}</span>
    </p>
  );
}

/** A function that opens the row of the timeline which belongs to a part, if there is one. */
function openerOf(conversation: OpenConversation, part: Part, onOpenRow: (run: string, row: number) => void): (() => void) | null {
  if (part.position === null) return null;
  const index = turnAt(conversation.turns, part.position);
  const turn = conversation.turns[index];
  if (!turn?.recording) return null;
  const run = turn.recording;
  const find = (): number | null => {
    const rows = conversation.recordings.get(run)?.rows ?? [];
    const ofTurn = rows.filter((row) => row.turn === turn.turn || turn.turn === 0);
    const wanted =
      part.kind === "handoff"
        ? ofTurn.filter((row) => row.kind === "handoff" && row.name.includes(part.to))
        : part.kind === "tool"
          ? ofTurn.filter((row) => row.kind === "tool" && row.name === part.tool)
          : ofTurn.filter((row) => row.kind === "model");
    return (wanted[0] ?? rows.find((row) => row.turn === turn.turn))?.id ?? null;
  };
  return () => {
    const open = (): void => {
      const row = find();
      if (row !== null) onOpenRow(run, row);
    };
    if (conversation.recordings.get(run)?.loaded) open();
    else void conversation.loadRows(run).then(open);
  };
}

/** Reads out whole messages and handoffs, and not each piece of a stream. */
function Announcer({ conversation }: { conversation: OpenConversation }): VNode {
  const t = useTexts();
  const said = conversation.live?.announcement ?? null;
  const text = said === null ? "" : said.kind === "handoff" ? t.handsTo(said.agent, said.text) : `${said.agent}: ${said.text}`;
  return (
    <div class="screen-reader" aria-live="polite">
      {text}
    </div>
  );
}
