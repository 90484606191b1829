//! Handoffs of one response that are made side by side, and the join of their answers.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::callback::{BoxError, IntoOutcome, Outcome, call};

/// Policy for handoffs of one response that are made side by side; see
/// [`SeveralHandoffs::FanOut`](super::SeveralHandoffs::FanOut).
///
/// ```
/// use switchboard_core::run::{FanOut, HandoffPolicy, SeveralHandoffs};
///
/// let by_agent = FanOut::to_agent("Editor");
/// let by_code = FanOut::joined(|answers| {
///     let lines = answers.iter().map(|made| format!("{}: {}", made.agent, made.text()));
///     lines.collect::<Vec<_>>().join("\n")
/// });
/// let policy = HandoffPolicy::production().several(SeveralHandoffs::FanOut(by_code));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[must_use]
pub struct FanOut {
    pub(crate) join: Join,
    pub(crate) failures: BranchFailures,
}

/// The join of the answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Join {
    /// The agent that called the handoffs.
    Caller,
    /// The agent of this name.
    Agent(Arc<str>),
    Function(JoinFunction),
}

/// Policy for an agent that fails while others answer beside it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BranchFailures {
    /// The join is told that the agent could not answer, without the error itself.
    #[default]
    TellJoin,
    /// The run ends with the error once the others have answered. When it is resumed, they do not answer
    /// again.
    FailRun,
}

impl FanOut {
    /// Gives the answers to the agent that called the handoffs, as the outputs of its calls; it goes on with
    /// them.
    pub const fn to_caller() -> Self {
        Self::new(Join::Caller)
    }

    /// Hands the conversation to the agent of this name once all have answered. It gets the conversation of
    /// the agent that called the handoffs, with the answers as the outputs of the calls. It must be one that
    /// the run can reach.
    pub fn to_agent(name: impl Into<Arc<str>>) -> Self {
        Self::new(Join::Agent(name.into()))
    }

    /// Ends the run with the output that `join` makes of the answers, which are in the order of the calls; sync
    /// or async. The output goes through the output guardrails of the agent that called the handoffs, and has
    /// its output type.
    pub fn joined<F, R, M>(join: F) -> Self
    where
        F: Fn(Vec<BranchAnswer>) -> R + Send + Sync + 'static,
        R: IntoOutcome<String, M>,
    {
        let join = JoinFunction(Arc::new(move |answers| join(answers).into_outcome()));
        Self::new(Join::Function(join))
    }

    /// Sets the policy for agents that fail.
    pub const fn failures(mut self, policy: BranchFailures) -> Self {
        self.failures = policy;
        self
    }

    const fn new(join: Join) -> Self {
        Self {
            join,
            failures: BranchFailures::TellJoin,
        }
    }
}

/// The answer of an agent beside others.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct BranchAnswer {
    /// The agent.
    pub agent: Arc<str>,
    /// The payload of the handoff to it; an empty object where there is none.
    pub payload: Value,
    /// Its final output, a string where it is text; or the text about a handoff that was refused or an agent
    /// that failed.
    pub outcome: Result<Value, String>,
}

impl BranchAnswer {
    /// The outcome as text.
    pub fn text(&self) -> Cow<'_, str> {
        match &self.outcome {
            Ok(Value::String(text)) | Err(text) => Cow::Borrowed(text),
            Ok(other) => Cow::Owned(other.to_string()),
        }
    }
}

/// Code that joins answers.
#[derive(Clone)]
pub(crate) struct JoinFunction(Arc<JoinCode>);

type JoinCode = dyn Fn(Vec<BranchAnswer>) -> Outcome<String> + Send + Sync;

impl JoinFunction {
    pub(crate) async fn call(&self, answers: Vec<BranchAnswer>) -> Result<String, BoxError> {
        call(|| (self.0)(answers)).await
    }
}

impl PartialEq for JoinFunction {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for JoinFunction {}

impl fmt::Debug for JoinFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JoinFunction")
    }
}
