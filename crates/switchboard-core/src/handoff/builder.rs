//! Building a handoff.

use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::{
    Handoff, HandoffContext, HandoffDecision, HandoffInputData, Inner, Target,
    default_tool_description, default_tool_name,
};
use crate::agent::Agent;
use crate::approval::ApprovalRule;
use crate::callback::{IntoOutcome, Outcome};
use crate::condition::Enabled;
use crate::context::RunContext;
use crate::filters::{Filter, IntoFilter};
use crate::guardrail::HandoffGuardrail;
use crate::model::HandoffSpec;
use crate::schema::{self, ParsedPayload, Payload};

/// Creates a handoff to an agent, or to the agent with a name in a [`Team`](crate::Team).
///
/// Closures that use the application's context need its type to be known: from the agent, created
/// as `Agent::<App>::new(..)`, or here, as `handoff::<App>("Billing")`.
///
/// ```
/// use schemars::JsonSchema;
/// use serde::Deserialize;
/// use switchboard_core::{Agent, filters, handoff};
///
/// #[derive(Deserialize, JsonSchema)]
/// struct Escalation { reason: String }
///
/// struct App { premium: bool }
///
/// let support = Agent::<App>::new("Support");
/// let triage = Agent::new("Triage").handoff(
///     handoff(&support)
///         .payload::<Escalation>()
///         .on_handoff(|_ctx, escalation| async move { println!("{}", escalation.reason) })
///         .filter(filters::remove_all_tools())
///         .enabled_if(|ctx, _agent| ctx.premium),
/// );
/// ```
pub fn handoff<C>(target: impl IntoTarget<C>) -> HandoffBuilder<C> {
    target.into_builder()
}

pub(super) fn begin<C>(
    target: Target<C>,
    agent_name: Arc<str>,
    description: Option<&str>,
) -> HandoffBuilder<C> {
    HandoffBuilder {
        inner: Inner {
            spec: HandoffSpec {
                tool_name: default_tool_name(&agent_name).into(),
                tool_description: default_tool_description(&agent_name, description).into(),
                input_json_schema: schema::raw(&schema::empty_object()),
                strict: true,
                to: agent_name,
                described_schema: schema::raw(&schema::empty_object()),
                knowledge: Arc::default(),
            },
            tool_name_given: false,
            description_given: false,
            target,
            schema: None,
            payload: None,
            callback: None,
            filter: None,
            deliveries: Vec::new(),
            guardrails: Vec::new(),
            nest_history: None,
            enabled: Enabled::Always,
            approval: ApprovalRule::Never,
            condition_name: None,
            edges: super::edge::EdgeConditions::none(),
            transfer_message: None,
            way_back: None,
            problem: None,
        },
        kind: PhantomData,
    }
}

/// A builder that begins with everything of a handoff.
pub(super) fn edit<C>(inner: Inner<C>) -> HandoffBuilder<C, WithCallback> {
    HandoffBuilder {
        inner,
        kind: PhantomData,
    }
}

/// Builds a handoff; see [`handoff`].
///
/// `K` is the argument of its callback: [`NoPayload`], [`TypedPayload`] or [`JsonPayload`];
/// [`WithCallback`] once it has one, and [`Custom`] where code picks the agent.
#[must_use]
pub struct HandoffBuilder<C, K = NoPayload> {
    inner: Inner<C>,
    kind: PhantomData<fn() -> K>,
}

/// State of a [`HandoffBuilder`] without payload and callback.
#[derive(Debug)]
pub enum NoPayload {}

/// State of a [`HandoffBuilder`] with a payload of type `T`.
#[derive(Debug)]
pub struct TypedPayload<T>(PhantomData<T>);

/// State of a [`HandoffBuilder`] with a payload that a JSON schema describes.
#[derive(Debug)]
pub enum JsonPayload {}

/// State of a [`HandoffBuilder`] with a callback.
#[derive(Debug)]
pub enum WithCallback {}

/// State of a [`HandoffBuilder`] made by [`Handoff::custom`].
#[derive(Debug)]
pub enum Custom {}

