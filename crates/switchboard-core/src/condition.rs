//! Conditions of tools and handoffs.

use std::sync::Arc;

use futures_util::future::try_join_all;

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

    /// Returns `true` if code decides.
    pub(crate) fn is_conditional(&self) -> bool {
        matches!(self, Self::When(_))
    }
}

impl_clone! { enum Enabled<C> { Always, Never, When(condition) } }

/// The indexes of the conditions that hold. They are evaluated concurrently; an error cancels the
/// others.
pub(crate) async fn enabled_at<'a, C: 'a>(
    conditions: impl Iterator<Item = &'a Enabled<C>>,
    agent: &Agent<C>,
    ctx: &RunContext<C>,
) -> Result<Vec<usize>, BoxError> {
    let checks = conditions.map(|condition| condition.check(ctx, agent));
    let hold = try_join_all(checks).await?;
    let hold = hold.into_iter().enumerate();
    Ok(hold.filter_map(|(at, holds)| holds.then_some(at)).collect())
}
