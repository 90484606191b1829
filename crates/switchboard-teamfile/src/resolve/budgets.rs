//! Checks budgets and prices.

use indexmap::IndexMap;

use super::Resolver;
use crate::diagnostics::Severity;
use crate::document::{Step, steps};
use crate::models;
use crate::suggest::{did_you_mean, quoted_list};
use crate::types::{AtBudgetSpec, BudgetSpec, HandoffSpec, PriceSpec, TeamSpec};

impl Resolver<'_> {
    /// Checks budgets: prices of models, agents that go on, and limits that are never reached.
    pub(super) fn check_budgets(&mut self) {
        let run = &self.spec.run;
        let budgets = budgets(self.spec);
        for (path, budget) in &budgets {
            if *budget == BudgetSpec::default() {
                let help = "set turns, tokens, cost or seconds";
                self.warn_at("no-effect", path, "this budget has no limit", help);
            }
        }
        match &run.at_budget {
            Some(AtBudgetSpec::HandTo(agent)) => {
                self.check_agent(steps!["run", "at_budget", "hand_to"], agent);
            }
            Some(AtBudgetSpec::Finish(text)) if text.trim().is_empty() => {
                let path = steps!["run", "at_budget", "finish"];
                let help = "write the answer that the user gets if no agent has said anything";
                self.report("empty-answer", path, "this answer is empty", help);
            }
            _ => {}
        }
        if run.at_budget.is_some() && budgets.is_empty() {
            let message = "this has no effect: there is no budget";
            let help = "give [run], an agent or a handoff a budget";
            self.warn_at("no-effect", steps!["run", "at_budget"], message, help);
        }
        let is_estimated = |budget: &BudgetSpec| budget.tokens.is_some() || budget.cost.is_some();
        if run.estimate_input && !budgets.iter().any(|(_, budget)| is_estimated(budget)) {
            let message = "this has no effect: no budget limits tokens or cost";
            let help = "give [run], an agent or a handoff such a budget";
            self.warn_at("no-effect", steps!["run", "estimate_input"], message, help);
        }
        self.check_prices(&budgets);
        self.warn_of_unreachable_budgets(&budgets);
    }

    fn check_prices(&mut self, budgets: &[(Vec<Step<'_>>, BudgetSpec)]) {
        let spec = self.spec;
        let at_server = |name: &str| models::name_at_server(name, &spec.models).to_owned();
        // By the names that servers report.
        let mut prices: IndexMap<String, (&str, PriceSpec)> = IndexMap::new();
        for (name, price) in &spec.prices {
            let (first, known) = prices
                .entry(at_server(name))
                .or_insert((name.as_str(), *price));
            if known != price {
                let message =
                    format!("{first:?} and {name:?} are the same model with different prices");
                let help =
                    "usage is counted by the name of the model at its server; give it one price";
                self.report_name("bad-price", steps!["prices", name], message, help);
            }
        }
        let used = self.used_models();
        let costs = budgets.iter().find(|(_, budget)| budget.cost.is_some());
        if let Some((path, _)) = costs {
            let path = [&path[..], steps!["cost"]].concat();
            for (model, agent) in &used {
                if model != models::OFFLINE && !prices.contains_key(&at_server(model)) {
                    let message =
                        format!("there is no price of the model {model:?}, which {agent:?} uses");
                    let help = format!(
                        "write it under [prices], for a million tokens: {model:?} = {{ input = …, output = … }}"
                    );
                    self.report("no-price", &path, message, &help);
                }
            }
        }
        for name in spec.prices.keys() {
            let is_used = used.keys().any(|model| at_server(model) == at_server(name));
            if !is_used {
                let message = format!("no agent uses the model {name:?}");
                let help = format!(
                    "the team uses {}",
                    quoted_list(used.keys().map(String::as_str))
                );
                let problem = self.name_problem("unused", steps!["prices", name], message);
                let known = used.keys().map(String::as_str);
                self.problems.add(
                    problem
                        .severity(Severity::Warning)
                        .suggestion(did_you_mean(name, known))
                        .help(help),
                );
            }
        }
    }

    /// The models of agents, each with the first agent that uses it.
    fn used_models(&self) -> IndexMap<String, String> {
        let mut used = IndexMap::new();
        let agents = self.spec.agents.iter().filter(|(_, agent)| !agent.person);
        for (name, agent) in agents {
            let model = agent.model.as_deref().or(self.spec.model.as_deref());
            let model = match &agent.a2a {
                Some(_) => models::REMOTE,
                None => model.unwrap_or(models::OFFLINE),
            };
            let model = model.to_owned();
            used.entry(model).or_insert_with(|| name.clone());
        }
        used
    }

    /// Warns of budgets that another one ends before.
    fn warn_of_unreachable_budgets(&mut self, budgets: &[(Vec<Step<'_>>, BudgetSpec)]) {
        let spec = self.spec;
        let run = spec.run.budget.unwrap_or_default();
        // Agents that a tool asks have turns of their own, which count in the budget.
        let asks_agents = spec.tools.values().any(|tool| tool.agent.is_some());
        let max_turns = self.max_turns();
        if let Some(turns) = run.turns
            && turns > max_turns
            && !asks_agents
        {
            let message = format!("this is never reached: max_turns of [run] is {max_turns}");
            let path = steps!["run", "budget", "turns"];
            let help = "lower it, or raise max_turns";
            self.warn_at("never-reached", path, message, help);
        }
        // Beyond the budget of the run, the others count on.
        if matches!(spec.run.at_budget, Some(AtBudgetSpec::HandTo(_))) {
            return;
        }
        for (path, budget) in budgets {
            if path.first() == Some(&Step::from("run")) {
                continue;
            }
            for field in unreachable_fields(budget, &run) {
                let path = [&path[..], steps![field]].concat();
                let message = "this is never reached: the budget of the run is not larger";
                let help = "lower it, or raise that of [run]";
                self.warn_at("never-reached", &path, message, help);
            }
        }
        for (name, agent) in &spec.agents {
            for (index, handoff) in agent.handoffs.iter().enumerate() {
                let HandoffSpec::Table(table) = handoff else {
                    continue;
                };
                let target = spec.agents.get(&table.to);
                let (Some(own), Some(of_target)) =
                    (table.budget, target.and_then(|target| target.budget))
                else {
                    continue;
                };
                for field in unreachable_fields(&own, &of_target) {
                    let path = steps!["agents", name, "handoffs", index, "budget", field];
                    let to = &table.to;
                    let message =
                        format!("this is never reached: the budget of {to:?} is not larger");
                    let help = format!("lower it, or raise that of {to:?}");
                    self.warn_at("never-reached", path, message, help);
                }
            }
        }
    }
}

/// All budgets of a file, with their paths.
fn budgets(spec: &TeamSpec) -> Vec<(Vec<Step<'_>>, BudgetSpec)> {
    let mut budgets = Vec::new();
    if let Some(budget) = spec.run.budget {
        budgets.push((steps!["run", "budget"].to_vec(), budget));
    }
    for (name, agent) in &spec.agents {
        if let Some(budget) = agent.budget {
            budgets.push((steps!["agents", name, "budget"].to_vec(), budget));
        }
        for (index, handoff) in agent.handoffs.iter().enumerate() {
            if let HandoffSpec::Table(table) = handoff
                && let Some(budget) = table.budget
            {
                let path = steps!["agents", name, "handoffs", index, "budget"];
                budgets.push((path.to_vec(), budget));
            }
        }
    }
    budgets
}

/// The limits of a budget that are not below those of an outer one, which is checked first.
fn unreachable_fields(inner: &BudgetSpec, outer: &BudgetSpec) -> Vec<&'static str> {
    fn is_not_below<T: PartialOrd>(inner: Option<T>, outer: Option<T>) -> bool {
        matches!((inner, outer), (Some(inner), Some(outer)) if inner >= outer)
    }
    let fields = [
        ("turns", is_not_below(inner.turns, outer.turns)),
        ("tokens", is_not_below(inner.tokens, outer.tokens)),
        ("cost", is_not_below(inner.cost, outer.cost)),
        ("seconds", is_not_below(inner.seconds, outer.seconds)),
    ];
    let unreachable = fields
        .into_iter()
        .filter(|(_, is_unreachable)| *is_unreachable);
    unreachable.map(|(field, _)| field).collect()
}
