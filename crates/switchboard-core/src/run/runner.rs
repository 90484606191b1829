//! Starting a run.

mod settings;

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};

use futures_util::future::{Either, select};

use super::config::RunConfig;
use super::driver::Driver;
use super::events::Events;
use super::machine::Run;
use super::result::RunResult;
use super::roster;
use super::stream::RunStream;
use crate::agent::Agent;
use crate::context::RunContext;
use crate::error::{Error, ErrorKind};
use crate::items::Input;

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
/// Each method that configures the run writes into its [`RunConfig`]. A runner can be used for
/// many runs, one after another or at the same time.
pub struct Runner<C = (), S = NoContext> {
    agent: Agent<C>,
    config: Arc<RunConfig<C>>,
    context: S,
}

/// A runner that was given no context: its agents must want none.
#[derive(Debug, Clone, Copy)]
pub struct NoContext;

/// A runner that was given its context.
#[derive(Debug)]
pub struct WithContext<C>(Arc<C>);

/// The context itself is shared, so it need not be cloneable.
impl<C> Clone for WithContext<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Where a run gets its context from: [`NoContext`] for agents that want none, or what
/// [`Runner::context`] was given. Not for implementing.
#[diagnostic::on_unimplemented(
    message = "the agents of this run want a context of type `{C}`, and the run was given none",
    label = "call `.context(..)` with a `{C}` before this"
)]
pub trait ContextSource<C> {
    /// The context.
    fn context(&self) -> Arc<C>;
}

impl ContextSource<()> for NoContext {
    fn context(&self) -> Arc<()> {
        // One for all runs: there is nothing in it.
        static NOTHING: LazyLock<Arc<()>> = LazyLock::new(Arc::default);
        NOTHING.clone()
    }
}

impl<C> ContextSource<C> for WithContext<C> {
    fn context(&self) -> Arc<C> {
        self.0.clone()
    }
}

impl<C> Runner<C> {
    /// A runner whose runs begin with `agent`.
    pub fn new(agent: &Agent<C>) -> Self {
        Self {
            agent: agent.clone(),
            config: Arc::default(),
            context: NoContext,
        }
    }

    /// The application's state, given to every callback.
    pub fn context(self, context: impl Into<Arc<C>>) -> Runner<C, WithContext<C>> {
        Runner {
            agent: self.agent,
            config: self.config,
            context: WithContext(context.into()),
        }
    }
}

