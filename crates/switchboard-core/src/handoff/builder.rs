//! Building a handoff.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::{
    Callback, Handoff, HandoffDecision, HandoffInputData, Inner, Target, default_tool_description,
    default_tool_name,
};
use crate::agent::Agent;
use crate::callback::{IntoOutcome, Outcome};
use crate::context::RunContext;
use crate::enabled::Enabled;
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
    match target.into_target() {
        Target::Agent(agent) => {
            let name = agent.name_arc().clone();
            let description = agent.description().map(str::to_owned);
            begin(Target::Agent(agent), name, description.as_deref())
        }
        Target::Name(name) => begin(Target::Name(name.clone()), name, None),
        other => begin(other, "".into(), None),
    }
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
                input_json_schema: schema::raw(&no_payload()),
                strict: true,
                to: agent_name,
            },
            tool_name_given: false,
            description_given: false,
            target,
            schema: None,
            payload: None,
            callback: Callback::None,
            filter: None,
            guardrails: Vec::new(),
            nest_history: None,
            enabled: Enabled::Always,
            condition_name: None,
            problem: None,
        },
        kind: PhantomData,
    }
}

fn no_payload() -> Value {
    json!({"additionalProperties": false, "type": "object", "properties": {}, "required": []})
}

/// Builds a handoff; see [`handoff`].
///
/// `K` is the argument of its callback: [`NoPayload`], [`TypedPayload`] or [`JsonPayload`];
/// [`WithCallback`] once it has one, and [`Custom`] where code picks the agent.
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
    #[must_use]
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
    #[must_use]
    pub fn tool_description(mut self, description: impl Into<Arc<str>>) -> Self {
        let description = description.into();
        if !description.is_empty() {
            self.inner.spec.tool_description = description;
            self.inner.description_given = true;
        }
        self
    }

    /// Filters what the next agent gets. It takes precedence over the run's filter and over nesting.
    #[must_use]
    pub fn filter<M>(mut self, filter: impl IntoFilter<C, M>) -> Self {
        self.inner.filter = Some(filter.into_filter());
        self
    }

    /// Finishes the handoff. [`Agent::handoff`] takes a builder as well.
    pub fn build(self) -> Handoff<C> {
        Handoff(Arc::new(self.inner))
    }

    /// Adds a guardrail, which runs before the handoff's first side effect. The filter then runs
    /// before the callback: what the guardrails saw is what the next agent gets.
    #[must_use]
    pub fn guardrail(mut self, guardrail: HandoffGuardrail<C>) -> Self {
        self.inner.guardrails.push(guardrail);
        self
    }

    /// Nests the history into a summary for the next agent, or not, whatever the run's setting.
    #[must_use]
    pub fn nest_history(mut self, nest: bool) -> Self {
        self.inner.nest_history = Some(nest);
        self
    }

    /// Enables or disables the handoff.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.inner.enabled = if enabled {
            Enabled::Always
        } else {
            Enabled::Never
        };
        self
    }

    /// Enables the handoff while `condition` holds. It is evaluated every turn, with the agent that
    /// would hand off; sync or async.
    #[must_use]
    pub fn enabled_if<F, R, M>(mut self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.inner.enabled = Enabled::when(condition);
        self
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
    #[must_use]
    pub fn condition_name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.inner.condition_name = Some(name.into());
        self
    }

    /// Sets whether the model must keep to the payload's schema, which is the default. A schema that
    /// is not strict is passed on unchanged; the payload is validated against it all the same.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.inner.spec.strict = strict;
        self.update_schema();
        self
    }

    /// Filters like [`HandoffBuilder::filter`], with a closure whose argument needs no type.
    #[must_use]
    pub fn filter_fn<F, R, M>(self, filter: F) -> Self
    where
        F: Fn(HandoffInputData<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffInputData<C>, M>,
    {
        self.filter(Filter::new(filter))
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
        self.update_schema();
        self
    }

    /// Makes the schema for the model from the one that describes the payload.
    fn update_schema(&mut self) {
        let Some(schema) = self.inner.schema.clone() else {
            return;
        };
        let described = if self.inner.spec.strict {
            schema::strict(schema).map_err(|error| error.to_string())
        } else {
            Ok(schema)
        };
        self.inner.problem = None;
        match described {
            Ok(schema) => self.inner.spec.input_json_schema = schema::raw(&schema),
            Err(error) => {
                self.inner.problem = Some(format!(
                    "the payload's schema cannot be strict ({error}); change it, or allow it with \
                     `.strict(false)`"
                ));
            }
        }
    }
}

impl<C> HandoffBuilder<C, Custom> {
    /// Sets the JSON schema of the arguments, which the code that picks reads itself.
    #[must_use]
    pub fn arguments_schema(mut self, schema: Value) -> Self {
        self.inner.schema = Some(schema);
        self.update_schema();
        self
    }

