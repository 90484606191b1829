//! Handoffs: passing the conversation to another agent.

mod builder;
mod context;
mod edge;
mod filter_check;
pub(crate) mod handoff_prompt;
mod input_data;
mod nested_history;
mod payload_delivery;
mod tool_names;
pub(crate) mod ways_back;

use std::borrow::Cow;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

pub use builder::{
    Custom, HandoffBuilder, IntoHandoff, IntoTarget, JsonPayload, NoPayload, TypedPayload,
    WithCallback, handoff,
};
pub use context::HandoffContext;
pub use edge::EdgeDecision;
pub(crate) use filter_check::{FilterInput, InvalidResult};
pub use input_data::{AppliedFilter, HandoffInputData};
pub(crate) use input_data::{FilterLog, Orphans, Parts};
pub use nested_history::{
    HistoryMapper, HistoryMarkers, default_history_mapper, nest_handoff_history,
};
pub(crate) use nested_history::{history_links, transcript};
pub use payload_delivery::PayloadDelivery;
pub(crate) use payload_delivery::ReceivedPayload;
pub(crate) use tool_names::MAX_NAME_LEN;
pub(crate) use tool_names::function_name;
pub use tool_names::{ToolNames, default_tool_name};

pub(crate) use ways_back::{ReturnTarget, Returning};

pub use handoff_prompt::{HANDOFF_PROMPT, with_handoff_prompt};

use crate::agent::Agent;
use crate::approval::ApprovalRule;
use crate::callback::{IntoOutcome, Outcome};
use crate::condition::Enabled;
use crate::context::RunContext;
use crate::filters::Filter;
use crate::guardrail::HandoffGuardrail;
use crate::json;
use crate::model::HandoffSpec;
use crate::schema::{InvalidPayload, ParsedPayload, Payload};

/// An edge to another agent: a tool that the model calls to pass the conversation on.
///
/// Created with [`handoff()`], or with [`Handoff::custom`] where code picks the agent at call time.
/// Clones share it.
pub struct Handoff<C = ()>(Arc<Inner<C>>);

struct Inner<C> {
    spec: HandoffSpec,
    tool_name_given: bool,
    description_given: bool,
    target: Target<C>,
    /// The payload's schema as given, before it was made strict.
    schema: Option<Value>,
    payload: Option<Payload>,
    callback: Option<Arc<Callback<C>>>,
    filter: Option<Filter<C>>,
    /// The ways in which the payload reaches the next agent.
    deliveries: Vec<PayloadDelivery>,
    guardrails: Vec<HandoffGuardrail<C>>,
    nest_history: Option<bool>,
    enabled: Enabled<C>,
    approval: ApprovalRule<HandoffContext<C>>,
    condition_name: Option<Arc<str>>,
    /// The conditions by which it is taken without the model.
    edges: edge::EdgeConditions<C>,
    /// The output of the call, instead of the one that the target's name makes.
    transfer_message: Option<Arc<str>>,
    /// The handoff by which the target hands the conversation back.
    way_back: Option<Handoff<C>>,
    problem: Option<String>,
}

/// The agent that gets the conversation.
pub(crate) enum Target<C> {
    /// This agent.
    Agent(Agent<C>),
    /// The agent of this name in the team.
    Name(Arc<str>),
    /// The team's agent at this place, once the team is built.
    Member(usize),
    /// The agent that code picks.
    Custom(CustomTarget<C>),
    /// The agent at a place of the conversation.
    Return(ReturnTarget<C>),
}

/// Code that picks an agent, and the agents it may pick.
pub(crate) struct CustomTarget<C> {
    pick: Arc<Pick<C>>,
    pub(crate) candidates: Vec<Agent<C>>,
}

type Pick<C> = dyn Fn(RunContext<C>, String) -> Outcome<Agent<C>> + Send + Sync;

impl<C> CustomTarget<C> {
    pub(crate) fn pick(&self, ctx: RunContext<C>, arguments: String) -> Outcome<Agent<C>> {
        (self.pick)(ctx, arguments)
    }
}

