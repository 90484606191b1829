/** The part of a conversation that a run is making: its events, put together as they come. */

import type { Json, JsonObject, RunEvent, Waiting } from "../api/types";
import { asText, compactJson, isObject, itemAttachments, itemText, otherParts } from "./items";
import type { AgentPart, HandoffPart, Part, ReasoningPart, ToolPart } from "./transcript";

export type LiveStatus = "running" | "completed" | "waiting" | "stopped" | "failed";

/** The state of a run under way. `apply` changes it; a view reads it after each event. */
export class LiveRun {
  parts: Part[] = [];
  agent: string | null = null;
  turn = 0;
  status: LiveStatus = "running";
  /** A request to a model is being repeated. */
  retry: string | null = null;
  error: string | null = null;
  waiting: Waiting[] = [];
  /** A sentence for screen readers, about the last thing that has happened. */
  announcement: { kind: "message" | "handoff"; agent: string; text: string } | null = null;

  private readonly streams = new Map<string, AgentPart | ReasoningPart>();
  private readonly calls = new Map<string, ToolPart>();
  private serial = 0;

  constructor(readonly run: string) {}

  /** Shows the user's message before the service has stored it. */
  showInput(input: string | JsonObject[]): void {
    const items: JsonObject[] = typeof input === "string" ? [{ role: "user", content: input }] : input;
    for (const item of items) {
      this.parts.push({ ...this.base(null), kind: "user", text: itemText(item), attachments: itemAttachments(item), others: otherParts(item) });
    }
  }

  private base(agent: string | null): { key: string; position: null; agent: string | null; turn: number; time: number } {
    this.serial += 1;
    return { key: `${this.run}.${this.serial}`, position: null, agent, turn: this.turn, time: Date.now() };
  }

  apply(event: RunEvent): void {
    if (event.type !== "inner") {
      this.turn = event.turn;
      if (event.agent) this.agent = event.agent;
    }
    switch (event.type) {
      case "text_delta":
      case "reasoning_delta":
        this.delta(event);
        break;
      case "item":
        this.item(event);
        break;
      case "tool_started":
        this.call(event);
        break;
      case "tool_progress":
        this.call(event).progress = compactJson(event.progress);
        break;
      case "tool_ended": {
        const part = this.call(event);
        part.output = compactJson(event.output);
        part.failed = event.failed === true;
        part.seconds = typeof event.seconds === "number" ? event.seconds : null;
        part.progress = null;
        break;
      }
      case "inner":
        this.inner(event);
        break;
      case "handoff":
        this.handoff(event);
        break;
      case "guardrail":
        this.guardrail(event);
        break;
      case "model_retry":
        this.retry = asText(event.reason);
        break;
      case "turn_started":
      case "usage":
        this.retry = null;
        break;
      case "events_dropped":
        this.note("info", "eventsDropped", "");
        break;
      case "compaction_failed":
        this.note("info", "compactionFailed", asText(event.reason));
        break;
      case "run_finished":
        this.end("completed");
        break;
      case "run_interrupted":
        this.waiting = waitingOf(event.interruptions);
        this.end("waiting");
        break;
      case "run_stopped":
        this.note("info", "stopped", "");
        this.end("stopped");
        break;
      case "run_failed":
        this.error = asText(event.message);
        this.note("error", "failed", this.error);
        this.end("failed");
        break;
    }
  }

  private delta(event: RunEvent): void {
    const kind = event.type === "text_delta" ? "agent" : "reasoning";
    const key = `${kind}/${event.turn}/${asText(event.item)}`;
    const known = this.streams.get(key);
    const part: AgentPart | ReasoningPart = known ?? { ...this.base(event.agent), kind, text: "", streaming: true };
    if (!known) {
      this.streams.set(key, part);
      this.parts.push(part);
    }
    part.text += asText(event.text);
    this.retry = null;
  }