impl<C, K> HandoffBuilder<C, K> {
    /// Sets the tool's name, instead of `transfer_to_<agent>`. An empty name is ignored.
    pub fn tool_name(mut self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        if !name.is_empty() {
            self.inner.spec.tool_name = name;
            self.inner.tool_name_given = true;
        }
        self
    }

    /// Sets the tool's description, instead of one made from the target's. An empty description is
    /// ignored.
    pub fn tool_description(mut self, description: impl Into<Arc<str>>) -> Self {
        let description = description.into();
        if !description.is_empty() {
            self.inner.spec.tool_description = description;
            self.inner.description_given = true;
        }
        self
    }

    /// Sets the output of the handoff's call, which both agents' models see, instead of
    /// `{"assistant": "<agent>"}`.
    pub fn transfer_message(self, message: impl Into<Arc<str>>) -> Self {
        self.with(|inner| inner.transfer_message = Some(message.into()))
    }

    /// Filters what the next agent gets. It takes precedence over the run's filter and over nesting.
    pub fn filter<M>(self, filter: impl IntoFilter<C, M>) -> Self {
        self.with(|inner| inner.filter = Some(filter.into_filter()))
    }

    /// Finishes the handoff. [`Agent::handoff`] takes a builder as well.
    pub fn build(self) -> Handoff<C> {
        let mut inner = self.inner;
        let (name, to) = (&inner.spec.tool_name, &inner.spec.to);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c.is_whitespace();
        if !inner.tool_name_given && !to.chars().all(is_plain) {
            tracing::warn!(
                "the agent's name \"{to}\" has characters that a tool's name cannot have, so the \
                 handoff to it is \"{name}\"; give it a name with tool_name, or use \
                 ToolNames::Readable"
            );
        }
        if let Some(schema) = &inner.schema {
            inner.spec.described_schema = schema::raw(schema);
        }
        let schema = inner.schema.clone().map(|schema| {
            if inner.spec.strict {
                schema::strict(schema)
            } else {
                Ok(schema)
            }
        });
        match schema {
            Some(Ok(schema)) => inner.spec.input_json_schema = schema::raw(&schema),
            Some(Err(error)) => {
                inner.problem = Some(format!(
                    "the payload's schema cannot be strict ({error}); change it, or allow it with \
                     `.strict(false)`"
                ));
            }
            None => {}
        }
        let way_back = inner.way_back.take();
        inner.way_back = way_back.map(|edge| edge.to_builder().build());
        if inner.payload.is_none() && !inner.deliveries.is_empty() {
            inner.problem = Some(
                "it is to deliver its payload (deliver), and it takes none; give it one with payload"
                    .to_owned(),
            );
        }
        Handoff(Arc::new(inner))
    }

    /// Adds a guardrail, which runs before the handoff's first side effect. The filter then runs
    /// before the callback: what the guardrails saw is what the next agent gets.
    pub fn guardrail(self, guardrail: HandoffGuardrail<C>) -> Self {
        self.with(|inner| inner.guardrails.push(guardrail))
    }

    /// Nests the history into a summary for the next agent, or not, whatever the run's setting.
    pub fn nest_history(self, nest: bool) -> Self {
        self.with(|inner| inner.nest_history = Some(nest))
    }

    /// Enables or disables the handoff.
    pub fn enabled(self, enabled: bool) -> Self {
        self.with(|inner| inner.enabled = enabled.into())
    }

