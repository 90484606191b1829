//! Budgets of runs: turns, tokens, cost and time.

use std::sync::Arc;
use std::time::Duration;

use crate::model::Usage;

/// The budgets of a run, of single agents and of single handoffs. They are checked before each model call,
/// with all that was used so far. The time counts while the run is carried out, not while it waits for a
/// person; a model call is cancelled when the time is up.
///
/// They hold for the runs inside as well: agents used as tools, agents that answer beside others, and runs
/// [within](crate::Runner::within) a tool call all draw on the same budgets.
///
/// ```
/// use std::time::Duration;
/// use switchboard_core::run::{AtBudget, Budget, Budgets, Price};
/// use switchboard_core::{Agent, Runner};
///
/// let triage: Agent = Agent::new("Triage");
/// let runner = Runner::new(&triage).budgets(
///     Budgets::new()
///         .run(Budget::new().cost(0.50).time(Duration::from_secs(120)))
///         .agent("Research", Budget::new().turns(10).tokens(50_000))
///         .price("gpt-5", Price::per_million(1.25, 10.0).cached(0.125))
///         .at_limit(AtBudget::Finish("Let me get back to you.".into())),
/// );
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Budgets {
    /// The budget of the whole run.
    pub run: Budget,
    /// The budgets of agents, by name: what an agent itself may use, whether it has the conversation or is used
    /// as a tool. Its time includes that of its tools.
    pub agents: Vec<(Arc<str>, Budget)>,
    /// The budgets of handoffs, from one agent to another: what the second may use while it has the
    /// conversation from the first.
    pub edges: Vec<(Arc<str>, Arc<str>, Budget)>,
    /// The prices of models, by name, for costs.
    pub prices: Vec<(Arc<str>, Price)>,
    /// The consequence of using up a budget.
    pub at_limit: AtBudget,
    /// Refuses requests whose input alone is more than what is left, by an estimate.
    pub estimate_input: bool,
}

/// A budget; what is not set has no limit.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Budget {
    /// The number of model responses.
    pub turns: Option<u32>,
    /// Tokens of inputs and outputs. Responses that are under way may exceed it.
    pub tokens: Option<u64>,
    /// The cost, in the currency of the prices.
    pub cost: Option<f64>,
    /// The time.
    pub time: Option<Duration>,
}

/// The price of a model's tokens, per million.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[must_use]
pub struct Price {
    /// Tokens of inputs.
    pub input: f64,
    /// Tokens of inputs that the provider had cached.
    pub cached: f64,
    /// Tokens of outputs.
    pub output: f64,
}

/// The consequence of using up a budget.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum AtBudget {
    /// The run ends with an error of the kind [`ErrorKind::Budget`](crate::ErrorKind::Budget), which
    /// has the run: it can be resumed with a larger budget.
    #[default]
    Fail,
    /// The run ends with the last thing that an agent has said, or with this text if none has said
    /// anything.
    Finish(Arc<str>),
    /// The agent of this name gets the conversation, without a model call. It goes on beyond the budget
    /// that was used up, but within its own. A run inside the one whose budget it is fails instead.
    HandTo(Arc<str>),
}

impl Budgets {
    /// No budgets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the budget of the whole run.
    pub fn run(mut self, budget: Budget) -> Self {
        self.run = budget;
        self
    }

    /// Sets the budget of an agent.
    pub fn agent(mut self, name: impl Into<Arc<str>>, budget: Budget) -> Self {
        self.agents.push((name.into(), budget));
        self
    }

    /// Sets the budget of a handoff from one agent to another.
    pub fn edge(
        mut self,
        from: impl Into<Arc<str>>,
        to: impl Into<Arc<str>>,
        budget: Budget,
    ) -> Self {
        self.edges.push((from.into(), to.into(), budget));
        self
    }

    /// Sets the price of a model.
    pub fn price(mut self, model: impl Into<Arc<str>>, price: Price) -> Self {
        self.prices.push((model.into(), price));
        self
    }

    /// Sets the consequence of using up a budget.
    pub fn at_limit(mut self, consequence: AtBudget) -> Self {
        self.at_limit = consequence;
        self
    }

    /// Refuses a request before it is sent, if its input alone exceeds the tokens or the cost that are left. The
    /// input is estimated as by [`filters::estimated_tokens`](crate::filters::estimated_tokens), which is on
    /// the high side, and at the price of cached input, where that is lower. Without it, the last request may
    /// exceed a budget by what it uses itself.
    pub fn estimate_input(mut self) -> Self {
        self.estimate_input = true;
        self
    }

    /// Returns `true` if any budget limits the cost.
    pub(crate) fn limit_cost(&self) -> bool {
        let agents = self.agents.iter().map(|(_, budget)| budget);
        let edges = self.edges.iter().map(|(_, _, budget)| budget);
        let mut all = agents.chain(edges).chain([&self.run]);
        all.any(|budget| budget.cost.is_some())
    }

    /// The price of a model.
    pub(crate) fn price_of(&self, model: &str) -> Option<Price> {
        let mut prices = self.prices.iter().rev();
        let (_, price) = prices.find(|(name, _)| **name == *model)?;
        Some(*price)
    }
}

impl Budget {
    /// A budget without limits.
    pub const fn new() -> Self {
        Self {
            turns: None,
            tokens: None,
            cost: None,
            time: None,
        }
    }

    /// Limits the number of model responses.
    pub const fn turns(mut self, turns: u32) -> Self {
        self.turns = Some(turns);
        self
    }

    /// Limits the tokens of inputs and outputs.
    pub const fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Limits the cost.
    pub const fn cost(mut self, cost: f64) -> Self {
        self.cost = Some(cost);
        self
    }

    /// Limits the time.
    pub const fn time(mut self, time: Duration) -> Self {
        self.time = Some(time);
        self
    }
}

impl Price {
    /// The price of a million tokens of inputs and of outputs. Cached input costs the same as other,
    /// unless it is set.
    pub const fn per_million(input: f64, output: f64) -> Self {
        Self {
            input,
            cached: input,
            output,
        }
    }

    /// Sets the price of a million tokens of inputs that the provider had cached.
    pub const fn cached(mut self, price: f64) -> Self {
        self.cached = price;
        self
    }

    /// The cost of a usage.
    #[expect(
        clippy::cast_precision_loss,
        reason = "numbers of tokens are far below 2^53"
    )]
    pub fn cost(&self, usage: &Usage) -> f64 {
        let cached = usage.cached_tokens.min(usage.input_tokens);
        let other = usage.input_tokens - cached;
        let total = other as f64 * self.input
            + cached as f64 * self.cached
            + usage.output_tokens as f64 * self.output;
        total / 1_000_000.0
    }
}
