//! Budgets: the use of them in a run, and those that are used up.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Run;
use super::handoff::{HandoffOutcome, HandoffRecord};
use crate::items::RunItemKind;
use crate::model::{RequestUsage, Usage};
use crate::runner::{Budget, Budgets, Price};

/// The time that agents have taken, and the budgets that do not count any more.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Spent {
    /// The time of each agent, with the agent that it got the conversation from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    time: Vec<SpentTime>,
    /// The number of model responses before each handoff that took place.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    requests: Vec<usize>,
    /// Budgets that were used up, with another agent going on beyond them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    passed: Vec<Scope>,
}

impl Spent {
    /// The same for an agent that answers beside others.
    pub(crate) fn of_branch(mut self) -> Self {
        self.requests.clear();
        self
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct SpentTime {
    agent: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Arc<str>>,
    time: Duration,
}

/// The part of a run that a budget is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Scope {
    Run,
    Agent(Arc<str>),
    Edge(Arc<str>, Arc<str>),
}

/// A budget that is used up.
#[derive(Debug)]
pub(crate) struct UsedUp {
    pub(crate) scope: Scope,
    /// The problem in words: `the budget of 10 turns of "Research" is used up`.
    pub(crate) description: String,
}

impl Scope {
    fn describe(&self) -> String {
        match self {
            Self::Run => "the run".to_owned(),
            Self::Agent(name) => format!("\"{name}\""),
            Self::Edge(from, to) => format!("\"{to}\" after a handoff from \"{from}\""),
        }
    }
}

impl Run {
    /// The budget that is used up, the first that applies to the current agent. `used` are the requests of the
    /// run, with those around it where it is one of several beside each other.
    ///
    /// # Errors
    /// The name of a model that has no price, where a cost is limited.
    pub(crate) fn used_up_budget(
        &self,
        budgets: &Budgets,
        used: &[RequestUsage],
    ) -> Result<Option<UsedUp>, Arc<str>> {
        for (scope, budget) in self.budgets_here(budgets) {
            if let Some(limit) = self.passed(&scope, &budget, budgets, used)? {
                let owner = scope.describe();
                let description = format!("the budget of {limit} of {owner} is used up");
                return Ok(Some(UsedUp { scope, description }));
            }
        }
        Ok(None)
    }

    /// The budget that a request with so many tokens of input would exceed, the first that applies to the
    /// current agent.
    ///
    /// # Errors
    /// The name of a model that has no price, where a cost is limited.
    pub(crate) fn exceeded_by_input(
        &self,
        budgets: &Budgets,
        used: &[RequestUsage],
        input_tokens: u64,
        price: Option<Price>,
    ) -> Result<Option<UsedUp>, Arc<str>> {
        let input = Usage {
            input_tokens,
            cached_tokens: match price {
                Some(price) if price.cached < price.input => input_tokens,
                _ => 0,
            },
            ..Usage::default()
        };
        for (scope, budget) in self.budgets_here(budgets) {
            let tokens = budget
                .tokens
                .filter(|limit| self.tokens_of(&scope, used).saturating_add(input_tokens) > *limit)
                .map(|limit| format!("{limit} tokens"));
            let cost = match (budget.cost, price) {
                (Some(limit), Some(price)) => {
                    let total = self.cost_of(&scope, budgets, used)? + price.cost(&input);
                    (total > limit).then(|| format!("a cost of {limit}"))
                }
                _ => None,
            };
            if let Some(limit) = tokens.or(cost) {
                let owner = scope.describe();
                let description = format!(
                    "the budget of {limit} of {owner} has too little left for the next request, whose \
                     input is about {input_tokens} tokens"
                );
                return Ok(Some(UsedUp { scope, description }));
            }
        }
        Ok(None)
    }

    /// The time that is left to the current agent; `None` if it is not limited.
    pub(crate) fn time_left(&self, budgets: &Budgets) -> Option<Duration> {
        let here = self.budgets_here(budgets).into_iter();
        let left = here.filter_map(|(scope, budget)| {
            let limit = budget.time?;
            Some(limit.saturating_sub(self.time_of(&scope)))
        });
        left.min()
    }

    /// Counts time that the current agent has taken.
    pub(crate) fn spend_time(&mut self, time: Duration) {
        let (agent, from) = (self.agent.name.clone(), self.last_edge().cloned());
        let spent = &mut self.spent.get_or_insert_default().time;
        let is_same = |spent: &&mut SpentTime| spent.agent == agent && spent.from == from;
        match spent.iter_mut().find(is_same) {
            Some(spent) => spent.time += time,
            None => spent.push(SpentTime { agent, from, time }),
        }
    }

    /// Notes the number of model responses before a handoff that took place.
    pub(crate) fn note_requests(&mut self) {
        let requests = self.request_usage.len();
        let taken = (self.handoffs.iter())
            .filter(|record| record.outcome == HandoffOutcome::Taken)
            .count();
        // Handoffs from before there were budgets count from here.
        let noted = &mut self.spent.get_or_insert_default().requests;
        noted.resize(taken, requests);
    }

