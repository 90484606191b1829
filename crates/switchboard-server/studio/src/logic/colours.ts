/** Colours of agents: the same for an agent everywhere, and different for the agents of a team. */

/** The number of colours; `styles/colours.css` has them for both themes. */
export const AGENT_COLOURS = 10;

/** The colour of an agent: by its place in the team, or by its name if it is not part of it. */
export function agentColour(agent: string | null, agents: readonly string[]): number {
  if (agent === null) return AGENT_COLOURS;
  const index = agents.indexOf(agent);
  if (index >= 0) return index % AGENT_COLOURS;
  let hash = 0;
  for (const char of agent) hash = (hash * 31 + char.codePointAt(0)!) >>> 0;
  return hash % AGENT_COLOURS;
}
