/** Requests to the service. */

import type {
  AgentDetails, Completion, Conversation, Found, Graph, JsonObject, MessageInput, Problem, Recording, Row, RowDetails,
  Saved, StudioInfo, Summary, Team, TeamFile, Turn, WaitingConversation,
} from "./types";
import { readEvents, type ServerEvent } from "./sse";

/** A response that is no success. */
export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly problems: Problem[] = [],
  ) {
    super(message);
  }
}

const TOKEN_KEY = "switchboard.token";

let token = "";
let onUnauthorized = (): void => {};

/** Takes the token from the address, where the program has put it, or from an earlier visit of this tab. */
export function initToken(): void {
  const match = /^#token=([^&]+)$/.exec(location.hash);
  if (match) {
    setToken(decodeURIComponent(match[1]!));
    history.replaceState(null, "", `${location.pathname}#/`);
  } else {
    token = sessionStorage.getItem(TOKEN_KEY) ?? "";
  }
}

export function setToken(value: string): void {
  token = value.trim();
  sessionStorage.setItem(TOKEN_KEY, token);
}

export function currentToken(): string {
  return token;
}

/** Sets the function that is called when the service asks for a token. */
export function whenUnauthorized(callback: () => void): void {
  onUnauthorized = callback;
}

async function request(method: string, path: string, body?: unknown, init: RequestInit = {}): Promise<Response> {
  const headers = new Headers(init.headers);
  if (token) headers.set("authorization", `Bearer ${token}`);
  if (body !== undefined) headers.set("content-type", "application/json");
  const response = await fetch(path, {
    ...init,
    method,
    headers,
    body: body === undefined ? null : JSON.stringify(body),
    credentials: "omit",
  });
  if (response.ok) return response;
  if (response.status === 401) onUnauthorized();
  let message = `${response.status} ${response.statusText}`;
  let code = String(response.status);
  let problems: Problem[] = [];
  try {
    const answer = (await response.json()) as { error?: { message?: string; code?: string }; problems?: Problem[] };
    message = answer.error?.message ?? message;
    code = answer.error?.code ?? code;
    problems = answer.problems ?? [];
  } catch {
    // Not JSON: the status line has to do.
  }
  throw new ApiError(response.status, code, message, problems);
}

async function get<T>(path: string, init?: RequestInit): Promise<T> {
  return (await (await request("GET", path, undefined, init)).json()) as T;
}

async function post<T>(path: string, body?: unknown): Promise<T> {
  return (await (await request("POST", path, body)).json()) as T;
}

const part = encodeURIComponent;
const ofTeam = (team: string): string => `/api/teams/${part(team)}`;
const ofConversation = (id: string): string => `/api/conversations/${part(id)}`;
const ofRun = (run: string): string => `/api/runs/${part(run)}`;

function query(values: Record<string, string | number | null | undefined>): string {
  const pairs = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return pairs.length === 0 ? "" : `?${pairs.map(([name, value]) => `${name}=${part(String(value))}`).join("&")}`;
}

/** The stream of a run, with the identifiers that the response's headers have. */
export interface RunStream {
  run: string;
  conversation: string | null;
  events: AsyncIterable<ServerEvent>;
}

/** The number of attempts to get back to the events of a run. */
const RECONNECTS = 8;

async function stream(path: string, body: unknown, signal: AbortSignal): Promise<RunStream> {
  const response = await request("POST", path, body, { signal });
  const run = response.headers.get("x-run-id") ?? "";
  return { run, conversation: response.headers.get("x-conversation-id"), events: runEvents(run, response, signal) };
}

/** The events of a run. After a lost connection it goes on after the last event that was seen. */
async function* runEvents(run: string, first: Response | null, signal: AbortSignal): AsyncIterable<ServerEvent> {
  let last = "";
  let response = first;
  for (let attempt = 0; attempt <= RECONNECTS; attempt += 1) {
    try {
      const init: RequestInit = { signal, headers: last ? { "last-event-id": last } : {} };
      response ??= await request("GET", `${ofRun(run)}/events`, undefined, init);
      for await (const event of readEvents(response.body!)) {
        if (event.id) last = event.id;
        attempt = 0;
        yield event;
        if (/^run_(finished|interrupted|stopped|failed)$/.test(event.type)) return;
      }
    } catch (error) {
      if (signal.aborted || (error instanceof ApiError && error.status < 500)) throw error;
    }
    response = null;
    await new Promise((wake) => setTimeout(wake, Math.min(250 * 2 ** attempt, 4000)));
  }
  throw new ApiError(0, "unavailable", "the connection was lost");
}

