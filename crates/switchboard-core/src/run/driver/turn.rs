//! A turn without its handoff: guardrails, the model, tools, and the end of the run.

use std::sync::Arc;

use futures_util::future::{Either, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};
use serde_json::Value;

use super::Driver;
use crate::agent::{ToolResult, ToolUseKind};
use crate::callback::{BoxError, BoxFuture, Outcome};
use crate::error::{Error, ErrorKind};
use crate::guardrail::{GuardrailResult, GuardrailTiming, GuardrailVerdict};
use crate::model::{ModelEvent, ModelHandle, ModelRequest, ModelResponse, ModelSettings};
use crate::run::config::NameCollision;
use crate::run::events::StreamEvent;
use crate::run::machine::{Rejected, Step, ToolCall};
use crate::tool::ToolContext;
use crate::trace::{OpenSpan, SpanData};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Asks the model, and lets the machine decide what its answer means.
    pub(super) async fn call_model(&mut self) -> Result<(), Error> {
        self.turn_span = OpenSpan::default();
        self.open_agent_span();
        let turn = self.run.next_turn(self.config.max_turns)?;
        let name = self.agent.name_arc();
        self.turn_span = self.trace.span(self.agent_span.id(), || SpanData::Turn {
            turn,
            agent: name.clone(),
        });
        if !self.run.input_checked {
            self.run.input_guardrails.clear();
            self.check_input(GuardrailTiming::BeforeModel).await?;
        }
        self.start_agent().await?;
        let (model, request) = self.request().await?;
        let response = self.ask(&model, request).await?;
        self.run.input_checked = true;

        let offer = self.offer().await?;
        let facts = Self::facts(&self.agent, &self.config, self.events.is_some());
        let recorded = self.run.record.len();
        let seen = (!self.hooks_are_off()).then(|| response.clone());
        match self.run.answered(response, &offer, facts) {
            Ok(items) => self.tell_items(items).await,
            Err(Rejected {
                error,
                is_answer,
                items,
            }) => {
                self.tell_items(items).await;
                if is_answer {
                    self.model_answered_hooks(seen.as_ref()).await?;
                }
                return Err(error);
            }
        }
        self.model_answered_hooks(seen.as_ref()).await?;
        if let Step::CallModel = self.run.step() {
            self.tell_recorded_since(recorded).await;
        }
        Ok(())
    }

    fn hooks_are_off(&self) -> bool {
        self.hooks().is_none() && self.agent.agent_hooks().is_none()
    }

    async fn start_agent(&mut self) -> Result<(), Error> {
        self.offer = None;
        if self.run.agent_started {
            return Ok(());
        }
        if !self.hooks_are_off() {
            let ctx = self.ctx();
            let told = async {
                if let Some(hooks) = self.hooks() {
                    hooks.agent_start(&ctx, &self.agent).await?;
                }
                if let Some(hooks) = self.agent.agent_hooks() {
                    hooks.start(&ctx, &self.agent).await?;
                }
                Ok(())
            };
            let told: Result<(), BoxError> = told.await;
            told.map_err(|error| self.user_error("a hook on the agent's start", error))?;
        }
        self.run.agent_started = true;
        Ok(())
    }

    /// What the model is asked, and the model.
    async fn request(&mut self) -> Result<(ModelHandle, ModelRequest), Error> {
        let offer = self.offer().await?;
        if let Some(problem) = offer.problem() {
            return Err(self.configuration(problem));
        }
        if let (NameCollision::Fail, Some(collision)) =
            (self.config.name_collision, offer.collision())
        {
            return Err(self.configuration(collision));
        }
        if self.trace.is_on() {
            self.agent_span.update(|data| {
                if let SpanData::Agent {
                    handoffs, tools, ..
                } = data
                {
                    *handoffs = offer
                        .handoffs
                        .iter()
                        .map(|spec| spec.agent_name.clone())
                        .collect();
                    *tools = offer.tools.iter().map(|spec| spec.name.clone()).collect();
                }
            });
        }
        let model = self
            .config
            .model
            .as_ref()
            .or_else(|| self.agent.own_model());
        let model = model.cloned().ok_or_else(|| {
            self.configuration(
                "there is no model to answer; give the agent one with Agent::model, or the whole \
                 run with Runner::model",
            )
        })?;
        let ctx = self.ctx();
        let instructions = self.agent.resolve_instructions(&ctx).await;
        let instructions = instructions
            .map_err(|error| self.user_error("the function that makes the instructions", error))?;
        let input = self.run.model_input();
        let request = ModelRequest {
            instructions,
            input,
            settings: self.settings(),
            tools: offer.tools.clone(),
            handoffs: offer.handoffs.clone(),
            output: self.agent.output_type().cloned(),
        };
        if !self.hooks_are_off() {
            let told = async {
                if let Some(hooks) = self.hooks() {
                    hooks.llm_start(&ctx, &self.agent, &request).await?;
                }
                if let Some(hooks) = self.agent.agent_hooks() {
                    hooks.llm_start(&ctx, &self.agent, &request).await?;
                }
                Ok(())
            };
            let told: Result<(), BoxError> = told.await;
            told.map_err(|error| self.user_error("a hook on the model's start", error))?;
        }
        Ok((model, request))
    }

    fn configuration(&self, problem: &str) -> Error {
        Error::new(ErrorKind::Configuration, problem).at_agent(self.agent.name())
    }

    /// The agent's settings, overridden by the run's, with a forced tool choice taken back once
    /// the agent has used a tool.
    fn settings(&self) -> Arc<ModelSettings> {
        let own = self.agent.settings();
        let merged = match &self.config.model_settings {
            Some(run) => Arc::new(own.overridden_by(run)),
            None => own.clone(),
        };
        let reset = merged.tool_choice.is_some()
            && !self.agent.keeps_tool_choice()
            && self.run.has_used_tools();
        if !reset {
            return merged;
        }
        let mut settings = (*merged).clone();
        settings.tool_choice = None;
        Arc::new(settings)
    }

    /// The model's answer, with the guardrails that run beside it.
    async fn ask(
        &mut self,
        model: &ModelHandle,
        request: ModelRequest,
    ) -> Result<ModelResponse, Error> {
        let has_beside = !self.run.input_checked
            && self
                .agent
                .input_guardrails()
                .iter()
                .chain(&self.config.input_guardrails)
                .any(|guardrail| guardrail.timing() == GuardrailTiming::BesideModel);
        if !has_beside {
            return self.generate(model, request).await;
        }
        let (found, answer) = {
            let checks = Box::pin(self.run_input_guardrails(GuardrailTiming::BesideModel));
            let answer = Box::pin(self.generate(model, request));
            match select(checks, answer).await {
                // A tripwire cancels the call, which is dropped unanswered.
                Either::Left((found, answer)) => {
                    let found = found?;
                    match tripped(&found) {
                        Some(_) => (found, None),
                        None => (found, Some(answer.await)),
                    }
                }
                Either::Right((answer, checks)) => (checks.await?, Some(answer)),
            }
        };
        match answer {
            Some(answer) if tripped(&found).is_none() => {
                self.run.input_guardrails.extend(found);
                answer
            }
            _ => Err(self.guardrails_found(ErrorKind::InputGuardrail, found)),
        }
    }

    async fn generate(
        &self,
        model: &ModelHandle,
        request: ModelRequest,
    ) -> Result<ModelResponse, Error> {
        let mut span = self
            .trace
            .span(self.parent_span(), || SpanData::Generation {
                model: model.name().to_owned(),
                input_items: request.input.len(),
                usage: crate::model::Usage::default(),
                output: None,
            });
        let answer = match &self.events {
            None => model.respond(request).await,
            Some(_) => Box::pin(self.listen(model, request)).await,
        };
        match answer {
            Ok(response) => {
                let sensitive = self.config.trace_sensitive_data;
                span.update(|data| {
                    if let SpanData::Generation { usage, output, .. } = data {
                        *usage = response.usage;
                        *output = sensitive
                            .then(|| serde_json::to_value(&response.output).ok())
                            .flatten();
                    }
                });
                Ok(response)
            }
            Err(error) => {
                span.fail("the model failed", Vec::new());
                Err(match error.downcast::<NoFinalResponse>() {
                    Ok(error) => Error::new(ErrorKind::ModelBehavior, error.to_string()),
                    Err(error) => {
                        let message = format!("the model could not answer: {error}");
                        Error::new(ErrorKind::Model, message).caused_by(error)
                    }
                })
            }
        }
    }

    /// The model's answer, piece by piece.
    async fn listen(
        &self,
        model: &ModelHandle,
        request: ModelRequest,
    ) -> Result<ModelResponse, BoxError> {
        let mut stream = model.stream(request);
        let mut response = None;
        while let Some(event) = stream.next().await {
            let event = event?;
            if let ModelEvent::Completed(answer) = &event {
                response = Some(answer.clone());
            }
            self.tell(|_| StreamEvent::Model(event)).await;
        }
        response.ok_or_else(|| NoFinalResponse.into())
    }

    async fn model_answered_hooks(&self, response: Option<&ModelResponse>) -> Result<(), Error> {
        let Some(response) = response else {
            return Ok(());
        };
        let ctx = self.ctx();
        let told = async {
            if let Some(hooks) = self.agent.agent_hooks() {
                hooks.llm_end(&ctx, &self.agent, response).await?;
            }
            if let Some(hooks) = self.hooks() {
                hooks.llm_end(&ctx, &self.agent, response).await?;
            }
            Ok(())
        };
        let told: Result<(), BoxError> = told.await;
        told.map_err(|error| self.user_error("a hook on the model's end", error))
    }

    /// Runs the tools of a response side by side.
    pub(super) async fn run_tools(&mut self) -> Result<(), Error> {
        let offer = self.offer().await?;
        let Step::RunTools(calls) = self.run.step() else {
            return Ok(());
        };
        let this = &*self;
        let results = match calls {
            [] => Vec::new(),
            [call] => vec![this.run_tool(call, &offer).await?],
            calls => {
                let limit = self
                    .config
                    .tool_concurrency
                    .map_or(calls.len(), usize::from);
                // Boxed: otherwise every run would carry room for a list of these futures.
                let mut running: Vec<BoxFuture<'_, Result<ToolResult, Error>>> = Vec::new();
                for call in calls {
                    running.push(Box::pin(this.run_tool(call, &offer)));
                }
                let mut running = futures_util::stream::iter(running).buffered(limit);
                let mut results = Vec::with_capacity(calls.len());
                while let Some(result) = running.next().await {
                    results.push(result?);
                }
                results
            }
        };
        let facts = Self::facts(&self.agent, &self.config, self.events.is_some());
        let recorded = self.run.record.len();
        self.run.tools_ran(results, facts);
        if let Step::CallModel = self.run.step() {
            self.tell_recorded_since(recorded).await;
        }
        Ok(())
    }

    async fn run_tool(
        &self,
        call: &ToolCall,
        offer: &crate::offer::Offer,
    ) -> Result<ToolResult, Error> {
        let agent = &self.agent;
        let Some(tool) = offer.tool(agent, &call.tool) else {
            return Err(self.configuration(&format!(
                "the tool \"{}\" was called and is no longer there; the run was resumed with other \
                 tools than it had",
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
        let ctx = self.ctx();
        let hook_error = |error| self.user_error("a hook on a tool", error);
        if let Some(hooks) = self.hooks() {
            hooks
                .tool_start(&ctx, agent, tool)
                .await
                .map_err(hook_error)?;
        }
        if let Some(hooks) = agent.agent_hooks() {
            hooks
                .tool_start(&ctx, agent, tool)
                .await
                .map_err(hook_error)?;
        }
        let tool_ctx = ToolContext::new(
            ctx.clone(),
            agent.name_arc().clone(),
            call.tool.clone(),
            call_id.as_ref().into(),
            arguments,
        );
        let (output, failed) = match tool.invoke(tool_ctx.clone()).get().await {
            Ok(output) => (output, false),
            Err(error) => {
                tracing::warn!(tool = &*call.tool, %error, "a tool failed; the model is told");
                (tool.failure_text(&tool_ctx, &error).into(), true)
            }
        };
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
        if let Some(hooks) = self.hooks() {
            hooks
                .tool_end(&ctx, agent, tool, &output)
                .await
                .map_err(hook_error)?;
        }
        if let Some(hooks) = agent.agent_hooks() {
            hooks
                .tool_end(&ctx, agent, tool, &output)
                .await
                .map_err(hook_error)?;
        }
        Ok(ToolResult {
            tool: call.tool.clone(),
            output,
        })
    }

    /// Asks the agent's own function whether what the tools returned is the final output.
    pub(super) async fn judge_tools(&mut self) -> Result<(), Error> {
        let Step::JudgeTools(results) = self.run.step() else {
            return Ok(());
        };
        let verdict = match self.agent.tool_use_kind() {
            ToolUseKind::Function(decide) => decide(self.ctx(), results.to_vec()),
            _ => Outcome::Ready(Ok(None)),
        };
        let verdict = verdict.get().await;
        let verdict = verdict
            .map_err(|error| self.user_error("the function that decides after tools", error))?;
        let recorded = self.run.record.len();
        self.run.tools_judged(verdict);
        if let Step::CallModel = self.run.step() {
            self.tell_recorded_since(recorded).await;
        }
        Ok(())
    }

    /// Tells hooks and asks guardrails about the final output, and ends the run.
    pub(super) async fn conclude(&mut self) -> Result<(), Error> {
        let Step::Conclude(output) = self.run.step() else {
            return Ok(());
        };
        let output = output.clone();
        let items = self.run.last_turn_items().to_vec();
        self.tell_items(items).await;
        if !self.hooks_are_off() {
            let ctx = self.ctx();
            let told = async {
                if let Some(hooks) = self.hooks() {
                    hooks.agent_end(&ctx, &self.agent, &output).await?;
                }
                if let Some(hooks) = self.agent.agent_hooks() {
                    hooks.end(&ctx, &self.agent, &output).await?;
                }
                Ok(())
            };
            let told: Result<(), BoxError> = told.await;
            told.map_err(|error| self.user_error("a hook on the agent's end", error))?;
        }
        self.turn_span = OpenSpan::default();
        self.run.output_guardrails.clear();
        let guardrails = self.agent.output_guardrails().iter();
        let guardrails = guardrails.chain(&self.config.output_guardrails);
        let checks = guardrails.map(|guardrail| {
            let verdict = guardrail.check(self.ctx(), self.agent.clone(), output.clone());
            self.run_guardrail(guardrail.name_arc(), verdict)
        });
        let found = Box::pin(self.until_one_trips(checks.collect())).await?;
        if tripped(&found).is_some() {
            let withheld = self.run.withheld_items();
            if !withheld.is_empty() && self.run.has_session {
                self.run.unsaved = withheld;
                self.save().await?;
            }
            return Err(self.guardrails_found(ErrorKind::OutputGuardrail, found));
        }
        self.run.output_guardrails.extend(found);
        self.run.concluded();
        self.told.clear();
        Ok(())
    }

    /// Runs the input guardrails of one timing; a tripwire is an error.
    async fn check_input(&mut self, timing: GuardrailTiming) -> Result<(), Error> {
        let found = self.run_input_guardrails(timing).await?;
        if tripped(&found).is_some() {
            return Err(self.guardrails_found(ErrorKind::InputGuardrail, found));
        }
        self.run.input_guardrails.extend(found);
        Ok(())
    }

    async fn run_input_guardrails(
        &self,
        timing: GuardrailTiming,
    ) -> Result<Vec<GuardrailResult>, Error> {
        let own = self.agent.input_guardrails().iter();
        let all = own.chain(&self.config.input_guardrails);
        let checks = all.filter(|guardrail| guardrail.timing() == timing);
        let checks = checks.map(|guardrail| {
            let input = self.run.input.clone();
            let verdict = guardrail.check(self.ctx(), self.agent.clone(), input);
            self.run_guardrail(guardrail.name_arc(), verdict)
        });
        let checks: FuturesUnordered<_> = checks.collect();
        if checks.is_empty() {
            return Ok(Vec::new());
        }
        Box::pin(self.until_one_trips(checks)).await
    }

    async fn run_guardrail(
        &self,
        name: &Arc<str>,
        verdict: Outcome<GuardrailVerdict>,
    ) -> Result<GuardrailResult, Error> {
        let mut span = self.trace.span(self.parent_span(), || SpanData::Guardrail {
            name: name.clone(),
            triggered: false,
        });
        let verdict = verdict.get().await;
        let verdict = verdict
            .map_err(|error| self.user_error(&format!("the guardrail \"{name}\""), error))?;
        span.update(|data| {
            if let SpanData::Guardrail { triggered, .. } = data {
                *triggered = verdict.tripped;
            }
        });
        Ok(GuardrailResult {
            guardrail: name.clone(),
            agent: self.agent.name_arc().clone(),
            verdict,
        })
    }

    /// Waits for all checks, or for the first that trips; the others are then cancelled.
    async fn until_one_trips<F>(
        &self,
        mut checks: FuturesUnordered<F>,
    ) -> Result<Vec<GuardrailResult>, Error>
    where
        F: Future<Output = Result<GuardrailResult, Error>>,
    {
        let mut found = Vec::new();
        while let Some(result) = checks.next().await {
            let result = result?;
            let tripped = result.verdict.tripped;
            found.push(result);
            if tripped {
                break;
            }
        }
        Ok(found)
    }

    /// Notes what guardrails found, one of which tripped, and says so.
    fn guardrails_found(&mut self, kind: ErrorKind, found: Vec<GuardrailResult>) -> Error {
        let name = tripped(&found).map_or_else(String::new, |result| result.guardrail.to_string());
        let info = tripped(&found).map(|result| &result.verdict.info);
        let because = match info {
            Some(info) if *info != Value::Null => format!(": {info}"),
            _ => String::new(),
        };
        let what = if kind == ErrorKind::InputGuardrail {
            "input"
        } else {
            "output"
        };
        let error = Error::new(
            kind,
            format!("the {what} guardrail \"{name}\" tripped{because}"),
        );
        let error = match tripped(&found) {
            Some(result) => error.with_guardrail(result.clone()),
            None => error,
        };
        match kind {
            ErrorKind::InputGuardrail => self.run.input_guardrails.extend(found),
            _ => self.run.output_guardrails.extend(found),
        }
        error.at_agent(self.agent.name())
    }
}

fn tripped(found: &[GuardrailResult]) -> Option<&GuardrailResult> {
    found.iter().find(|result| result.verdict.tripped)
}

/// A stream of a model that ended before the answer did.
#[derive(Debug)]
struct NoFinalResponse;

impl std::fmt::Display for NoFinalResponse {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the model's stream ended without a complete answer")
    }
}

impl std::error::Error for NoFinalResponse {}