/// Runs.
impl<C: Send + Sync + 'static, S> Runner<C, S> {
    /// Runs the conversation to its end.
    ///
    /// Dropping the future cancels the run: callbacks in flight stop where they await, and the
    /// session holds whole turns only.
    ///
    /// # Errors
    /// What went wrong, with the run as far as it got.
    pub fn run<I: Into<Input>>(
        &self,
        input: I,
    ) -> impl Future<Output = Result<RunResult<C>, Error>> + Send + 'static + use<C, S, I>
    where
        S: ContextSource<C>,
    {
        to_the_end(self.driver(self.begun(input), self.agent.clone(), None))
    }

    /// Runs the conversation and tells what happens as it happens.
    pub fn stream(&self, input: impl Into<Input>) -> RunStream<C>
    where
        S: ContextSource<C>,
    {
        self.streamed(self.begun(input), self.agent.clone(), |driver| driver)
    }

    /// Like [`Runner::run`], as a part of the run of `outer`, which counts what this one uses.
    pub(crate) async fn run_within(
        &self,
        outer: &RunContext<C>,
        input: impl Into<Input>,
    ) -> Result<RunResult<C>, Error>
    where
        S: ContextSource<C>,
    {
        let driver = self.driver(self.begun(input), self.agent.clone(), None);
        to_the_end(driver.within(outer)).await
    }

    /// Like [`Runner::stream`], as a part of the run of `outer`, which counts what this one uses.
    pub(crate) fn stream_within(
        &self,
        outer: &RunContext<C>,
        input: impl Into<Input>,
    ) -> RunStream<C>
    where
        S: ContextSource<C>,
    {
        let run = self.begun(input);
        self.streamed(run, self.agent.clone(), |driver| driver.within(outer))
    }

    /// A run that has not taken a step yet, to be driven with [`Runner::step`].
    pub fn begin(&self, input: impl Into<Input>) -> Run {
        Run::new(roster::key(&self.agent, &self.agent), input.into())
    }

    /// The same, where a result or an error will hold it.
    fn begun(&self, input: impl Into<Input>) -> Box<Run> {
        Box::new(self.begin(input))
    }

    /// Takes one step of a run: one model call, one response's tools, one handoff.
    ///
    /// This is how a run is driven from outside, by something that stores it between steps.
    /// [`Run::step`] tells what comes next, and when it is over.
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
    /// A step that fails leaves the run at that step; what it had done by then (a callback of a
    /// handoff, tools that ran beside the one that failed) is noted and not done again. A step that
    /// is cancelled leaves the run at that step as well, with what was used counted and with what
    /// was noted on the way (guardrails that passed, hooks that were told, the callback of a
    /// handoff); but its tools and its model call are done again, also tools that had returned.
    ///
    /// # Errors
    /// What went wrong.
    pub async fn step(&self, run: &mut Run) -> Result<(), Error>
    where
        S: ContextSource<C>,
    {
        let agent = self.find(run)?;
        let lent = std::mem::replace(run, Run::new(run.agent.clone(), Input::Text("".into())));
        let mut lent = Lent {
            to: run,
            driver: self.driver(Box::new(lent), agent, None),
        };
        let outcome = lent.driver.drive_one_step().await;
        outcome.map_err(|error| error.at_agent(lent.driver.run_mut().agent()))
    }

    /// Goes on with a run that stopped or failed, from where it stood.
    ///
    /// The runner must begin with the agent the run began with: the agent that has the
    /// conversation is found from there by its name. Steps that were done are not done again, and
    /// of a step that failed neither the callback of its handoff nor the tools that ran.
    ///
    /// # Errors
    /// What went wrong, with the run as far as it got.
    pub async fn resume(&self, run: Run) -> Result<RunResult<C>, Error>
    where
        S: ContextSource<C>,
    {
        let (run, agent) = self.found(Box::new(run))?;
        to_the_end(self.driver(run, agent, None)).await
    }

    /// Like [`Runner::resume`], telling what happens as it happens.
    ///
    /// # Errors
    /// Where the run's agent cannot be found.
    pub fn resume_stream(&self, run: Run) -> Result<RunStream<C>, Error>
    where
        S: ContextSource<C>,
    {
        let (run, agent) = self.found(Box::new(run))?;
        Ok(self.streamed(run, agent, |driver| driver))
    }

    fn found(&self, run: Box<Run>) -> Result<(Box<Run>, Agent<C>), Error> {
        match self.find(&run) {
            Ok(agent) => Ok((run, agent)),
            Err(error) => Err(error.with_run(run)),
        }
    }

    /// The agent that has the conversation.
    fn find(&self, run: &Run) -> Result<Agent<C>, Error> {
        roster::find(&self.agent, run.agent()).ok_or_else(|| {
            let message = format!(
                "the run to resume is with agent \"{}\", which \"{}\" does not lead to; resume it with \
                 the agents it was begun with (an agent that a custom handoff picks is found only \
                 where the handoff says so with candidate)",
                run.agent(),
                self.agent.name()
            );
            Error::new(ErrorKind::Configuration, message)
        })
    }

    fn streamed(
        &self,
        run: Box<Run>,
        agent: Agent<C>,
        place: impl FnOnce(Driver<C>) -> Driver<C>,
    ) -> RunStream<C>
    where
        S: ContextSource<C>,
    {
        let events = Events::new();
        let mut driver = place(self.driver(run, agent, Some(events.clone())));
        let listener = events.clone();
        let future = async move {
            let outcome = {
                let stopped = poll_fn(|cx| events.poll_stopped(cx));
                let driven = std::pin::pin!(driver.drive());
                match select(stopped, driven).await {
                    Either::Left(((), _)) => Ok(()),
                    Either::Right((outcome, _)) => outcome,
                }
            };
            driver.finish(outcome)
        };
        RunStream::new(Box::pin(future), listener)
    }

    fn driver(&self, run: Box<Run>, agent: Agent<C>, events: Option<Events<C>>) -> Driver<C>
    where
        S: ContextSource<C>,
    {
        Driver::new(
            run,
            self.agent.clone(),
            agent,
            self.config.clone(),
            self.context.context(),
            events,
        )
    }
}

/// A run lent to a driver. However the driver ends, also by being cancelled, the run goes back.
struct Lent<'a, C: Send + Sync + 'static> {
    to: &'a mut Run,
    driver: Driver<C>,
}

impl<C: Send + Sync + 'static> Drop for Lent<'_, C> {
    fn drop(&mut self) {
        std::mem::swap(self.to, self.driver.run_mut());
    }
}

/// Boxed: the future is moved, into tasks and into futures around it that keep room for it twice. The
/// driver is in the same box, and in it once, as the block takes it in place.
fn to_the_end<C: Send + Sync + 'static>(
    mut driver: Driver<C>,
) -> Pin<Box<impl Future<Output = Result<RunResult<C>, Error>> + Send>> {
    Box::pin(async move {
        let outcome = driver.drive().await;
        driver.finish(outcome)
    })
}

impl<C, S: Clone> Clone for Runner<C, S> {
    fn clone(&self) -> Self {
        Self {
            agent: self.agent.clone(),
            config: self.config.clone(),
            context: self.context.clone(),
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