export const api = {
  studio: () => get<StudioInfo>("/api/studio"),
  teams: () => get<{ teams: Team[] }>("/api/teams"),
  agent: (team: string, agent: string) => get<AgentDetails>(`${ofTeam(team)}/agents/${part(agent)}`),
  graph: (team: string) => get<Graph>(`${ofTeam(team)}/graph?format=json`),

  file: (team: string) => get<TeamFile>(`${ofTeam(team)}/file`),
  checkFile: (team: string, text: string) => post<{ problems: Problem[]; ok: boolean }>(`${ofTeam(team)}/file/check`, { text }),
  completions: (team: string, text: string, line: number, column: number) =>
    post<{ start_column: number; items: Completion[] }>(`${ofTeam(team)}/file/completions`, { text, line, column }),
  saveFile: async (team: string, text: string, version: string) =>
    (await (await request("PUT", `${ofTeam(team)}/file`, { text, version })).json()) as Saved,
  reload: (team: string) => post<Saved>(`${ofTeam(team)}/reload`),

  conversations: (limit: number, cursor: string | null) =>
    get<{ conversations: Summary[]; next: string | null }>(`/api/conversations${query({ limit, cursor })}`),
  search: (q: string, limit: number) => get<{ found: Found[] }>(`/api/search${query({ q, limit })}`),
  conversation: (id: string, limit: number, before?: number) =>
    get<Conversation>(`${ofConversation(id)}${query({ limit, before })}`),
  turns: (id: string, after: number | null) =>
    get<{ turns: Turn[]; next: number | null }>(`${ofConversation(id)}/turns${query({ limit: 1000, after })}`),
  fork: (id: string, to: string, before: number | null) => post<Conversation>(`${ofConversation(id)}/fork`, { to, before }),
  remove: (id: string) => request("DELETE", ofConversation(id)),
  exported: async (id: string, format: string) => (await request("GET", `${ofConversation(id)}/export?format=${format}`)).blob(),
  waiting: () => get<{ waiting: WaitingConversation[] }>("/api/waiting"),

  send: (id: string, body: { input: MessageInput; team?: string; agent?: string; context?: JsonObject }, signal: AbortSignal) =>
    stream(`${ofConversation(id)}/messages`, { ...body, stream: true }, signal),
  resend: (id: string, body: { position: number; input?: MessageInput; to?: string; in_place: boolean }, signal: AbortSignal) =>
    stream(`${ofConversation(id)}/resend`, { ...body, stream: true }, signal),
  decide: (
    id: string,
    decisions: { call_id: string; approve: boolean; message?: string; always?: boolean }[],
    signal: AbortSignal,
  ) => stream(`${ofConversation(id)}/decisions`, { decisions, stream: true }, signal),
  answer: (
    id: string,
    body: { person?: string; text?: string; hand_to?: string; hand_back?: boolean; note?: string },
    signal: AbortSignal,
  ) => stream(`${ofConversation(id)}/answers`, { ...body, stream: true }, signal),
  attach: (run: string, signal: AbortSignal): RunStream => ({ run, conversation: null, events: runEvents(run, null, signal) }),
  cancel: (run: string) => post<unknown>(`${ofRun(run)}/cancel`),

  /** A ticket for a spoken conversation, which the WebSocket is opened with. */
  voiceTicket: (team: string, conversation: string, agent: string | null) =>
    post<{ ticket: string; protocol: string }>(`${ofTeam(team)}/realtime/tickets`, { conversation, agent }),

  recordings: (id: string) => get<{ recordings: Recording[] }>(`${ofConversation(id)}/recordings`),
  rows: (run: string, after: number) =>
    get<{ recording: Recording; rows: Row[]; next: number | null; seq: number }>(`${ofRun(run)}/recording${query({ after, limit: 500 })}`),
  changedRows: (run: string, seq: number) =>
    get<{ recording: Recording; rows: Row[]; next: number | null; seq: number }>(`${ofRun(run)}/recording${query({ changed_after: seq })}`),
  row: (run: string, row: number) => get<RowDetails>(`${ofRun(run)}/recording/${row}`),

  /** The changes of everything that the caller may see. */
  changes: async (signal: AbortSignal): Promise<AsyncIterable<ServerEvent>> =>
    readEvents((await request("GET", "/api/events", undefined, { signal })).body!),
};

/** An error in words. */
export function errorText(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
