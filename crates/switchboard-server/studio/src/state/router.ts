/** The place in the page, kept in the address: a link leads to a conversation, a turn, a row of its timeline. */

import { Store } from "./store";

export type Route =
  | { view: "talk"; id: string | null; at: number | null; row: { run: string; id: number } | null }
  | { view: "compare"; left: string; right: string | null }
  | { view: "team"; agent: string | null }
  | { view: "file" };

export function parseRoute(hash: string): Route {
  const [path = "", search = ""] = hash.replace(/^#\/?/, "").split("?");
  const parts = path.split("/").map(decode);
  const parameters = new URLSearchParams(search);
  if (parts[0] === "c" && parts[1]) {
    const at = parameters.get("at");
    const row = /^(.+)\.(\d+)$/.exec(parameters.get("row") ?? "");
    return {
      view: "talk",
      id: parts[1],
      at: at !== null && /^\d+$/.test(at) ? Number(at) : null,
      row: row ? { run: row[1]!, id: Number(row[2]) } : null,
    };
  }
  if (parts[0] === "compare" && parts[1]) return { view: "compare", left: parts[1], right: parts[2] || null };
  if (parts[0] === "team") return { view: "team", agent: parts[1] || null };
  if (parts[0] === "file") return { view: "file" };
  return { view: "talk", id: null, at: null, row: null };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export function routeHash(route: Route): string {
  const part = encodeURIComponent;
  switch (route.view) {
    case "talk": {
      if (route.id === null) return "#/";
      const parameters: string[] = [];
      if (route.at !== null) parameters.push(`at=${route.at}`);
      if (route.row !== null) parameters.push(`row=${part(`${route.row.run}.${route.row.id}`)}`);
      return `#/c/${part(route.id)}${parameters.length > 0 ? `?${parameters.join("&")}` : ""}`;
    }
    case "compare":
      return `#/compare/${part(route.left)}${route.right === null ? "" : `/${part(route.right)}`}`;
    case "team":
      return route.agent === null ? "#/team" : `#/team/${part(route.agent)}`;
    case "file":
      return "#/file";
  }
}

export const route = new Store<Route>({ view: "talk", id: null, at: null, row: null });

export function initRouter(): void {
  const read = (): void => route.set(parseRoute(location.hash));
  window.addEventListener("hashchange", read);
  read();
}

/** Goes to a place. With `replace` the browser's way back skips the one before. */
export function go(next: Route, replace = false): void {
  const hash = routeHash(next);
  if (replace) history.replaceState(null, "", hash);
  else if (location.hash !== hash) history.pushState(null, "", hash);
  route.set(next);
}

export function openConversation(id: string | null): void {
  go({ view: "talk", id, at: null, row: null });
}
