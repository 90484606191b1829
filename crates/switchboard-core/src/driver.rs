//! Carries out in this process what the machine asks for.
//!
//! The files below hold one kind of step each. Futures that most runs do not need are boxed, so
//! that a run that waits for its model stays small.

/// Sets data of a span that was not known when it began.
macro_rules! update_span {
    ($span:expr, $kind:ident.$field:ident = $value:expr) => {
        $span.update(|data| {
            if let SpanData::$kind { $field: field, .. } = data {
                *field = $value;
            }
        })
    };
}

/// Awaits an effect: as it is, or through the journal of a run that has one. A macro, so that the futures of runs
/// without a journal are as large as those of the effects.
macro_rules! effect {
    ($driver:expr, $kind:ident, $name:expr, $work:expr) => {
        match $driver.journal.as_deref() {
            None => $work.await,
            Some(journal) => {
                let place = ($driver.run.turns(), crate::journal::StepKind::$kind, $name);
                journal.carry_out(place, Box::pin($work)).await
            }
        }
    };
}

/// Awaits a condition, as [`effect`] does. On a replay it is evaluated again, and the recorded answer counts:
/// what it reads may have been changed by tools that do not run again.
macro_rules! condition {
    ($driver:expr, $kind:ident, $name:expr, $work:expr) => {
        match $driver.journal.as_deref() {
            None => $work.await,
            Some(journal) => {
                let place = ($driver.run.turns(), crate::journal::StepKind::$kind, $name);
                journal.check(place, Box::pin($work)).await
            }
        }
    };
}

pub(crate) mod agent_parts;
mod approvals;
mod budgets;
mod compaction;
mod conversation;
mod conversation_team;
mod edges;
mod events;
mod fan_out;
mod guardrails;
mod handoff;
mod handoff_decision;
mod handoff_input;
mod held_events;
mod hooks;
mod journal;
mod model_attempts;
mod model_call;
mod model_stream;
mod people;
mod session;
mod spans;
mod tool_calls;
mod tool_failures;
mod tool_guardrails;
pub(crate) mod ways_back;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};

use futures_util::TryFutureExt as _;
use rustc_hash::FxHashSet;

use self::conversation::{AttachedConversation, Lease};
use self::held_events::HeldEvents;
use self::spans::TraceScope;
use crate::agent::Agent;
use crate::callback::BoxError;
use crate::context::RunContext;
use crate::error::{Error, ErrorKind};
use crate::items::Item;
use crate::journal::JournalScope;
use crate::model::{AddedUsage, CacheGroup};
use crate::offered_tools::Offer;
use crate::run::model_response::{EmptyOutput, ResponseRules};
use crate::run::resumption::Claim;
use crate::run::turn::CallKey;
use crate::run::{Run, Step};
use crate::runner::{
    OuterBudgets, RequestInProgress, RunConfig, RunProblem, RunResult, SharedTurns, Surroundings,
    blocked_output_text,
};
use crate::session::SessionHandle;
use crate::stream::event_sink::EventSink;
use crate::tool::OuterToolCall;
use crate::trace::trace_handle::{OpenSpan, TraceEnd, TraceHandle};
use crate::trace::{SpanId, Tracing};

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
    /// The call that the run lies inside of, where it is inside one.
    outer: Option<Box<OuterCall>>,
    /// The budgets that hold for runs inside the step in progress.
    budgets_inside: Option<Arc<OuterBudgets>>,
    trace: TraceHandle,
    /// Set if the trace is that of a run or an application around this run.
    is_inside_trace: bool,
    /// The span that the run lies under: that of a tool, for a run inside one.
    root_span: Option<SpanId>,
    /// Set while the run is in its trace.
    is_traced: bool,
    /// Each span before the one it is part of: fields are dropped in this order.
    turn_span: OpenSpan,
    agent_span: OpenSpan,
    task_span: OpenSpan,
    trace_end: TraceEnd,
    /// The tools and handoffs that the model was offered in this turn.
    offer: Option<Offer>,
    /// Items that a filter on model calls has left out of the request in progress, where the provider
    /// keeps the conversation.
    left_out: Option<Box<LeftOut>>,
    events: Option<EventSink>,
    /// The stored conversation, once it is loaded.
    conversation: Option<Box<AttachedConversation>>,
    lease: Option<Box<Lease>>,
    /// Events that wait for the verdict of output guardrails.
    held: HeldEvents,
    /// Keys of the items of this turn that listeners were notified of, where there are any.
    reported: Option<Box<FxHashSet<usize>>>,
    /// The number of the turn in progress.
    turn: u32,
    /// The journal of the run, where it has one.
    journal: Option<Box<JournalScope>>,
    /// The claim to resume the run from its last wait, while what was decided is carried out.
    claim: Option<Box<Claim>>,
    /// Set when a guardrail has refused the input in a run with a journal, before the journal has its verdict.
    input_refused: AtomicBool,
}

