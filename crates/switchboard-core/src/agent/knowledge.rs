//! Facts that an agent can answer from, beside its instructions.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// A fact that an agent can answer from: a question or a title, and the answer.
///
/// Remote models get it after the instructions; the offline model of `switchboard-models` answers
/// from it.
///
/// ```
/// use switchboard_core::agent::Knowledge;
/// use switchboard_core::Agent;
///
/// let billing: Agent = Agent::new("Billing")
///     .knowledge(Knowledge::new("When is my bill due?", "Bills are due on the 5th of the month."));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Knowledge {
    /// The subject: a question, a title, keywords.
    pub title: Arc<str>,
    /// The answer.
    pub text: Arc<str>,
}

impl Knowledge {
    /// Creates an entry.
    pub fn new(title: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self {
            title: title.into(),
            text: text.into(),
        }
    }
}

/// Returns the instructions followed by the knowledge.
pub(crate) fn append_to(instructions: Option<&str>, knowledge: &[Knowledge]) -> String {
    let mut text = instructions.unwrap_or_default().to_owned();
    if !text.is_empty() {
        text.push_str("\n\n");
    }
    text.push_str("What you know:");
    for entry in knowledge {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n- {}: {}", entry.title, entry.text);
    }
    text
}
