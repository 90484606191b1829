//! Asking the model, and what its answer leads to.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::{Either, select};
use futures_util::stream::StreamExt as _;

use super::guardrails::has_tripped;
use super::hooks::Told;
use super::{Driver, Soon, at_once, later};
use crate::callback::{BoxError, BoxFuture, call, caught, no_panic};
use crate::error::{Error, ErrorKind};
use crate::guardrail::InputKind;
use crate::items::RunItem;
use crate::model::{ModelEvent, ModelHandle, ModelRequest, ModelResponse, ModelSettings, Usage};
use crate::offer::Offer;
use crate::prompt::naming_colleagues;
use crate::run::config::{NameCollision, ServerHistory};
use crate::run::events::StreamEvent;
use crate::run::machine::{InputChecks, Rejected, Step};
use crate::run::model_filter::ModelFilter;
use crate::run::model_input;
use crate::run::recovery::RunProblem;
use crate::trace::{OpenSpan, SpanData};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Asks the model, and lets the machine decide what its answer means.
    pub(super) async fn call_model(&mut self) -> Result<(), Error> {
        self.trace.end([&mut self.turn_span]);
        self.open_agent_span();
        let turn = match self.run.next_turn(self.config.max_turns) {
            Ok(turn) => turn,
            Err(error) => {
                let recovery = async {
                    // What the run ends with is stored, and so is the input then.
                    if self.config.recovery.is_some() {
                        self.pass_input().await?;
                    }
                    self.recover(RunProblem::MaxTurns, error, Vec::new()).await
                };
                return Box::pin(recovery).await;
            }
        };
        let name = self.agent.name_arc();
        let data = || SpanData::Turn {
            turn,
            agent: name.clone(),
        };
        let parent = self.agent_span.id();
        self.trace.begin(&mut self.turn_span, parent, data);
        self.pass_input().await?;
        self.offer = None;
        if !self.run.agent_started {
            self.tell_hooks(Told::AgentStart).await?;
            self.run.agent_started = true;
        }
        let offer = self.offer().await?;
        self.expect_no_problem(&offer)?;
        let model = self.config.model.as_ref();
        let model = model.or_else(|| self.agent.own_model()).cloned();
        let model = model.ok_or_else(|| {
            self.configuration(
                "there is no model to answer; give the agent one with Agent::model, or the whole \
                 run with Runner::model",
            )
        })?;
        let instructions = match self.agent.fixed_instructions() {
            Some(fixed) => fixed.cloned(),
            None => {
                let made = Box::pin(self.agent.make_instructions(self.ctx())).await;
                made.map_err(|error| {
                    self.user_error("the function that makes the instructions", error)
                })?
            }
        };
        let mut span = std::mem::take(&mut self.spare_span);
        // A request is passed on at once, as this would otherwise keep room for it.
        let response = if self.asks_plainly() {
            let request = self.request(&offer, instructions);
            self.generate(&model, request, &mut span).await?
        } else {
            let request = self.request(&offer, instructions);
            Box::pin(self.ask_with_care(&model, request, &mut span)).await?
        };
        self.spare_span = span;
        self.run.input_checks = InputChecks::Passed;
        self.can_be_followed(&response)?;
        self.take_answer(response, &offer).await
    }

    /// Whether the next request can go on from a response, where the provider keeps it.
    fn can_be_followed(&self, response: &ModelResponse) -> Result<(), Error> {
        let history = &self.config.server_history;
        let follows = matches!(history, Some(ServerHistory::Responses { .. }));
        if follows && response.response_id.is_none() {
            Err(self.configuration(
                "the provider keeps the conversation, and its response has no identifier to go on \
                 from; use a model that gives one (over Responses, not Chat Completions)",
            ))
        } else {
            Ok(())
        }
    }

    fn take_answer(
        &mut self,
        response: ModelResponse,
        offer: &Offer,
    ) -> Soon<'_, Result<(), Error>> {
        let facts = Self::facts(&self.agent, &self.config, self.events.is_some());
        let recorded = self.run.record.len();
        let seen = self.has_hooks().then(|| response.clone());
        let answered = match &self.config.server_history {
            None => self.run.answered(response, offer, facts),
            Some(history) => {
                let sent = self.run.sent(&response, history);
                let answered = self.run.answered(response, offer, facts);
                // A response that was not taken is not gone on from; in a conversation it stays.
                if answered.is_ok() || matches!(history, ServerHistory::Conversation(_)) {
                    self.run.delivered = Some(Box::new(sent));
                }
                answered
            }
        };
        match answered {
            Ok(_) if seen.is_none() && self.events.is_none() => at_once(Ok(())),
            answered => later(self.tell_of_answer(answered, seen, recorded)),
        }
    }

    /// Tells of an answer, and goes on where it could not be taken.
    async fn tell_of_answer(
        &mut self,
        answered: Result<Vec<RunItem>, Rejected>,
        seen: Option<ModelResponse>,
        recorded: usize,
    ) -> Result<(), Error> {
        let (items, rejection) = match answered {
            Ok(items) => (items, None),
            Err(Rejected {
                error,
                is_answer: false,
                ..
            }) => return Err(error),
            Err(Rejected { error, items, .. }) => (items, Some(error)),
        };
        self.tell_items(items.clone()).await;
        if let Some(response) = &seen {
            self.tell_hooks(Told::ModelEnd(response)).await?;
        }
        if let Some(error) = rejection {
            let problem = match error.kind() {
                ErrorKind::ModelRefusal => RunProblem::Refusal,
                _ if !items.is_empty() => RunProblem::InvalidOutput,
                _ => return Err(error),
            };
            return self.recover(problem, error, items).await;
        }
        if let Step::CallModel = self.run.step() {
            self.tell_recorded_since(recorded).await;
        }
        Ok(())
    }

    /// Asks the application whether a run that cannot go on has an output all the same.
    async fn recover(
        &mut self,
        problem: RunProblem,
        error: Error,
        items: Vec<RunItem>,
    ) -> Result<(), Error> {
        let Some(recovery) = &self.config.recovery else {
            return Err(error);
        };
        let message = error.to_string();
        let output = call(|| recovery.ask(self.ctx(), problem, message)).await;
        match output.map_err(|error| self.user_error("the recovery", error))? {
            None => Err(error),
            Some(output) => {
                let kind = self.agent.output_type();
                let output = match kind {
                    Some(_) => self.fitting("the recovery", output)?,
                    None => output,
                };
                let agent = self.agent.name_arc();
                self.run.recovered(output, kind, items, agent);
                Ok(())
            }
        }
    }

    /// Whether what is offered can be offered; where it can, a trace is told of it.
    fn expect_no_problem(&mut self, offer: &Offer) -> Result<(), Error> {
        if let Some(problem) = offer.problem() {
            return Err(self.configuration(problem));
        }
        if let (NameCollision::Fail, Some(collision)) =
            (self.config.name_collision, offer.collision())
        {
            return Err(self.configuration(collision));
        }
        self.agent_span.update(|data| {
            if let SpanData::Agent {
                handoffs, tools, ..
            } = data
            {
                (*handoffs, *tools) = offer.told().clone();
            }
        });
        Ok(())
    }

    /// What the model is asked.
    fn request(&mut self, offer: &Offer, instructions: Option<Arc<str>>) -> ModelRequest {
        let instructions = if self.agent.explains_handoffs() {
            Some(naming_colleagues(&offer.handoffs, instructions.as_deref()).into())
        } else {
            instructions
        };
        let (input, server) = match &self.config.server_history {
            None => (self.run.model_input(), None),
            Some(history) => self.run.undelivered(history),
        };
        ModelRequest {
            agent: Some(self.agent.name_arc().clone()),
            instructions,
            input,
            settings: self.settings(),
            tools: offer.tools.clone(),
            handoffs: offer.handoffs.clone(),
            output: self.agent.output_type().cloned(),
            knowledge: self.agent.known().clone(),
            server,
            added: self.added_usage.clone(),
        }
    }

    /// Whether nothing comes between a request and its model, and nothing runs beside it.
    fn asks_plainly(&self) -> bool {
        self.config.model_filter.is_none()
            && !self.config.drop_orphaned_calls
            && !self.has_hooks()
            && !self.is_checked_beside_model()
    }

    fn is_checked_beside_model(&self) -> bool {
        self.run.input_checks != InputChecks::Passed && self.has_input_guardrails_beside_model()
    }

    /// The answer to a request that others see first, and with it what the guardrails beside the model
    /// say.
    async fn ask_with_care(
        &mut self,
        model: &ModelHandle,
        mut request: ModelRequest,
        span: &mut OpenSpan,
    ) -> Result<ModelResponse, Error> {
        if let Some(filter) = &self.config.model_filter {
            request = self.filtered(filter, request).await?;
        }
        // What the provider keeps holds the calls that outputs here belong to.
        if self.config.drop_orphaned_calls && self.config.server_history.is_none() {
            request.input = model_input::paired(&request.input);
        }
        self.tell_hooks(Told::ModelStart(&request)).await?;
        if self.is_checked_beside_model() {
            self.ask_beside_guardrails(model, request, span).await
        } else {
            self.generate(model, request, span).await
        }
    }

    /// A request as the filter on model calls leaves it.
    async fn filtered(
        &self,
        filter: &ModelFilter<C>,
        request: ModelRequest,
    ) -> Result<ModelRequest, Error> {
        let (ctx, agent) = (self.ctx(), self.agent.clone());
        let filtered = call(|| filter.apply(ctx, agent, request)).await;
        let mut request =
            filtered.map_err(|error| self.user_error("the filter on model calls", error))?;
        // A filter may have begun anew, and who asks is not its to say.
        request.agent = Some(self.agent.name_arc().clone());
        request.input = model_input::latest_only(request.input.into_iter().collect()).into();
        Ok(request)
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
    async fn ask_beside_guardrails(
        &mut self,
        model: &ModelHandle,
        request: ModelRequest,
        span: &mut OpenSpan,
    ) -> Result<ModelResponse, Error> {
        let (found, answer) = {
            let is_beside = |kind: &_| matches!(kind, InputKind::BesideModel(_));
            let checks = Box::pin(self.run_input_guardrails(&self.run.input, is_beside));
            // The model is asked once the guardrails have begun.
            let answer = Box::pin(async { self.generate(model, request, span).await });
            match select(checks, answer).await {
                // A tripwire cancels the call, which is dropped unanswered.
                Either::Left((found, answer)) => {
                    let found = found?;
                    if has_tripped(&found) {
                        (found, None)
                    } else {
                        (found, Some(answer.await))
                    }
                }
                Either::Right((answer, checks)) => (checks.await?, Some(answer)),
            }
        };
        // The guardrails had the floor after the model as well.
        self.trace.time_passes();
        let error = self.trip(ErrorKind::InputGuardrail, &found);
        self.run.input_guardrails.attempted(found);
        if let Some(error) = error {
            return Err(error);
        }
        self.run.input_guardrails.settle();
        self.run.input_checks = InputChecks::Passed;
        match answer {
            Some(answer) => answer,
            None => Err(self.configuration("the model was not waited for")),
        }
    }

    /// Not an `async fn`: that would keep room for the request as long as it waits for the answer.
    fn generate<'a>(
        &'a self,
        model: &'a ModelHandle,
        request: ModelRequest,
        span: &'a mut OpenSpan,
    ) -> impl Future<Output = Result<ModelResponse, Error>> + Send + 'a {
        let data = || SpanData::Generation {
            model: model.shared_name(),
            input_items: request.input.len(),
            usage: Usage::default(),
            output: None,
        };
        self.trace.begin(span, self.parent_span(), data);
        self.trace.time_passes();
        let answer: BoxFuture<'a, Result<ModelResponse, BoxError>> = match &self.events {
            None => caught(|| model.respond(request))
                .unwrap_or_else(|error| Box::pin(ready(Err(error)))),
            Some(_) => Box::pin(self.listen(model, request)),
        };
        self.answered(answer, span)
    }

    async fn answered(
        &self,
        answer: BoxFuture<'_, Result<ModelResponse, BoxError>>,
        span: &mut OpenSpan,
    ) -> Result<ModelResponse, Error> {
        let answer = no_panic(answer).await;
        match answer {
            Ok(response) => {
                // Counted at once: whatever comes of the answer, it has cost something.
                self.added_usage.add(response.usage);
                let sensitive = self.config.trace_sensitive_data;
                span.update(|data| {
                    if let SpanData::Generation { usage, output, .. } = data {
                        *usage = response.usage;
                        *output = sensitive.then(|| response.output.clone());
                    }
                });
                self.trace.end([span]);
                Ok(response)
            }
            Err(error) => {
                span.fail("the model failed", Vec::new());
                self.trace.end([span]);
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

    /// The model's answer, piece by piece. What comes after the complete answer is not waited for.
    async fn listen(
        &self,
        model: &ModelHandle,
        request: ModelRequest,
    ) -> Result<ModelResponse, BoxError> {
        let mut stream = model.stream(request);
        while let Some(event) = stream.next().await {
            let event = event?;
            let answer = match &event {
                ModelEvent::Completed(answer) => Some(answer.clone()),
                _ => None,
            };
            self.tell(|_| StreamEvent::Model(event)).await;
            if let Some(answer) = answer {
                return Ok(answer);
            }
        }
        Err(NoFinalResponse.into())
    }
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
