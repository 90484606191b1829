/** A conversation as a reader sees it: messages, tools and handoffs, made out of the record. */

import type { Entry, Json, JsonObject } from "../api/types";
import { asText, type Attachment, contentText, handoffTarget, isObject, itemAttachments, itemText, itemType, otherParts } from "./items";

interface Base {
  key: string;
  /** The position of its first entry in the record; null while the run goes on. */
  position: number | null;
  agent: string | null;
  turn: number;
  time: number | null;
}

export interface UserPart extends Base {
  kind: "user";
  text: string;
  attachments: Attachment[];
  /** The images and files in the form in which they are sent again. */
  others: Json[];
}
export interface AgentPart extends Base {
  kind: "agent";
  text: string;
  streaming: boolean;
}
export interface ReasoningPart extends Base {
  kind: "reasoning";
  text: string;
  streaming: boolean;
}
export interface ToolPart extends Base {
  kind: "tool";
  tool: string;
  callId: string;
  arguments: string;
  output: string | null;
  failed: boolean;
  seconds: number | null;
  progress: string | null;
  /** Events of agents inside the call, as one line each. */
  inner: string[];
}
export interface HandoffPart extends Base {
  kind: "handoff";
  from: string;
  to: string;
  tool: string;
  callId: string;
  payload: Json;
  status: string;
  reason: string | null;
  carried: number | null;
  of: number | null;
}
export interface RefusedPart extends Base {
  kind: "refused";
  guardrail: string;
  on: string;
  text: string;
}
export interface NotePart extends Base {
  kind: "note";
  level: "info" | "error";
  /** The name of a text of the page, or empty if `text` is all there is. */
  label: string;
  text: string;
}
export interface OtherPart extends Base {
  kind: "other";
  type: string;
  content: JsonObject;
}

export type Part = UserPart | AgentPart | ReasoningPart | ToolPart | HandoffPart | RefusedPart | NotePart | OtherPart;

/** Finds the agent that a tool of an agent hands the conversation to. */
export type HandoffLookup = (agent: string | null, tool: string) => string | null;

/** Makes the parts of a stretch of the record. */
export function partsOfEntries(entries: readonly Entry[], handoffTo: HandoffLookup): Part[] {
  const parts: Part[] = [];
  const calls = new Map<string, ToolPart | HandoffPart>();
  for (const entry of entries) {
    const base: Base = {
      key: `e${entry.position}`,
      position: entry.position,
      agent: entry.agent,
      turn: entry.turn,
      time: entry.time,
    };
    const item = isObject(entry.content) ? entry.content : {};
    if (entry.kind === "refused") {
      parts.push({
        ...base,
        kind: "refused",
        guardrail: asText(item.guardrail),
        on: asText(item.on),
        text: asText(item.message) || asText(item.info),
      });
      continue;
    }
    switch (itemType(item)) {
      case "message":
        if (item.role === "user") {
          parts.push({ ...base, kind: "user", text: itemText(item), attachments: itemAttachments(item), others: otherParts(item) });
        } else {
          parts.push({ ...base, kind: "agent", text: itemText(item), streaming: false });
        }
        break;
      case "reasoning": {
        const text = itemText(item);
        if (text) parts.push({ ...base, kind: "reasoning", text, streaming: false });
        break;
      }
      case "function_call": {
        const part = callPart(base, item, handoffTo);
        calls.set(part.callId, part);
        parts.push(part);
        break;
      }
      case "function_call_output":
        answerCall(calls.get(asText(item.call_id)), contentText(item.output));
        break;
      default:
        parts.push({ ...base, kind: "other", type: itemType(item) || entry.kind, content: item });
    }
  }
  return parts;
}

function callPart(base: Base, item: JsonObject, handoffTo: HandoffLookup): ToolPart | HandoffPart {
  const tool = asText(item.name);
  const callId = asText(item.call_id);
  const written = asText(item.arguments);
  const to = handoffTo(base.agent, tool);
  if (to !== null) {
    return {
      ...base, kind: "handoff", from: base.agent ?? "", to, tool, callId, payload: payloadOf(written),
      status: "waiting", reason: null, carried: null, of: null,
    };
  }
  return { ...base, kind: "tool", tool, callId, arguments: written, output: null, failed: false, seconds: null, progress: null, inner: [] };
}

function answerCall(part: ToolPart | HandoffPart | undefined, output: string): void {
  if (!part) return;
  if (part.kind === "tool") {
    part.output = output;
    return;
  }
  const target = handoffTarget(output);
  part.status = target === null ? "refused" : "taken";
  if (target !== null) part.to = target;
  else part.reason = output;
}

/** The payload of a handoff; null where the model sent nothing. */
export function payloadOf(written: string): Json {
  if (written.trim() === "") return null;
  try {
    const value = JSON.parse(written) as Json;
    return isObject(value) && Object.keys(value).length === 0 ? null : value;
  } catch {
    return written;
  }
}

/** The part as one line of text, to compare conversations by. */
export function partText(part: Part): string {
  switch (part.kind) {
    case "user":
      return `user\n${part.text}`;
    case "agent":
    case "reasoning":
      return `${part.kind} ${part.agent ?? ""}\n${part.text}`;
    case "tool":
      return `tool ${part.tool}\n${part.arguments}\n${part.output ?? ""}`;
    case "handoff":
      return `handoff ${part.from} ${part.to} ${part.status}\n${JSON.stringify(part.payload)}`;
    case "refused":
      return `refused ${part.guardrail} ${part.on}`;
    case "note":
      return `note ${part.label} ${part.text}`;
    case "other":
      return JSON.stringify(part.content);
  }
}

/** The number of parts at the beginning that two conversations have in common. */
export function commonParts(left: readonly Part[], right: readonly Part[]): number {
  let count = 0;
  while (count < left.length && count < right.length && partText(left[count]!) === partText(right[count]!)) count += 1;
  return count;
}
