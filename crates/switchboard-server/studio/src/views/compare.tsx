/** Two conversations side by side, with the place where they part marked. */

import type { VNode } from "preact";
import { useEffect, useMemo } from "preact/hooks";
import { commonParts } from "../logic/transcript";
import { Button } from "../parts/basics";
import { VirtualList } from "../parts/virtual_list";
import { OpenConversation } from "../state/conversation";
import { list } from "../state/conversations";
import { go, openConversation } from "../state/router";
import { useTexts } from "../state/settings";
import { Store, useStore } from "../state/store";
import { PartView } from "./message";
import { Ribbon } from "./ribbon";

export function CompareView({ left, right }: { left: string; right: string | null }): VNode {
  const t = useTexts();
  const first = useOpen(left);
  const second = useOpen(right);
  const shared = first && second ? commonParts(first.parts, second.parts) : 0;
  return (
    <div class="compare">
      <h1 class="screen-reader">{t.compareTitle}</h1>
      <Side conversation={first} shared={shared} hasOther={second !== null} onChoose={(id) => go({ view: "compare", left: id, right }, true)} label={t.left} />
      <Side conversation={second} shared={shared} hasOther onChoose={(id) => go({ view: "compare", left, right: id }, true)} label={t.right} />
    </div>
  );
}

const NEVER = new Store(0);

function useOpen(id: string | null): OpenConversation | null {
  const conversation = useMemo(() => (id === null ? null : new OpenConversation(id)), [id]);
  useEffect(() => () => conversation?.close(), [conversation]);
  // Any change of one side can move the place where both part.
  useStore(conversation?.changed ?? NEVER);
  return conversation;
}

interface SideProps {
  conversation: OpenConversation | null;
  shared: number;
  hasOther: boolean;
  onChoose: (id: string) => void;
  label: string;
}

function Side({ conversation, shared, hasOther, onChoose, label }: SideProps): VNode {
  const t = useTexts();
  const conversations = useStore(list, (value) => value.conversations);
  const parts = conversation?.parts ?? [];
  const ids = conversations.slice(0, 300);
  const isKnown = conversation === null || ids.some((candidate) => candidate.id === conversation.id);
  return (
    <section class="compare-side" aria-label={label}>
      <header>
        <select aria-label={t.chooseConversation} value={conversation?.id ?? ""} onChange={(event) => onChoose(event.currentTarget.value)} data-test={`compare-${label}`}>
          {conversation === null && <option value="">{t.chooseConversation}</option>}
          {!isKnown && <option value={conversation!.id}>{conversation!.head?.title || conversation!.id}</option>}
          {ids.map((candidate) => (
            <option key={candidate.id} value={candidate.id}>
              {candidate.title ? `${candidate.title} (${candidate.id})` : candidate.id}
            </option>
          ))}
        </select>
        {conversation && <Button icon="chat" iconOnly kind="quiet" label={t.open} onClick={() => openConversation(conversation.id)} />}
      </header>
      {conversation && <Ribbon conversation={conversation} at={null} onTravel={() => openConversation(conversation.id)} />}
      {conversation && (
        <VirtualList
          key={conversation.id}
          class="parts"
          label={conversation.head?.title ?? conversation.id}
          count={parts.length}
          rowKey={(row) => parts[row]!.key}
          estimate={72}
          onNearStart={() => void (conversation.more && conversation.loadOlder())}
          render={(row) => (
            <div class={hasOther && row < shared ? "shared" : "differs"}>
              {hasOther && row === shared && shared > 0 && <p class="parting">{t.partsHere}</p>}
              <PartView part={parts[row]!} previous={parts[row - 1]} isLast={false} conversation={null} onOpen={null} />
            </div>
          )}
        />
      )}
    </section>
  );
}
