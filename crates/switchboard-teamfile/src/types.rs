//! The types of a team file.
//!
//! The JSON Schema, against which files are validated, is generated from them. Their doc comments are
//! its descriptions, which editors and diagnostics show.

mod filters;
mod policies;
mod tools;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::file_refs::FileRef;
pub(crate) use filters::{FilterSpec, PiiSpec, PlaceholdersSpec, RedactPiiSpec, RedactSpec};
pub(crate) use policies::{
    AnnouncedSpec, ApprovalGuardrailsSpec, AtBudgetSpec, AtLoopLimitSpec, BranchFailuresSpec,
    BudgetSpec, DeliverSpec, FanOutSpec, HandoffRuleSpec, LimitSpec, LoopsSpec, PolicySpec,
    PriceSpec, ResumeChecksSpec, RetriesSpec, ReturnSpec, SeveralHandoffsSpec,
};
pub(crate) use tools::{
    AllowListSpec, CommandSpec, EnvVarSpec, HttpSpec, MethodSpec, RecordsSpec, ToolSpec, ValueSpec,
};

/// A team of agents, with their tools and handoffs.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "team file")]
#[serde(deny_unknown_fields)]
pub(crate) struct TeamSpec {
    /// The location of this file's schema, for editors.
    #[serde(rename = "$schema", default)]
    #[expect(dead_code, reason = "only editors read it")]
    pub(crate) schema: Option<String>,
    /// The name of the team. Its conversations store it, and those of a team of another name are refused.
    pub(crate) name: Option<String>,
    /// A description of the team in a sentence.
    pub(crate) description: Option<String>,
    /// The agent that gets the conversation first. Without it, the first agent of the file.
    pub(crate) start: Option<String>,
    /// The default model of agents: `offline`, an entry of `models`, `openai/NAME` (Responses) or
    /// `chat/NAME` (Chat Completions). Without it, `offline`.
    pub(crate) model: Option<String>,
    /// Settings of models; agents may override each field.
    #[serde(default)]
    pub(crate) settings: SettingsSpec,
    /// Values of the application, with their defaults. Conditions and tools read them; models never see
    /// them. `--context tier=premium` sets one.
    #[serde(default)]
    pub(crate) context: Map<String, Value>,
    /// The agents, by name.
    pub(crate) agents: IndexMap<String, AgentSpec>,
    /// Tools that agents can be given, by name.
    #[serde(default)]
    pub(crate) tools: IndexMap<String, ToolSpec>,
    /// Guardrails that agents, handoffs and runs can be given, by name.
    #[serde(default)]
    pub(crate) guardrails: IndexMap<String, GuardrailSpec>,
    /// Models at servers, by the name that agents use.
    #[serde(default)]
    pub(crate) models: IndexMap<String, ModelSpec>,
    /// The prices of models, by the name that agents use: for budgets of cost, limits of a service's keys, and the studio.
    #[serde(default)]
    pub(crate) prices: IndexMap<String, PriceSpec>,
    /// The programs that tools may start.
    #[serde(default)]
    pub(crate) commands: AllowListSpec,
    /// Settings of every run.
    #[serde(default)]
    pub(crate) run: RunSpec,
    /// Settings of conversations that are stored.
    #[serde(default)]
    pub(crate) conversations: ConversationsSpec,
}

