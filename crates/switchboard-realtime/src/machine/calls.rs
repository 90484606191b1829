//! Calls of tools and handoffs, from their arrival to their output.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agent_change::AgentChange;
use super::io::{
    CallFailure, CallRef, HandoffAnswer, HandoffRedirect, Prepared, Task, TaskOutcome, Ticket,
    ToolAnswer,
};
use super::outputs::{AfterSent, Output};
use super::{Commands, Pending, RealtimeMachine, model_behavior};
use crate::error::RealtimeError;
use crate::event::{RealtimeEvent, SessionProblem, ToolCallEvent};
use crate::model::RealtimeToolCall;
use crate::policy::{Failures, SeveralHandoffs, Switching};

/// The answer to a handoff beside another.
const IGNORED_HANDOFF: &str = "Multiple handoffs detected, ignoring this one.";

/// A call that is not answered yet.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Call {
    pub(super) call: RealtimeToolCall,
    /// The agent that had the conversation when the call arrived.
    pub(super) agent: Arc<str>,
    pub(super) role: Option<Role>,
    /// The response that the call is part of.
    pub(super) response: Arc<str>,
    pub(super) origin: Origin,
    pub(super) stage: Stage,
    pub(super) is_approved: bool,
    /// The handoff that a callback has led the call to.
    pub(super) redirect: Option<HandoffRedirect>,
    /// Set once guardrails have allowed the call.
    pub(super) is_checked: bool,
}

/// The role of a name that the model calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Role {
    Tool,
    Handoff,
}

/// The place that a failure of a call is reported to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Origin {
    /// The reading of the model's events, which waits for the call.
    Reader,
    Background,
    /// The request of the application that approved or rejected it.
    Request(Ticket),
}

/// The progress of a call.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Stage {
    /// Waits for the call before it.
    Queued,
    Preparing,
    /// Waits for a person.
    Waiting,
    Running,
    /// The answer to a rejected call is being made.
    Rejecting,
    HandingOff,
    /// Waits until the server has taken the new settings.
    Switching,
    Sending(Box<Output>),
    /// The output could not be sent, and is kept.
    Unsent(Box<Output>),
}

/// A call that was answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct CallRecord {
    name: Arc<str>,
    arguments: Arc<str>,
    role: Option<Role>,
}

impl Call {
    pub(super) fn is_waiting(&self) -> bool {
        matches!(self.stage, Stage::Waiting)
    }

    pub(super) fn stops_reading(&self) -> bool {
        self.origin == Origin::Reader && self.is_active()
    }

    pub(super) fn request(&self) -> Option<Ticket> {
        match self.origin {
            Origin::Request(request) => Some(request),
            _ => None,
        }
    }

    /// Returns `true` if something is being done for the call.
    fn is_active(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Queued | Stage::Waiting | Stage::Unsent(_)
        )
    }

    /// Returns `true` if the output is yet to be made, and no person has to decide first.
    pub(super) fn is_unfinished(&self) -> bool {
        !matches!(
            self.stage,
            Stage::Waiting | Stage::Unsent(_) | Stage::Sending(_)
        )
    }

    fn is_handoff_in_progress(&self) -> bool {
        self.role == Some(Role::Handoff) && !matches!(self.stage, Stage::Waiting | Stage::Queued)
    }

    pub(super) fn to_ref(&self) -> CallRef {
        CallRef {
            agent: self.agent.clone(),
            call: self.call.clone(),
        }
    }

    pub(super) fn to_event(&self) -> ToolCallEvent {
        let redirect = self.redirect.as_ref();
        let arguments = redirect.map_or(&self.call.arguments, |redirect| &redirect.arguments);
        ToolCallEvent {
            agent: self.agent.clone(),
            tool: self.tool().clone(),
            call_id: self.call.call_id.clone(),
            arguments: arguments.clone(),
        }
    }

    /// The name that the model has called, or that of the handoff that a callback has led it to.
    pub(super) fn tool(&self) -> &Arc<str> {
        let redirect = self.redirect.as_ref();
        redirect.map_or(&self.call.name, |redirect| &redirect.tool)
    }

    pub(super) fn to_record(&self) -> CallRecord {
        CallRecord {
            name: self.call.name.clone(),
            arguments: self.call.arguments.clone(),
            role: self.role,
        }
    }

    pub(super) const fn is_handoff(&self) -> bool {
        matches!(self.role, Some(Role::Handoff))
    }
}

