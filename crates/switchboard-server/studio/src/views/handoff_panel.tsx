/** A handoff: its payload, the decision, and the record beside what the next agent sees, with what each filter did. */

import type { VNode } from "preact";
import { useState } from "preact/hooks";
import type { DiffEntry, HandoffDetails, JsonObject } from "../api/types";
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
  const diff = shown ? shown.diff : details.diff;
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
                  <span class="step-number">{index + 1}</span> {entry.filter} <span class="quiet-text">{changesOf(entry.diff)}</span>
                </button>
              ))}
            </div>
          )}
          <label class="only-changes">
            <input type="checkbox" checked={onlyChanges} onChange={(event) => setOnlyChanges(event.currentTarget.checked)} /> {t.onlyChanges}
          </label>
          <Diff
            before={before}
            after={after}
            diff={onlyChanges ? diff.filter((entry) => entry.status !== "same") : diff}
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

/** The numbers of removed, changed and added items, as `−2 ~1 +1`. */
function changesOf(diff: DiffEntry[]): string {
  const counted = (status: string): number => diff.filter((entry) => entry.status === status).length;
  const parts = [
    ["−", counted("removed")],
    ["~", counted("changed")],
    ["+", counted("added")],
  ] as const;
  return parts.filter(([, number]) => number > 0).map(([sign, number]) => `${sign}${number}`).join(" ") || "=";
}

function Diff(props: { before: JsonObject[]; after: JsonObject[]; diff: DiffEntry[]; titles: [string, string] }): VNode {
  const t = useTexts();
  const { before, after, diff, titles } = props;
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
        {diff.map((entry, index) => {
          const old = entry.record === null ? undefined : before[entry.record];
          const next = entry.seen === null ? undefined : after[entry.seen];
          const isChanged = entry.status === "changed";
          return (
            <tr key={index} class={entry.status}>
              <td>{old && <ItemCard item={old} {...(isChanged && next ? { other: next, side: "old" as const } : {})} />}</td>
              <td>
                {next && <ItemCard item={next} {...(isChanged && old ? { other: old, side: "next" as const } : {})} />}
                {!next && <span class="quiet-text">{t.removed}</span>}
              </td>
            </tr>
          );
        })}
      </tbody>
    </table>
  );
}