    /// Enables the handoff while `condition` holds. It is evaluated every turn, with the agent that
    /// would hand off; sync or async.
    pub fn enabled_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.with(|inner| inner.enabled = Enabled::when(condition))
    }

    /// Makes the handoff wait for a person's decision whenever the model asks for it; see
    /// [`approval`](crate::approval). The person is asked once the payload was read, the condition was
    /// checked again, and guardrails have allowed the handoff; the callback runs after the decision. A
    /// handoff that is rejected is answered with the reviewer's message, and the agent keeps the
    /// conversation.
    pub fn needs_approval(self) -> Self {
        self.with(|inner| inner.approval = ApprovalRule::Always)
    }

    /// Makes the handoff wait for a person's decision if `condition` holds for its payload, which the
    /// condition gets as JSON. If the condition fails, the handoff waits.
    pub fn needs_approval_if<F, R, M>(self, condition: F) -> Self
    where
        F: Fn(HandoffContext<C>, Value) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.with(|inner| inner.approval = ApprovalRule::when(condition))
    }

    /// Names the condition for drawings of the team; it completes the phrase "if ...".
    ///
    /// ```
    /// use switchboard_core::{Agent, Team, handoff};
    ///
    /// struct App { premium: bool }
    ///
    /// let to_support = handoff::<App>("Support")
    ///     .enabled_if(|ctx, _agent| ctx.premium)
    ///     .condition_name("premium");
    /// let team = Team::new()
    ///     .agent(Agent::new("Triage").handoff(to_support))
    ///     .agent(Agent::new("Support"))
    ///     .build()?;
    /// assert!(team.graph().to_mermaid().contains("a0 -.->|\"if premium\"| a1"));
    /// # Ok::<(), switchboard_core::Error>(())
    /// ```
    pub fn condition_name(self, name: impl Into<Arc<str>>) -> Self {
        self.with(|inner| inner.condition_name = Some(name.into()))
    }

    /// Sets whether the model must keep to the payload's schema, which is the default. A schema that
    /// is not strict is passed on unchanged; the payload is validated against it all the same.
    pub fn strict(self, strict: bool) -> Self {
        self.with(|inner| inner.spec.strict = strict)
    }

    /// Filters like [`HandoffBuilder::filter`], with a closure whose argument needs no type.
    pub fn filter_fn<F, R, M>(self, filter: F) -> Self
    where
        F: Fn(HandoffInputData<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffInputData<C>, M>,
    {
        self.filter(Filter::new(filter))
    }

    pub(super) fn with(mut self, change: impl FnOnce(&mut Inner<C>)) -> Self {
        change(&mut self.inner);
        self
    }

    fn with_callback(
        mut self,
        callback: impl Fn(HandoffContext<C>, ParsedPayload) -> Outcome<HandoffDecision>
        + Send
        + Sync
        + 'static,
    ) -> HandoffBuilder<C, WithCallback> {
        self.inner.callback = Some(Arc::new(callback));
        self.with_state()
    }

    pub(super) fn with_state<L>(self) -> HandoffBuilder<C, L> {
        HandoffBuilder {
            inner: self.inner,
            kind: PhantomData,
        }
    }

    fn with_payload(mut self, schema: Value, payload: Payload) -> Self {
        self.inner.schema = Some(schema);
        self.inner.payload = Some(payload);
        self
    }
}

impl<C> HandoffBuilder<C, WithCallback> {
    /// Leads the handoff to another agent. What the model sees stays as it is.
    pub fn target(self, agent: &Agent<C>) -> Self {
        self.with(|inner| {
            inner.tool_name_given = true;
            inner.description_given = true;
            inner.spec.to = agent.name_arc().clone();
            inner.target = Target::Agent(agent.clone());
        })
    }
}

impl<C> HandoffBuilder<C, Custom> {
    /// Sets the JSON schema of the arguments, which the code that picks reads itself.
    pub fn arguments_schema(self, schema: Value) -> Self {
        self.with(|inner| inner.schema = Some(schema))
    }

    /// Adds an agent that the code may pick.
    pub fn candidate(mut self, agent: &Agent<C>) -> Self {
        if let Target::Custom(custom) = &mut self.inner.target {
            custom.candidates.push(agent.clone());
        }
        self
    }
}

impl<C> HandoffBuilder<C, NoPayload> {
    /// Sets the payload's type. It is the schema that the model gets, made strict; the arguments of
    /// the call are validated and parsed into it before anything else happens.
    pub fn payload<T>(self) -> HandoffBuilder<C, TypedPayload<T>>
    where
        T: JsonSchema + DeserializeOwned + Send + 'static,
    {
        self.with_payload(schema::of::<T>(), Payload::typed::<T>())
            .with_state()
    }

