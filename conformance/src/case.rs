//! The JSON format of a case.

use serde::Deserialize;
use serde_json::Value;

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
}

#[derive(Debug, Deserialize)]
pub(crate) struct ToolCase {
    pub(crate) name: String,
    #[serde(default)]
    pub(crate) description: String,
    pub(crate) parameters: Option<Value>,
    #[serde(default)]
    pub(crate) returns: Value,
    pub(crate) fails: Option<String>,
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
}
