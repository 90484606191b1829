//! Running tools, and asking what their outputs mean.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_timer::Delay;
use futures_util::future::{Either, select};
use futures_util::stream::{self, StreamExt as _};

use super::Driver;
use super::hooks::Told;
use crate::agent::{ToolResult, ToolUseBehaviorKind};
use crate::callback::{BoxFuture, Outcome, call};
use crate::error::{Error, ErrorKind};
use crate::guardrail::{GuardrailResult, ToolCheck, ToolGuardrail, ToolVerdict};
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
        self.run.tool_guardrails.begin_attempt();
        let Step::RunTools(calls) = self.run.step() else {
            return Ok(());
        };
        let runs = (0..calls.len()).map(|at| RunOfTool {
            at,
            is_started: self.run.tools_started().contains(&at),
            ran: self
                .run
                .tools_done()
                .iter()
                .find(|ran| ran.at == at)
                .cloned(),
            ..RunOfTool::default()
        });
        let runs: Vec<RunOfTool> = runs.collect();
        let this = &*self;
        let ended = match (calls, runs) {
            ([call], mut runs) => {
                for run in &mut runs {
                    this.run_tool(call, run, &offer).await;
                }
                runs
            }
            (calls, runs) => this.run_side_by_side(calls, runs, &offer).await,
        };
        self.tools_ended(ended).await
    }

    async fn run_side_by_side(
        &self,
        calls: &[ToolCall],
        runs: Vec<RunOfTool>,
        offer: &Offer,
    ) -> Vec<RunOfTool> {
        let limit = self.config.tool_concurrency;
        let limit = limit.map_or(calls.len(), usize::from).max(1);
        let has_failed = &AtomicBool::new(false);
        // Boxed: otherwise every run would carry room for a list of these futures.
        let mut waiting: Vec<BoxFuture<'_, RunOfTool>> = Vec::new();
        for (call, mut run) in calls.iter().zip(runs) {
            waiting.push(Box::pin(async move {
                if run.ran.is_some() || !has_failed.load(Ordering::Relaxed) {
                    self.run_tool(call, &mut run, offer).await;
                    has_failed.fetch_or(run.failure.is_some(), Ordering::Relaxed);
                }
                run
            }));
        }
        stream::iter(waiting)
            .buffer_unordered(limit)
            .collect()
            .await
    }

    /// Notes what came of the tools. Where one of them failed, the run stays before them.
    async fn tools_ended(&mut self, mut runs: Vec<RunOfTool>) -> Result<(), Error> {
        for run in &mut runs {
            self.run.tool_guardrails.attempted(run.passed.drain(..));
        }
        self.run.tool_guardrails.settle();
        for run in &mut runs {
            self.run.tool_guardrails.attempted(run.asked.drain(..));
        }
        let failure = runs.iter_mut().find_map(|run| run.failure.take());
        if let Some(error) = failure {
            let started = runs.iter().filter(|run| run.is_started);
            let started = started.map(|run| run.at).collect();
            let done = runs.into_iter().filter_map(|run| run.ran).collect();
            self.run.tools_partly_ran(done, started);
            return Err(error);
        }
        runs.sort_by_key(|run| run.at);
        let ran = runs.into_iter().filter_map(|run| run.ran);
        let results = ran.map(|ran| ran.result).collect();
        let facts = Self::facts(&self.agent, &self.config, self.events.is_some());
        let recorded = self.run.record.len();
        self.run.tools_ran(results, facts);
        if let Step::CallModel = self.run.step() {
            self.tell_recorded_since(recorded).await;
        }
        Ok(())
    }

    /// Runs one tool, or what is left to do after it where it ran before the run was resumed.
    async fn run_tool(&self, call: &ToolCall, run: &mut RunOfTool, offer: &Offer) {
        let is_told = |ran: &RanTool| ran.stage == ToolStage::Told;
        if !run.ran.as_ref().is_some_and(is_told) {
            run.failure = self.run_tool_in_span(call, run, offer).await.err();
        }
    }

    async fn run_tool_in_span(
        &self,
        call: &ToolCall,
        run: &mut RunOfTool,
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
        let ran = self.ran(tool, &ctx, run).await?;
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

    /// What the tool returned, or returned before the run was resumed, once guardrails have passed
    /// it.
    async fn ran<'a>(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
        run: &'a mut RunOfTool,
    ) -> Result<&'a mut RanTool, Error> {
        let ran = match &mut run.ran {
            Some(ran) => ran,
            none => {
                if !run.is_started {
                    self.tell_hooks(Told::ToolStart(tool, ctx)).await?;
                    run.is_started = true;
                }
                let mut instead = None;
                if self.has_tool_guardrails(tool) {
                    // Boxed, as below: every run would otherwise carry room for it.
                    let asking = self.instead_of_call(tool, ctx, &mut run.asked);
                    instead = Box::pin(asking).await?;
                    run.passed.append(&mut run.asked);
                }
                let (output, failed, stage) = match instead {
                    Some(instead) => (instead, false, ToolStage::Checked),
                    None => {
                        let (output, failed) = self.invoke(tool, ctx).await;
                        (output, failed, ToolStage::Ran)
                    }
                };
                none.insert(RanTool {
                    at: run.at,
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
            if self.has_tool_guardrails(tool) {
                let output = &mut ran.result.output;
                let asking = self.checked_output(tool, ctx, output, &mut run.asked);
                *output = Box::pin(asking).await?;
                run.passed.append(&mut run.asked);
            }
            ran.stage = ToolStage::Checked;
        }
        Ok(ran)
    }

    fn has_tool_guardrails(&self, tool: &Tool<C>) -> bool {
        !(tool.guardrails().is_empty()
            && self.agent.tool_guardrails().is_empty()
            && self.config.tool_guardrails.is_empty())
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
        asked: &mut Vec<GuardrailResult>,
    ) -> Result<Option<ToolOutput>, Error> {
        for guardrail in self.tool_guardrails(tool) {
            if let ToolCheck::Call(check) = guardrail.tool_check() {
                let instead = self.ask_tool_guardrail(&guardrail, || check(ctx.clone()), asked);
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
        asked: &mut Vec<GuardrailResult>,
    ) -> Result<ToolOutput, Error> {
        let mut output = output.clone();
        for guardrail in self.tool_guardrails(tool) {
            if let ToolCheck::Output(check) = guardrail.tool_check() {
                let check = || check(ctx.clone(), output.clone());
                let instead = self.ask_tool_guardrail(&guardrail, check, asked);
                output = instead.await?.unwrap_or(output);
            }
        }
        Ok(output)
    }

    /// What the model is told instead; a tripwire is an error.
    async fn ask_tool_guardrail(
        &self,
        guardrail: &ToolGuardrail<C>,
        check: impl FnOnce() -> Outcome<ToolVerdict> + Send,
        asked: &mut Vec<GuardrailResult>,
    ) -> Result<Option<ToolOutput>, Error> {
        let (result, instead) = self.ask_replacing(guardrail.name_arc(), check).await?;
        let error = self.trip(ErrorKind::ToolGuardrail, std::slice::from_ref(&result));
        asked.push(result);
        error.map_or(Ok(instead), Err)
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
                if self.config.trace_sensitive_data {
                    tracing::warn!(tool = name, %error, "a tool failed; the model is told")
                } else {
                    tracing::warn!(tool = name, "a tool failed; the model is told")
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
            ToolUseBehaviorKind::Function(decide) => {
                call(|| decide(self.ctx(), results.to_vec())).await
            }
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

/// How far running a tool got.
#[derive(Default)]
struct RunOfTool {
    /// The place of its call.
    at: usize,
    /// Whether hooks were told of its start.
    is_started: bool,
    /// Where it ran: what it returned.
    ran: Option<RanTool>,
    /// What guardrails found that are not asked again.
    passed: Vec<GuardrailResult>,
    /// What guardrails found before something came in the way.
    asked: Vec<GuardrailResult>,
    /// What came in the way of its output.
    failure: Option<Error>,
}
