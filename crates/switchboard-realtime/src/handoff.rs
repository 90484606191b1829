//! Handoffs between realtime agents.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;
use switchboard_core::callback::IntoOutcome;
use switchboard_core::handoff::{
    Handoff, HandoffBuilder, HandoffContext, HandoffDecision, JsonPayload, NoPayload, TypedPayload,
    WithCallback, handoff,
};
use switchboard_core::model::HandoffSpec;
use switchboard_core::{Agent, RunContext};

use crate::agent::RealtimeAgent;

/// An edge to another realtime agent: a tool that the model calls to pass the caller on.
///
/// Created with [`realtime_handoff()`]. Clones share it.
pub struct RealtimeHandoff<C = ()> {
    edge: Handoff<C>,
    target: Target<C>,
}

/// The agent that gets the conversation.
enum Target<C> {
    Agent(RealtimeAgent<C>),
    /// The agent of this name in the team.
    Name(Arc<str>),
    /// The team's agent at this place.
    Member(usize),
}

impl<C> RealtimeHandoff<C> {
    /// A handoff of text agents, to the member at `at` of a team.
    pub(crate) fn to_member(edge: Handoff<C>, at: usize) -> Self {
        Self {
            edge,
            target: Target::Member(at),
        }
    }

    /// The name of the tool that stands for the handoff.
    pub fn tool_name(&self) -> &str {
        self.edge.tool_name()
    }

    /// The name of the agent that would get the conversation.
    pub fn agent_name(&self) -> &str {
        self.edge.agent_name()
    }

    /// The parts that handoffs of text agents have as well.
    pub(crate) fn edge(&self) -> &Handoff<C> {
        &self.edge
    }

    pub(crate) fn is_by_name(&self) -> bool {
        matches!(self.target, Target::Name(_))
    }

    /// The agent that a handoff of `from` leads to; `None` if its name is unknown.
    pub(crate) fn target(&self, from: &RealtimeAgent<C>) -> Option<RealtimeAgent<C>> {
        let def = match &self.target {
            Target::Agent(agent) => return Some(agent.reached_from(from)),
            Target::Name(name) => from.team()?.by_name(name)?,
            Target::Member(at) => from.team()?.member(*at)?,
        };
        let team = from.team()?.clone();
        Some(RealtimeAgent::member(def.clone(), team))
    }

    /// The handoff as the model sees it. A name has the description of the agent that it resolves to.
    pub(crate) fn spec(&self, from: &RealtimeAgent<C>) -> HandoffSpec {
        let mut spec = self.edge.spec().clone();
        let by_default = handoff::<C>(self.edge.agent_name()).build();
        if self.is_by_name()
            && *spec.tool_description == *by_default.tool_description()
            && let Some(target) = self.target(from)
        {
            let described = handoff(target.parts()).build();
            spec.tool_description = described.tool_description().into();
        }
        spec
    }
}

impl<C> Clone for RealtimeHandoff<C> {
    fn clone(&self) -> Self {
        Self {
            edge: self.edge.clone(),
            target: self.target.clone(),
        }
    }
}

impl<C> Clone for Target<C> {
    fn clone(&self) -> Self {
        match self {
            Self::Agent(agent) => Self::Agent(agent.clone()),
            Self::Name(name) => Self::Name(name.clone()),
            Self::Member(at) => Self::Member(*at),
        }
    }
}

impl<C> fmt::Debug for RealtimeHandoff<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "RealtimeHandoff({} → {})",
            self.tool_name(),
            self.agent_name()
        )
    }
}

