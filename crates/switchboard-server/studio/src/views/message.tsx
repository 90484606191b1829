/** One part of a conversation: a message, a tool, a handoff. */

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { ContentPart, MessageInput } from "../api/types";
import { duration, fullMoment, moment } from "../logic/format";
import { compactJson, prettyJson } from "../logic/items";
import type { HandoffPart, Part, ToolPart, UserPart } from "../logic/transcript";
import { agentClass, AgentName, Button, Code } from "../parts/basics";
import { Icon } from "../parts/icons";
import { Markdown } from "../parts/markdown";
import { memo } from "../parts/memo";
import type { OpenConversation } from "../state/conversation";
import { useTexts } from "../state/settings";

interface Props {
  part: Part;
  previous: Part | undefined;
  isLast: boolean;
  conversation: OpenConversation | null;
  onOpen: (() => void) | null;
}

export function PartView(props: Props): VNode {
  const { part } = props;
  switch (part.kind) {
    case "user":
      return <UserMessage part={part} conversation={props.conversation} />;
    case "agent":
      return <AgentMessage {...props} />;
    case "reasoning":
      return <Reasoning {...props} />;
    case "tool":
      return <ToolCall part={part} onOpen={props.onOpen} />;
    case "handoff":
      return <HandoffLine part={part} onOpen={props.onOpen} />;
    default:
      return <Remark part={part} />;
  }
}

function UserMessage({ part, conversation }: { part: UserPart; conversation: OpenConversation | null }): VNode {
  const t = useTexts();
  const [editing, setEditing] = useState<string | null>(null);
  const canResend = conversation !== null && part.position !== null && !conversation.isRunning;
  return (
    <article class="part user" aria-label={t.you}>
      <div class="part-head">
        <span class="speaker">{t.you}</span>
        {part.time && <time class="part-time" title={fullMoment(part.time)}>{moment(part.time)}</time>}
        {canResend && editing === null && (
          <span class="part-actions">
            <Button icon="retry" iconOnly kind="quiet" label={t.retry} testId="retry" onClick={() => conversation.resend(part.position!, undefined, true)} />
            <Button icon="edit" iconOnly kind="quiet" label={t.edit} testId="edit" onClick={() => setEditing(part.text)} />
          </span>
        )}
      </div>
      {editing === null ? (
        <div class="user-text">{part.text}</div>
      ) : (
        <form
          class="edit"
          onSubmit={(event) => {
            event.preventDefault();
            setEditing(null);
            conversation!.resend(part.position!, editedInput(part, editing), true);
          }}
        >
          <textarea
            aria-label={t.edit}
            rows={Math.min(8, editing.split("\n").length + 1)}
            value={editing}
            data-test="edit-text"
            autofocus
            onInput={(event) => setEditing(event.currentTarget.value)}
            onKeyDown={(event) => event.key === "Escape" && setEditing(null)}
          />
          <div class="edit-actions">
            <Button label={t.cancel} onClick={() => setEditing(null)} />
            <Button
              icon="fork"
              label={t.resendInCopy}
              testId="resend-copy"
              onClick={() => {
                setEditing(null);
                conversation!.resend(part.position!, editedInput(part, editing), false);
              }}
            />
            <button type="submit" class="button primary" data-test="resend">
              {t.resend}
            </button>
          </div>
        </form>
      )}
      {part.attachments.length > 0 && (
        <ul class="attachments">
          {part.attachments.map((file, index) => (
            <li key={index}>
              {file.data ? <img src={file.data} alt={t.attachedImage} /> : <span class="chip"><Icon name={file.kind === "image" ? "file" : "clip"} />{file.name}</span>}
            </li>
          ))}
        </ul>
      )}
    </article>
  );
}

/** The message with another text. Its images and files stay. */
function editedInput(part: UserPart, text: string): MessageInput {
  if (part.others.length === 0) return text;
  return [{ role: "user", content: [{ type: "input_text", text }, ...(part.others as ContentPart[])] }];
}

function AgentMessage({ part, previous, onOpen }: Props): VNode | null {
  const t = useTexts();
  if (part.kind !== "agent") return null;
  const continues = previous?.kind === "agent" && previous.agent === part.agent;
  return (
    <article class={`part agent ${agentClass(part.agent)} ${continues ? "continues" : ""}`} aria-label={part.agent ?? t.agent}>
      {!continues && (
        <div class="part-head">
          {part.agent && <AgentName name={part.agent} />}
          {part.time && <time class="part-time" title={fullMoment(part.time)}>{moment(part.time)}</time>}
          {onOpen && (
            <span class="part-actions">
              <Button icon="timeline" iconOnly kind="quiet" label={t.why} onClick={onOpen} testId="why" />
            </span>
          )}
        </div>
      )}
      <MessageText text={part.text} streaming={part.streaming} />
    </article>
  );
}