impl_clone! { struct CustomTarget<C> { pick, candidates } }

/// The code that runs when the handoff is taken.
type Callback<C> =
    dyn Fn(HandoffContext<C>, ParsedPayload) -> Outcome<HandoffDecision> + Send + Sync;

/// The decision of a handoff's callback. `()` converts into [`HandoffDecision::Proceed`].
///
/// ```
/// use switchboard_core::handoff::HandoffDecision;
/// use switchboard_core::{Agent, handoff};
///
/// struct App { billing_is_open: bool }
///
/// let billing = Agent::<App>::new("Billing");
/// let desk = Agent::new("Night desk");
/// let triage = Agent::new("Triage")
///     .handoff(handoff(&billing).on_handoff(|ctx| {
///         if ctx.billing_is_open {
///             HandoffDecision::Proceed
///         } else {
///             HandoffDecision::redirect("Night desk")
///         }
///     }))
///     .handoff(&desk);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HandoffDecision {
    /// The handoff takes place.
    Proceed,
    /// The handoff does not take place: the model gets this reason, and the agent keeps the
    /// conversation.
    Refuse(String),
    /// Another agent gets the conversation. If the agent that has it has a handoff to that agent, its
    /// condition, guardrails, approval and callback are asked as if the model had called it.
    #[non_exhaustive]
    Redirect {
        /// The name of the agent, one that the run can reach.
        to: Arc<str>,
        /// The payload, instead of the model's.
        payload: Option<Value>,
    },
    /// A person decides; see [`approval`](crate::approval). After an approval the callback is called
    /// again, and [`HandoffContext::is_approved`] is `true`.
    AskApproval,
}

impl HandoffDecision {
    /// Refuses the handoff; the model gets the reason.
    pub fn refuse(reason: impl Into<String>) -> Self {
        Self::Refuse(reason.into())
    }

    /// Hands the conversation to the agent of this name instead.
    pub fn redirect(to: impl Into<Arc<str>>) -> Self {
        Self::Redirect {
            to: to.into(),
            payload: None,
        }
    }

    /// Hands the conversation to the agent of this name instead, with this payload.
    pub fn redirect_with(to: impl Into<Arc<str>>, payload: impl Into<Value>) -> Self {
        Self::Redirect {
            to: to.into(),
            payload: Some(payload.into()),
        }
    }
}

impl_from! { HandoffDecision { |_nothing: ()| Self::Proceed, } }

impl<C> Handoff<C> {
    /// Creates a handoff whose code picks the agent when the model calls it.
    ///
    /// `agent_name` names the target in traces, errors and the tool's name. `pick` gets the
    /// arguments as the model wrote them and returns an agent, a `Result` of one, or a future of
    /// either. List the agents it may pick with [`HandoffBuilder::candidate`]: a stored run finds
    /// its agent again only among those.
    ///
    /// ```
    /// use switchboard_core::{Agent, Handoff};
    ///
    /// let day: Agent = Agent::new("Day shift");
    /// let night: Agent = Agent::new("Night shift");
    /// let (by_day, by_night) = (day.clone(), night.clone());
    /// let handoff = Handoff::custom("Shift", move |_ctx, args| {
    ///     if args.contains("night") { by_night.clone() } else { by_day.clone() }
    /// })
    /// .candidate(&day)
    /// .candidate(&night);
    /// # let _: Agent = Agent::new("Triage").handoff(handoff);
    /// ```
    pub fn custom<F, R, M>(agent_name: impl Into<Arc<str>>, pick: F) -> HandoffBuilder<C, Custom>
    where
        F: Fn(RunContext<C>, String) -> R + Send + Sync + 'static,
        R: IntoOutcome<Agent<C>, M>,
    {
        let custom = CustomTarget {
            pick: Arc::new(move |ctx, args| pick(ctx, args).into_outcome()),
            candidates: Vec::new(),
        };
        builder::begin(Target::Custom(custom), agent_name.into(), None).with_state()
    }

    /// The name of the tool that stands for the handoff.
    pub fn tool_name(&self) -> &str {
        &self.0.spec.tool_name
    }

