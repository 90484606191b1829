/** The objects of the service's API that the studio reads. `/api/openapi.json` describes all of them. */

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

export interface StudioInfo {
  version: string;
  /** Set if runs are recorded, so that there is a timeline. */
  recording: boolean;
  /** Set if team files may be changed. */
  editing: boolean;
  default_team: string;
  language: string;
  limits: { body_bytes: number; attachment_bytes: number };
  voice: boolean;
}

export interface TeamAgent {
  name: string;
  description: string | null;
  tools: string[];
  handoffs: string[];
  is_start: boolean;
  is_person: boolean;
  model: string | null;
}

export interface ContextValue {
  path: string;
  value: Json;
}

export interface Team {
  name: string;
  description: string | null;
  version: string | null;
  context: ContextValue[];
  /** The kind of speech that the team can do. */
  speech?: "realtime" | "voice" | null;
  agents: TeamAgent[];
}

export type Approval = "never" | "always" | "sometimes";

export interface Finding {
  code: string;
  severity: "note" | "warning" | "error";
  agent: string;
  tool: string | null;
  message: string;
  advice: string;
}

export interface AgentTool {
  name: string;
  description: string | null;
  parameters: Json;
  needs_approval: Approval;
  conditional: boolean;
  agent: string | null;
}

export interface AgentHandoff {
  tool: string;
  to: string;
  description: string | null;
  payload: Json;
  conditional: boolean;
  condition: string | null;
  filters: string[];
  guardrails: string[];
  needs_approval: Approval;
  hidden: boolean;
  by_condition: boolean;
}

export interface AgentDetails {
  name: string;
  description: string | null;
  is_person: boolean;
  is_start: boolean;
  model: string | null;
  instructions: string | null;
  dynamic_instructions: boolean;
  settings: JsonObject | null;
  tools: AgentTool[];
  handoffs: AgentHandoff[];
  guardrails: { name: string; on: string }[];
  output: Json;
  findings: Finding[];
}

export interface GraphAgent {
  name: string;
  lines: string[];
  x: number;
  y: number;
  width: number;
  height: number;
  tools: string[];
  is_person: boolean;
  is_start: boolean;
}

export interface GraphEdge {
  from: string;
  to: string;
  path: string;
  label: { x: number; y: number; ends_at_x: boolean; text: string }[];
  kind: "handoff" | "agent_as_tool";
  is_conditional: boolean;
  is_back: boolean;
  tool: string | null;
  condition: string | null;
  payload: Json;
  guardrails: string[];
  filters: string[];
  needs_approval: Approval;
}

export interface Graph {
  width: number;
  height: number;
  agents: GraphAgent[];
  edges: GraphEdge[];
  findings: Finding[];
}

export interface Problem {
  severity: "error" | "warning" | "note";
  code: string;
  message: string;
  help: string | null;
  suggestion: string | null;
  file: string | null;
  line: number | null;
  column: number | null;
  end_line: number | null;
  end_column: number | null;
}

export interface TeamFile {
  name: string;
  text: string;
  version: string;
  format: "toml" | "json";
  editable: boolean;
  changed_on_disk: boolean;
}

export interface Saved {
  version: string;
  problems: Problem[];
  team: Team;
}

export interface Completion {
  label: string;
  insert: string;
  detail: string | null;
  documentation: string | null;
}

export interface Summary {
  id: string;
  title: string | null;
  team: string | null;
  agent: string | null;
  entries: number;
  created: number;
  changed: number;
  running: string | null;
  is_waiting: boolean;
}

/** An entry of a conversation's record; its content is an item of OpenAI's Responses. */
export interface Entry {
  position: number;
  kind: string;
  content: JsonObject;
  run: string;
  turn: number;
  agent: string | null;
  time: number;
}

export interface Waiting {
  kind: "tool" | "agent_tool" | "handoff" | "hosted_tool" | "person";
  details: JsonObject | null;
  agent: string;
  tool: string;
  call_id: string;
  arguments: string;
}

export interface Conversation extends Summary {
  items: Entry[];
  more: boolean;
  context: JsonObject;
  forked_from: { conversation: string; before: number | null } | null;
  waiting: Waiting[];
}

export interface Found {
  conversation: string;
  title: string | null;
  entry: Entry;
}

export interface Tokens {
  input: number;
  cached: number;
  output: number;
  reasoning: number;
}

/** A message of the user, or a turn of an agent. */
export interface Turn {
  kind: "message" | "agent";
  position: number;
  end: number;
  fork_before: number | null;
  run: string;
  turn: number;
  agent: string | null;
  time: number;
  text: string;
  calls: string[];
  handoff: { to: string } | null;
  refused: boolean;
  recording: string | null;
  tokens: Tokens | null;
}

export interface WaitingConversation {
  conversation: string;
  title: string | null;
  team: string | null;
  agent: string | null;
  since: number;
  calls: Waiting[];
  /** Why the conversation cannot be read; nothing else is known of it then. */
  error: string | null;
}

export interface Recording {
  run: string;
  started: number;
  ended: number | null;
  status: string;
  rows: number;
  tokens: Tokens | null;
  cost: number | null;
  dropped: number;
}

export type RowKind = "run" | "agent" | "turn" | "model" | "tool" | "handoff" | "guardrail" | "custom";

/** A row of the timeline. */
export interface Row {
  id: number;
  parent: number | null;
  kind: RowKind;
  name: string;
  agent: string | null;
  turn: number | null;
  status: string;
  started: number;
  seconds: number | null;
  tokens: Tokens | null;
  cost: number | null;
  retries: number;
  summary: string | null;
  error: string | null;
  seq: number;
}

export interface ModelDetails {
  model: string;
  instructions: string | null;
  input: JsonObject[];
  settings: JsonObject | null;
  tools: { name: string; description: string | null; parameters: Json }[];
  handoffs: { tool: string; to: string; description: string | null; parameters: Json }[];
  output_type: Json;
  output: JsonObject[] | null;
  retries: { attempt: number; delay_seconds: number; reason: string; time: number }[];
}

export interface HandoffDetails {
  from: string;
  to: string;
  payload: Json;
  outcome: string | null;
  decided_by: string | null;
  policy: string | null;
  reason: string | null;
  redirected_from: string | null;
  trigger: string | null;
  caused_by: number | null;
  carried_items: number | null;
  of_items: number | null;
  carried_tokens: number | null;
  record: JsonObject[] | null;
  seen: JsonObject[] | null;
  steps: { filter: string; before: JsonObject[]; after: JsonObject[] }[];
}

export interface RowDetails {
  row: Row;
  details: JsonObject;
}

/** An event of a run; `docs/program.md` describes the fields of each type. */
export interface RunEvent {
  type: string;
  agent: string;
  turn: number;
  [field: string]: Json | undefined;
}

export type ContentPart =
  | { type: "input_text"; text: string }
  | { type: "input_image"; image_url: string }
  | { type: "input_file"; filename: string; file_data: string };

export type MessageInput = string | { role: "user"; content: ContentPart[] }[];