/// One agent.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "agent")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct AgentSpec {
    /// A description for the models of other agents: when to hand over to this one.
    pub(crate) description: Option<String>,
    /// If true, a person answers for the agent: the run waits until the person has replied or handed the
    /// conversation on. A person has no model, instructions and tools.
    pub(crate) person: bool,
    /// The agent of another server that answers for this one, over A2A: its address, or a table with its key. Its
    /// instructions, knowledge and tools are its own.
    pub(crate) a2a: Option<RemoteSpec>,
    /// The instructions for the agent's model.
    pub(crate) instructions: Option<TextSpec>,
    /// If true, a paragraph on handoffs and the names of the other agents precedes the instructions.
    pub(crate) explain_handoffs: bool,
    /// The agent's model; see `model` at the top.
    pub(crate) model: Option<String>,
    /// Settings of its model.
    pub(crate) settings: SettingsSpec,
    /// Facts that it can answer from.
    pub(crate) knowledge: Vec<KnowledgeSpec>,
    /// The names of its tools.
    pub(crate) tools: Vec<String>,
    /// The next step after its tools have run.
    pub(crate) after_tools: AfterToolsSpec,
    /// The JSON Schema of its final answer, or a file that holds it. Without it the answer is text.
    pub(crate) output: Option<SchemaSpec>,
    /// The agents that it can hand the conversation to.
    pub(crate) handoffs: Vec<HandoffSpec>,
    /// Checks on the user's input, if the agent is the first of a run.
    pub(crate) input_guardrails: Vec<String>,
    /// Checks on its final answer.
    pub(crate) output_guardrails: Vec<String>,
    /// The agent that gets the next message after this one has answered, instead of the setting in
    /// `conversations`.
    pub(crate) active_agent: Option<ActiveAgentSpec>,
    /// The budget of the agent in one run.
    pub(crate) budget: Option<BudgetSpec>,
}

/// An agent of another server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "remote agent")]
#[serde(untagged)]
pub(crate) enum RemoteSpec {
    /// Its address, such as `https://travel.example/a2a/travel`, below which its card is.
    Address(String),
    /// Its address and settings.
    Table(RemoteTableSpec),
}

/// The address and settings of an agent of another server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "address of a remote agent")]
#[serde(deny_unknown_fields)]
pub(crate) struct RemoteTableSpec {
    /// Its address, such as `https://travel.example/a2a/travel`, below which its card is.
    pub(crate) url: String,
    /// The key.
    pub(crate) key: Option<EnvVarSpec>,
    /// Further headers.
    #[serde(default)]
    pub(crate) headers: IndexMap<String, ValueSpec>,
    /// The maximum duration of an answer.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 86400))]
    pub(crate) timeout_seconds: Option<f64>,
    /// Other servers at which the card may say that the agent is, such as `https://rpc.travel.example`.
    #[serde(default)]
    pub(crate) endpoints: Vec<String>,
}

impl RemoteSpec {
    /// The address.
    pub(crate) fn url(&self) -> &str {
        match self {
            Self::Address(url) => url,
            Self::Table(table) => &table.url,
        }
    }

    /// The settings beside the address.
    pub(crate) fn table(&self) -> Option<&RemoteTableSpec> {
        match self {
            Self::Address(_) => None,
            Self::Table(table) => Some(table),
        }
    }
}

/// Text, or a file that holds it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "text")]
#[serde(untagged)]
pub(crate) enum TextSpec {
    /// The text itself.
    Inline(String),
    /// The text of a file.
    File(FileSpec),
}

/// A file, relative to the folder of the team file.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "file")]
#[serde(deny_unknown_fields)]
pub(crate) struct FileSpec {
    /// The path of the file.
    pub(crate) file: String,
    /// Allows a file outside the folder of the team file: an absolute path, one with `..`, or a link that
    /// leads out.
    #[serde(default)]
    pub(crate) outside: bool,
}

impl FileSpec {
    pub(crate) fn reference(&self) -> FileRef<'_> {
        FileRef {
            name: &self.file,
            is_outside_allowed: self.outside,
        }
    }
}

/// Knowledge of an agent.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "knowledge")]
#[serde(untagged)]
pub(crate) enum KnowledgeSpec {
    /// One entry.
    Entry(KnowledgeEntrySpec),
    /// A Markdown file of entries: each heading is a title, followed by its text.
    File(FileSpec),
}

/// One entry of an agent's knowledge.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "knowledge entry")]
#[serde(deny_unknown_fields)]
pub(crate) struct KnowledgeEntrySpec {
    /// The subject: a question, a title, keywords.
    pub(crate) title: String,
    /// The answer.
    pub(crate) text: String,
}