    /// Sets the payload's JSON schema.
    pub fn payload_schema(self, schema: Value) -> HandoffBuilder<C, JsonPayload> {
        let payload = Payload::described_by(schema.clone());
        self.with_payload(schema, payload).with_state()
    }

    /// Sets the callback, which runs when the handoff is taken, before the next agent starts. It
    /// returns nothing, a [`HandoffDecision`], a `Result` of either, or a future of any of these; an
    /// error stops the run where it was before the handoff.
    pub fn on_handoff<F, R, M>(self, callback: F) -> HandoffBuilder<C, WithCallback>
    where
        F: Fn(HandoffContext<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.with_callback(move |ctx, _payload| callback(ctx).into_outcome())
    }
}

impl<C, T: DeserializeOwned + Send + 'static> HandoffBuilder<C, TypedPayload<T>> {
    /// Sets the callback, which gets the payload; see [`HandoffBuilder::on_handoff`].
    pub fn on_handoff<F, R, M>(self, callback: F) -> HandoffBuilder<C, WithCallback>
    where
        F: Fn(HandoffContext<C>, T) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.with_callback(move |ctx, payload| {
            match payload.typed.and_then(|typed| typed.downcast::<T>().ok()) {
                Some(payload) => callback(ctx, *payload).into_outcome(),
                None => Outcome::Ready(Err("the payload is not of its type".into())),
            }
        })
    }
}

impl<C> HandoffBuilder<C, JsonPayload> {
    /// Sets the callback, which gets the payload as JSON; see [`HandoffBuilder::on_handoff`].
    pub fn on_handoff<F, R, M>(self, callback: F) -> HandoffBuilder<C, WithCallback>
    where
        F: Fn(HandoffContext<C>, Value) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.with_callback(move |ctx, payload| callback(ctx, payload.value).into_outcome())
    }
}

impl_debug!(HandoffBuilder<C, K>, |builder| builder.inner.spec.tool_name);

/// The target of a [`handoff()`]: an agent, or the name of one in the same team.
pub trait IntoTarget<C>: sealed::Target<C> {}

impl<C, T: sealed::Target<C>> IntoTarget<C> for T {}

mod sealed {
    use std::sync::Arc;

    use super::{Agent, HandoffBuilder, Target as HandoffTarget, begin};

    pub trait Target<C> {
        fn into_builder(self) -> HandoffBuilder<C>;
    }

    impl<C> Target<C> for &Agent<C> {
        fn into_builder(self) -> HandoffBuilder<C> {
            let name = self.name_arc().clone();
            begin(HandoffTarget::Agent(self.clone()), name, self.description())
        }
    }

    impl<C> Target<C> for Agent<C> {
        fn into_builder(self) -> HandoffBuilder<C> {
            (&self).into_builder()
        }
    }

    impl<C> Target<C> for &str {
        fn into_builder(self) -> HandoffBuilder<C> {
            let name: Arc<str> = self.into();
            begin(HandoffTarget::Name(name.clone()), name, None)
        }
    }

    impl<C> Target<C> for String {
        fn into_builder(self) -> HandoffBuilder<C> {
            self.as_str().into_builder()
        }
    }
}

/// The argument of [`Agent::handoff`]: a handoff, a builder, an agent, or a name.
pub trait IntoHandoff<C> {
    /// Converts into the handoff.
    fn into_handoff(self) -> Handoff<C>;
}

impl<C> IntoHandoff<C> for Handoff<C> {
    fn into_handoff(self) -> Self {
        self
    }
}

impl<C, K> IntoHandoff<C> for HandoffBuilder<C, K> {
    fn into_handoff(self) -> Handoff<C> {
        self.build()
    }
}

macro_rules! plain_handoff_to {
    ($($target:ty),*) => {$(
        impl<C> IntoHandoff<C> for $target {
            fn into_handoff(self) -> Handoff<C> {
                handoff(self).build()
            }
        }
    )*};
}

plain_handoff_to!(&Agent<C>, Agent<C>, &str, String);