  /** A whole item: the text of a message ends its stream. */
  private item(event: RunEvent): void {
    if (event.name === "message_output_created") {
      const text = asText(event.text) || rawText(event.item);
      const open = [...this.streams.values()].find((part) => part.kind === "agent" && part.streaming);
      if (open) {
        open.streaming = false;
        if (text) open.text = text;
      } else if (text) {
        this.parts.push({ ...this.base(event.agent), kind: "agent", text, streaming: false });
      }
      this.announcement = { kind: "message", agent: event.agent, text };
    } else if (event.name === "reasoning_item_created") {
      for (const part of this.streams.values()) if (part.kind === "reasoning") part.streaming = false;
    }
  }

  private call(event: RunEvent): ToolPart {
    const callId = asText(event.call_id);
    let part = this.calls.get(callId);
    if (!part) {
      part = {
        ...this.base(event.agent), kind: "tool", tool: asText(event.tool), callId, arguments: compactJson(event.arguments),
        output: null, failed: false, seconds: null, progress: null, inner: [],
      };
      this.calls.set(callId, part);
      this.parts.push(part);
    }
    return part;
  }

  private inner(event: RunEvent): void {
    const inside = event.event;
    if (!isObject(inside)) return;
    const part = this.call({ ...event, arguments: null });
    const agent = asText(inside.agent);
    if (inside.type === "tool_started") part.inner.push(`${agent}: ${asText(inside.tool)}(${compactJson(inside.arguments)})`);
    else if (inside.type === "handoff") part.inner.push(`${asText(inside.from)} → ${asText(inside.to)} (${asText(inside.status)})`);
    else if (inside.type === "item" && inside.name === "message_output_created") part.inner.push(`${agent}: ${asText(inside.text)}`);
  }

  private handoff(event: RunEvent): void {
    const part: HandoffPart = {
      ...this.base(event.agent), kind: "handoff", from: asText(event.from), to: asText(event.to), tool: asText(event.tool),
      callId: asText(event.call_id), payload: emptyToNull(event.payload), status: asText(event.status),
      reason: asText(event.reason) || null, carried: numberOrNull(event.carried_items), of: numberOrNull(event.of_items),
    };
    this.parts.push(part);
    if (part.status === "taken") this.agent = part.to;
    this.announcement = { kind: "handoff", agent: part.from, text: part.to };
  }

  private guardrail(event: RunEvent): void {
    const result = isObject(event.result) ? event.result : {};
    const outcome = asText(result.outcome);
    if (outcome === "" || outcome === "allowed") return;
    this.parts.push({
      ...this.base(asText(result.agent) || null), kind: "refused", guardrail: asText(result.guardrail), on: asText(event.on),
      text: compactJson(result.info) || asText(result.replaced_by),
    });
  }

  private note(level: "info" | "error", label: string, text: string): void {
    this.parts.push({ ...this.base(null), kind: "note", level, label, text });
  }

  private end(status: LiveStatus): void {
    this.status = status;
    this.retry = null;
    for (const part of this.streams.values()) part.streaming = false;
  }
}

function rawText(item: Json | undefined): string {
  return isObject(item) && isObject(item.raw_item) ? itemText(item.raw_item) : "";
}

function emptyToNull(value: Json | undefined): Json {
  return value === undefined || (isObject(value) && Object.keys(value).length === 0) ? null : value;
}

function numberOrNull(value: Json | undefined): number | null {
  return typeof value === "number" ? value : null;
}

/** The calls of an interruption event, in the form of the API. */
function waitingOf(value: Json | undefined): Waiting[] {
  if (!Array.isArray(value)) return [];
  return value.filter(isObject).map((entry) => {
    const [kind, details] = isObject(entry.kind) ? (Object.entries(entry.kind)[0] ?? ["tool", null]) : [asText(entry.kind), null];
    return {
      kind: kind as Waiting["kind"],
      details: isObject(details) ? details : null,
      agent: asText(entry.agent),
      tool: asText(entry.tool),
      call_id: asText(entry.call_id),
      arguments: asText(entry.arguments),
    };
  });
}
