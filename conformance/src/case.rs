//! The JSON format of a case.

use std::num::NonZeroUsize;

use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};
use switchboard_core::tool::OutputPart;

use crate::payloads::{LenientTypeName, TypeName};

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
    /// The parts of a run that are recorded in addition.
    #[serde(default)]
    pub(crate) records: Vec<Record>,
    /// The items in the session before the first turn.
    #[serde(default)]
    pub(crate) session_starts_with: Vec<Value>,
    pub(crate) conversation_id: Option<String>,
    pub(crate) previous_response_id: Option<String>,
    #[serde(default)]
    pub(crate) auto_previous_response_id: bool,
    #[serde(default)]
    pub(crate) error_handlers: ErrorHandlersCase,
}

impl Case {
    /// Returns `true` if the provider keeps the conversation, so that only new items are sent.
    pub(crate) fn is_kept_by_the_provider(&self) -> bool {
        self.conversation_id.is_some()
            || self.previous_response_id.is_some()
            || self.auto_previous_response_id
    }
}

/// A part of a run that is compared only in cases that ask for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record {
    /// The tokens of the run and of each request.
    Usage,
    /// The context at the end.
    Context,
    /// The settings of each model call.
    Settings,
    /// The output type in each model call.
    OutputSchema,
    /// The conversation that the provider keeps, in each model call.
    Server,
    /// The schemas of tools, in each model call.
    ToolSchemas,
}

/// The functions that give a final output in place of an error.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ErrorHandlersCase {
    #[serde(default, deserialize_with = "present")]
    pub(crate) max_turns: Option<Option<HandlerCase>>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) model_refusal: Option<Option<HandlerCase>>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) invalid_final_output: Option<Option<HandlerCase>>,
}

/// The answer of an error handler.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum HandlerCase {
    Fails {
        fails: String,
    },
    Output {
        final_output: Value,
        #[serde(default = "yes")]
        include_in_history: bool,
    },
}

/// Reads a field for which null is not the same as absent.
fn present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

fn yes() -> bool {
    true
}

/// One action of the application in a run in stages.
#[derive(Debug, Deserialize)]
pub(crate) struct StageCase {
    /// The input that begins a run.
    #[serde(default)]
    pub(crate) input: Value,
    /// The decisions after which the state of the stage before is resumed.
    pub(crate) decisions: Option<Vec<DecisionCase>>,
    /// The stage whose state is resumed, instead of the stage before.
    pub(crate) again: Option<usize>,
    pub(crate) max_turns: Option<u32>,
}

/// A decision of a person, or what is added to a run that waits for one.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum DecisionCase {
    AddInput {
        add_input: Value,
    },
    Call {
        call_id: String,
        #[serde(default)]
        approve: bool,
        #[serde(default)]
        always: bool,
        message: Option<String>,
        /// The tool and the arguments of a call that nobody made.
        #[serde(default)]
        tool: String,
        #[serde(default)]
        arguments: String,
    },
}

/// The need of approval of a tool's calls.
#[derive(Debug, Clone, Deserialize)]
#[serde(untagged)]
pub(crate) enum ApprovalCase {
    Fixed(bool),
    Condition(ApprovalCondition),
}

#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ApprovalCondition {
    pub(crate) argument: Option<String>,
    pub(crate) context: Option<String>,
    #[serde(default)]
    pub(crate) equals: Value,
    /// The number that the argument must be greater than.
    pub(crate) over: Option<f64>,
    pub(crate) fails: Option<String>,
    /// The time that the condition takes.
    pub(crate) async_ms: Option<u64>,
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
    pub(crate) output_type: Option<OutputTypeCase>,
    pub(crate) tool_use_behavior: Option<Value>,
    pub(crate) model_settings: Option<SettingsCase>,
    pub(crate) reset_tool_choice: Option<bool>,
    /// The agent's own script. Agents without one share that of the case.
    pub(crate) model: Option<Vec<ScriptedReply>>,
}

/// The type of an agent's output.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(untagged)]
pub(crate) enum OutputTypeCase {
    Strict(TypeName),
    Lenient { lenient: LenientTypeName },
}

