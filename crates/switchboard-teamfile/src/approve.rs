//! The calls that wait for a person's decision.

use serde_json::Value;

use crate::condition::Condition;
use crate::context::Context;

/// The rule by which calls wait.
#[derive(Debug, Clone)]
pub(crate) enum Approve {
    Always,
    When(Condition),
}

impl Approve {
    /// Returns `true` if a call waits: also if its condition cannot be decided.
    pub(crate) fn applies(&self, context: &Context, arguments: &Value) -> bool {
        match self {
            Self::Always => true,
            Self::When(condition) => condition.decide(context, arguments) != Some(false),
        }
    }
}
