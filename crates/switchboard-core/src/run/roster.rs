//! Finding agents by the name that is theirs alone in a run.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;

use crate::agent::Agent;
use crate::handoff::{Handoff, Target};

/// The agent a handoff of `from` leads to, where that does not depend on code.
pub(super) fn target<C>(from: &Agent<C>, handoff: &Handoff<C>) -> Option<Agent<C>> {
    match handoff.target() {
        Target::Agent(agent) => Some(agent.reached_from(from)),
        Target::Member(index) => from.team()?.member(*index),
        Target::Name(name) => from.team()?.by_name(name),
        Target::Custom(_) => None,
    }
}

/// `start` and all agents it leads to, nearest first.
fn reachable<C>(start: &Agent<C>) -> Vec<Agent<C>> {
    let mut seen = HashSet::from([Arc::as_ptr(start.def())]);
    let mut found = Vec::new();
    let mut waiting = VecDeque::from([start.clone()]);
    while let Some(agent) = waiting.pop_front() {
        for handoff in agent.handoffs() {
            if let Some(next) = target(&agent, handoff)
                && seen.insert(Arc::as_ptr(next.def()))
            {
                waiting.push_back(next);
            }
        }
        found.push(agent);
    }
    found
}

/// The name that is `agent`'s alone among those `start` leads to: its own, or `name#2` for the
/// second agent of a name.
pub(super) fn key<C>(start: &Agent<C>, agent: &Agent<C>) -> Arc<str> {
    let unique = start.def().names_are_unique.get_or_init(|| {
        let mut names = HashSet::new();
        reachable(start)
            .iter()
            .all(|agent| names.insert(agent.name_arc().clone()))
    });
    if *unique {
        return agent.name_arc().clone();
    }
    let all = with_keys(start);
    let found = all.into_iter().find(|(_, known)| known.is_same(agent));
    found.map_or_else(|| agent.name_arc().clone(), |(key, _)| key)
}

/// The agent of a key.
pub(super) fn find<C>(start: &Agent<C>, key: &str) -> Option<Agent<C>> {
    let mut all = with_keys(start).into_iter();
    all.find_map(|(known, agent)| (*known == *key).then_some(agent))
}

fn with_keys<C>(start: &Agent<C>) -> Vec<(Arc<str>, Agent<C>)> {
    let mut count: HashMap<Arc<str>, usize> = HashMap::new();
    let agents = reachable(start).into_iter().map(|agent| {
        let name = agent.name_arc().clone();
        let n = count.entry(name.clone()).or_default();
        *n += 1;
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
    fn agents_of_one_name_are_told_apart() {
        let first: Agent = Agent::new("Desk");
        let second: Agent = Agent::new("Desk");
        let start = Agent::new("Start").handoff(&first).handoff(&second);
        assert_eq!(&*key(&start, &first), "Desk");
        assert_eq!(&*key(&start, &second), "Desk#2");
        assert!(find(&start, "Desk#2").unwrap().is_same(&second));
        assert!(find(&start, "Desk#3").is_none());
    }
}
