//! Starting, attaching to and recovering durable runs.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_core::approval::{Decision, Interruption};
use switchboard_core::conversation::now;
use switchboard_core::people::PersonAnswer;
use switchboard_core::run::ContextSource;
use switchboard_core::{Agent, Error, Input, RunResult, Runner, Team};

use crate::active_runs::ActiveRuns;
use crate::embedded::{Embedded, run_id};
use crate::entry::{JournalEntry, Signal};
use crate::error::{DurableError, DurableErrorKind};
use crate::events::{POLL, RunEvents};
use crate::execution::{Executor, spawn};
use crate::record::RunRecord;

/// The number of times in a row that a step is tried again after failures that may pass.
const MAX_FAILURES: u32 = 8;

/// Runs conversations that survive the end of their process; see the [crate documentation](crate). Clones share the
/// runs of the process.
///
/// # Panics
/// The methods panic outside of a Tokio runtime.
pub struct DurableRunner<C = ()>(Arc<Executor<C>>);

/// Agents, or a runner with the settings of runs.
pub trait IntoRunner<C> {
    /// The runner.
    fn into_runner(self) -> Runner<C, Arc<C>>;
}

impl IntoRunner<()> for &Agent<()> {
    fn into_runner(self) -> Runner<(), Arc<()>> {
        Runner::new(self).with_shared_context()
    }
}

/// The first agent of a team gets the first message.
impl IntoRunner<()> for &Team<()> {
    fn into_runner(self) -> Runner<(), Arc<()>> {
        let first = self.agents().first().cloned();
        Runner::new(&first.unwrap_or_else(|| Agent::new(""))).with_shared_context()
    }
}

impl<C, S: ContextSource<C>> IntoRunner<C> for Runner<C, S> {
    fn into_runner(self) -> Runner<C, Arc<C>> {
        self.with_shared_context()
    }
}

