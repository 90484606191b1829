//! The context of a handoff's callback.

use std::ops::Deref;

use crate::agent::Agent;
use crate::context::RunContext;
use crate::run::HandoffCall;
use crate::run::turn::CallKey;

/// The context of a handoff's callback: the run's context, the two agents and the call.
///
/// It dereferences to the application's context.
///
/// ```
/// use switchboard_core::{Agent, handoff};
///
/// let billing: Agent = Agent::new("Billing");
/// let triage = Agent::new("Triage").handoff(handoff(&billing).on_handoff(|ctx| {
///     println!("{} → {} ({})", ctx.from().name(), ctx.to().name(), ctx.call_id());
/// }));
/// ```
pub struct HandoffContext<C = ()> {
    run: RunContext<C>,
    from: Agent<C>,
    to: Agent<C>,
    call: HandoffCall,
    key: CallKey,
    is_approved: bool,
}

impl<C> HandoffContext<C> {
    pub(crate) fn new(
        run: RunContext<C>,
        from: Agent<C>,
        to: Agent<C>,
        call: HandoffCall,
        key: CallKey,
    ) -> Self {
        Self {
            run,
            from,
            to,
            call,
            key,
            is_approved: false,
        }
    }

    /// The context of a handoff that a person has approved.
    pub(crate) fn approved(mut self, is_approved: bool) -> Self {
        self.is_approved = is_approved;
        self
    }

    /// Returns `true` if a person has approved the handoff.
    pub fn is_approved(&self) -> bool {
        self.is_approved
    }

    /// A key that is the same whenever this handoff is carried out, also by a run that is stored and
    /// resumed, and differs from that of any other: of the conversation, the run, the turn and the call. Use
    /// it where a side effect must happen once.
    pub fn idempotency_key(&self) -> String {
        self.key.of_call(&self.call_id())
    }

    /// The run's context.
    pub fn run_context(&self) -> &RunContext<C> {
        &self.run
    }

    /// The agent that has the conversation.
    pub fn from(&self) -> &Agent<C> {
        &self.from
    }

    /// The agent that gets it.
    pub fn to(&self) -> &Agent<C> {
        &self.to
    }

    /// The call, as the model made it. If a condition takes the handoff, the run makes one, which is in no
    /// history.
    pub fn call(&self) -> &HandoffCall {
        &self.call
    }

    /// The identifier of the call. It is stable over retries; see also
    /// [`idempotency_key`](Self::idempotency_key).
    pub fn call_id(&self) -> String {
        self.call.call.call_id().unwrap_or_default().into_owned()
    }
}

impl<C> Deref for HandoffContext<C> {
    type Target = C;

    fn deref(&self) -> &C {
        &self.run
    }
}

impl_clone! { struct HandoffContext<C> { run, from, to, call, key, is_approved } }

impl_debug!(HandoffContext<C>, |ctx| format_args!(
    "{} → {}",
    ctx.from.name(),
    ctx.to.name()
));
