//! Does in this process what the machine asks for.

mod handoff;
mod turn;

use std::sync::Arc;

use super::config::RunConfig;
use super::events::{Events, StreamEvent};
use super::machine::{Facts, Run, Step, ToolUseRule};
use super::result::{RunResult, RunStatus};
use super::view;
use crate::agent::{Agent, ToolUseKind};
use crate::callback::BoxError;
use crate::context::RunContext;
use crate::error::{Error, ErrorKind};
use crate::hooks::DynRunHooks;
use crate::items::{Input, RunItem, RunItems};
use crate::offer::Offer;
use crate::trace::{OpenSpan, SpanData, Trace};

/// One run in this process.
pub(super) struct Driver<C> {
    run: Run,
    agent: Agent<C>,
    /// The agent the run began with; others are found from it.
    start: Agent<C>,
    config: Arc<RunConfig<C>>,
    context: Arc<C>,
    trace: Trace,
    agent_span: OpenSpan,
    turn_span: OpenSpan,
    /// What the agent's model was offered in this turn.
    offer: Option<Offer>,
    events: Option<Events<C>>,
    /// Items of this turn that were told of already, where somebody listens.
    told: Vec<RunItem>,
    status: RunStatus,
}

impl<C: Send + Sync + 'static> Driver<C> {
    pub(super) fn new(
        run: Run,
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
            agent_span: OpenSpan::default(),
            turn_span: OpenSpan::default(),
            offer: None,
            events,
            told: Vec::new(),
            status: RunStatus::Stopped,
        }
    }

    /// Takes the run as far as it goes.
    pub(super) async fn drive(&mut self) -> Result<(), Error> {
        let outcome = self.go().await;
        self.wind_up(&outcome).await;
        outcome
    }

    /// What came of the run.
    pub(super) fn finish(self, outcome: Result<(), Error>) -> Result<RunResult<C>, Error> {
        match outcome {
            Ok(()) => Ok(RunResult::new(self.run, self.agent, self.status)),
            Err(error) => Err(error.at_agent(self.agent.name()).with_run(self.run)),
        }
    }

    /// Takes one step of the run.
    pub(super) async fn drive_one_step(&mut self) -> Result<(), Error> {
        let outcome = async {
            self.continue_session().await?;
            self.save().await?;
            self.take_step().await?;
            self.save().await
        };
        let outcome = outcome.await;
        self.wind_up(&outcome).await;
        outcome
    }

    async fn wind_up(&mut self, outcome: &Result<(), Error>) {
        if let Err(error) = outcome {
            self.mark_failure(error);
            self.keep_completed_tools().await;
        }
        self.turn_span = OpenSpan::default();
        self.agent_span = OpenSpan::default();
    }

    async fn go(&mut self) -> Result<(), Error> {
        self.tell(|driver| StreamEvent::AgentUpdated(driver.agent.clone()))
            .await;
        self.continue_session().await?;
        loop {
            self.save().await?;
            match self.run.step() {
                Step::Done(_) => {
                    self.status = RunStatus::Completed;
                    return Ok(());
                }
                Step::CallModel if self.events.as_ref().is_some_and(Events::stops_after_turn) => {
                    return Ok(());
                }
                _ => self.take_step().await?,
            }
        }
    }

    async fn take_step(&mut self) -> Result<(), Error> {
        match self.run.step() {
            Step::CallModel => self.call_model().await,
            Step::RunTools(_) => self.run_tools().await,
            Step::JudgeTools(_) => self.judge_tools().await,
            Step::TakeHandoff(_) => self.take_handoff().await,
            Step::Conclude(_) => self.conclude().await,
            Step::Done(_) => Ok(()),
        }
    }

    /// Puts what the session holds in front of a run that is new.
    async fn continue_session(&mut self) -> Result<(), Error> {
        let Some(session) = self.config.session.clone() else {
            return Ok(());
        };
        if self.run.has_session || self.run.turns() > 0 {
            self.run.has_session = true;
            return Ok(());
        }
        let loaded = session.load(self.config.session_limit).await;
        let history = loaded.map_err(|error| {
            let message = format!("the session could not be read, so nothing was run: {error}");
            Error::new(ErrorKind::Session, message).caused_by(error)
        })?;
        let new = self.run.input.items();
        self.run.unsaved = new
            .iter()
            .map(|item| item.without_internal_fields())
            .collect();
        self.run.input = Input::Items(view::continued(&history, &new));
        self.run.has_session = true;
        Ok(())
    }

    /// Gives the session what it has not got yet.
    async fn save(&mut self) -> Result<(), Error> {
        if self.run.unsaved.is_empty() {
            return Ok(());
        }
        if let Some(session) = &self.config.session {
            session.append(&self.run.unsaved).await.map_err(|error| {
                let message = format!(
                    "the session could not be written; the run it carries still holds what was not \
                     stored, resume it once the session works again: {error}"
                );
                Error::new(ErrorKind::Session, message).caused_by(error)
            })?;
        }
        self.run.unsaved.clear();
        Ok(())
    }

    /// Tells of tools that ran in a turn that then failed, and gives them to the session, so that
    /// who goes on with the conversation knows that they ran.
    async fn keep_completed_tools(&mut self) {
        let kept = self.run.keep_completed_tools();
        if kept.is_empty() {
            return;
        }
        self.tell_items(kept).await;
        if let Err(error) = self.save().await {
            tracing::warn!(%error, "completed tools of a failed turn could not be stored");
        }
    }

    fn ctx(&self) -> RunContext<C> {
        RunContext::with_usage(self.context.clone(), self.run.usage)
    }

    fn hooks(&self) -> Option<&dyn DynRunHooks<C>> {
        self.config.hooks.as_ref().map(|hooks| &*hooks.0)
    }

    /// How the machine must see the current agent. It borrows nothing of the run, which moves on.
    fn facts<'a>(agent: &'a Agent<C>, config: &RunConfig<C>, is_watched: bool) -> Facts<'a> {
        Facts {
            name: agent.name_arc(),
            output: agent.output_type(),
            unknown_tool: config.unknown_tool,
            tool_use: match agent.tool_use_kind() {
                ToolUseKind::RunModelAgain => ToolUseRule::RunModelAgain,
                ToolUseKind::StopOnFirstTool => ToolUseRule::StopOnFirstTool,
                ToolUseKind::StopAtTools(names) => ToolUseRule::StopAtTools(names),
                ToolUseKind::Function(_) => ToolUseRule::AskDriver,
            },
            is_watched,
        }
    }

    /// What the agent's model is offered in this turn; a resumed run has to ask again.
    async fn offer(&mut self) -> Result<Offer, Error> {
        if let Some(offer) = &self.offer {
            return Ok(offer.clone());
        }
        let offer = Offer::of(&self.agent, &self.ctx(), self.config.tool_names).await;
        let offer = offer.map_err(|error| self.user_error("a condition", error))?;
        self.offer = Some(offer.clone());
        Ok(offer)
    }

    fn user_error(&self, what: &str, error: BoxError) -> Error {
        let message = format!("{what} failed: {error}");
        Error::new(ErrorKind::UserCode, message)
            .caused_by(error)
            .at_agent(self.agent.name())
    }

    fn parent_span(&self) -> Option<u64> {
        self.turn_span.id().or(self.agent_span.id())
    }

    fn open_agent_span(&mut self) {
        if self.agent_span.is_open() {
            return;
        }
        let agent = &self.agent;
        self.agent_span = self.trace.span(None, || SpanData::Agent {
            name: agent.name_arc().clone(),
            handoffs: Vec::new(),
            tools: Vec::new(),
            output_type: agent
                .output_type()
                .map_or_else(|| "str".to_owned(), |output| output.name().to_owned()),
        });
    }

    fn mark_failure(&mut self, error: &Error) {
        let message = match error.kind() {
            ErrorKind::MaxTurns => "Max turns exceeded",
            ErrorKind::InputGuardrail | ErrorKind::OutputGuardrail => {
                "Guardrail tripwire triggered"
            }
            ErrorKind::UserCode | ErrorKind::Model | ErrorKind::Session => "Error in agent run",
            // These are told where they happened: on the turn or the handoff.
            ErrorKind::ModelBehavior | ErrorKind::ModelRefusal | ErrorKind::Configuration => {
                self.turn_span.fail(&error.to_string(), Vec::new());
                return;
            }
        };
        self.agent_span.fail(message, Vec::new());
    }

    /// Tells who listens, and waits until they have heard.
    async fn tell(&self, event: impl FnOnce(&Self) -> StreamEvent<C>) {
        if let Some(events) = &self.events {
            // Boxed, so that plain runs do not carry room for it; likewise below.
            Box::pin(events.send(event(self))).await;
        }
    }

    async fn tell_items(&mut self, items: Vec<RunItem>) {
        if self.events.is_none() {
            return;
        }
        let telling = async {
            for item in items {
                if self.told.iter().any(|told| told.is_same(&item)) {
                    continue;
                }
                self.told.push(item.clone());
                if let Some(event) = StreamEvent::of(item) {
                    self.tell(|_| event).await;
                }
            }
        };
        Box::pin(telling).await;
    }

    /// Tells of what the turn added to the record after the model's own items.
    async fn tell_recorded_since(&mut self, start: usize) {
        if self.events.is_none() {
            return;
        }
        let added = RunItems::tail(&self.run.record, start);
        let added = added.into_iter().cloned().collect();
        self.tell_items(added).await;
        self.told.clear();
    }
}
