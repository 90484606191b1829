//! Unique keys for the agents of a run, and finding agents by them.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::agent::Agent;
use crate::handoff::{Target, targets};

/// An agent of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AgentRef {
    /// The name that is unique among the agents of the run: `name`, `name#2`.
    pub(crate) key: Arc<str>,
    pub(crate) name: Arc<str>,
}

/// `start` and all agents reachable from it, nearest first.
fn reachable<C>(start: &Agent<C>) -> Vec<Agent<C>> {
    let mut seen = HashSet::from([Arc::as_ptr(&start.def)]);
    let mut found = Vec::new();
    let mut waiting = VecDeque::from([start.clone()]);
    while let Some(agent) = waiting.pop_front() {
        for next in agent
            .handoffs()
            .iter()
            .flat_map(|edge| targets(&agent, edge))
        {
            if seen.insert(Arc::as_ptr(&next.def)) {
                waiting.push_back(next);
            }
        }
        found.push(agent);
    }
    found
}

/// The names of `start` and all agents reachable from it.
pub(crate) fn names<C>(start: &Agent<C>) -> Vec<Arc<str>> {
    let agents = reachable(start);
    agents
        .iter()
        .map(|agent| agent.name_arc().clone())
        .collect()
}

/// The keys of `start` and all agents reachable from it.
pub(crate) fn keys<C>(start: &Agent<C>) -> Vec<Arc<str>> {
    with_keys(start).into_iter().map(|(key, _)| key).collect()
}

/// The agent with its key among those reachable from `start`: its name, or `name#2` for the second
/// agent of that name.
pub(crate) fn agent_ref<C>(start: &Agent<C>, agent: &Agent<C>) -> AgentRef {
    AgentRef {
        key: key(start, agent),
        name: agent.name_arc().clone(),
    }
}

pub(crate) fn key<C>(start: &Agent<C>, agent: &Agent<C>) -> Arc<str> {
    let unique = start.def.caches.names_are_unique.get_or_init(|| {
        let mut names = HashSet::new();
        reachable(start)
            .iter()
            .all(|agent| names.insert(agent.name_arc().clone()))
    });
    if *unique && !has_custom_handoffs(start) {
        return agent.name_arc().clone();
    }
    let all = with_keys(start);
    let found = all.iter().find(|(_, known)| known.ptr_eq(agent));
    match found {
        Some((key, _)) => key.clone(),
        // A custom handoff picked an agent that is none of its candidates.
        None => format!("{}#unknown", agent.name()).into(),
    }
}

/// Returns `true` if code picks any of the reachable agents.
fn has_custom_handoffs<C>(start: &Agent<C>) -> bool {
    *start.def.caches.picks_agents.get_or_init(|| {
        let agents = reachable(start);
        let mut handoffs = agents.iter().flat_map(|agent| agent.handoffs());
        handoffs.any(|handoff| matches!(handoff.target(), Target::Custom(_)))
    })
}

/// The agent with this key: one that `start` leads to, or another of its team.
pub(crate) fn find<C>(start: &Agent<C>, key: &str) -> Option<Agent<C>> {
    let mut all = with_keys(start).into_iter();
    all.find_map(|(known, agent)| (*known == *key).then_some(agent))
        .or_else(|| start.team()?.by_name(key))
}

/// `start` and all agents reachable from it, with their keys.
pub(crate) fn with_keys<C>(start: &Agent<C>) -> Vec<(Arc<str>, Agent<C>)> {
    let agents = reachable(start);
    let names: HashSet<Arc<str>> = agents
        .iter()
        .map(|agent| agent.name_arc().clone())
        .collect();
    let mut count: HashMap<Arc<str>, usize> = HashMap::new();
    let agents = agents.into_iter().map(|agent| {
        let name = agent.name_arc().clone();
        let n = count.entry(name.clone()).or_default();
        *n += 1;
        // An agent may be named like the key of another.
        while *n > 1 && names.contains(&*format!("{name}#{n}")) {
            *n += 1;
        }
        let key = if *n == 1 {
            name
        } else {
            format!("{name}#{n}").into()
        };
        (key, agent)
    });
    agents.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_the_same_name_have_different_keys() {
        let first: Agent = Agent::new("Desk");
        let second: Agent = Agent::new("Desk");
        let start = Agent::new("Start").handoff(&first).handoff(&second);
        assert_eq!(&*key(&start, &first), "Desk");
        assert_eq!(&*key(&start, &second), "Desk#2");
        assert!(find(&start, "Desk#2").unwrap().ptr_eq(&second));
        assert!(find(&start, "Desk#3").is_none());
    }
}
