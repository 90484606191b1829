/** A row of the timeline, opened: what was sent, what came back, and why. */

import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { api, errorText } from "../api/client";
import type { HandoffDetails, JsonObject, ModelDetails, RowDetails } from "../api/types";
import { cost, duration, fullMoment } from "../logic/format";
import { asText, compactJson } from "../logic/items";
import { AgentName, Button, Code, ErrorBar, Tabs } from "../parts/basics";
import { useTexts } from "../state/settings";
import { HandoffPanel } from "./handoff_panel";
import { ItemList } from "./item_list";
import { statusClass } from "./timeline";

interface Props {
  run: string;
  row: number;
  onClose: () => void;
  onOpen: (run: string, row: number) => void;
}

export function RowPanel({ run, row, onClose, onOpen }: Props): VNode {
  const t = useTexts();
  const [answer, setAnswer] = useState<RowDetails | null>(null);
  const [error, setError] = useState("");
  const panel = useRef<HTMLElement>(null);
  useEffect(() => {
    let isCurrent = true;
    api.row(run, row).then(
      (answer) => isCurrent && setAnswer(answer),
      (problem: unknown) => isCurrent && setError(errorText(problem)),
    );
    panel.current?.focus();
    return () => {
      isCurrent = false;
    };
  }, [run, row]);
  return (
    <aside
      ref={panel}
      class="row-panel"
      tabIndex={-1}
      aria-label={t.details}
      data-test="row-panel"
      onKeyDown={(event) => {
        if (event.key !== "Escape") return;
        onClose();
        event.stopPropagation();
      }}
    >
      <header>
        <h2>{answer ? answer.row.kind === "turn" ? t.turnTitle(answer.row.turn ?? 0, answer.row.agent ?? "") : answer.row.name : t.details}</h2>
        <Button icon="close" iconOnly kind="quiet" label={t.close} onClick={onClose} testId="row-close" />
      </header>
      <div class="row-panel-body">
        <ErrorBar text={error} />
        {answer && (
          <>
            <Facts answer={answer} />
            <Body answer={answer} onOpen={(id) => onOpen(run, id)} />
          </>
        )}
      </div>
    </aside>
  );
}

function Facts({ answer: { row } }: { answer: RowDetails }): VNode {
  const t = useTexts();
  return (
    <>
      <p class="row-facts">
        {row.agent && <AgentName name={row.agent} />}
        <span class={`badge ${statusClass(row.status)}`}>{t.status(row.status)}</span>
        <span>{fullMoment(row.started)}</span>
        {row.seconds !== null && <span>{duration(row.seconds)}</span>}
        {row.tokens && <span>{t.tokensInOut(row.tokens.input, row.tokens.output)}</span>}
        {row.tokens && row.tokens.cached > 0 && <span>{t.tokensCached(row.tokens.cached)}</span>}
        {row.cost !== null && <span>{t.cost(cost(row.cost))}</span>}
        {row.retries > 0 && <span>{t.retries(row.retries)}</span>}
      </p>
      {row.error && <p class="problem">{row.error}</p>}
    </>
  );
}

function Body({ answer, onOpen }: { answer: RowDetails; onOpen: (row: number) => void }): VNode {
  const t = useTexts();
  const { row, details } = answer;
  switch (row.kind) {
    case "model":
      return <ModelPanel details={details as unknown as ModelDetails} />;
    case "handoff":
      return <HandoffPanel details={details as unknown as HandoffDetails} onOpen={onOpen} />;
    case "tool":
      return (
        <>
          <h3>{t.whatWasSent}</h3>
          <Code value={asText(details.arguments) || "{}"} label={t.arguments} />
          <h3>{t.whatCameBack}</h3>
          {details.output === null || details.output === undefined ? <p class="quiet-text">{t.nothingYet}</p> : <Code value={compactJson(details.output)} label={t.output} />}
        </>
      );
    default:
      return Object.keys(details).length > 0 ? <Code value={details} label={t.details} /> : <p class="quiet-text">{row.summary ?? t.noDetails}</p>;
  }
}

function ModelPanel({ details }: { details: ModelDetails }): VNode {
  const t = useTexts();
  const [tab, setTab] = useState<"sent" | "back" | "raw">("sent");
  return (
    <>
      <Tabs
        label={t.details}
        tabs={[
          { id: "sent", label: t.whatWasSent },
          { id: "back", label: t.whatCameBack },
          { id: "raw", label: t.raw },
        ]}
        selected={tab}
        onSelect={setTab}
      />
      {tab === "sent" && (
        <div class="sent">
          {details.retries.length > 0 && (
            <ul class="retries">
              {details.retries.map((retry) => (
                <li key={retry.attempt}>
                  {t.retryLine(retry.attempt, duration(retry.delay_seconds))} <span class="quiet-text">{retry.reason}</span>
                </li>
              ))}
            </ul>
          )}
          {details.instructions !== null && (
            <section>
              <h3>{t.instructions}</h3>
              <pre class="instructions" tabIndex={0} aria-label={t.instructions}>{details.instructions}</pre>
            </section>
          )}
          <section>
            <h3>{t.conversation}</h3>
            <ItemList items={details.input} />
          </section>
          {details.handoffs.length > 0 && (
            <section>
              <h3>{t.handoffsTitle}</h3>
              <ul class="facts">
                {details.handoffs.map((handoff) => (
                  <li key={handoff.tool}>
                    <code>{handoff.tool}</code> <AgentName name={handoff.to} />
                    {handoff.description && <p class="quiet-text">{handoff.description}</p>}
                  </li>
                ))}
              </ul>
            </section>
          )}
          {details.tools.length > 0 && (
            <section>
              <h3>{t.tools}</h3>
              <ul class="facts">
                {details.tools.map((tool) => (
                  <li key={tool.name}>
                    <code>{tool.name}</code>
                    {tool.description && <p class="quiet-text">{tool.description}</p>}
                  </li>
                ))}
              </ul>
            </section>
          )}
          {details.settings && Object.keys(details.settings).length > 0 && (
            <section>
              <h3>{t.settings}</h3>
              <Code value={details.settings} label={t.settings} />
            </section>
          )}
        </div>
      )}
      {tab === "back" && (details.output ? <ItemList items={details.output} /> : <p class="quiet-text">{t.nothingYet}</p>)}
      {tab === "raw" && <Code value={details as unknown as JsonObject} label={t.raw} />}
    </>
  );
}
