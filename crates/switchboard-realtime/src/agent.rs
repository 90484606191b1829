//! Realtime agents.

use std::fmt;
use std::sync::Arc;

use switchboard_core::__agent_parts as parts;
use switchboard_core::callback::IntoOutcome;
use switchboard_core::guardrail::{OutputGuardrail, ToolGuardrail};
use switchboard_core::handle::IntoHandle;
use switchboard_core::hooks::AgentHooksHandle;
use switchboard_core::model::Prompt;
use switchboard_core::{Agent, RunContext, Tool};

use crate::handoff::{IntoRealtimeHandoff, RealtimeHandoff};
use crate::model::RealtimeVoice;
use crate::team::Registry;

/// An agent of a realtime session: a name, instructions, tools, handoffs, output guardrails and hooks.
///
/// It has the parts of an [`Agent`], except for those that only runs have: all agents of a session
/// share one model, one connection and one voice. Agents are built by chaining and are immutable; a
/// clone costs a reference count.
///
/// ```
/// use switchboard_realtime::{RealtimeAgent, realtime_handoff};
///
/// let billing: RealtimeAgent = RealtimeAgent::new("Billing")
///     .instructions("You handle bills.")
///     .handoff_description("Bills, invoices and payments.");
/// let desk = RealtimeAgent::new("Front desk")
///     .instructions("Greet the caller.")
///     .handoff(&billing)
///     .handoff(realtime_handoff(&billing).tool_name("billing_desk"));
/// assert_eq!(desk.handoffs()[0].tool_name(), "transfer_to_billing");
/// ```
#[must_use]
pub struct RealtimeAgent<C = ()> {
    def: Arc<Definition<C>>,
    team: Option<Arc<Registry<C>>>,
}

pub(crate) struct Definition<C> {
    /// The parts that text agents have as well.
    pub(crate) agent: Agent<C>,
    pub(crate) handoffs: Vec<RealtimeHandoff<C>>,
    pub(crate) voice: Option<RealtimeVoice>,
}