    /// Adds an agent that the code may pick.
    #[must_use]
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
    #[must_use]
    pub fn payload<T>(self) -> HandoffBuilder<C, TypedPayload<T>>
    where
        T: JsonSchema + DeserializeOwned + Send + 'static,
    {
        self.with_payload(schema::of::<T>(), Payload::typed::<T>())
            .with_state()
    }

    /// Sets the payload's JSON schema.
    #[must_use]
    pub fn payload_schema(self, schema: Value) -> HandoffBuilder<C, JsonPayload> {
        let payload = Payload::described_by(schema.clone());
        self.with_payload(schema, payload).with_state()
    }

    /// Sets the callback, which runs when the handoff is taken, before the next agent starts. It
    /// returns nothing, a [`HandoffDecision`], a `Result` of either, or a future of any of these; an
    /// error stops the run where it was before the handoff.
    #[must_use]
    pub fn on_handoff<F, R, M>(mut self, callback: F) -> HandoffBuilder<C, WithCallback>
    where
        F: Fn(RunContext<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.inner.callback = Callback::Plain(Arc::new(move |ctx| callback(ctx).into_outcome()));
        self.with_state()
    }
}

impl<C, T: DeserializeOwned + Send + 'static> HandoffBuilder<C, TypedPayload<T>> {
    /// Sets the callback, which gets the payload; see [`HandoffBuilder::on_handoff`].
    #[must_use]
    pub fn on_handoff<F, R, M>(mut self, callback: F) -> HandoffBuilder<C, WithCallback>
    where
        F: Fn(RunContext<C>, T) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.inner.callback =
            Callback::WithPayload(Arc::new(move |ctx, payload: ParsedPayload| {
                match payload.typed.and_then(|typed| typed.downcast::<T>().ok()) {
                    Some(payload) => callback(ctx, *payload).into_outcome(),
                    None => Outcome::Ready(Err("the payload is not of its type".into())),
                }
            }));
        self.with_state()
    }
}

impl<C> HandoffBuilder<C, JsonPayload> {
    /// Sets the callback, which gets the payload as JSON; see [`HandoffBuilder::on_handoff`].
    #[must_use]
    pub fn on_handoff<F, R, M>(mut self, callback: F) -> HandoffBuilder<C, WithCallback>
    where
        F: Fn(RunContext<C>, Value) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.inner.callback =
            Callback::WithPayload(Arc::new(move |ctx, payload: ParsedPayload| {
                callback(ctx, payload.value).into_outcome()
            }));
        self.with_state()
    }
}

impl<C, K> fmt::Debug for HandoffBuilder<C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandoffBuilder({})", self.inner.spec.tool_name)
    }
}

/// The target of a [`handoff()`]: an agent, or the name of one in the same team.
pub trait IntoTarget<C>: sealed::Target<C> {}

impl<C, T: sealed::Target<C>> IntoTarget<C> for T {}

mod sealed {
    use std::sync::Arc;

    use super::{Agent, Target as HandoffTarget};

    pub trait Target<C> {
        #[expect(private_interfaces, reason = "this trait cannot be named outside")]
        fn into_target(self) -> HandoffTarget<C>;
    }

    impl<C> Target<C> for &Agent<C> {
        #[expect(private_interfaces, reason = "this trait cannot be named outside")]
        fn into_target(self) -> HandoffTarget<C> {
            HandoffTarget::Agent(self.clone())
        }
    }

    impl<C> Target<C> for Agent<C> {
        #[expect(private_interfaces, reason = "this trait cannot be named outside")]
        fn into_target(self) -> HandoffTarget<C> {
            HandoffTarget::Agent(self)
        }
    }

    impl<C> Target<C> for &str {
        #[expect(private_interfaces, reason = "this trait cannot be named outside")]
        fn into_target(self) -> HandoffTarget<C> {
            HandoffTarget::Name(self.into())
        }
    }

    impl<C> Target<C> for String {
        #[expect(private_interfaces, reason = "this trait cannot be named outside")]
        fn into_target(self) -> HandoffTarget<C> {
            HandoffTarget::Name(Arc::from(self))
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

impl<C> IntoHandoff<C> for &Agent<C> {
    fn into_handoff(self) -> Handoff<C> {
        handoff(self).into_handoff()
    }
}

impl<C> IntoHandoff<C> for Agent<C> {
    fn into_handoff(self) -> Handoff<C> {
        handoff(self).into_handoff()
    }
}

impl<C> IntoHandoff<C> for &str {
    fn into_handoff(self) -> Handoff<C> {
        handoff(self).into_handoff()
    }
}

impl<C> IntoHandoff<C> for String {
    fn into_handoff(self) -> Handoff<C> {
        handoff(self).into_handoff()
    }
}