/// The next step after an agent's tools have run.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "after_tools behavior")]
#[serde(rename_all = "snake_case")]
pub(crate) enum AfterToolsSpec {
    /// The model runs again with the outputs.
    #[default]
    RunModelAgain,
    /// The first tool's output is the answer.
    StopOnFirstTool,
    /// The output of one of these tools is the answer.
    StopAt(Vec<String>),
}

/// A handoff: the name of an agent, or a table.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "handoff")]
#[serde(untagged)]
pub(crate) enum HandoffSpec {
    /// The agent that gets the conversation.
    Agent(String),
    /// The agent and options of the handoff.
    Table(Box<HandoffTableSpec>),
}

/// A handoff with its options, with exactly one of `to` and `return`.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "handoff table")]
#[serde(deny_unknown_fields)]
pub(crate) struct HandoffTableSpec {
    /// The agent that gets the conversation.
    #[serde(default)]
    pub(crate) to: String,
    /// Hands the conversation back, instead of to an agent that is named.
    #[serde(rename = "return")]
    pub(crate) return_to: Option<ReturnSpec>,
    /// A description for the model: when to hand over. Without it, the other agent's description.
    pub(crate) description: Option<String>,
    /// The name of the handoff's tool. Without it, `transfer_to_` and the agent's name.
    pub(crate) tool_name: Option<String>,
    /// The JSON Schema of the payload that the model sends along, or a file that holds it.
    pub(crate) payload: Option<SchemaSpec>,
    /// The ways in which the payload reaches the next agent.
    #[serde(default)]
    pub(crate) deliver: Vec<DeliverSpec>,
    /// The JSON Schema of a result, or a file that holds it: the next agent gets the tool `hand_back`, which
    /// hands the conversation back with such a result.
    pub(crate) returns: Option<SchemaSpec>,
    /// Filters on the items that the agent sees when the conversation is handed back with `returns`.
    pub(crate) return_filters: Option<Vec<FilterSpec>>,
    /// The condition on the context under which the handoff is made without the model, before a turn of
    /// the agent.
    pub(crate) before_turn: Option<String>,
    /// The condition on the context under which the handoff is made without the model, after a turn of the
    /// agent.
    pub(crate) after_turn: Option<String>,
    /// If true, the model is not offered the handoff: only `before_turn`, `after_turn` and redirects make it.
    #[serde(default)]
    pub(crate) hidden: bool,
    /// Filters on the items that the next agent sees, in this order.
    pub(crate) filters: Option<Vec<FilterSpec>>,
    /// The condition under which the handoff is available, such as
    /// `tier in ["premium", "gold"] and not banned`.
    pub(crate) when: Option<String>,
    /// If true, a person must approve the handoff. Or the condition under which a person must, such as
    /// `payload.priority == "urgent"`.
    pub(crate) approve: Option<ApproveSpec>,
    /// Rules that refuse the handoff or lead it to another agent. The first one that applies decides,
    /// before a person is asked.
    #[serde(default)]
    pub(crate) rules: Vec<HandoffRuleSpec>,
    /// The budget of the next agent, as long as it has the conversation by this handoff.
    pub(crate) budget: Option<BudgetSpec>,
    /// If true, the next agent sees the history as one summary.
    pub(crate) nest_history: Option<bool>,
    /// Checks on the payload and on the items that the next agent would see. One that trips refuses the
    /// handoff and tells the model why.
    #[serde(default)]
    pub(crate) guardrails: Vec<String>,
}

/// The calls that a person must approve.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "approval")]
#[serde(untagged)]
pub(crate) enum ApproveSpec {
    /// All calls, or none.
    Always(bool),
    /// The calls for which a condition holds.
    When(String),
}

/// A JSON Schema, or a file that holds it.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "schema")]
#[serde(untagged)]
pub(crate) enum SchemaSpec {
    /// A JSON or TOML file that holds the schema.
    File(FileSpec),
    /// The schema itself.
    Inline(Map<String, Value>),
}