impl<C> RealtimeAgent<C> {
    /// Creates an agent that has only a name.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self::from_parts(Agent::new(name), Vec::new())
    }

    pub(crate) fn from_parts(agent: Agent<C>, handoffs: Vec<RealtimeHandoff<C>>) -> Self {
        Self {
            def: Arc::new(Definition {
                agent,
                handoffs,
                voice: None,
            }),
            team: None,
        }
    }

    pub(crate) fn member(def: Arc<Definition<C>>, team: Arc<Registry<C>>) -> Self {
        Self {
            def,
            team: Some(team),
        }
    }

    /// Sets the instructions for the model.
    pub fn instructions(self, text: impl Into<Arc<str>>) -> Self {
        self.with_agent(|agent| agent.instructions(text))
    }

    /// Sets a function that makes the instructions when the agent gets the conversation; sync or
    /// async.
    ///
    /// ```
    /// use switchboard_realtime::RealtimeAgent;
    ///
    /// struct App { caller: String }
    ///
    /// let agent = RealtimeAgent::<App>::new("Greeter")
    ///     .instructions_fn(|ctx, _agent| format!("Greet {}.", ctx.caller));
    /// ```
    pub fn instructions_fn<F, R, M>(self, make: F) -> Self
    where
        F: Fn(RunContext<C>, Agent<C>) -> R + Send + Sync + 'static,
        R: IntoOutcome<String, M>,
    {
        self.with_agent(|agent| agent.instructions_fn(make))
    }

    /// Sets a prompt that the provider stores, beside the instructions.
    pub fn prompt(self, prompt: Prompt) -> Self {
        self.with_agent(|agent| agent.prompt(prompt))
    }

    /// Sets the description by which other agents' models decide to hand off to this one.
    pub fn handoff_description(self, text: impl Into<Arc<str>>) -> Self {
        self.with_agent(|agent| agent.handoff_description(text))
    }

    /// Adds a tool.
    pub fn tool(self, tool: impl Into<Tool<C>>) -> Self {
        self.with_agent(|agent| agent.tool(tool))
    }

    /// Adds a guardrail on every tool of the agent, after the tool's own.
    pub fn tool_guardrail(self, guardrail: ToolGuardrail<C>) -> Self {
        self.with_agent(|agent| agent.tool_guardrail(guardrail))
    }

    /// Adds a handoff: to an agent, to a name in a [`RealtimeTeam`](crate::RealtimeTeam), or one built
    /// with [`realtime_handoff()`](crate::realtime_handoff()).
    pub fn handoff(self, handoff: impl IntoRealtimeHandoff<C>) -> Self {
        self.with(|def| def.handoffs.push(handoff.into_realtime_handoff()))
    }

    /// Adds a guardrail on what the agent says. It is asked about the transcript as it grows; when it
    /// trips, the answer is interrupted.
    pub fn output_guardrail(self, guardrail: OutputGuardrail<C>) -> Self {
        self.with_agent(|agent| agent.output_guardrail(guardrail))
    }

    /// Adds hooks of the agent, which are called after those that it has. Those on the model's start and
    /// end are not called: a session has one connection, and no requests.
    pub fn hooks<M>(self, hooks: impl IntoHandle<AgentHooksHandle<C>, M>) -> Self {
        self.with_agent(|agent| agent.hooks(hooks))
    }

    /// Sets the voice of the session if it begins with this agent, or if the agent gets the conversation
    /// before anything was said. Providers cannot change the voice afterwards.
    pub fn voice(self, voice: impl Into<RealtimeVoice>) -> Self {
        self.with(|def| def.voice = Some(voice.into()))
    }

    /// The agent's name.
    pub fn name(&self) -> &str {
        self.def.agent.name()
    }

    /// The description for other agents' models.
    pub fn description(&self) -> Option<&str> {
        self.def.agent.description()
    }

    /// The agent's tools.
    pub fn tools(&self) -> &[Tool<C>] {
        self.def.agent.tools()
    }

    /// The agent's handoffs.
    pub fn handoffs(&self) -> &[RealtimeHandoff<C>] {
        &self.def.handoffs
    }

    /// The parts that text agents have as well: what conditions, hooks, guardrails and callbacks get.
    pub fn parts(&self) -> &Agent<C> {
        &self.def.agent
    }

    /// Returns `true` if both are the same agent, not only of the same name.
    pub fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.def, &other.def)
    }

    pub(crate) fn own_voice(&self) -> Option<&RealtimeVoice> {
        self.def.voice.as_ref()
    }

    pub(crate) fn definition(&self) -> &Arc<Definition<C>> {
        &self.def
    }

    pub(crate) fn team(&self) -> Option<&Arc<Registry<C>>> {
        self.team.as_ref()
    }

    /// The same agent in the team of `other`, where its handoffs by name are resolved.
    pub(crate) fn reached_from(&self, other: &Self) -> Self {
        Self {
            def: self.def.clone(),
            team: self.team.clone().or_else(|| other.team.clone()),
        }
    }

    /// The agents that the handoffs of this one lead to, directly or over others, beginning with it.
    pub(crate) fn reachable(&self) -> Vec<Self> {
        let mut all = vec![self.clone()];
        let mut next = 0;
        while let Some(agent) = all.get(next).cloned() {
            next += 1;
            let targets = agent
                .handoffs()
                .iter()
                .filter_map(|edge| edge.target(&agent));
            for target in targets.collect::<Vec<_>>() {
                if !all.iter().any(|known| known.ptr_eq(&target)) {
                    all.push(target);
                }
            }
        }
        all
    }

    fn with_agent(self, change: impl FnOnce(Agent<C>) -> Agent<C>) -> Self {
        self.with(|def| def.agent = change(def.agent.clone()))
    }

    fn with(mut self, change: impl FnOnce(&mut Definition<C>)) -> Self {
        let mut def = Arc::unwrap_or_clone(self.def);
        change(&mut def);
        self.def = Arc::new(def);
        self
    }
}

impl<C> Clone for RealtimeAgent<C> {
    fn clone(&self) -> Self {
        Self {
            def: self.def.clone(),
            team: self.team.clone(),
        }
    }
}

impl<C> Clone for Definition<C> {
    fn clone(&self) -> Self {
        Self {
            agent: self.agent.clone(),
            handoffs: self.handoffs.clone(),
            voice: self.voice.clone(),
        }
    }
}

impl<C> fmt::Debug for RealtimeAgent<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealtimeAgent")
            .field("name", &self.name())
            .field("tools", &self.tools())
            .field("handoffs", &self.handoffs())
            .finish()
    }
}

/// The parts of a text agent, or of one that it leads to, that a realtime agent cannot have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConversionError {
    agent: String,
    lost: Vec<String>,
}

impl ConversionError {
    /// The name of the agent.
    pub fn agent(&self) -> &str {
        &self.agent
    }

