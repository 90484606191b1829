//! Running tools, and deciding what follows from their results.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_timer::Delay;
use futures_util::future::{Either, select};
use futures_util::stream::{self, StreamExt as _};
use serde_json::Value;

use super::hooks::HookCall;
use super::{Driver, configuration_error};
use crate::agent::{ToolResult, ToolUseBehaviorKind};
use crate::callback::{BoxFuture, Outcome, call};
use crate::error::Error;
use crate::guardrail::{GuardrailKind, GuardrailResult, ToolCheck, ToolGuardrail, ToolVerdict};
use crate::json;
use crate::offer::Offer;
use crate::run::machine::Step;
use crate::run::stream::EventKind;
use crate::run::turn::{RanTool, ToolCall, ToolStage};
use crate::tool::{CallInfo, ProgressReporter, TimedOut, Tool, ToolContext, ToolOutput};
use crate::trace::{OpenSpan, SpanData};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Runs the tools of a response concurrently. When one of them fails, those in progress are
    /// awaited and no other starts; none that ran runs again when the run is resumed.
    pub(super) async fn run_tools(&mut self) -> Result<(), Error> {
        let offer = self.offer().await?;
        self.run_mut().guardrails.tool.begin_attempt();
        let Some(tools) = self.run.turn().map(|turn| turn.tools().clone()) else {
            return Ok(());
        };
        let limit = self.config.tool_concurrency;
        let limit = limit.map_or(tools.calls.len(), usize::from).max(1);
        let has_failed = &AtomicBool::new(false);
        let (driver, offer) = (&*self, &offer);
        let attempts = tools.calls.iter().enumerate().map(|(at, call)| {
            let mut attempt = ToolAttempt {
                at,
                is_started: tools.started.contains(&at),
                ran: tools.done.iter().find(|ran| ran.at == at).cloned(),
                ..ToolAttempt::default()
            };
            let attempt: BoxFuture<'_, ToolAttempt> = Box::pin(async move {
                if attempt.ran.is_some() || !has_failed.load(Ordering::Relaxed) {
                    attempt.failure = driver.run_tool(call, &mut attempt, offer).await.err();
                    has_failed.fetch_or(attempt.failure.is_some(), Ordering::Relaxed);
                }
                attempt
            });
            attempt
        });
        let attempts = stream::iter(attempts.collect::<Vec<_>>()).buffer_unordered(limit);
        let attempts = attempts.collect().await;
        self.tools_ended(attempts, &tools.unknown).await
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
        let failure = attempts
            .iter_mut()
            .find_map(|attempt| attempt.failure.take());
        if let Some(error) = failure {
            let started = attempts.iter().filter(|attempt| attempt.is_started);
            let started = started.map(|attempt| attempt.at).collect();
            let finished = attempts.into_iter().filter_map(|attempt| attempt.ran);
            self.run_mut().tools_failed(finished.collect(), started);
            return Err(error);
        }
        attempts.sort_by_key(|attempt| attempt.at);
        let ran = attempts.into_iter().filter_map(|attempt| attempt.ran);
        let results = ran.map(|ran| ran.result).collect();
        for call in unknown {
            self.report_tool_end(call, call.not_found().into(), true, Duration::ZERO)
                .await;
        }
        let recorded = self.run.new_items().len();
        Arc::make_mut(&mut self.run).tools_ran(results, &self.agent);
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
            return Err(configuration_error(format!(
                "the model called the tool \"{}\", and the agent the run was resumed with has none \
                 of that name",
                call.tool
            )));
        };
        let arguments: Arc<str> = call.call.arguments().unwrap_or_default().into();
        let is_traced = self.config.trace_sensitive_data;
        let mut span = self.trace.span(self.parent_span(), || SpanData::Function {
            name: call.tool.clone(),
            input: is_traced.then(|| arguments.clone()),
            output: None,
            failed: false,
        });
        let ctx = self.tool_context(call, arguments);
        let mut took = Duration::ZERO;
        let ran = self
            .run_stages(tool, &ctx, call, attempt, &span, &mut took)
            .await?;
        let output = &ran.result.output;
        let traced = || is_traced.then(|| output.text().into_owned());
        update_span!(span, Function.output = traced());
        update_span!(span, Function.failed = ran.failed);
        let value = output.clone().into_value();
        self.report_tool_end(call, value, ran.failed, took).await;
        self.call_hooks(HookCall::ToolEnd(tool, &ctx, output))
            .await?;
        ran.stage = ToolStage::Reported;
        Ok(())
    }

    fn tool_context(&self, call: &ToolCall, arguments: Arc<str>) -> ToolContext<C> {
        let call_id: Arc<str> = call.call.call_id().unwrap_or_default().into();
        let progress = self.events.as_ref().map(|events| ProgressReporter {
            events: events.clone(),
            turn: self.turn,
            run: Arc::downgrade(&self.run),
        });
        let info = CallInfo {
            agent: self.agent.name_arc().clone(),
            tool: call.tool.clone(),
            call_id,
            arguments,
            progress,
        };
        ToolContext::new(self.ctx(), info, self.config.clone(), self.agent.team())
    }

    async fn report_tool_end(&self, call: &ToolCall, output: Value, failed: bool, took: Duration) {
        self.emit(|| EventKind::ToolEnded {
            call_id: call.call.call_id().unwrap_or_default().into(),
            tool: call.tool.clone(),
            arguments: json::arguments_value(&call.call.arguments().unwrap_or_default()),
            output,
            failed,
            seconds: took.as_secs_f64(),
        })
        .await;
    }

    /// Runs the tool, unless it ran before, and passes its output through the guardrails.
    async fn run_stages<'a>(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        call: &ToolCall,
        attempt: &'a mut ToolAttempt,
        span: &OpenSpan,
        took: &mut Duration,
    ) -> Result<&'a mut RanTool, Error> {
        let ran = match &mut attempt.ran {
            Some(ran) => ran,
            none => {
                self.emit(|| EventKind::ToolStarted {
                    call_id: ctx.call_id().into(),
                    tool: call.tool.clone(),
                    arguments: json::arguments_value(ctx.arguments()),
                })
                .await;
                if !attempt.is_started {
                    self.call_hooks(HookCall::ToolStart(tool, ctx)).await?;
                    attempt.is_started = true;
                }
                let replacement = self.check_call(tool, ctx, &mut attempt.results).await?;
                attempt.final_results.append(&mut attempt.results);
                let (output, failed, stage) = match replacement {
                    Some(output) => (output, false, ToolStage::Checked),
                    None => {
                        let start = Instant::now();
                        let (output, failed) = self.invoke(tool, ctx, span).await;
                        *took = start.elapsed();
                        (output, failed, ToolStage::Ran)
                    }
                };
                none.insert(RanTool {
                    at: attempt.at,
                    result: ToolResult {
                        tool: tool.spec().name.clone(),
                        output,
                    },
                    failed,
                    stage,
                })
            }
        };
        if ran.stage == ToolStage::Ran {
            self.check_tool_output(tool, ctx, &mut ran.result.output, &mut attempt.results)
                .await?;
            attempt.final_results.append(&mut attempt.results);
            ran.stage = ToolStage::Checked;
        }
        Ok(ran)
    }

    /// The guardrails on a tool: its own, the agent's, the run's.
    fn tool_guardrails(&self, tool: &Tool<C>) -> Vec<ToolGuardrail<C>> {
        let own = tool.guardrails().iter();
        own.chain(self.agent.tool_guardrails())
            .chain(&self.config.tool_guardrails)
            .cloned()
            .collect()
    }

    /// Asks the guardrails on the call. Returns the output for the model if the tool must not run.
    async fn check_call(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        results: &mut Vec<GuardrailResult>,
    ) -> Result<Option<ToolOutput>, Error> {
        for guardrail in self.tool_guardrails(tool) {
            if let ToolCheck::Call(check) = guardrail.tool_check() {
                let asked = self.ask_tool_guardrail(&guardrail, || check(ctx.clone()), results);
                if let Some(output) = asked.await? {
                    return Ok(Some(output));
                }
            }
        }
        Ok(None)
    }

    /// Asks the guardrails on the output, each with what the one before it left.
    async fn check_tool_output(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        output: &mut ToolOutput,
        results: &mut Vec<GuardrailResult>,
    ) -> Result<(), Error> {
        let mut checked = output.clone();
        for guardrail in self.tool_guardrails(tool) {
            if let ToolCheck::Output(check) = guardrail.tool_check() {
                let check = || check(ctx.clone(), checked.clone());
                let asked = self.ask_tool_guardrail(&guardrail, check, results);
                checked = asked.await?.unwrap_or(checked);
            }
        }
        *output = checked;
        Ok(())
    }

    /// Returns the replacement of a guardrail on a tool. A tripwire is an error.
    async fn ask_tool_guardrail(
        &self,
        guardrail: &ToolGuardrail<C>,
        check: impl FnOnce() -> Outcome<ToolVerdict> + Send,
        results: &mut Vec<GuardrailResult>,
    ) -> Result<Option<ToolOutput>, Error> {
        let mut replacement = None;
        let replace = |output: ToolOutput| Ok(replacement.insert(output).text().into_owned());
        let asked = self.ask(GuardrailKind::Tool, guardrail.name_arc(), check, replace);
        let result = [Box::pin(asked).await?];
        let passed = self.check_trip(GuardrailKind::Tool, &result).await;
        results.extend(result);
        passed.map(|()| replacement)
    }

    /// Returns the tool's output, or the failure text for the model, and `true` if it failed.
    async fn invoke(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        span: &OpenSpan,
    ) -> (ToolOutput, bool) {
        let work = call(|| tool.invoke(ctx.clone()));
        let work = self.trace.within(span.id(), work);
        let outcome = match tool.timeout() {
            None => work.await,
            Some(after) => match select(Box::pin(work), Delay::new(after)).await {
                Either::Left((outcome, _)) => outcome,
                // Dropping the work cancels it.
                Either::Right(((), _)) => {
                    let tool = tool.spec().name.clone();
                    Err(TimedOut { tool, after }.into())
                }
            },
        };
        match outcome {
            Ok(output) => (output, false),
            Err(error) => {
                let name = tool.name();
                // The error may quote the arguments.
                if self.config.trace_sensitive_data {
                    tracing::warn!(tool = name, %error, "a tool failed; the model is told");
                } else {
                    tracing::warn!(tool = name, "a tool failed; the model is told");
                }
                (tool.failure_text(ctx, &error).into(), true)
            }
        }
    }

    /// Asks the agent's function whether the tools' results are the final output.
    pub(super) async fn decide_tool_use(&mut self) -> Result<(), Error> {
        let Step::DecideToolUse(results) = self.run.step() else {
            return Ok(());
        };
        let mut output = None;
        if let ToolUseBehaviorKind::Function(decide) = self.agent.tool_use_kind() {
            let what = "the function that decides after tools";
            let ask = call(|| decide(self.ctx(), results.to_vec()));
            output = self.run_code(self.parent_span(), what, ask).await?;
        }
        let recorded = self.run.new_items().len();
        self.run_mut().tool_use_decided(output);
        if let Step::CallModel = self.run.step() {
            self.report_recorded(recorded).await;
        }
        Ok(())
    }
}

/// An attempt to run a tool.
#[derive(Default)]
struct ToolAttempt {
    /// The index of its call.
    at: usize,
    /// Set once hooks were notified of its start.
    is_started: bool,
    /// The result, once it ran.
    ran: Option<RanTool>,
    /// Results of guardrails that are not asked again.
    final_results: Vec<GuardrailResult>,
    /// Results of guardrails that are asked again if the attempt fails.
    results: Vec<GuardrailResult>,
    /// The error that ended the attempt.
    failure: Option<Error>,
}
