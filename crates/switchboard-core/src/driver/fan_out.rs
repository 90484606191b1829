//! Handoffs of one response that are made side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use futures_util::stream::{self, StreamExt as _};
use serde_json::Value;

use super::handoff::explain;
use super::handoff_decision::{HandoffFailure, Negotiated, Route};
use super::tool_calls::{ToolAttempt, progress};
use super::{Driver, configuration_error};
use crate::agent::{Agent, ToolResult};
use crate::agent_tool::answer_of;
use crate::callback::BoxFuture;
use crate::error::{Error, ErrorKind};
use crate::filters::estimated_tokens;
use crate::json;
use crate::output::FinalOutput;
use crate::run::fan_out::{BranchView, JoinedBy};
use crate::run::handoff::{Carried, HandoffOutcome};
use crate::run::tool_results::{RanTool, ToolEnds, ToolStage};
use crate::run::turn::{HandoffProgress, ToolCall};
use crate::run::{Run, Step, agent_keys};
use crate::runner::{
    BranchAnswer, BranchFailures, FanOut, InnerEvents, Join, RunConfig, RunResult, RunStatus,
    SeveralHandoffs, SharedTurns, StreamedOutput, Surroundings,
};
use crate::stream::event_sink::{CallPlace, EventSink};
use crate::stream::{EventKind, HandoffStatus};
use crate::tool::{OuterToolCall, ToolError};
use crate::trace::trace_handle::OpenSpan;
use crate::trace::{HandoffDecider, SpanData};

/// A branch that has ended for now, and the number of turns that it has taken if it has answered.
struct EndedBranch {
    attempt: ToolAttempt,
    turns: u32,
}

