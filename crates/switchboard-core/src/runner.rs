//! Starting, resuming and stepping runs.

mod announcement;
mod budgets;
mod compaction;
mod fallback_output;
mod fan_out;
mod handoff_policy;
mod run_callbacks;
mod run_config;
mod run_policies;
mod run_result;
mod settings;
mod shared_limits;
mod state_check;

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use crate::run::approvals::StandingDecision;
use crate::run::{Run, agent_keys};

use crate::driver::Driver;

use crate::stream::RunStream;
pub use announcement::PossibleAnnouncement;
pub use budgets::{AtBudget, Budget, Budgets, Price};
pub use compaction::Compaction;
pub use fallback_output::{Fallback, Recovery, RunFailure, RunProblem};
pub(crate) use fan_out::Join;
pub use fan_out::{BranchAnswer, BranchFailures, FanOut};
pub use handoff_policy::{
    AnnouncedHandoffs, ApprovalGuardrails, AtLoopLimit, HandoffPolicy, HandoffRetries, LoopLimits,
    ResumeChecks, SeveralHandoffs,
};
pub use run_callbacks::{
    BlockedOutputText, ModelFilter, SessionInput, ToolErrorMessage, ToolErrorText,
};
pub(crate) use run_callbacks::{DEFAULT_BLOCKED_OUTPUT, blocked_output_text};
pub use run_config::{DEFAULT_MAX_AGENT_DEPTH, DEFAULT_MAX_TURNS, NameCollision, RunConfig};
pub use run_policies::{ActiveAgent, Exclusive, HistoryPolicy, InnerEvents, StreamedOutput};
pub use run_result::{RunResult, RunStatus};
pub(crate) use shared_limits::{OuterBudgets, RequestInProgress, SharedTurns};
pub use state_check::{StateProblem, StateProblemKind, StateProblems};

use crate::agent::Agent;
use crate::error::Error;
use crate::items::Input;
use crate::journal::{JournalHandle, JournalScope};
use crate::model::AddedUsage;
use crate::session::SessionHandle;
use crate::stream::event_sink::EventSink;
use crate::tool::{OuterToolCall, ToolContext};
use crate::trace::TraceParent;

/// Runs a conversation, beginning with one agent.
///
/// ```
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::{Agent, Item, Runner};
///
/// # futures_util::FutureExt::now_or_never(async {
/// let model = ScriptedModel::new()
///     .reply([Item::function_call("call_1", "transfer_to_billing_agent", "{}")])
///     .say("Your bill is fixed.");
/// let billing: Agent = Agent::new("Billing agent").instructions("You handle bills.");
/// let triage = Agent::new("Triage agent").handoff(&billing);
///
/// let result = Runner::new(&triage).model(model).run("My bill is wrong").await?;
/// assert_eq!(result.last_agent().name(), "Billing agent");
/// assert_eq!(result.final_text(), "Your bill is fixed.");
/// # Ok::<(), switchboard_core::Error>(())
/// # }).unwrap().unwrap();
/// ```
///
/// Each method that configures the run writes into its [`RunConfig`]. A runner can be used for many
/// runs, also concurrently.
///
/// `S` is `()` until the runner is given a context, and `Arc<C>` afterwards; agents without a
/// context need none.
#[must_use]
pub struct Runner<C = (), S = ()> {
    agent: Agent<C>,
    config: Arc<RunConfig<C>>,
    context: S,
    outer: Surroundings,
}

/// The tool call and the trace around a run.
#[derive(Clone, Default)]
pub(crate) struct Surroundings {
    /// The usage of the run whose tool started this one.
    pub(crate) usage: Option<AddedUsage>,
    /// The span of that tool, or a trace of the application.
    pub(crate) trace: TraceParent,
    /// That tool call.
    pub(crate) call: Option<Arc<OuterToolCall>>,
    /// The session of the run whose tool started this one.
    pub(crate) session: Option<SessionHandle>,
    /// Standing decisions of the run whose tool started this one.
    pub(crate) standing: Vec<StandingDecision>,
    /// The turns that the run shares with those beside it.
    pub(crate) turns: Option<Arc<SharedTurns>>,
    /// The budgets of the runs around this one.
    pub(crate) budgets: Option<Arc<OuterBudgets>>,
    /// The stream of the run around this one, where it shows the events of this one.
    pub(crate) events: Option<EventSink>,
    /// The journal, and the place of the run in it.
    pub(crate) journal: Option<JournalScope>,
    /// The idempotency key of the call that the run lies inside of, for a run with a journal.
    pub(crate) call_key: Option<String>,
}

