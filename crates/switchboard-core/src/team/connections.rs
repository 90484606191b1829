//! The connections between agents: handoffs, and agents used as tools.

use std::collections::HashMap;
use std::sync::Arc;

use crate::agent::{Agent, Definition};
use crate::condition::Enabled;
use crate::handoff::{Returning, Target, targets};

/// The agents of a team, the agents they use as tools, and the connections between them.
///
/// Agents are identified by definition, not by name: another agent that has a member's name is
/// listed apart.
pub(super) struct Connections<C> {
    /// The members in their order, then the others.
    pub(super) agents: Vec<Agent<C>>,
    /// The connections from each agent, by its index in `agents`.
    pub(super) outgoing: Vec<Vec<Connection>>,
    /// The index of each agent.
    indexes: HashMap<*const Definition<C>, usize>,
}

/// A connection from one agent to another.
pub(super) struct Connection {
    /// The index of the target in [`Connections::agents`].
    pub(super) to: usize,
    pub(super) via: Via,
    pub(super) offered: Offered,
}

/// The index of the handoff or tool among those of the agent.
#[derive(Clone, Copy)]
pub(super) enum Via {
    Handoff(usize),
    Tool(usize),
    /// The way back of the target's handoff at this index.
    WayBack(usize),
    /// A person hands the conversation back to where it came from.
    HandBack,
}

/// Tells when the model is offered a connection, or a condition takes it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Offered {
    Always,
    /// Under a condition, or if code picks this target.
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

impl Connection {
    pub(super) fn is_enabled(&self) -> bool {
        self.offered != Offered::Never
    }

    pub(super) fn is_enabled_handoff(&self) -> bool {
        self.is_enabled() && !matches!(self.via, Via::Tool(_))
    }
}

impl<C> Connections<C> {
    /// Finds all agents and connections. `originals` are the members before the team resolved
    /// their handoffs, in the same order: agents used as tools are known by these.
    pub(super) fn of(members: &[Agent<C>], originals: &[Agent<C>]) -> Self {
        let indexed = originals
            .iter()
            .enumerate()
            .chain(members.iter().enumerate());
        let mut found = Self {
            indexes: indexed
                .map(|(index, agent)| (Arc::as_ptr(&agent.def), index))
                .collect(),
            agents: members.to_vec(),
            outgoing: Vec::with_capacity(members.len()),
        };
        while let Some(agent) = found.agents.get(found.outgoing.len()).cloned() {
            let connections = found.connections_from(&agent);
            found.outgoing.push(connections);
        }
        found.add_ways_back(members.len());
        found
    }

    /// Adds the connections by which a conversation goes back. The first `members` agents may be those
    /// that a run begins with the first of.
    fn add_ways_back(&mut self, members: usize) {
        // The handoffs that lead to each agent: from which agent, and their index there.
        let mut incoming: Vec<Vec<(usize, usize)>> = vec![Vec::new(); self.agents.len()];
        for (from, edges) in self.outgoing.iter().enumerate() {
            for edge in edges.iter().filter(|edge| edge.is_enabled()) {
                if let Via::Handoff(index) = edge.via {
                    incoming[edge.to].push((from, index));
                }
            }
        }
        for (at, agent) in self.agents.iter().enumerate() {
            let mut added: Vec<Connection> = Vec::new();
            let previous = incoming[at].iter().map(|(from, _)| *from);
            let mut previous: Vec<usize> = previous.filter(|from| *from != at).collect();
            previous.dedup();
            for (index, handoff) in agent.handoffs().iter().enumerate() {
                let to = match handoff.returning() {
                    Some(Returning::Previous) => previous.clone(),
                    Some(Returning::Start) if at > 0 && at < members => vec![0],
                    _ => Vec::new(),
                };
                let offered = Offered::of(handoff.enabled());
                added.extend(to.into_iter().map(|to| Connection {
                    to,
                    via: Via::Handoff(index),
                    offered,
                }));
            }
            for (from, index) in &incoming[at] {
                if self.agents[*from].handoffs()[*index].way_back().is_some() {
                    added.push(Connection {
                        to: *from,
                        via: Via::WayBack(*index),
                        offered: Offered::Sometimes,
                    });
                }
            }
            let leads_to = |to: usize, added: &[Connection]| {
                let mut known = self.outgoing[at].iter().chain(added);
                known.any(|edge| edge.to == to && edge.is_enabled_handoff())
            };
            for to in previous.into_iter().filter(|_| agent.is_person()) {
                if !leads_to(to, &added) {
                    added.push(Connection {
                        to,
                        via: Via::HandBack,
                        offered: Offered::Sometimes,
                    });
                }
            }
            self.outgoing[at].extend(added);
        }
    }

    fn connections_from(&mut self, agent: &Agent<C>) -> Vec<Connection> {
        let mut connections = Vec::new();
        for (index, handoff) in agent.handoffs().iter().enumerate() {
            let offered = match (handoff.target(), Offered::of(handoff.enabled())) {
                (Target::Custom(_), Offered::Always) => Offered::Sometimes,
                (_, Offered::Always) if handoff.is_hidden() => Offered::Sometimes,
                (_, offered) => offered,
            };
            for target in targets(agent, handoff) {
                connections.push(Connection {
                    to: self.index_of(&target),
                    via: Via::Handoff(index),
                    offered,
                });
            }
        }
        for (index, tool) in agent.tools().iter().enumerate() {
            if let Some(target) = tool.agent() {
                connections.push(Connection {
                    to: self.index_of(&target.reached_from(agent)),
                    via: Via::Tool(index),
                    offered: Offered::of(tool.enabled()),
                });
            }
        }
        connections
    }

    fn index_of(&mut self, agent: &Agent<C>) -> usize {
        let agents = &mut self.agents;
        let entry = self.indexes.entry(Arc::as_ptr(&agent.def));
        *entry.or_insert_with(|| {
            agents.push(agent.clone());
            agents.len() - 1
        })
    }
}
