//! The error of a run.

use std::borrow::Cow;
use std::fmt;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::callback::{BoxError, DynError};
use crate::conversation::{ConversationError, ConversationErrorKind};
use crate::guardrail::GuardrailResult;
use crate::journal::{Later, Transient};
use crate::model::ModelResponse;
use crate::run::Run;
use crate::tool::ToolError;

/// The error of a run.
///
/// Its message says what happened, to which agent and handoff, and what to do about it. It carries
/// the run ([`Error::run`]) as it was before the step that failed, so that nothing is lost: the run
/// can be inspected, stored, or resumed.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<BoxError>,
    agent: Option<String>,
    handoff: Option<String>,
    guardrail: Option<GuardrailResult>,
    rejected: Option<ModelResponse>,
    /// Set if the step may succeed when it is tried again.
    is_transient: bool,
    run: Option<Box<Run>>,
}

/// An error as a journal records it. The cause is a part of the message.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredFailure {
    kind: ErrorKind,
    pub(crate) message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    handoff: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    guardrail: Option<GuardrailResult>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    rejected: Option<ModelResponse>,
    /// The text for a model that is told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) text: Option<String>,
}

impl StoredFailure {
    /// The error of user code with this text.
    pub(crate) fn of_text(message: String) -> Self {
        Error::new(ErrorKind::UserCode, message).to_stored()
    }
}

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ErrorKind {
    /// The model broke a rule: it called a tool that does not exist, sent an invalid payload, used a
    /// call id twice, or gave an answer that does not match the output type.
    ModelBehavior,
    /// The model refused to answer.
    ModelRefusal,
    /// The model or its provider failed.
    Model,
    /// The agents or the run are configured in a way that cannot work.
    Configuration,
    /// The run reached the limit of turns.
    MaxTurns,
    /// A budget of the run is used up.
    Budget,
    /// Agents handed the conversation around in a circle, and a limit on that was reached.
    HandoffLoop,
    /// An input guardrail tripped.
    InputGuardrail,
    /// An output guardrail tripped.
    OutputGuardrail,
    /// A guardrail on a handoff tripped.
    HandoffGuardrail,
    /// A guardrail on a tool tripped.
    ToolGuardrail,
    /// A tool failed whose failures end the run.
    Tool,
    /// Code of the application failed: a callback, a filter, a hook, a guardrail.
    UserCode,
    /// The session could not be read or written.
    Session,
}

