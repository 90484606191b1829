//! Ways back: handoffs to the agent that had the conversation before, and to the first one.

use std::any::TypeId;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::builder::{self, HandoffBuilder};
use super::{Handoff, HandoffContext, HandoffDecision, HandoffInputData, Inner, Target};
use crate::agent::Agent;
use crate::callback::{IntoOutcome, Outcome};
use crate::filters::{Filter, IntoFilter};
use crate::json;
use crate::schema::{self, Payload};

/// The tool that hands a conversation back, unless it has another name.
pub(crate) const HAND_BACK: &str = "hand_back";

/// An agent that is known by its place in the conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returning {
    /// The agent that handed the conversation to the current one.
    Previous,
    /// The agent that the runner begins with.
    Start,
}

/// A handoff to an agent that is known by its place in the conversation.
pub(crate) struct ReturnTarget<C> {
    pub(crate) to: Returning,
    /// The agent, once it is known.
    pub(crate) agent: Option<Agent<C>>,
}

impl_clone! { struct ReturnTarget<C> { to, agent } }

impl<C> Handoff<C> {
    /// Creates a handoff to the agent that handed the conversation to the one that has it: the tool
    /// `return_to_previous`. It is offered while there is such an agent, and each return undoes one
    /// handoff: after A → B → C it leads from C to B, and from B to A.
    ///
    /// A stored conversation remembers the way back, so the handoff may lie in an earlier run. Limits
    /// on circles count a return like any other handoff.
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Handoff, Runner};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let billing: Agent = Agent::new("Billing").handoff(Handoff::to_previous());
    /// let triage = Agent::new("Triage").handoff(&billing);
    /// let model = ScriptedModel::new()
    ///     .call("transfer_to_billing", "{}")
    ///     .call("return_to_previous", "{}")
    ///     .say("What else?");
    /// let result = Runner::new(&triage).model(model).run("Hi").await?;
    /// assert_eq!(result.last_agent().name(), "Triage");
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn to_previous() -> HandoffBuilder<C> {
        returning(Returning::Previous, "return_to_previous")
    }

    /// Creates a handoff to the agent that the runner begins with: the tool `return_to_start`. It is
    /// offered to all agents but that one, and afterwards there is no way back from it.
    pub fn to_start() -> HandoffBuilder<C> {
        returning(Returning::Start, "return_to_start")
    }

    /// The handoff by which the target hands the conversation back, where this one
    /// [returns](HandoffBuilder::returns) something.
    pub fn way_back(&self) -> Option<&Self> {
        self.0.way_back.as_ref()
    }

    /// The place of the agent that it leads to, where that is not a fixed one.
    pub(crate) fn returning(&self) -> Option<Returning> {
        match self.target() {
            Target::Return(target) => Some(target.to),
            _ => None,
        }
    }

    /// A way back to this agent.
    pub(crate) fn resolved(&self, agent: &Agent<C>) -> Self {
        let mut inner = Inner::clone(&self.0);
        let Target::Return(target) = &mut inner.target else {
            return self.clone();
        };
        target.agent = Some(agent.clone());
        inner.spec.to = agent.name_arc().clone();
        if !inner.description_given {
            let description = description(target.to, agent.name(), inner.payload.is_some());
            inner.spec.tool_description = description.into();
        }
        Self(Arc::new(inner))
    }

    /// The output of the call of a way back that returns something.
    pub(super) fn return_message(&self, target: &Agent<C>, payload: &Value) -> Option<String> {
        self.returning().filter(|_| self.takes_payload())?;
        let mut message = String::from("{\"assistant\": ");
        json::quote_ascii_into(&mut message, target.name());
        message.push_str(", \"result\": ");
        message.push_str(&payload.to_string());
        message.push('}');
        Some(message)
    }
}

/// The way back of a person whom no other leads to the agent that it came from.
pub(crate) fn hand_back<C>() -> Handoff<C> {
    returning(Returning::Previous, HAND_BACK).build()
}

fn returning<C>(to: Returning, tool_name: &str) -> HandoffBuilder<C> {
    let name = match to {
        Returning::Previous => "the previous agent",
        Returning::Start => "the first agent",
    };
    let target = Target::Return(ReturnTarget { to, agent: None });
    let builder = builder::begin(target, name.into(), None);
    builder.tool_name(tool_name).with(|inner| {
        inner.spec.tool_description = description(to, name, false).into();
    })
}

fn description(to: Returning, agent: &str, returns: bool) -> String {
    match to {
        Returning::Previous if returns => format!(
            "Hand the conversation back to {agent}, with the result of what you were asked to do."
        ),
        Returning::Previous => {
            format!("Hand the conversation back to {agent}, which handed it over to you.")
        }
        Returning::Start => format!("Hand the conversation back to {agent}, where it began."),
    }
}

