/** What the whole page knows of the service: its teams, their drawings, what waits, and what changes. */

import { api, ApiError, errorText, whenUnauthorized } from "../api/client";
import type { Graph, StudioInfo, Team, WaitingConversation } from "../api/types";
import { Store } from "./store";
import { suggestLanguage } from "./settings";

interface ServerState {
  status: "connecting" | "ready" | "unauthorized" | "lost";
  error: string;
  info: StudioInfo | null;
  teams: Team[];
  /** The team that is looked at. */
  team: string | null;
  graphs: Record<string, Graph>;
  waiting: WaitingConversation[];
}

export const server = new Store<ServerState>({
  status: "connecting",
  error: "",
  info: null,
  teams: [],
  team: null,
  graphs: {},
  waiting: [],
});

export type Change =
  | { kind: "conversation"; id: string; change: "created" | "changed" | "deleted" }
  | { kind: "run"; id: string; conversation: string | null; status: string }
  | { kind: "waiting"; conversation: string; is_waiting: boolean }
  | { kind: "again" };

const listeners = new Set<(change: Change) => void>();

/** Calls a function for each change that the service tells of. `again`: read everything anew. */
export function onChange(listener: (change: Change) => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

function tell(change: Change): void {
  for (const listener of [...listeners]) listener(change);
}

export function currentTeam(): Team | null {
  const { teams, team } = server.value;
  return teams.find((candidate) => candidate.name === team) ?? teams[0] ?? null;
}

export function teamNamed(name: string | null): Team | null {
  return server.value.teams.find((team) => team.name === name) ?? null;
}

export function selectTeam(name: string): void {
  server.update({ team: name });
  void loadGraph(name);
}

export async function loadGraph(team: string): Promise<void> {
  try {
    const graph = await api.graph(team);
    server.update({ graphs: { ...server.value.graphs, [team]: graph } });
  } catch (error) {
    server.update({ error: errorText(error) });
  }
}

export async function loadTeams(): Promise<void> {
  const { teams } = await api.teams();
  server.update({ teams, team: server.value.team ?? server.value.info?.default_team ?? teams[0]?.name ?? null });
  await Promise.all(teams.map((team) => loadGraph(team.name)));
}

export async function loadWaiting(): Promise<void> {
  try {
    server.update({ waiting: (await api.waiting()).waiting });
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
  }
}

let connection: AbortController | null = null;

/** Connects, and follows the changes until the page is left. Called again after a token was given. */
export async function connect(): Promise<void> {
  connection?.abort();
  const mine = new AbortController();
  connection = mine;
  whenUnauthorized(() => server.update({ status: "unauthorized" }));
  for (let attempt = 0; !mine.signal.aborted; attempt += 1) {
    try {
      const info = await api.studio();
      suggestLanguage(info.language);
      server.update({ info });
      await Promise.all([loadTeams(), loadWaiting()]);
      server.update({ status: "ready", error: "" });
      tell({ kind: "again" });
      attempt = 0;
      for await (const event of await api.changes(mine.signal)) handle(event.type, JSON.parse(event.data || "{}"));
    } catch (error) {
      if (mine.signal.aborted || server.value.status === "unauthorized") return;
      server.update({ status: "lost", error: errorText(error) });
    }
    await new Promise((wake) => setTimeout(wake, Math.min(400 * 2 ** attempt, 5000)));
  }
}

let waitingTimer = 0;

function handle(type: string, data: Record<string, unknown>): void {
  switch (type) {
    case "conversation":
    case "run":
      tell({ kind: type, ...data } as Change);
      break;
    case "waiting":
      tell({ kind: type, ...data } as Change);
      clearTimeout(waitingTimer);
      waitingTimer = window.setTimeout(() => void loadWaiting(), 50);
      break;
    case "missed":
      tell({ kind: "again" });
      void loadWaiting();
      break;
    case "team":
      void loadTeams().catch(() => {});
      break;
  }
}
