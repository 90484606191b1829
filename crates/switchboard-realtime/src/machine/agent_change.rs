//! Changes of the agent: by handoffs, and by the application.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_core::ErrorKind;

use super::io::{CallFailure, ResolvedAgent, ResolvedOffer, Task, Ticket};
use super::outputs::Output;
use super::{Commands, Pending, RealtimeMachine};
use crate::error::RealtimeError;
use crate::event::{RealtimeEvent, SessionProblem};
use crate::model::{
    RealtimeInterrupt, RealtimeModelCommand, RealtimeModelError, RealtimeServerError,
};
use crate::policy::{FirstWords, OldAudio, SeveralHandoffs, Switching};

/// The answer to a handoff of an agent that has the conversation no more.
pub(super) const OUTDATED_HANDOFF: &str =
    "The handoff is not possible any more: another agent has the conversation.";

/// A change of the agent.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct AgentChange {
    cause: Cause,
    agent: Arc<str>,
    /// The agent with its settings, once they are made.
    to: Option<Box<ResolvedAgent>>,
    /// The identifier of the new settings, once they are sent.
    update_id: Option<Arc<str>>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
enum Cause {
    User(Ticket),
    Handoff {
        call_id: Arc<str>,
        /// The output of the call.
        message: Arc<str>,
    },
}

impl AgentChange {
    pub(super) fn by_user(agent: Arc<str>, request: Ticket) -> Self {
        Self {
            cause: Cause::User(request),
            agent,
            to: None,
            update_id: None,
        }
    }

    pub(super) fn by_handoff(call_id: Arc<str>, to: ResolvedAgent, message: Arc<str>) -> Self {
        Self {
            cause: Cause::Handoff { call_id, message },
            agent: to.agent.clone(),
            to: Some(Box::new(to)),
            update_id: None,
        }
    }

    pub(super) fn request(&self) -> Option<Ticket> {
        match self.cause {
            Cause::User(request) => Some(request),
            Cause::Handoff { .. } => None,
        }
    }
}

impl RealtimeMachine {
    /// Begins a change, or lets it wait for the one in progress.
    pub(super) fn begin_change(&mut self, out: &mut Commands, change: AgentChange) {
        if self.change.is_some() {
            return self.waiting_changes.push_back(change);
        }
        if let Cause::Handoff { call_id, .. } = &change.cause
            && self.is_outdated(call_id)
        {
            self.refuse_handoff(out, call_id, OUTDATED_HANDOFF.into());
            return self.begin_next_change(out);
        }
        let (agent, is_resolved) = (change.agent.clone(), change.to.is_some());
        self.change = Some(change);
        if is_resolved {
            self.send_change(out);
        } else {
            self.begin(out, Pending::Change, Task::ResolveAgent(agent));
        }
    }

    /// Takes the settings of an agent that the application has set.
    pub(super) fn on_agent_resolved(
        &mut self,
        out: &mut Commands,
        resolved: Result<Box<ResolvedAgent>, RealtimeError>,
    ) {
        match resolved {
            Ok(agent) => {
                if let Some(change) = &mut self.change {
                    change.to = Some(agent);
                }
                self.send_change(out);
            }
            Err(error) => {
                let request = self.change.take().and_then(|change| change.request());
                if let Some(request) = request {
                    self.reply(out, request, Err(error));
                }
                self.begin_next_change(out);
            }
        }
    }

    /// Sends the settings of the new agent.
    fn send_change(&mut self, out: &mut Commands) {
        let update_id: Arc<str> = format!("agent_{}", self.next_ticket).into();
        let Some(change) = &mut self.change else {
            return;
        };
        let Some(to) = change.to.clone() else {
            return;
        };
        change.update_id = Some(update_id.clone());
        let is_handoff = matches!(change.cause, Cause::Handoff { .. });
        let is_at_once = self.policy().switching == Switching::AtOnce;
        if is_handoff && self.policy().old_audio == OldAudio::Cancel {
            self.cancel_response(out);
        }
        if is_at_once {
            self.current = ResolvedAgent::clone(&to);
        }
        let command = RealtimeModelCommand::UpdateSession {
            settings: Box::new(to.settings),
            update_id: (!is_at_once).then(|| update_id.clone()),
        };
        self.send(out, Pending::ChangeSent(update_id), command);
    }