/// A check on text. Any match, or too long a text, trips the guardrail.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "guardrail")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct GuardrailSpec {
    /// Regular expressions.
    pub(crate) patterns: Vec<String>,
    /// Words and phrases, in any case, or a file with one per line.
    pub(crate) deny: Option<DenyListSpec>,
    /// The maximum length of the text, in characters. With `then = "redact"` the rest is cut off.
    pub(crate) max_length: Option<u32>,
    /// The action when it trips.
    pub(crate) then: GuardrailAction,
    /// The message when it trips.
    pub(crate) message: Option<String>,
}

/// Words, or a file that holds them.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "deny-list")]
#[serde(untagged)]
pub(crate) enum DenyListSpec {
    /// The words themselves.
    Words(Vec<String>),
    /// A file with one per line.
    File(FileSpec),
}

/// The action when a guardrail trips.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "guardrail action")]
#[serde(rename_all = "snake_case")]
pub(crate) enum GuardrailAction {
    /// The run stops; a handoff is refused.
    #[default]
    Stop,
    /// The matches are redacted and the run continues. Not for handoffs, which have filters for it.
    Redact,
}

/// A model at a server.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[schemars(rename = "model")]
#[serde(deny_unknown_fields)]
pub(crate) struct ModelSpec {
    /// The model's name at the server.
    pub(crate) name: String,
    /// The server, such as `http://localhost:11434/v1`. Without it, OpenAI's.
    pub(crate) base_url: Option<String>,
    /// The protocol.
    #[serde(default)]
    pub(crate) api: ApiSpec,
    /// The key.
    pub(crate) key: Option<EnvVarSpec>,
    /// Further headers.
    #[serde(default)]
    pub(crate) headers: IndexMap<String, ValueSpec>,
    /// The maximum number of retries of a request.
    pub(crate) retries: Option<u32>,
    /// The maximum duration of a request.
    #[schemars(extend("exclusiveMinimum" = 0, "maximum" = 86400))]
    pub(crate) timeout_seconds: Option<f64>,
}

/// A protocol.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "protocol")]
#[serde(rename_all = "snake_case")]
pub(crate) enum ApiSpec {
    /// OpenAI's Responses.
    #[default]
    Responses,
    /// Chat Completions: Ollama, vLLM, llama.cpp, most gateways.
    Chat,
}

/// Settings of a model. Without a field, the provider's default.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "settings")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SettingsSpec {
    /// Randomness of sampling.
    pub(crate) temperature: Option<f64>,
    /// Share of the probability mass to sample from.
    pub(crate) top_p: Option<f64>,
    /// Penalty for repeating tokens by how often they occurred.
    pub(crate) frequency_penalty: Option<f64>,
    /// Penalty for repeating tokens at all.
    pub(crate) presence_penalty: Option<f64>,
    /// The tool that the model must call: `auto`, `required`, `none`, or the name of a tool.
    pub(crate) tool_choice: Option<String>,
    /// If true, the model may call several tools in one answer.
    pub(crate) parallel_tool_calls: Option<bool>,
    /// The provider's handling of a conversation that is too long: `auto` or `disabled`.
    pub(crate) truncation: Option<String>,
    /// The maximum length of an answer, in tokens.
    pub(crate) max_tokens: Option<u32>,
    /// The reasoning effort: `minimal`, `low`, `medium`, `high`, or another one of the provider.
    pub(crate) reasoning_effort: Option<String>,
    /// The verbosity of answers: `low`, `medium`, `high`.
    pub(crate) verbosity: Option<String>,
    /// If true, the provider stores the answer.
    pub(crate) store: Option<bool>,
    /// Further fields of the request body.
    pub(crate) extra_body: Map<String, Value>,
}