impl Error {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            source: None,
            agent: None,
            handoff: None,
            guardrail: None,
            rejected: None,
            is_transient: false,
            run: None,
        }))
    }

    /// The error as a journal records it.
    pub(crate) fn to_stored(&self) -> StoredFailure {
        let inner = &self.0;
        StoredFailure {
            kind: inner.kind,
            message: inner.message.clone(),
            agent: inner.agent.clone(),
            handoff: inner.handoff.clone(),
            guardrail: inner.guardrail.clone(),
            rejected: inner.rejected.clone(),
            text: None,
        }
    }

    /// The error that a journal has recorded.
    pub(crate) fn of_stored(stored: StoredFailure) -> Self {
        Self::new(stored.kind, stored.message).with(|inner| {
            inner.agent = stored.agent;
            inner.handoff = stored.handoff;
            inner.guardrail = stored.guardrail;
            inner.rejected = stored.rejected;
        })
    }

    /// Marks the error as one that may pass.
    pub(crate) fn transient(self) -> Self {
        self.with(|inner| inner.is_transient = true)
    }

    /// Returns `true` if what failed may succeed when it is tried again: a provider or a store that could
    /// not be reached, a conversation that another run has, or code that returned a
    /// [`Transient`] error.
    pub fn is_transient(&self) -> bool {
        let Some(cause) = self.cause() else {
            return self.0.is_transient;
        };
        let of_tool = cause.downcast_ref::<ToolError>().map(ToolError::cause);
        let conversation = cause.downcast_ref::<ConversationError>();
        let may_pass = |cause: &DynError| cause.is::<Transient>() || cause.is::<Later>();
        self.0.is_transient
            || may_pass(cause)
            || of_tool.is_some_and(may_pass)
            || match conversation {
                Some(error) => error.kind() == ConversationErrorKind::Leased,
                None => self.0.kind == ErrorKind::Session,
            }
    }

    /// The time at which a tool that has not finished is to be called again; see [`Later`].
    pub fn retry_at(&self) -> Option<SystemTime> {
        let cause = self.cause()?;
        let of_tool = cause.downcast_ref::<ToolError>().map(ToolError::cause);
        let causes = [Some(cause), of_tool].into_iter().flatten();
        causes.into_iter().find_map(|cause| {
            let inner = cause.downcast_ref::<Self>().and_then(Self::retry_at);
            cause.downcast_ref().map(Later::time).or(inner)
        })
    }

    pub(crate) fn caused_by(self, source: impl Into<BoxError>) -> Self {
        self.with(|inner| inner.source = Some(source.into()))
    }

    pub(crate) fn at_agent(mut self, agent: &str) -> Self {
        self.0.agent.get_or_insert_with(|| agent.to_owned());
        self
    }

    pub(crate) fn at_handoff(self, tool_name: &str) -> Self {
        self.with(|inner| inner.handoff = Some(tool_name.to_owned()))
    }

    pub(crate) fn with_guardrail(self, result: GuardrailResult) -> Self {
        self.with(|inner| inner.guardrail = Some(result))
    }

    pub(crate) fn with_rejected(self, response: ModelResponse) -> Self {
        self.with(|inner| inner.rejected = Some(response))
    }

    pub(crate) fn with_run(self, run: Box<Run>) -> Self {
        self.with(|inner| inner.run = Some(run))
    }

    fn with(mut self, change: impl FnOnce(&mut Inner)) -> Self {
        change(&mut self.0);
        self
    }

    /// The kind of error.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// The error of user code, a provider or a store, to downcast. Its text is part of this error's
    /// message, so [`source`](std::error::Error::source) starts with its source.
    pub fn cause(&self) -> Option<&DynError> {
        self.0.source.as_deref()
    }

    /// The agent that had the conversation.
    pub fn agent(&self) -> Option<&str> {
        self.0.agent.as_deref()
    }

    /// The tool name of the handoff that was being taken.
    pub fn handoff(&self) -> Option<&str> {
        self.0.handoff.as_deref()
    }

    /// The result of the guardrail that tripped.
    pub fn guardrail(&self) -> Option<&GuardrailResult> {
        self.0.guardrail.as_ref()
    }

    /// The run as it was before the step that failed; `None` where it had not begun.
    pub fn run(&self) -> Option<&Run> {
        self.0.run.as_deref()
    }

    /// Converts into that run.
    pub fn into_run(self) -> Option<Run> {
        self.0.run.map(|run| *run)
    }

    /// Returns `true` if the model broke a rule.
    pub fn is_model_behavior(&self) -> bool {
        self.0.kind == ErrorKind::ModelBehavior
    }

    /// Returns `true` if the run reached the limit of turns.
    pub fn is_max_turns(&self) -> bool {
        self.0.kind == ErrorKind::MaxTurns
    }

    /// Returns `true` if the agents or the run are configured in a way that cannot work.
    pub fn is_configuration(&self) -> bool {
        self.0.kind == ErrorKind::Configuration
    }

    /// Returns `true` if the model refused to answer.
    pub fn is_model_refusal(&self) -> bool {
        self.0.kind == ErrorKind::ModelRefusal
    }

    /// Returns `true` if the model or its provider failed.
    pub fn is_model(&self) -> bool {
        self.0.kind == ErrorKind::Model
    }

    /// Returns `true` if a tool failed whose failures end the run.
    pub fn is_tool(&self) -> bool {
        self.0.kind == ErrorKind::Tool
    }

    /// Returns `true` if code of the application failed.
    pub fn is_user_code(&self) -> bool {
        self.0.kind == ErrorKind::UserCode
    }

    /// Returns `true` if the session could not be read or written.
    pub fn is_session(&self) -> bool {
        self.0.kind == ErrorKind::Session
    }

    /// The model response that was rejected, if that is the error.
    pub fn rejected_response(&self) -> Option<&ModelResponse> {
        self.0.rejected.as_ref()
    }

    /// Returns `true` if a guardrail tripped.
    pub fn is_guardrail(&self) -> bool {
        matches!(
            self.0.kind,
            ErrorKind::InputGuardrail
                | ErrorKind::OutputGuardrail
                | ErrorKind::HandoffGuardrail
                | ErrorKind::ToolGuardrail
        )
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(agent) = &self.0.agent {
            write!(f, "agent \"{agent}\"")?;
            if let Some(handoff) = &self.0.handoff {
                write!(f, ", handoff \"{handoff}\"")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("Error");
        debug.field("kind", &self.0.kind);
        debug.field("message", &self.to_string());
        if let Some(source) = &self.0.source {
            debug.field("source", source);
        }
        debug.finish_non_exhaustive()
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref()?.source()
    }
}

/// The error for a response that breaks the rules.
pub(crate) fn model_error(message: impl Into<String>) -> Error {
    Error::new(ErrorKind::ModelBehavior, message)
}

/// The start of a text that a model or a provider chose, for messages: they must stay readable,
/// however long it is.
pub(crate) fn excerpt(text: &str) -> Cow<'_, str> {
    const MAX_CHARS: usize = 200;
    match text.char_indices().nth(MAX_CHARS) {
        None => Cow::Borrowed(text),
        Some((end, _)) => Cow::Owned(format!("{}… ({} bytes)", &text[..end], text.len())),
    }
}
