//! A fallback output for a run that cannot continue.

use std::fmt;
use std::sync::Arc;

use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::output::FinalOutput;

/// The reason a run cannot continue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunProblem {
    /// It reached the limit of turns.
    MaxTurns,
    /// The model refused to answer.
    Refusal,
    /// The model's answer does not match the output type.
    InvalidOutput,
}

type Ask<C> =
    dyn Fn(RunContext<C>, RunProblem, String) -> Outcome<Option<FinalOutput>> + Send + Sync;

/// Code that gives a fallback output for a run that cannot continue; see
/// [`Runner::recover`](crate::Runner::recover).
pub struct Recovery<C>(pub(super) Arc<Ask<C>>);

impl<C> Recovery<C> {
    /// Creates one. `ask` gets the problem and the error message, and returns the run's final output,
    /// or `None` to let the run fail.
    pub fn new<F, R, M>(ask: F) -> Self
    where
        F: Fn(RunContext<C>, RunProblem, String) -> R + Send + Sync + 'static,
        R: IntoOutcome<Option<FinalOutput>, M>,
    {
        Self(Arc::new(move |ctx, problem, message| {
            ask(ctx, problem, message).into_outcome()
        }))
    }
}

impl<C> Clone for Recovery<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> fmt::Debug for Recovery<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Recovery")
    }
}
