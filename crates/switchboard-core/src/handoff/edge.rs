//! Handoffs that conditions on the context take, without the model.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Handoff, HandoffBuilder};
use crate::agent::Agent;
use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::run::HandoffTrigger;

/// The decision of a condition that can take a handoff without the model. `true` converts into
/// [`EdgeDecision::HandOff`] without a payload, `false` into [`EdgeDecision::Stay`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum EdgeDecision {
    /// The agent keeps the conversation.
    Stay,
    /// The handoff is made.
    #[non_exhaustive]
    HandOff {
        /// The payload, where the handoff takes one.
        payload: Option<Value>,
    },
}

impl EdgeDecision {
    /// Makes the handoff with this payload, which is validated like that of a model.
    pub fn hand_off_with(payload: impl Into<Value>) -> Self {
        Self::HandOff {
            payload: Some(payload.into()),
        }
    }
}

impl_from! { EdgeDecision {
    |holds: bool| if holds { Self::HandOff { payload: None } } else { Self::Stay },
} }

/// A condition that can take a handoff.
pub(crate) type EdgeCondition<C> =
    dyn Fn(RunContext<C>, Agent<C>) -> Outcome<EdgeDecision> + Send + Sync;

/// The conditions by which a handoff is taken without the model.
pub(super) struct EdgeConditions<C> {
    before_turn: Option<Arc<EdgeCondition<C>>>,
    after_turn: Option<Arc<EdgeCondition<C>>>,
    /// Set if the model is not offered the handoff.
    is_hidden: bool,
}

impl<C> EdgeConditions<C> {
    pub(super) const fn none() -> Self {
        Self {
            before_turn: None,
            after_turn: None,
            is_hidden: false,
        }
    }
}

impl_clone! { struct EdgeConditions<C> { before_turn, after_turn, is_hidden } }

impl<C, K> HandoffBuilder<C, K> {
    /// Makes the handoff without the model if `condition` holds before a turn: it is asked each time before
    /// the agent's model would be called, also for the first message. The condition is sync or async and
    /// returns a `bool` or an [`EdgeDecision`], which may have a payload.
    ///
    /// The handoff goes through all stages of one that the model asks for: its own condition
    /// ([`enabled_if`](Self::enabled_if)), limits on circles, guardrails, approval, callback, hooks and
    /// filter. There is no call, so nothing of it is in the history that models see. Of several that hold,
    /// the first that the agent was given is made. One that is refused leaves the conversation where it is
    /// until the model was called; an error of its code ends the run.
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Runner, handoff};
    ///
    /// struct App { is_blocked: bool }
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let fraud = Agent::<App>::new("Fraud desk");
    /// let triage = Agent::new("Triage")
    ///     .handoff(handoff(&fraud).before_turn_if(|ctx, _agent| ctx.is_blocked).hidden());
    /// let model = ScriptedModel::new().say("Your account is blocked.");
    /// let runner = Runner::new(&triage).context(App { is_blocked: true }).model(model.clone());
    /// let result = runner.run("Hello").await?;
    /// assert_eq!(result.last_agent().name(), "Fraud desk");
    /// assert_eq!(model.requests().len(), 1);
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn before_turn_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<EdgeDecision, M>,
    {
        let condition = edge_condition(condition);
        self.with(|inner| inner.edges.before_turn = Some(condition))
    }

    /// Makes the handoff without the model if `condition` holds after a turn of the agent after which it
    /// still has the conversation: its tools ran, or it gave its answer. The next agent goes on at once.
    /// An answer is then a message of the conversation and not the run's output, so no output guardrail sees
    /// it. To end the run with the answer and give the next message to another agent, use
    /// [`before_turn_if`](Self::before_turn_if), which is asked before that message is.
    ///
    /// Everything else is as for [`before_turn_if`](Self::before_turn_if), before which it is asked.
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Runner, handoff};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let reviewer: Agent = Agent::new("Reviewer");
    /// let writer = Agent::new("Writer")
    ///     .handoff(handoff(&reviewer).after_turn_if(|_ctx, _agent| true).hidden());
    /// let model = ScriptedModel::new().say("A draft.").say("Approved: a draft.");
    /// let result = Runner::new(&writer).model(model).run("Write").await?;
    /// assert_eq!(result.final_text(), "Approved: a draft.");
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn after_turn_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<EdgeDecision, M>,
    {
        let condition = edge_condition(condition);
        self.with(|inner| inner.edges.after_turn = Some(condition))
    }

    /// Hides the handoff from the model: it is made only by
    /// [`before_turn_if`](Self::before_turn_if), [`after_turn_if`](Self::after_turn_if) and redirects.
    pub fn hidden(self) -> Self {
        self.with(|inner| inner.edges.is_hidden = true)
    }
}

fn edge_condition<C, F, R, M>(condition: F) -> Arc<EdgeCondition<C>>
where
    F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
    R: IntoOutcome<EdgeDecision, M>,
{
    Arc::new(move |ctx, agent| condition(ctx, agent).into_outcome())
}

impl<C> Handoff<C> {
    /// Returns `true` if the model is not offered the handoff.
    pub fn is_hidden(&self) -> bool {
        self.0.edges.is_hidden
    }

    /// Returns `true` if a condition can take the handoff without the model.
    pub fn has_edge_conditions(&self) -> bool {
        let edges = &self.0.edges;
        edges.before_turn.is_some() || edges.after_turn.is_some()
    }

    /// The condition that takes the handoff before or after a turn.
    pub(crate) fn edge_condition(&self, trigger: HandoffTrigger) -> Option<&EdgeCondition<C>> {
        match trigger {
            HandoffTrigger::BeforeTurn => self.0.edges.before_turn.as_deref(),
            HandoffTrigger::AfterTurn => self.0.edges.after_turn.as_deref(),
            _ => None,
        }
    }
}
