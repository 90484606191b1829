//! Carries out in this process what the machine asks for.
//!
//! The files below hold one kind of step each. Futures that most runs do not need are boxed, so
//! that a run that waits for its model stays small.

mod guardrails;
mod handoff;
mod hooks;
mod model;
mod session;
mod tools;

use std::borrow::Cow;
use std::sync::Arc;

use rustc_hash::FxHashSet;

use super::agent_keys;
use super::config::RunConfig;
use super::machine::{Rules, Run, Step, ToolUseRule};
use super::result::RunResult;
use super::stream::channel::EventChannel;
use super::stream::{EventKind, STREAM_VERSION, StreamEvent};
use crate::agent::{Agent, ToolUseBehaviorKind};
use crate::callback::{BoxError, Outcome, call};
use crate::context::{AddedUsage, RunContext};
use crate::error::{Error, ErrorKind};
use crate::items::RunItem;
use crate::offer::Offer;
use crate::trace::{OpenSpan, SpanData, Trace};

/// One run in this process.
pub(super) struct Driver<C> {
    /// Shared with the stream between two polls.
    run: Arc<Run>,
    agent: Agent<C>,
    /// The agent the run began with; others are found from it.
    start: Agent<C>,
    config: Arc<RunConfig<C>>,
    context: Arc<C>,
    /// Usage that is not counted in the run yet.
    added_usage: AddedUsage,
    trace: Trace,
    /// Before the agent's span, which it is part of: fields are dropped in this order.
    turn_span: OpenSpan,
    agent_span: OpenSpan,
    /// The tools and handoffs that the model was offered in this turn.
    offer: Option<Offer>,
    events: Option<EventChannel>,
    /// Keys of the items of this turn that listeners were notified of.
    reported: FxHashSet<usize>,
    /// The number of the turn in progress.
    turn: u32,
}

