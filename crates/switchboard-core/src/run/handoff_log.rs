//! Who had the conversation, and how it went from one to the next.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::machine::{Phase, Run};

/// A handoff that the model asked for, and what came of it.
///
/// A run keeps one of these for each, whatever filters make of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct HandoffRecord {
    /// The agent that had the conversation.
    pub from: Arc<str>,
    /// The agent that got it, or would have.
    pub to: Arc<str>,
    /// The name of the handoff's tool.
    pub tool_name: Arc<str>,
    /// What the model sent along; an empty object where it sent nothing, and its text where that is
    /// not JSON.
    #[serde(with = "crate::json::on_its_own")]
    pub payload: Value,
    /// What came of it.
    pub outcome: HandoffOutcome,
}

/// What came of a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HandoffOutcome {
    /// The conversation was handed over.
    Taken,
    /// A guardrail or the callback refused it, and the model was told this.
    Refused(String),
}

impl Run {
    /// The handoffs of the run in their order, those refused among them. Filters do not change it.
    pub fn handoffs(&self) -> &[HandoffRecord] {
        &self.trail
    }

    /// Notes what came of the handoff that the run is at.
    pub(super) fn note_handoff(&mut self, from: &Arc<str>, to: &Arc<str>, outcome: HandoffOutcome) {
        let Phase::Handoff(turn) = &self.phase else {
            return;
        };
        let Some(asked) = turn.handoffs.first() else {
            return;
        };
        let arguments = asked.call.arguments().unwrap_or_default();
        let payload = match arguments.trim() {
            "" | "{}" => Value::Object(Map::new()),
            arguments => {
                let payload = serde_json::from_str(arguments);
                payload.unwrap_or_else(|_| Value::from(arguments))
            }
        };
        if self.trail.is_empty() {
            // Most runs hand off once; a vector would begin with room for four, 600 bytes.
            self.trail.reserve_exact(1);
        }
        self.trail.push(HandoffRecord {
            from: from.clone(),
            to: to.clone(),
            tool_name: asked.tool.clone(),
            payload,
            outcome,
        });
    }
}
