//! What an agent knows beside its instructions.

use std::fmt::Write as _;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One thing an agent knows: a question or a title, and what to say about it.
///
/// A model over the wire reads it after the instructions; the offline model of
/// `switchboard-models` answers from it.
///
/// ```
/// use switchboard_core::{Agent, Knowledge};
///
/// let billing: Agent = Agent::new("Billing")
///     .knowledge(Knowledge::new("When is my bill due?", "Bills are due on the 5th of the month."));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Knowledge {
    /// What it is about: a question, a title, keywords.
    pub title: Arc<str>,
    /// What to say about it.
    pub text: Arc<str>,
}

impl Knowledge {
    /// One thing to know.
    pub fn new(title: impl Into<Arc<str>>, text: impl Into<Arc<str>>) -> Self {
        Self {
            title: title.into(),
            text: text.into(),
        }
    }
}

/// Instructions with what the agent knows behind them.
pub(crate) fn after(instructions: Option<&str>, knowledge: &[Knowledge]) -> String {
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
