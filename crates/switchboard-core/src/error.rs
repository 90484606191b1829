//! What can go wrong in a run.

use std::fmt;

use crate::callback::BoxError;
use crate::guardrail::GuardrailResult;
use crate::model::ModelResponse;
use crate::run::Run;

/// Why a run ended without a result.
///
/// It says what happened, to which agent and handoff, and what to do about it; and it carries
/// the run as far as it got ([`Error::run`]), so that nothing is lost: the run stands where it
/// stood before the step that failed, and can be looked at, stored, or resumed.
///
/// There is one error type. Finer ones would have to follow every step of the engine, and
/// nobody branches on more than [`Error::kind`] tells.
pub struct Error(Box<Inner>);

struct Inner {
    kind: ErrorKind,
    message: String,
    source: Option<BoxError>,
    agent: Option<String>,
    handoff: Option<String>,
    guardrail: Option<GuardrailResult>,
    rejected: Option<ModelResponse>,
    run: Option<Box<Run>>,
}

/// What kind of thing went wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The model did something it must not: it called a tool that is not there, sent a payload of
    /// the wrong form, used a call id twice, gave an answer not in the form asked for.
    ModelBehavior,
    /// The model refused to answer.
    ModelRefusal,
    /// The model or its provider failed.
    Model,
    /// The agents or the run are configured in a way that cannot work.
    Configuration,
    /// The run took more turns than it may.
    MaxTurns,
    /// An input guardrail tripped.
    InputGuardrail,
    /// An output guardrail tripped.
    OutputGuardrail,
    /// A guardrail on a handoff tripped.
    HandoffGuardrail,
    /// A guardrail on a tool tripped.
    ToolGuardrail,
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
            run: None,
        }))
    }

    pub(crate) fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    pub(crate) fn at_agent(mut self, agent: &str) -> Self {
        self.0.agent.get_or_insert_with(|| agent.to_owned());
        self
    }

    pub(crate) fn at_handoff(mut self, tool_name: &str) -> Self {
        self.0.handoff = Some(tool_name.to_owned());
        self
    }

    pub(crate) fn with_guardrail(mut self, result: GuardrailResult) -> Self {
        self.0.guardrail = Some(result);
        self
    }

    pub(crate) fn with_rejected(mut self, response: ModelResponse) -> Self {
        self.0.rejected = Some(response);
        self
    }

    pub(crate) fn with_run(mut self, run: Box<Run>) -> Self {
        self.0.run = Some(run);
        self
    }

    /// What kind of thing went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.0.kind
    }

    /// What user code, a provider or a store returned as its error, to downcast. Its text is part
    /// of this error's own, so [`source`](std::error::Error::source) goes on behind it.
    pub fn cause(&self) -> Option<&(dyn std::error::Error + Send + Sync + 'static)> {
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

    /// What the guardrail that tripped said.
    pub fn guardrail(&self) -> Option<&GuardrailResult> {
        self.0.guardrail.as_ref()
    }

    /// The run as far as it got; `None` where it had not begun.
    pub fn run(&self) -> Option<&Run> {
        self.0.run.as_deref()
    }

    /// The run as far as it got, to keep.
    pub fn into_run(self) -> Option<Run> {
        self.0.run.map(|run| *run)
    }

    /// Whether the model did something it must not.
    pub fn is_model_behavior(&self) -> bool {
        self.0.kind == ErrorKind::ModelBehavior
    }

    /// Whether the run took more turns than it may.
    pub fn is_max_turns(&self) -> bool {
        self.0.kind == ErrorKind::MaxTurns
    }

    /// Whether the agents or the run are configured in a way that cannot work.
    pub fn is_configuration(&self) -> bool {
        self.0.kind == ErrorKind::Configuration
    }

    /// Whether the model refused to answer.
    pub fn is_model_refusal(&self) -> bool {
        self.0.kind == ErrorKind::ModelRefusal
    }

    /// Whether the model or its provider failed.
    pub fn is_model(&self) -> bool {
        self.0.kind == ErrorKind::Model
    }

    /// Whether code of the application failed.
    pub fn is_user_code(&self) -> bool {
        self.0.kind == ErrorKind::UserCode
    }

    /// Whether the session could not be read or written.
    pub fn is_session(&self) -> bool {
        self.0.kind == ErrorKind::Session
    }

    /// The answer of the model that could not be taken, where that is what went wrong.
    pub fn rejected_response(&self) -> Option<&ModelResponse> {
        self.0.rejected.as_ref()
    }

    /// Whether a guardrail tripped.
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