impl CallRecord {
    fn is_of(&self, call: &RealtimeToolCall, role: Option<Role>) -> bool {
        self.name == call.name
            && self.arguments == call.arguments
            && (role.is_none() || role == self.role)
    }
}

impl RealtimeMachine {
    /// Takes a call of the model.
    pub(super) fn on_call(&mut self, out: &mut Commands, call: RealtimeToolCall) {
        let is_ordered = !self.settings.async_tool_calls;
        let origin = if is_ordered && self.policy().wait_for_tools {
            Origin::Reader
        } else {
            Origin::Background
        };
        if call.call_id.is_empty() {
            let error = model_behavior("the model made a call without an identifier");
            return self.reject_call(out, origin, error);
        }
        let role = self.role_of(&call.name);
        let known = self.calls.get(&call.call_id).map(Call::to_record);
        let known = known.or_else(|| self.answered.get(&call.call_id).cloned());
        if let Some(known) = known {
            if known.is_of(&call, role) {
                return self.send_again(out, &call.call_id, origin);
            }
            let message = format!(
                "the model used the identifier \"{}\" for a second, different call",
                call.call_id
            );
            return self.reject_call(out, origin, model_behavior(message));
        }
        let call_id = call.call_id.clone();
        let response = self.response_of(&call);
        let is_second = role == Some(Role::Handoff)
            && self.policy().several_handoffs == SeveralHandoffs::First
            && (self.calls.values().any(Call::is_handoff_in_progress)
                || self.handed_off_in.as_ref() == Some(&response));
        let is_busy = is_ordered && self.calls.values().any(Call::is_active);
        self.calls.insert(
            call_id.clone(),
            Call {
                call,
                agent: self.current.agent.clone(),
                role,
                response,
                origin,
                stage: Stage::Queued,
                is_approved: false,
                redirect: None,
                is_checked: false,
            },
        );
        if is_second {
            return self.answer(out, &call_id, Output::quiet(IGNORED_HANDOFF));
        }
        if is_busy {
            return self.queue.push_back(call_id);
        }
        self.prepare(out, &call_id);
    }

    /// Reports a call that cannot be answered.
    fn reject_call(&mut self, out: &mut Commands, origin: Origin, error: RealtimeError) {
        if self.policy().strict_calls {
            return self.report(out, SessionProblem::Failed(error));
        }
        self.end_call_with(out, origin, error);
    }

    /// The name of the response that a call is part of.
    fn response_of(&self, call: &RealtimeToolCall) -> Arc<str> {
        let active = self.response.as_ref();
        let id = call
            .response_id
            .clone()
            .or_else(|| active.and_then(|active| active.id.clone()));
        id.unwrap_or_else(|| format!("#{}", self.responses).into())
    }

    fn role_of(&self, name: &str) -> Option<Role> {
        let offer = &self.current.offer;
        if offer.handoffs.iter().any(|known| **known == *name) {
            Some(Role::Handoff)
        } else if offer.tools.iter().any(|known| **known == *name) {
            Some(Role::Tool)
        } else {
            None
        }
    }

    pub(super) fn call_mut(&mut self, call_id: &str) -> Option<&mut Call> {
        self.calls.get_mut(call_id)
    }

    fn set_stage(&mut self, call_id: &str, stage: Stage) {
        if let Some(call) = self.call_mut(call_id) {
            call.stage = stage;
        }
    }

    /// Begins a task for a call.
    pub(super) fn begin_for(
        &mut self,
        out: &mut Commands,
        call_id: &Arc<str>,
        stage: Stage,
        work: Task,
    ) {
        self.set_stage(call_id, stage);
        self.begin(out, Pending::Call(call_id.clone()), work);
    }

    fn prepare(&mut self, out: &mut Commands, call_id: &Arc<str>) {
        let Some(call) = self.calls.get(call_id) else {
            return;
        };
        let Some(role) = call.role else {
            return self.answer_unknown(out, call_id);
        };
        let decision = self.standing_decision(call).cloned();
        if let Some(decision) = decision.as_ref().filter(|known| !known.is_approved()) {
            let work = Task::RejectionText(call.to_ref(), decision.clone());
            return self.begin_for(out, call_id, Stage::Rejecting, work);
        }
        let is_approved = decision.is_some();
        let work = Task::Prepare {
            call: call.to_ref(),
            is_handoff: role == Role::Handoff,
            decision,
            guardrails_first: self.policy().guardrails_before_approval
                || self.settings.guardrails_before_approval,
        };
        if let Some(call) = self.call_mut(call_id) {
            call.is_approved = is_approved;
        }
        self.begin_for(out, call_id, Stage::Preparing, work);
    }