/// The context of a runner: `()` for agents without one, or what [`Runner::context`] was given.
#[diagnostic::on_unimplemented(
    message = "the agents of this run want a context of type `{C}`, and the run was given none",
    label = "call `.context(..)` with a `{C}` before this"
)]
pub trait ContextSource<C> {
    /// The context.
    fn context(&self) -> Arc<C>;
}

impl ContextSource<()> for () {
    fn context(&self) -> Arc<()> {
        static EMPTY: LazyLock<Arc<()>> = LazyLock::new(Arc::default);
        EMPTY.clone()
    }
}

impl<C> ContextSource<C> for Arc<C> {
    fn context(&self) -> Self {
        self.clone()
    }
}

impl<C> Runner<C> {
    /// Creates a runner whose runs begin with `agent`.
    pub fn new(agent: &Agent<C>) -> Self {
        Self {
            agent: agent.clone(),
            config: Arc::default(),
            context: (),
            outer: Surroundings::default(),
        }
    }

    /// Sets the application's context, which every callback gets.
    pub fn context(self, context: impl Into<Arc<C>>) -> Runner<C, Arc<C>> {
        Runner {
            agent: self.agent,
            config: self.config,
            context: context.into(),
            outer: self.outer,
        }
    }
}

impl<C, S> Runner<C, S> {
    /// The agent that runs begin with.
    pub fn agent(&self) -> &Agent<C> {
        &self.agent
    }

    /// The settings of the runs.
    pub fn config(&self) -> &RunConfig<C> {
        &self.config
    }

    /// Puts the runs inside a tool call of another run: their usage is counted there as well, its budgets
    /// hold for them, and their spans lie under that of the call. If that run is streamed, its stream has
    /// their events too ([`inner_events`](Self::inner_events)), unless they are streams themselves. Their
    /// code can read the call, see [`RunContext::outer_call`](crate::RunContext::outer_call).
    ///
    /// ```
    /// use switchboard_core::{Agent, Runner, Tool, tool};
    ///
    /// let expert: Agent = Agent::new("Expert");
    /// let ask: Tool = tool("ask").run(move |ctx, (): ()| {
    ///     let run = Runner::new(&expert).within(&ctx).run("What is new?");
    ///     async move { run.await.map(|result| result.final_text().into_owned()) }
    /// });
    /// ```
    pub fn within<O>(mut self, call: &ToolContext<O>) -> Self {
        self.outer = Surroundings {
            usage: Some(call.run_context().added().clone()),
            trace: call.trace().clone(),
            call: Some(Arc::new(call.as_outer())),
            session: call.session().cloned(),
            standing: call.standing().to_vec(),
            turns: None,
            budgets: call.budgets().cloned(),
            events: call.events_inside(),
            call_key: (call.run_context().journal_scope()).map(|_| call.idempotency_key()),
            journal: call.run_context().journal_scope().cloned(),
        };
        self
    }

    /// Passes the effects of one run through a journal; see [`journal`](crate::journal). Use the runner, or clones
    /// of it, for that run alone, also where it is resumed after a wait.
    pub fn journal(mut self, journal: JournalHandle) -> Self {
        self.outer.journal = Some(JournalScope::new(journal));
        self
    }

    /// Puts the runs into a trace of the application, at its root or under one of its spans: pass a
    /// [`Trace`](crate::trace::Trace) or a [`CustomSpan`](crate::trace::CustomSpan).
    ///
    /// Their spans go to the tracers of that trace; those of the runner are not used, and neither are
    /// its group, identifier and metadata. With [`tracing_off`](Self::tracing_off) there are no spans.
    pub fn within_trace(mut self, parent: impl Into<TraceParent>) -> Self {
        self.outer.trace = parent.into();
        self
    }
}

