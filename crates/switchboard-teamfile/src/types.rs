//! What a team file looks like.
//!
//! These types are the one description of the format: the published JSON Schema is made from them,
//! files are checked against it, and their comments are what editors show.

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

/// A team of agents: who they are, what they can do, and who hands over to whom.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "team file")]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamShape {
    /// Where the schema of this file is, for editors.
    #[serde(rename = "$schema", default)]
    #[expect(dead_code, reason = "only editors read it")]
    pub(crate) schema: Option<String>,
    /// What the team is for, in a sentence.
    pub(crate) description: Option<String>,
    /// The agent that gets the conversation first. Without it, the first agent of the file.
    pub(crate) start: Option<String>,
    /// The model of agents that name none: `offline`, an entry of `models`, `openai/NAME` (Responses) or
    /// `chat/NAME` (Chat Completions). Without it, `offline`.
    pub(crate) model: Option<String>,
    /// How models are to answer; agents may say otherwise, field by field.
    #[serde(default)]
    pub(crate) settings: SettingsShape,
    /// What the application knows, with its defaults: conditions and tools read it, models never see
    /// it. `--context tier=premium` sets a value.
    #[serde(default)]
    pub(crate) context: Map<String, Value>,
    /// The agents, by name.
    pub(crate) agents: IndexMap<String, AgentShape>,
    /// Tools that agents can be given, by name.
    #[serde(default)]
    pub(crate) tools: IndexMap<String, ToolShape>,
    /// Guardrails that agents, handoffs and runs can be given, by name.
    #[serde(default)]
    pub(crate) guardrails: IndexMap<String, GuardrailShape>,
    /// Servers with models, by the name that agents call them.
    #[serde(default)]
    pub(crate) models: IndexMap<String, ModelShape>,
    /// The programs that tools may start.
    #[serde(default)]
    pub(crate) commands: CommandsShape,
    /// Settings of every run.
    #[serde(default)]
    pub(crate) run: RunShape,
}

/// One agent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "agent")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentShape {
    /// What other agents' models are told of this one, so that they know when to hand over to it.
    pub(crate) description: Option<String>,
    /// What the agent's model is told to do.
    pub(crate) instructions: Option<TextShape>,
    /// Puts a paragraph on handoffs and the names of the agent's colleagues in front of the instructions.
    pub(crate) explain_handoffs: bool,
    /// The agent's model; see `model` at the top.
    pub(crate) model: Option<String>,
    /// How its model is to answer.
    pub(crate) settings: SettingsShape,
    /// What it can answer from.
    pub(crate) knowledge: Vec<KnowledgeShape>,
    /// The tools it has, by name.
    pub(crate) tools: Vec<String>,
    /// What happens after its tools have run.
    pub(crate) after_tools: AfterToolsShape,
    /// Whom it can hand the conversation to.
    pub(crate) handoffs: Vec<HandoffShape>,
    /// Checks on what the user says, where the agent is the first of a run.
    pub(crate) input_guardrails: Vec<String>,
    /// Checks on its final answer.
    pub(crate) output_guardrails: Vec<String>,
}

/// Text, or a file that holds it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "text")]
#[serde(untagged)]
pub(crate) enum TextShape {
    /// The text itself.
    Inline(String),
    /// The text of a file.
    File(FileShape),
}

/// A file, looked for from the folder of the team file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "file")]
#[serde(deny_unknown_fields)]
pub(crate) struct FileShape {
    /// The file.
    pub(crate) file: String,
}

/// Something an agent knows.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "knowledge")]
#[serde(untagged)]
pub(crate) enum KnowledgeShape {
    /// One thing.
    Entry(KnowledgeEntryShape),
    /// Many: a Markdown file, where each heading is a title and what follows is what to say about it.
    File(FileShape),
}

/// One thing an agent knows.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "knowledge entry")]
#[serde(deny_unknown_fields)]
pub(crate) struct KnowledgeEntryShape {
    /// What it is about: a question, a title, keywords.
    pub(crate) title: String,
    /// What to say about it.
    pub(crate) text: String,
}

