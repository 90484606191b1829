//! Asking the model, and passing its response to the machine.

use std::future::{poll_fn, ready};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::Poll;

use futures_util::future::{Either, select};

use super::guardrails::has_tripped;
use super::hooks::HookCall;
use super::model_attempts::FailedAttempts;
use super::model_stream::IncompleteStream;
use super::{Driver, LeftOut, configuration_error};
use crate::callback::{BoxError, BoxFuture, call, catch_panic, catch_panic_sync};
use crate::error::{Error, ErrorKind};
use crate::guardrail::InputMode;
use crate::handoff::handoff_prompt::naming_colleagues;
use crate::items::RunItem;
use crate::model::{
    ModelHandle, ModelRequest, ModelResponse, Prompt, RequestUsage, ToolKind, Usage,
};
use crate::offered_tools::Offer;
use crate::run::guardrail_results::InputChecks;
use crate::run::model_response::{EmptyOutput, RejectedResponse, ResponseRules};
use crate::run::server_history::{self, ServerHistory};
use crate::run::{Step, model_input};
use crate::runner::{ModelFilter, NameCollision, RunFailure, RunProblem};
use crate::stream::EventKind;
use crate::trace::{SentRequest, SpanData};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Takes a turn: asks the model, and lets the machine decide what follows from the response.
    pub(super) async fn call_model(&mut self) -> Result<(), Error> {
        self.end_turn_span();
        self.open_agent_span();
        self.turn = match self.take_turn() {
            Ok(turn) => turn,
            Err(error) => return Box::pin(self.recover_from_max_turns(error)).await,
        };
        self.begin_turn_span();
        self.emit(|| EventKind::TurnStarted {}).await;
        self.hold_output_back();
        self.check_input_before_model().await?;
        if !self.run.added_input().is_empty() {
            Box::pin(self.admit_added_input()).await?;
        }
        self.offer = None;
        if !self.run.position.agent_started {
            self.call_hooks(HookCall::AgentStart).await?;
            self.run_mut().position.agent_started = true;
        }
        let (offer, instructions) = self.prepare_turn().await?;
        self.check_offer(&offer)?;
        let model = self.model().cloned().ok_or_else(|| {
            configuration_error(
                "there is no model to answer; give the agent one with Agent::model, or the whole \
                 run with Runner::model",
            )
        })?;
        // Boxed, and before the request is made, to keep this future small.
        let prompt = if self.agent.def.prompt.is_some() {
            Box::pin(self.prompt()).await?
        } else {
            None
        };
        let mut request = self.request(&model, &offer, instructions);
        request.prompt = prompt;
        let response = self.ask_model(&model, request).await?;
        // Now, because a run that is cancelled does not get to the end of the turn.
        self.count_usage_in_spans();
        self.run_mut().guardrails.input_checks = InputChecks::Passed;
        self.check_response_id(&response)?;
        self.accept_response(response, &offer).await
    }

    /// Returns `true` if spans have their details.
    pub(super) fn has_details(&self) -> bool {
        self.config.trace_sensitive_data && self.trace.wants_details()
    }

    /// The number of the next turn, unless the limit is reached.
    fn take_turn(&self) -> Result<u32, Error> {
        let next = self.run.next_turn(self.config.max_turns)?;
        let outer = self.outer.as_ref();
        if let Some(turns) = outer.and_then(|outer| outer.turns.as_ref()) {
            turns.take()?;
        }
        Ok(next)
    }

    /// The usage of a response of the current agent's model.
    pub(super) fn request_usage(&self, model: Arc<str>, usage: Usage) -> RequestUsage {
        RequestUsage {
            agent: Some(self.agent.name_arc().clone()),
            from: self.run.last_edge().cloned(),
            model: Some(model),
            usage,
        }
    }

    /// The model of the current agent: the run's, or its own.
    pub(super) fn model(&self) -> Option<&ModelHandle> {
        let run = self.config.model.as_ref();
        let model = run.or_else(|| self.agent.def.model.as_ref());
        model.filter(|_| !self.agent.is_person())
    }

    /// Evaluates the conditions of the tools, makes the instructions, and evaluates the conditions of
    /// the handoffs, in this order.
    async fn prepare_turn(&mut self) -> Result<(Offer, Option<Arc<str>>), Error> {
        let cached = match self.agent_in_place() {
            None => Offer::cached(&self.agent, self.config.tool_names),
            Some(agent) => Offer::cached(&agent, self.config.tool_names),
        };
        if let Some(offer) = cached {
            self.offer = Some(offer.clone());
            return Ok((offer, self.instructions().await?));
        }
        Box::pin(self.prepare_with_conditions()).await
    }

    async fn prepare_with_conditions(&mut self) -> Result<(Offer, Option<Arc<str>>), Error> {
        let in_place = self.agent_in_place();
        let agent = in_place.unwrap_or_else(|| self.agent.clone());
        let tools = self.enabled_tools(&agent);
        let tools = self
            .run_code(self.parent_span(), "a condition", tools)
            .await?;
        let instructions = self.instructions().await?;
        let offer = self.offer_with_tools(&agent, tools);
        let offer = self
            .run_code(self.parent_span(), "a condition", offer)
            .await?;
        self.offer = Some(offer.clone());
        Ok((offer, instructions))
    }

    async fn instructions(&self) -> Result<Option<Arc<str>>, Error> {
        let instructions = match self.agent.fixed_instructions() {
            Some(fixed) => fixed.cloned(),
            None => {
                let what = "the function that makes the instructions";
                let make = self.agent.make_instructions(self.ctx());
                Box::pin(self.run_code(self.parent_span(), what, make)).await?
            }
        };
        Ok(match &self.run.received {
            Some(received) => received.add_to(instructions),
            None => instructions,
        })
    }

    async fn prompt(&self) -> Result<Option<Arc<Prompt>>, Error> {
        let what = "the function that makes the prompt";
        let make = self.agent.make_prompt(self.ctx());
        self.run_code(self.parent_span(), what, make).await
    }

    /// The next response follows this one at the provider, by its identifier.
    fn check_response_id(&self, response: &ModelResponse) -> Result<(), Error> {
        let history = &self.config.server_history;
        let follows = matches!(history, Some(ServerHistory::Responses { .. }));
        if !follows || response.response_id.is_some() {
            return Ok(());
        }
        Err(configuration_error(
            "the provider keeps the conversation, and its response has no identifier to go on \
             from; use a model that gives one (over Responses, not Chat Completions)",
        ))
    }

    async fn accept_response(
        &mut self,
        response: ModelResponse,
        offer: &Offer,
    ) -> Result<(), Error> {
        let recorded = self.run.new_items().len();
        let announced = self.config.handoff_policy.announced.as_ref();
        let has_predicate = announced.is_some_and(|policy| policy.predicate_code().is_some());
        let is_announced = has_predicate && Box::pin(self.is_announced(&response, offer)).await?;
        let for_hooks = self.has_hooks().then(|| response.clone());
        let left_out = self.left_out.take().map(|left_out| left_out.0);
        let history = self.config.server_history.as_ref();
        let delivered = history.map(|history| {
            self.run
                .delivered_with(&response, history, left_out.unwrap_or_default())
        });
        let rules = ResponseRules {
            is_announced,
            ..Self::response_rules(&self.agent, &self.config)
        };
        let run = Arc::make_mut(&mut self.run);
        let accepted = run.accept_response(response, offer, rules);
        // A rejected response is part of a conversation, but no later response follows it.
        let follows = accepted.is_ok() || matches!(history, Some(ServerHistory::Conversation(_)));
        if delivered.is_some() && follows {
            run.delivered = delivered;
        }
        if accepted.is_ok() && for_hooks.is_none() && self.events.is_none() {
            return Ok(());
        }
        Box::pin(self.report_response(accepted, for_hooks, recorded, offer)).await
    }

    /// Asks the application whether an answer announces a handoff.
    async fn is_announced(&self, response: &ModelResponse, offer: &Offer) -> Result<bool, Error> {
        let policy = self.config.handoff_policy.announced.as_ref();
        let Some((policy, predicate)) = policy.and_then(|all| Some((all, all.predicate_code()?)))
        else {
            return Ok(false);
        };
        let Some(answer) = self.run.possible_announcement(response, offer, policy) else {
            return Ok(false);
        };
        let what = "the predicate for announced handoffs";
        let asked = self.run_code(self.parent_span(), what, predicate.holds(answer));
        effect!(self, Code, "announced handoff", asked)
    }

    /// Reports a response, and recovers from one that was rejected.
    async fn report_response(
        &mut self,
        accepted: Result<(), RejectedResponse>,
        for_hooks: Option<ModelResponse>,
        recorded: usize,
        offer: &Offer,
    ) -> Result<(), Error> {
        let (items, rejection) = match accepted {
            Ok(()) => match self.run.turn() {
                Some(turn) => (turn.items.clone(), None),
                None => (self.run.items_since(recorded), None),
            },
            Err(rejected) if !rejected.is_reported => return Err(rejected.error),
            Err(rejected) => (rejected.items, Some((rejected.error, rejected.problem))),
        };
        self.report_items(&items).await;
        if let Some(response) = &for_hooks {
            self.call_hooks(HookCall::ModelEnd(response)).await?;
        }
        if let Some((error, problem)) = rejection {
            let Some(problem) = problem else {
                return Err(error);
            };
            let response = error.rejected_response().cloned();
            let is_empty = response
                .as_ref()
                .is_some_and(ModelResponse::is_without_text);
            return match self.recover(problem, error, items).await {
                // An empty answer is no error of its own: the model is asked again.
                Err(error) if is_empty && error.rejected_response().is_some() => {
                    self.accept_empty_response(response.unwrap_or_default(), offer)
                }
                outcome => outcome,
            };
        }
        if let Step::CallModel = self.run.step() {
            self.report_recorded(recorded).await;
        }
        Ok(())
    }

    /// Accepts an empty answer for which the application had no fallback.
    fn accept_empty_response(
        &mut self,
        response: ModelResponse,
        offer: &Offer,
    ) -> Result<(), Error> {
        let rules = ResponseRules {
            empty_output: EmptyOutput::AskAgain,
            ..Self::response_rules(&self.agent, &self.config)
        };
        let run = Arc::make_mut(&mut self.run);
        let accepted = run.accept_response(response, offer, rules);
        accepted.map_err(|rejected| rejected.error)
    }

    async fn recover_from_max_turns(&mut self, error: Error) -> Result<(), Error> {
        // The fallback output is saved, so the input must be saved before it.
        if self.config.recovery.is_some() {
            self.check_input_before_model().await?;
        }
        self.recover(RunProblem::MaxTurns, error, Vec::new()).await
    }

    /// Asks the application for a fallback output.
    async fn recover(
        &mut self,
        problem: RunProblem,
        error: Error,
        items: Vec<RunItem>,
    ) -> Result<(), Error> {
        let Some(recovery) = &self.config.recovery else {
            return Err(error);
        };
        let failure = RunFailure {
            problem,
            message: error.to_string(),
            run: self.run.clone(),
            response: error.rejected_response().cloned(),
        };
        let ask = call(|| recovery.ask(self.ctx(), failure));
        let asked = self.run_code(self.parent_span(), "the recovery", ask);
        let Some(mut fallback) = effect!(self, Code, "recovery", asked)? else {
            return Err(error);
        };
        let output_type = self.agent.output_type();
        if output_type.is_some() {
            fallback.output = self.to_output_type("the recovery", fallback.output)?;
        }
        let rejected = error.rejected_response().cloned();
        Arc::make_mut(&mut self.run).recover(fallback, output_type, items, rejected);
        if problem == RunProblem::MaxTurns {
            // The limit stays visible in the trace of a run that has an output.
            self.mark_failure(&error);
        }
        Ok(())
    }

    /// Checks the tools and handoffs of the turn, and adds them to the trace.
    pub(super) fn check_offer(&mut self, offer: &Offer) -> Result<(), Error> {
        if let Some(problem) = offer.problem() {
            return Err(configuration_error(problem));
        }
        if let (NameCollision::Fail, Some(collision)) =
            (self.config.name_collision, offer.collision())
        {
            return Err(configuration_error(collision));
        }
        update_span!(self.agent_span, Agent.handoffs = offer.names().0);
        update_span!(self.agent_span, Agent.tools = offer.names().1);
        Ok(())
    }

    fn request(
        &mut self,
        model: &ModelHandle,
        offer: &Offer,
        instructions: Option<Arc<str>>,
    ) -> ModelRequest {
        let instructions = if self.agent.def.explains_handoffs {
            Some(naming_colleagues(&offer.handoffs, instructions.as_deref()).into())
        } else {
            instructions
        };
        let (input, server) = match &self.config.server_history {
            None => (self.run_mut().model_input(), None),
            Some(history) => self.run.undelivered(history),
        };
        let own_settings = self.agent.def.settings.clone();
        let settings = self.run.model_settings(
            own_settings.unwrap_or_else(|| model.defaults().clone()),
            self.config.model_settings.as_ref(),
            self.agent.def.keeps_tool_choice,
        );
        ModelRequest {
            agent: Some(self.agent.name_arc().clone()),
            instructions,
            prompt: None,
            input,
            settings,
            tools: offer.tools.clone(),
            hosted_tools: offer.hosted.clone(),
            handoffs: offer.handoffs.clone(),
            output: self.agent.output_type().cloned(),
            knowledge: self.agent.def.knowledge.clone(),
            server,
            added: self.added_usage.clone(),
            from: self.run.last_edge().cloned(),
            earlier_attempts: 0,
        }
    }

    /// Asks the model, after the filter on model calls and the hooks, and with the guardrails that
    /// run beside it.
    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would have room for the request twice"
    )]
    fn ask_model(
        &mut self,
        model: &ModelHandle,
        mut request: ModelRequest,
    ) -> impl Future<Output = Result<ModelResponse, Error>> + Send {
        async move {
            if let Some(filter) = self.config.model_filter.clone() {
                let given = request.input.clone();
                request = Box::pin(self.filter_request(&filter, request)).await?;
                if self.config.server_history.is_some() {
                    let left_out = server_history::left_out(&given, &request.input);
                    self.left_out = Some(Box::new(LeftOut(left_out)));
                }
            }
            // With a server history, the calls of the outputs are at the provider.
            if self.config.drop_orphaned_calls && self.config.server_history.is_none() {
                request.input = model_input::without_orphans(&request.input);
            }
            self.check_tool_kinds(model, &request)?;
            self.call_hooks(HookCall::ModelStart(&request)).await?;
            let response = if self.checks_input_beside_model() {
                Box::pin(self.ask_beside_guardrails(model, request)).await?
            } else if let Some(journal) = self.journal.as_deref() {
                Box::pin(self.replay_response(journal, model, request)).await?
            } else {
                self.generate(model, request).await?
            };
            self.emit(|| EventKind::Usage {
                response: response.usage,
                run: *self.run.usage() + self.added_usage.get(),
            })
            .await;
            Ok(response)
        }
    }

    /// Checks that the model accepts the tools of the request.
    fn check_tool_kinds(&self, model: &ModelHandle, request: &ModelRequest) -> Result<(), Error> {
        if let Some(tool) = request.hosted_tools.first()
            && !model.accepts_tools(ToolKind::Hosted)
        {
            return Err(configuration_error(format!(
                "the tool \"{}\" of agent \"{}\" is run by the provider, and the model \"{}\" \
                 cannot do that; use a model over the Responses API, or take the tool out",
                tool.name(),
                self.agent.name(),
                model.name()
            )));
        }
        if let Some(tool) = request.tools.iter().find(|tool| tool.takes_text())
            && !model.accepts_tools(ToolKind::Text)
        {
            return Err(configuration_error(format!(
                "the tool \"{}\" of agent \"{}\" is a free-form tool, and the model \"{}\" \
                 cannot call those; use a model over the Responses API, or give the tool a schema",
                tool.name,
                self.agent.name(),
                model.name()
            )));
        }
        Ok(())
    }

    async fn filter_request(
        &mut self,
        filter: &ModelFilter<C>,
        request: ModelRequest,
    ) -> Result<ModelRequest, Error> {
        let apply = call(|| filter.call(self.ctx(), self.agent.clone(), request));
        let filtered = self.run_code(self.parent_span(), "the filter on model calls", apply);
        let filtered = filtered.await;
        let mut request = filtered.inspect_err(|error| {
            let data = self.error_data(error);
            self.span_of_turn()
                .fail_with("Error in the filter on model calls", || data);
        })?;
        // A filter may return a new request, which has no agent.
        request.added = self.added_usage.clone();
        request.agent = Some(self.agent.name_arc().clone());
        request.input = model_input::deduplicated(request.input.into_iter().collect()).into();
        Ok(request)
    }

    async fn ask_beside_guardrails(
        &mut self,
        model: &ModelHandle,
        request: ModelRequest,
    ) -> Result<ModelResponse, Error> {
        let ((results, failure), response) = {
            let checks = Box::pin(self.ask_input_guardrails(InputMode::BesideModel));
            self.input_refused.store(false, Ordering::Relaxed);
            let mut response = self.generate_beside(model, request);
            // While the journal records that a guardrail has refused the input, the model does not go on.
            let response = poll_fn(|cx| {
                if self.input_refused.load(Ordering::Relaxed) {
                    return Poll::Pending;
                }
                response.as_mut().poll(cx)
            });
            match select(checks, response).await {
                // When a guardrail trips or fails, the model call is dropped, which cancels it.
                Either::Left(((results, failure), response)) => {
                    if failure.is_some() || has_tripped(&results) {
                        ((results, failure), None)
                    } else {
                        ((results, failure), Some(response.await))
                    }
                }
                // When the model fails, the guardrails are cancelled.
                Either::Right((Err(error), _)) => return Err(error),
                Either::Right((response, checks)) => (checks.await, Some(response)),
            }
        };
        self.take_input_checks(results, failure).await?;
        response.unwrap_or_else(|| Err(configuration_error("the model was not awaited")))
    }

    #[expect(
        clippy::manual_async_fn,
        reason = "an async fn would have room for the request twice"
    )]
    pub(super) fn generate(
        &self,
        model: &ModelHandle,
        request: ModelRequest,
    ) -> impl Future<Output = Result<ModelResponse, Error>> + Send {
        async move {
            let is_traced = self.config.trace_sensitive_data;
            let mut span = self
                .trace
                .span(self.parent_span(), || SpanData::Generation {
                    model: model.shared_name(),
                    input_items: request.input.len(),
                    input: is_traced.then(|| request.input.clone()),
                    usage: Usage::default(),
                    output: None,
                    request: self.has_details().then(|| SentRequest::new(&request)),
                });
            let response: BoxFuture<'_, Result<ModelResponse, BoxError>> = match &self.events {
                _ if request.is_guarded() => Box::pin(self.ask_with_retries(model, request)),
                None => catch_panic_sync(|| model.respond(request))
                    .unwrap_or_else(|error| Box::pin(ready(Err(error)))),
                Some(_) => Box::pin(self.stream_response(model, request, None)),
            };
            let response = self.trace.within(span.id(), catch_panic(response)).await;
            let response = response.map_err(|error| {
                let error = match error.downcast::<Error>() {
                    // A guardrail has refused a part of the answer.
                    Ok(error) => return *error,
                    Err(error) => error,
                };
                span.fail("the model failed");
                let (attempts, error) = FailedAttempts::split(error);
                match error.downcast::<IncompleteStream>() {
                    Ok(error) => Error::new(ErrorKind::ModelBehavior, error.to_string()),
                    Err(error) => {
                        let message = match attempts {
                            1 => format!("the model could not answer: {error}"),
                            _ => format!(
                                "the model could not answer in {attempts} attempts: {error}"
                            ),
                        };
                        Error::new(ErrorKind::Model, message).caused_by(error)
                    }
                }
            })?;
            // Counted at once: it was used, whatever follows from the response.
            let usage = self.request_usage(model.shared_name(), response.usage);
            self.added_usage.add_request(usage);
            self.end_request();
            let output = || is_traced.then(|| response.output.clone());
            update_span!(span, Generation.usage = response.usage);
            update_span!(span, Generation.output = output());
            if let (Some(span), Some(trace)) = (span.id(), &self.run.trace) {
                trace.generation.set(span);
            }
            Ok(response)
        }
    }
}
