//! Running tools, and deciding what follows from their results.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_timer::Delay;
use futures_util::TryFutureExt as _;
use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt as _};

use super::approvals::Clearance;
use super::hooks::HookCall;
use super::{Driver, configuration_error};
use crate::agent::{ToolResult, ToolUseBehaviorKind};
use crate::callback::{BoxFuture, call};
use crate::error::{Error, model_error};
use crate::guardrail::GuardrailResult;
use crate::hooks::ToolEnd;
use crate::journal::{Later, Transient};
use crate::offered_tools::Offer;
use crate::run::approvals::{Approval, CallApproval, InnerRun};
use crate::run::tool_results::{RanTool, ToolProgress, ToolStage};
use crate::run::turn::ToolCall;
use crate::run::{Run, Step};
use crate::stream::EventKind;
use crate::tool::{CallInfo, ProgressReporter, Tool, ToolContext, ToolError, ToolNotFound};
use crate::trace::SpanData;
use crate::trace::trace_handle::OpenSpan;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Runs the tools of a response concurrently. When one of them fails, those in progress are
    /// awaited and no other starts; none that ran runs again when the run is resumed.
    pub(super) async fn run_tools(&mut self) -> Result<(), Error> {
        let offer = self.offer().await?;
        self.run_mut().guardrails.tool.begin_attempt();
        let Some(tools) = self.run.turn().map(|turn| turn.tools().clone()) else {
            return Ok(());
        };
        let waiting = tools.calls.iter().enumerate();
        let waiting = waiting.filter(|(at, _)| {
            let is_rejected = tools.approval(*at).is_some_and(Approval::is_rejected);
            !tools.is_done(*at) && !tools.call_is_waiting(*at) && !is_rejected
        });
        self.check_enabled(waiting.map(|(_, call)| call), &offer)
            .await?;
        if !tools.requests.is_empty() {
            self.ask_about_requests(&tools.requests).await;
        }
        self.begin_inner_runs();
        let limit = self.config.tool_concurrency;
        let limit = limit.map_or(tools.calls.len(), usize::from).max(1);
        let has_failed = &AtomicBool::new(false);
        let (driver, offer) = (&*self, &offer);
        let attempts = tools.calls.iter().enumerate().map(|(at, call)| {
            let mut attempt = ToolAttempt {
                at,
                is_allowed: tools.allowed.binary_search(&at).is_ok(),
                is_started: tools.started.binary_search(&at).is_ok(),
                ran: tools.done_at(at).cloned(),
                approval: tools.call_approval(at).cloned(),
                inner: tools.inner_run(at).cloned().map(Box::new),
                ..ToolAttempt::default()
            };
            let attempt: BoxFuture<'_, ToolAttempt> = Box::pin(async move {
                // The tools that run must not depend on how long others take.
                let may_start = driver.journal.is_some() || !has_failed.load(Ordering::Relaxed);
                if attempt.ran.is_some() || may_start {
                    attempt.failure = driver.run_tool(call, &mut attempt, offer).await.err();
                    has_failed.fetch_or(attempt.failure.is_some(), Ordering::Relaxed);
                }
                attempt
            });
            attempt
        });
        let attempts = stream::iter(attempts.collect::<Vec<_>>()).buffer_unordered(limit);
        let attempts = attempts.collect().await;
        self.end_inner_runs();
        self.tools_ended(attempts, &tools.unknown).await
    }

    /// Evaluates the conditions of the tools that were called once more: a permission may have been
    /// revoked since the model was asked. No tool starts if one of them is disabled.
    async fn check_enabled(
        &self,
        calls: impl Iterator<Item = &ToolCall>,
        offer: &Offer,
    ) -> Result<(), Error> {
        let tools = calls.filter_map(|call| offer.tool(&self.agent, &call.tool));
        let conditional: Vec<_> = tools.filter(|tool| !tool.enabled().is_always()).collect();
        if conditional.is_empty() {
            return Ok(());
        }
        Box::pin(self.check_conditions(&conditional)).await
    }

    async fn check_conditions(&self, tools: &[&Tool<C>]) -> Result<(), Error> {
        let ctx = &self.ctx();
        let checks = tools.iter().map(|tool| async move {
            let is_enabled = tool.enabled().check(ctx, &self.agent).await?;
            Ok(if is_enabled {
                None
            } else {
                Some(tool.name().to_owned())
            })
        });
        let disabled = try_join_all(checks).map_ok(|all| all.into_iter().flatten().next());
        let disabled = self.run_code(self.parent_span(), "a condition", disabled);
        match condition!(
            self,
            Condition,
            "tools that were called",
            Box::pin(disabled)
        )? {
            None => Ok(()),
            Some(name) => Err(model_error(format!(
                "the model called the tool \"{name}\", which has been disabled since; no tool of \
                 the response was run"
            ))),
        }
    }

    /// Passes the results to the machine. If a tool failed, the run stays before its tools.
    async fn tools_ended(
        &mut self,
        mut attempts: Vec<ToolAttempt>,
        unknown: &[ToolCall],
    ) -> Result<(), Error> {
        let results = &mut self.run_mut().guardrails.tool;
        for attempt in &mut attempts {
            results.add(attempt.final_results.drain(..));
        }
        results.settle();
        for attempt in &mut attempts {
            results.add(attempt.results.drain(..));
        }
        let failures = attempts
            .iter_mut()
            .filter_map(|attempt| attempt.failure.take());
        // The first that is final, or the one that may pass the soonest.
        let failure = failures.min_by_key(|error| (error.is_transient(), error.retry_at()));
        if let Some(error) = failure {
            self.run_mut().tools_failed(progress(attempts));
            return Err(error);
        }
        let requests = self
            .run
            .turn()
            .map_or(&[][..], |turn| &turn.tools().requests);
        let waits = attempts.iter().any(|attempt| attempt.waits)
            || requests.iter().any(|request| request.approval.is_waiting());
        if waits {
            let recorded = self.run.new_items().len();
            let ends = self.tool_ends();
            self.run_mut().tools_wait(progress(attempts), ends);
            self.report_recorded(recorded).await;
            return Ok(());
        }
        attempts.sort_by_key(|attempt| attempt.at);
        let ran = attempts.into_iter().filter_map(|attempt| attempt.ran);
        let ran = ran.collect();
        let mut not_found = Vec::with_capacity(unknown.len());
        for call in unknown {
            let text = self.not_found_text(call).await;
            let error = Some(ToolError::new(ToolNotFound(call.tool.clone())));
            let result = ToolResult {
                tool: call.tool.clone(),
                output: text.clone().into(),
                data: None,
            };
            self.report_tool_end(call, &result, error.as_ref(), Duration::ZERO)
                .await;
            not_found.push(text);
        }
        let recorded = self.run.new_items().len();
        Arc::make_mut(&mut self.run).tools_ran(ran, not_found, &self.agent);
        if let Step::CallModel = self.run.step() {
            self.report_recorded(recorded).await;
        }
        Ok(())
    }

    /// Runs one tool, or the stages that are left where it ran before the run was resumed.
    async fn run_tool(
        &self,
        call: &ToolCall,
        attempt: &mut ToolAttempt,
        offer: &Offer,
    ) -> Result<(), Error> {
        if matches!(&attempt.ran, Some(ran) if ran.stage == ToolStage::Reported) {
            return Ok(());
        }
        let Some(tool) = offer.tool(&self.agent, &call.tool) else {
            // A call that was rejected needs no tool.
            if let Some(answer) = self.rejected_answer(call, attempt).await {
                self.answer_call(call, attempt, answer).await;
                return Ok(());
            }
            return Err(configuration_error(format!(
                "the model called the tool \"{}\", and the agent the run was resumed with has none \
                 of that name",
                call.tool
            )));
        };
        let is_traced = self.config.trace_sensitive_data;
        if attempt.ran.is_none() && attempt.inner.is_none() {
            match self.clear_call(tool, call, attempt).await? {
                Clearance::Run => {}
                Clearance::Wait => {
                    attempt.waits = true;
                    return Ok(());
                }
                Clearance::Answer(answer) => {
                    self.answer_call(call, attempt, *answer).await;
                    return Ok(());
                }
            }
        } else if attempt.inner.as_ref().is_some_and(|run| run.is_waiting()) {
            attempt.waits = true;
            return Ok(());
        }
        let arguments: Arc<str> = call.call.arguments().unwrap_or_default().into();
        let mut span = self.trace.span(self.parent_span(), || SpanData::Function {
            name: call.tool.clone(),
            input: is_traced.then(|| arguments.clone()),
            output: None,
        });
        // Guardrails see what the tool will read.
        let arguments = tool.coerced(&arguments).map_or(arguments, Arc::from);
        let ctx = self.tool_context(call, arguments, &span, attempt.inner.take());
        let Some(ran) = self
            .run_stages(tool, &ctx, call, attempt, &mut span)
            .await?
        else {
            return Ok(());
        };
        let output = &ran.result.output;
        let traced = || is_traced.then(|| output.text().into_owned());
        update_span!(span, Function.output = traced());
        let error = ran.error.as_ref();
        if !ran.is_streamed {
            self.report_tool_end(call, &ran.result, error, ran.took)
                .await;
            ran.is_streamed = self.events.is_some();
        }
        if ran.was_invoked {
            let end = ToolEnd {
                output,
                error,
                duration: ran.took,
            };
            let ended = self.call_hooks(HookCall::ToolEnd(tool, &ctx, &end)).await;
            ended.inspect_err(|error| self.mark_failed_tool(&mut span, tool, error))?;
        }
        ran.stage = ToolStage::Reported;
        Ok(())
    }

    /// Answers a call that does not run. One that was rejected at once has a span.
    async fn answer_call(&self, call: &ToolCall, attempt: &mut ToolAttempt, mut answer: RanTool) {
        let approval = attempt.approval.as_ref().map(|known| &known.approval);
        let is_traced = self.config.trace_sensitive_data;
        if approval.is_none_or(|approval| !approval.has_waited) {
            let arguments = call.call.arguments().unwrap_or_default();
            let mut span = self.trace.span(self.parent_span(), || SpanData::Function {
                name: call.tool.clone(),
                input: is_traced.then(|| arguments.as_ref().into()),
                output: is_traced.then(|| answer.result.output.text().into_owned()),
            });
            if let Some(error) = &answer.error {
                span.fail_with(&answer.result.output.text(), || self.error_data(error));
            }
        }
        self.report_tool_end(call, &answer.result, answer.error.as_ref(), answer.took)
            .await;
        answer.is_streamed = self.events.is_some();
        answer.stage = ToolStage::Reported;
        attempt.ran = Some(answer);
    }

    pub(super) fn tool_context(
        &self,
        call: &ToolCall,
        arguments: Arc<str>,
        span: &OpenSpan,
        inner_run: Option<Box<Run>>,
    ) -> ToolContext<C> {
        // Progress may show the output that is held back.
        let events = self.events.as_ref().filter(|_| !self.holds_output_back());
        let progress = events.map(|events| ProgressReporter {
            events: events.clone(),
            turn: self.turn,
            run: Arc::downgrade(&self.run),
        });
        let info = CallInfo {
            agent: self.agent.clone(),
            tool: call.tool.clone(),
            call_id: call.call.call_id().unwrap_or_default().into(),
            item: call.call.clone(),
            arguments,
            config: self.config.clone(),
            trace: self.trace.parent(span.id()),
            progress,
            attached: Mutex::default(),
            key: self.call_key(),
            standing: self.run.standing_inside(&call.tool),
            inner_run: Mutex::new(inner_run),
            failed_run: Mutex::default(),
            budgets: self.budgets_inside.clone(),
        };
        let mut ctx = self.ctx();
        if let Some(inside) = self.journal_inside(&call.call) {
            ctx = ctx.with_journal(Some(&inside), 0);
        }
        ToolContext::new(ctx, info)
    }

    async fn report_tool_end(
        &self,
        call: &ToolCall,
        result: &ToolResult,
        error: Option<&ToolError>,
        took: Duration,
    ) {
        self.emit(|| EventKind::ToolEnded {
            call_id: call.call.call_id().unwrap_or_default().into(),
            tool: call.tool.clone(),
            arguments: call.call.arguments_value(),
            output: result.output.clone().into_value(),
            failed: error.is_some(),
            error: error.map(ToolError::to_string),
            data: result.data.clone(),
            seconds: took.as_secs_f64(),
        })
        .await;
    }

    /// Runs the tool, unless it ran before, and passes its output through the guardrails. Returns `None`
    /// if calls inside it wait.
    async fn run_stages<'a>(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        call: &ToolCall,
        attempt: &'a mut ToolAttempt,
        span: &mut OpenSpan,
    ) -> Result<Option<&'a mut RanTool>, Error> {
        let ran = match &mut attempt.ran {
            Some(ran) => ran,
            none => {
                let mut replacement = None;
                if !attempt.is_allowed {
                    let checked = self.check_call(tool, ctx, &mut attempt.results).await;
                    replacement =
                        checked.inspect_err(|error| self.mark_failed_tool(span, tool, error))?;
                    attempt.final_results.append(&mut attempt.results);
                    attempt.is_allowed = replacement.is_none();
                }
                let result = |output| ToolResult {
                    tool: tool.spec().name.clone(),
                    output,
                    data: ctx.attached(),
                };
                none.insert(match replacement {
                    Some(output) => RanTool::rejected(attempt.at, result(output)),
                    None => {
                        if !ctx.is_resumed() {
                            self.report_tool_start(call, ctx).await;
                        }
                        if !attempt.is_started {
                            let started = self.call_hooks(HookCall::ToolStart(tool, ctx)).await;
                            started
                                .inspect_err(|error| self.mark_failed_tool(span, tool, error))?;
                            attempt.is_started = true;
                        }
                        let invoked = if self.journal.is_none() {
                            self.invoke_tool(tool, ctx, attempt.at, span).await
                        } else {
                            Box::pin(self.invoke_journaled(tool, ctx, attempt.at, span)).await
                        };
                        // A run inside that has failed with this one goes on where it was.
                        match invoked.inspect_err(|_| attempt.inner = ctx.take_failed_run())? {
                            InvokedTool::Ran(ran) => *ran,
                            InvokedTool::Waits(inner) => {
                                attempt.inner = Some(inner);
                                attempt.waits = true;
                                return Ok(None);
                            }
                        }
                    }
                })
            }
        };
        if ran.stage == ToolStage::Ran {
            let checked = self
                .check_tool_output(tool, ctx, &mut ran.result, &mut attempt.results)
                .await;
            checked.inspect_err(|error| self.mark_failed_tool(span, tool, error))?;
            attempt.final_results.append(&mut attempt.results);
            ran.stage = ToolStage::Checked;
        }
        Ok(Some(ran))
    }

    /// Calls the tool's code. Its failure becomes the text for the model, or the error of the run.
    pub(super) async fn invoke_tool(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        at: usize,
        span: &mut OpenSpan,
    ) -> Result<InvokedTool, Error> {
        let start = Instant::now();
        let mut outcome = self.trace.within(span.id(), tool.invoke(ctx.clone())).await;
        while let (None, Err(error)) = (&self.journal, &outcome)
            && let Some(later) = error.cause().downcast_ref::<Later>()
        {
            let wait = Box::pin(Delay::new(later.remaining()));
            wait.await;
            outcome = Box::pin(self.trace.within(span.id(), tool.invoke(ctx.clone()))).await;
        }
        // One that does not wait was not gone on with: the call has failed before.
        if let Some(inner) = ctx.take_inner_run()
            && inner.is_waiting()
        {
            return Ok(InvokedTool::Waits(inner));
        }
        if let (Some(_), Err(error)) = (&self.journal, &outcome)
            && is_transient(error)
        {
            return Err(self.tool_failed(tool, error.clone()).transient());
        }
        let (output, error) = self.outcome_for_model(tool, ctx, span, outcome).await?;
        let result = ToolResult {
            tool: tool.spec().name.clone(),
            output,
            data: ctx.attached(),
        };
        let ran = RanTool::invoked(at, result, error, start.elapsed());
        Ok(InvokedTool::Ran(Box::new(ran)))
    }

    async fn report_tool_start(&self, call: &ToolCall, ctx: &ToolContext<C>) {
        self.emit(|| EventKind::ToolStarted {
            call_id: ctx.call_id().into(),
            tool: call.tool.clone(),
            arguments: call.call.arguments_value(),
        })
        .await;
    }

    /// Asks the agent's function whether the tools' results are the final output.
    pub(super) async fn decide_tool_use(&mut self) -> Result<(), Error> {
        let Step::DecideToolUse(results) = self.run.step() else {
            return Ok(());
        };
        let mut output = None;
        if let ToolUseBehaviorKind::Function(decide) = &self.agent.def.tool_use.0 {
            let what = "the function that decides after tools";
            let ask = call(|| decide(self.ctx(), results.to_vec()));
            let ask = self.run_code(self.parent_span(), what, ask);
            output = effect!(self, Code, what, ask)?;
        }
        let recorded = self.run.new_items().len();
        self.run_mut().tool_use_decided(output);
        if let Step::CallModel = self.run.step() {
            self.report_recorded(recorded).await;
        }
        Ok(())
    }
}

