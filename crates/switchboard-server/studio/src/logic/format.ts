/** Numbers and times as text. */

import { locale } from "../state/settings";

/** A count: 950, 1.2k, 34k. */
export function count(value: number): string {
  if (value < 1000) return String(value);
  if (value < 10_000) return `${(value / 1000).toFixed(1).replace(/\.0$/, "")}k`;
  if (value < 1_000_000) return `${Math.round(value / 1000)}k`;
  return `${(value / 1_000_000).toFixed(1).replace(/\.0$/, "")}M`;
}

/** A duration in seconds: 0.4 ms, 12 ms, 1.2 s, 3 min. */
export function duration(seconds: number | null): string {
  if (seconds === null) return "";
  const ms = seconds * 1000;
  if (ms < 10) return `${ms.toFixed(1).replace(/\.0$/, "")} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1).replace(/\.0$/, "")} s`;
  return `${Math.floor(seconds / 60)} min ${Math.round(seconds % 60)} s`;
}

/** A cost, in the currency of the team file's prices. */
export function cost(value: number): string {
  if (value === 0) return "0";
  return value >= 1 ? value.toFixed(2) : value.toPrecision(2);
}

const formats = new Map<string, Intl.DateTimeFormat>();

/** A format of the reader's language. Making one is slow, so each is made once. */
function format(name: string, options: Intl.DateTimeFormatOptions): Intl.DateTimeFormat {
  const key = `${locale()} ${name}`;
  let made = formats.get(key);
  if (!made) {
    made = new Intl.DateTimeFormat(locale(), options);
    formats.set(key, made);
  }
  return made;
}

/** A time of day, with the date unless it is today. */
export function moment(time: number): string {
  const isToday = new Date(time).toDateString() === new Date().toDateString();
  return isToday
    ? format("time", { hour: "2-digit", minute: "2-digit" }).format(time)
    : format("day", { day: "numeric", month: "short" }).format(time);
}

export function fullMoment(time: number): string {
  return format("full", { dateStyle: "medium", timeStyle: "medium" }).format(time);
}

/** A new identifier for a conversation: sorts by time and is easy to read. */
export function newConversationId(): string {
  const now = new Date();
  const two = (value: number): string => String(value).padStart(2, "0");
  const date = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  const random = crypto.getRandomValues(new Uint8Array(3));
  return `${date}-${[...random].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
