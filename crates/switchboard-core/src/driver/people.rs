//! The turns of people: asking them, and taking their answers.

use std::sync::Arc;

use super::hooks::HookCall;
use super::{Driver, configuration_error};
use crate::error::Error;
use crate::guardrail::{GuardrailKind, InputMode};
use crate::handoff::{Handoff, Returning, target};
use crate::items::RunItemKind;
use crate::offered_tools::Offer;
use crate::run::Step;
use crate::run::guardrail_results::InputChecks;
use crate::run::people::{PersonHandoff, PersonTurn};
use crate::run::turn::HandoffProgress;
use crate::stream::EventKind;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Begins to wait for the person that has the conversation.
    pub(super) async fn ask_person(&mut self) -> Result<(), Error> {
        if self.config.server_history.is_some() {
            return Err(configuration_error(
                "the provider keeps the conversation and would not get what a person says; use a \
                 session, or hand off to no person",
            ));
        }
        self.end_turn_span();
        self.open_agent_span();
        self.check_input_before_model().await?;
        self.check_input_beside_person().await?;
        if !self.run.added_input().is_empty() {
            self.admit_added_input().await?;
        }
        self.offer = None;
        if !self.run.position.agent_started {
            self.call_hooks(HookCall::AgentStart).await?;
            self.run_mut().position.agent_started = true;
        }
        let offer = self.offer().await?;
        self.check_offer(&offer)?;
        let turn = self.person_turn(&offer);
        self.run_mut().wait_for_person(turn);
        Ok(())
    }

    /// Asks the guardrails that would run beside a model: a person sees what they have passed.
    async fn check_input_beside_person(&mut self) -> Result<(), Error> {
        if self.checks_input_beside_model() {
            let (results, failure) = self.ask_input_guardrails(InputMode::BesideModel).await;
            let passed = self.check_trip(GuardrailKind::Input, &results).await;
            self.run_mut().guardrails.input.add(results);
            if let Some(error) = failure {
                return Err(error);
            }
            passed?;
            self.run_mut().guardrails.input.settle();
        }
        self.run_mut().guardrails.input_checks = InputChecks::Passed;
        Ok(())
    }

    /// The handoffs that the person can make now.
    fn person_turn(&self, offer: &Offer) -> PersonTurn {
        let in_place = self.agent_in_place();
        let agent = in_place.as_ref().unwrap_or(&self.agent);
        let previous = self.previous().map(|(previous, _)| previous);
        let mut hand_back: Option<(u8, Arc<str>)> = None;
        let handoffs = offer.handoffs.iter().map(|spec| {
            let handoff = offer.handoff(agent, &spec.tool_name);
            let is_last = |handoff: &Handoff<C>| {
                let to = target(agent, handoff);
                let to = to.zip(previous.as_ref());
                to.is_some_and(|(to, previous)| to.ptr_eq(previous))
            };
            // The way back of the handoff that led here is the last of them.
            let rank = match handoff {
                Some(handoff) if handoff.returning() == Some(Returning::Previous) => 2,
                Some(handoff) if is_last(handoff) => 1,
                _ => 0,
            };
            if rank > 0 && hand_back.as_ref().is_none_or(|(best, _)| rank >= *best) {
                hand_back = Some((rank, spec.tool_name.clone()));
            }
            PersonHandoff {
                tool: spec.tool_name.clone(),
                to: spec.to.clone(),
            }
        });
        PersonTurn {
            handoffs: handoffs.collect(),
            hand_back: hand_back.map(|(_, tool)| tool),
            answer: None,
        }
    }

    /// Takes the person's answer: ends the run with the reply, or hands the conversation over.
    pub(super) async fn take_answer(&mut self) -> Result<(), Error> {
        self.open_agent_span();
        if self.run.has_unchecked_input() {
            self.check_added_input().await?;
        }
        self.turn = self.run.turns() + 1;
        self.begin_turn_span();
        self.emit(|| EventKind::TurnStarted {}).await;
        self.run_mut().take_answer();
        let items = self.run.turn().map(|turn| turn.items.clone());
        let items = items.unwrap_or_default();
        let is_message = |kind: &RunItemKind| *kind == RunItemKind::MessageOutput;
        for made in items.iter().filter(|made| is_message(made.kind())) {
            let text = made.item().text().unwrap_or_default().into_owned();
            let item = "".into();
            self.emit(|| EventKind::TextDelta { item, text }).await;
        }
        match self.run.step() {
            Step::Conclude(_) => self.conclude().await,
            Step::TakeHandoff(_) => {
                self.report_items(&items).await;
                self.take_handoff().await
            }
            _ => Ok(()),
        }
    }

    /// Returns `true` if the run is at a person's answer that has had no side effect: if it fails, the
    /// person can give another one.
    pub(super) fn answer_is_open(&self) -> bool {
        let turn = self.run.turn().filter(|_| self.run.person_part().is_some());
        turn.is_some_and(|turn| {
            turn.progress == HandoffProgress::NotStarted && turn.handoff_approval.is_none()
        })
    }
}