/// The call that a run lies inside of.
struct OuterCall {
    call: Arc<OuterToolCall>,
    /// The session of the run around this one.
    session: Option<SessionHandle>,
    /// The turns that the run shares with those beside it.
    turns: Option<Arc<SharedTurns>>,
    /// The budgets of the runs around this one.
    budgets: Option<Arc<OuterBudgets>>,
    /// The request to a model that has no response yet, as those budgets count it.
    request: Mutex<Option<RequestInProgress>>,
}

/// Items that a filter on model calls has left out.
struct LeftOut(Vec<Item>);

impl<C: Send + Sync + 'static> Driver<C> {
    pub(super) fn new(
        mut run: Run,
        start: Agent<C>,
        agent: Agent<C>,
        config: Arc<RunConfig<C>>,
        context: Arc<C>,
        outer: &Surroundings,
    ) -> Self {
        if outer.call.is_some() {
            run.inherit_standing(&outer.standing);
        }
        // Version 3 stored only the key.
        run.agent.name = agent.name_arc().clone();
        run.position.is_person = agent.is_person();
        let around = match config.tracing {
            Tracing::Off => None,
            _ => outer.trace.trace(),
        };
        let is_inside_trace = around.is_some();
        let (trace, root_span) = around.unwrap_or_else(|| {
            let stored = run.trace.as_ref().map(|trace| &trace.info);
            let trace = TraceHandle::new(&config.tracing, &config.trace, stored);
            (trace, None)
        });
        let cache_group = CacheGroup::new(
            config.session.clone(),
            config.trace.group.clone(),
            run.cache_key.clone(),
        );
        let added_usage = AddedUsage::of_run(cache_group, outer.usage.clone());
        Self {
            turn: run.turns(),
            run: Arc::new(run),
            agent,
            start,
            trace,
            is_inside_trace,
            root_span,
            added_usage,
            outer: outer.call.clone().map(|call| {
                Box::new(OuterCall {
                    call,
                    session: outer.session.clone(),
                    turns: outer.turns.clone(),
                    budgets: outer.budgets.clone(),
                    request: Mutex::default(),
                })
            }),
            budgets_inside: None,
            config,
            context,
            is_traced: false,
            turn_span: OpenSpan::default(),
            agent_span: OpenSpan::default(),
            task_span: OpenSpan::default(),
            trace_end: TraceEnd::default(),
            offer: None,
            left_out: None,
            events: outer.events.clone(),
            conversation: None,
            lease: None,
            held: match &outer.events {
                Some(_) => HeldEvents::of_stream(),
                None => HeldEvents::default(),
            },
            reported: None,
            journal: outer.journal.clone().map(Box::new),
            claim: None,
            input_refused: AtomicBool::new(false),
        }
    }

    /// Sends the events of the run to a stream.
    pub(super) fn send_events_to(&mut self, events: EventSink) {
        self.held = HeldEvents::of_stream();
        self.events = Some(events);
    }

    /// The run, to be changed by the machine.
    fn run_mut(&mut self) -> &mut Run {
        Arc::make_mut(&mut self.run)
    }

    /// Drives the run to its end.
    pub(super) async fn drive(&mut self) -> Result<(), Error> {
        self.begin_trace(TraceScope::Run);
        let outcome = self.take_all_steps().await;
        self.clean_up(outcome).await
    }

    /// Takes one step of the run.
    pub(super) async fn drive_one_step(&mut self) -> Result<(), Error> {
        self.begin_trace(TraceScope::Step);
        let outcome = self.take_one_step().await;
        self.clean_up(outcome).await
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
        self.run_mut().take()
    }

    async fn take_all_steps(&mut self) -> Result<(), Error> {
        let prepared = self.prepare_input().await;
        self.report_start().await;
        prepared?;
        let mut is_first = true;
        loop {
            self.save_unless_held_back().await?;
            match self.run.step() {
                Step::Done(_) => return Ok(()),
                // Resumed without a decision.
                Step::AwaitDecision if is_first => return Box::pin(self.resume_agent()).await,
                Step::AwaitDecision => return Ok(()),
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
        self.prepare_input().await?;
        self.save_unless_held_back().await?;
        self.take_step().await?;
        self.save().await
    }

    /// Puts the history of the session before the input of a new run.
    async fn prepare_input(&mut self) -> Result<(), Error> {
        self.load_session().await?;
        if self.config.omit_reasoning_ids && self.run.turns() == 0 {
            self.run_mut().omit_reasoning_ids();
        }
        Ok(())
    }

    async fn take_step(&mut self) -> Result<(), Error> {
        if let Some(lease) = self.lease.clone() {
            self.extend_lease().await?;
            return Box::pin(lease.kept_during(self.take_plain_step())).await;
        }
        self.take_plain_step().await
    }

    async fn take_plain_step(&mut self) -> Result<(), Error> {
        // The model call holds back once its turn is reported.
        if !matches!(self.run.step(), Step::CallModel) {
            self.hold_output_back();
        }
        if self.run.approvals.is_some() && !matches!(self.run.step(), Step::AwaitDecision) {
            Box::pin(self.leave_wait()).await?;
        }
        let clock = self.has_budgets().then(|| self.start_clock());
        let outcome = match self.run.step() {
            Step::CallModel | Step::Conclude(_) if self.has_edges() => {
                Box::pin(self.step_with_edges()).await
            }
            Step::CallModel if self.has_budgets() => {
                Box::pin(self.call_model_within_budgets()).await
            }
            Step::CallModel => self.call_model().await,
            Step::RunTools(_) => Box::pin(self.run_tools()).await,
            Step::FanOut(_) => Box::pin(self.run_branches()).await,
            Step::DecideToolUse(_) => Box::pin(self.decide_tool_use()).await,
            Step::TakeHandoff(_) => self.take_handoff().await,
            Step::AskPerson => Box::pin(self.ask_person()).await,
            Step::TakeAnswer(_) => Box::pin(self.take_answer()).await,
            Step::Conclude(_) => self.conclude().await,
            Step::Done(_) | Step::AwaitDecision => Ok(()),
        };
        if let Some(clock) = clock {
            self.stop_clock(clock);
        }
        if self.run.approvals.is_some() {
            self.end_wait(outcome.is_ok());
        }
        outcome?;
        if self.events.is_some() {
            Box::pin(self.release_unless_output()).await;
        }
        Ok(())
    }

    fn count_added_usage(&mut self) {
        let run = Arc::make_mut(&mut self.run);
        self.added_usage
            .move_into(&mut run.usage, &mut run.request_usage);
        if run.cache_key.is_none() {
            let group = self.added_usage.cache_group();
            run.cache_key = group.and_then(CacheGroup::run_key).cloned();
        }
    }

    async fn clean_up(&mut self, outcome: Result<(), Error>) -> Result<(), Error> {
        let outcome = outcome.map_err(|error| error.at_agent(self.agent.name()));
        let goes_on = match (&self.journal, &outcome) {
            (Some(journal), Err(error)) => journal.goes_on_after(error),
            _ => false,
        };
        if let Err(error) = &outcome {
            self.mark_failure(error);
            if self.events.is_some() {
                let code = self.config.blocked_output_text.as_ref();
                let text = blocked_output_text(code, error.guardrail());
                Box::pin(self.release_without_output(None, &text)).await;
            }
            // A run that is tried again has them in its journal, and commits them with their turn.
            if !goes_on {
                Box::pin(self.save_completed_tools()).await;
            }
            if self.conversation.is_some() && error.guardrail().is_some() {
                Box::pin(self.record_refusal(error)).await;
            }
        }
        let is_recorded_later = self.journal.is_some() && outcome.is_ok() && self.run.is_done();
        if goes_on || is_recorded_later {
            // The run is tried again, perhaps in another process, or its end is not recorded yet: its lease is still its own.
            self.lease = None;
        } else if self.lease.is_some() {
            self.end_lease().await;
        }
        self.leave_trace(outcome.is_err());
        outcome
    }

    /// Cleans up after a stop: turns that were committed are saved.
    pub(super) async fn clean_up_after_stop(&mut self) {
        self.release_without_output(None, "").await;
        if !self.holds_input_back() {
            self.save_or_warn().await;
        }
        // A run with a journal may have gone on in another process, with the same lease.
        if self.lease.is_some() && self.journal.is_none() {
            self.end_lease().await;
        }
        self.leave_trace(false);
    }

    /// The context for user code.
    fn ctx(&self) -> RunContext<C> {
        let usage = *self.run.usage() + self.added_usage.get();
        RunContext::with_usage(self.context.clone(), usage, self.added_usage.clone())
            .inside(self.outer.as_ref().map(|outer| outer.call.clone()))
            .with_received(self.run.received.clone())
            .with_journal(self.journal.as_deref(), self.run.turns())
    }

    /// The place of the calls of the current turn.
    fn call_key(&self) -> CallKey {
        let own = self.config.session.as_ref();
        let around = self.outer.as_ref().and_then(|outer| outer.session.as_ref());
        CallKey {
            session: own.or(around).cloned(),
            run: self.run.id,
            turn: self.run.turns(),
        }
    }

    /// Runs user code within a span. `what` names it in the error. Not an `async fn`, whose future
    /// would have room for `code` twice.
    fn run_code<T>(
        &self,
        span: Option<SpanId>,
        what: &str,
        code: impl Future<Output = Result<T, BoxError>>,
    ) -> impl Future<Output = Result<T, Error>> {
        let outcome = self.trace.within(span, code);
        outcome.map_err(move |error| user_error(what, error))
    }

    /// The tools and handoffs of this turn. A resumed run evaluates the conditions again.
    async fn offer(&mut self) -> Result<Offer, Error> {
        if let Some(offer) = &self.offer {
            return Ok(offer.clone());
        }
        let in_place = self.agent_in_place();
        let agent = in_place.as_ref().unwrap_or(&self.agent);
        let offer = match Offer::cached(agent, self.config.tool_names) {
            Some(offer) => offer,
            None => {
                let resolve = async {
                    let tools = self.enabled_tools(agent).await?;
                    self.offer_with_tools(agent, tools).await
                };
                Box::pin(self.run_code(self.parent_span(), "a condition", resolve)).await?
            }
        };
        self.offer = Some(offer.clone());
        Ok(offer)
    }

    /// The settings by which the machine accepts a response.
    fn response_rules<'a>(agent: &'a Agent<C>, config: &'a RunConfig<C>) -> ResponseRules<'a> {
        let recovery = config.recovery.as_ref();
        ResponseRules {
            output_type: agent.output_type(),
            unknown_tool: config.unknown_tool,
            omit_reasoning_ids: config.omit_reasoning_ids,
            handoff_retries: config.handoff_policy.retries,
            announced: config.handoff_policy.announced.as_ref(),
            is_announced: false,
            empty_output: match recovery {
                Some(recovery) if recovery.handles(RunProblem::InvalidOutput) => {
                    EmptyOutput::Reject
                }
                _ => EmptyOutput::AskAgain,
            },
        }
    }
}

fn user_error(what: &str, error: BoxError) -> Error {
    let message = format!("{what} failed: {error}");
    Error::new(ErrorKind::UserCode, message).caused_by(error)
}

fn configuration_error(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::Configuration, problem)
}
