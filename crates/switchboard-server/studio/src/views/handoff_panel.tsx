/** A handoff: its payload, the decision, and the record beside what the next agent sees, with what each filter did. */

import type { VNode } from "preact";
import { useMemo, useState } from "preact/hooks";
import type { HandoffDetails, JsonObject } from "../api/types";
import { diffLists, type Step } from "../logic/diff";
import { viewItem } from "../logic/items";
import { AgentName, Button, Code } from "../parts/basics";
import { Icon } from "../parts/icons";
import { useTexts } from "../state/settings";
import { ItemCard } from "./item_list";

export function HandoffPanel({ details, onOpen }: { details: HandoffDetails; onOpen: (row: number) => void }): VNode {
  const t = useTexts();
  const [step, setStep] = useState<number | null>(null);
  const [onlyChanges, setOnlyChanges] = useState(false);
  const isTaken = details.outcome === "taken" || details.outcome === "fanned_out";
  const shown = step === null ? null : details.steps[step];
  const before = shown ? shown.before : details.record;
  const after = shown ? shown.after : details.seen;
  const diff = useMemo(() => (before && after ? diffItems(before, after) : []), [before, after]);
  return (
    <div class="handoff-panel">
      <p class="handoff-line large">
        <AgentName name={details.from} />
        <span class="handoff-arrow">
          <Icon name={isTaken ? "arrow" : "close"} />
        </span>
        <AgentName name={details.to} />
      </p>
      <dl class="handoff-facts">
        {details.outcome && <Fact name={t.outcome} value={t.handoffStatus(details.outcome)} />}
        {details.trigger && <Fact name={t.madeBy} value={t.trigger(details.trigger)} />}
        {details.decided_by && <Fact name={t.decidedBy} value={t.decider(details.decided_by)} />}
        {details.redirected_from && <Fact name={t.redirectedFrom} value={details.redirected_from} />}
        {details.carried_items !== null && details.of_items !== null && <Fact name={t.itemsCarried} value={t.ofNumber(details.carried_items, details.of_items)} />}
        {details.carried_tokens !== null && details.carried_tokens !== undefined && <Fact name={t.tokensCarried} value={String(details.carried_tokens)} />}
      </dl>
      {details.reason && (
        <section>
          <h3>{t.reason}</h3>
          <p class="problem">{details.reason}</p>
        </section>
      )}
      {details.payload !== null && details.payload !== undefined && (
        <section>
          <h3>{t.payload}</h3>
          <Code value={details.payload} label={t.payload} />
        </section>
      )}
      {details.caused_by !== null && details.caused_by !== undefined && (
        <Button icon="model" label={t.openModelCall} onClick={() => onOpen(details.caused_by!)} testId="caused-by" />
      )}
      {before && after ? (
        <section>
          <h3>{t.recordAndSeen}</h3>
          {details.steps.length > 0 && (
            <div class="filter-steps" role="group" aria-label={t.filters}>
              <button type="button" aria-pressed={step === null} onClick={() => setStep(null)}>
                {t.allFilters}
              </button>
              {details.steps.map((entry, index) => (
                <button type="button" key={index} aria-pressed={step === index} onClick={() => setStep(index)} data-test="filter-step">
                  <span class="step-number">{index + 1}</span> {entry.filter} <span class="quiet-text">{changesOf(diffItems(entry.before, entry.after))}</span>
                </button>
              ))}
            </div>
          )}
          <label class="only-changes">
            <input type="checkbox" checked={onlyChanges} onChange={(event) => setOnlyChanges(event.currentTarget.checked)} /> {t.onlyChanges}
          </label>
          <Diff
            diff={onlyChanges ? diff.filter((entry) => entry.kind !== "same") : diff}
            titles={shown ? [t.beforeFilter, t.afterFilter] : [t.theRecord, t.whatSaw(details.to)]}
          />
        </section>
      ) : null}
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }): VNode {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{value}</dd>
    </div>
  );
}

/** Compares two histories. An item that was replaced by one of the same role counts as changed. */
function diffItems(before: JsonObject[], after: JsonObject[]): Step<JsonObject>[] {
  const text = (item: JsonObject): string => JSON.stringify(item);
  return diffLists(before, after, text, text, (item) => viewItem(item).role);
}

/** The numbers of removed, changed and added items, as `−2 ~1 +1`. */
function changesOf(diff: Step<JsonObject>[]): string {
  const counted = (kind: string): number => diff.filter((entry) => entry.kind === kind).length;
  const parts = [
    ["−", counted("removed")],
    ["~", counted("changed")],
    ["+", counted("added")],
  ] as const;
  return parts.filter(([, number]) => number > 0).map(([sign, number]) => `${sign}${number}`).join(" ") || "=";
}

function Diff({ diff, titles }: { diff: Step<JsonObject>[]; titles: [string, string] }): VNode {
  const t = useTexts();
  if (diff.length === 0) return <p class="quiet-text">{t.noChanges}</p>;
  return (
    <table class="diff" data-test="diff">
      <thead>
        <tr>
          <th scope="col">{titles[0]}</th>
          <th scope="col">{titles[1]}</th>
        </tr>
      </thead>
      <tbody>
        {diff.map((entry, index) => (
          <tr key={index} class={entry.kind}>
            <td>
              {entry.kind === "changed" && <ItemCard item={entry.old} other={entry.next} side="old" />}
              {(entry.kind === "same" || entry.kind === "removed") && <ItemCard item={entry.old} />}
            </td>
            <td>
              {entry.kind === "changed" && <ItemCard item={entry.next} other={entry.old} side="next" />}
              {(entry.kind === "same" || entry.kind === "added") && <ItemCard item={entry.next} />}
              {entry.kind === "removed" && <span class="quiet-text">{t.removed}</span>}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