impl<C: Send + Sync + 'static> Driver<C> {
    pub(super) fn new(
        run: Run,
        start: Agent<C>,
        agent: Agent<C>,
        config: Arc<RunConfig<C>>,
        context: Arc<C>,
        events: Option<EventChannel>,
    ) -> Self {
        let turn = run.turns();
        Self {
            run: Arc::new(run),
            agent,
            start,
            trace: Trace::new(&config.tracing),
            config,
            context,
            added_usage: AddedUsage::default(),
            agent_span: OpenSpan::default(),
            turn_span: OpenSpan::default(),
            offer: None,
            events,
            reported: FxHashSet::default(),
            turn,
        }
    }

    /// Counts the usage of this run also in the run of `outer`.
    pub(super) fn within(mut self, outer: &RunContext<C>) -> Self {
        self.added_usage = AddedUsage::within(outer.added().clone());
        self
    }

    /// The run, to be changed by the machine.
    fn run_mut(&mut self) -> &mut Run {
        Arc::make_mut(&mut self.run)
    }

    /// Drives the run to its end.
    pub(super) async fn drive(&mut self) -> Result<(), Error> {
        let outcome = self.take_all_steps().await;
        let outcome = outcome.map_err(|error| error.at_agent(self.agent.name()));
        self.clean_up(&outcome).await;
        outcome
    }

    /// Takes one step of the run.
    pub(super) async fn drive_one_step(&mut self) -> Result<(), Error> {
        let outcome = self.take_one_step().await;
        let outcome = outcome.map_err(|error| error.at_agent(self.agent.name()));
        self.clean_up(&outcome).await;
        outcome
    }

    /// The result of the run, or the error with the run.
    pub(super) fn finish(mut self, outcome: Result<(), Error>) -> Result<RunResult<C>, Error> {
        self.count_added_usage();
        let run = Box::new(Arc::unwrap_or_clone(self.run));
        match outcome {
            Ok(()) => Ok(RunResult::new(run, self.agent)),
            Err(error) => Err(error.with_run(run)),
        }
    }

    /// Takes the run out of the driver, which is of no use afterwards.
    pub(super) fn take_run(&mut self) -> Run {
        self.count_added_usage();
        let empty = Run::new(self.run.agent.clone(), "".into());
        let run = std::mem::replace(&mut self.run, Arc::new(empty));
        Arc::unwrap_or_clone(run)
    }

    async fn take_all_steps(&mut self) -> Result<(), Error> {
        self.report_start().await;
        self.load_session().await?;
        let mut is_first = true;
        loop {
            self.save_unless_held_back().await?;
            match self.run.step() {
                Step::Done(_) => return Ok(()),
                Step::CallModel
                    if !is_first
                        && let Some(events) = &self.events
                        && events.stops_before_next_turn() =>
                {
                    return Ok(());
                }
                _ => self.take_step().await?,
            }
            is_first = false;
        }
    }

    async fn take_one_step(&mut self) -> Result<(), Error> {
        self.load_session().await?;
        self.save_unless_held_back().await?;
        self.take_step().await?;
        self.save().await
    }

    async fn take_step(&mut self) -> Result<(), Error> {
        match self.run.step() {
            Step::CallModel => self.call_model().await,
            Step::RunTools(_) => Box::pin(self.run_tools()).await,
            Step::DecideToolUse(_) => Box::pin(self.decide_tool_use()).await,
            Step::TakeHandoff(_) => self.take_handoff().await,
            Step::Conclude(_) => self.conclude().await,
            Step::Done(_) => Ok(()),
        }
    }

    fn count_added_usage(&mut self) {
        let used = self.added_usage.take();
        self.run_mut().count_usage(used);
    }

    async fn clean_up(&mut self, outcome: &Result<(), Error>) {
        if let Err(error) = outcome {
            self.mark_failure(error);
            Box::pin(self.save_completed_tools()).await;
        }
        self.end_spans();
    }

    fn end_spans(&mut self) {
        self.turn_span.end();
        self.agent_span.end();
    }

    /// Cleans up after a stop: turns that were committed are saved.
    pub(super) async fn clean_up_after_stop(&mut self) {
        let has_guardrails = self.has_input_guardrails_before_model();
        if !self.run.holds_input_back(has_guardrails) {
            self.save_or_warn().await;
        }
        self.end_spans();
    }

    /// The context for user code.
    fn ctx(&self) -> RunContext<C> {
        let usage = *self.run.usage() + self.added_usage.get();
        RunContext::with_usage(self.context.clone(), usage, self.added_usage.clone())
    }

    /// Calls user code within a span.
    async fn call<T>(
        &self,
        span: Option<u64>,
        code: impl FnOnce() -> Outcome<T>,
    ) -> Result<T, BoxError> {
        self.trace.within(span, call(code)).await
    }

    /// The settings that the machine decides by. They borrow nothing of the run.
    fn rules<'a>(agent: &'a Agent<C>, config: &RunConfig<C>) -> Rules<'a> {
        Rules {
            agent: agent.name_arc(),
            output: agent.output_type(),
            unknown_tool: config.unknown_tool,
            tool_use: match agent.tool_use_kind() {
                ToolUseBehaviorKind::RunModelAgain => ToolUseRule::RunModelAgain,
                ToolUseBehaviorKind::StopOnFirstTool => ToolUseRule::StopOnFirstTool,
                ToolUseBehaviorKind::StopAtTools(names) => ToolUseRule::StopAtTools(names),
                ToolUseBehaviorKind::Function(_) => ToolUseRule::AskFunction,
            },
        }
    }

    /// The tools and handoffs of this turn. A resumed run evaluates the conditions again.
    async fn offer(&mut self) -> Result<Offer, Error> {
        if let Some(offer) = &self.offer {
            return Ok(offer.clone());
        }
        let offer = match Offer::cached(&self.agent, self.config.tool_names) {
            Some(offer) => offer,
            None => {
                let resolved = Offer::resolve(&self.agent, self.ctx(), self.config.tool_names);
                let resolved = Box::pin(self.trace.within(self.parent_span(), resolved)).await;
                resolved.map_err(|error| self.user_error("a condition", error))?
            }
        };
        self.offer = Some(offer.clone());
        Ok(offer)
    }

    fn user_error(&self, what: &str, error: BoxError) -> Error {
        let message = format!("{what} failed: {error}");
        Error::new(ErrorKind::UserCode, message)
            .caused_by(error)
            .at_agent(self.agent.name())
    }

    fn configuration_error(&self, problem: impl Into<String>) -> Error {
        Error::new(ErrorKind::Configuration, problem).at_agent(self.agent.name())
    }

    fn parent_span(&self) -> Option<u64> {
        self.turn_span.id().or(self.agent_span.id())
    }

    /// Opens the agent's span unless it is open.
    fn open_agent_span(&mut self) {
        if self.agent_span.is_open() {
            return;
        }
        self.agent_span = self.trace.span(None, || SpanData::Agent {
            name: self.agent.name_arc().clone(),
            handoffs: Arc::default(),
            tools: Arc::default(),
            output_type: match self.agent.output_type() {
                None => Cow::Borrowed("str"),
                Some(output) => Cow::Owned(output.name().to_owned()),
            },
        });
    }

    fn mark_failure(&mut self, error: &Error) {
        match error.kind() {
            ErrorKind::MaxTurns => self.agent_span.fail("Max turns exceeded"),
            ErrorKind::InputGuardrail
            | ErrorKind::OutputGuardrail
            | ErrorKind::HandoffGuardrail
            | ErrorKind::ToolGuardrail => self.agent_span.fail("Guardrail tripwire triggered"),
            ErrorKind::UserCode
            | ErrorKind::Model
            | ErrorKind::ModelRefusal
            | ErrorKind::Session => self.agent_span.fail("Error in agent run"),
            ErrorKind::ModelBehavior => self.turn_span.fail("The model broke the rules"),
            ErrorKind::Configuration => self.turn_span.fail("The run is not configured to work"),
        }
    }

    /// Sends an event to the stream, and waits until it is taken.
    async fn emit(&self, kind: impl FnOnce() -> EventKind) {
        self.emit_for(&self.agent, kind).await;
    }

    /// Sends an event of an agent that may not have the conversation any more.
    async fn emit_for(&self, agent: &Agent<C>, kind: impl FnOnce() -> EventKind) {
        if let Some(events) = &self.events {
            let event = StreamEvent {
                kind: kind(),
                agent: agent.name_arc().clone(),
                turn: self.turn,
            };
            Box::pin(events.send(event, &self.run)).await;
        }
    }

    async fn report_start(&self) {
        self.emit(|| EventKind::RunStarted {
            version: STREAM_VERSION,
            agents: agent_keys::names(&self.start),
            input: match self.run.turns() {
                0 => self.run.input().last_words().map(Cow::into_owned),
                _ => None,
            },
        })
        .await;
        self.report_agent().await;
    }

    async fn report_agent(&self) {
        let model = || self.model().map(|model| model.shared_name());
        self.emit(|| EventKind::AgentUpdated {
            model: model().unwrap_or_default(),
        })
        .await;
    }

    /// Sends the last event of the stream.
    pub(super) async fn report_end(&mut self, outcome: &Result<(), Error>) {
        if self.events.is_none() {
            return;
        }
        self.count_added_usage();
        let (turns, usage) = (self.run.turns(), *self.run.usage());
        let last = match (outcome, self.run.step()) {
            (Err(error), _) => EventKind::RunFailed {
                error: error.kind(),
                message: error.to_string(),
                guardrail: error.guardrail().cloned(),
                turns,
                usage,
            },
            (Ok(()), Step::Done(output)) => EventKind::RunFinished {
                output: output.to_value(),
                turns,
                usage,
            },
            (Ok(()), _) => EventKind::RunStopped { turns, usage },
        };
        if let Some(events) = &self.events {
            events.close();
        }
        self.emit(|| last).await;
    }

    /// Reports new items of the turn, each once.
    async fn report_items(&mut self, items: &[RunItem]) {
        let agent = self.agent.clone();
        self.report_items_of(&agent, items).await;
    }

    async fn report_items_of(&mut self, agent: &Agent<C>, items: &[RunItem]) {
        if self.events.is_none() {
            return;
        }
        for item in items {
            if self.reported.insert(item.key())
                && let Some(event) = EventKind::of_item(item.clone())
            {
                self.emit_for(agent, || event).await;
            }
        }
    }

    /// Reports the items that were recorded since the record had `start` of them, at the end of a
    /// turn.
    async fn report_recorded(&mut self, start: usize) {
        let agent = self.agent.clone();
        self.report_recorded_of(&agent, start).await;
    }

    async fn report_recorded_of(&mut self, agent: &Agent<C>, start: usize) {
        if self.events.is_none() {
            return;
        }
        let added = self.run.new_items().tail(start);
        let added: Vec<RunItem> = added.into_iter().cloned().collect();
        self.report_items_of(agent, &added).await;
        self.reported.clear();
    }
}
