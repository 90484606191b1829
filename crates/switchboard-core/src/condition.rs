//! Conditions of tools and handoffs.

use std::sync::Arc;

use crate::agent::Agent;
use crate::callback::{BoxError, IntoOutcome, Outcome, call};
use crate::context::RunContext;

/// The condition under which a tool or a handoff is offered to the model.
pub(crate) enum Enabled<C> {
    Always,
    Never,
    When(Arc<Condition<C>>),
}

type Condition<C> = dyn Fn(RunContext<C>, Agent<C>) -> Outcome<bool> + Send + Sync;

impl<C> From<bool> for Enabled<C> {
    fn from(enabled: bool) -> Self {
        if enabled { Self::Always } else { Self::Never }
    }
}

impl<C> Enabled<C> {
    pub(crate) fn when<F, R, M>(condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        Self::When(Arc::new(move |ctx, agent| {
            condition(ctx, agent).into_outcome()
        }))
    }

    /// Evaluates the condition for the agent whose model would be offered it.
    pub(crate) async fn check(
        &self,
        ctx: &RunContext<C>,
        agent: &Agent<C>,
    ) -> Result<bool, BoxError> {
        match self {
            Self::Always => Ok(true),
            Self::Never => Ok(false),
            Self::When(condition) => call(|| condition(ctx.clone(), agent.clone())).await,
        }
    }

    pub(crate) fn is_always(&self) -> bool {
        matches!(self, Self::Always)
    }
}

impl_clone! { enum Enabled<C> { Always, Never, When(condition) } }
