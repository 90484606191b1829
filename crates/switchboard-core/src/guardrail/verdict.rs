//! The verdicts of guardrails and their results.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::callback::BoxError;
use crate::output::FinalOutput;
use crate::tool::ToolOutput;

/// The verdict of a guardrail on the input, the output or a tool; used under the names
/// [`InputVerdict`], [`OutputVerdict`] and [`ToolVerdict`].
///
/// `()` converts into it and allows; an `Option` converts too, its value being the replacement or
/// the text of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Verdict<T> {
    /// The run continues.
    Allow,
    /// The run continues with this instead.
    Replace(T),
    /// The run must stop. The value is kept in the [`GuardrailResult`] and the error.
    Trip(Value),
    /// One of the others, with details of the check; see [`Verdict::with_info`].
    WithInfo(Box<Verdict<T>>, Value),
}

/// The verdict on the user's input. A replacement takes the place of the text of the user's last
/// message among the new input; its images and files stay. If no new message is the user's, a
/// replacement is an error: the session's history is not rewritten.
pub type InputVerdict = Verdict<String>;

/// The verdict on the final output. A replacement takes its place in the result, the record and the
/// session; it must be of the agent's output type.
pub type OutputVerdict = Verdict<FinalOutput>;

/// The verdict on a tool's call or output. The model gets the replacement: in place of a call, the
/// tool does not run; in place of an output, the model does not see it.
pub type ToolVerdict = Verdict<ToolOutput>;

impl<T> Verdict<T> {
    /// The run continues with this instead.
    pub fn replace(with: impl Into<T>) -> Self {
        Self::Replace(with.into())
    }

    /// The run must stop, for this reason.
    pub fn trip(info: impl Into<Value>) -> Self {
        Self::Trip(info.into())
    }

    /// Returns `true` if the run must stop.
    pub(crate) fn trips(&self) -> bool {
        match self {
            Self::Trip(_) => true,
            Self::WithInfo(verdict, _) => verdict.trips(),
            Self::Allow | Self::Replace(_) => false,
        }
    }

    /// Adds details of the check, which the [`GuardrailResult`] keeps.
    ///
    /// ```
    /// use serde_json::json;
    /// use switchboard_core::guardrail::ToolVerdict;
    ///
    /// let verdict = ToolVerdict::Allow.with_info(json!({"score": 0.2}));
    /// ```
    #[must_use]
    pub fn with_info(self, info: impl Into<Value>) -> Self {
        Self::WithInfo(Box::new(self), info.into())
    }

    /// The decision. `replace` takes the replacement and returns its text.
    pub(crate) fn into_decision(
        self,
        replace: impl FnOnce(T) -> Result<String, BoxError>,
    ) -> Result<Decision, BoxError> {
        let (verdict, info) = match self {
            Self::WithInfo(verdict, info) => (*verdict, Some(info)),
            verdict => (verdict, None),
        };
        let or_null = |info: Option<Value>| info.unwrap_or(Value::Null);
        Ok(match verdict {
            Self::Allow => Decision::Allowed(or_null(info)),
            Self::Trip(reason) => Decision::Tripped(info.unwrap_or(reason)),
            Self::Replace(with) => Decision::ReplacedBy(replace(with)?, or_null(info)),
            Self::WithInfo(verdict, inner) => {
                let verdict = verdict.with_info(info.unwrap_or(inner));
                return verdict.into_decision(replace);
            }
        })
    }

    /// The run must stop for this reason if `condition` holds.
    pub fn trip_if(condition: bool, info: impl Into<Value>) -> Self {
        if condition {
            Self::trip(info)
        } else {
            Self::Allow
        }
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

macro_rules! replaced_by_text {
    ($($text:ty => $kind:ty,)*) => {$(
        impl From<Option<$text>> for Verdict<$kind> {
            fn from(text: Option<$text>) -> Self {
                text.map_or(Self::Allow, Self::replace)
            }
        }
    )*};
}

replaced_by_text! {
    &str => String,
    &str => FinalOutput,
    String => FinalOutput,
    &str => ToolOutput,
    String => ToolOutput,
}

/// The kinds of guardrails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GuardrailKind {
    /// [`InputGuardrail`](super::InputGuardrail)
    Input,
    /// [`OutputGuardrail`](super::OutputGuardrail)
    Output,
    /// [`ToolGuardrail`](super::ToolGuardrail)
    Tool,
    /// [`HandoffGuardrail`](super::HandoffGuardrail)
    Handoff,
}

/// The outcome of a guardrail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum GuardrailOutcome {
    /// The run continued.
    Allowed,
    /// The run continued with a replacement.
    Replaced,
    /// A handoff was refused, and the model got the reason.
    Refused,
    /// The run stopped.
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

/// The result of a guardrail.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct GuardrailResult {
    /// The guardrail's name.
    pub guardrail: Arc<str>,
    /// The agent it ran for.
    pub agent: Arc<str>,
    /// The outcome.
    pub outcome: GuardrailOutcome,
    /// The reason it gave for tripping or refusing, or other details of the check.
    #[serde(default, with = "crate::json::on_its_own")]
    pub info: Value,
    /// The replacement as text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replaced_by: Option<String>,
}

impl GuardrailResult {
    /// Returns `true` if the guardrail stopped the run.
    pub fn tripped(&self) -> bool {
        self.outcome == GuardrailOutcome::Tripped
    }
}

/// The decision of a guardrail of any kind.
#[derive(Debug)]
pub(crate) enum Decision {
    Allowed(Value),
    ReplacedBy(String, Value),
    Refused(String),
    Tripped(Value),
}

impl Decision {
    pub(crate) fn into_result(self, guardrail: &Arc<str>, agent: &Arc<str>) -> GuardrailResult {
        let (outcome, info, replaced_by) = match self {
            Self::Allowed(info) => (GuardrailOutcome::Allowed, info, None),
            Self::ReplacedBy(text, info) => (GuardrailOutcome::Replaced, info, Some(text)),
            Self::Refused(reason) => (GuardrailOutcome::Refused, reason.into(), None),
            Self::Tripped(info) => (GuardrailOutcome::Tripped, info, None),
        };
        GuardrailResult {
            guardrail: guardrail.clone(),
            agent: agent.clone(),
            outcome,
            info,
            replaced_by,
        }
    }
}
