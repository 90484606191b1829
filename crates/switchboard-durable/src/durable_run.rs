//! A durable run: its state, its events, and the messages to it.

use std::fmt;
use std::time::Duration;

use switchboard_core::approval::{Decision, Interruption};
use switchboard_core::people::PersonAnswer;
use switchboard_core::{Error, RunResult};

use crate::entry::Signal;
use crate::error::{DurableError, DurableErrorKind};
use crate::events::{POLL, RunEvents};
use crate::overdue::Overdue;
use crate::record::{RunRecord, RunStatus};
use crate::run_store::DeletedRuns;
use crate::runner::DurableRunner;

/// The pause between two looks at a run of this process.
const LOOK: Duration = Duration::from_secs(2);

/// A message to a run that waits.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Reply {
    /// The decision on a call.
    Decision(Interruption, Decision),
    /// The answer of a person.
    Answer(Interruption, PersonAnswer),
    /// Words of the user for the agent, beside decisions.
    Input(String),
}

impl From<Reply> for Signal {
    fn from(reply: Reply) -> Self {
        match reply {
            Reply::Decision(waiting, decision) => Self::Decide(Box::new(waiting), decision),
            Reply::Answer(waiting, answer) => Self::Answer(Box::new(waiting), answer),
            Reply::Input(words) => Self::Input(words),
        }
    }
}

/// A durable run, which this process or another one has. Clones share it.
pub struct DurableRun<C = ()> {
    pub(crate) runner: DurableRunner<C>,
    pub(crate) id: String,
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
        self.runner.engine.runs().record(&self.id).await
    }

    /// Waits until the run has ended, waits for a person, or has stopped.
    ///
    /// # Errors
    /// The store's error.
    pub async fn wait(&self) -> Result<RunRecord, DurableError> {
        let active = &self.runner.team.active;
        let mut overdue = Overdue::default();
        loop {
            let settled = active.settled(&self.id);
            // Nothing is to be read as long as this process executes it; others may cancel it, so look now and then.
            if active.is_unsettled(&self.id) && tokio::time::timeout(LOOK, settled).await.is_ok() {
                continue;
            }
            let settled = active.settled(&self.id);
            let record = self.record().await?;
            if record.is_settled() {
                return Ok(record);
            }
            overdue.look(&*self.runner.engine, &record).await?;
            // The end of a run of this process is notified.
            let pause = if active.is_to_execute(&record) {
                LOOK
            } else {
                POLL
            };
            let _ = tokio::time::timeout(pause, settled).await;
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
        let team = &self.runner.team;
        team.replay(self.runner.engine.runs(), &self.id).await
    }

    /// Reads the events of the run, from its start (`None`) or after one whose position is known.
    pub fn events(&self, after: impl Into<Option<u64>>) -> RunEvents {
        RunEvents::new(
            self.runner.engine.runs().clone(),
            self.runner.team.active.clone(),
            self.id.clone(),
            after.into(),
        )
        .submitting(self.runner.engine.clone())
    }

    /// Decides a call that waits; see [`RunStatus::Waiting`].
    ///
    /// # Errors
    /// An error if the run does not wait for it, or the store cannot be written.
    pub async fn decide(
        &self,
        waiting: &Interruption,
        decision: Decision,
    ) -> Result<(), DurableError> {
        self.reply([Reply::Decision(waiting.clone(), decision)])
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
        self.reply([Reply::Answer(waiting.clone(), answer)]).await
    }

    /// Gives the run several decisions and answers at once, so that it goes on with all of them.
    ///
    /// # Errors
    /// An error if the run does not wait for one of them, or the store cannot be written. Then nothing is stored.
    pub async fn reply(
        &self,
        replies: impl IntoIterator<Item = Reply>,
    ) -> Result<(), DurableError> {
        let replies: Vec<Reply> = replies.into_iter().collect();
        let fits = |record: &RunRecord| {
            let waiting = match &record.status {
                RunStatus::Waiting { interruptions } => interruptions.as_slice(),
                _ => &[],
            };
            let is_waiting = !waiting.is_empty();
            let fits = replies.iter().all(|reply| match reply {
                Reply::Decision(call, _) | Reply::Answer(call, _) => waiting.contains(call),
                Reply::Input(_) => is_waiting,
            });
            if fits {
                return Ok(());
            }
            let message = format!("the run \"{}\" does not wait for this", self.id);
            Err(DurableError::new(DurableErrorKind::NotWaiting, message))
        };
        let signals: Vec<Signal> = replies.iter().cloned().map(Signal::from).collect();
        self.signal(&signals, fits).await
    }

    /// Cancels the run. What it has committed to the conversation stays.
    ///
    /// # Errors
    /// An error if the run has ended, or the store cannot be written.
    pub async fn cancel(&self) -> Result<(), DurableError> {
        let engine = &self.runner.engine;
        let run = engine.runs().cancel(&self.id).await?;
        engine.wake(&run).await
    }

    /// Goes on with a run that has stopped because the team had changed, or takes one up that is due later.
    ///
    /// # Errors
    /// An error if the run has ended, or the store cannot be written.
    pub async fn resume(&self) -> Result<(), DurableError> {
        self.signal(&[Signal::Resume { version: None }], |_| Ok(()))
            .await
    }

    /// Goes on with a run that has stopped, with another version of the team than it began with. The steps that it has taken
    /// count; if that version does something else, it stops again.
    ///
    /// # Errors
    /// An error if the run has ended, or the store cannot be written.
    pub async fn resume_as(&self, version: impl Into<String>) -> Result<(), DurableError> {
        let version = Some(version.into());
        self.signal(&[Signal::Resume { version }], |_| Ok(())).await
    }

    /// Deletes the journal of a run that has ended. The conversation stays. The key of its message is free again.
    ///
    /// # Errors
    /// An error if the run has not ended, or the store cannot be written.
    pub async fn delete(&self) -> Result<(), DurableError> {
        self.runner
            .engine
            .runs()
            .delete(&self.id, DeletedRuns::Ended)
            .await
    }

    /// Stores signals for a run of which `fits` holds, and wakes it.
    async fn signal(
        &self,
        signals: &[Signal],
        fits: impl Fn(&RunRecord) -> Result<(), DurableError>,
    ) -> Result<(), DurableError> {
        let DurableRunner {
            engine, executor, ..
        } = &self.runner;
        let fits = |record: &RunRecord| executor.check(record).and_then(|()| fits(record));
        let run = engine.runs().signal(&self.id, signals, fits).await?;
        engine.wake(&run).await
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

impl<C> fmt::Debug for DurableRun<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DurableRun")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}
