//! Realtime agents that name each other.

use std::fmt;
use std::ops::Index;
use std::sync::Arc;

use switchboard_core::__agent_parts as parts;
use switchboard_core::Error;
use switchboard_core::ErrorKind;

use crate::agent::{Definition, RealtimeAgent};

/// The definitions of a team. It holds no agents, so that agents that name each other cannot leak.
pub(crate) struct Registry<C> {
    members: Vec<Arc<Definition<C>>>,
}

impl<C> Registry<C> {
    pub(crate) fn new(members: Vec<Arc<Definition<C>>>) -> Self {
        Self { members }
    }

    pub(crate) fn first(&self) -> Option<Arc<Definition<C>>> {
        self.members.first().cloned()
    }

    pub(crate) fn member(&self, at: usize) -> Option<&Arc<Definition<C>>> {
        self.members.get(at)
    }

    pub(crate) fn by_name(&self, name: &str) -> Option<&Arc<Definition<C>>> {
        let mut members = self.members.iter();
        members.find(|def| def.agent.name() == name)
    }
}

/// A set of realtime agents that hand off to each other by name, in circles too.
///
/// ```
/// use switchboard_realtime::{RealtimeAgent, RealtimeTeam, realtime_handoff};
///
/// let team = RealtimeTeam::<()>::new()
///     .agent(RealtimeAgent::new("Desk").handoff("Billing"))
///     .agent(RealtimeAgent::new("Billing").handoff(realtime_handoff("Desk").tool_name("back")))
///     .build()?;
/// assert_eq!(team["Desk"].handoffs()[0].agent_name(), "Billing");
/// # Ok::<(), switchboard_core::Error>(())
/// ```
#[must_use]
pub struct RealtimeTeam<C = ()> {
    agents: Vec<RealtimeAgent<C>>,
}

impl<C> Default for RealtimeTeam<C> {
    fn default() -> Self {
        Self::new()
    }
}

impl<C> RealtimeTeam<C> {
    /// Creates a team without agents.
    pub const fn new() -> Self {
        Self { agents: Vec::new() }
    }

    /// Adds an agent.
    pub fn agent(mut self, agent: RealtimeAgent<C>) -> Self {
        self.agents.push(agent);
        self
    }

    /// Checks the names, and connects the agents.
    ///
    /// # Errors
    /// If two agents have one name, or a handoff leads to a name that no agent has.
    pub fn build(self) -> Result<BuiltTeam<C>, Error> {
        let problem = |text: String| Err(parts::error(ErrorKind::Configuration, text));
        for (at, agent) in self.agents.iter().enumerate() {
            let name = agent.name();
            if self.agents[..at].iter().any(|other| other.name() == name) {
                return problem(format!("two agents of the team are named \"{name}\""));
            }
            for handoff in agent.handoffs() {
                let to = handoff.agent_name();
                let is_known = self.agents.iter().any(|other| other.name() == to);
                if handoff.is_by_name() && !is_known {
                    return problem(format!(
                        "agent \"{name}\" hands off to \"{to}\", and the team has no agent of that name"
                    ));
                }
            }
        }
        let members = self.agents.iter().map(|agent| agent.definition().clone());
        let registry = Arc::new(Registry::new(members.collect()));
        let agents = registry.members.iter();
        let agents = agents.map(|def| RealtimeAgent::member(def.clone(), registry.clone()));
        Ok(BuiltTeam {
            agents: agents.collect(),
        })
    }
}

impl<C> fmt::Debug for RealtimeTeam<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("RealtimeTeam").field(&self.agents).finish()
    }
}

/// A team whose names are checked; index it by the name of an agent.
pub struct BuiltTeam<C = ()> {
    agents: Vec<RealtimeAgent<C>>,
}

impl<C> BuiltTeam<C> {
    /// The agents, in the order in which they were added.
    pub fn agents(&self) -> &[RealtimeAgent<C>] {
        &self.agents
    }

    /// The agent of this name.
    pub fn get(&self, name: &str) -> Option<&RealtimeAgent<C>> {
        self.agents.iter().find(|agent| agent.name() == name)
    }
}

impl<C> Index<&str> for BuiltTeam<C> {
    type Output = RealtimeAgent<C>;

    /// # Panics
    /// If the team has no agent of this name.
    #[expect(clippy::panic, reason = "as for every map in the standard library")]
    fn index(&self, name: &str) -> &RealtimeAgent<C> {
        match self.get(name) {
            Some(agent) => agent,
            None => panic!("the team has no agent named \"{name}\""),
        }
    }
}

impl<C> fmt::Debug for BuiltTeam<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("BuiltTeam").field(&self.agents).finish()
    }
}
