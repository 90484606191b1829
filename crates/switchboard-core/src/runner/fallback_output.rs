//! A fallback output for a run that cannot continue.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::model::ModelResponse;
use crate::output::FinalOutput;
use crate::run::Run;

/// The reason a run cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunProblem {
    /// It reached the limit of turns.
    MaxTurns,
    /// The model refused to answer.
    Refusal,
    /// The model's answer does not match the output type, or is empty.
    InvalidOutput,
}

/// A run that cannot continue, for code that gives a fallback output.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct RunFailure {
    /// The reason.
    pub problem: RunProblem,
    /// The message of the error that the run ends with otherwise.
    pub message: String,
    /// The run so far: its input, items, responses, agent.
    pub run: Arc<Run>,
    /// The response that the run could not accept, where that is the reason.
    pub response: Option<ModelResponse>,
}

/// A fallback output.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fallback {
    pub(crate) output: FinalOutput,
    pub(crate) is_in_history: bool,
}

impl Fallback {
    /// Creates one that the history holds as a message of the agent.
    pub fn new(output: impl Into<FinalOutput>) -> Self {
        Self {
            output: output.into(),
            is_in_history: true,
        }
    }

    /// Leaves the output out of the history: it is the result, and no item or session has it.
    #[must_use]
    pub fn out_of_history(mut self) -> Self {
        self.is_in_history = false;
        self
    }
}

impl_from! { Fallback {
    |output: FinalOutput| Self::new(output),
    |text: String| Self::new(text),
    |text: &str| Self::new(text),
    |value: Value| Self::new(value),
} }

type Ask<C> = dyn Fn(RunContext<C>, RunFailure) -> Outcome<Option<Fallback>> + Send + Sync;

/// Code that gives a fallback output for a run that cannot continue; see
/// [`Runner::recover`](crate::Runner::recover).
pub struct Recovery<C>(Vec<Handler<C>>);

struct Handler<C> {
    /// The only problem it handles; `None` for all.
    problem: Option<RunProblem>,
    ask: Arc<Ask<C>>,
}

impl<C> Recovery<C> {
    /// Creates one without code.
    pub fn none() -> Self {
        Self(Vec::new())
    }

    /// Adds code for every problem that has none of its own. `ask` returns the run's final output, or
    /// `None` to let the run fail.
    #[must_use]
    pub fn on_any<F, R, M>(self, ask: F) -> Self
    where
        F: Fn(RunContext<C>, RunFailure) -> R + Send + Sync + 'static,
        R: IntoOutcome<Option<Fallback>, M>,
    {
        self.and(None, ask)
    }

    /// Adds code for one problem.
    #[must_use]
    pub fn on<F, R, M>(self, problem: RunProblem, ask: F) -> Self
    where
        F: Fn(RunContext<C>, RunFailure) -> R + Send + Sync + 'static,
        R: IntoOutcome<Option<Fallback>, M>,
    {
        self.and(Some(problem), ask)
    }

    fn and<F, R, M>(mut self, problem: Option<RunProblem>, ask: F) -> Self
    where
        F: Fn(RunContext<C>, RunFailure) -> R + Send + Sync + 'static,
        R: IntoOutcome<Option<Fallback>, M>,
    {
        self.0.retain(|handler| handler.problem != problem);
        let ask = Arc::new(move |ctx, failure| ask(ctx, failure).into_outcome());
        self.0.push(Handler { problem, ask });
        self
    }

    /// Returns `true` if there is code for this problem.
    pub(crate) fn handles(&self, problem: RunProblem) -> bool {
        self.handler(problem).is_some()
    }

    pub(crate) fn ask(&self, ctx: RunContext<C>, failure: RunFailure) -> Outcome<Option<Fallback>> {
        match self.handler(failure.problem) {
            Some(handler) => (handler.ask)(ctx, failure),
            None => Outcome::Ready(Ok(None)),
        }
    }

    fn handler(&self, problem: RunProblem) -> Option<&Handler<C>> {
        let mut handlers = self.0.iter();
        let own = handlers.find(|handler| handler.problem == Some(problem));
        own.or_else(|| self.0.iter().find(|handler| handler.problem.is_none()))
    }
}

impl_clone! { struct Recovery<C> { 0 } }
impl_clone! { struct Handler<C> { problem, ask } }

impl_debug!(Recovery<C>);