/// Begins a handoff to a realtime agent, or to the name of one in a
/// [`RealtimeTeam`](crate::RealtimeTeam).
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use switchboard_realtime::{RealtimeAgent, realtime_handoff};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Escalation { reason: String }
///
/// let billing: RealtimeAgent = RealtimeAgent::new("Billing");
/// let desk = RealtimeAgent::new("Desk").handoff(
///     realtime_handoff(&billing)
///         .tool_name("billing_desk")
///         .payload::<Escalation>()
///         .on_handoff(|_ctx, escalation| println!("{}", escalation.reason)),
/// );
/// ```
///
/// The model's history lives at the provider, so there is nothing to filter on the way:
///
/// ```compile_fail,E0599
/// use switchboard_core::filters;
/// use switchboard_realtime::{RealtimeAgent, realtime_handoff};
///
/// let billing: RealtimeAgent = RealtimeAgent::new("Billing");
/// realtime_handoff(&billing).filter(filters::remove_all_tools());
/// ```
pub fn realtime_handoff<C>(target: impl IntoRealtimeTarget<C>) -> RealtimeHandoffBuilder<C> {
    target.into_builder()
}

/// Builds a realtime handoff; see [`realtime_handoff`].
///
/// `K` is the argument of its callback, as in [`HandoffBuilder`].
#[must_use]
pub struct RealtimeHandoffBuilder<C, K = NoPayload> {
    edge: HandoffBuilder<C, K>,
    target: Target<C>,
}

impl<C, K> RealtimeHandoffBuilder<C, K> {
    /// Sets the tool's name, instead of `transfer_to_<agent>`. An empty name is ignored.
    pub fn tool_name(self, name: impl Into<Arc<str>>) -> Self {
        self.with(|edge| edge.tool_name(name))
    }

    /// Sets the tool's description, instead of one made from the target's. An empty description is
    /// ignored.
    pub fn tool_description(self, description: impl Into<Arc<str>>) -> Self {
        self.with(|edge| edge.tool_description(description))
    }

    /// Sets the output of the handoff's call, instead of `{"assistant": "<agent>"}`.
    pub fn transfer_message(self, message: impl Into<Arc<str>>) -> Self {
        self.with(|edge| edge.transfer_message(message))
    }

    /// Enables or disables the handoff.
    pub fn enabled(self, enabled: bool) -> Self {
        self.with(|edge| edge.enabled(enabled))
    }

    /// Enables the handoff while `condition` holds; sync or async. It is evaluated when the agent gets
    /// the conversation, when the model calls the handoff, and when the application says that the
    /// context has changed.
    pub fn enabled_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.with(|edge| edge.enabled_if(condition))
    }

    /// Makes the handoff wait for a person's decision whenever the model asks for it.
    pub fn needs_approval(self) -> Self {
        self.with(HandoffBuilder::needs_approval)
    }

    /// Makes the handoff wait for a person's decision if `condition` holds for its payload, which the
    /// condition gets as JSON. If the condition fails, the handoff waits.
    pub fn needs_approval_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(HandoffContext<C>, Value) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.with(|edge| edge.needs_approval_if(condition))
    }

    /// Sets whether the model must keep to the payload's schema, which is the default.
    pub fn strict(self, strict: bool) -> Self {
        self.with(|edge| edge.strict(strict))
    }

    /// Finishes the handoff. [`RealtimeAgent::handoff`] takes a builder as well.
    pub fn build(self) -> RealtimeHandoff<C> {
        RealtimeHandoff {
            edge: self.edge.build(),
            target: self.target,
        }
    }

    fn with<L>(
        self,
        change: impl FnOnce(HandoffBuilder<C, K>) -> HandoffBuilder<C, L>,
    ) -> RealtimeHandoffBuilder<C, L> {
        RealtimeHandoffBuilder {
            edge: change(self.edge),
            target: self.target,
        }
    }
}

impl<C> RealtimeHandoffBuilder<C, NoPayload> {
    /// Sets the payload's type. It is the schema that the model gets, made strict; the arguments of
    /// the call are validated and parsed into it before anything else happens.
    pub fn payload<T>(self) -> RealtimeHandoffBuilder<C, TypedPayload<T>>
    where
        T: JsonSchema + DeserializeOwned + Send + 'static,
    {
        self.with(HandoffBuilder::payload)
    }

