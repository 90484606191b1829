/** An agent: its instructions, tools, handoffs and checks. */

import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { api, errorText } from "../api/client";
import type { AgentDetails, AgentHandoff, Finding, GraphEdge, Json } from "../api/types";
import { AgentName, Code, ErrorBar } from "../parts/basics";
import { Icon } from "../parts/icons";
import { server } from "../state/server";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";

export function AgentPanel({ team, agent }: { team: string; agent: string }): VNode {
  const t = useTexts();
  const [details, setDetails] = useState<AgentDetails | null>(null);
  const [error, setError] = useState("");
  const version = useStore(server, (value) => value.teams.find((candidate) => candidate.name === team)?.version ?? "");
  useEffect(() => {
    let isCurrent = true;
    setDetails(null);
    setError("");
    api.agent(team, agent).then(
      (answer) => isCurrent && setDetails(answer),
      (problem: unknown) => isCurrent && setError(errorText(problem)),
    );
    return () => {
      isCurrent = false;
    };
  }, [team, agent, version]);
  if (!details) return <ErrorBar text={error} />;
  return (
    <div class="agent-panel">
      <p class="agent-facts">
        <AgentName name={details.name} />
        {details.is_start && <span class="chip">{t.startsHere}</span>}
        {details.is_person && <span class="chip">{t.person}</span>}
        {details.model && <span class="chip">{details.model}</span>}
      </p>
      {details.description && <p class="lead">{details.description}</p>}
      <Findings findings={details.findings} />
      {(details.instructions !== null || details.dynamic_instructions) && (
        <section>
          <h3>{t.instructions}</h3>
          {details.dynamic_instructions && <p class="quiet-text">{t.dynamicInstructions}</p>}
          {details.instructions && <pre class="instructions" tabIndex={0} aria-label={t.instructions}>{details.instructions.trim()}</pre>}
        </section>
      )}
      {details.tools.length > 0 && (
        <section>
          <h3>{t.tools}</h3>
          <ul class="facts">
            {details.tools.map((tool) => (
              <li key={tool.name}>
                <p>
                  <code>{tool.name}</code>
                  {tool.agent && <AgentName name={tool.agent} />}
                  {tool.needs_approval !== "never" && <span class="chip warn">{t.needsApproval(tool.needs_approval)}</span>}
                  {tool.conditional && <span class="chip">{t.conditional}</span>}
                </p>
                {tool.description && <p class="quiet-text">{tool.description}</p>}
                <Schema label={t.parameters} schema={tool.parameters} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {details.handoffs.length > 0 && (
        <section>
          <h3>{t.handoffsTitle}</h3>
          <ul class="facts">
            {details.handoffs.map((handoff) => (
              <li key={handoff.tool}>
                <p>
                  <Icon name="arrow" /> <AgentName name={handoff.to} /> <code>{handoff.tool}</code>
                </p>
                <HandoffFacts handoff={handoff} />
              </li>
            ))}
          </ul>
        </section>
      )}
      {details.guardrails.length > 0 && (
        <section>
          <h3>{t.guardrails}</h3>
          <ul class="facts">
            {details.guardrails.map((guardrail) => (
              <li key={`${guardrail.on}/${guardrail.name}`}>
                <Icon name="shield" /> <code>{guardrail.name}</code> <span class="quiet-text">{t.guardrailOn(guardrail.on)}</span>
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
      <Schema label={t.outputType} schema={details.output} />
    </div>
  );
}

type Facts = Pick<AgentHandoff, "condition" | "filters" | "guardrails" | "needs_approval" | "payload"> &
  Partial<Pick<AgentHandoff, "description" | "conditional" | "hidden" | "by_condition">>;

function HandoffFacts({ handoff }: { handoff: Facts }): VNode {
  const t = useTexts();
  return (
    <>
      {handoff.description && <p class="quiet-text">{handoff.description}</p>}
      <p class="chips">
        {handoff.condition && <span class="chip">{t.ifCondition(handoff.condition)}</span>}
        {!handoff.condition && handoff.conditional && <span class="chip">{t.conditional}</span>}
        {handoff.by_condition && <span class="chip">{t.byCondition}</span>}
        {handoff.hidden && <span class="chip">{t.hiddenFromModel}</span>}
        {handoff.needs_approval !== "never" && <span class="chip warn">{t.needsApproval(handoff.needs_approval)}</span>}
        {handoff.guardrails.map((name) => (
          <span class="chip warn" key={name}>
            <Icon name="shield" size={12} /> {name}
          </span>
        ))}
        {handoff.filters.map((name) => (
          <span class="chip" key={name}>
            {t.filter}: {name}
          </span>
        ))}
      </p>
      <Schema label={t.payload} schema={handoff.payload} />
    </>
  );
}

export function EdgeFacts({ edge }: { edge: GraphEdge }): VNode {
  const t = useTexts();
  const isPlain = !edge.condition && edge.filters.length + edge.guardrails.length === 0 && edge.needs_approval === "never" && !edge.payload;
  return (
    <div class="agent-panel">
      <p>{edge.tool && <code>{edge.tool}</code>}</p>
      <HandoffFacts handoff={edge} />
      {isPlain && <p class="quiet-text">{t.plainHandoff}</p>}
    </div>
  );
}

function Schema({ label, schema }: { label: string; schema: Json }): VNode | null {
  if (schema === null || schema === undefined) return null;
  const properties = (schema as { properties?: object }).properties;
  if (properties && Object.keys(properties).length === 0) return null;
  return (
    <details class="schema">
      <summary>{label}</summary>
      <Code value={schema} label={label} />
    </details>
  );
}

export function Findings({ findings }: { findings: Finding[] }): VNode | null {
  if (findings.length === 0) return null;
  return (
    <ul class="findings">
      {findings.map((finding) => (
        <li key={`${finding.code}/${finding.agent}/${finding.tool ?? ""}`} class={finding.severity}>
          <Icon name="warning" />
          <span>
            {finding.message} <span class="quiet-text">{finding.advice}</span>
          </span>
        </li>
      ))}
    </ul>
  );
}
