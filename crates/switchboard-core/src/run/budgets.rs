//! Budgets: the use of them in a run, and those that are used up.

use std::borrow::Cow;
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
    /// The time of the run, by the agents that had the conversation.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    time: Vec<SpentTime>,
    /// The time of agents in runs inside this one. The run has spent it once, whatever went on side by side,
    /// so it counts only for the budgets of these agents.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    inside: Vec<SpentTime>,
    /// Budgets that were used up, with another agent going on beyond them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    passed: Vec<Scope>,
}

/// The time of an agent, with the one that it got the conversation from.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct SpentTime {
    agent: Arc<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    from: Option<Arc<str>>,
    time: Duration,
}

/// The agent that has the conversation, and the one that it got it from in this run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Holder {
    pub(crate) agent: Arc<str>,
    pub(crate) from: Option<Arc<str>>,
}

impl Spent {
    /// Counts time of agents in runs inside this one.
    pub(crate) fn add_inside(&mut self, spent: &[SpentTime]) {
        for SpentTime { agent, from, time } in spent.iter().cloned() {
            SpentTime::add(&mut self.inside, &Holder { agent, from }, time);
        }
    }
}

impl SpentTime {
    /// Adds time to that of the same agent.
    pub(crate) fn add(all: &mut Vec<Self>, holder: &Holder, time: Duration) {
        let Holder { agent, from } = holder.clone();
        let is_same = |spent: &&mut Self| spent.agent == agent && spent.from == from;
        match all.iter_mut().find(is_same) {
            Some(spent) => spent.time += time,
            None => all.push(Self { agent, from, time }),
        }
    }
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

    fn includes(&self, agent: &Arc<str>, from: Option<&Arc<str>>) -> bool {
        match self {
            Self::Run => true,
            Self::Agent(name) => agent == name,
            Self::Edge(source, to) => agent == to && from == Some(source),
        }
    }
}

/// The budgets of a run, with everything that counts for them at one moment.
#[derive(Debug)]
pub(crate) struct Ledger<'a> {
    pub(crate) budgets: &'a Budgets,
    requests: Cow<'a, [RequestUsage]>,
    spent: Cow<'a, Spent>,
    /// The time of the step in progress, where the budgets are those of a run around the one that asks, and
    /// the agent that has the conversation in that run.
    step: Option<(Holder, Duration)>,
}

impl<'a> Ledger<'a> {
    /// The budgets of a run around the one that asks.
    pub(crate) fn around(
        budgets: &'a Budgets,
        requests: Vec<RequestUsage>,
        spent: Spent,
        step: (Holder, Duration),
    ) -> Self {
        Self {
            budgets,
            requests: Cow::Owned(requests),
            spent: Cow::Owned(spent),
            step: Some(step),
        }
    }

    /// Returns `true` for the budgets of a run around the one that asks.
    pub(crate) fn is_around(&self) -> bool {
        self.step.is_some()
    }

    /// The first budget that is used up for an agent.
    ///
    /// # Errors
    /// The name of a model that has no price, where a cost is limited.
    pub(crate) fn used_up(&self, holder: &Holder) -> Result<Option<UsedUp>, Arc<str>> {
        for (scope, budget) in self.budgets_of(holder) {
            if let Some(limit) = self.reached_limit(&scope, &budget)? {
                let owner = scope.describe();
                let description = format!("the budget of {limit} of {owner} is used up");
                return Ok(Some(UsedUp { scope, description }));
            }
        }
        Ok(None)
    }