    fn answer_unknown(&mut self, out: &mut Commands, call_id: &Arc<str>) {
        let Some(call) = self.calls.get(call_id) else {
            return;
        };
        let message = format!("Tool {} not found", call.call.name);
        let start_response = self.policy().respond_to_unknown_tools;
        let output = Output {
            text: message.as_str().into(),
            start_response,
            joins: start_response,
            after: AfterSent::Problem(message),
            ..Output::default()
        };
        self.answer(out, call_id, output);
    }

    /// Takes the outcome of a task for a call.
    pub(super) fn on_call_task(
        &mut self,
        out: &mut Commands,
        call_id: &Arc<str>,
        outcome: TaskOutcome,
    ) {
        let Some(call) = self.calls.get(call_id) else {
            return;
        };
        let is_handoff = call.is_handoff();
        match outcome {
            TaskOutcome::Prepared(Ok(Prepared::Unavailable)) => self.answer_unknown(out, call_id),
            TaskOutcome::Prepared(Ok(Prepared::Answered(answer))) => {
                self.answer_with(out, call_id, answer);
            }
            TaskOutcome::Prepared(Ok(Prepared::NeedsApproval)) => self.wait(out, call_id),
            TaskOutcome::Prepared(Ok(Prepared::Run)) if is_handoff => {
                self.hand_off(out, call_id, false);
            }
            TaskOutcome::Prepared(Ok(Prepared::Run)) => {
                let work = Task::RunTool(call.to_ref());
                self.emit(out, RealtimeEvent::ToolStart(call.to_event()));
                self.begin_for(out, call_id, Stage::Running, work);
            }
            TaskOutcome::ToolRan(Ok(answer)) => {
                self.failures = 0;
                self.answer_with(out, call_id, answer);
            }
            TaskOutcome::Text(text) => {
                let text: Arc<str> = text.into();
                if is_handoff {
                    return self.refuse_handoff(out, call_id, text);
                }
                let output = text.as_ref().into();
                self.answer_with(out, call_id, ToolAnswer { text, output });
            }
            TaskOutcome::Handoff(Ok(answer)) => self.on_handoff_answer(out, call_id, answer),
            TaskOutcome::Prepared(Err(failure))
            | TaskOutcome::ToolRan(Err(failure))
            | TaskOutcome::Handoff(Err(failure)) => self.fail_call(out, call_id, failure),
            _ => {}
        }
    }

    fn wait(&mut self, out: &mut Commands, call_id: &Arc<str>) {
        let is_checked = self.policy().guardrails_before_approval;
        let Some(call) = self.call_mut(call_id) else {
            return;
        };
        call.stage = Stage::Waiting;
        call.is_checked = is_checked;
        let (event, response) = (call.to_event(), call.response.clone());
        self.emit(out, RealtimeEvent::ApprovalRequired(event));
        self.settle_response(out, &response);
        self.run_next(out);
    }

    pub(super) fn hand_off(&mut self, out: &mut Commands, call_id: &Arc<str>, recheck: bool) {
        let Some(call) = self.calls.get(call_id) else {
            return;
        };
        let work = Task::HandOff {
            call: call.to_ref(),
            redirect: call.redirect.clone(),
            is_approved: call.is_approved,
            recheck,
        };
        self.begin_for(out, call_id, Stage::HandingOff, work);
    }

    fn on_handoff_answer(&mut self, out: &mut Commands, call_id: &Arc<str>, answer: HandoffAnswer) {
        match answer {
            HandoffAnswer::Refused(reason) => self.refuse_handoff(out, call_id, reason.into()),
            HandoffAnswer::AskApproval => self.wait(out, call_id),
            HandoffAnswer::Redirected {
                redirect,
                needs_approval,
            } => self.redirect(out, call_id, redirect, needs_approval),
            HandoffAnswer::Taken { to, message } => match self.policy().switching {
                Switching::AtOnce => self.hand_over_at_once(out, call_id, *to, message),
                Switching::WhenTaken { .. } => {
                    self.set_stage(call_id, Stage::Switching);
                    let change = AgentChange::by_handoff(call_id.clone(), *to, message);
                    self.begin_change(out, change);
                }
            },
        }
    }