impl<C: Send + Sync + 'static> DurableRunner<C> {
    /// Creates a runner of a team, an agent, or with the settings of a [`Runner`]. The conversations are those of the engine's
    /// store. If the runner has a session of another kind, that one is used; it is read once for each run, and an append to
    /// it may be repeated after a crash.
    pub fn new(engine: Embedded, runner: impl IntoRunner<C>) -> Self {
        Self(Arc::new(Executor {
            engine,
            runner: runner.into_runner(),
            active: ActiveRuns::default(),
            max_failures: MAX_FAILURES,
        }))
    }

    /// Starts a run for a message of a conversation. `key` identifies the message: if a run with it was started before, this
    /// attaches to that run, and `input` is not used.
    ///
    /// Once this has returned, the message is stored and is answered, whatever happens to this process.
    ///
    /// # Errors
    /// The store's error. The message may be stored: start it again with the same key.
    pub async fn start(
        &self,
        conversation: &str,
        key: &str,
        input: impl Into<Input>,
    ) -> Result<DurableRun<C>, DurableError> {
        let id = run_id(conversation, key);
        let start = serde_json::to_string(&self.0.runner.begin(input));
        let start = start.and_then(RawValue::from_string).map_err(|error| {
            let message = format!("the input of run \"{id}\" cannot be stored: {error}");
            DurableError::new(DurableErrorKind::Damaged, message)
        })?;
        let start = JournalEntry::Start(start);
        self.0.engine.create(&id, conversation, key, &start).await?;
        self.take_up(&id);
        Ok(self.run(id))
    }

    /// Attaches to a run by its identifier.
    ///
    /// # Errors
    /// An error if there is no such run, or the store cannot be read.
    pub async fn attach(&self, id: &str) -> Result<DurableRun<C>, DurableError> {
        self.0.engine.record(id).await?;
        Ok(self.run(id.to_owned()))
    }

    /// Lists the runs, the last changed first.
    ///
    /// # Errors
    /// The store's error.
    pub async fn list(
        &self,
        limit: impl Into<Option<usize>>,
    ) -> Result<Vec<RunRecord>, DurableError> {
        self.0.engine.list(limit.into()).await
    }

    /// Takes up the runs that are due: those whose process is gone, and those that paused. Returns how many there were.
    /// Call it at the start of a process, and from time to time (or [`work`](Self::work)) for runs of processes that end
    /// later.
    ///
    /// # Errors
    /// The store's error.
    pub async fn recover(&self) -> Result<usize, DurableError> {
        let due = self.0.engine.due(now()).await?;
        let taken = due.iter().filter(|run| self.take_up(&run.id));
        Ok(taken.count())
    }

    /// Takes up runs that become due, until [`drain`](Self::drain) is called.
    pub async fn work(&self) {
        while !self.0.active.is_draining() {
            if let Err(error) = self.recover().await {
                tracing::warn!(%error, "the runs that are due cannot be listed");
            }
            let _ = tokio::time::timeout(POLL * 5, self.0.active.changed()).await;
        }
    }

    /// Takes no more runs, lets steps in progress end, and makes the runs due for other processes. Returns `false` if some are
    /// still in a step after `time`; they go on elsewhere once their lease ends.
    pub async fn drain(&self, time: Duration) -> bool {
        self.0.active.drain();
        let ended = async {
            while !self.0.active.is_empty() {
                let _ = tokio::time::timeout(POLL, self.0.active.changed()).await;
            }
        };
        tokio::time::timeout(time, ended).await.is_ok()
    }

    /// The engine.
    pub fn engine(&self) -> &Embedded {
        &self.0.engine
    }

    fn run(&self, id: String) -> DurableRun<C> {
        DurableRun {
            runner: self.clone(),
            id,
        }
    }

    /// Begins to execute a run in this process. Returns `false` if it does already.
    fn take_up(&self, id: &str) -> bool {
        let Some(active) = self.0.active.add(id) else {
            return false;
        };
        let (executor, id) = (self.0.clone(), id.to_owned());
        let this = self.clone();
        spawn(async move {
            let executed = executor.execute(active, &id).await;
            if let Err(error) = executed
                && !matches!(
                    error.kind(),
                    DurableErrorKind::Taken | DurableErrorKind::NotWaiting
                )
            {
                tracing::warn!(run = id, %error, "a run cannot be executed; it is taken up again later");
            }
            this.take_up_later(&id).await;
        });
        true
    }

    /// Takes a run that has paused up again, when it is due.
    async fn take_up_later(&self, id: &str) {
        let Ok(record) = self.0.engine.record(id).await else {
            return;
        };
        if record.is_ended() || self.0.active.is_draining() {
            return;
        }
        if let Some(due) = record.due {
            let pause = due.duration_since(now()).unwrap_or_default();
            tokio::time::sleep(pause).await;
            self.take_up(id);
        }
    }
}

/// A durable run, which this process or another one has. Clones share it.
pub struct DurableRun<C = ()> {
    runner: DurableRunner<C>,
    id: String,
}