    /// Cancels the old agent's response, and drops what is left of its audio.
    fn cancel_response(&mut self, out: &mut Commands) {
        let Some(id) = self.response.as_ref().and_then(|active| active.id.clone()) else {
            return;
        };
        self.interrupted.insert(id.clone());
        let command = RealtimeModelCommand::Interrupt(RealtimeInterrupt {
            force_response_cancel: true,
            response_id: Some(id),
            ..RealtimeInterrupt::default()
        });
        self.send(out, Pending::Nobody, command);
    }

    fn is_of_change(&self, update_id: &str) -> bool {
        let change = self.change.as_ref();
        let known = change.and_then(|change| change.update_id.as_deref());
        known == Some(update_id)
    }

    /// Takes the outcome of sending the settings.
    pub(super) fn on_change_sent(
        &mut self,
        out: &mut Commands,
        update_id: &Arc<str>,
        error: Option<RealtimeModelError>,
    ) {
        if !self.is_of_change(update_id) {
            return;
        }
        match (error, self.policy().switching) {
            (Some(error), _) => self.end_change(out, error.into()),
            (None, Switching::AtOnce) => self.finish_change(out),
            (None, Switching::WhenTaken { within }) => {
                let purpose = Pending::ChangeTimer(update_id.clone());
                self.begin(out, purpose, Task::Timer(within));
            }
        }
    }

    /// Takes the server's word that it has taken new settings.
    pub(super) fn on_settings_taken(&mut self, out: &mut Commands, update_id: Option<&Arc<str>>) {
        if let Some(update_id) = update_id {
            self.rollbacks.remove(update_id);
        }
        let is_awaited = self.policy().switching != Switching::AtOnce;
        // An update that is not named is another one, such as that of the trace.
        if is_awaited && update_id.is_some_and(|update_id| self.is_of_change(update_id)) {
            self.finish_change(out);
        }
    }

    /// Takes the server's word that it has refused new settings.
    pub(super) fn on_settings_refused(
        &mut self,
        out: &mut Commands,
        update_id: Option<&Arc<str>>,
        error: &RealtimeServerError,
    ) {
        let Some(update_id) = update_id else {
            return;
        };
        if self.rollbacks.remove(update_id) {
            return self.lose_track(out);
        }
        if self.is_of_change(update_id) {
            let message = match error {
                RealtimeServerError::Reported(error) => error.message.clone(),
                RealtimeServerError::Unreadable(error) => error.to_string(),
            };
            let message = format!("the server refused the settings of the new agent: {message}");
            self.end_change(out, RealtimeError::new(ErrorKind::Model, message));
        }
    }

    /// Gives up on a server that has not taken the settings in time. It may yet do so, and therefore gets
    /// those of the old agent again.
    pub(super) fn on_change_overdue(&mut self, out: &mut Commands, update_id: &str) {
        if !self.is_of_change(update_id) {
            return;
        }
        let rollback: Arc<str> = format!("agent_{}", self.next_ticket).into();
        self.rollbacks.insert(rollback.clone());
        let command = RealtimeModelCommand::UpdateSession {
            settings: Box::new(self.current.settings.clone()),
            update_id: Some(rollback.clone()),
        };
        self.send(out, Pending::Rollback(rollback), command);
        let message = "the server did not take the settings of the new agent in time";
        self.end_change(out, RealtimeError::new(ErrorKind::Model, message));
    }

    /// Ends the session: the server may have another agent than this side, and cannot be told.
    pub(super) fn lose_track(&mut self, out: &mut Commands) {
        let message = "the server did not take the settings of the old agent back";
        self.fail(out, RealtimeError::new(ErrorKind::Model, message));
    }

    /// Ends a change that was not made.
    fn end_change(&mut self, out: &mut Commands, error: RealtimeError) {
        let Some(change) = self.change.take() else {
            return;
        };
        match change.cause {
            Cause::User(request) => self.reply(out, request, Err(error)),
            Cause::Handoff { call_id, .. } => {
                let text = format!(
                    "The handoff to {} could not be made because of an error. Try again, or go on \
                     without it.",
                    change.agent
                );
                let text = Some(text);
                self.fail_call(out, &call_id, CallFailure { error, text });
            }
        }
        self.begin_next_change(out);
        self.refresh_after_change(out);
    }

    /// Makes the change: from now on the new agent has the conversation, here and at the server.
    fn finish_change(&mut self, out: &mut Commands) {
        let Some(change) = self.change.take() else {
            return;
        };
        let Some(to) = change.to else {
            return;
        };
        match change.cause {
            Cause::User(request) => {
                self.current = *to;
                self.reply(out, request, Ok(()));
            }
            Cause::Handoff { call_id, message } => {
                let from = self.current.agent.clone();
                self.current = *to;
                self.failures = 0;
                self.handed_off_in = self.calls.get(&call_id).map(|call| call.response.clone());
                let to = self.current.agent.clone();
                self.emit(out, RealtimeEvent::Handoff { from, to });
                let output = self.transfer_output(message);
                self.answer(out, &call_id, output);
            }
        }
        // The context may have changed since the conditions of the new agent were evaluated.
        self.refresh_again = true;
        self.begin_next_change(out);
        self.refresh_after_change(out);
    }

