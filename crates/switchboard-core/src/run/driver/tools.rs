//! Running tools, and asking what their outputs mean.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_timer::Delay;
use futures_util::future::{Either, select};
use futures_util::stream::{self, StreamExt as _};

use super::Driver;
use super::hooks::Told;
use crate::agent::{ToolResult, ToolUseKind};
use crate::callback::{BoxFuture, Outcome, call};
use crate::error::{Error, ErrorKind};
use crate::guardrail::{ToolCheck, ToolGuardrail, ToolVerdict};
use crate::offer::Offer;
use crate::run::machine::Step;
use crate::run::turn::{RanTool, ToolCall, ToolStage};
use crate::tool::{ThisCall, TimedOut, Tool, ToolContext, ToolOutput};
use crate::trace::SpanData;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Runs the tools of a response side by side. When one of them fails, those under way are waited
    /// for and no other begins; none that ran does so again when the run is resumed.
    pub(super) async fn run_tools(&mut self) -> Result<(), Error> {
        let offer = self.offer().await?;
        let Step::RunTools(calls) = self.run.step() else {
            return Ok(());
        };
        let mut done = self.run.tools_done().to_vec();
        let this = &*self;
        let failure = match calls {
            [call] => {
                let outcome = this.run_tool(call, done.pop(), 0, &offer).await;
                outcome.settle(&mut done)
            }
            calls => {
                let limit = self
                    .config
                    .tool_concurrency
                    .map_or(calls.len(), usize::from);
                let has_failed = AtomicBool::new(false);
                let (offer, has_failed) = (&offer, &has_failed);
                // Boxed: otherwise every run would carry room for a list of these futures.
                let mut waiting: Vec<BoxFuture<'_, Option<RunOfTool>>> = Vec::new();
                for (at, call) in calls.iter().enumerate() {
                    let ran = done.iter().position(|ran| ran.at == at);
                    let ran = ran.map(|place| done.swap_remove(place));
                    waiting.push(Box::pin(async move {
                        if ran.is_none() && has_failed.load(Ordering::Relaxed) {
                            return None;
                        }
                        let outcome = this.run_tool(call, ran, at, offer).await;
                        has_failed.fetch_or(outcome.failure.is_some(), Ordering::Relaxed);
                        Some(outcome)
                    }));
                }
                let mut running = stream::iter(waiting).buffer_unordered(limit.max(1));
                let mut failure = None;
                while let Some(outcome) = running.next().await {
                    let failed = outcome.and_then(|outcome| outcome.settle(&mut done));
                    failure = failure.or(failed);
                }
                failure
            }
        };
        if let Some(error) = failure {
            self.run.tools_partly_ran(done);
            return Err(error);
        }
        done.sort_by_key(|ran| ran.at);
        let results = done.into_iter().map(|ran| ran.result).collect();
        let facts = Self::facts(&self.agent, &self.config, self.events.is_some());
        let recorded = self.run.record.len();
        self.run.tools_ran(results, facts);
        if let Step::CallModel = self.run.step() {
            self.tell_recorded_since(recorded).await;
        }
        Ok(())
    }

    /// Runs one tool, or what is left to do after it where it ran before the run was resumed.
    async fn run_tool(
        &self,
        call: &ToolCall,
        mut ran: Option<RanTool>,
        at: usize,
        offer: &Offer,
    ) -> RunOfTool {
        if ran.as_ref().is_some_and(|ran| ran.stage == ToolStage::Told) {
            return RunOfTool { ran, failure: None };
        }
        let failure = self.run_tool_in_span(call, &mut ran, at, offer).await.err();
        RunOfTool { ran, failure }
    }

    async fn run_tool_in_span(
        &self,
        call: &ToolCall,
        ran: &mut Option<RanTool>,
        at: usize,
        offer: &Offer,
    ) -> Result<(), Error> {
        let agent = &self.agent;
        let Some(tool) = offer.tool(agent, &call.tool) else {
            return Err(self.configuration(format!(
                "the model called the tool \"{}\", and the agent the run was resumed with has none \
                 of that name",
                call.tool
            )));
        };
        let arguments: Arc<str> = call.call.arguments().unwrap_or_default().into();
        let call_id = call.call.call_id().unwrap_or_default();
        let sensitive = self.config.trace_sensitive_data;
        let mut span = self.trace.span(self.parent_span(), || SpanData::Function {
            name: call.tool.clone(),
            input: sensitive.then(|| arguments.clone()),
            output: None,
            failed: false,
        });
        let this_call = ThisCall {
            agent: agent.name_arc().clone(),
            tool: call.tool.clone(),
            call_id: call_id.as_ref().into(),
            arguments,
        };
        let (config, team) = (self.config.clone(), self.agent.team());
        let ctx = ToolContext::new(self.ctx(), this_call, config, team);
        let ran = match ran {
            Some(ran) => ran,
            none => {
                self.tell_hooks(Told::ToolStart(tool, &ctx)).await?;
                let (output, failed, stage) = match self.instead_of_call(tool, &ctx).await? {
                    Some(instead) => (instead, false, ToolStage::Checked),
                    None => {
                        let (output, failed) = self.invoke(tool, &ctx).await;
                        (output, failed, ToolStage::Ran)
                    }
                };
                let result = ToolResult {
                    tool: call.tool.clone(),
                    output,
                };
                none.insert(RanTool {
                    at,
                    result,
                    failed,
                    stage,
                })
            }
        };
        if ran.stage == ToolStage::Ran {
            ran.result.output = self.checked_output(tool, &ctx, &ran.result.output).await?;
            ran.stage = ToolStage::Checked;
        }
        let output = &ran.result.output;
        span.update(|data| {
            if let SpanData::Function {
                output: text,
                failed,
                ..
            } = data
            {
                *text = sensitive.then(|| output.text().into_owned());
                *failed = ran.failed;
            }
        });
        self.tell_hooks(Told::ToolEnd(tool, &ctx, output)).await?;
        ran.stage = ToolStage::Told;
        Ok(())
    }

    /// The guardrails on a tool: its own, the agent's, the run's.
    fn tool_guardrails(&self, tool: &Tool<C>) -> Vec<ToolGuardrail<C>> {
        let own = tool.guardrails().iter();
        let all = own.chain(self.agent.tool_guardrails());
        all.chain(&self.config.tool_guardrails).cloned().collect()
    }

    /// What the model is told instead of running the tool.
    async fn instead_of_call(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
    ) -> Result<Option<ToolOutput>, Error> {
        for guardrail in self.tool_guardrails(tool) {
            if let ToolCheck::Call(check) = guardrail.tool_check() {
                let instead = self.ask_tool_guardrail(&guardrail, || check(ctx.clone()));
                if let Some(instead) = instead.await? {
                    return Ok(Some(instead));
                }
            }
        }
        Ok(None)
    }

    /// What guardrails make of a tool's output, each given what the one before it made of it.
    async fn checked_output(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        output: &ToolOutput,
    ) -> Result<ToolOutput, Error> {
        let mut output = output.clone();
        for guardrail in self.tool_guardrails(tool) {
            if let ToolCheck::Output(check) = guardrail.tool_check() {
                let check = || check(ctx.clone(), output.clone());
                let instead = self.ask_tool_guardrail(&guardrail, check).await?;
                output = instead.unwrap_or(output);
            }
        }
        Ok(output)
    }

    /// What the model is told instead; a tripwire is an error.
    async fn ask_tool_guardrail(
        &self,
        guardrail: &ToolGuardrail<C>,
        check: impl FnOnce() -> Outcome<ToolVerdict> + Send,
    ) -> Result<Option<ToolOutput>, Error> {
        let (result, instead) = self.ask_replacing(guardrail.name_arc(), check).await?;
        match result.verdict.tripped {
            true => Err(self.guardrail_tripped(ErrorKind::ToolGuardrail, result)),
            false => Ok(instead),
        }
    }

    /// What the tool returned, or what the model is told of its failure.
    async fn invoke(&self, tool: &Tool<C>, ctx: &ToolContext<C>) -> (ToolOutput, bool) {
        let work = call(|| tool.invoke(ctx.clone()));
        let outcome = match tool.timeout() {
            None => work.await,
            Some(after) => match select(Box::pin(work), Delay::new(after)).await {
                Either::Left((outcome, _)) => outcome,
                // What is left of the work is dropped, which cancels it.
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
                // The error may quote what the tool was given.
                match self.config.trace_sensitive_data {
                    true => tracing::warn!(tool = name, %error, "a tool failed; the model is told"),
                    false => tracing::warn!(tool = name, "a tool failed; the model is told"),
                }
                (tool.failure_text(ctx, &error).into(), true)
            }
        }
    }

    /// Asks the agent's own function whether what the tools returned is the final output.
    pub(super) async fn judge_tools(&mut self) -> Result<(), Error> {
        let Step::JudgeTools(results) = self.run.step() else {
            return Ok(());
        };
        let verdict = match self.agent.tool_use_kind() {
            ToolUseKind::Function(decide) => call(|| decide(self.ctx(), results.to_vec())).await,
            _ => Ok(None),
        };
        let verdict = verdict
            .map_err(|error| self.user_error("the function that decides after tools", error))?;
        let recorded = self.run.record.len();
        self.run.tools_judged(verdict);
        if let Step::CallModel = self.run.step() {
            self.tell_recorded_since(recorded).await;
        }
        Ok(())
    }
}

/// What came of running a tool.
struct RunOfTool {
    /// Where it ran: what it returned.
    ran: Option<RanTool>,
    /// What came in the way of its output.
    failure: Option<Error>,
}

impl RunOfTool {
    /// Keeps what the tool returned, and gives what came in the way.
    fn settle(self, done: &mut Vec<RanTool>) -> Option<Error> {
        done.extend(self.ran);
        self.failure
    }
}