    /// The description of that tool.
    pub fn tool_description(&self) -> &str {
        &self.0.spec.tool_description
    }

    /// The JSON schema of the payload, as the model gets it.
    pub fn input_json_schema(&self) -> &RawValue {
        &self.0.spec.input_json_schema
    }

    /// Returns `true` if the model must keep to the schema.
    pub fn strict_json_schema(&self) -> bool {
        self.0.spec.strict
    }

    /// The name of the agent that would get the conversation.
    pub fn agent_name(&self) -> &str {
        &self.0.spec.to
    }

    /// The filter on what that agent gets.
    pub fn input_filter(&self) -> Option<&Filter<C>> {
        self.0.filter.as_ref()
    }

    /// Set if the history is nested for that agent, or not; `None` leaves it to the run.
    pub fn nest_history(&self) -> Option<bool> {
        self.0.nest_history
    }

    /// The handoff as a model sees it.
    pub fn spec(&self) -> &HandoffSpec {
        &self.0.spec
    }

    /// Returns `true` if the handoff has a condition.
    pub fn is_conditional(&self) -> bool {
        matches!(self.0.enabled, Enabled::When(_))
    }

    /// The name of the condition, where it was given one.
    pub fn condition_name(&self) -> Option<&str> {
        self.0.condition_name.as_deref()
    }

    /// The name of the payload: its type's name, or `JSON`; `None` where there is none.
    pub fn payload_name(&self) -> Option<&str> {
        let title = self.0.schema.as_ref()?.get("title");
        Some(title.and_then(Value::as_str).unwrap_or("JSON"))
    }

    /// The names of the payload's fields.
    pub(crate) fn payload_fields(&self) -> Vec<&str> {
        let properties = self
            .0
            .schema
            .as_ref()
            .and_then(|schema| schema.get("properties"));
        let properties = properties.and_then(Value::as_object);
        let names = properties.into_iter().flat_map(|fields| fields.keys());
        names.map(String::as_str).collect()
    }

    /// A builder that begins with everything this handoff has, for a changed copy of it.
    ///
    /// ```
    /// use switchboard_core::{Agent, handoff};
    ///
    /// let (day, night): (Agent, Agent) = (Agent::new("Day"), Agent::new("Night"));
    /// let by_day = handoff(&day).tool_name("transfer_to_shift").build();
    /// let by_night = by_day.to_builder().target(&night).build();
    /// assert_eq!(by_night.tool_name(), "transfer_to_shift");
    /// assert_eq!(by_night.agent_name(), "Night");
    /// ```
    pub fn to_builder(&self) -> HandoffBuilder<C, WithCallback> {
        builder::edit(Inner::clone(&self.0))
    }

