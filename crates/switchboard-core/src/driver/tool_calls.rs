//! Running tools, and deciding what follows from their results.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures_util::future::try_join_all;
use futures_util::stream::{self, StreamExt as _};
use serde_json::Value;

use super::hooks::HookCall;
use super::{Driver, configuration_error};
use crate::agent::{ToolResult, ToolUseBehaviorKind};
use crate::callback::{BoxFuture, Outcome, call};
use crate::environment::environment;
use crate::error::{Error, ErrorKind, model_error};
use crate::guardrail::{GuardrailKind, GuardrailResult, ToolCheck, ToolGuardrail, ToolVerdict};
use crate::hooks::ToolEnd;
use crate::offered_tools::Offer;
use crate::run::Step;
use crate::run::tool_results::{RanTool, ToolStage};
use crate::run::turn::ToolCall;
use crate::runner::ToolErrorMessage;
use crate::stream::EventKind;
use crate::tool::{
    CallInfo, ProgressReporter, Tool, ToolContext, ToolError, ToolErrorKind, ToolNotFound,
    ToolOutput,
};
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
        let waiting = waiting.filter(|(at, _)| !tools.done.iter().any(|ran| ran.at == *at));
        self.check_enabled(waiting.map(|(_, call)| call), &offer)
            .await?;
        let limit = self.config.tool_concurrency;
        let limit = limit.map_or(tools.calls.len(), usize::from).max(1);
        let has_failed = &AtomicBool::new(false);
        let (driver, offer) = (&*self, &offer);
        let attempts = tools.calls.iter().enumerate().map(|(at, call)| {
            let mut attempt = ToolAttempt {
                at,
                is_allowed: tools.allowed.contains(&at),
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

    /// Evaluates the conditions of the tools that were called once more: a permission may have been
    /// revoked since the model was asked. No tool starts if one of them is disabled.
    async fn check_enabled(
        &self,
        calls: impl Iterator<Item = &ToolCall>,
        offer: &Offer,
    ) -> Result<(), Error> {
        let tools = calls.filter_map(|call| offer.tool(&self.agent, &call.tool));
        let conditional = tools.filter(|tool| !tool.enabled().is_always());
        let ctx = &self.ctx();
        let checks = conditional.map(|tool| async move {
            let is_enabled = tool.enabled().check(ctx, &self.agent).await?;
            Ok(if is_enabled { None } else { Some(tool.name()) })
        });
        let checks = self.run_code(self.parent_span(), "a condition", try_join_all(checks));
        match Box::pin(checks).await?.into_iter().flatten().next() {
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
        let failure = attempts
            .iter_mut()
            .find_map(|attempt| attempt.failure.take());
        if let Some(error) = failure {
            let started = attempts.iter().filter(|attempt| attempt.is_started);
            let started = started.map(|attempt| attempt.at).collect();
            let allowed = attempts.iter().filter(|attempt| attempt.is_allowed);
            let allowed = allowed.map(|attempt| attempt.at).collect();
            let finished = attempts.into_iter().filter_map(|attempt| attempt.ran);
            let finished = finished.collect();
            self.run_mut().tools_failed(finished, started, allowed);
            return Err(error);
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
        });
        // Guardrails see what the tool will read.
        let arguments = tool.coerced(&arguments).map_or(arguments, Arc::from);
        let ctx = self.tool_context(call, arguments, &span);
        let ran = self
            .run_stages(tool, &ctx, call, attempt, &mut span)
            .await?;
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

    fn tool_context(
        &self,
        call: &ToolCall,
        arguments: Arc<str>,
        span: &OpenSpan,
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
        };
        ToolContext::new(self.ctx(), info)
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

    /// Runs the tool, unless it ran before, and passes its output through the guardrails.
    async fn run_stages<'a>(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        call: &ToolCall,
        attempt: &'a mut ToolAttempt,
        span: &mut OpenSpan,
    ) -> Result<&'a mut RanTool, Error> {
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
                        self.report_tool_start(call, ctx).await;
                        if !attempt.is_started {
                            let started = self.call_hooks(HookCall::ToolStart(tool, ctx)).await;
                            started
                                .inspect_err(|error| self.mark_failed_tool(span, tool, error))?;
                            attempt.is_started = true;
                        }
                        let start = Instant::now();
                        let (output, error) = self.invoke(tool, ctx, span).await?;
                        let took = start.elapsed();
                        RanTool::invoked(attempt.at, result(output), error, took)
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
        Ok(ran)
    }

    async fn report_tool_start(&self, call: &ToolCall, ctx: &ToolContext<C>) {
        self.emit(|| EventKind::ToolStarted {
            call_id: ctx.call_id().into(),
            tool: call.tool.clone(),
            arguments: call.call.arguments_value(),
        })
        .await;
    }

    /// The guardrails on a tool: its own, the agent's, the run's.
    fn tool_guardrails(&self, tool: &Tool<C>) -> Vec<ToolGuardrail<C>> {
        let own = tool.guardrails().iter();
        own.chain(&self.agent.def.tool_guardrails)
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
            if let ToolCheck::Call(check) = &guardrail.check {
                let asked = self.ask_tool_guardrail(&guardrail, || check(ctx.clone()), results);
                if let Some(output) = asked.await? {
                    return Ok(Some(output));
                }
            }
        }
        Ok(None)
    }

    /// Asks the guardrails on the output, each with the tool's own. The first replacement ends it.
    async fn check_tool_output(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        result: &mut ToolResult,
        results: &mut Vec<GuardrailResult>,
    ) -> Result<(), Error> {
        for guardrail in self.tool_guardrails(tool) {
            if let ToolCheck::Output(check) = &guardrail.check {
                let check = || check(ctx.clone(), result.output.clone());
                let asked = self.ask_tool_guardrail(&guardrail, check, results);
                if let Some(replacement) = asked.await? {
                    result.output = replacement;
                    // What the tool attached may say what the guardrail hides.
                    result.data = None;
                    return Ok(());
                }
            }
        }
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

    /// Returns the tool's output, or the failure text for the model and the failure.
    async fn invoke(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        span: &mut OpenSpan,
    ) -> Result<(ToolOutput, Option<ToolError>), Error> {
        let work = tool.invoke(ctx.clone());
        let error = match self.trace.within(span.id(), work).await {
            Ok(output) => return Ok((output, None)),
            Err(error) => error,
        };
        if tool.ends_run(&error) {
            self.mark_failed_tool(span, tool, &error);
            return Err(self.tool_failed(tool, error));
        }
        let data = || self.tool_error_data(tool, &error);
        span.fail_with("Error running tool (non-fatal)", data);
        let is_logged = self.config.trace_sensitive_data && environment().logs_tool_data;
        let logged = is_logged.then(|| error.to_string());
        tracing::warn!(
            tool = tool.name(),
            error = logged,
            "a tool failed; the model is told"
        );
        let text = match tool.failure_text(ctx.clone(), &error).await {
            Some(text) => text,
            None => {
                let call_id = ctx.call_id().into();
                self.formatted(error.clone(), ctx.tool().into(), call_id)
                    .await
            }
        };
        Ok((text.into(), Some(error)))
    }

    /// Marks the span of a tool whose failure ends the run: its own, or that of a guardrail or a hook.
    fn mark_failed_tool(&self, span: &mut OpenSpan, tool: &Tool<C>, error: &impl Display) {
        span.fail_with("Error running tool", || self.tool_error_data(tool, error));
    }

    /// The details of a tool's error for a span. The error may quote the arguments.
    fn tool_error_data(&self, tool: &Tool<C>, error: &impl Display) -> Value {
        let mut data = self.error_data(error);
        data["tool_name"] = tool.name().into();
        data
    }

    /// The text for the model about a call of a tool that does not exist.
    async fn not_found_text(&self, call: &ToolCall) -> String {
        let error = ToolError::new(ToolNotFound(call.tool.clone()));
        let call_id = call.call.call_id().unwrap_or_default().into();
        self.formatted(error, call.tool.clone(), call_id).await
    }

    /// The run's text for a failure, or the default.
    async fn formatted(&self, error: ToolError, tool: Arc<str>, call_id: Arc<str>) -> String {
        let default = error.default_text();
        let Some(text) = &self.config.tool_error_text else {
            return default;
        };
        let failure = ToolErrorMessage {
            error,
            tool,
            call_id,
            default_text: default.clone(),
        };
        let made = call(|| text.call(self.ctx(), failure));
        let made = self.trace.within(self.parent_span(), made);
        match Box::pin(made).await {
            Ok(text) => text.unwrap_or(default),
            Err(error) => {
                let error = environment().logs_tool_data.then(|| error.to_string());
                tracing::warn!(
                    error,
                    "the function for texts of tool errors failed; the model gets the default"
                );
                default
            }
        }
    }

    /// The error of a run that a tool's failure ends: that of a run inside the tool, where it is one.
    fn tool_failed(&self, tool: &Tool<C>, error: ToolError) -> Error {
        let inner = error.cause().downcast_ref::<Error>();
        let kind = match (inner, error.kind()) {
            (Some(inner), _) => inner.kind(),
            (None, ToolErrorKind::InvalidArguments) => ErrorKind::ModelBehavior,
            (None, _) => ErrorKind::Tool,
        };
        let name = tool.name();
        let message = match error.kind() {
            ToolErrorKind::InvalidArguments => {
                format!("invalid JSON input for tool \"{name}\": {error}")
            }
            _ => format!("the tool \"{name}\" failed: {error}"),
        };
        Error::new(kind, message)
            .caused_by(error)
            .at_agent(self.agent.name())
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
    /// Set once guardrails have allowed the call.
    is_allowed: bool,
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
