/** The beginning of a conversation: the team, the agent that gets the first message, the context. */

import type { VNode } from "preact";
import type { Json, JsonObject } from "../api/types";
import { AgentName } from "../parts/basics";
import { currentTeam, server } from "../state/server";
import { useTexts } from "../state/settings";
import { useStore } from "../state/store";

export interface StartChoice {
  agent: string;
  /** The values that differ from those of the team file. */
  context: JsonObject;
}

export function emptyStart(): StartChoice {
  return { agent: "", context: {} };
}

interface Properties {
  choice: StartChoice;
  /** Gets a function of the choice: two changes may come before the page is drawn again. */
  onChange: (change: (choice: StartChoice) => StartChoice) => void;
}

export function StartForm({ choice, onChange }: Properties): VNode {
  const t = useTexts();
  useStore(server, (value) => value.teams);
  useStore(server, (value) => value.team);
  const team = currentTeam();
  if (!team) return <div class="start" />;
  const setValue = (path: string, value: Json, standard: Json): void => {
    onChange((current) => {
      const context = { ...current.context };
      if (value === standard) delete context[path];
      else context[path] = value;
      return { ...current, context };
    });
  };
  return (
    <div class="start">
      <div class="start-inner">
        <h1>{t.talkTo(team.name)}</h1>
        {team.description && <p class="lead">{team.description}</p>}
        <fieldset class="start-agents">
          <legend>{t.beginWith}</legend>
          <div class="agent-choice">
            {team.agents
              .filter((agent) => !agent.is_person)
              .map((agent) => (
                <label key={agent.name} title={agent.description ?? ""}>
                  <input
                    type="radio"
                    name="agent"
                    value={agent.name}
                    checked={choice.agent === agent.name || (choice.agent === "" && agent.is_start)}
                    onChange={() => onChange((current) => ({ ...current, agent: agent.is_start ? "" : agent.name }))}
                  />
                  <AgentName name={agent.name} />
                </label>
              ))}
          </div>
        </fieldset>
        {team.context.length > 0 && (
          <fieldset class="start-context">
            <legend>{t.context}</legend>
            <p class="quiet-text">{t.contextHelp}</p>
            {team.context.map(({ path, value }) => (
              <label key={path} class="context-value">
                <code>{path}</code>
                <ContextInput value={choice.context[path] ?? value} standard={value} onChange={(next) => setValue(path, next, value)} />
              </label>
            ))}
          </fieldset>
        )}
      </div>
    </div>
  );
}

/** A field for a value, of the type that the team file's own value has. */
function ContextInput({ value, standard, onChange }: { value: Json; standard: Json; onChange: (value: Json) => void }): VNode {
  if (typeof standard === "boolean") {
    return <input type="checkbox" checked={value === true} onChange={(event) => onChange(event.currentTarget.checked)} />;
  }
  if (typeof standard === "number") {
    return (
      <input
        type="number"
        step="any"
        value={String(value)}
        onChange={(event) => onChange(event.currentTarget.value === "" ? standard : Number(event.currentTarget.value))}
      />
    );
  }
  if (typeof standard === "string") {
    return <input type="text" value={String(value)} onInput={(event) => onChange(event.currentTarget.value)} />;
  }
  return (
    <input
      type="text"
      value={JSON.stringify(value)}
      onChange={(event) => {
        try {
          onChange(JSON.parse(event.currentTarget.value) as Json);
        } catch {
          event.currentTarget.value = JSON.stringify(value);
        }
      }}
    />
  );
}
