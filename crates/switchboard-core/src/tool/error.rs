//! Failures of tools.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::callback::BoxError;
use crate::error::{Error, ErrorKind};
use crate::schema::InvalidPayload;

/// The default failure text for the model, which reveals nothing.
const DEFAULT_FAILURE: &str = "An error occurred while running the tool. Please try again.";

/// A failed tool call. Clones share the cause.
///
/// Hooks, streams and traces get it; a model only gets the text that is made of it, see
/// [`ToolBuilder::failure_text`](super::ToolBuilder::failure_text).
#[derive(Debug, Clone)]
pub struct ToolError {
    kind: ToolErrorKind,
    cause: Arc<dyn StdError + Send + Sync>,
}

/// The kinds of failed tool calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolErrorKind {
    /// The tool's code failed or panicked.
    Failed,
    /// The tool exceeded its timeout.
    TimedOut,
    /// The arguments do not match the tool's schema, so it did not run.
    InvalidArguments,
    /// There is no tool of that name.
    NotFound,
    /// A person rejected the call, so it did not run.
    NotApproved,
    /// The process ended while the tool ran, and it may run once only.
    OutcomeUnknown,
}

impl ToolError {
    /// Creates the failure of a tool, as a run would of an error that its code returned; useful for
    /// testing a failure text.
    pub fn new(cause: impl Into<BoxError>) -> Self {
        let cause = cause.into();
        let kind = if cause.is::<TimedOut>() {
            ToolErrorKind::TimedOut
        } else if cause.is::<InvalidPayload>() {
            ToolErrorKind::InvalidArguments
        } else if cause.is::<ToolNotFound>() {
            ToolErrorKind::NotFound
        } else if cause.is::<NotApproved>() {
            ToolErrorKind::NotApproved
        } else if cause.is::<OutcomeUnknown>() {
            ToolErrorKind::OutcomeUnknown
        } else {
            ToolErrorKind::Failed
        };
        let cause = Arc::from(cause);
        Self { kind, cause }
    }

    /// The kind of failure.
    pub fn kind(&self) -> ToolErrorKind {
        self.kind
    }

    /// The error of the tool, as it was returned.
    pub fn cause(&self) -> &(dyn StdError + Send + Sync + 'static) {
        &*self.cause
    }

    /// The text for the model, unless the tool or the run has another. It holds no private data: the
    /// message of a [`ToolFailure`], for a run inside the tool the kind of its error, and otherwise nothing of
    /// the tool's error.
    pub fn default_text(&self) -> String {
        match self.kind {
            ToolErrorKind::TimedOut
            | ToolErrorKind::NotFound
            | ToolErrorKind::NotApproved
            | ToolErrorKind::OutcomeUnknown => self.cause.to_string(),
            ToolErrorKind::InvalidArguments => format!(
                "The arguments are invalid: {}. Correct them and call the tool again.",
                self.cause
            ),
            ToolErrorKind::Failed => match self.cause.downcast_ref::<ToolFailure>() {
                Some(failure) => failure.message.clone(),
                None => {
                    let inner = self.cause.downcast_ref::<Error>();
                    let text = inner.and_then(inner_run_failure);
                    text.unwrap_or(DEFAULT_FAILURE).to_owned()
                }
            },
        }
    }
}

/// The text for the model about a run inside a tool that failed. The error itself may hold private data.
fn inner_run_failure(error: &Error) -> Option<&'static str> {
    Some(match error.kind() {
        ErrorKind::MaxTurns => "The agent did not finish: it reached its limit of turns.",
        ErrorKind::Budget => "The agent did not finish: its budget is used up.",
        ErrorKind::HandoffLoop => {
            "The agent did not finish: the conversation went in a circle between agents."
        }
        ErrorKind::ModelRefusal => "The agent refused to answer.",
        ErrorKind::Model => "The agent could not answer: its model failed. Try again later.",
        ErrorKind::ModelBehavior => {
            "The agent could not answer: its model made a mistake. Please try again."
        }
        ErrorKind::InputGuardrail => "A guardrail of the agent refused the request.",
        ErrorKind::OutputGuardrail => "A guardrail refused the answer of the agent.",
        ErrorKind::HandoffGuardrail | ErrorKind::ToolGuardrail => "A guardrail stopped the agent.",
        ErrorKind::Tool => "The agent did not finish: one of its tools failed.",
        ErrorKind::Configuration | ErrorKind::UserCode | ErrorKind::Session => return None,
    })
}

