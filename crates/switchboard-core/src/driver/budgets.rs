//! Keeping a run within its budgets.

use std::sync::Arc;
use std::time::Instant;

use futures_timer::Delay;
use futures_util::future::{Either, select};

use super::{Driver, configuration_error};
use crate::error::{Error, ErrorKind};
use crate::filters::{estimated_tokens, text_tokens};
use crate::lock::lock;
use crate::model::Usage;
use crate::offered_tools::Offer;
use crate::output::FinalOutput;
use crate::run::budgets::{Holder, Ledger, UsedUp};
use crate::run::{HandoffTrigger, agent_keys};
use crate::runner::{AtBudget, OuterBudgets};

/// The beginning of a step whose time counts, and the agent that it counts for.
pub(super) struct StepClock {
    holder: Holder,
    start: Instant,
}

/// A budget that is used up, with the consequence.
struct ReachedLimit {
    used_up: UsedUp,
    at_limit: AtBudget,
    /// Set if it is a budget of a run around this one.
    is_around: bool,
}

impl<C: Send + Sync + 'static> Driver<C> {
    /// Returns `true` if budgets hold for the run, its own or those of a run around it.
    pub(super) fn has_budgets(&self) -> bool {
        self.config.budgets.is_some() || self.outer_budgets().is_some()
    }

    fn outer_budgets(&self) -> Option<&Arc<OuterBudgets>> {
        self.outer.as_ref()?.budgets.as_ref()
    }

    /// The budgets that hold for the run, with what was used of each: its own first, then those of the runs
    /// around it.
    pub(super) fn ledgers(&self) -> Vec<Ledger<'_>> {
        let own = self.config.budgets.as_deref();
        let own = own.map(|budgets| self.run.ledger(budgets));
        let outer = self.outer_budgets().into_iter();
        own.into_iter()
            .chain(outer.flat_map(OuterBudgets::ledgers))
            .collect()
    }

    /// Asks the model within the budgets of the run, or does what is to be done at their limit.
    pub(super) async fn call_model_within_budgets(&mut self) -> Result<(), Error> {
        self.count_added_usage();
        if let Some(reached) = self.reached_limit()? {
            return self.leave_budget(reached).await;
        }
        let holder = self.run.holder();
        let left = self.ledgers().into_iter();
        let left = left.filter_map(|ledger| ledger.time_left(&holder)).min();
        self.begin_request();
        let outcome = match left {
            None => Some(self.call_model().await),
            Some(left) => {
                let call = std::pin::pin!(self.call_model());
                match select(call, Delay::new(left)).await {
                    Either::Left((outcome, _)) => Some(outcome),
                    // Dropping the call cancels it.
                    Either::Right(((), _)) => None,
                }
            }
        };
        self.end_request();
        // Without an outcome, the next step finds that the time is used up.
        outcome.unwrap_or(Ok(()))
    }

    /// The first budget that does not allow the next request.
    fn reached_limit(&self) -> Result<Option<ReachedLimit>, Error> {
        let holder = self.run.holder();
        let model = self.model().map(|model| model.shared_name());
        for ledger in self.ledgers() {
            let budgets = ledger.budgets;
            let price = model.as_ref().and_then(|model| budgets.price_of(model));
            if let (Some(model), None, true) = (&model, price, budgets.limit_cost()) {
                return Err(no_price(model));
            }
            let used_up = match ledger.used_up(&holder) {
                Ok(None) if budgets.estimate_input => {
                    ledger.exceeded_by_input(&holder, self.estimated_input(), price)
                }
                known => known,
            };
            if let Some(used_up) = used_up.map_err(|model| no_price(&model))? {
                return Ok(Some(ReachedLimit {
                    used_up,
                    at_limit: budgets.at_limit.clone(),
                    is_around: ledger.is_around(),
                }));
            }
        }
        Ok(None)
    }

    /// Checks that the model can be asked within the budgets of the current agent, as far as it is known before
    /// tools run, and where the run would fail otherwise.
    pub(super) fn check_budgets(&self) -> Result<(), Error> {
        let holder = self.run.holder();
        for ledger in self.ledgers() {
            let used_up = ledger.used_up(&holder);
            if ledger.budgets.at_limit == AtBudget::Fail
                && let Some(used_up) = used_up.map_err(|model| no_price(&model))?
            {
                return Err(budget_error(&used_up.description));
            }
        }
        Ok(())
    }

    /// Counts the next request for the budgets around the run from now on: runs beside this one must not begin
    /// more of them than are left.
    fn begin_request(&self) {
        let (Some(outer), Some(budgets)) = (&self.outer, self.outer_budgets()) else {
            return;
        };
        let model = self.model().map(|model| model.shared_name());
        let mut ledgers = budgets.ledgers();
        let input_tokens = if ledgers.any(|ledger| ledger.budgets.estimate_input) {
            self.estimated_input()
        } else {
            0
        };
        let usage = Usage {
            input_tokens,
            ..Usage::default()
        };
        let request = self.request_usage(model.unwrap_or_default(), usage);
        *lock(&outer.request) = Some(budgets.begin_request(&request));
    }

    /// Ends the request: its usage is counted, or it has failed.
    pub(super) fn end_request(&self) {
        if let Some(outer) = &self.outer {
            let ended = lock(&outer.request).take();
            drop(ended);
        }
    }

    /// Begins the runs inside the tools of a step: the budgets of this run hold for them.
    pub(super) fn begin_inner_runs(&mut self) {
        if !self.has_budgets() {
            return;
        }
        self.count_added_usage();
        let outer = self.outer_budgets().cloned();
        self.budgets_inside = match self.config.budgets.clone() {
            None => outer,
            Some(budgets) => {
                let used = self.added_usage.clone();
                Some(Arc::new(OuterBudgets::new(&self.run, budgets, used, outer)))
            }
        };
    }

    /// Counts the time of the agents in runs inside the tools of a step.
    pub(super) fn end_inner_runs(&mut self) {
        let inside = self.budgets_inside.take();
        if let (Some(inside), Some(_)) = (inside, &self.config.budgets) {
            self.run_mut().spend_time_inside(&inside.take_time());
        }
    }

    pub(super) fn start_clock(&self) -> StepClock {
        StepClock {
            holder: self.run.holder(),
            start: Instant::now(),
        }
    }

    /// Counts the time of a step.
    pub(super) fn stop_clock(&mut self, clock: StepClock) {
        let StepClock { holder, start } = clock;
        let time = start.elapsed();
        if let Some(outer) = self.outer_budgets() {
            outer.spend_time(&holder, time);
        }
        if self.config.budgets.is_some() {
            self.run_mut().spend_time(&holder, time);
        }
    }

    /// An estimate of the tokens of the next request's input: the conversation, and the instructions and
    /// schemas as far as they do not depend on conditions.
    fn estimated_input(&self) -> u64 {
        let items = match &self.config.server_history {
            None => self.run.turn_input(),
            Some(history) => self.run.undelivered(history).0,
        };
        let mut tokens: usize = items.iter().map(estimated_tokens).sum();
        let instructions = self.agent.fixed_instructions().flatten();
        tokens += instructions.map_or(0, |text| text_tokens(text));
        if let Some(offer) = Offer::cached(&self.agent, self.config.tool_names) {
            let tools = offer.tools.iter().map(|tool| {
                text_tokens(&tool.name)
                    + text_tokens(&tool.description)
                    + text_tokens(tool.parameters.get())
            });
            let handoffs = offer.handoffs.iter().map(|handoff| {
                text_tokens(&handoff.tool_name)
                    + text_tokens(&handoff.tool_description)
                    + text_tokens(handoff.input_json_schema.get())
            });
            tokens += tools.chain(handoffs).sum::<usize>();
        }
        tokens as u64
    }

    async fn leave_budget(&mut self, reached: ReachedLimit) -> Result<(), Error> {
        let UsedUp { scope, description } = reached.used_up;
        tracing::warn!(agent = self.agent.name(), "{description}");
        match &reached.at_limit {
            // The run whose budget it is hands over.
            AtBudget::HandTo(_) if reached.is_around => Err(budget_error(&description)),
            AtBudget::Fail => Err(budget_error(&description)),
            AtBudget::Finish(text) => {
                let words = self.run.last_words();
                let output = words.map_or_else(|| text.clone(), Into::into);
                self.check_input_before_model().await?;
                self.run_mut().finish_with(FinalOutput::Text(output));
                Ok(())
            }
            AtBudget::HandTo(name) => {
                let Some(agent) = agent_keys::find(&self.start, name) else {
                    return Err(configuration_error(format!(
                        "{description}, and \"{name}\", which is to go on, cannot be reached from \
                         \"{}\"",
                        self.start.name()
                    )));
                };
                let agent_ref = agent_keys::agent_ref(&self.start, &agent);
                let way_back = self.way_back_after_move();
                let run = self.run_mut();
                run.pass_budget(scope);
                run.move_to(agent_ref, HandoffTrigger::Budget);
                run.arrive(way_back, agent.is_person());
                self.agent = agent;
                self.offer = None;
                self.end_spans();
                self.report_agent().await;
                Ok(())
            }
        }
    }
}

fn budget_error(description: &str) -> Error {
    Error::new(
        ErrorKind::Budget,
        format!("{description}; no model was asked. The run can go on with a larger budget"),
    )
}

fn no_price(model: &str) -> Error {
    configuration_error(format!(
        "a budget limits the cost, and there is no price of the model \"{model}\"; set one with \
         Budgets::price"
    ))
}
