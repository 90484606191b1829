//! The JSON format of a case.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::payloads::TypeName;

#[derive(Debug, Deserialize)]
pub(crate) struct Case {
    pub(crate) agents: Vec<AgentCase>,
    pub(crate) start: String,
    #[serde(default)]
    pub(crate) input: Value,
    #[serde(default)]
    pub(crate) turns: Vec<Value>,
    #[serde(default)]
    pub(crate) session: bool,
    #[serde(default)]
    pub(crate) context: Value,
    pub(crate) max_turns: Option<u32>,
    #[serde(default)]
    pub(crate) run_config: ConfigCase,
    pub(crate) history_wrappers: Option<Wrappers>,
    pub(crate) model: Vec<ScriptedReply>,
    /// Of a run in stages, instead of `input` and `turns`.
    #[serde(default)]
    pub(crate) stages: Vec<StageCase>,
}

/// One action of the application in a run in stages.
#[derive(Debug, Deserialize)]
pub(crate) struct StageCase {
    /// The input that begins a run.
    #[serde(default)]
    pub(crate) input: Value,
    /// The decisions after which the state of the stage before is resumed.
    pub(crate) decisions: Option<Value>,
    pub(crate) again: Option<usize>,
    pub(crate) max_turns: Option<u32>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AgentCase {
    pub(crate) name: String,
    pub(crate) instructions: Option<String>,
    pub(crate) handoff_description: Option<String>,
    #[serde(default)]
    pub(crate) hooks: bool,
    #[serde(default)]
    pub(crate) tools: Vec<ToolCase>,
    #[serde(default)]
    pub(crate) handoffs: Vec<HandoffCase>,
    #[serde(default)]
    pub(crate) input_guardrails: Vec<GuardrailCase>,
    #[serde(default)]
    pub(crate) output_guardrails: Vec<GuardrailCase>,
    pub(crate) output_type: Option<TypeName>,
    pub(crate) tool_use_behavior: Option<Value>,
    /// The agent's own script. Agents without one share that of the case.
    pub(crate) model: Option<Vec<ScriptedReply>>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToolCase {
    /// An agent tool without a name has the default name.
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) is_enabled: Option<EnabledCase>,
    pub(crate) needs_approval: Option<Value>,
    #[serde(default)]
    pub(crate) input_guardrails: Vec<ToolGuardrailCase>,
    #[serde(default)]
    pub(crate) output_guardrails: Vec<ToolGuardrailCase>,
    #[serde(flatten)]
    pub(crate) kind: ToolKind,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum ToolKind {
    Agent(Box<AgentToolCase>),
    Function(Box<FunctionToolCase>),
}

#[derive(Debug, Deserialize)]
pub(crate) struct FunctionToolCase {
    pub(crate) parameters: Option<Value>,
    #[serde(default)]
    pub(crate) returns: Value,
    /// The failure that the model is told of.
    pub(crate) fails: Option<String>,
    /// The failure that ends the run.
    pub(crate) raises: Option<String>,
    /// Fields to set in the context after the call.
    #[serde(default)]
    pub(crate) sets: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct AgentToolCase {
    /// The agent's name.
    pub(crate) agent_tool: String,
    pub(crate) max_turns: Option<u32>,
    #[serde(default)]
    pub(crate) hooks: bool,
    pub(crate) session: Option<ToolSession>,
    pub(crate) run_config: Option<ConfigCase>,
    #[serde(default)]
    pub(crate) failure: FailureCase,
    pub(crate) parameters: Option<TypeName>,
    #[serde(default)]
    pub(crate) include_input_schema: bool,
    pub(crate) input_builder: Option<InputBuilder>,
    pub(crate) output_extractor: Option<Extractor>,
    pub(crate) on_stream: Option<Value>,
}

/// The session of an agent tool.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolSession {
    /// One of the tool, for the whole scenario.
    Own,
    /// That of the run.
    Shared,
}

/// The consequence of a failure of an agent tool.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureCase {
    #[default]
    Default,
    /// The run ends.
    Raise,
    /// The model gets this text.
    #[serde(untagged)]
    Says { says: String },
}

/// The function that makes an agent's input of the arguments.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum InputBuilder {
    /// A text, with the fields in braces filled in.
    Text(String),
    /// A user message for each field.
    Messages(bool),
    Fails(String),
}

/// The function that makes an agent tool's answer of the result.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Extractor {
    LastToolOutput,
    Messages,
    LastAgent,
    Invocation,
    Prefix(String),
    Fails(String),
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ToolGuardrailCase {
    pub(crate) name: String,
    /// The text that it looks for.
    pub(crate) on: String,
    pub(crate) does: ToolGuardrailAction,
    #[serde(default)]
    pub(crate) message: String,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ToolGuardrailAction {
    Reject,
    Raise,
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum HandoffCase {
    Name(String),
    Detailed(Box<DetailedHandoff>),
}

#[derive(Debug, Deserialize)]
pub(crate) struct DetailedHandoff {
    pub(crate) agent: String,
    pub(crate) tool_name_override: Option<String>,
    pub(crate) tool_description_override: Option<String>,
    pub(crate) input_type: Option<TypeName>,
    #[serde(default)]
    pub(crate) on_handoff: bool,
    pub(crate) on_handoff_fails: Option<String>,
    pub(crate) input_filter: Option<Value>,
    pub(crate) nest_handoff_history: Option<bool>,
    pub(crate) is_enabled: Option<EnabledCase>,
}

#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum EnabledCase {
    Fixed(bool),
    Context { context: String, equals: Value },
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct GuardrailCase {
    pub(crate) name: String,
    pub(crate) trips_on: String,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ConfigCase {
    #[serde(default)]
    pub(crate) nest_handoff_history: bool,
    pub(crate) handoff_input_filter: Option<Value>,
    pub(crate) handoff_history_mapper: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Wrappers {
    pub(crate) start: Option<String>,
    pub(crate) end: Option<String>,
}

/// One reply of the scripted model: output items or an error.
#[derive(Debug, Deserialize)]
pub(crate) struct ScriptedReply {
    pub(crate) output: Option<Vec<Value>>,
    pub(crate) error: Option<String>,
    #[serde(default)]
    pub(crate) usage: TokenCounts,
    /// The text that the input of the call must contain.
    pub(crate) when: Option<String>,
}

/// The tokens that a reply used.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
pub(crate) struct TokenCounts {
    pub(crate) input: u64,
    pub(crate) output: u64,
}