/// What happens after an agent's tools have run.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "way to go on after tools")]
#[serde(rename_all = "snake_case")]
pub(crate) enum AfterToolsShape {
    /// The model reads the outputs and goes on.
    #[default]
    RunModelAgain,
    /// The first tool's output is the answer.
    StopOnFirstTool,
    /// The output of one of these tools is the answer.
    StopAt(Vec<String>),
}

/// A handoff: the name of an agent, or more about it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "handoff")]
#[serde(untagged)]
pub(crate) enum HandoffShape {
    /// The agent that gets the conversation.
    To(String),
    /// The same with more to say.
    Edge(Box<EdgeShape>),
}

/// A handoff with more to say.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "handoff table")]
#[serde(deny_unknown_fields)]
pub(crate) struct EdgeShape {
    /// The agent that gets the conversation.
    pub(crate) to: String,
    /// What the model is told of when to hand over. Without it, the other agent's description.
    pub(crate) description: Option<String>,
    /// The name of the handoff's tool. Without it, `transfer_to_` and the agent's name.
    pub(crate) tool_name: Option<String>,
    /// The JSON Schema of what the model sends along, or a file that holds it.
    pub(crate) payload: Option<SchemaShape>,
    /// What changes what the next agent sees, in this order.
    pub(crate) filters: Option<Vec<FilterShape>>,
    /// When the handoff is there: a condition over the context, such as
    /// `tier in ["premium", "gold"] and not banned`.
    pub(crate) when: Option<String>,
    /// Whether the history becomes one summary for the next agent.
    pub(crate) nest_history: Option<bool>,
    /// Checks on the payload and on what would be carried over; one that trips refuses the handoff, and
    /// the model is told why.
    #[serde(default)]
    pub(crate) guardrails: Vec<String>,
}

/// A JSON Schema, or a file that holds it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "schema")]
#[serde(untagged)]
pub(crate) enum SchemaShape {
    /// A file of JSON or TOML that holds the schema.
    File(FileShape),
    /// The schema itself.
    Inline(Map<String, Value>),
}

/// A filter on what the next agent sees.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "filter")]
#[serde(rename_all = "snake_case")]
pub(crate) enum FilterShape {
    /// Leaves tool calls and their outputs out.
    RemoveAllTools,
    /// Leaves the models' reasoning out.
    DropReasoning,
    /// Makes the history one summary.
    NestHistory,
    /// Hides card numbers, social security numbers, e-mail addresses and phone numbers.
    RedactPii,
    /// Hides what is named.
    Redact(RedactShape),
    /// Keeps so many of the latest items.
    KeepLast(u32),
    /// Keeps items from the beginning and from the end.
    KeepFirstAndLast(KeepBothShape),
    /// Keeps the latest items that fit into so many tokens, roughly counted.
    TokenBudget(u32),
    /// Tells the next agent something.
    Note(String),
    /// Has a model sum up all but the latest items.
    Summarize(SummarizeShape),
}

/// What a redaction hides.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "redaction")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RedactShape {
    /// Numbers of payment cards.
    pub(crate) card_numbers: bool,
    /// Social security numbers.
    pub(crate) social_security_numbers: bool,
    /// E-mail addresses.
    pub(crate) emails: bool,
    /// Phone numbers.
    pub(crate) phone_numbers: bool,
    /// Regular expressions, each with what is put in its place.
    pub(crate) patterns: IndexMap<String, String>,
}

/// How many items are kept at both ends.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "keep_first_and_last")]
#[serde(deny_unknown_fields)]
pub(crate) struct KeepBothShape {
    /// So many from the beginning.
    pub(crate) first: u32,
    /// So many from the end.
    pub(crate) last: u32,
}

/// How a conversation is summed up.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "summary")]
#[serde(deny_unknown_fields)]
pub(crate) struct SummarizeShape {
    /// The model that sums up; see `model` at the top.
    pub(crate) model: String,
    /// How many of the latest items stay as they are.
    pub(crate) keep_last: u32,
}

