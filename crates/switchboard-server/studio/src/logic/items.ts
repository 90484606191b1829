/** Readers for items of OpenAI's Responses, of which any field may be absent or of another type. */

import type { Json, JsonObject } from "../api/types";

export function asText(value: Json | undefined): string {
  return typeof value === "string" ? value : "";
}

export function isObject(value: Json | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** A file or an image in a message. */
export interface Attachment {
  kind: "image" | "file";
  name: string;
  /** The content as a `data:` address, if the item has it. Other addresses are not loaded. */
  data: string | null;
}

export function itemType(item: JsonObject): string {
  return asText(item.type) || (item.role !== undefined ? "message" : "");
}

/** The text of a message, or of the output of a tool. */
export function itemText(item: JsonObject): string {
  const content = item.content ?? item.output ?? item.summary;
  return contentText(content);
}

export function contentText(content: Json | undefined): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) return content === undefined || content === null ? "" : JSON.stringify(content);
  const texts: string[] = [];
  for (const part of content) {
    if (typeof part === "string") texts.push(part);
    else if (isObject(part)) texts.push(asText(part.text) || asText(part.refusal) || asText(part.transcript));
  }
  return texts.filter((text) => text !== "").join("\n");
}

export function itemAttachments(item: JsonObject): Attachment[] {
  if (!Array.isArray(item.content)) return [];
  const attachments: Attachment[] = [];
  for (const part of item.content) {
    if (!isObject(part)) continue;
    if (part.type === "input_image") {
      const address = asText(part.image_url);
      attachments.push({ kind: "image", name: address.startsWith("data:") ? "" : address, data: imageData(address) });
    } else if (part.type === "input_file") {
      attachments.push({ kind: "file", name: asText(part.filename) || asText(part.file_url), data: null });
    }
  }
  return attachments;
}

/** The parts of a message that are no text, as they were sent. */
export function otherParts(item: JsonObject): Json[] {
  return Array.isArray(item.content) ? item.content.filter((part) => isObject(part) && part.type !== "input_text") : [];
}

/** The address if it is an image in itself. SVG is left out, as it can hold more than a picture. */
function imageData(address: string): string | null {
  return /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(address) ? address : null;
}

/** A JSON text indented, or the text itself if it is not JSON. */
export function prettyJson(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

/** A JSON text as it is if it fits on a line, and otherwise indented. */
function shortJson(text: string): string {
  return text.length <= 60 ? text : prettyJson(text);
}

/** A value in one line. */
export function compactJson(value: Json | undefined): string {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value);
}

/** The agent that a handoff's output names, if the handoff was taken. */
export function handoffTarget(output: string): string | null {
  try {
    const value = JSON.parse(output) as Json;
    return isObject(value) && typeof value.assistant === "string" ? value.assistant : null;
  } catch {
    return null;
  }
}

/** A name for the kind of an item, and the text that stands for it. */
export interface ItemView {
  /** `user`, `assistant`, `system`, `call`, `output`, `reasoning` or the type. */
  role: string;
  title: string;
  text: string;
}

export function viewItem(item: JsonObject): ItemView {
  const type = itemType(item);
  if (type === "message") {
    const attachments = itemAttachments(item).map((file) => `[${file.kind}${file.name ? `: ${file.name}` : ""}]`);
    return { role: asText(item.role) || "message", title: "", text: [itemText(item), ...attachments].filter(Boolean).join("\n") };
  }
  if (type === "function_call") return { role: "call", title: asText(item.name), text: shortJson(asText(item.arguments)) };
  if (type === "function_call_output") return { role: "output", title: "", text: shortJson(contentText(item.output)) };
  if (type === "reasoning") return { role: "reasoning", title: "", text: itemText(item) };
  return { role: type || "item", title: "", text: JSON.stringify(item, null, 2) };
}
