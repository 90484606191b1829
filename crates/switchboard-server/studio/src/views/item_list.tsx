/** Items of a history, as the model gets them. */

import type { VNode } from "preact";
import type { JsonObject } from "../api/types";
import { diffTexts } from "../logic/diff";
import { viewItem } from "../logic/items";
import { useTexts } from "../state/settings";

export function ItemList({ items }: { items: readonly JsonObject[] }): VNode {
  const t = useTexts();
  if (items.length === 0) return <p class="quiet-text">{t.nothing}</p>;
  return (
    <ol class="items">
      {items.map((item, index) => (
        <li key={index}>
          <ItemCard item={item} />
        </li>
      ))}
    </ol>
  );
}

/** An item. With `other`, the words that differ from it are marked. */
export function ItemCard({ item, other, side }: { item: JsonObject; other?: JsonObject; side?: "old" | "next" }): VNode {
  const t = useTexts();
  const view = viewItem(item);
  let body: VNode | string = view.text;
  if (other && side) {
    const text = viewItem(other).text;
    const pieces = side === "old" ? diffTexts(view.text, text) : diffTexts(text, view.text);
    const hidden = side === "old" ? "added" : "removed";
    body = (
      <>
        {pieces
          .filter((piece) => piece.kind !== hidden)
          .map((piece, index) => (piece.kind === "same" ? piece.text : piece.kind === "removed" ? <del key={index}>{piece.text}</del> : <ins key={index}>{piece.text}</ins>))}
      </>
    );
  }
  return (
    <div class={`item role-${view.role}`}>
      <span class="item-role">
        {t.itemRole(view.role)}
        {view.title && <code>{view.title}</code>}
      </span>
      <div class="item-text">{body}</div>
    </div>
  );
}
