/** The list of conversations, with the search. */

import type { VNode } from "preact";
import { useRef } from "preact/hooks";
import type { Found, Summary } from "../api/types";
import { fullMoment, moment } from "../logic/format";
import { itemText, prettyJson, asText } from "../logic/items";
import { AgentName, Button, ErrorBar } from "../parts/basics";
import { Icon } from "../parts/icons";
import { VirtualList, type VirtualListHandle } from "../parts/virtual_list";
import { list, loadMore, search } from "../state/conversations";
import { go, openConversation } from "../state/router";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";

export function ConversationList({ selected }: { selected: string | null }): VNode {
  const t = useTexts();
  const { conversations, found, query, error, loaded } = useStore(list);
  const handle = useRef<VirtualListHandle | null>(null);
  const shown = query.trim() !== "" && found !== null ? found : null;
  const count = shown ? shown.length : conversations.length;
  const idOf = (row: number): string => (shown ? shown[row]!.conversation : conversations[row]!.id);

  const move = (event: KeyboardEvent): void => {
    const step = event.key === "ArrowDown" || event.key === "j" ? 1 : event.key === "ArrowUp" || event.key === "k" ? -1 : 0;
    if (step === 0 || count === 0 || shown) return;
    const at = conversations.findIndex((conversation) => conversation.id === selected);
    const next = Math.max(0, Math.min(count - 1, at < 0 ? 0 : at + step));
    openConversation(idOf(next));
    handle.current?.scrollTo(next, "nearest");
    event.preventDefault();
  };

  return (
    <section class="list" aria-label={t.conversations}>
      <div class="list-head">
        <Button icon="plus" kind="primary" label={t.newConversation} onClick={() => openConversation(null)} testId="new" />
        <label class="search">
          <Icon name="search" />
          <input
            id="search"
            type="search"
            placeholder={t.search}
            aria-label={t.search}
            value={query}
            onInput={(event) => search(event.currentTarget.value)}
          />
        </label>
      </div>
      <ErrorBar text={error} />
      {count === 0 && loaded ? (
        <p class="empty">{query ? t.nothingFound : t.noConversations}</p>
      ) : (
        <VirtualList
          class="list-rows"
          label={shown ? t.found(count) : t.conversations}
          count={count}
          rowKey={(row) => (shown ? `${shown[row]!.conversation}/${shown[row]!.entry.position}` : conversations[row]!.id)}
          estimate={60}
          handle={handle}
          onNearEnd={() => void loadMore()}
          onKeyDown={move}
          render={(row) =>
            shown ? (
              <FoundRow found={shown[row]!} query={query.trim()} />
            ) : (
              <SummaryRow conversation={conversations[row]!} isSelected={conversations[row]!.id === selected} />
            )
          }
        />
      )}
    </section>
  );
}

function SummaryRow({ conversation, isSelected }: { conversation: Summary; isSelected: boolean }): VNode {
  const t = useTexts();
  return (
    <button
      type="button"
      class="list-row"
      aria-current={isSelected ? "true" : undefined}
      onClick={() => openConversation(conversation.id)}
    >
      <span class="list-title">{conversation.title || conversation.id}</span>
      <span class="list-meta">
        {conversation.agent && <AgentName name={conversation.agent} plain />}
        {conversation.is_waiting && <span class="badge waiting">{t.waits}</span>}
        {conversation.running && <span class="badge running">{t.running}</span>}
        <time dateTime={new Date(conversation.changed).toISOString()} title={fullMoment(conversation.changed)}>
          {moment(conversation.changed)}
        </time>
      </span>
    </button>
  );
}

function FoundRow({ found, query }: { found: Found; query: string }): VNode {
  const content = found.entry.content;
  const text = itemText(content) || prettyJson(asText(content.arguments));
  return (
    <button
      type="button"
      class="list-row"
      onClick={() => go({ view: "talk", id: found.conversation, at: found.entry.position, row: null })}
    >
      <span class="list-title">{found.title || found.conversation}</span>
      <span class="list-excerpt">
        <Excerpt text={text} query={query} />
      </span>
      <span class="list-meta">
        {found.entry.agent && <AgentName name={found.entry.agent} plain />}
        <time>{moment(found.entry.time)}</time>
      </span>
    </button>
  );
}

/** The words around the first place where the query is, with it marked. */
function Excerpt({ text, query }: { text: string; query: string }): VNode {
  const at = text.toLowerCase().indexOf(query.toLowerCase());
  if (at < 0) return <>{text.slice(0, 120)}</>;
  const start = Math.max(0, at - 30);
  return (
    <>
      {start > 0 && "…"}
      {text.slice(start, at)}
      <mark>{text.slice(at, at + query.length)}</mark>
      {text.slice(at + query.length, at + query.length + 80)}
    </>
  );
}
