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
use crate::schema::{self, Payload};

/// A handoff to an agent, or to the agent of a name in a [`Team`](crate::Team).
///
/// Closures that use the application's state need its type to be known: from the agent, which is
/// then begun as `Agent::<App>::new(..)`, or here, as `handoff::<App>("Billing")`.
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
                agent_name,
            },
            tool_name_given: false,
            description_given: false,
            target,
            described: None,
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

/// A handoff in the making; see [`handoff`].
///
/// `K` keeps apart what a callback is given: nothing, a payload of the user's type, or JSON.
pub struct HandoffBuilder<C, K = Plain> {
    inner: Inner<C>,
    kind: PhantomData<fn() -> K>,
}

/// A handoff without payload and callback.
#[derive(Debug)]
pub enum Plain {}

/// A handoff with a payload of type `T`, and no callback yet.
#[derive(Debug)]
pub struct Typed<T>(PhantomData<T>);

/// A handoff with a payload described by a schema, and no callback yet.
#[derive(Debug)]
pub enum Untyped {}

/// A handoff with a callback.
#[derive(Debug)]
pub enum Called {}

/// A handoff whose code picks the agent.
#[derive(Debug)]
pub enum Picked {}

impl<C, K> HandoffBuilder<C, K> {
    /// The tool's name, instead of `transfer_to_<agent>`. An empty one changes nothing.
    #[must_use]
    pub fn tool_name(mut self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        if !name.is_empty() {
            self.inner.spec.tool_name = name;
            self.inner.tool_name_given = true;
        }
        self
    }

    /// What the model is told of the handoff, instead of the target's own description. An empty
    /// one changes nothing.
    #[must_use]
    pub fn tool_description(mut self, description: impl Into<Arc<str>>) -> Self {
        let description = description.into();
        if !description.is_empty() {
            self.inner.spec.tool_description = description;
            self.inner.description_given = true;
        }
        self
    }

    /// Changes what the next agent sees. It beats the run's own filter, and switches nesting off.
    #[must_use]
    pub fn filter<M>(mut self, filter: impl IntoFilter<C, M>) -> Self {
        self.inner.filter = Some(filter.into_filter());
        self
    }

    /// The finished handoff, where it is to be named or returned. [`Agent::handoff`] takes one in
    /// the making as well.
    pub fn build(self) -> Handoff<C> {
        Handoff(Arc::new(self.inner))
    }

    /// Checks each handoff along this edge, before its first side effect. The filter then runs before
    /// the callback: what the guardrails saw is what is carried over.
    #[must_use]
    pub fn guardrail(mut self, guardrail: HandoffGuardrail<C>) -> Self {
        self.inner.guardrails.push(guardrail);
        self
    }

    /// Whether the next agent sees the history as one nested summary, whatever the run says.
    #[must_use]
    pub fn nest_history(mut self, nest: bool) -> Self {
        self.inner.nest_history = Some(nest);
        self
    }

    /// Whether the handoff is offered at all.
    #[must_use]
    pub fn enabled(mut self, enabled: bool) -> Self {
        self.inner.enabled = if enabled {
            Enabled::Always
        } else {
            Enabled::Never
        };
        self
    }