const MessageText = memo(({ text, streaming }: { text: string; streaming: boolean }): VNode => (
  <div class={`message-text ${streaming ? "streaming" : ""}`}>
    <Markdown text={text} />
  </div>
));

function Reasoning({ part }: Props): VNode | null {
  const t = useTexts();
  if (part.kind !== "reasoning") return null;
  return (
    <details class={`part reasoning ${agentClass(part.agent)}`}>
      <summary>{t.reasoning}</summary>
      <p>{part.text}</p>
    </details>
  );
}

function ToolCall({ part, onOpen }: { part: ToolPart; onOpen: (() => void) | null }): VNode {
  const t = useTexts();
  const state = part.output === null ? "pending" : part.failed ? "failed" : "done";
  return (
    <details class={`part tool ${agentClass(part.agent)} ${state}`}>
      <summary>
        <Icon name="tool" />
        <code class="tool-name">{part.tool}</code>
        <span class="tool-args">{oneLine(part.arguments)}</span>
        {part.output !== null && <span class="tool-out">{oneLine(part.output)}</span>}
        {state === "failed" && <span class="badge bad">{t.failed}</span>}
        {part.progress && <span class="badge running">{part.progress}</span>}
        {part.seconds !== null && <span class="tool-time">{duration(part.seconds)}</span>}
      </summary>
      <div class="tool-body">
        <h4>{t.arguments}</h4>
        <Code value={part.arguments || "{}"} label={t.arguments} />
        {part.inner.length > 0 && (
          <ol class="inner">
            {part.inner.map((line, index) => (
              <li key={index}>{line}</li>
            ))}
          </ol>
        )}
        {part.output !== null && (
          <>
            <h4>{t.output}</h4>
            <Code value={part.output} label={t.output} />
          </>
        )}
        {onOpen && <Button icon="timeline" label={t.openInTimeline} onClick={onOpen} />}
      </div>
    </details>
  );
}

function oneLine(text: string): string {
  const line = text.replace(/\s+/g, " ").trim();
  return line === "{}" ? "" : line.length > 160 ? `${line.slice(0, 160)}…` : line;
}

function HandoffLine({ part, onOpen }: { part: HandoffPart; onOpen: (() => void) | null }): VNode {
  const t = useTexts();
  const isTaken = part.status === "taken" || part.status === "fanned_out";
  const payload = compactJson(part.payload);
  return (
    <article class={`part handoff ${isTaken ? "taken" : "refused"}`} aria-label={t.handsTo(part.from, part.to)}>
      <div class="handoff-line">
        <AgentName name={part.from} />
        <span class="handoff-arrow">
          <Icon name={isTaken ? "arrow" : "close"} />
        </span>
        <AgentName name={part.to} />
        {!isTaken && <span class="badge bad">{t.handoffStatus(part.status)}</span>}
        {part.carried !== null && part.of !== null && part.carried !== part.of && (
          <span class="quiet-text">{t.carried(part.carried, part.of)}</span>
        )}
        {onOpen && <Button icon="timeline" label={t.why} kind="quiet" onClick={onOpen} testId="why-handoff" />}
      </div>
      {part.reason && <p class="handoff-reason">{part.reason}</p>}
      {payload !== "" && (
        <details class="handoff-payload">
          <summary>
            <span class="quiet-text">{t.payload}</span> {oneLine(payload)}
          </summary>
          <pre tabIndex={0}>{prettyJson(payload)}</pre>
        </details>
      )}
    </article>
  );
}

function Remark({ part }: { part: Part }): VNode | null {
  const t = useTexts();
  if (part.kind === "refused") {
    return (
      <div class="part remark bad">
        <Icon name="shield" />
        <span>
          {t.guardrailSaid(part.guardrail, part.on)}
          {part.text && <span class="quiet-text"> {part.text}</span>}
        </span>
      </div>
    );
  }
  if (part.kind === "note") {
    const label = (t.notes as Record<string, string>)[part.label] ?? "";
    return (
      <div class={`part remark ${part.level === "error" ? "bad" : ""}`}>
        <Icon name={part.level === "error" ? "warning" : "clock"} />
        <span>{[label, part.text].filter(Boolean).join(": ")}</span>
      </div>
    );
  }
  if (part.kind === "other") {
    return (
      <details class="part tool">
        <summary>
          <Icon name="file" />
          <code>{part.type}</code>
        </summary>
        <Code value={part.content} label={part.type} />
      </details>
    );
  }
  return null;
}
