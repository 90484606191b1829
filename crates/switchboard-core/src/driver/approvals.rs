//! Asking whether calls need approval, and resuming runs that waited for one.

use std::sync::Arc;

use serde_json::Value;

use super::Driver;
use super::tool_calls::ToolAttempt;
use crate::agent::{Agent, ToolResult, ToolUseBehaviorKind};
use crate::approval::{Decision, InterruptionKind};
use crate::error::{Error, ErrorKind};
use crate::guardrail::{GuardrailKind, InputMode};
use crate::handoff::Handoff;
use crate::items::{Input, Item, ItemKind, RunItem};
use crate::run::approvals::{Approval, CallApproval, HostedRequest, tool_kind};
use crate::run::tool_results::{RanTool, ToolEnds};
use crate::run::turn::{HandoffCall, ToolCall};
use crate::run::{Step, resumption};
use crate::runner::{ApprovalGuardrails, ResumeChecks};
use crate::schema::fingerprint;
use crate::tool::{NotApproved, Tool, ToolError};
use crate::trace::trace_handle::OpenSpan;

/// The outcome of asking whether a call may run.
pub(super) enum Clearance {
    Run,
    /// It waits for a decision.
    Wait,
    /// It is answered with this, instead of running.
    Answer(Box<RanTool>),
}

/// The outcome of asking whether a handoff may be taken.
pub(super) enum HandoffClearance {
    Take,
    /// It waits for a decision.
    Wait,
    /// It was rejected; the model gets this reason.
    Refuse(String),
}