    /// The first budget of an agent that a request with so many tokens of input would exceed.
    ///
    /// # Errors
    /// The name of a model that has no price, where a cost is limited.
    pub(crate) fn exceeded_by_input(
        &self,
        holder: &Holder,
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
        for (scope, budget) in self.budgets_of(holder) {
            let tokens = budget
                .tokens
                .filter(|limit| self.tokens_of(&scope).saturating_add(input_tokens) > *limit)
                .map(|limit| format!("{limit} tokens"));
            let cost = match (budget.cost, price) {
                (Some(limit), Some(price)) => {
                    let total = self.cost_of(&scope)? + price.cost(&input);
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

    /// The time that is left to an agent; `None` if it is not limited.
    pub(crate) fn time_left(&self, holder: &Holder) -> Option<Duration> {
        let left = self
            .budgets_of(holder)
            .into_iter()
            .filter_map(|(scope, budget)| {
                let limit = budget.time?;
                Some(limit.saturating_sub(self.time_of(&scope)))
            });
        left.min()
    }

    /// The budgets that hold for an agent.
    fn budgets_of(&self, holder: &Holder) -> Vec<(Scope, Budget)> {
        let mut all = vec![(Scope::Run, self.budgets.run)];
        all.extend(self.scoped_budgets(holder));
        if let Some((holder, _)) = &self.step {
            // The time of an agent includes that of its tools.
            let waiting = self.scoped_budgets(holder).into_iter();
            all.extend(waiting.map(|(scope, Budget { time, .. })| {
                let budget = Budget {
                    time,
                    ..Budget::new()
                };
                (scope, budget)
            }));
        }
        all.retain(|(scope, _)| !self.spent.passed.contains(scope));
        all
    }

    /// The budgets of an agent and of the handoff to it.
    fn scoped_budgets(&self, holder: &Holder) -> Vec<(Scope, Budget)> {
        let Holder { agent, from } = holder;
        let agents = self.budgets.agents.iter();
        let agents = agents.filter(|(name, _)| name == agent);
        let agents = agents.map(|(name, budget)| (Scope::Agent(name.clone()), *budget));
        let edges = self.budgets.edges.iter();
        let edges = edges.filter(|(source, to, _)| Some(source) == from.as_ref() && to == agent);
        let edges = edges.map(|(source, to, budget)| {
            let scope = Scope::Edge(source.clone(), to.clone());
            (scope, *budget)
        });
        agents.chain(edges).collect()
    }

    /// The limit of a budget that is used up, in words.
    fn reached_limit(&self, scope: &Scope, budget: &Budget) -> Result<Option<String>, Arc<str>> {
        if let Some(limit) = budget.turns
            && self.turns_of(scope) >= limit as usize
        {
            let turns = if limit == 1 { "turn" } else { "turns" };
            return Ok(Some(format!("{limit} {turns}")));
        }
        if let Some(limit) = budget.tokens
            && self.tokens_of(scope) >= limit
        {
            return Ok(Some(format!("{limit} tokens")));
        }
        if let Some(limit) = budget.cost
            && self.cost_of(scope)? >= limit
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

    fn turns_of(&self, scope: &Scope) -> usize {
        // Usage that user code has added is no turn.
        let requests = self.requests_of(scope);
        requests.filter(|used| used.agent.is_some()).count()
    }

    fn tokens_of(&self, scope: &Scope) -> u64 {
        let requests = self.requests_of(scope);
        requests.map(|used| used.usage.total_tokens()).sum()
    }

    fn cost_of(&self, scope: &Scope) -> Result<f64, Arc<str>> {
        let mut cost = 0.0;
        for used in self.requests_of(scope) {
            // Usage that user code has added is of no model.
            let Some(model) = &used.model else {
                continue;
            };
            let price = self.budgets.price_of(model).ok_or_else(|| model.clone())?;
            cost += price.cost(&used.usage);
        }
        Ok(cost)
    }

    /// The requests that count for a budget.
    fn requests_of(&self, scope: &Scope) -> impl Iterator<Item = &RequestUsage> {
        self.requests.iter().filter(move |used| match &used.agent {
            Some(agent) => scope.includes(agent, used.from.as_ref()),
            None => *scope == Scope::Run,
        })
    }

    fn time_of(&self, scope: &Scope) -> Duration {
        let inside = match scope {
            Scope::Run => &[],
            _ => self.spent.inside.as_slice(),
        };
        let spent = self.spent.time.iter().chain(inside);
        let spent = spent.filter(|spent| scope.includes(&spent.agent, spent.from.as_ref()));
        let step = (self.step.iter())
            .filter(|(holder, _)| scope.includes(&holder.agent, holder.from.as_ref()));
        spent
            .map(|spent| spent.time)
            .chain(step.map(|(_, time)| *time))
            .sum()
    }
}

impl Run {
    /// The budgets of the run, with what it has used.
    pub(crate) fn ledger<'a>(&'a self, budgets: &'a Budgets) -> Ledger<'a> {
        let spent = self.spent.as_deref();
        Ledger {
            budgets,
            requests: Cow::Borrowed(&self.request_usage),
            spent: spent.map_or_else(Cow::default, Cow::Borrowed),
            step: None,
        }
    }

    /// The agent that has the conversation.
    pub(crate) fn holder(&self) -> Holder {
        Holder {
            agent: self.agent.name.clone(),
            from: self.last_edge().cloned(),
        }
    }

    /// Counts time that an agent has taken.
    pub(crate) fn spend_time(&mut self, holder: &Holder, time: Duration) {
        let spent = self.spent.get_or_insert_default();
        SpentTime::add(&mut spent.time, holder, time);
    }

    /// Counts time of agents in runs inside this one.
    pub(crate) fn spend_time_inside(&mut self, spent: &[SpentTime]) {
        if !spent.is_empty() {
            self.spent.get_or_insert_default().add_inside(spent);
        }
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

    /// The agent that the current one has the conversation from, in this run.
    pub(crate) fn last_edge(&self) -> Option<&Arc<str>> {
        let mut taken = self.handoffs.iter().rev();
        let is_taken = |record: &&HandoffRecord| record.outcome == HandoffOutcome::Taken;
        let last = taken.find(is_taken)?;
        (last.to == self.agent.name).then_some(&last.from)
    }
}
