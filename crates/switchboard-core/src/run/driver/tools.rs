//! Running tools, and asking what their outputs mean.

use std::sync::Arc;

use futures_timer::Delay;
use futures_util::future::{Either, select};
use futures_util::stream::{self, StreamExt as _};

use super::Driver;
use super::hooks::Told;
use crate::agent::{ToolResult, ToolUseKind};
use crate::callback::{BoxFuture, Outcome, call};
use crate::error::{Error, ErrorKind};
use crate::guardrail::{GuardrailResult, GuardrailVerdict, ToolCheck, ToolGuardrail, ToolVerdict};
use crate::offer::Offer;
use crate::run::machine::Step;
use crate::run::turn::ToolCall;
use crate::tool::{ThisCall, TimedOut, Tool, ToolContext, ToolOutput};
use crate::trace::SpanData;

impl<C: Send + Sync + 'static> Driver<C> {
    /// Runs the tools of a response side by side. Those that ran before one of them failed do not
    /// run again when the run is resumed.
    pub(super) async fn run_tools(&mut self) -> Result<(), Error> {
        let offer = self.offer().await?;
        let Step::RunTools(calls) = self.run.step() else {
            return Ok(());
        };
        let mut done = self.run.tools_done().to_vec();
        let this = &*self;
        let failure = match calls {
            [call] if done.is_empty() => match this.run_tool(call, &offer).await {
                Ok(result) => {
                    done.push((0, result));
                    None
                }
                Err(error) => Some(error),
            },
            calls => {
                let limit = self
                    .config
                    .tool_concurrency
                    .map_or(calls.len(), usize::from);
                // Boxed: otherwise every run would carry room for a list of these futures.
                let mut waiting: Vec<BoxFuture<'_, (usize, Result<ToolResult, Error>)>> =
                    Vec::new();
                for (at, call) in calls.iter().enumerate() {
                    if !done.iter().any(|(place, _)| *place == at) {
                        let offer = &offer;
                        let run = async move { (at, this.run_tool(call, offer).await) };
                        waiting.push(Box::pin(run));
                    }
                }
                let mut running = stream::iter(waiting).buffer_unordered(limit.max(1));
                let mut failure = None;
                while let Some((at, result)) = running.next().await {
                    match result {
                        Ok(result) => done.push((at, result)),
                        Err(error) => {
                            failure = Some(error);
                            break;
                        }
                    }
                }
                failure
            }
        };
        if let Some(error) = failure {
            self.run.tools_partly_ran(done);
            return Err(error);
        }
        done.sort_by_key(|(at, _)| *at);
        let results = done.into_iter().map(|(_, result)| result).collect();
        let facts = Self::facts(&self.agent, &self.config, self.events.is_some());
        let recorded = self.run.record.len();
        self.run.tools_ran(results, facts);
        if let Step::CallModel = self.run.step() {
            self.tell_recorded_since(recorded).await;
        }
        Ok(())
    }

    async fn run_tool(&self, call: &ToolCall, offer: &Offer) -> Result<ToolResult, Error> {
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
        self.tell_hooks(Told::ToolStart(tool)).await?;
        let this_call = ThisCall {
            agent: agent.name_arc().clone(),
            tool: call.tool.clone(),
            call_id: call_id.as_ref().into(),
            arguments,
        };
        let ctx = ToolContext::new(self.ctx(), this_call, self.config.clone());
        let (output, failed) = self.invoke_guarded(tool, &ctx).await?;
        span.update(|data| {
            if let SpanData::Function {
                output: text,
                failed: has_failed,
                ..
            } = data
            {
                *text = sensitive.then(|| output.text().into_owned());
                *has_failed = failed;
            }
        });
        self.tell_hooks(Told::ToolEnd(tool, &output)).await?;
        Ok(ToolResult {
            tool: call.tool.clone(),
            output,
            usage: ctx.used(),
        })
    }

    /// Runs the tool between the guardrails on its call and those on its output. Returns what the
    /// model is told, and whether the tool failed.
    async fn invoke_guarded(
        &self,
        tool: &Tool<C>,
        ctx: &ToolContext<C>,
    ) -> Result<(ToolOutput, bool), Error> {
        for guardrail in tool.guardrails() {
            if let ToolCheck::Call(check) = guardrail.tool_check()
                && let Some(instead) = self
                    .ask_tool_guardrail(guardrail, || check(ctx.clone()))
                    .await?
            {
                return Ok((instead.into(), false));
            }
        }
        let (mut output, failed) = self.invoke(tool, ctx).await;
        for guardrail in tool.guardrails() {
            if let ToolCheck::Output(check) = guardrail.tool_check() {
                let instead = self
                    .ask_tool_guardrail(guardrail, || check(ctx.clone(), output.clone()))
                    .await?;
                // The next one sees what this one made of it.
                output = instead.map_or(output, ToolOutput::from);
            }
        }
        Ok((output, failed))
    }

    /// What the model is told instead; a tripwire is an error.
    async fn ask_tool_guardrail(
        &self,
        guardrail: &ToolGuardrail<C>,
        check: impl FnOnce() -> Outcome<ToolVerdict> + Send,
    ) -> Result<Option<String>, Error> {
        let mut span = self.guardrail_span(guardrail.name_arc());
        let verdict = call(check).await.map_err(|error| {
            self.user_error(&format!("the guardrail \"{}\"", guardrail.name()), error)
        })?;
        let info = match verdict {
            ToolVerdict::Allow => return Ok(None),
            ToolVerdict::Replace(text) => return Ok(Some(text)),
            ToolVerdict::Trip(info) => info,
        };
        span.update(|data| {
            if let SpanData::Guardrail { triggered, .. } = data {
                *triggered = true;
            }
        });
        let message = format!(
            "the tool guardrail \"{}\" tripped: {info}",
            guardrail.name()
        );
        let result = GuardrailResult {
            guardrail: guardrail.name_arc().clone(),
            agent: self.agent.name_arc().clone(),
            verdict: GuardrailVerdict::trip().info(info),
        };
        let error = Error::new(ErrorKind::ToolGuardrail, message);
        Err(error.at_agent(self.agent.name()).with_guardrail(result))
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