/// An error as it is stored: its kind and its text. The cause that is read is the text.
#[derive(Serialize, Deserialize)]
struct StoredError {
    kind: ToolErrorKind,
    message: String,
}

impl Serialize for ToolError {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, message) = (self.kind, self.to_string());
        StoredError { kind, message }.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for ToolError {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let StoredError { kind, message } = StoredError::deserialize(deserializer)?;
        let cause = Arc::from(BoxError::from(message));
        Ok(Self { kind, cause })
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl StdError for ToolError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.source()
    }
}

/// A failure that a tool explains to the model. The text of any other error stays private.
///
/// ```
/// use switchboard_core::tool::ToolFailure;
/// use switchboard_core::{Tool, tool};
///
/// let lookup: Tool = tool("lookup").run(|_ctx, (): ()| {
///     Err::<&str, _>(ToolFailure::new("There is no order with that number."))
/// });
/// ```
#[derive(Debug)]
pub struct ToolFailure {
    message: String,
    cause: Option<BoxError>,
}

impl ToolFailure {
    /// Creates one; the model gets `message`.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            cause: None,
        }
    }

    /// The text for the model.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Sets the error behind it, which the model does not get.
    #[must_use]
    pub fn caused_by(mut self, cause: impl Into<BoxError>) -> Self {
        self.cause = Some(cause.into());
        self
    }
}

impl fmt::Display for ToolFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{} ({cause})", self.message),
            None => f.write_str(&self.message),
        }
    }
}

impl StdError for ToolFailure {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.cause.as_ref().map(|cause| &**cause as _)
    }
}

/// A tool exceeded its timeout.
#[derive(Debug)]
pub(crate) struct TimedOut {
    pub(crate) tool: Arc<str>,
    pub(crate) after: Duration,
}

impl_error!(
    TimedOut,
    |error| "Tool '{}' timed out after {} seconds.",
    error.tool,
    error.after.as_secs_f64()
);

/// The model called a tool that does not exist.
#[derive(Debug)]
pub(crate) struct ToolNotFound(pub(crate) Arc<str>);

impl_error!(
    ToolNotFound,
    |error| "Tool '{}' not found.",
    crate::error::excerpt(&error.0)
);

/// A tool that may run once was interrupted.
#[derive(Debug)]
pub(crate) struct OutcomeUnknown(pub(crate) Arc<str>);

impl_error!(
    OutcomeUnknown,
    |error| "Tool '{}' was interrupted. Its outcome is unknown: it may have done its work or not, and it is \
             not called again. Find out before you act on it.",
    error.0
);

/// A person rejected the call.
#[derive(Debug)]
pub(crate) struct NotApproved;

impl_error!(NotApproved, |_error| "Tool execution was not approved.");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_model_gets_only_what_a_tool_explains() {
        let private = ToolError::new("password hunter2 is wrong");
        assert_eq!(private.default_text(), DEFAULT_FAILURE);
        assert_eq!(private.to_string(), "password hunter2 is wrong");
        let explained = ToolFailure::new("The account is locked.").caused_by("row 7");
        let explained = ToolError::new(explained);
        assert_eq!(explained.default_text(), "The account is locked.");
        assert_eq!(explained.to_string(), "The account is locked. (row 7)");
        assert_eq!(explained.source().unwrap().to_string(), "row 7");
    }
}
