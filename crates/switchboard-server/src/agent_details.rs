//! Everything that a user interface shows of an agent.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Value, json};
use std::sync::Arc;
use switchboard_core::approval::ApprovalMode;
use switchboard_core::{Agent, Handoff, Tool};

/// An agent with its tools, handoffs and guardrails.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct AgentDetails {
    name: String,
    description: Option<String>,
    is_person: bool,
    is_start: bool,
    model: Option<String>,
    /// The instructions, unless a function makes them.
    instructions: Option<String>,
    dynamic_instructions: bool,
    /// The settings of model calls that the agent has.
    settings: Value,
    tools: Vec<ToolDetails>,
    pub(crate) handoffs: Vec<HandoffDetails>,
    guardrails: Vec<GuardrailDetails>,
    /// The schema of its final output, where that is not text.
    output: Option<Value>,
}

/// A tool of an agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct ToolDetails {
    name: String,
    description: String,
    /// The JSON Schema of the arguments.
    parameters: Value,
    /// `never`, `always` or `sometimes`.
    needs_approval: &'static str,
    /// It has a condition.
    conditional: bool,
    /// The agent behind it, where it is one.
    agent: Option<String>,
}

/// A handoff of an agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub(crate) struct HandoffDetails {
    pub(crate) tool: String,
    pub(crate) to: String,
    description: String,
    /// The JSON Schema of the payload.
    pub(crate) payload: Option<Value>,
    conditional: bool,
    /// The words of the condition, where it has some.
    pub(crate) condition: Option<String>,
    /// The names of the filters on what the next agent sees.
    pub(crate) filters: Vec<String>,
    /// The names of its guardrails.
    pub(crate) guardrails: Vec<String>,
    /// `never`, `always` or `sometimes`.
    pub(crate) needs_approval: &'static str,
    /// The model is not offered it.
    hidden: bool,
    /// A condition takes it without the model.
    by_condition: bool,
}

/// A guardrail of an agent.
#[derive(Debug, Clone, Serialize, JsonSchema)]
struct GuardrailDetails {
    name: String,
    /// `input`, `output` or `tools`.
    on: &'static str,
}

impl AgentDetails {
    /// Describes an agent; `handoff_names` are the names of the tools that its handoffs are.
    pub(crate) fn of<C>(
        agent: &Agent<C>,
        handoff_names: &[Arc<str>],
        is_start: bool,
        model: Option<String>,
    ) -> Self {
        let guardrail = |on: &'static str| {
            move |name: &str| GuardrailDetails {
                name: name.to_owned(),
                on,
            }
        };
        let input = agent.input_guardrail_names().map(guardrail("input"));
        let output = agent.output_guardrail_names().map(guardrail("output"));
        let tools = agent.tool_guardrail_names().map(guardrail("tools"));
        let mut settings = json!(agent.own_settings());
        if let Value::Object(fields) = &mut settings {
            fields.retain(|_, value| !value.is_null());
        }
        Self {
            name: agent.name().to_owned(),
            description: agent.description().map(ToOwned::to_owned),
            is_person: agent.is_person(),
            is_start,
            model,
            instructions: agent.instructions_text().map(ToOwned::to_owned),
            dynamic_instructions: agent.has_dynamic_instructions(),
            settings,
            tools: agent.tools().iter().map(ToolDetails::of).collect(),
            handoffs: (agent.handoffs().iter())
                .zip(handoff_names)
                .map(|(handoff, name)| HandoffDetails::of(handoff, name))
                .collect(),
            guardrails: input.chain(output).chain(tools).collect(),
            output: agent.output_type().map(|output| json!(output.schema())),
        }
    }
}

impl ToolDetails {
    fn of<C>(tool: &Tool<C>) -> Self {
        Self {
            name: tool.name().to_owned(),
            description: tool.description().to_owned(),
            parameters: json!(tool.spec().parameters),
            needs_approval: approval_name(tool.approval_mode()),
            conditional: tool.is_conditional(),
            agent: tool.agent().map(|agent| agent.name().to_owned()),
        }
    }
}

impl HandoffDetails {
    fn of<C>(handoff: &Handoff<C>, tool: &str) -> Self {
        let filter = handoff.input_filter();
        let filters = filter.map(|filter| filter.names()).unwrap_or_default();
        let has_payload = handoff.payload_name().is_some();
        Self {
            tool: tool.to_owned(),
            to: handoff.agent_name().to_owned(),
            description: handoff.tool_description().to_owned(),
            payload: has_payload.then(|| json!(handoff.spec().described_schema)),
            conditional: handoff.is_conditional(),
            condition: handoff.condition_name().map(ToOwned::to_owned),
            filters: filters.iter().map(ToString::to_string).collect(),
            guardrails: handoff.guardrail_names().map(ToOwned::to_owned).collect(),
            needs_approval: approval_name(handoff.approval_mode()),
            hidden: handoff.is_hidden(),
            by_condition: handoff.has_edge_conditions(),
        }
    }
}

const fn approval_name(mode: ApprovalMode) -> &'static str {
    match mode {
        ApprovalMode::Always => "always",
        ApprovalMode::Sometimes => "sometimes",
        _ => "never",
    }
}
