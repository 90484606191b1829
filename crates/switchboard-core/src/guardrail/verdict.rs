//! What guardrails find.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::FinalOutput;
use crate::tool::ToolOutput;

/// What a guardrail found.
///
/// A plain `bool` converts into it: `true` trips.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuardrailVerdict {
    /// Whether the run must stop.
    pub tripped: bool,
    /// What a guardrail that may replace put in place of what it looked at, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
    /// What the guardrail wants to say about it.
    #[serde(with = "crate::json::on_its_own")]
    pub info: Value,
}

impl GuardrailVerdict {
    /// Nothing to object to.
    pub const fn allow() -> Self {
        Self {
            tripped: false,
            replacement: None,
            info: Value::Null,
        }
    }

    /// The run must stop.
    pub const fn trip() -> Self {
        Self {
            tripped: true,
            replacement: None,
            info: Value::Null,
        }
    }

    pub(crate) fn replaced_by(text: String) -> Self {
        Self {
            replacement: Some(text),
            ..Self::allow()
        }
    }

    /// The same verdict with something to say about it.
    #[must_use]
    pub fn info(mut self, info: impl Into<Value>) -> Self {
        self.info = info.into();
        self
    }
}

impl From<bool> for GuardrailVerdict {
    fn from(tripped: bool) -> Self {
        match tripped {
            true => Self::trip(),
            false => Self::allow(),
        }
    }
}

/// What a guardrail found that may put something else in place of what it looks at.
///
/// `()` converts into it and allows; so does an `Option`, whose value is the replacement, or the words
/// of it. It is written by the name of what is looked at: [`InputVerdict`], [`OutputVerdict`], [`ToolVerdict`].
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Verdict<T> {
    /// Nothing to object to.
    Allow,
    /// The run goes on with this instead.
    Replace(T),
    /// The run must stop.
    Trip(Value),
}

/// What a guardrail found in the user's words. A replacement takes the place of the text of the
/// user's last message; its images and files stay.
pub type InputVerdict = Verdict<String>;

/// What a guardrail found in the final output. A replacement takes its place in the result, the
/// record and the session; it has to be of the agent's output type.
pub type OutputVerdict = Verdict<FinalOutput>;

/// What a guardrail found in a tool's call or output. The model is told the replacement: of a call,
/// the tool does not run; of an output, it is not shown.
pub type ToolVerdict = Verdict<ToolOutput>;

impl<T> Verdict<T> {
    /// The run goes on with this instead.
    pub fn replace(with: impl Into<T>) -> Self {
        Self::Replace(with.into())
    }

    /// The run must stop, with something to say about it.
    pub fn trip(info: impl Into<Value>) -> Self {
        Self::Trip(info.into())
    }
}

impl<T> From<()> for Verdict<T> {
    fn from((): ()) -> Self {
        Self::Allow
    }
}

impl<T> From<Option<T>> for Verdict<T> {
    fn from(replacement: Option<T>) -> Self {
        replacement.map_or(Self::Allow, Self::Replace)
    }
}

macro_rules! replaced_by_words {
    ($($words:ty => $kind:ty,)*) => {$(
        impl From<Option<$words>> for Verdict<$kind> {
            fn from(words: Option<$words>) -> Self {
                words.map_or(Self::Allow, Self::replace)
            }
        }
    )*};
}

replaced_by_words! {
    &str => String,
    &str => FinalOutput,
    String => FinalOutput,
    &str => ToolOutput,
    String => ToolOutput,
}

/// What a guardrail found, and which and where.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuardrailResult {
    /// The guardrail's name.
    pub guardrail: Arc<str>,
    /// The agent it ran for.
    pub agent: Arc<str>,
    /// What it found.
    pub verdict: GuardrailVerdict,
}
