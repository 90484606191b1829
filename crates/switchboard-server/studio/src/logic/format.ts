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

/** A time of day, with the date unless it is today. */
export function moment(time: number): string {
  const date = new Date(time);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday
    ? date.toLocaleTimeString(locale(), { hour: "2-digit", minute: "2-digit" })
    : date.toLocaleDateString(locale(), { day: "numeric", month: "short" });
}

export function fullMoment(time: number): string {
  return new Date(time).toLocaleString(locale());
}

/** A new identifier for a conversation: sorts by time and is easy to read. */
export function newConversationId(): string {
  const now = new Date();
  const two = (value: number): string => String(value).padStart(2, "0");
  const date = `${now.getFullYear()}-${two(now.getMonth() + 1)}-${two(now.getDate())}`;
  const random = crypto.getRandomValues(new Uint8Array(3));
  return `${date}-${[...random].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;
}