    /// The parts that would be lost.
    pub fn lost(&self) -> &[String] {
        &self.lost
    }
}

impl fmt::Display for ConversionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "agent \"{}\" cannot become a realtime agent: {} would be lost; build the agent without, \
             or build a RealtimeAgent",
            self.agent,
            self.lost.join(", ")
        )
    }
}

impl std::error::Error for ConversionError {}

/// Converts a text agent, with all agents that it leads to, if nothing of them is lost.
///
/// ```
/// use switchboard_core::{Agent, filters, handoff};
/// use switchboard_realtime::RealtimeAgent;
///
/// let billing: Agent = Agent::new("Billing").instructions("You handle bills.");
/// let desk = Agent::new("Desk").handoff(&billing);
/// let desk = RealtimeAgent::try_from(&desk)?;
/// assert_eq!(desk.handoffs()[0].agent_name(), "Billing");
///
/// let filtered = Agent::new("Desk").handoff(handoff(&billing).filter(filters::keep_last(3)));
/// let error = RealtimeAgent::try_from(&filtered).unwrap_err();
/// assert_eq!(error.lost(), ["an input filter of the handoff \"transfer_to_billing\""]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
impl<C> TryFrom<&Agent<C>> for RealtimeAgent<C> {
    type Error = ConversionError;

    fn try_from(agent: &Agent<C>) -> Result<Self, ConversionError> {
        Self::convert(agent, &[])
    }
}

impl<C> RealtimeAgent<C> {
    /// Converts a text agent, with all agents that it leads to, whose models and their settings are replaced by the
    /// realtime model of the session.
    ///
    /// ```
    /// use switchboard_core::Agent;
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_realtime::RealtimeAgent;
    ///
    /// let desk: Agent = Agent::new("Desk").model(ScriptedModel::new());
    /// assert!(RealtimeAgent::try_from(&desk).is_err());
    /// assert_eq!(RealtimeAgent::replacing_model(&desk)?.name(), "Desk");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// An error that names what else would be lost.
    pub fn replacing_model(agent: &Agent<C>) -> Result<Self, ConversionError> {
        Self::convert(agent, &[parts::MODEL, parts::MODEL_SETTINGS])
    }

    /// Converts an agent that may lose these parts.
    fn convert(agent: &Agent<C>, replaced: &[&str]) -> Result<Self, ConversionError> {
        let mut agents = vec![agent.clone()];
        let mut next = 0;
        while let Some(agent) = agents.get(next).cloned() {
            next += 1;
            check_convertible(&agent, replaced)?;
            for handoff in agent.handoffs() {
                let Some(target) = parts::handoff_target(&agent, handoff) else {
                    continue;
                };
                if !agents.iter().any(|known| known.ptr_eq(&target)) {
                    agents.push(target);
                }
            }
        }
        let place = |target: &Agent<C>| agents.iter().position(|known| known.ptr_eq(target));
        let members = agents.iter().map(|agent| {
            let handoffs = agent.handoffs().iter().filter_map(|handoff| {
                let target = parts::handoff_target(agent, handoff)?;
                let at = place(&target)?;
                Some(RealtimeHandoff::to_member(handoff.clone(), at))
            });
            let handoffs = handoffs.collect();
            Self::from_parts(agent.clone(), handoffs).def
        });
        let registry = Arc::new(Registry::new(members.collect()));
        let first = registry.first().ok_or_else(|| ConversionError {
            agent: agent.name().to_owned(),
            lost: Vec::new(),
        })?;
        Ok(Self::member(first, registry))
    }
}

fn check_convertible<C>(agent: &Agent<C>, replaced: &[&str]) -> Result<(), ConversionError> {
    let own = parts::parts_of_runs(agent).into_iter();
    let own = own.filter(|part| !replaced.contains(part));
    let mut lost: Vec<String> = own.map(str::to_owned).collect();
    for handoff in agent.handoffs() {
        let name = handoff.tool_name();
        let edge = parts::handoff_parts_of_runs(handoff).into_iter();
        lost.extend(edge.map(|part| format!("{part} of the handoff \"{name}\"")));
        if parts::handoff_target(agent, handoff).is_none() {
            lost.push(format!(
                "the handoff \"{name}\", which leads to no fixed agent"
            ));
        }
    }
    if lost.is_empty() {
        return Ok(());
    }
    Err(ConversionError {
        agent: agent.name().to_owned(),
        lost,
    })
}