/// Settings of model calls.
#[derive(Debug, Clone, Default, Deserialize)]
pub(crate) struct SettingsCase {
    pub(crate) temperature: Option<f64>,
    pub(crate) top_p: Option<f64>,
    /// `auto`, `required`, `none`, or the name of a tool.
    pub(crate) tool_choice: Option<String>,
    pub(crate) parallel_tool_calls: Option<bool>,
    pub(crate) max_tokens: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToolCase {
    /// An agent tool without a name has the default name.
    pub(crate) name: Option<String>,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) is_enabled: Option<EnabledCase>,
    pub(crate) needs_approval: Option<ApprovalCase>,
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

#[derive(Debug, Clone, Deserialize)]
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
    /// The type that the arguments are validated against.
    pub(crate) arguments: Option<TypeName>,
    pub(crate) takes_ms: Option<u64>,
    pub(crate) timeout_ms: Option<u64>,
    #[serde(default)]
    pub(crate) on_timeout: FailureCase,
    #[serde(default)]
    pub(crate) failure: FailureCase,
    /// Texts, images and files to return.
    pub(crate) parts: Option<Vec<OutputPart>>,
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

/// The consequence of a failure of a tool.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FailureCase {
    #[default]
    Default,
    /// The run ends.
    Raise,
    /// The model gets this text. In those of functions, `{error}` stands for the error.
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
    #[serde(default)]
    pub(crate) trips_on: String,
    /// The error that it fails with, instead of checking.
    pub(crate) raises: Option<String>,
    /// Set for input guardrails that run beside the model.
    #[serde(default)]
    pub(crate) beside: bool,
    pub(crate) takes_ms: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct ConfigCase {
    #[serde(default)]
    pub(crate) nest_handoff_history: bool,
    pub(crate) handoff_input_filter: Option<Value>,
    pub(crate) handoff_history_mapper: Option<String>,
    #[serde(default)]
    pub(crate) input_guardrails: Vec<GuardrailCase>,
    #[serde(default)]
    pub(crate) output_guardrails: Vec<GuardrailCase>,
    pub(crate) model_settings: Option<SettingsCase>,
    pub(crate) reasoning_item_id_policy: Option<ReasoningIds>,
    #[serde(default)]
    pub(crate) tool_not_found_behavior: NotFoundCase,
    pub(crate) output_guardrail_blocked_message: Option<String>,
    pub(crate) session_limit: Option<usize>,
    pub(crate) tool_concurrency: Option<NonZeroUsize>,
    #[serde(default, deserialize_with = "present")]
    pub(crate) tool_error_formatter: Option<Option<FormatterCase>>,
    pub(crate) session_input_callback: Option<SessionInputCase>,
    /// The run's text for rejected calls; null if the run is asked and has none.
    #[serde(default, deserialize_with = "present")]
    pub(crate) rejection_message: Option<Option<String>>,
    /// Set if guardrails also look at a call before a person is asked.
    #[serde(default)]
    pub(crate) guardrails_before_approval: bool,
    pub(crate) call_model_input_filter: Option<ModelFilterCase>,
}

/// The treatment of the ids of reasoning items in the input of models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ReasoningIds {
    Preserve,
    Omit,
}

/// The consequence of a call of a tool that is not there.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum NotFoundCase {
    #[default]
    RaiseError,
    ReturnErrorToModel,
}

/// The run's text for failed tools, in which `{tool}` and `{call_id}` are filled in.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FormatterCase {
    Says(String),
    Fails(String),
}

/// The function that merges a session's history and the new input.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum SessionInputCase {
    NewOnly,
    NewFirst,
    /// This many items of the history, then the new ones.
    KeepLast(usize),
    Fails(String),
}

/// The filter on what models are given.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct ModelFilterCase {
    pub(crate) keep_last: Option<usize>,
    /// A user message to add at the end.
    pub(crate) append: Option<String>,
    pub(crate) instructions: Option<String>,
    pub(crate) fails: Option<String>,
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
    pub(crate) response_id: Option<String>,
    /// The text that the input of the call must contain.
    pub(crate) when: Option<String>,
}

/// The tokens that a reply used.
#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(crate) struct TokenCounts {
    pub(crate) input: u64,
    pub(crate) cached: u64,
    pub(crate) output: u64,
    pub(crate) reasoning: u64,
}
