//! Checks on handoffs.

use std::fmt;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::agent::Agent;
use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::handoff::HandoffInputData;

/// What a handoff guardrail found. `()` converts into it and allows the handoff.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum HandoffVerdict {
    /// Nothing to object to.
    Allow,
    /// The handoff must not take place. The model is told why, and goes on as the same agent.
    Refuse(String),
    /// The run must stop.
    Trip(Value),
}

impl HandoffVerdict {
    /// The handoff must not take place; the model is told why.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self::Refuse(reason.into())
    }

    /// The run must stop, with something to say about it.
    pub fn trip(info: impl Into<Value>) -> Self {
        Self::Trip(info.into())
    }
}

impl From<()> for HandoffVerdict {
    fn from((): ()) -> Self {
        Self::Allow
    }
}

/// What a handoff guardrail looks at.
#[non_exhaustive]
pub struct HandoffRequest<C = ()> {
    /// The agent that has the conversation.
    pub from: Agent<C>,
    /// The agent that would get it.
    pub to: Agent<C>,
    /// What the model sent along, where the handoff takes a payload.
    pub payload: Option<Value>,
    /// What would be carried over, after filters.
    pub data: HandoffInputData<C>,
}

impl<C> HandoffRequest<C> {
    /// The run's context.
    pub fn run_context(&self) -> &RunContext<C> {
        self.data.run_context()
    }

    /// The payload as a value of the type the handoff takes; `None` where it takes none, or one of
    /// another type.
    pub fn payload_as<T: DeserializeOwned>(&self) -> Option<T> {
        T::deserialize(self.payload.as_ref()?).ok()
    }
}

impl<C> Clone for HandoffRequest<C> {
    fn clone(&self) -> Self {
        Self {
            from: self.from.clone(),
            to: self.to.clone(),
            payload: self.payload.clone(),
            data: self.data.clone(),
        }
    }
}

impl<C> fmt::Debug for HandoffRequest<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "HandoffRequest({} → {})",
            self.from.name(),
            self.to.name()
        )
    }
}

type EdgeCheck<C> = dyn Fn(HandoffRequest<C>) -> Outcome<HandoffVerdict> + Send + Sync;

/// A check on handoffs: of one edge, or of all edges of a run. It runs before the handoff's first
/// side effect, and not again where a handoff is resumed that failed after it.
///
/// ```
/// use switchboard_core::{Agent, HandoffRequest, HandoffGuardrail, HandoffVerdict, handoff};
///
/// let refunds: Agent = Agent::new("Refunds");
/// let limit = HandoffGuardrail::new("limit", |check: HandoffRequest| {
///     match check.payload.as_ref().and_then(|payload| payload["amount"].as_u64()) {
///         Some(1_000..) => HandoffVerdict::refuse("Refunds of 1,000 and more need a manager."),
///         _ => HandoffVerdict::Allow,
///     }
/// });
/// let triage = Agent::new("Triage").handoff(handoff(&refunds).guardrail(limit));
/// ```
///
/// With the application's state, which the argument's type names:
///
/// ```
/// use switchboard_core::{HandoffRequest, HandoffGuardrail, HandoffVerdict};
///
/// struct App { is_open: bool }
///
/// let hours = HandoffGuardrail::new("hours", |check: HandoffRequest<App>| match check.run_context().is_open {
///     true => HandoffVerdict::Allow,
///     false => HandoffVerdict::refuse("Nobody is there before nine."),
/// });
/// ```
pub struct HandoffGuardrail<C = ()> {
    name: Arc<str>,
    check: Arc<EdgeCheck<C>>,
}

impl<C> HandoffGuardrail<C> {
    /// A guardrail. `check` returns a [`HandoffVerdict`] or `()` (which allows), a `Result` of one,
    /// or a future of either.
    pub fn new<F, R, M>(name: impl Into<Arc<str>>, check: F) -> Self
    where
        F: Fn(HandoffRequest<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffVerdict, M>,
    {
        Self {
            name: name.into(),
            check: Arc::new(move |handoff| check(handoff).into_outcome()),
        }
    }

    /// The guardrail's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn check(&self, handoff: HandoffRequest<C>) -> Outcome<HandoffVerdict> {
        (self.check)(handoff)
    }

    pub(crate) fn name_arc(&self) -> &Arc<str> {
        &self.name
    }
}

impl<C> Clone for HandoffGuardrail<C> {
    fn clone(&self) -> Self {
        Self {
            name: self.name.clone(),
            check: self.check.clone(),
        }
    }
}

impl<C> fmt::Debug for HandoffGuardrail<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandoffGuardrail({})", self.name)
    }
}