impl<C: Send + Sync + 'static> Driver<C> {
    /// Asks whether a tool call may run. Where it needs approval, guardrails look at it before a person
    /// does.
    pub(super) async fn clear_call(
        &self,
        tool: &Tool<C>,
        call: &ToolCall,
        attempt: &mut ToolAttempt,
    ) -> Result<Clearance, Error> {
        if attempt.approval.is_none() && !tool.approval().is_never() {
            attempt.approval = Some(CallApproval {
                at: attempt.at,
                is_agent: tool.agent().is_some(),
                approval: self.call_approval(tool, call).await,
            });
        }
        let Some(CallApproval { approval, .. }) = &attempt.approval else {
            return Ok(Clearance::Run);
        };
        match &approval.decision {
            None if !approval.is_needed => Ok(Clearance::Run),
            Some(decision) if decision.is_approved() => Ok(Clearance::Run),
            Some(decision) => {
                let ran = self.rejection(call, attempt.at, decision).await;
                Ok(Clearance::Answer(Box::new(ran)))
            }
            None => self.check_waiting_call(tool, call, attempt).await,
        }
    }

    /// The answer of a call that a person has rejected, if one has.
    pub(super) async fn rejected_answer(
        &self,
        call: &ToolCall,
        attempt: &ToolAttempt,
    ) -> Option<RanTool> {
        let approval = &attempt.approval.as_ref()?.approval;
        let decision = approval.decision.as_ref()?;
        if decision.is_approved() || attempt.ran.is_some() {
            return None;
        }
        Some(self.rejection(call, attempt.at, decision).await)
    }

    /// The need of approval of a call, with the standing decision on it.
    async fn call_approval(&self, tool: &Tool<C>, call: &ToolCall) -> Approval {
        let arguments = call.call.arguments().unwrap_or_default();
        let text: Arc<str> = arguments.as_ref().into();
        let context = || self.tool_context(call, text, &OpenSpan::default(), None);
        let arguments = readable_arguments(&call.call);
        let needed = tool.approval().applies(context, arguments, &call.tool);
        let needed = self.trace.within(self.parent_span(), needed);
        let call_id = call.call.call_id().unwrap_or_default();
        let step = self.step_name(format_args!("{} {call_id}", call.tool));
        let is_needed = self.rule(&step, needed).await;
        let kind = tool_kind(tool.agent().is_some());
        let mut approval = self.approval(is_needed, &kind, &call.tool);
        if approval.is_waiting() {
            approval.schema = Some(tool.schema_fingerprint().into());
        }
        approval
    }

    /// Lets the guardrails look at a call before a person is asked.
    async fn check_waiting_call(
        &self,
        tool: &Tool<C>,
        call: &ToolCall,
        attempt: &mut ToolAttempt,
    ) -> Result<Clearance, Error> {
        let timing = self.config.handoff_policy.approval_guardrails;
        if timing == ApprovalGuardrails::AfterDecision || attempt.is_allowed {
            return Ok(Clearance::Wait);
        }
        let arguments: Arc<str> = call.call.arguments().unwrap_or_default().into();
        let arguments = tool.coerced(&arguments).map_or(arguments, Arc::from);
        let ctx = self.tool_context(call, arguments, &OpenSpan::default(), None);
        let replacement = self.check_call(tool, &ctx, &mut attempt.results).await?;
        attempt.final_results.append(&mut attempt.results);
        match replacement {
            Some(output) => {
                let result = ToolResult {
                    tool: call.tool.clone(),
                    output,
                    data: None,
                };
                attempt.approval = None;
                let ran = RanTool::rejected(attempt.at, result);
                Ok(Clearance::Answer(Box::new(ran)))
            }
            None => {
                attempt.is_allowed = timing == ApprovalGuardrails::BeforeDecision;
                Ok(Clearance::Wait)
            }
        }
    }

    /// The answer of a call that a person rejected.
    async fn rejection(&self, call: &ToolCall, at: usize, decision: &Decision) -> RanTool {
        let call_id = call.call.call_id().unwrap_or_default();
        let text = self.rejection_text(&call.tool, &call_id, decision).await;
        let result = ToolResult {
            tool: call.tool.clone(),
            output: text.into(),
            data: None,
        };
        RanTool {
            error: Some(ToolError::new(NotApproved)),
            ..RanTool::rejected(at, result)
        }
    }

    /// The text for the model about a rejected call: the reviewer's, the run's, or the default.
    pub(super) async fn rejection_text(
        &self,
        tool: &Arc<str>,
        call_id: &str,
        decision: &Decision,
    ) -> String {
        match decision.message_text() {
            Some(text) => text.as_ref().into(),
            None => {
                let error = ToolError::new(NotApproved);
                self.formatted(error, tool.clone(), call_id.into()).await
            }
        }
    }

    /// Asks whether the calls that the provider asks about need a person's decision: a standing decision
    /// or the condition of the tool may answer in place of one.
    pub(super) async fn ask_about_requests(&mut self, requests: &[HostedRequest]) {
        for (at, request) in requests.iter().enumerate() {
            if request.approval.decision.is_some() || request.approval.has_waited {
                continue;
            }
            let name = request.tool();
            let mut approval = self.approval(true, &request.kind(), &name);
            let server = request.server();
            let tool = self
                .agent
                .tools()
                .iter()
                .find(|tool| tool.is_of_server(&server));
            if let Some(tool) = tool.filter(|tool| !tool.approval().is_never())
                && approval.decision.is_none()
            {
                let call = ToolCall {
                    tool: name.clone(),
                    call: request.item.clone(),
                };
                let text: Arc<str> = request.item.arguments().unwrap_or_default().into();
                let context = || self.tool_context(&call, text, &OpenSpan::default(), None);
                let arguments = readable_arguments(&request.item);
                let needed = tool.approval().applies(context, arguments, &name);
                let needed = self.trace.within(self.parent_span(), needed);
                if !self.rule(&name, needed).await {
                    approval.decision = Some(Decision::approve());
                }
            }
            self.run_mut().request_asked(at, approval);
        }
    }

    /// Asks whether a handoff that may need approval may be taken.
    pub(super) async fn clear_handoff(
        &mut self,
        handoff: &Handoff<C>,
        target: &Agent<C>,
        call: &HandoffCall,
    ) -> HandoffClearance {
        let known = self
            .run
            .turn()
            .and_then(|turn| turn.handoff_approval.clone());
        let approval = match known {
            Some(known) => *known,
            None => {
                let context = || self.handoff_context(target, call);
                // The payload that the next agent would get.
                let arguments = match self.run.redirected_payload() {
                    Some(payload) => Some(payload.clone()),
                    None => readable_arguments(&call.call),
                };
                let needed = handoff.approval().applies(context, arguments, &call.tool);
                let needed = self.trace.within(self.parent_span(), needed);
                let is_needed = self.rule(&call.tool, needed).await;
                let to = self.run.handoff_target(call);
                let kind = InterruptionKind::Handoff { to };
                let approval = self.approval(is_needed, &kind, &call.tool);
                self.run_mut().handoff_needs_approval(approval.clone());
                approval
            }
        };
        match &approval.decision {
            None if approval.is_needed => {
                let schema = fingerprint(handoff.spec().input_json_schema.get());
                self.run_mut().handoff_waits_with(schema);
                HandoffClearance::Wait
            }
            Some(decision) if !decision.is_approved() => {
                let call_id = call.call.call_id().unwrap_or_default();
                let text = self.rejection_text(&call.tool, &call_id, decision).await;
                HandoffClearance::Refuse(text)
            }
            _ => HandoffClearance::Take,
        }
    }

    /// The approval of a call, with the standing decision on it. A tool that is rejected for always runs
    /// in no case.
    fn approval(&self, is_needed: bool, kind: &InterruptionKind, tool: &str) -> Approval {
        let standing = self.run.standing_decision(kind, tool);
        let decision = standing.filter(|decision| is_needed || !decision.is_approved());
        Approval {
            is_needed: is_needed || decision.is_some(),
            is_standing: decision.is_some(),
            decision: decision.cloned(),
            has_waited: false,
            schema: None,
        }
    }

    /// The consequence of the current tools' results.
    pub(super) fn tool_ends(&self) -> ToolEnds {
        let may_end = match &self.agent.def.tool_use.0 {
            ToolUseBehaviorKind::RunModelAgain => false,
            ToolUseBehaviorKind::StopOnFirstTool | ToolUseBehaviorKind::Function(_) => true,
            ToolUseBehaviorKind::StopAtTools(names) => {
                let calls = self.run.turn().map(|turn| turn.tools().calls.as_slice());
                let mut calls = calls.unwrap_or_default().iter();
                calls.any(|call| names.iter().any(|name| **name == *call.tool))
            }
        };
        if !may_end {
            ToolEnds::AskModel
        } else if self.has_output_guardrails() {
            ToolEnds::MayEndGuarded
        } else {
            ToolEnds::MayEnd
        }
    }

    /// Leaves the wait that the run is resumed from: checks what can be refused before what was
    /// approved runs, and claims the wait, so that nobody resumes from it a second time.
    pub(super) async fn leave_wait(&mut self) -> Result<(), Error> {
        let state = self.run.approvals.as_ref();
        let Some(wait) = state.and_then(|state| state.wait.clone()) else {
            return Ok(());
        };
        self.resume_agent().await?;
        // Items that were recorded when the wait began were reported then.
        if let Some(turn) = self.run.turn() {
            let early = turn.items[..turn.recorded].iter();
            let reported = self.reported.get_or_insert_default();
            reported.extend(early.map(RunItem::key));
        }
        if self.config.handoff_policy.resume_checks == ResumeChecks::BeforeSideEffects {
            self.check_remaining_turns()?;
            if self.run.has_unchecked_input() {
                self.check_added_input().await?;
            }
        }
        // Of runs inside a tool, the run around them is claimed.
        if self.outer.is_none() {
            let claim = resumption::claim(&wait);
            let claim = claim.map_err(|problem| Error::new(ErrorKind::Configuration, problem))?;
            self.claim = Some(Box::new(claim));
        }
        // This run goes on under another name, also if the step fails.
        self.run_mut().begin_wait();
        Ok(())
    }

    /// Checks the tools and handoffs of the agent that a run is resumed with, and begins its span.
    pub(super) async fn resume_agent(&mut self) -> Result<(), Error> {
        self.open_agent_span();
        let offer = self.offer().await?;
        self.check_offer(&offer)
    }

    /// Ends the wait, once what was decided is carried out or has failed.
    pub(super) fn end_wait(&mut self, is_done: bool) {
        if let Some(claim) = self.claim.take()
            && (is_done || !self.answer_is_open())
        {
            claim.finish();
        }
        if is_done && !self.run.is_waiting() {
            self.run_mut().approvals_mut().wait = None;
        }
    }

    /// Checks that the model can be asked after the tools: within the limit of turns and the budgets.
    fn check_remaining_turns(&self) -> Result<(), Error> {
        let asks_model = match self.run.step() {
            Step::RunTools(_) => self.tool_ends() == ToolEnds::AskModel,
            Step::TakeHandoff(_) => true,
            Step::TakeAnswer(answer) => answer.asks_next_agent(),
            _ => false,
        };
        if !asks_model {
            return Ok(());
        }
        self.run.next_turn(self.config.max_turns)?;
        // Another agent, which a handoff leads to, has budgets of its own.
        let stays = self.handoff_calls().is_empty();
        if stays { self.check_budgets() } else { Ok(()) }
    }

    /// Checks input that was added while the run waited, with the input guardrails of the current agent.
    pub(super) async fn check_added_input(&mut self) -> Result<(), Error> {
        let mut items: Vec<Item> = self.run.added_input().to_vec();
        let guardrails: Vec<_> = self.input_guardrails().cloned().collect();
        let (replacing, checking): (Vec<_>, Vec<_>) = guardrails
            .into_iter()
            .partition(|guardrail| guardrail.mode == InputMode::Replacing);
        let mut results = Vec::new();
        for guardrail in replacing.iter().chain(&checking) {
            let input = Input::Items(items.iter().cloned().collect());
            let (ctx, agent, name) = (self.ctx(), self.agent.clone(), guardrail.name_arc());
            let check = || (guardrail.check)(ctx, agent, input);
            let result = [self.ask(GuardrailKind::Input, name, check, Ok).await?];
            let passed = self.check_trip(GuardrailKind::Input, &result).await;
            let replaced_by = result[0].replaced_by.clone();
            results.extend(result);
            if passed.is_err() {
                self.run_mut().guardrails.input.add(results);
                return passed;
            }
            if let Some(text) = replaced_by {
                crate::run::replace_text(items.iter_mut(), &text);
            }
        }
        let run = self.run_mut();
        run.guardrails.input.add(results);
        run.guardrails.input.settle();
        run.added_input_passed(items);
        Ok(())
    }

    /// Makes input that was added while the run waited part of the conversation.
    pub(super) async fn admit_added_input(&mut self) -> Result<(), Error> {
        if self.run.has_unchecked_input() {
            self.check_added_input().await?;
        }
        self.run_mut().admit_input();
        self.save().await
    }
}

/// The arguments of a call as JSON: an object, or the text of a free-form tool; `None` if they are
/// something else.
pub(super) fn readable_arguments(call: &Item) -> Option<Value> {
    let arguments = call.arguments().unwrap_or_default();
    if call.kind() == ItemKind::CustomToolCall {
        return Some(Value::String(arguments.into_owned()));
    }
    match arguments.trim() {
        "" => Some(Value::Object(serde_json::Map::new())),
        arguments => serde_json::from_str(arguments)
            .ok()
            .filter(Value::is_object),
    }
}