/// A tool: exactly one of `http`, `command` and `records` says what it does.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "tool")]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolShape {
    /// What the model is told of the tool.
    pub(crate) description: String,
    /// The JSON Schema of its arguments, or a file that holds it. Without it the tool takes none.
    pub(crate) parameters: Option<SchemaShape>,
    /// When the tool is there: a condition over the context.
    pub(crate) when: Option<String>,
    /// Asks a server.
    pub(crate) http: Option<HttpShape>,
    /// Starts a program, without a shell.
    pub(crate) command: Option<CommandShape>,
    /// Looks something up in a file.
    pub(crate) records: Option<RecordsShape>,
    /// How long it may take.
    #[serde(default = "ten")]
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 3600))]
    pub(crate) timeout_seconds: f64,
    /// How much of its output the model is shown.
    #[serde(default = "many")]
    #[schemars(extend("minimum" = 1, "maximum" = 4194304))]
    pub(crate) max_output_bytes: u32,
}

fn ten() -> f64 {
    10.0
}

fn many() -> u32 {
    16 * 1024
}

/// A request to a server. `{name}` stands for an argument and `{context.name}` for a value of the
/// context; what they hold stays within the part of the address or the text it is put into.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "http call")]
#[serde(deny_unknown_fields)]
pub(crate) struct HttpShape {
    /// The address, such as `https://api.example.com/invoices/{number}`. Nothing can be filled into
    /// the server's name.
    pub(crate) url: String,
    /// The method.
    #[serde(default)]
    pub(crate) method: MethodShape,
    /// Parameters behind the `?`. One whose argument is absent is left out.
    #[serde(default)]
    pub(crate) query: IndexMap<String, String>,
    /// Headers. Nothing that a model sends can be filled into `Authorization` and `Cookie`.
    #[serde(default)]
    pub(crate) headers: IndexMap<String, ValueShape>,
    /// The JSON to send. A text that is only `{name}` becomes the argument as it is, a number too.
    /// Without it, `POST`, `PUT` and `PATCH` send all arguments.
    pub(crate) body: Option<Value>,
}

/// The method of a request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "method")]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum MethodShape {
    #[default]
    Get,
    Post,
    Put,
    Patch,
    Delete,
}

/// Text, or a variable of the environment.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "value")]
#[serde(untagged)]
pub(crate) enum ValueShape {
    /// The text itself.
    Text(String),
    /// What a variable of the environment holds.
    Env(EnvShape),
}

/// A variable of the environment.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "variable")]
#[serde(deny_unknown_fields)]
pub(crate) struct EnvShape {
    /// The variable's name.
    pub(crate) env: String,
    /// What is put in front of it, such as `Bearer `.
    #[serde(default)]
    pub(crate) prefix: String,
}

/// A program and its arguments. It is started as it stands, without a shell.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "command")]
#[serde(deny_unknown_fields)]
pub(crate) struct CommandShape {
    /// The program, which `commands.allow` must have, and its arguments. `{name}` stands for an
    /// argument of the tool and `{context.name}` for a value of the context; each stays within the
    /// argument it stands in.
    pub(crate) run: Vec<String>,
    /// What the program reads: text like that of an argument. Without it, nothing.
    pub(crate) stdin: Option<String>,
    /// Variables of the environment that the program gets beside `PATH`, where they are set.
    #[serde(default)]
    pub(crate) env: Vec<String>,
}

/// A file with a table of records, looked up by an argument.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "records")]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordsShape {
    /// A file of JSON or TOML: a table whose fields are the records.
    pub(crate) file: String,
    /// The argument that holds the name of a record.
    pub(crate) by: String,
}

/// The programs that tools may start.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "allow-list")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CommandsShape {
    /// Their names, looked for in `PATH`, or paths from the folder of the team file.
    pub(crate) allow: Vec<String>,
}

/// A check on text. What is given is looked for; any of it trips the guardrail.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "guardrail")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GuardrailShape {
    /// Regular expressions.
    pub(crate) patterns: Vec<String>,
    /// Words and phrases, in any case, or a file with one a line.
    pub(crate) deny: Option<DenyShape>,
    /// The longest text, in characters. With `then = "redact"` what is longer is cut off.
    pub(crate) max_length: Option<u32>,
    /// What then happens.
    pub(crate) then: ThenShape,
    /// What is said when it trips.
    pub(crate) message: Option<String>,
}

