/** The main view: the conversations, the one that is open, and what happens in it. */

import type { VNode } from "preact";
import { useEffect, useMemo, useState } from "preact/hooks";
import { turnAt } from "../logic/path";
import { Tabs } from "../parts/basics";
import { Icon, type IconName } from "../parts/icons";
import { OpenConversation } from "../state/conversation";
import { go, type Route } from "../state/router";
import { server } from "../state/server";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";
import { newConversationId } from "../logic/format";
import { ChatPane } from "./chat";
import { ConversationList } from "./conversation_list";
import { RowPanel } from "./row_panel";
import { LiveDrawing } from "./live_drawing";
import { Timeline } from "./timeline";

type Pane = "list" | "chat" | "team" | "timeline";
type TalkRoute = Extract<Route, { view: "talk" }>;

/** The identifier of the next new conversation: it stays the same until a message is sent to it. */
let draftId = newConversationId();

export function TalkView({ place }: { place: TalkRoute }): VNode {
  const t = useTexts();
  useStore(server, (value) => value.graphs);
  const isNew = place.id === null;
  const id = place.id ?? draftId;
  const conversation = useMemo(() => new OpenConversation(id, isNew), [id]);
  useEffect(() => () => conversation.close(), [conversation]);
  useStore(conversation.changed);
  const [pane, setPane] = useState<Pane>("chat");
  const [tab, setTab] = useState<"team" | "timeline">("timeline");
  useEffect(() => setPane("chat"), [id]);

  // The first message has made the conversation: from now on it has an address.
  useEffect(() => {
    if (isNew && (conversation.live || conversation.head)) {
      draftId = newConversationId();
      go({ view: "talk", id, at: null, row: null }, true);
    }
  });

  const at = place.at === null ? null : turnAt(conversation.turns, place.at);
  const travel = (turn: number | null): void => {
    const position = turn === null ? null : (conversation.turns[turn]?.position ?? null);
    go({ ...place, at: turn !== null && turn >= conversation.turns.length - 1 ? null : position }, true);
  };
  const openRow = (run: string, row: number): void => go({ ...place, row: { run, id: row } }, place.row !== null);

  return (
    <div class="talk" data-pane-shown={pane} data-panel={place.row ? "open" : undefined}>
      {pane !== "chat" && <h1 class="screen-reader">{{ list: t.conversations, team: t.team, timeline: t.timeline }[pane]}</h1>}
      <div class="pane-list">
        <ConversationList selected={place.id} />
      </div>
      <div class="pane-chat">
        <ChatPane conversation={conversation} isNew={isNew} at={at} onTravel={travel} onOpenRow={openRow} />
      </div>
      <aside class="pane-inspector" aria-label={t.inspector}>
        <div class="inspector-tabs">
          <Tabs
            label={t.inspector}
            tabs={[
              { id: "timeline", label: t.timeline },
              { id: "team", label: t.team },
            ]}
            selected={tab}
            onSelect={setTab}
          />
        </div>
        <div class={`inspector-drawing ${tab === "team" ? "tall" : ""}`}>
          <LiveDrawing conversation={conversation} at={at} />
        </div>
        <div class="inspector-timeline" hidden={tab === "team" && pane !== "timeline"}>
          <Timeline conversation={conversation} at={at} selected={place.row} onOpen={openRow} />
        </div>
      </aside>
      {place.row && (
        <RowPanel
          key={`${place.row.run}.${place.row.id}`}
          run={place.row.run}
          row={place.row.id}
          onClose={() => go({ ...place, row: null }, true)}
          onOpen={openRow}
        />
      )}
      <nav class="pane-tabs" aria-label={t.panes}>
        {(["list", "chat", "team", "timeline"] as const).map((name) => (
          <button
            type="button"
            key={name}
            data-pane={name}
            aria-current={pane === name ? "true" : undefined}
            onClick={() => setPane(name)}
          >
            <Icon name={PANE_ICONS[name]} />
            <span>{{ list: t.conversations, chat: t.talk, team: t.team, timeline: t.timeline }[name]}</span>
          </button>
        ))}
      </nav>
    </div>
  );
}

const PANE_ICONS: Record<Pane, IconName> = { list: "turn", chat: "chat", team: "team", timeline: "timeline" };
