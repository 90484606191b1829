//! The events of AG-UI 1.0 that the service sends. Fields that do not apply are left out: the protocol has no null.

use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;
use switchboard_core::model::Usage;

/// The version of the protocol that the service speaks.
pub(super) const PROTOCOL_VERSION: &str = "1.0";

/// An event as it is sent, with the subagent that it is of.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sent {
    #[serde(flatten)]
    event: AguiEvent,
    /// Left out for events of the run itself, and for those that are about a subagent.
    #[serde(skip_serializing_if = "Option::is_none")]
    subagent_run_id: Option<Arc<str>>,
}

impl Sent {
    pub(super) const fn of_run(event: AguiEvent) -> Self {
        Self {
            event,
            subagent_run_id: None,
        }
    }

    pub(super) fn of_subagent(id: &Arc<str>, event: AguiEvent) -> Self {
        Self {
            event,
            subagent_run_id: Some(id.clone()),
        }
    }
}

/// An event.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "SCREAMING_SNAKE_CASE",
    rename_all_fields = "camelCase"
)]
pub(super) enum AguiEvent {
    RunStarted {
        thread_id: Arc<str>,
        run_id: Arc<str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_run_id: Option<Arc<str>>,
        protocol_version: &'static str,
    },
    RunFinished {
        thread_id: Arc<str>,
        run_id: Arc<str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        outcome: Outcome,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    RunError {
        message: String,
        code: String,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        usage: Vec<TokenUsage>,
    },
    StepStarted {
        step_name: Arc<str>,
    },
    StepFinished {
        step_name: Arc<str>,
    },
    TextMessageStart {
        message_id: Arc<str>,
        role: &'static str,
        /// The agent that speaks.
        name: Arc<str>,
    },
    TextMessageContent {
        message_id: Arc<str>,
        delta: String,
    },
    TextMessageEnd {
        message_id: Arc<str>,
    },
    ReasoningStart {
        message_id: Arc<str>,
    },
    ReasoningMessageStart {
        message_id: Arc<str>,
        role: &'static str,
    },
    ReasoningMessageContent {
        message_id: Arc<str>,
        delta: String,
    },
    ReasoningMessageEnd {
        message_id: Arc<str>,
    },
    ReasoningEnd {
        message_id: Arc<str>,
    },
    ToolCallStart {
        tool_call_id: Arc<str>,
        tool_call_name: Arc<str>,
    },
    ToolCallArgs {
        tool_call_id: Arc<str>,
        delta: String,
    },
    ToolCallEnd {
        tool_call_id: Arc<str>,
    },
    ToolCallResult {
        message_id: Arc<str>,
        tool_call_id: Arc<str>,
        content: String,
        role: &'static str,
    },
    Custom {
        name: &'static str,
        value: Value,
    },
    SubagentStarted {
        subagent_run_id: Arc<str>,
        /// The agent that it begins with.
        name: Arc<str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_subagent_run_id: Option<Arc<str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        parent_tool_call_id: Option<Arc<str>>,
    },
    SubagentFinished {
        subagent_run_id: Arc<str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        result: Option<Value>,
        outcome: SubagentOutcome,
    },
    SubagentError {
        subagent_run_id: Arc<str>,
        message: String,
        code: String,
    },
}

/// The outcome of a subagent that has not failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(super) enum SubagentOutcome {
    Success {},
    /// It waits for something to be decided, and goes on in a later run.
    Suspended {
        #[serde(skip_serializing_if = "Vec::is_empty")]
        interrupt_ids: Vec<Arc<str>>,
    },
}

/// The outcome of a run that has not failed.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(
    tag = "type",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
pub(super) enum Outcome {
    Success {
        /// Calls of the client's tools that wait for their results.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        pending_tool_call_ids: Vec<Arc<str>>,
    },
    Interrupt {
        interrupts: Vec<Interrupt>,
    },
    Cancelled {},
}

/// A call that waits for a decision, or a person that is asked for an answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Interrupt {
    pub(super) id: Arc<str>,
    pub(super) reason: &'static str,
    pub(super) message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) tool_call_id: Option<Arc<str>>,
    pub(super) response_schema: Value,
    pub(super) metadata: Value,
}

/// The tokens of all models of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct TokenUsage {
    input_tokens: u64,
    output_tokens: u64,
    total_tokens: u64,
    reasoning_tokens: u64,
    cached_input_tokens: u64,
}

impl TokenUsage {
    /// The entries of an event: none for a run that has called no model.
    pub(super) fn entries(usage: &Usage) -> Vec<Self> {
        if usage.requests == 0 {
            return Vec::new();
        }
        vec![Self {
            input_tokens: usage.input_tokens,
            output_tokens: usage.output_tokens,
            total_tokens: usage.total_tokens(),
            reasoning_tokens: usage.reasoning_tokens,
            cached_input_tokens: usage.cached_tokens,
        }]
    }
}
