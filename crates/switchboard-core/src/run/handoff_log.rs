//! The handoffs of a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A handoff that the model asked for, and its outcome.
///
/// A run keeps one for each handoff: taken, refused or ignored. Filters do not change them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HandoffRecord {
    /// The agent that had the conversation.
    pub from: Arc<str>,
    /// The agent that got it, or would have got it.
    pub to: Arc<str>,
    /// The name of the handoff's tool.
    pub tool_name: Arc<str>,
    /// The arguments of the call; an empty object where there are none, and a string where they
    /// are not JSON.
    #[serde(with = "crate::json::on_its_own")]
    pub payload: Value,
    /// The outcome.
    pub outcome: HandoffOutcome,
}

/// The outcome of a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HandoffOutcome {
    /// The conversation was handed over.
    Taken,
    /// A guardrail or the callback refused it; the model got this reason.
    Refused(String),
    /// Another handoff of the same response was taken or refused.
    Ignored,
}