impl<C: Send + Sync + 'static> Driver<C> {
    /// The policy by which the handoffs of the response are made side by side, if they are.
    pub(super) fn fan_out(&self) -> Option<FanOut> {
        let SeveralHandoffs::FanOut(policy) = &self.config.handoff_policy.several else {
            return None;
        };
        let turn = self.run.turn()?;
        let has_begun =
            turn.progress != HandoffProgress::NotStarted || turn.handoff_approval.is_some();
        let is_fanned_out = turn.is_fanned_out() || (turn.handoffs.len() > 1 && !has_begun);
        is_fanned_out.then(|| policy.clone())
    }

    /// Decides on the first handoff of several that has no decision. Its agent gets a copy of the
    /// conversation.
    pub(super) async fn decide_branch(&mut self, policy: &FanOut) -> Result<(), Error> {
        self.check_fan_out(policy)?;
        self.run_mut().begin_fan_out();
        let offer = self.offer().await?;
        let Step::TakeHandoff([call, ..]) = self.run.step() else {
            return Ok(());
        };
        let call = call.clone();
        let mut span = self.handoff_span();
        explain(&mut span, |details| {
            details.policy = Some(self.config.handoff_policy.several.name().into());
        });
        loop {
            let at_handoff = |error: Error| error.at_handoff(&call.tool);
            let route = self.route(&offer, &call).map_err(at_handoff)?;
            let (to, payload, outcome, run) = match self.negotiate(&route, &call, &mut span).await {
                Ok((_, _, Negotiated::Redirected(redirect))) => {
                    self.run_mut().redirect_handoff(redirect);
                    continue;
                }
                Ok((target, payload, Negotiated::Taken(carried))) => {
                    let run = self.branch_run(&route, &target, &payload, carried);
                    let to = target.name_arc().clone();
                    (to, payload, HandoffOutcome::FannedOut, Some(run))
                }
                Ok((target, payload, Negotiated::Refused(reason))) => {
                    let to = target.name_arc().clone();
                    (to, payload, HandoffOutcome::Refused(reason), None)
                }
                Ok((target, payload, Negotiated::Answered(answered))) => {
                    let to = target.name_arc().clone();
                    let refused = HandoffOutcome::Refused(answered.reason);
                    (to, payload, refused, None)
                }
                Ok((target, payload, waits @ Negotiated::Waits)) => {
                    let to = target.name_arc().clone();
                    self.leave_handoff(to, payload, waits, span).await;
                    return Ok(());
                }
                Err(HandoffFailure::Told(told)) => {
                    let (error, text) = *told;
                    let retries = self.config.handoff_policy.retries;
                    if !self.run.may_tell_of_failure(&call.tool, retries) {
                        return Err(at_handoff(error));
                    }
                    let payload = json::arguments_value(&call.call.arguments().unwrap_or_default());
                    let to = route.handoff.spec().to.clone();
                    (to, payload, HandoffOutcome::Failed(text), None)
                }
                Err(HandoffFailure::Fatal(error)) => return Err(at_handoff(error)),
            };
            self.explain_branch(&outcome, run.as_deref(), span);
            let mut event = self.handoff_event(&call, &to, &payload, status(&outcome));
            event.reason = outcome.reason().map(str::to_owned);
            self.run_mut().decide_branch(to, payload, outcome, run);
            self.emit(|| EventKind::Handoff(event)).await;
            return Ok(());
        }
    }

    /// Checks what can be known to fail before anything is done.
    fn check_fan_out(&self, policy: &FanOut) -> Result<(), Error> {
        if self.config.server_history.is_some() {
            return Err(configuration_error(
                "the provider keeps the conversation, so it cannot be copied for several agents; do \
                 without server_history, or use another policy for several handoffs",
            ));
        }
        if self.config.max_agent_depth == 0 {
            return Err(configuration_error(
                "too many agents answer beside others, one inside the other; if they do not call each \
                 other in a circle, raise the limit with max_agent_depth",
            ));
        }
        self.join_agent(policy).map(drop)
    }

    /// The agent that joins the answers, where it is another one.
    fn join_agent(&self, policy: &FanOut) -> Result<Option<Agent<C>>, Error> {
        let Join::Agent(name) = &policy.join else {
            return Ok(None);
        };
        let found = agent_keys::find(&self.start, name).ok_or_else(|| {
            configuration_error(format!(
                "\"{name}\" is to join the answers of several agents, and cannot be reached from \
                 \"{}\"",
                self.start.name()
            ))
        })?;
        Ok((!found.ptr_eq(&self.agent)).then_some(found))
    }

    fn branch_run(
        &self,
        route: &Route<C>,
        target: &Agent<C>,
        payload: &Value,
        carried: Carried,
    ) -> Box<Run> {
        let handoff = &route.handoff;
        Box::new(self.run.branch(BranchView {
            agent: agent_keys::agent_ref(&self.start, target),
            message: &handoff.transfer_message(target, payload),
            payload: payload.clone(),
            received: handoff.received(self.agent.name_arc(), carried.shown_payload(payload)),
            carried,
        }))
    }

    fn explain_branch(&self, outcome: &HandoffOutcome, run: Option<&Run>, mut span: OpenSpan) {
        let shown = run.map(|run| run.conversation.input.items());
        if let Some(shown) = &shown {
            update_span!(span, Handoff.carried_items = Some(shown.len()));
        }
        explain(&mut span, |details| {
            details.outcome = Some(status(outcome));
            if let HandoffOutcome::Failed(_) = outcome {
                details.decided_by = Some(HandoffDecider::Failure);
            }
            let reason = outcome.reason().map(str::to_owned);
            details.reason = reason.filter(|_| self.config.trace_sensitive_data);
            let shown = shown.map(|items| items.iter().map(estimated_tokens).sum());
            details.carried_tokens = shown;
        });
        if outcome.reason().is_some() {
            span.fail("Handoff refused");
        }
        span.end();
    }

    /// Lets the agents answer side by side, and joins their answers. Those that have answered do not answer
    /// again when the run is resumed.
    pub(super) async fn run_branches(&mut self) -> Result<(), Error> {
        let Some(policy) = self.fan_out() else {
            return Err(configuration_error(
                "the run was stored while several agents answered side by side; resume it with \
                 SeveralHandoffs::FanOut",
            ));
        };
        self.check_fan_out(&policy)?;
        let Some(tools) = self.run.turn().map(|turn| turn.tools().clone()) else {
            return Ok(());
        };
        self.begin_inner_runs();
        let turns = self.shared_turns();
        let limit = self.config.tool_concurrency;
        let limit = limit.map_or(tools.calls.len(), usize::from).max(1);
        let has_failed = &AtomicBool::new(false);
        let (driver, policy_ref, turns) = (&*self, &policy, turns.as_ref());
        let branches = tools.calls.iter().enumerate().map(|(at, call)| {
            let attempt = ToolAttempt {
                at,
                ran: tools.done.iter().find(|ran| ran.at == at).cloned(),
                inner: tools.inner_run(at).cloned().map(Box::new),
                ..ToolAttempt::default()
            };
            let ended: BoxFuture<'_, EndedBranch> = Box::pin(async move {
                if driver.journal.is_none() && has_failed.load(Ordering::Relaxed) {
                    return EndedBranch { attempt, turns: 0 };
                }
                let ended = driver.run_branch(call, attempt, policy_ref, turns).await;
                has_failed.fetch_or(ended.attempt.failure.is_some(), Ordering::Relaxed);
                ended
            });
            ended
        });
        let branches = stream::iter(branches.collect::<Vec<_>>()).buffer_unordered(limit);
        let mut ended: Vec<EndedBranch> = branches.collect().await;
        ended.sort_by_key(|branch| branch.attempt.at);
        let taken = ended.iter().map(|branch| branch.turns).sum();
        let mut attempts: Vec<_> = ended.into_iter().map(|branch| branch.attempt).collect();
        let failure = (attempts.iter_mut()).find_map(|attempt| attempt.failure.take());
        let waits = attempts.iter().any(|attempt| attempt.waits);
        self.end_inner_runs();
        let recorded = self.run.new_items().len();
        let run = self.run_mut();
        run.count_turns(taken);
        if waits && failure.is_none() {
            run.tools_wait(progress(attempts), ToolEnds::AskModel);
        } else {
            // Before the join, which may fail.
            run.tools_failed(progress(attempts));
        }
        self.count_added_usage();
        if let Some(error) = failure {
            return Err(error);
        }
        if waits {
            self.report_recorded(recorded).await;
            return Ok(());
        }
        self.join(&policy).await
    }

    /// Joins the answers.
    async fn join(&mut self, policy: &FanOut) -> Result<(), Error> {
        let next = self.join_agent(policy)?;
        let ran = self.run.turn().map(|turn| turn.tools().done.clone());
        let ran = ran.unwrap_or_default();
        let joined_by = match (&policy.join, &next) {
            (Join::Function(code), _) => {
                let what = "the function that joins the answers";
                let joined = code.call(self.branch_answers(&ran));
                let joined = self.run_code(self.parent_span(), what, joined);
                let text = effect!(self, Code, what, joined)?;
                let output = FinalOutput::Text(text.into());
                JoinedBy::Output(self.to_output_type(what, output)?)
            }
            (_, Some(agent)) => JoinedBy::Agent(agent_keys::agent_ref(&self.start, agent)),
            (_, None) => JoinedBy::Caller,
        };
        let recorded = self.run.new_items().len();
        let way_back = self.way_back_after_move();
        let run = Arc::make_mut(&mut self.run);
        run.join_branches(ran, joined_by, self.agent.output_type());
        if let Some(agent) = &next {
            run.arrive(way_back, agent.is_person());
        }
        if let Step::CallModel | Step::AskPerson = self.run.step() {
            self.report_recorded(recorded).await;
        }
        if let Some(agent) = next {
            self.agent = agent;
            self.offer = None;
            self.end_spans();
            self.save().await?;
            self.report_agent().await;
        }
        Ok(())
    }

    fn branch_answers(&self, ran: &[RanTool]) -> Vec<BranchAnswer> {
        let fan_out = (self.run.turn()).and_then(|turn| turn.tools().fan_out.as_ref());
        let branches = fan_out.map_or(&[][..], |fan_out| &fan_out.branches);
        let answers = branches.iter().zip(ran).map(|(branch, ran)| {
            let output = &ran.result.output;
            let is_answer = ran.was_invoked && ran.error.is_none();
            BranchAnswer {
                agent: branch.to.clone(),
                payload: branch.payload.clone(),
                outcome: if is_answer {
                    Ok(output.clone().into_value())
                } else {
                    Err(output.text().into_owned())
                },
            }
        });
        answers.collect()
    }

    /// The turns that are left to the agents together, where they are limited.
    fn shared_turns(&self) -> Option<Arc<SharedTurns>> {
        let outer = self.outer.as_ref();
        if let Some(turns) = outer.and_then(|outer| outer.turns.as_ref()) {
            return Some(turns.clone());
        }
        let max = self.config.max_turns?;
        let used = self.run.turns().saturating_add(self.run.turns_inside());
        Some(Arc::new(SharedTurns::new(max.saturating_sub(used), max)))
    }

    /// Runs the agent of one handoff, unless it has answered or waits.
    async fn run_branch(
        &self,
        call: &ToolCall,
        mut attempt: ToolAttempt,
        policy: &FanOut,
        turns: Option<&Arc<SharedTurns>>,
    ) -> EndedBranch {
        let Some(inner) = attempt.inner.take().filter(|_| attempt.ran.is_none()) else {
            return EndedBranch { attempt, turns: 0 };
        };
        if inner.is_waiting() {
            attempt.inner = Some(inner);
            attempt.waits = true;
            return EndedBranch { attempt, turns: 0 };
        }
        let start = Instant::now();
        let name = inner.agent().to_owned();
        let outcome = match agent_keys::find(&self.start, &inner.agent.key) {
            Some(agent) => self.drive_branch(call, *inner, agent, policy, turns).await,
            None => {
                let message = format!(
                    "the run to resume is with agent \"{name}\", which \"{}\" does not lead to",
                    self.start.name()
                );
                Err(configuration_error(message).with_run(inner))
            }
        };
        let result = |output| ToolResult {
            tool: call.tool.clone(),
            output,
            data: None,
        };
        let mut taken = 0;
        match outcome {
            Ok(made) if made.status() == RunStatus::Interrupted => {
                attempt.inner = Some(Box::new(made.into_run()));
                attempt.waits = true;
            }
            Ok(made) => {
                taken = made.run().turns();
                let answer = answer_of(&made);
                attempt.ran = Some(answered(&attempt, result(answer), None, start));
            }
            Err(error) => {
                let kind = error.kind();
                let tells =
                    policy.failures == BranchFailures::TellJoin && kind != ErrorKind::Configuration;
                let message = format!("\"{name}\", which answers beside others, failed: {error}");
                if tells {
                    tracing::warn!(agent = name, "an agent that answers beside others failed");
                    taken = error.run().map_or(0, Run::turns);
                    let text = failure_text(&name, kind);
                    let error = Some(ToolError::new(message));
                    attempt.ran = Some(answered(&attempt, result(text.into()), error, start));
                } else {
                    attempt.inner = error.into_run().map(Box::new);
                    attempt.failure = Some(Error::new(kind, message));
                }
            }
        }
        EndedBranch {
            attempt,
            turns: taken,
        }
    }

    /// Drives the run of an agent beside others to its end. The future has no type of its own, because it
    /// contains that of a driver.
    fn drive_branch(
        &self,
        call: &ToolCall,
        run: Run,
        agent: Agent<C>,
        policy: &FanOut,
        turns: Option<&Arc<SharedTurns>>,
    ) -> BoxFuture<'static, Result<RunResult<C>, Error>> {
        let config = RunConfig {
            max_turns: None,
            // Those of this run hold.
            budgets: None,
            max_agent_depth: self.config.max_agent_depth.saturating_sub(1),
            session: None,
            session_input: None,
            exclusive: None,
            recovery: None,
            team_name: None,
            team_source: None,
            ..(*self.config).clone()
        };
        let surroundings = Surroundings {
            usage: Some(self.added_usage.clone()),
            trace: self.trace.parent(self.parent_span()),
            call: Some(Arc::new(OuterToolCall {
                tool: call.tool.clone(),
                call_id: call.call.call_id().unwrap_or_default().into(),
                arguments: call.call.arguments().unwrap_or_default().into(),
            })),
            session: self.call_key().session,
            standing: self.run.standing_inside(&call.tool),
            turns: turns.cloned(),
            budgets: self.budgets_inside.clone(),
            events: self.events_of_branch(call, policy),
            journal: self.journal_inside(&call.call),
            call_key: None,
        };
        let (start, context) = (self.start.clone(), self.context.clone());
        let mut driver = Self::new(run, start, agent, Arc::new(config), context, &surroundings);
        Box::pin(async move {
            let outcome = driver.drive().await;
            driver.report_end(&outcome).await;
            driver.finish(outcome)
        })
    }

    /// The sink for the events of an agent that answers beside others.
    fn events_of_branch(&self, call: &ToolCall, policy: &FanOut) -> Option<EventSink> {
        let events = self.events.as_ref()?;
        // The function may make an output of the answers that guardrails do not pass.
        let is_held_back = matches!(policy.join, Join::Function(_))
            && self.config.streamed_output == StreamedOutput::AfterGuardrails
            && self.has_output_guardrails();
        if is_held_back || self.config.inner_events == InnerEvents::Hidden {
            return None;
        }
        let place = CallPlace {
            agent: self.agent.name_arc().clone(),
            turn: self.turn,
            call_id: call.call.call_id().unwrap_or_default().into(),
            tool: call.tool.clone(),
        };
        Some(events.inside(place, &Arc::downgrade(&self.run)))
    }
}

fn answered(
    attempt: &ToolAttempt,
    result: ToolResult,
    error: Option<ToolError>,
    start: Instant,
) -> RanTool {
    RanTool {
        stage: ToolStage::Reported,
        ..RanTool::invoked(attempt.at, result, error, start.elapsed())
    }
}

fn status(outcome: &HandoffOutcome) -> HandoffStatus {
    match outcome {
        HandoffOutcome::Taken => HandoffStatus::Taken,
        HandoffOutcome::FannedOut => HandoffStatus::FannedOut,
        HandoffOutcome::Refused(_) => HandoffStatus::Refused,
        HandoffOutcome::Failed(_) => HandoffStatus::Failed,
        HandoffOutcome::Ignored => HandoffStatus::Ignored,
    }
}

/// The text for the join about an agent that failed. The error may hold private data.
fn failure_text(agent: &str, kind: ErrorKind) -> String {
    let reason = match kind {
        ErrorKind::MaxTurns => "there were no turns left",
        ErrorKind::Budget => "a budget is used up",
        ErrorKind::OutputGuardrail => "its answer was refused",
        ErrorKind::ModelRefusal => "its model refused",
        _ => "an error occurred",
    };
    format!("{agent} could not answer: {reason}.")
}