    /// Offers the handoff only while `condition` holds. It is asked every turn, with the agent
    /// that would hand off; sync or async.
    #[must_use]
    pub fn enabled_if<F, R, M>(mut self, condition: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<bool, M>,
    {
        self.inner.enabled = Enabled::when(condition);
        self
    }

    /// What the condition is called where the team is drawn; it completes the sentence "if ...".
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

    /// Whether the model must keep to the payload's schema; it must unless this says otherwise.
    /// A schema that need not be strict is passed on as it is. What the model sends is checked
    /// against it all the same.
    #[must_use]
    pub fn strict(mut self, strict: bool) -> Self {
        self.inner.spec.strict = strict;
        self.describe();
        self
    }

    /// Changes what the next agent sees, like [`HandoffBuilder::filter`], with a closure whose
    /// argument need not be given a type.
    #[must_use]
    pub fn filter_fn<F, R, M>(self, filter: F) -> Self
    where
        F: Fn(HandoffInputData<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffInputData<C>, M>,
    {
        self.filter(Filter::new(filter))
    }

    pub(super) fn becomes<L>(self) -> HandoffBuilder<C, L> {
        HandoffBuilder {
            inner: self.inner,
            kind: PhantomData,
        }
    }

    fn with_payload(mut self, schema: Value, payload: Payload) -> Self {
        self.inner.described = Some(schema);
        self.inner.payload = Some(payload);
        self.describe();
        self
    }

    /// Makes the schema the model is given out of the one that describes the payload.
    fn describe(&mut self) {
        let Some(schema) = self.inner.described.clone() else {
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

impl<C> HandoffBuilder<C, Picked> {
    /// The JSON schema of the arguments, which the code that picks reads itself.
    #[must_use]
    pub fn arguments_schema(mut self, schema: Value) -> Self {
        self.inner.described = Some(schema);
        self.describe();
        self
    }

    /// An agent the code may pick.
    #[must_use]
    pub fn candidate(mut self, agent: &Agent<C>) -> Self {
        if let Target::Custom(custom) = &mut self.inner.target {
            custom.candidates.push(agent.clone());
        }
        self
    }
}

impl<C> HandoffBuilder<C, Plain> {
    /// The model must send a `T` along. The type is the schema it is given, made strict; what it
    /// sends is checked and parsed into the type before anything else happens.
    #[must_use]
    pub fn payload<T>(self) -> HandoffBuilder<C, Typed<T>>
    where
        T: JsonSchema + DeserializeOwned + 'static,
    {
        self.with_payload(schema::of::<T>(), Payload::typed::<T>())
            .becomes()
    }

    /// The model must send along JSON that keeps to this schema.
    #[must_use]
    pub fn payload_schema(self, schema: Value) -> HandoffBuilder<C, Untyped> {
        let payload = Payload::described_by(schema.clone());
        self.with_payload(schema, payload).becomes()
    }

    /// Runs when the handoff is taken, before the next agent starts. It returns nothing, a
    /// `Result`, or a future of either; an error stops the run where it was before the handoff.
    #[must_use]
    pub fn on_handoff<F, R, M>(mut self, callback: F) -> HandoffBuilder<C, Called>
    where
        F: Fn(RunContext<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.inner.callback = Callback::Plain(Arc::new(move |ctx| callback(ctx).into_outcome()));
        self.becomes()
    }
}

impl<C, T: DeserializeOwned + 'static> HandoffBuilder<C, Typed<T>> {
    /// Runs with the payload when the handoff is taken, before the next agent starts. It returns
    /// nothing, a `Result`, or a future of either; an error stops the run where it was before.
    #[must_use]
    pub fn on_handoff<F, R, M>(mut self, callback: F) -> HandoffBuilder<C, Called>
    where
        F: Fn(RunContext<C>, T) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.inner.callback = Callback::WithPayload(Arc::new(move |ctx, payload| {
            match serde_json::from_value(payload) {
                Ok(payload) => callback(ctx, payload).into_outcome(),
                Err(error) => Outcome::Ready(Err(error.into())),
            }
        }));
        self.becomes()
    }
}

impl<C> HandoffBuilder<C, Untyped> {
    /// Runs with the payload as JSON when the handoff is taken, before the next agent starts.
    #[must_use]
    pub fn on_handoff<F, R, M>(mut self, callback: F) -> HandoffBuilder<C, Called>
    where
        F: Fn(RunContext<C>, Value) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.inner.callback = Callback::WithPayload(Arc::new(move |ctx, payload| {
            callback(ctx, payload).into_outcome()
        }));
        self.becomes()
    }
}

impl<C, K> fmt::Debug for HandoffBuilder<C, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HandoffBuilder({})", self.inner.spec.tool_name)
    }
}

/// What [`handoff`] can lead to: an agent, or the name of one in the same team.
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

/// What [`Agent::handoff`] takes: a finished handoff, one in the making, an agent, or a name.
pub trait IntoHandoff<C> {
    /// The handoff.
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