    /// The output of the call that takes the conversation to `target`.
    pub(crate) fn transfer_message<'a>(
        &'a self,
        target: &'a Agent<C>,
        payload: &Value,
    ) -> Cow<'a, str> {
        if let Some(own) = &self.0.transfer_message {
            return Cow::Borrowed(own);
        }
        match self.return_message(target, payload) {
            Some(message) => Cow::Owned(message),
            None => Cow::Borrowed(target.transfer_message()),
        }
    }

    pub(crate) fn has_given_description(&self) -> bool {
        self.0.description_given
    }

    /// Returns `true` if the tool's name was given, not derived from the agent's.
    pub(crate) fn has_given_name(&self) -> bool {
        self.0.tool_name_given
    }

    /// Returns `true` if both are the same handoff.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn enabled(&self) -> &Enabled<C> {
        &self.0.enabled
    }

    pub(crate) fn approval(&self) -> &ApprovalRule<HandoffContext<C>> {
        &self.0.approval
    }

    pub(crate) fn guardrails(&self) -> &[HandoffGuardrail<C>] {
        &self.0.guardrails
    }

    pub(crate) fn target(&self) -> &Target<C> {
        &self.0.target
    }

    pub(crate) fn callback(&self) -> Option<&Callback<C>> {
        self.0.callback.as_deref()
    }

    /// The problem with how the handoff was built.
    pub(crate) fn problem(&self) -> Option<String> {
        if let Some(problem) = &self.0.problem {
            return Some(problem.clone());
        }
        let own = self.0.payload.as_ref();
        let own = own.and_then(|payload| payload.check_schema().err());
        own.or_else(|| {
            let problem = self.way_back()?.problem()?;
            Some(format!("its way back: {problem}"))
        })
    }

    /// Returns `true` if the handoff takes a payload.
    pub(crate) fn takes_payload(&self) -> bool {
        self.0.payload.is_some()
    }

    /// Parses the arguments of a call. Where the handoff takes a payload, they are checked.
    pub(crate) fn parse_payload(&self, arguments: &str) -> Result<ParsedPayload, InvalidPayload> {
        match &self.0.payload {
            Some(payload) => payload.parse(arguments),
            None => Ok(ParsedPayload {
                value: json::arguments_value(arguments),
                typed: None,
            }),
        }
    }

    /// The same handoff to the member at `index` of a team that is being built.
    pub(crate) fn to_member(
        &self,
        index: usize,
        name: &Arc<str>,
        description: Option<&str>,
    ) -> Self {
        let mut inner = Inner::clone(&self.0);
        inner.target = Target::Member(index);
        inner.spec.to = name.clone();
        if !inner.tool_name_given {
            inner.spec.tool_name = default_tool_name(name).into();
        }
        if !inner.description_given {
            inner.spec.tool_description = default_tool_description(name, description).into();
        }
        Self(Arc::new(inner))
    }
}

impl_clone! {
    struct Inner<C> {
        spec, tool_name_given, description_given, target, schema, payload, callback,
        filter, deliveries, guardrails, nest_history, enabled, approval, condition_name, edges,
        transfer_message, way_back, problem
    }
}

impl_clone! {
    enum Target<C> { Agent(agent), Name(name), Member(index), Custom(custom), Return(target) }
}

impl_clone! { struct Handoff<C> { 0 } }

impl_debug!(Handoff<C>, |handoff| format_args!(
    "{} → {}",
    handoff.tool_name(),
    handoff.agent_name()
));

/// The agent a handoff of `from` leads to; `None` if code picks it or the name is unknown.
pub(crate) fn target<C>(from: &Agent<C>, handoff: &Handoff<C>) -> Option<Agent<C>> {
    match handoff.target() {
        Target::Agent(agent) => Some(agent.reached_from(from)),
        Target::Member(index) => from.team()?.member(*index),
        Target::Name(name) => from.team()?.by_name(name),
        Target::Custom(_) => None,
        Target::Return(target) => target.agent.clone(),
    }
}

/// All agents a handoff of `from` can lead to.
pub(crate) fn targets<C>(from: &Agent<C>, handoff: &Handoff<C>) -> Vec<Agent<C>> {
    match handoff.target() {
        Target::Custom(custom) => {
            let candidates = custom.candidates.iter();
            candidates.map(|agent| agent.reached_from(from)).collect()
        }
        _ => target(from, handoff).into_iter().collect(),
    }
}

/// The description of a handoff's tool, unless another one is given.
pub fn default_tool_description(agent_name: &str, description: Option<&str>) -> String {
    let description = description.unwrap_or_default();
    format!("Handoff to the {agent_name} agent to handle the request. {description}")
}

/// The output of a handoff's call.
pub fn transfer_message(agent_name: &str) -> String {
    let mut message = String::with_capacity(agent_name.len() + 20);
    message.push_str("{\"assistant\": ");
    json::quote_ascii_into(&mut message, agent_name);
    message.push('}');
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_descriptions_and_messages_have_defaults() {
        assert_eq!(default_tool_name("FAQ  bot"), "transfer_to_faq__bot");
        assert_eq!(default_tool_name("账单专家"), "transfer_to_____");
        assert_eq!(
            default_tool_description("FAQ", None),
            "Handoff to the FAQ agent to handle the request. "
        );
        assert_eq!(transfer_message("账"), r#"{"assistant": "\u8d26"}"#);
    }
}
