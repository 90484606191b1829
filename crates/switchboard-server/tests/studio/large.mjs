/** Answers of the API for a service with 10,000 conversations, one of them with 5,000 items. */

const CONVERSATIONS = 10_000;
const ITEMS = 5_000;
const START = 1_790_000_000_000;

const summary = (index) => ({
  id: `conversation-${index}`, title: `Question ${index}`, team: "support", agent: "Billing", entries: 4,
  created: START, changed: START - index * 1000, running: null, is_waiting: false,
});

/** A page of the list, or null for other requests. */
export function manyConversations(url) {
  if (url.pathname !== "/api/conversations") return null;
  const from = Number(url.searchParams.get("cursor") ?? 0);
  const to = Math.min(CONVERSATIONS, from + Number(url.searchParams.get("limit")));
  const conversations = Array.from({ length: to - from }, (_, index) => summary(from + index));
  return { conversations, next: to < CONVERSATIONS ? String(to) : null };
}

const isUser = (position) => position % 2 === 0;

function entry(position) {
  const content = isUser(position)
    ? { role: "user", content: `message ${position} of the user` }
    : { type: "message", role: "assistant", content: [{ type: "output_text", text: `answer ${position}\n\n- with a **list**\n- of two\n${"and more ".repeat(position % 40)}` }] };
  return { position, kind: "item", content, run: `r${position >> 1}`, turn: isUser(position) ? 0 : 1, agent: isUser(position) ? null : "Billing", time: START + position };
}

function turn(position) {
  return {
    kind: isUser(position) ? "message" : "agent", position, end: position + 1, fork_before: isUser(position) ? position : null, run: `r${position >> 1}`,
    turn: isUser(position) ? 0 : 1, agent: isUser(position) ? null : "Billing", time: START + position, text: "", calls: [], handoff: null, refused: false, recording: null, tokens: null,
  };
}

/** An answer about the long conversation, or null for other requests. */
export function longConversation(url) {
  if (!url.pathname.startsWith("/api/conversations/long")) return null;
  const limit = Number(url.searchParams.get("limit") ?? 50);
  if (url.pathname.endsWith("/turns")) {
    const from = Number(url.searchParams.get("after") ?? 0);
    const to = Math.min(ITEMS, from + limit);
    return { turns: Array.from({ length: to - from }, (_, index) => turn(from + index)), next: to < ITEMS ? to : null };
  }
  if (url.pathname.endsWith("/recordings")) return { recordings: [] };
  const before = Number(url.searchParams.get("before") ?? ITEMS);
  const from = Math.max(0, before - limit);
  return {
    ...summary(0), id: "long", entries: ITEMS, items: Array.from({ length: before - from }, (_, index) => entry(from + index)),
    more: from > 0, context: {}, forked_from: null, waiting: [],
  };
}