    /// Goes on beyond a budget.
    pub(crate) fn pass_budget(&mut self, scope: Scope) {
        self.spent.get_or_insert_default().passed.push(scope);
    }

    /// The last words of an agent in this run.
    pub(crate) fn last_words(&self) -> Option<String> {
        let items: Vec<_> = self.conversation.record.iter().collect();
        let mut items = items.into_iter().rev();
        items.find_map(|made| {
            let is_message = *made.kind() == RunItemKind::MessageOutput;
            let text = made.item().text().filter(|_| is_message)?;
            (!text.is_empty()).then(|| text.into_owned())
        })
    }

    /// The budgets that apply to the current agent.
    fn budgets_here(&self, budgets: &Budgets) -> Vec<(Scope, Budget)> {
        let name = &self.agent.name;
        let mut here = vec![(Scope::Run, budgets.run)];
        let agents = budgets.agents.iter().filter(|(agent, _)| agent == name);
        here.extend(agents.map(|(agent, budget)| (Scope::Agent(agent.clone()), *budget)));
        if let Some(from) = self.last_edge() {
            let edges = budgets.edges.iter();
            let edges = edges.filter(|(source, to, _)| source == from && to == name);
            here.extend(
                edges
                    .map(|(source, to, budget)| (Scope::Edge(source.clone(), to.clone()), *budget)),
            );
        }
        if let Some(spent) = &self.spent {
            here.retain(|(scope, _)| !spent.passed.contains(scope));
        }
        here
    }

    /// The agent that the current one has the conversation from, in this run.
    fn last_edge(&self) -> Option<&Arc<str>> {
        let mut taken = self.handoffs.iter().rev();
        let is_taken = |record: &&HandoffRecord| record.outcome == HandoffOutcome::Taken;
        let last = taken.find(is_taken)?;
        (last.to == self.agent.name).then_some(&last.from)
    }

    /// The limit of a budget that is used up, in words.
    fn passed(
        &self,
        scope: &Scope,
        budget: &Budget,
        budgets: &Budgets,
        used: &[RequestUsage],
    ) -> Result<Option<String>, Arc<str>> {
        if let Some(limit) = budget.turns
            && self.requests(scope, used).count() >= limit as usize
        {
            return Ok(Some(format!("{limit} turns")));
        }
        if let Some(limit) = budget.tokens
            && self.tokens_of(scope, used) >= limit
        {
            return Ok(Some(format!("{limit} tokens")));
        }
        if let Some(limit) = budget.cost
            && self.cost_of(scope, budgets, used)? >= limit
        {
            return Ok(Some(format!("a cost of {limit}")));
        }
        if let Some(limit) = budget.time
            && self.time_of(scope) >= limit
        {
            return Ok(Some(format!("{limit:?}")));
        }
        Ok(None)
    }

    fn tokens_of(&self, scope: &Scope, used: &[RequestUsage]) -> u64 {
        let requests = self.requests(scope, used);
        requests.map(|used| used.usage.total_tokens()).sum()
    }

    /// The cost of the requests that count for a budget.
    fn cost_of(
        &self,
        scope: &Scope,
        budgets: &Budgets,
        used: &[RequestUsage],
    ) -> Result<f64, Arc<str>> {
        let mut cost = 0.0;
        for used in self.requests(scope, used) {
            // Usage that user code has added is of no model.
            let Some(model) = &used.model else {
                continue;
            };
            let price = budgets.price_of(model).ok_or_else(|| model.clone())?;
            cost += price.cost(&used.usage);
        }
        Ok(cost)
    }

    /// The requests that count for a budget.
    fn requests<'a>(
        &'a self,
        scope: &Scope,
        used: &'a [RequestUsage],
    ) -> Box<dyn Iterator<Item = &'a RequestUsage> + 'a> {
        match scope {
            Scope::Run => Box::new(used.iter()),
            Scope::Agent(name) => {
                let name = name.clone();
                let requests = used.iter();
                Box::new(requests.filter(move |used| used.agent.as_ref() == Some(&name)))
            }
            Scope::Edge(from, to) => {
                let (from, to) = (from.clone(), to.clone());
                let taken = self.handoffs.iter();
                let taken = taken.filter(|record| record.outcome == HandoffOutcome::Taken);
                let starts = self
                    .spent
                    .iter()
                    .flat_map(|spent| spent.requests.iter().copied());
                let ends = starts.clone().skip(1).chain([self.request_usage.len()]);
                let stays = taken.zip(starts.zip(ends));
                let stays = stays.filter(move |(record, _)| record.from == from && record.to == to);
                Box::new(stays.flat_map(|(_, (start, end))| {
                    self.request_usage.get(start..end).unwrap_or_default()
                }))
            }
        }
    }

    fn time_of(&self, scope: &Scope) -> Duration {
        let Some(spent) = &self.spent else {
            return Duration::ZERO;
        };
        let spent = spent.time.iter().filter(|spent| match scope {
            Scope::Run => true,
            Scope::Agent(name) => spent.agent == *name,
            Scope::Edge(from, to) => spent.agent == *to && spent.from.as_ref() == Some(from),
        });
        spent.map(|spent| spent.time).sum()
    }
}
