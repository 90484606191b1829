//! Guardrails on handoffs.

use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::agent::Agent;
use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::handoff::HandoffInputData;

/// The verdict of a [`HandoffGuardrail`]. `()` converts into it and allows the handoff.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HandoffVerdict {
    /// The handoff takes place.
    Allow,
    /// The handoff does not take place: the model gets this reason, and the agent keeps the
    /// conversation.
    Refuse(String),
    /// The agent of this name gets the conversation instead; see
    /// [`HandoffDecision::Redirect`](crate::handoff::HandoffDecision::Redirect).
    Redirect(Arc<str>),
    /// A person decides; see [`approval`](crate::approval).
    AskApproval,
    /// The run must stop.
    Trip(Value),
}

impl HandoffVerdict {
    /// Refuses the handoff; the model gets the reason.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self::Refuse(reason.into())
    }

    /// Hands the conversation to the agent of this name instead.
    pub fn redirect(to: impl Into<Arc<str>>) -> Self {
        Self::Redirect(to.into())
    }

    /// Stops the run, for this reason.
    pub fn trip(info: impl Into<Value>) -> Self {
        Self::Trip(info.into())
    }

    /// Refuses the handoff for this reason if `condition` holds.
    pub fn refuse_if(condition: bool, reason: impl Into<String>) -> Self {
        if condition {
            Self::refuse(reason)
        } else {
            Self::Allow
        }
    }
}

impl_from! { HandoffVerdict { |_nothing: ()| Self::Allow, } }

/// The handoff that a [`HandoffGuardrail`] checks.
#[non_exhaustive]
pub struct HandoffRequest<C = ()> {
    /// The agent that has the conversation.
    pub from: Agent<C>,
    /// The agent that would get it.
    pub to: Agent<C>,
    /// The payload, where the handoff takes one.
    pub payload: Option<Value>,
    /// The data for the next agent, after filters.
    pub data: HandoffInputData<C>,
}

impl<C> HandoffRequest<C> {
    /// The run's context.
    pub fn run_context(&self) -> &RunContext<C> {
        self.data.run_context()
    }

    /// The payload as a `T`; `None` where there is none, or it is not a `T`.
    pub fn payload_as<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(self.payload.as_ref()?).ok()
    }
}

impl_clone! { struct HandoffRequest<C> { from, to, payload, data } }

impl_debug!(HandoffRequest<C>, |request| format_args!(
    "{} → {}",
    request.from.name(),
    request.to.name()
));

type Check<C> = dyn Fn(HandoffRequest<C>) -> Outcome<HandoffVerdict> + Send + Sync;

/// A check on one handoff, or on all handoffs of a run.
///
/// It runs after the handoff's filter and before its callback, the first side effect. Once the
/// callback has run, the run holds the conversation that the guardrails allowed: if the handoff fails
/// after that and the run is resumed, the next agent gets this conversation, and neither the filter
/// nor the guardrails run again. A handoff that fails in its callback or before it is filtered and
/// checked again as a whole.
///
/// ```
/// use switchboard_core::guardrail::{HandoffGuardrail, HandoffRequest, HandoffVerdict};
/// use switchboard_core::{Agent, handoff};
///
/// let refunds: Agent = Agent::new("Refunds");
/// let limit = HandoffGuardrail::new("limit", |request: HandoffRequest| {
///     match request.payload.as_ref().and_then(|payload| payload["amount"].as_u64()) {
///         Some(1_000..) => HandoffVerdict::refuse("Refunds of 1,000 and more need a manager."),
///         _ => HandoffVerdict::Allow,
///     }
/// });
/// let triage = Agent::new("Triage").handoff(handoff(&refunds).guardrail(limit));
/// ```
///
/// With the application's context, whose type the argument names:
///
/// ```
/// use switchboard_core::guardrail::{HandoffGuardrail, HandoffRequest, HandoffVerdict};
///
/// struct App { is_open: bool }
///
/// let hours = HandoffGuardrail::new("hours", |request: HandoffRequest<App>| {
///     if request.run_context().is_open {
///         HandoffVerdict::Allow
///     } else {
///         HandoffVerdict::refuse("The office opens at nine.")
///     }
/// });
/// ```
pub struct HandoffGuardrail<C = ()> {
    name: Arc<str>,
    check: Arc<Check<C>>,
}

impl<C> HandoffGuardrail<C> {
    /// Creates a guardrail. `check` returns a [`HandoffVerdict`] or `()` (which allows), a `Result`
    /// of one, or a future of either.
    pub fn new<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(HandoffRequest<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffVerdict, M>,
    {
        Self {
            name: name.into(),
            check: Arc::new(move |request| check(request).into_outcome()),
        }
    }

    pub(crate) fn check(&self, request: HandoffRequest<C>) -> Outcome<HandoffVerdict> {
        (self.check)(request)
    }
}

named_guardrail!(HandoffGuardrail { check });
