//! Who leads to whom in a team.

use std::collections::HashMap;
use std::sync::Arc;

use crate::agent::{Agent, Definition};
use crate::enabled::Enabled;
use crate::handoff::Target;
use crate::run::targets;

/// The agents of a team, those they use as tools, and who leads to whom.
///
/// A member that is used as a tool is that member; another agent of its name is not.
pub(super) struct Map<C> {
    /// The members in their order, then the others.
    pub(super) agents: Vec<Agent<C>>,
    /// The ways from each agent.
    pub(super) ways: Vec<Vec<Way>>,
}

/// A way from an agent to another.
pub(super) struct Way {
    pub(super) to: usize,
    pub(super) by: By,
    pub(super) offered: Offered,
}

/// What leads there, by its place among the agent's own.
#[derive(Clone, Copy)]
pub(super) enum By {
    Handoff(usize),
    Tool(usize),
}

/// When a way is there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    Always,
    /// Under a condition, or where code picks it.
    Sometimes,
    Never,
}

impl Offered {
    fn of<C>(enabled: &Enabled<C>) -> Self {
        match enabled {
            Enabled::Always => Self::Always,
            Enabled::When(_) => Self::Sometimes,
            Enabled::Never => Self::Never,
        }
    }
}

impl Way {
    /// Whether it is ever there.
    pub(super) fn is_open(&self) -> bool {
        self.offered != Offered::Never
    }

    /// Whether the conversation can go this way, and is not only answered from there.
    pub(super) fn hands_off(&self) -> bool {
        self.is_open() && matches!(self.by, By::Handoff(_))
    }
}

impl<C> Map<C> {
    /// `given` are the members as they were before the team linked them, in the same order.
    pub(super) fn of(members: &[Agent<C>], given: &[Agent<C>]) -> Self {
        let places = |agents: &[Agent<C>]| -> Vec<_> {
            let places = agents.iter().enumerate();
            places
                .map(|(at, agent)| (Arc::as_ptr(agent.def()), at))
                .collect()
        };
        let mut surveyor = Surveyor {
            places: places(given).into_iter().chain(places(members)).collect(),
            agents: members.to_vec(),
        };
        let mut ways = Vec::with_capacity(members.len());
        while let Some(agent) = surveyor.agents.get(ways.len()).cloned() {
            ways.push(surveyor.ways_from(&agent));
        }
        Self {
            agents: surveyor.agents,
            ways,
        }
    }
}

/// Finds the agents and gives each a place.
struct Surveyor<C> {
    places: HashMap<*const Definition<C>, usize>,
    agents: Vec<Agent<C>>,
}

impl<C> Surveyor<C> {
    fn ways_from(&mut self, agent: &Agent<C>) -> Vec<Way> {
        let mut ways = Vec::new();
        for (at, handoff) in agent.handoffs().iter().enumerate() {
            let offered = match (handoff.target(), Offered::of(handoff.enabled())) {
                (Target::Custom(_), Offered::Always) => Offered::Sometimes,
                (_, offered) => offered,
            };
            for target in targets(agent, handoff) {
                let to = self.place_of(&target);
                let by = By::Handoff(at);
                ways.push(Way { to, by, offered });
            }
        }
        for (at, tool) in agent.tools().iter().enumerate() {
            if let Some(asked) = tool.agent() {
                let to = self.place_of(&asked.reached_from(agent));
                let by = By::Tool(at);
                let offered = Offered::of(tool.enabled());
                ways.push(Way { to, by, offered });
            }
        }
        ways
    }

    fn place_of(&mut self, agent: &Agent<C>) -> usize {
        let agents = &mut self.agents;
        *self
            .places
            .entry(Arc::as_ptr(agent.def()))
            .or_insert_with(|| {
                agents.push(agent.clone());
                agents.len() - 1
            })
    }
}
