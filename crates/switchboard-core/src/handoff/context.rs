//! The context of a handoff's callback.

use std::ops::Deref;

use crate::agent::Agent;
use crate::context::RunContext;
use crate::run::HandoffCall;

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
}

impl<C> HandoffContext<C> {
    pub(crate) fn new(run: RunContext<C>, from: Agent<C>, to: Agent<C>, call: HandoffCall) -> Self {
        Self {
            run,
            from,
            to,
            call,
        }
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

    /// The call, as the model made it.
    pub fn call(&self) -> &HandoffCall {
        &self.call
    }

    /// The identifier of the call. It is stable over retries, so it can serve as an idempotency key.
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

impl_clone! { struct HandoffContext<C> { run, from, to, call } }

impl_debug!(HandoffContext<C>, |ctx| format_args!(
    "{} → {}",
    ctx.from.name(),
    ctx.to.name()
));