/// The way back.
impl<C, K> HandoffBuilder<C, K> {
    /// Lets the target hand the conversation back with a `T`. While it has the conversation from this
    /// handoff, its model is offered the tool `hand_back`, whose arguments are the `T`. They are validated
    /// like a payload, and the agent that handed over sees them as the output of that call; if a
    /// [filter](Self::return_filter) cuts the call out, in a developer message.
    ///
    /// Returns nest: after A → B → C, C hands back to B, and B to A. A stored conversation remembers the
    /// way back. Calling the tool is a handoff, with everything that belongs to one; it ends the stay with
    /// the target.
    ///
    /// ```
    /// use schemars::JsonSchema;
    /// use serde::Deserialize;
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Runner, handoff};
    ///
    /// #[derive(Deserialize, JsonSchema)]
    /// struct Refund { amount: u32 }
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let billing: Agent = Agent::new("Billing");
    /// let triage = Agent::new("Triage").handoff(
    ///     handoff(&billing)
    ///         .returns::<Refund>()
    ///         .on_return(|_ctx, refund: Refund| println!("{} back", refund.amount)),
    /// );
    /// let model = ScriptedModel::new()
    ///     .call("transfer_to_billing", "{}")
    ///     .call("hand_back", r#"{"amount": 20}"#)
    ///     .say("You get 20 back. What else?");
    /// let result = Runner::new(&triage).model(model.clone()).run("My bill is wrong").await?;
    /// assert_eq!(result.last_agent().name(), "Triage");
    /// let seen = &model.requests()[2].input;
    /// let output = seen[seen.len() - 1].output_text();
    /// assert_eq!(output.as_deref(), Some(r#"{"assistant": "Triage", "result": {"amount":20}}"#));
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    pub fn returns<T>(self) -> Self
    where
        T: JsonSchema + DeserializeOwned + Send + 'static,
    {
        self.with_way_back(|edge| {
            edge.schema = Some(schema::of::<T>());
            edge.payload = Some(Payload::typed::<T>());
        })
    }

    /// Lets the target hand the conversation back with a result that a JSON schema describes; see
    /// [`returns`](Self::returns).
    pub fn returns_schema(self, schema: Value) -> Self {
        self.with_way_back(|edge| {
            edge.payload = Some(Payload::described_by(schema.clone()));
            edge.schema = Some(schema);
        })
    }

    /// Sets code that gets the result when the conversation is handed back, before the agent goes on. It
    /// returns what [`on_handoff`](Self::on_handoff) may return: it can refuse the result, and the target's
    /// model is told why. Without [`returns`](Self::returns), the result is described by `T`; with
    /// [`returns_schema`](Self::returns_schema), `T` may be a [`Value`].
    pub fn on_return<T, F, R, M>(self, callback: F) -> Self
    where
        T: JsonSchema + DeserializeOwned + Send + 'static,
        F: Fn(HandoffContext<C>, T) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffDecision, M>,
    {
        self.with_way_back(|edge| {
            if edge.payload.is_none() && TypeId::of::<T>() != TypeId::of::<Value>() {
                edge.schema = Some(schema::of::<T>());
                edge.payload = Some(Payload::typed::<T>());
            }
            edge.callback = Some(Arc::new(move |ctx, result| {
                let typed = result.typed.and_then(|typed| typed.downcast::<T>().ok());
                match typed.map_or_else(|| T::deserialize(result.value), |typed| Ok(*typed)) {
                    Ok(result) => callback(ctx, result).into_outcome(),
                    Err(_) => {
                        Outcome::Ready(Err("the result is not of the callback's type".into()))
                    }
                }
            }));
        })
    }

    /// Filters what the agent that handed over gets when the conversation is handed back: it need not
    /// see how the target came to its result. It takes precedence over the run's filter and over nesting.
    pub fn return_filter<M>(self, filter: impl IntoFilter<C, M>) -> Self {
        self.with_way_back(|edge| edge.filter = Some(filter.into_filter()))
    }

    /// Filters like [`return_filter`](Self::return_filter), with a closure whose argument needs no type.
    pub fn return_filter_fn<F, R, M>(self, filter: F) -> Self
    where
        F: Fn(HandoffInputData<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<HandoffInputData<C>, M>,
    {
        self.return_filter(Filter::new(filter))
    }

    /// Sets the name of the tool that hands back, instead of `hand_back`. An empty name is ignored.
    pub fn return_tool_name(self, name: impl Into<Arc<str>>) -> Self {
        let name = name.into();
        self.with_way_back(|edge| {
            if !name.is_empty() {
                edge.spec.tool_name = name;
            }
        })
    }

    /// Sets the description of the tool that hands back.
    pub fn return_tool_description(self, description: impl Into<Arc<str>>) -> Self {
        self.with_way_back(|edge| {
            edge.spec.tool_description = description.into();
            edge.description_given = true;
        })
    }

    /// Changes the way back, which the handoff has from then on.
    fn with_way_back(self, change: impl FnOnce(&mut Inner<C>)) -> Self {
        self.with(|inner| {
            let edge = inner.way_back.take().unwrap_or_else(hand_back);
            let mut edge = Inner::clone(&edge.0);
            change(&mut edge);
            inner.way_back = Some(Handoff(Arc::new(edge)));
        })
    }
}
