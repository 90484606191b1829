//! Does in this process what the machine asks for.

mod guardrails;
mod handoff;
mod hooks;
mod model;
mod tools;

use std::borrow::Cow;
use std::future::{Ready, ready};
use std::sync::Arc;

use futures_util::future::Either;
use rustc_hash::FxHashSet;

use super::config::RunConfig;
use super::events::{Events, StreamEvent};
use super::machine::{Facts, Run, Step, ToolUseRule};
use super::model_input;
use super::result::RunResult;
use crate::agent::{Agent, ToolUseBehaviorKind};
use crate::callback::{BoxError, BoxFuture, no_panic};
use crate::context::{AddedUsage, RunContext};
use crate::error::{Error, ErrorKind};
use crate::items::{Input, Item, RunItem, RunItems};
use crate::offer::Offer;
use crate::trace::{OpenSpan, SpanData, Trace};

/// What most runs have at once. Who has to wait for it waits in a box: a run keeps room for all it may
/// wait for, also where it does not.
type Soon<'a, T> = Either<Ready<T>, BoxFuture<'a, T>>;

fn at_once<'a, T>(value: T) -> Soon<'a, T> {
    Either::Left(ready(value))
}

fn later<'a, T>(waiting: impl Future<Output = T> + Send + 'a) -> Soon<'a, T> {
    Either::Right(Box::pin(waiting))
}

/// One run in this process.
pub(super) struct Driver<C> {
    run: Box<Run>,
    agent: Agent<C>,
    /// The agent the run began with; others are found from it.
    start: Agent<C>,
    config: Arc<RunConfig<C>>,
    context: Arc<C>,
    /// What was used and is not counted in the run yet.
    added_usage: AddedUsage,
    trace: Trace,
    agent_span: OpenSpan,
    turn_span: OpenSpan,
    /// Where spans within a turn have been, for the next one.
    spare_span: OpenSpan,
    /// What the agent's model was offered in this turn.
    offer: Option<Offer>,
    events: Option<Events<C>>,
    /// Items of this turn that were told of already, where somebody listens.
    told: FxHashSet<usize>,
}

