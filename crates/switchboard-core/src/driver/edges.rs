//! Asking the conditions that hand off without the model.

use super::{Driver, configuration_error};
use crate::callback::call;
use crate::error::Error;
use crate::guardrail::InputMode;
use crate::handoff::{EdgeDecision, Handoff};
use crate::run::edges::FoundEdge;
use crate::run::{HandoffTrigger, Step};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Returns `true` if conditions can take handoffs of the current agent without the model.
    pub(super) fn has_edges(&self) -> bool {
        let mut handoffs = self.agent.handoffs().iter();
        handoffs.any(Handoff::has_edge_conditions)
    }

    /// Asks the model or ends the run, unless a condition of a handoff holds: then the handoff is the next
    /// step.
    pub(super) async fn step_with_edges(&mut self) -> Result<(), Error> {
        if let Some(found) = self.find_edge().await? {
            self.run_mut().begin_edge(found);
            return Ok(());
        }
        match self.run.step() {
            Step::CallModel if self.has_budgets() => self.call_model_within_budgets().await,
            Step::CallModel => self.call_model().await,
            _ => self.conclude().await,
        }
    }

    /// The first handoff whose condition holds: after the last turn, or before the next.
    async fn find_edge(&mut self) -> Result<Option<FoundEdge>, Error> {
        let is_answered = matches!(self.run.step(), Step::Conclude(_));
        let next_turn = self.run.next_turn(self.config.max_turns);
        let may_go_on = if is_answered {
            self.run.answer_may_go_on()
        } else {
            // The limits decide first, and report it themselves.
            next_turn.is_ok() && !self.has_used_up_budget()
        };
        if !may_go_on {
            return Ok(None);
        }
        self.open_agent_span();
        if self.run.agent_has_taken_turn() {
            let found = self.edge_that_holds(HandoffTrigger::AfterTurn).await?;
            if found.is_some() {
                // An answer that must go on is not the output, and nothing was done yet.
                next_turn?;
                return Ok(found);
            }
        }
        let trigger = HandoffTrigger::BeforeTurn;
        let mut handoffs = self.agent.handoffs().iter();
        if is_answered || !handoffs.any(|edge| edge.edge_condition(trigger).is_some()) {
            return Ok(None);
        }
        self.check_input_before_model().await?;
        let found = self.edge_that_holds(trigger).await?;
        if found.is_some() && self.checks_input_beside_model() {
            self.check_input_without_model().await?;
        }
        Ok(found)
    }

    /// The first handoff of the agent whose condition holds at this moment.
    async fn edge_that_holds(&self, trigger: HandoffTrigger) -> Result<Option<FoundEdge>, Error> {
        if self.run.edge_was_refused(trigger) {
            return Ok(None);
        }
        for (at, handoff) in self.agent.handoffs().iter().enumerate() {
            let Some(condition) = handoff.edge_condition(trigger) else {
                continue;
            };
            let ctx = self.ctx();
            let asked = async {
                if !handoff.enabled().check(&ctx, &self.agent).await? {
                    return Ok(EdgeDecision::Stay);
                }
                call(|| condition(ctx.clone(), self.agent.clone())).await
            };
            let what = "the condition of a handoff";
            let asked = self.run_code(self.parent_span(), what, asked);
            let step = self.step_name(format_args!("{what} to {}", handoff.agent_name()));
            let asked = condition!(self, Condition, &*step, asked);
            let names = || self.config.tool_names.names_of(self.agent.handoffs());
            match asked.map_err(|error| error.at_handoff(&names()[at]))? {
                EdgeDecision::Stay => {}
                EdgeDecision::HandOff { payload } => {
                    return Ok(Some(FoundEdge {
                        trigger,
                        at,
                        tool: names()[at].clone(),
                        to: handoff.spec().to.clone(),
                        payload,
                    }));
                }
            }
        }
        Ok(None)
    }

    /// The handoff that a condition takes, once the run is at it.
    pub(super) fn edge_handoff(&self, at: usize, tool: &str) -> Result<Handoff<C>, Error> {
        let names = self.config.tool_names.names_of(self.agent.handoffs());
        let is_same = names.get(at).is_some_and(|name| **name == *tool);
        let handoff = self.agent.handoffs().get(at).filter(|_| is_same);
        handoff.cloned().ok_or_else(|| {
            configuration_error(
                "a condition has asked for this handoff, and the agent the run was resumed with does \
                 not have it in the same place",
            )
        })
    }

    /// Asks the input guardrails that would run beside the model which is not called.
    async fn check_input_without_model(&mut self) -> Result<(), Error> {
        let (results, failure) = self.ask_input_guardrails(InputMode::BesideModel).await;
        self.take_input_checks(results, failure).await
    }

    /// Returns `true` if a budget is used up, or it cannot be known.
    fn has_used_up_budget(&mut self) -> bool {
        if !self.has_budgets() {
            return false;
        }
        self.count_added_usage();
        let holder = self.run.holder();
        let mut ledgers = self.ledgers().into_iter();
        ledgers.any(|ledger| !matches!(ledger.used_up(&holder), Ok(None)))
    }
}
