//! What guardrails find.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::output::FinalOutput;
use crate::tool::ToolOutput;

/// What a guardrail that only checks found.
///
/// A plain `bool` converts into it: `true` trips. A guardrail that may put something in place of
/// what it looks at returns a [`Verdict`] instead: what it replaces has a type, and one that only
/// checks must not have it to set. Both come to a [`GuardrailResult`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuardrailVerdict {
    /// Whether the run must stop.
    pub tripped: bool,
    /// What the guardrail wants to say about it.
    #[serde(with = "crate::json::on_its_own")]
    pub info: Value,
}

impl GuardrailVerdict {
    /// Nothing to object to.
    pub const fn allow() -> Self {
        Self {
            tripped: false,
            info: Value::Null,
        }
    }

    /// The run must stop.
    pub const fn trip() -> Self {
        Self {
            tripped: true,
            info: Value::Null,
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
        if tripped { Self::trip() } else { Self::allow() }
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
/// user's last message among what is new in this run; its images and files stay. Where nothing that
/// is new is of the user, a replacement is an error: what a session had already is not rewritten.
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

/// What came of a guardrail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuardrailOutcome {
    /// It had nothing to object to.
    Allowed,
    /// It put something else in place of what it looked at.
    Replaced,
    /// It refused a handoff, and the model was told why.
    Refused,
    /// It stopped the run.
    Tripped,
}

impl GuardrailOutcome {
    /// `allowed`, `replaced`, `refused` or `tripped`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Replaced => "replaced",
            Self::Refused => "refused",
            Self::Tripped => "tripped",
        }
    }
}

/// What a guardrail found, which and where, and what came of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuardrailResult {
    /// The guardrail's name.
    pub guardrail: Arc<str>,
    /// The agent it ran for.
    pub agent: Arc<str>,
    /// What it found. Where it refused a handoff, the reason is its info.
    pub verdict: GuardrailVerdict,
    /// What came of it.
    pub outcome: GuardrailOutcome,
    /// What it put in place of what it looked at, as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
}

/// What a guardrail said, whichever it was.
pub(crate) struct Said {
    outcome: GuardrailOutcome,
    info: Value,
    replaced_by: Option<String>,
}

impl Said {
    pub(crate) const fn allowed() -> Self {
        Self::new(GuardrailOutcome::Allowed, Value::Null)
    }

    pub(crate) const fn tripped(info: Value) -> Self {
        Self::new(GuardrailOutcome::Tripped, info)
    }

    pub(crate) fn refused(reason: &str) -> Self {
        Self::new(GuardrailOutcome::Refused, reason.into())
    }

    pub(crate) fn replaced_by(text: String) -> Self {
        Self {
            replaced_by: Some(text),
            ..Self::new(GuardrailOutcome::Replaced, Value::Null)
        }
    }

    const fn new(outcome: GuardrailOutcome, info: Value) -> Self {
        Self {
            outcome,
            info,
            replaced_by: None,
        }
    }

    /// The result of the guardrail of this name, which ran for `agent`.
    pub(crate) fn by(self, guardrail: Arc<str>, agent: Arc<str>) -> GuardrailResult {
        GuardrailResult {
            guardrail,
            agent,
            verdict: GuardrailVerdict {
                tripped: self.outcome == GuardrailOutcome::Tripped,
                info: self.info,
            },
            outcome: self.outcome,
            replaced_by: self.replaced_by,
        }
    }
}

impl From<GuardrailVerdict> for Said {
    fn from(verdict: GuardrailVerdict) -> Self {
        let outcome = if verdict.tripped {
            GuardrailOutcome::Tripped
        } else {
            GuardrailOutcome::Allowed
        };
        Self::new(outcome, verdict.info)
    }
}