impl<C: Send + Sync + 'static> Driver<C> {
    pub(super) fn new(
        run: Box<Run>,
        start: Agent<C>,
        agent: Agent<C>,
        config: Arc<RunConfig<C>>,
        context: Arc<C>,
        events: Option<Events<C>>,
    ) -> Self {
        Self {
            run,
            agent,
            start,
            trace: Trace::new(&config.tracing),
            config,
            context,
            added_usage: AddedUsage::default(),
            agent_span: OpenSpan::default(),
            turn_span: OpenSpan::default(),
            spare_span: OpenSpan::default(),
            offer: None,
            events,
            told: FxHashSet::default(),
        }
    }

    /// Lets the run of `outer`, which this one is part of, count what this one uses.
    pub(super) fn within(mut self, outer: &RunContext<C>) -> Self {
        self.added_usage = AddedUsage::within(outer.added().clone());
        self
    }

    /// Takes the run as far as it goes.
    pub(super) async fn drive(&mut self) -> Result<(), Error> {
        let outcome = self.go().await;
        self.wind_up(&outcome).await;
        outcome
    }

    /// Takes one step of the run.
    pub(super) async fn drive_one_step(&mut self) -> Result<(), Error> {
        let outcome = async {
            self.continue_session().await?;
            if !self.holds_input_back() {
                self.save().await?;
            }
            self.take_step().await?;
            self.save().await
        };
        let outcome = outcome.await;
        self.wind_up(&outcome).await;
        outcome
    }

    /// What came of the run.
    pub(super) fn finish(mut self, outcome: Result<(), Error>) -> Result<RunResult<C>, Error> {
        self.count_added_usage();
        match outcome {
            Ok(()) => Ok(RunResult::new(self.run, self.agent)),
            Err(error) => Err(error.at_agent(self.agent.name()).with_run(self.run)),
        }
    }

    /// The run, for a driver that only borrows it.
    pub(super) fn run_mut(&mut self) -> &mut Run {
        self.count_added_usage();
        &mut self.run
    }

    async fn go(&mut self) -> Result<(), Error> {
        self.tell(|driver| StreamEvent::AgentUpdated(driver.agent.clone()))
            .await;
        self.continue_session().await?;
        loop {
            if !self.holds_input_back() {
                self.save().await?;
            }
            match self.run.step() {
                Step::Done(_) => return Ok(()),
                Step::CallModel if self.events.as_ref().is_some_and(Events::stops_after_turn) => {
                    return Ok(());
                }
                _ => self.take_step().await?,
            }
        }
    }

    /// What not every run does is boxed, here and in what is called ([`Soon`]): a run keeps room for the
    /// largest step. Past 1,000 bytes the allocator takes a slower way, too.
    async fn take_step(&mut self) -> Result<(), Error> {
        match self.run.step() {
            Step::CallModel => self.call_model().await,
            Step::RunTools(_) => Box::pin(self.run_tools()).await,
            Step::JudgeTools(_) => Box::pin(self.judge_tools()).await,
            Step::TakeHandoff(_) => self.take_handoff().await,
            Step::Conclude(_) => self.conclude().await,
            Step::Done(_) => Ok(()),
        }
    }

    fn count_added_usage(&mut self) {
        self.run.usage += self.added_usage.take();
    }

    async fn wind_up(&mut self, outcome: &Result<(), Error>) {
        if let Err(error) = outcome {
            self.trace.time_passes();
            self.mark_failure(error);
            Box::pin(self.keep_completed_tools()).await;
        }
        self.trace.end([&mut self.turn_span, &mut self.agent_span]);
    }

    /// Puts what the session holds in front of a run that is new.
    fn continue_session(&mut self) -> Soon<'_, Result<(), Error>> {
        if let Err(error) = self.check_server_history() {
            return at_once(Err(error));
        }
        if self.config.session.is_some() && !self.run.has_session {
            later(self.load_session())
        } else {
            at_once(Ok(()))
        }
    }

    async fn load_session(&mut self) -> Result<(), Error> {
        let Some(session) = &self.config.session else {
            return Ok(());
        };
        let new = self.run.input.items();
        if self.run.turns() > 0 {
            // Begun without a session: it gets all there is.
            let made = self.run.record.iter().map(RunItem::to_input_item);
            self.run.unsaved = new.iter().cloned().chain(made).collect();
            self.run.has_session = true;
            return Ok(());
        }
        let limit = self.config.session_limit;
        let history = no_panic(async { session.load(limit).await }).await;
        let history = history.map_err(|error| {
            let message = format!("the session could not be read, so nothing was run: {error}");
            Error::new(ErrorKind::Session, message).caused_by(error)
        })?;
        let unsaved = new.iter().map(Item::without_internal_fields);
        self.run.unsaved = model_input::latest_only(unsaved.collect());
        let (input, stored) = model_input::continued(&history, &new, limit.is_some());
        self.run.input = Input::Items(input);
        self.run.stored_input = stored;
        self.run.has_session = true;
        Ok(())
    }

    /// What the provider keeps can be neither taken back nor kept a second time.
    fn check_server_history(&self) -> Result<(), Error> {
        let Some(history) = &self.config.server_history else {
            return Ok(());
        };
        if !self.run.is_kept_in(history) {
            return Err(self.configuration(
                "the run was begun without this conversation, so the provider does not have what \
                 came before; resume it with the server_history it was begun with, or without any",
            ));
        }
        if self.config.session.is_some() {
            return Err(self.configuration(
                "the provider keeps the conversation, and so would the session; use one of them",
            ));
        }
        self.guards_no_server_history(&self.agent)
    }

    /// An output that a guardrail refuses would stay with the provider.
    fn guards_no_server_history(&self, agent: &Agent<C>) -> Result<(), Error> {
        let is_guarded =
            !agent.output_guardrails().is_empty() || !self.config.output_guardrails.is_empty();
        if self.config.server_history.is_some() && is_guarded {
            Err(self.configuration(format!(
                "the provider keeps the conversation, so an output guardrail of \"{}\" or of the run \
                 could not take an output back; do without one of them",
                agent.name()
            )))
        } else {
            Ok(())
        }
    }

    /// Gives the session what it has not got yet.
    fn save(&mut self) -> Soon<'_, Result<(), Error>> {
        if self.has_unsaved() {
            later(self.append_unsaved())
        } else {
            at_once(Ok(()))
        }
    }

    /// Whether the session is to be given anything.
    fn has_unsaved(&self) -> bool {
        self.config.session.is_some() && !self.run.unsaved.is_empty()
    }

    async fn append_unsaved(&mut self) -> Result<(), Error> {
        let Some(session) = &self.config.session else {
            return Ok(());
        };
        self.trace.time_passes();
        // A stop waits for this: items must not be stored and still count as not stored.
        let _saving = self.events.as_ref().map(Events::saving);
        let appended = no_panic(async { session.append(&self.run.unsaved).await }).await;
        appended.map_err(|error| {
            let message = format!(
                "the session could not be written; the run in this error still holds what was not \
                 stored, resume it once the session works again: {error}"
            );
            Error::new(ErrorKind::Session, message).caused_by(error)
        })?;
        self.run.unsaved.clear();
        Ok(())
    }

    /// Gives the session what it has not got yet, where the run fails for another reason: what could
    /// not be stored stays with the run.
    async fn save_or_warn(&mut self) {
        if let Err(error) = self.save().await {
            tracing::warn!(%error, "what a run made before it failed could not be stored");
        }
    }

    /// Gives tools that ran in a turn that then failed to the session and tells of them, so that
    /// who goes on with the conversation knows that they ran.
    async fn keep_completed_tools(&mut self) {
        // An output that guardrails have not passed yet must not get out this way.
        let guarded = self.has_output_guardrails();
        if guarded
            && !matches!(
                self.agent.tool_use_kind(),
                ToolUseBehaviorKind::RunModelAgain
            )
        {
            return;
        }
        let kept = self.run.keep_completed_tools();
        if kept.is_empty() {
            return;
        }
        self.save_or_warn().await;
        self.tell_items(kept).await;
    }

    /// What code of users is given.
    fn ctx(&self) -> RunContext<C> {
        self.trace.time_passes();
        let usage = self.run.usage + self.added_usage.get();
        RunContext::with_usage(self.context.clone(), usage, self.added_usage.clone())
    }

    /// How the machine must see the current agent. It borrows nothing of the run, which moves on.
    fn facts<'a>(agent: &'a Agent<C>, config: &RunConfig<C>, is_watched: bool) -> Facts<'a> {
        Facts {
            name: agent.name_arc(),
            output: agent.output_type(),
            unknown_tool: config.unknown_tool,
            tool_use: match agent.tool_use_kind() {
                ToolUseBehaviorKind::RunModelAgain => ToolUseRule::RunModelAgain,
                ToolUseBehaviorKind::StopOnFirstTool => ToolUseRule::StopOnFirstTool,
                ToolUseBehaviorKind::StopAtTools(names) => ToolUseRule::StopAtTools(names),
                ToolUseBehaviorKind::Function(_) => ToolUseRule::AskDriver,
            },
            is_watched,
        }
    }

    /// What the agent's model is offered in this turn; a resumed run has to ask again.
    fn offer(&mut self) -> Soon<'_, Result<Offer, Error>> {
        if self.offer.is_none() {
            self.offer = Offer::cached(&self.agent, self.config.tool_names);
        }
        match &self.offer {
            Some(offer) => at_once(Ok(offer.clone())),
            None => later(self.make_offer()),
        }
    }

    async fn make_offer(&mut self) -> Result<Offer, Error> {
        let made = Offer::made(&self.agent, self.ctx(), self.config.tool_names).await;
        let offer = made.map_err(|error| self.user_error("a condition", error))?;
        self.offer = Some(offer.clone());
        Ok(offer)
    }

    fn user_error(&self, what: &str, error: BoxError) -> Error {
        let message = format!("{what} failed: {error}");
        Error::new(ErrorKind::UserCode, message)
            .caused_by(error)
            .at_agent(self.agent.name())
    }

    fn configuration(&self, problem: impl Into<String>) -> Error {
        Error::new(ErrorKind::Configuration, problem).at_agent(self.agent.name())
    }

    fn parent_span(&self) -> Option<u64> {
        self.turn_span.id().or(self.agent_span.id())
    }

    /// Opens the agent's span where it is not open.
    fn open_agent_span(&mut self) {
        if self.agent_span.is_open() {
            return;
        }
        let agent = &self.agent;
        let data = || SpanData::Agent {
            name: agent.name_arc().clone(),
            handoffs: Arc::default(),
            tools: Arc::default(),
            output_type: match agent.output_type() {
                None => Cow::Borrowed("str"),
                Some(output) => Cow::Owned(output.name().to_owned()),
            },
        };
        self.trace.begin(&mut self.agent_span, None, data);
    }

    fn mark_failure(&mut self, error: &Error) {
        let message = match error.kind() {
            ErrorKind::MaxTurns => "Max turns exceeded",
            ErrorKind::InputGuardrail
            | ErrorKind::OutputGuardrail
            | ErrorKind::HandoffGuardrail
            | ErrorKind::ToolGuardrail => "Guardrail tripwire triggered",
            ErrorKind::UserCode
            | ErrorKind::Model
            | ErrorKind::ModelRefusal
            | ErrorKind::Session => "Error in agent run",
            // These are told where they happened: on the turn or the handoff.
            ErrorKind::ModelBehavior => {
                self.turn_span.fail("The model broke the rules", Vec::new());
                return;
            }
            ErrorKind::Configuration => {
                self.turn_span
                    .fail("The run is not configured to work", Vec::new());
                return;
            }
        };
        self.agent_span.fail(message, Vec::new());
    }

    /// Tells who listens, and waits until they have heard.
    fn tell(&self, event: impl FnOnce(&Self) -> StreamEvent<C>) -> Soon<'_, ()> {
        match &self.events {
            Some(events) => {
                self.trace.time_passes();
                later(events.send(event(self)))
            }
            None => at_once(()),
        }
    }

    fn tell_items(&mut self, items: Vec<RunItem>) -> Soon<'_, ()> {
        if self.events.is_none() {
            return at_once(());
        }
        later(async {
            for item in items {
                if !self.told.insert(item.key()) {
                    continue;
                }
                if let Some(event) = StreamEvent::of(item) {
                    self.tell(|_| event).await;
                }
            }
        })
    }

    /// Tells of what the turn added to the record after the model's own items.
    fn tell_recorded_since(&mut self, start: usize) -> Soon<'_, ()> {
        if self.events.is_none() {
            return at_once(());
        }
        let added = RunItems::tail(&self.run.record, start);
        let added = added.into_iter().cloned().collect();
        later(async {
            self.tell_items(added).await;
            self.told.clear();
        })
    }
}