/// Runs.
impl<C: Send + Sync + 'static, S> Runner<C, S> {
    /// Runs the conversation to its end.
    ///
    /// Dropping the future cancels the run: callbacks in progress stop where they await, and the
    /// session holds whole turns only.
    ///
    /// # Errors
    /// The error of the run, with the run as it was before the step that failed.
    pub fn run<I: Into<Input>>(
        &self,
        input: I,
    ) -> impl Future<Output = Result<RunResult<C>, Error>> + Send + 'static + use<C, S, I>
    where
        S: ContextSource<C>,
    {
        drive(self.start(input))
    }

    /// Runs the conversation as a stream of events.
    pub fn stream(&self, input: impl Into<Input>) -> RunStream<C>
    where
        S: ContextSource<C>,
    {
        RunStream::new(self.start(input))
    }

    /// Creates a run that has not taken a step, to be driven with [`Runner::step`].
    pub fn begin(&self, input: impl Into<Input>) -> Run {
        let agent = agent_keys::agent_ref(&self.agent, &self.agent);
        let mut run = Run::new(agent, input.into());
        run.position.is_person = self.agent.is_person();
        // A run inside a tool is the same one when the run around it is made again, with the keys of its calls.
        if let (Some(journal), Some(call)) = (&self.outer.journal, &self.outer.call_key) {
            run.id = journal.run_id(call);
        }
        run
    }

    /// Takes one step of a run: one model call, one response's tools, one handoff.
    ///
    /// Use it to drive a run from outside, for instance to store it between steps. [`Run::step`]
    /// returns what comes next.
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Run, Runner, Step};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let agent: Agent = Agent::new("Greeter");
    /// let runner = Runner::new(&agent).model(ScriptedModel::new().say("Hello!"));
    /// let mut run = runner.begin("Hi");
    /// while !matches!(run.step(), Step::Done(_)) {
    ///     runner.step(&mut run).await?;
    ///     let stored = serde_json::to_string(&run).unwrap();
    ///     run = serde_json::from_str(&stored).unwrap();
    /// }
    /// # Ok::<(), switchboard_core::Error>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// A step that fails leaves the run at that step, unless only its items could not be saved, which
    /// are saved with the next step; finished parts of it (the callback of a handoff,
    /// tools that ran beside the one that failed) are not repeated. A step that is cancelled leaves
    /// the run at that step as well, with its usage counted; guardrails that passed, hooks that were
    /// called and the callback of a handoff are not repeated, but its model call and all its tools
    /// are.
    ///
    /// # Errors
    /// The error of the step.
    pub async fn step(&self, run: &mut Run) -> Result<(), Error>
    where
        S: ContextSource<C>,
    {
        let agent = self.take_over(run)?;
        let mut borrowed = BorrowedRun {
            driver: self.driver(run.take(), agent),
            owner: run,
        };
        borrowed.driver.drive_one_step().await
    }

    /// Continues a run that stopped or failed.
    ///
    /// The runner must begin with the agent the run began with: the agent that has the conversation
    /// is found from there by its name. [`Runner::check_state`] says before whether these agents can go on
    /// with it. Finished steps are not repeated, nor the callback of a
    /// handoff that failed later, nor tools that ran beside one that failed.
    ///
    /// # Errors
    /// The error of the run, with the run as it was before the step that failed.
    pub async fn resume(&self, run: Run) -> Result<RunResult<C>, Error>
    where
        S: ContextSource<C>,
    {
        drive(self.continued(run)?).await
    }

    /// Like [`Runner::resume`], as a stream of events.
    ///
    /// # Errors
    /// An error if the agents cannot go on with the run; see [`Runner::check_state`].
    pub fn resume_stream(&self, run: Run) -> Result<RunStream<C>, Error>
    where
        S: ContextSource<C>,
    {
        self.continued(run).map(RunStream::new)
    }

    /// Stores the message of a run that was stopped, and the part of the answer that the user has seen. The
    /// run itself stores whole turns only.
    ///
    /// With a [`Conversation`](crate::conversation::Conversation), both are committed as a turn of the run,
    /// if the conversation is as the run has seen it. Do not resume the run afterwards: its next message
    /// begins a new one. Returns `false` if there is nothing to store: `shown` is empty, the run has its
    /// output or waits for a decision, or input guardrails have yet to pass the message.
    ///
    /// ```
    /// use switchboard_core::conversation::Conversations;
    /// use switchboard_core::model::ModelEvent;
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, EventKind, Runner, Session};
    ///
    /// # futures_util::FutureExt::now_or_never(async {
    /// let part = ModelEvent::TextDelta { item: "msg".into(), text: "Once upon".into() };
    /// let agent: Agent = Agent::new("Teller").model(ScriptedModel::new().stream_events([part]));
    /// let session = Conversations::in_memory().get("customer-42");
    /// let runner = Runner::new(&agent).session(&session);
    /// let mut stream = runner.stream("A story, please");
    /// let mut shown = String::new();
    /// while let Some(event) = stream.next().await {
    ///     if let EventKind::TextDelta { text, .. } = event.kind {
    ///         shown.push_str(&text);
    ///         stream.stop();
    ///     }
    /// }
    /// let result = stream.finish().await?;
    /// assert!(runner.store_stopped(result.run(), &shown).await?);
    /// assert_eq!(session.load(None).await?.len(), 2);
    /// # Ok::<(), switchboard_core::callback::BoxError>(())
    /// # }).unwrap().unwrap();
    /// ```
    ///
    /// # Errors
    /// The session's error; a
    /// [`Conflict`](crate::conversation::ConversationErrorKind::Conflict) if another writer was faster. Nothing
    /// is stored then.
    pub async fn store_stopped(&self, run: &Run, shown: &str) -> Result<bool, Error>
    where
        S: ContextSource<C>,
    {
        let mut run = run.clone();
        let agent = self.take_over(&mut run)?;
        let mut driver = self.driver(run, agent);
        Box::pin(driver.store_stopped(shown)).await
    }

    /// Checks that the agents of the runner can go on with the conversation of its session, without a run.
    ///
    /// # Errors
    /// The error that a run would begin with: a
    /// [`ConversationError`](crate::conversation::ConversationError) for another team or an agent that is
    /// gone, or the store's error.
    pub async fn check_conversation(&self) -> Result<(), Error>
    where
        S: ContextSource<C>,
    {
        Box::pin(self.start("").check_conversation()).await
    }
}