/// Returns `true` for a failure that may pass: of the tool itself, or of a run inside it.
fn is_transient(error: &ToolError) -> bool {
    let cause = error.cause();
    cause.is::<Transient>()
        || cause.is::<Later>()
        || cause
            .downcast_ref::<Error>()
            .is_some_and(Error::is_transient)
}

/// A tool whose code was called.
pub(super) enum InvokedTool {
    Ran(Box<RanTool>),
    /// Calls in a run inside it wait for decisions.
    Waits(Box<Run>),
}

/// The progress of the tools, from the attempts to run them.
pub(super) fn progress(attempts: Vec<ToolAttempt>) -> ToolProgress {
    let mut progress = ToolProgress::default();
    for attempt in attempts {
        let at = attempt.at;
        progress.started.extend(attempt.is_started.then_some(at));
        progress.allowed.extend(attempt.is_allowed.then_some(at));
        progress.approvals.extend(attempt.approval);
        let inner = attempt.inner.filter(|_| attempt.ran.is_none());
        (progress.inner_runs).extend(inner.map(|run| InnerRun { at, run }));
        progress.finished.extend(attempt.ran);
    }
    progress
}

/// An attempt to run a tool.
#[derive(Default)]
pub(super) struct ToolAttempt {
    /// The index of its call.
    pub(super) at: usize,
    /// The approval of the call, where it was asked for.
    pub(super) approval: Option<CallApproval>,
    /// Set if the call waits for a decision, or one inside it.
    pub(super) waits: bool,
    /// The run inside the tool, where calls wait in it or it has failed.
    pub(super) inner: Option<Box<Run>>,
    /// Set once guardrails have allowed the call.
    pub(super) is_allowed: bool,
    /// Set once hooks were notified of its start.
    pub(super) is_started: bool,
    /// The result, once it ran.
    pub(super) ran: Option<RanTool>,
    /// Results of guardrails that are not asked again.
    pub(super) final_results: Vec<GuardrailResult>,
    /// Results of guardrails that are asked again if the attempt fails.
    pub(super) results: Vec<GuardrailResult>,
    /// The error that ended the attempt.
    pub(super) failure: Option<Error>,
}