impl<C: Send + Sync + 'static> DurableRun<C> {
    /// The identifier, by which any process can attach to the run.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The state of the run.
    ///
    /// # Errors
    /// The store's error.
    pub async fn record(&self) -> Result<RunRecord, DurableError> {
        self.runner.0.engine.record(&self.id).await
    }

    /// Waits until the run has ended, waits for a person, or has stopped.
    ///
    /// # Errors
    /// The store's error.
    pub async fn wait(&self) -> Result<RunRecord, DurableError> {
        loop {
            let changed = self.runner.0.active.changed();
            let record = self.record().await?;
            if record.is_settled() {
                return Ok(record);
            }
            let _ = tokio::time::timeout(POLL, changed).await;
        }
    }

    /// The result of a run that has ended or waits, made again from its journal; no step takes place again. Conditions and
    /// filters are evaluated again.
    ///
    /// # Errors
    /// The outer error if the journal cannot be read, or the run goes on. The inner one is that of the run.
    pub async fn result(&self) -> Result<Result<RunResult<C>, Error>, DurableError> {
        let record = self.record().await?;
        if !record.is_settled() {
            let message = format!("the run \"{}\" is {}", self.id, record.status.name());
            return Err(DurableError::new(DurableErrorKind::NotWaiting, message));
        }
        self.runner.0.replay(&self.id).await
    }

    /// Reads the events of the run, from its start (`None`) or after one whose position is known.
    pub fn events(&self, after: impl Into<Option<u64>>) -> RunEvents {
        let next = after.into().map_or(0, |position| position + 1);
        let executor = &self.runner.0;
        RunEvents::new(
            executor.engine.clone(),
            executor.active.clone(),
            self.id.clone(),
            next,
        )
    }

    /// Decides a call that waits; see [`RunStatus::Waiting`](crate::RunStatus::Waiting).
    ///
    /// # Errors
    /// An error if the run does not wait for it, or the store cannot be written.
    pub async fn decide(
        &self,
        waiting: &Interruption,
        decision: Decision,
    ) -> Result<(), DurableError> {
        self.check_waiting(waiting).await?;
        self.signal(Signal::Decide(Box::new(waiting.clone()), decision))
            .await
    }

    /// Answers for the person that the run waits for.
    ///
    /// # Errors
    /// An error if the run does not wait for the person, or the store cannot be written.
    pub async fn answer(
        &self,
        waiting: &Interruption,
        answer: PersonAnswer,
    ) -> Result<(), DurableError> {
        self.check_waiting(waiting).await?;
        self.signal(Signal::Answer(Box::new(waiting.clone()), answer))
            .await
    }

    /// Cancels the run. What it has committed to the conversation stays.
    ///
    /// # Errors
    /// An error if the run has ended, or the store cannot be written.
    pub async fn cancel(&self) -> Result<(), DurableError> {
        self.signal(Signal::Cancel).await
    }

    /// Goes on with a run that has stopped because the team had changed, or takes one up that is due later.
    ///
    /// # Errors
    /// An error if the run has ended, or the store cannot be written.
    pub async fn resume(&self) -> Result<(), DurableError> {
        self.signal(Signal::Resume).await
    }

    /// Deletes the journal of a run that has ended. The conversation stays. The key of its message is free again.
    ///
    /// # Errors
    /// An error if the run has not ended, or the store cannot be written.
    pub async fn delete(&self) -> Result<(), DurableError> {
        let record = self.record().await?;
        if !record.is_ended() {
            let message = format!(
                "the run \"{}\" is {}; cancel it first",
                self.id,
                record.status.name()
            );
            return Err(DurableError::new(DurableErrorKind::NotWaiting, message));
        }
        self.runner.0.engine.delete(&self.id).await
    }

    async fn check_waiting(&self, waiting: &Interruption) -> Result<(), DurableError> {
        let record = self.record().await?;
        if let crate::RunStatus::Waiting { interruptions } = &record.status
            && interruptions.contains(waiting)
        {
            return Ok(());
        }
        let message = format!("the run \"{}\" does not wait for this", self.id);
        Err(DurableError::new(DurableErrorKind::NotWaiting, message))
    }

    async fn signal(&self, signal: Signal) -> Result<(), DurableError> {
        let executor = &self.runner.0;
        executor.engine.signal(&self.id, signal).await?;
        if !executor.active.wake(&self.id) {
            self.runner.take_up(&self.id);
        }
        Ok(())
    }
}

impl<C> Clone for DurableRunner<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<C> Clone for DurableRun<C> {
    fn clone(&self) -> Self {
        Self {
            runner: self.runner.clone(),
            id: self.id.clone(),
        }
    }
}

impl<C> fmt::Debug for DurableRunner<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableRunner")
            .field("engine", &self.0.engine)
            .finish_non_exhaustive()
    }
}

impl<C> fmt::Debug for DurableRun<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableRun")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