    /// Goes on with the handoff that a callback has led the call to. What a person has decided on the first one
    /// does not hold for it.
    fn redirect(
        &mut self,
        out: &mut Commands,
        call_id: &Arc<str>,
        redirect: HandoffRedirect,
        needs_approval: bool,
    ) {
        let Some(call) = self.call_mut(call_id) else {
            return;
        };
        call.redirect = Some(redirect);
        let call = call.clone();
        let decision = self.standing_decision(&call).cloned();
        if let Some(decision) = decision.as_ref().filter(|known| !known.is_approved()) {
            let work = Task::RejectionText(call.to_ref(), decision.clone());
            return self.begin_for(out, call_id, Stage::Rejecting, work);
        }
        let is_approved = needs_approval && decision.is_some();
        if let Some(call) = self.call_mut(call_id) {
            call.is_approved = is_approved;
        }
        if needs_approval && !is_approved {
            return self.wait(out, call_id);
        }
        self.hand_off(out, call_id, false);
    }

    /// Answers the call of a handoff that is not made.
    pub(super) fn refuse_handoff(
        &mut self,
        out: &mut Commands,
        call_id: &Arc<str>,
        reason: Arc<str>,
    ) {
        if self.policy().report_all
            && let Some(call) = self.calls.get(call_id)
        {
            let event = RealtimeEvent::HandoffFailed {
                agent: call.agent.clone(),
                tool: call.call.name.clone(),
                call_id: call_id.clone(),
                reason: reason.clone(),
            };
            self.emit(out, event);
        }
        self.answer(out, call_id, Output::new(reason));
    }

    fn answer_with(&mut self, out: &mut Commands, call_id: &Arc<str>, answer: ToolAnswer) {
        let output = Output {
            after: AfterSent::ToolEnd(answer.output),
            ..Output::new(answer.text)
        };
        self.answer(out, call_id, output);
    }

    /// Tells the model of a failure, within the budget, or ends the session.
    pub(super) fn fail_call(
        &mut self,
        out: &mut Commands,
        call_id: &Arc<str>,
        failure: CallFailure,
    ) {
        let Some(call) = self.calls.get(call_id) else {
            return;
        };
        let may_tell = match self.policy().failures {
            Failures::End => false,
            Failures::Tell { in_a_row } => self.failures < in_a_row,
        };
        let text = failure.text.filter(|_| may_tell);
        let Some(text) = text else {
            let origin = call.origin;
            self.finish_call(call_id);
            return self.end_call_with(out, origin, failure.error);
        };
        self.failures += 1;
        let is_handoff = call.is_handoff();
        let has_started = matches!(call.stage, Stage::Running);
        self.report(out, SessionProblem::Failed(failure.error));
        let text: Arc<str> = text.into();
        if is_handoff {
            return self.refuse_handoff(out, call_id, text);
        }
        let after = if has_started {
            AfterSent::ToolEnd(text.as_ref().into())
        } else {
            AfterSent::Nothing
        };
        let output = Output {
            after,
            ..Output::new(text)
        };
        self.answer(out, call_id, output);
    }

    /// Reports an error of a call to where it is expected.
    pub(super) fn end_call_with(
        &mut self,
        out: &mut Commands,
        origin: Origin,
        error: RealtimeError,
    ) {
        match origin {
            Origin::Request(request) => {
                self.reply(out, request, Err(error));
                self.run_next(out);
            }
            Origin::Background => {
                let message = "Tool call task failed".to_owned();
                self.report(out, SessionProblem::Session(message));
                self.fail(out, error);
            }
            Origin::Reader => self.fail(out, error),
        }
    }

    /// Notes that nothing more is done for a call.
    pub(super) fn finish_call(&mut self, call_id: &Arc<str>) {
        if let Some(call) = self.calls.remove(call_id) {
            self.answered.insert(call_id.clone(), call.to_record());
        }
    }

    /// Begins the next call, if calls run one at a time.
    pub(super) fn run_next(&mut self, out: &mut Commands) {
        if self.calls.values().any(Call::is_active) && !self.settings.async_tool_calls {
            return;
        }
        if let Some(next) = self.queue.pop_front() {
            self.prepare(out, &next);
        }
    }
}