/// Words, or a file that holds them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "deny-list")]
#[serde(untagged)]
pub(crate) enum DenyShape {
    /// The words themselves.
    Words(Vec<String>),
    /// A file with one a line.
    File(FileShape),
}

/// What happens when a guardrail trips.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "consequence")]
#[serde(rename_all = "snake_case")]
pub(crate) enum ThenShape {
    /// The run stops; a handoff is refused.
    #[default]
    Stop,
    /// What was found is hidden and the run goes on. Not for handoffs, which have filters for it.
    Redact,
}

/// A model at a server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "model")]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelShape {
    /// The model's name at the server.
    pub(crate) name: String,
    /// The server, such as `http://localhost:11434/v1`. Without it, OpenAI's.
    pub(crate) base_url: Option<String>,
    /// The protocol.
    #[serde(default)]
    pub(crate) api: ApiShape,
    /// The key.
    pub(crate) key: Option<EnvShape>,
    /// Further headers.
    #[serde(default)]
    pub(crate) headers: IndexMap<String, ValueShape>,
    /// How often a request is tried again.
    pub(crate) retries: Option<u32>,
    /// How long an answer may take.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 86400))]
    pub(crate) timeout_seconds: Option<f64>,
}

/// A protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "protocol")]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApiShape {
    /// OpenAI's Responses.
    #[default]
    Responses,
    /// Chat Completions: Ollama, vLLM, llama.cpp, most gateways.
    Chat,
}

/// How a model is to answer. What is absent is the provider's default.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "settings")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SettingsShape {
    /// Randomness of sampling.
    pub(crate) temperature: Option<f64>,
    /// Share of the probability mass to sample from.
    pub(crate) top_p: Option<f64>,
    /// Penalty for repeating tokens by how often they occurred.
    pub(crate) frequency_penalty: Option<f64>,
    /// Penalty for repeating tokens at all.
    pub(crate) presence_penalty: Option<f64>,
    /// Whether the model must call a tool: `auto`, `required`, `none`, or the name of a tool.
    pub(crate) tool_choice: Option<String>,
    /// Whether the model may call several tools in one answer.
    pub(crate) parallel_tool_calls: Option<bool>,
    /// What the provider does with a conversation that is too long: `auto` or `disabled`.
    pub(crate) truncation: Option<String>,
    /// The longest answer, in tokens.
    pub(crate) max_tokens: Option<u32>,
    /// How much the model thinks: `minimal`, `low`, `medium`, `high`, or what else the provider knows.
    pub(crate) reasoning_effort: Option<String>,
    /// How wordy the answer is: `low`, `medium`, `high`.
    pub(crate) verbosity: Option<String>,
    /// Whether the provider keeps the answer.
    pub(crate) store: Option<bool>,
    /// Further fields of the request body.
    pub(crate) extra_body: Map<String, Value>,
}

/// Settings of every run.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "run settings")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunShape {
    /// How many turns a run may take, over all agents. Without it, 10.
    #[schemars(extend("minimum" = 1))]
    pub(crate) max_turns: Option<u32>,
    /// Whether handoffs that do not say otherwise make the history one summary.
    pub(crate) nest_history: bool,
    /// The filters of handoffs that have none.
    pub(crate) filters: Vec<FilterShape>,
    /// Checks on what the user says, whoever is the first agent.
    pub(crate) input_guardrails: Vec<String>,
    /// Checks on the final answer, whoever gives it.
    pub(crate) output_guardrails: Vec<String>,
    /// Checks on every handoff.
    pub(crate) handoff_guardrails: Vec<String>,
    /// How many tools of one answer run side by side. Without it, all.
    #[schemars(extend("minimum" = 1))]
    pub(crate) tool_concurrency: Option<u32>,
    /// How many of a session's latest items a run begins with. Without it, all.
    pub(crate) session_limit: Option<u32>,
}