    /// Sets the payload's JSON schema.
    pub fn payload_schema(self, schema: Value) -> RealtimeHandoffBuilder<C, JsonPayload> {
        self.with(|edge| edge.payload_schema(schema))
    }

    /// Sets the callback, which runs before anything is sent to the model. It returns nothing, a
    /// [`HandoffDecision`], a `Result` of either, or a future of any of these.
    pub fn on_handoff<F, R, M>(self, callback: F) -> RealtimeHandoffBuilder<C, WithCallback>
    where
        F: Fn(HandoffContext<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.with(|edge| edge.on_handoff(callback))
    }
}

impl<C, T: DeserializeOwned + Send + 'static> RealtimeHandoffBuilder<C, TypedPayload<T>> {
    /// Sets the callback, which gets the payload; otherwise as without one.
    pub fn on_handoff<F, R, M>(self, callback: F) -> RealtimeHandoffBuilder<C, WithCallback>
    where
        F: Fn(HandoffContext<C>, T) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.with(|edge| edge.on_handoff(callback))
    }
}

impl<C> RealtimeHandoffBuilder<C, JsonPayload> {
    /// Sets the callback, which gets the payload as JSON; otherwise as without one.
    pub fn on_handoff<F, R, M>(self, callback: F) -> RealtimeHandoffBuilder<C, WithCallback>
    where
        F: Fn(HandoffContext<C>, Value) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.with(|edge| edge.on_handoff(callback))
    }
}

impl<C, K> fmt::Debug for RealtimeHandoffBuilder<C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RealtimeHandoffBuilder")
            .field(&self.edge)
            .finish()
    }
}

/// The target of a [`realtime_handoff()`]: an agent, or the name of one in the same team.
pub trait IntoRealtimeTarget<C>: sealed::Target<C> {}

impl<C, T: sealed::Target<C>> IntoRealtimeTarget<C> for T {}

mod sealed {
    use super::{Arc, RealtimeAgent, RealtimeHandoffBuilder, Target as HandoffTarget, handoff};

    pub trait Target<C> {
        fn into_builder(self) -> RealtimeHandoffBuilder<C>;
    }

    impl<C> Target<C> for &RealtimeAgent<C> {
        fn into_builder(self) -> RealtimeHandoffBuilder<C> {
            RealtimeHandoffBuilder {
                edge: handoff(self.parts()),
                target: HandoffTarget::Agent(self.clone()),
            }
        }
    }

    impl<C> Target<C> for RealtimeAgent<C> {
        fn into_builder(self) -> RealtimeHandoffBuilder<C> {
            (&self).into_builder()
        }
    }

    impl<C> Target<C> for &str {
        fn into_builder(self) -> RealtimeHandoffBuilder<C> {
            RealtimeHandoffBuilder {
                edge: handoff(self),
                target: HandoffTarget::Name(Arc::from(self)),
            }
        }
    }

    impl<C> Target<C> for String {
        fn into_builder(self) -> RealtimeHandoffBuilder<C> {
            self.as_str().into_builder()
        }
    }
}

/// The argument of [`RealtimeAgent::handoff`]: a handoff, a builder, an agent, or a name.
pub trait IntoRealtimeHandoff<C> {
    /// Converts into the handoff.
    fn into_realtime_handoff(self) -> RealtimeHandoff<C>;
}

impl<C> IntoRealtimeHandoff<C> for RealtimeHandoff<C> {
    fn into_realtime_handoff(self) -> Self {
        self
    }
}

impl<C, K> IntoRealtimeHandoff<C> for RealtimeHandoffBuilder<C, K> {
    fn into_realtime_handoff(self) -> RealtimeHandoff<C> {
        self.build()
    }
}

macro_rules! plain_handoff_to {
    ($($target:ty),*) => {$(
        impl<C> IntoRealtimeHandoff<C> for $target {
            fn into_realtime_handoff(self) -> RealtimeHandoff<C> {
                realtime_handoff(self).build()
            }
        }
    )*};
}

plain_handoff_to!(&RealtimeAgent<C>, RealtimeAgent<C>, &str, String);