/// Settings of every run.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "run settings")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RunSpec {
    /// The maximum number of turns of a run, over all agents. Without it, 10.
    #[schemars(extend("minimum" = 1))]
    pub(crate) max_turns: Option<u32>,
    /// The default of `nest_history` for handoffs.
    pub(crate) nest_history: bool,
    /// The filters of handoffs that have none.
    pub(crate) filters: Vec<FilterSpec>,
    /// Checks on the user's input, for any first agent.
    pub(crate) input_guardrails: Vec<String>,
    /// Checks on the final answer of any agent.
    pub(crate) output_guardrails: Vec<String>,
    /// Checks on every handoff.
    pub(crate) handoff_guardrails: Vec<String>,
    /// The maximum number of tools of one answer that run at the same time. Without it, all.
    #[schemars(extend("minimum" = 1))]
    pub(crate) tool_concurrency: Option<u32>,
    /// The number of a session's latest items that a run starts with. Without it, all.
    pub(crate) session_limit: Option<u32>,
    /// The policy for handoffs and approvals; the fields below change single points of it.
    pub(crate) policy: PolicySpec,
    /// The number of failed handoffs that a model is told of.
    pub(crate) retries: Option<RetriesSpec>,
    /// Limits on handoffs that go in circles.
    pub(crate) loops: LoopsSpec,
    /// The choice among several handoffs in one answer.
    pub(crate) several_handoffs: Option<SeveralHandoffsSpec>,
    /// Answers that announce a handoff and do not make it: the model is asked once more to make it.
    pub(crate) announced_handoffs: Option<AnnouncedSpec>,
    /// The time at which guardrails look at a call that needs approval.
    pub(crate) approval_guardrails: Option<ApprovalGuardrailsSpec>,
    /// The time at which a resumed run is checked.
    pub(crate) resume_checks: Option<ResumeChecksSpec>,
    /// The budget of a run.
    pub(crate) budget: Option<BudgetSpec>,
    /// The consequence of using up a budget of the run, an agent or a handoff. Without it, the run fails.
    pub(crate) at_budget: Option<AtBudgetSpec>,
    /// If true, a request is not sent where its input alone, by an estimate, is more than the tokens or the cost
    /// that are left.
    pub(crate) estimate_input: bool,
}

/// Settings of conversations that are stored.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[schemars(rename = "conversations")]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ConversationsSpec {
    /// The address of the store: `sqlite:PATH` (relative to the folder of this file),
    /// `postgres://...` or `redis://...`. `--store` takes precedence; without both, conversations are in
    /// the program's data folder.
    pub(crate) store: Option<ValueSpec>,
    /// The agent that gets the next message.
    pub(crate) active_agent: ActiveAgentSpec,
    /// The number of tokens, estimated, from which on the older part of a conversation is replaced by a
    /// summary that the agent's model writes. Without it, never.
    #[schemars(extend("minimum" = 1))]
    pub(crate) compact_at: Option<u32>,
    /// The number of seconds that a run waits for another one with the same conversation, also of another
    /// program. Without it, of two at once the slower one fails.
    pub(crate) exclusive: Option<u32>,
    /// Keep what guardrails refuse in the record of the conversation, for review. No model is shown it.
    pub(crate) keep_refused: bool,
}

/// The agent that gets the next message of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[schemars(rename = "active agent")]
#[serde(rename_all = "snake_case")]
pub(crate) enum ActiveAgentSpec {
    /// The agent that gave the last answer.
    #[default]
    Stay,
    /// The agent that the team starts with.
    ReturnToStart,
}

impl AgentSpec {
    /// The handoffs that are written as tables.
    pub(crate) fn handoff_tables(&self) -> impl Iterator<Item = &HandoffTableSpec> {
        self.handoffs.iter().filter_map(|handoff| match handoff {
            HandoffSpec::Table(table) => Some(&**table),
            HandoffSpec::Agent(_) => None,
        })
    }
}

impl HandoffSpec {
    /// The agent that gets the conversation.
    pub(crate) fn target(&self) -> &str {
        match self {
            Self::Agent(name) => name,
            Self::Table(table) => &table.to,
        }
    }
}

impl HandoffTableSpec {
    /// A handoff without options.
    pub(crate) fn to(agent: &str) -> Self {
        Self {
            to: agent.to_owned(),
            ..Self::default()
        }
    }
}