    /// The output of a handoff that is made, with the response that the policy asks for.
    fn transfer_output(&self, message: Arc<str>) -> Output {
        let first_words = match &self.policy().first_words {
            FirstWords::Instruct(words) => {
                let own = self.current.settings.instructions.as_deref();
                let own = own.filter(|own| !own.is_empty());
                Some(match own {
                    Some(own) => format!("{own}\n\n{words}").into(),
                    None => words.clone(),
                })
            }
            _ => None,
        };
        Output {
            text: message,
            start_response: self.policy().first_words == FirstWords::Continue,
            first_words,
            ..Output::default()
        }
    }

    /// Makes a handoff before the model is told.
    pub(super) fn hand_over_at_once(
        &mut self,
        out: &mut Commands,
        call_id: &Arc<str>,
        to: ResolvedAgent,
        message: Arc<str>,
    ) {
        let Some(from) = self.calls.get(call_id).map(|call| call.agent.clone()) else {
            return;
        };
        if self.policy().old_audio == OldAudio::Cancel {
            self.cancel_response(out);
        }
        let settings = to.settings.clone();
        self.current = to;
        self.handed_off_in = self.calls.get(call_id).map(|call| call.response.clone());
        let to = self.current.agent.clone();
        self.emit(out, RealtimeEvent::Handoff { from, to });
        let output = Output {
            update: Some(Box::new(settings)),
            ..self.transfer_output(message)
        };
        self.answer(out, call_id, output);
    }

    fn begin_next_change(&mut self, out: &mut Commands) {
        if self.change.is_none()
            && !self.is_closed()
            && let Some(next) = self.waiting_changes.pop_front()
        {
            self.begin_change(out, next);
        }
    }

    /// Resolves the tools and handoffs of the agent again, if any has a condition; after a change of the agent,
    /// if one is in progress.
    pub(super) fn refresh(&mut self, out: &mut Commands) {
        if !self.policy().refresh_conditions {
            return;
        }
        if self.is_refreshing || self.change.is_some() {
            self.refresh_again = true;
            return;
        }
        if !self.current.offer.is_conditional {
            return;
        }
        self.is_refreshing = true;
        let agent = self.current.agent.clone();
        self.begin(
            out,
            Pending::Refresh(agent.clone()),
            Task::ResolveOffer(agent),
        );
    }

    /// Takes the tools and handoffs that were resolved again, and tells the model if they have changed.
    pub(super) fn on_refreshed(
        &mut self,
        out: &mut Commands,
        agent: &Arc<str>,
        offer: Result<Box<ResolvedOffer>, RealtimeError>,
    ) {
        self.is_refreshing = false;
        match offer {
            Err(error) => self.report(out, SessionProblem::Failed(error)),
            // It cannot be told now, or not to this agent.
            Ok(_) if self.change.is_some() || *agent != self.current.agent => {
                self.refresh_again = true;
            }
            Ok(resolved) if resolved.offer == self.current.offer => {}
            Ok(resolved) => {
                self.current.offer = resolved.offer;
                self.current.settings.tools = resolved.settings.tools;
                self.current.settings.handoffs = resolved.settings.handoffs;
                let command = RealtimeModelCommand::UpdateSession {
                    settings: Box::new(self.current.settings.clone()),
                    update_id: Some(format!("offer_{}", self.next_ticket).into()),
                };
                self.send(out, Pending::Nobody, command);
            }
        }
        self.refresh_after_change(out);
    }

    /// Resolves the tools and handoffs again, if that was asked for while it was not possible.
    fn refresh_after_change(&mut self, out: &mut Commands) {
        if !self.is_closed() && self.change.is_none() && std::mem::take(&mut self.refresh_again) {
            self.refresh(out);
        }
    }

    /// Returns `true` if the agent that called a handoff has the conversation no more, and only one handoff is
    /// taken.
    pub(super) fn is_outdated(&self, call_id: &str) -> bool {
        let call = self.calls.get(call_id);
        self.policy().several_handoffs == SeveralHandoffs::First
            && call.is_some_and(|call| call.agent != self.current.agent)
    }
}