impl<C, S: ContextSource<C>> Runner<C, S> {
    /// Converts the runner into one that holds its context, so that runners with and without a context have
    /// one type.
    pub fn with_shared_context(self) -> Runner<C, Arc<C>> {
        let context = self.context.context();
        Runner {
            agent: self.agent,
            config: self.config,
            context,
            outer: self.outer,
        }
    }
}

impl<C: Send + Sync + 'static, S: ContextSource<C>> Runner<C, S> {
    /// The driver of a new run.
    fn start(&self, input: impl Into<Input>) -> Driver<C> {
        self.driver(self.begin(input), self.agent.clone())
    }

    /// The driver of a run that stopped or failed.
    fn continued(&self, mut run: Run) -> Result<Driver<C>, Error> {
        match self.take_over(&mut run) {
            Ok(agent) => Ok(self.driver(run, agent)),
            Err(error) => Err(error.with_run(Box::new(run))),
        }
    }

    fn driver(&self, run: Run, agent: Agent<C>) -> Driver<C> {
        let (start, config) = (self.agent.clone(), self.config.clone());
        let context = self.context.context();
        Driver::new(run, start, agent, config, context, &self.outer)
    }
}

/// A run that a driver has borrowed. It is given back however the step ends, also when it is
/// cancelled.
struct BorrowedRun<'a, C: Send + Sync + 'static> {
    owner: &'a mut Run,
    driver: Driver<C>,
}

impl<C: Send + Sync + 'static> Drop for BorrowedRun<'_, C> {
    fn drop(&mut self) {
        *self.owner = self.driver.take_run();
    }
}

/// Drives a run to its end. Boxed, so that the futures around it stay small.
fn drive<C: Send + Sync + 'static>(
    mut driver: Driver<C>,
) -> Pin<Box<impl Future<Output = Result<RunResult<C>, Error>> + Send>> {
    Box::pin(async move {
        let outcome = driver.drive().await;
        driver.report_end(&outcome).await;
        driver.finish(outcome)
    })
}

impl<C, S: Clone> Clone for Runner<C, S> {
    fn clone(&self) -> Self {
        Self {
            agent: self.agent.clone(),
            config: self.config.clone(),
            context: self.context.clone(),
            outer: self.outer.clone(),
        }
    }
}

impl<C, S> fmt::Debug for Runner<C, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Runner")
            .field("agent", &self.agent.name())
            .field("config", &self.config)
            .finish_non_exhaustive()
    }
}
