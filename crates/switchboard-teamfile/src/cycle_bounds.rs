//! The bounds of cycles of handoffs, and the agents that a conversation can get to.

use std::collections::{HashMap, HashSet};

use crate::policies;
use crate::resolve::{ResolvedAgent, ResolvedTeam};
use crate::tools::Action;
use crate::types::{AtBudgetSpec, AtLoopLimitSpec, BudgetSpec, SeveralHandoffsSpec};

/// The bound of a cycle of handoffs, besides the maximum number of turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Bound {
    /// A limit or a budget ends the cycle in any case.
    Firm,
    /// A limit ends the cycle if nothing else happens in it.
    Progress,
    /// Nothing ends the cycle.
    None,
}

/// The ways of the conversation through a team.
pub(crate) struct Paths<'a> {
    team: &'a ResolvedTeam,
    agents: HashMap<&'a str, &'a ResolvedAgent>,
}

impl<'a> Paths<'a> {
    pub(crate) fn of(team: &'a ResolvedTeam) -> Self {
        let agents = team.agents.iter();
        let agents = agents.map(|agent| (agent.name.as_str(), agent));
        Self {
            team,
            agents: agents.collect(),
        }
    }

    /// The bound of the cycles among these agents.
    pub(crate) fn bound_of(&self, cycle: &[String]) -> Bound {
        let limits = policies::handoff_policy(&self.team.run).loops;
        let is_limited = limits.handoffs.is_some()
            || limits.per_edge.is_some()
            || (limits.ping_pong.is_some() && cycle.len() <= 2);
        if is_limited || self.budgets_end(cycle) {
            Bound::Firm
        } else if limits.without_progress.is_some() {
            Bound::Progress
        } else {
            Bound::None
        }
    }

    /// Returns `true` if a budget ends every cycle among these agents.
    fn budgets_end(&self, cycle: &[String]) -> bool {
        let has_limit =
            |budget: &Option<BudgetSpec>| budget.is_some_and(|own| own != BudgetSpec::default());
        // Then an agent of the cycle goes on beyond the budget.
        if let Some(AtBudgetSpec::HandTo(agent)) = &self.team.run.at_budget
            && cycle.contains(agent)
        {
            return false;
        }
        if has_limit(&self.team.run.budget) {
            return true;
        }
        let agents = cycle
            .iter()
            .filter_map(|name| self.agents.get(name.as_str()));
        let unlimited: Vec<&ResolvedAgent> = agents
            .filter(|agent| !has_limit(&agent.spec.budget))
            .copied()
            .collect();
        let edges = unlimited.iter().map(|agent| {
            let handoffs = agent.handoffs.iter();
            let unlimited =
                handoffs.filter(|edge| edge.when.is_none() && !has_limit(&edge.spec.budget));
            let targets = unlimited.map(|edge| edge.spec.to.as_str());
            (agent.name.as_str(), targets.collect())
        });
        !has_cycle(edges.collect())
    }

    /// The agents that a conversation can get to, by handoffs, rules and limits, and those that tools of
    /// these ask.
    pub(crate) fn reached_agents(&self) -> HashSet<&'a str> {
        self.reach(|agent| {
            let tools = agent.spec.tools.iter();
            let asked = tools.filter_map(|tool| match &self.team.tools.get(tool)?.action {
                Action::Agent(question) => Some(question.agent.as_str()),
                _ => None,
            });
            asked.collect()
        })
    }

    /// The agents that can have the conversation.
    pub(crate) fn agents_with_conversation(&self) -> HashSet<&'a str> {
        self.reach(|_| Vec::new())
    }

    /// The agents that handoffs, rules and limits lead to, and those that `others` returns for them.
    fn reach(&self, others: impl Fn(&'a ResolvedAgent) -> Vec<&'a str>) -> HashSet<&'a str> {
        let team = self.team;
        let mut reached = HashSet::new();
        let mut open = vec![team.start.as_str()];
        if let Some(AtLoopLimitSpec::Redirect(agent)) = &team.run.loops.at_limit {
            open.push(agent);
        }
        if let Some(AtBudgetSpec::HandTo(agent)) = &team.run.at_budget {
            open.push(agent);
        }
        if let Some(SeveralHandoffsSpec::FanOut(fan_out)) = &team.run.several_handoffs {
            open.extend(fan_out.join.as_deref());
        }
        while let Some(name) = open.pop() {
            if !reached.insert(name) {
                continue;
            }
            let Some(agent) = self.agents.get(name) else {
                continue;
            };
            for handoff in &agent.handoffs {
                open.extend(Some(handoff.spec.to.as_str()).filter(|to| !to.is_empty()));
                let rules = handoff.spec.rules.iter();
                open.extend(rules.filter_map(|rule| rule.redirect.as_deref()));
            }
            open.extend(others(agent));
        }
        reached
    }
}

/// Returns `true` if a graph has a cycle: if some nodes are left once those that nothing leads to are
/// removed, again and again.
fn has_cycle(edges: HashMap<&str, Vec<&str>>) -> bool {
    let mut incoming: HashMap<&str, usize> = edges.keys().map(|node| (*node, 0)).collect();
    for to in edges.values().flatten() {
        if let Some(count) = incoming.get_mut(to) {
            *count += 1;
        }
    }
    let first = incoming.iter().filter(|(_, count)| **count == 0);
    let mut open: Vec<&str> = first.map(|(node, _)| *node).collect();
    let mut removed = 0;
    while let Some(node) = open.pop() {
        removed += 1;
        for to in edges.get(node).into_iter().flatten() {
            if let Some(count) = incoming.get_mut(to) {
                *count -= 1;
                if *count == 0 {
                    open.push(to);
                }
            }
        }
    }
    removed < edges.len()
}
