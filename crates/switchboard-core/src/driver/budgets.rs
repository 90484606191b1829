//! Keeping a run within its budgets.

use std::borrow::Cow;
use std::time::Instant;

use futures_timer::Delay;
use futures_util::future::{Either, select};

use super::{Driver, configuration_error};
use crate::error::{Error, ErrorKind};
use crate::filters::{estimated_tokens, text_tokens};
use crate::model::RequestUsage;
use crate::offered_tools::Offer;
use crate::output::FinalOutput;
use crate::run::budgets::UsedUp;
use crate::run::{HandoffTrigger, agent_keys};
use crate::runner::{AtBudget, Budgets};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Asks the model within the budgets of the run, or does what is to be done at their limit.
    pub(super) async fn call_model_within_budgets(&mut self) -> Result<(), Error> {
        let Some(budgets) = self.config.budgets.clone() else {
            return self.call_model().await;
        };
        let budgets = &*budgets;
        self.count_added_usage();
        if budgets.limit_cost()
            && let Some(model) = self.model()
            && budgets.price_of(model.name()).is_none()
        {
            return Err(no_price(model.name()));
        }
        let used_up = self
            .run
            .used_up_budget(budgets, &self.requests_so_far())
            .map_err(|model| no_price(&model))?;
        let exceeded = match used_up {
            None if budgets.estimate_input => {
                let price = self
                    .model()
                    .and_then(|model| budgets.price_of(model.name()));
                let exceeded = self.run.exceeded_by_input(
                    budgets,
                    &self.requests_so_far(),
                    self.estimated_input(),
                    price,
                );
                exceeded.map_err(|model| no_price(&model))?
            }
            known => known,
        };
        if let Some(used_up) = exceeded {
            return self.leave_budget(budgets, used_up).await;
        }
        let left = self.run.time_left(budgets);
        let start = Instant::now();
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
        let took = start.elapsed();
        self.run_mut()
            .spend_time(left.filter(|_| outcome.is_none()).unwrap_or(took));
        // Without an outcome, the next step finds that the time is used up.
        outcome.unwrap_or(Ok(()))
    }

    /// Checks that the model can be asked within the budgets of the current agent, as far as it is known before
    /// tools run.
    pub(super) fn check_budgets(&self, budgets: &Budgets) -> Result<(), Error> {
        let used_up = self.run.used_up_budget(budgets, &self.requests_so_far());
        match used_up.map_err(|model| no_price(&model))? {
            Some(used_up) => Err(budget_error(&used_up.description)),
            None => Ok(()),
        }
    }

    /// The requests of the run, with those around it where it is one of several beside each other.
    pub(super) fn requests_so_far(&self) -> Cow<'_, [RequestUsage]> {
        match self.limits() {
            Some(limits) => Cow::Owned(limits.requests()),
            None => Cow::Borrowed(self.run.request_usage()),
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

    async fn leave_budget(&mut self, budgets: &Budgets, used_up: UsedUp) -> Result<(), Error> {
        let UsedUp { scope, description } = used_up;
        tracing::warn!(agent = self.agent.name(), "{description}");
        match &budgets.at_limit {
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
                run.note_requests();
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
