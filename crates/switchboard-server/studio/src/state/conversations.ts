/** The list of conversations, which grows as it is scrolled, and the search. */

import { api, errorText } from "../api/client";
import type { Found, Summary } from "../api/types";
import { onChange } from "./server";
import { Store } from "./store";

interface ListState {
  conversations: Summary[];
  next: string | null;
  loading: boolean;
  loaded: boolean;
  error: string;
  query: string;
  found: Found[] | null;
}

const PAGE = 200;

export const list = new Store<ListState>({
  conversations: [],
  next: null,
  loading: false,
  loaded: false,
  error: "",
  query: "",
  found: null,
});

/** Reads the newest conversations again, and keeps the older ones that are loaded. */
export async function refreshList(): Promise<void> {
  try {
    const page = await api.conversations(PAGE, null);
    const fresh = new Set(page.conversations.map((conversation) => conversation.id));
    const oldest = page.conversations[page.conversations.length - 1]?.changed ?? 0;
    const rest =
      page.next === null
        ? []
        : list.value.conversations.filter((conversation) => !fresh.has(conversation.id) && conversation.changed <= oldest);
    list.update({
      conversations: [...page.conversations, ...rest],
      next: rest.length > 0 ? list.value.next : page.next,
      loaded: true,
      error: "",
    });
  } catch (error) {
    list.update({ error: errorText(error), loaded: true });
  }
}

export async function loadMore(): Promise<void> {
  const { next, loading, query } = list.value;
  if (next === null || loading || query !== "") return;
  list.update({ loading: true });
  try {
    const page = await api.conversations(PAGE, next);
    const known = new Set(list.value.conversations.map((conversation) => conversation.id));
    const added = page.conversations.filter((conversation) => !known.has(conversation.id));
    list.update({ conversations: [...list.value.conversations, ...added], next: page.next, loading: false });
  } catch (error) {
    list.update({ error: errorText(error), loading: false });
  }
}

let searchTimer = 0;

export function search(query: string): void {
  list.update({ query, found: query.trim() === "" ? null : list.value.found });
  clearTimeout(searchTimer);
  if (query.trim() === "") return;
  searchTimer = window.setTimeout(async () => {
    try {
      const { found } = await api.search(query.trim(), 200);
      if (list.value.query === query) list.update({ found, error: "" });
    } catch (error) {
      list.update({ error: errorText(error) });
    }
  }, 180);
}

let refreshTimer = 0;

onChange((change) => {
  if (change.kind === "conversation" && change.change === "deleted") {
    list.update({ conversations: list.value.conversations.filter((conversation) => conversation.id !== change.id) });
    return;
  }
  // Many changes in a row are one request.
  clearTimeout(refreshTimer);
  refreshTimer = window.setTimeout(() => void refreshList(), change.kind === "again" ? 0 : 120);
});
