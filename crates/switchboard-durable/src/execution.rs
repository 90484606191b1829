//! Driving a run with its journal, from its start or from where it was.

mod logged;
mod outcome;
mod stored;

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_core::callback::BoxFuture;
use switchboard_core::journal::JournalHandle;
use switchboard_core::run::RunStatus as Status;
use switchboard_core::{Error, ErrorKind, EventKind, Run, RunResult, RunStream, Runner};
use tokio::time::{Instant, sleep_until};

use self::outcome::{After, Driven};
use crate::active_runs::{ActiveRun, ActiveRuns};
use crate::engine::{Engine, StepLog};
use crate::entry::Signal;
use crate::error::{DurableError, DurableErrorKind};
use crate::executor::{Execute, Execution};
use crate::journal::{Recorded, RunJournal};
use crate::order::{Turn, Waiting};
use crate::record::{RunRecord, RunStatus};
use crate::run_store::RunStore;
use crate::teams::Teams;

/// The time that events, and the steps of a log, wait for others to be written with.
const WRITE_PAUSE: Duration = Duration::from_millis(50);

/// Drives runs of teams.
pub(crate) struct TeamExecutor<C> {
    pub(crate) teams: Teams<C>,
    pub(crate) active: ActiveRuns,
    /// The engine, which is made with this executor.
    pub(crate) engine: OnceLock<Weak<dyn Engine>>,
}

impl<C: Send + Sync + 'static> Execute for TeamExecutor<C> {
    fn execute_stored<'a>(
        &'a self,
        runs: &'a RunStore,
        lease: Duration,
        run: ActiveRun,
    ) -> BoxFuture<'a, Result<bool, DurableError>> {
        Box::pin(self.take_and_drive_stored(runs, lease, run))
    }

    fn execute_logged<'a>(
        &'a self,
        runs: &'a RunStore,
        run: ActiveRun,
        log: &'a mut dyn StepLog,
    ) -> BoxFuture<'a, Result<Execution, DurableError>> {
        Box::pin(self.take_and_drive_logged(runs, run, log))
    }
}

impl<C: Send + Sync + 'static> TeamExecutor<C> {
    /// Waits until it is the turn of a run, and takes its conversation.
    async fn take_conversation(
        &self,
        runs: &RunStore,
        run: &ActiveRun,
        is_ordered: bool,
    ) -> Result<Turn, DurableError> {
        let waiting = Waiting {
            runs,
            run,
            engine: self.engine.get().and_then(Weak::upgrade),
            is_ordered,
        };
        let has_conversation = |record: &RunRecord| {
            let team = self.teams.of_version(record.version.as_deref());
            team.is_ok_and(|team| has_conversation(team))
        };
        waiting.take_conversation(has_conversation).await
    }

    /// The run as it began, and its runner, with its conversation and its journal.
    fn begin(
        &self,
        runs: &RunStore,
        journal: &RunJournal,
        start: &RawValue,
    ) -> Result<(Run, Runner<C, Arc<C>>), After> {
        let stopped = |reason| After::Status(RunStatus::Stopped { reason });
        if let Some(reason) = journal.interrupted_in_replay() {
            return Err(stopped(reason));
        }
        let run = read_start(start).map_err(|error| self.after_failure(journal, &error))?;
        let team = self.teams.of_version(journal.version().as_deref());
        let team = team.map_err(stopped)?;
        let runner = with_conversation(team, runs, &journal.record().conversation);
        Ok((run, runner.journal(JournalHandle::new(journal.clone()))))
    }

    /// Makes a run again, in which nothing takes place.
    pub(crate) async fn replay(
        &self,
        runs: &RunStore,
        id: &str,
    ) -> Result<Result<RunResult<C>, Error>, DurableError> {
        let recorded = Recorded::read(runs, id).await?;
        let team = self.teams.of_version(recorded.version.as_deref());
        let team = team.map_err(|reason| DurableError::new(DurableErrorKind::Version, reason))?;
        let runner = with_conversation(team, runs, &recorded.record.conversation);
        let runner = runner.journal(JournalHandle::new(recorded.steps));
        let mut run = match read_start(&recorded.start) {
            Ok(run) => run,
            Err(error) => return Ok(Err(error)),
        };
        let mut waits = recorded.waits.into_iter();
        loop {
            let result = match runner.resume(run).await {
                Ok(result) if result.status() == Status::Interrupted => result,
                ended => return Ok(ended),
            };
            if waits.len() == 0 {
                return Ok(Ok(result));
            }
            run = result.into_run();
            for signals in waits.by_ref() {
                apply(&mut run, signals);
                if is_decided(&run) {
                    break;
                }
            }
        }
    }

    async fn drive(
        &self,
        runner: &Runner<C, Arc<C>>,
        journal: &RunJournal,
        run: Run,
        active: &ActiveRun,
    ) -> Driven<C> {
        let followed = match runner.resume_stream(run) {
            Ok(stream) => self.follow(journal, stream, active).await,
            Err(error) => Err(error),
        };
        match followed {
            Err(error) => Driven::Failed(error),
            Ok(result) => match result.final_output() {
                Some(output) => Driven::Done(output.clone()),
                None => Driven::Waiting(result),
            },
        }
    }

    /// Stores the events of a run until it ends or waits. Stops if the journal cannot be written any more.
    async fn follow(
        &self,
        journal: &RunJournal,
        mut stream: RunStream<C>,
        active: &ActiveRun,
    ) -> Result<RunResult<C>, Error> {
        let renewal = journal.lease() / 3;
        let mut renew_at = Instant::now() + renewal;
        let mut flush_at: Option<Instant> = None;
        let mut over = std::pin::pin!(journal.over());
        // The run may have been woken for it before.
        if self.active.is_draining() {
            journal.drain();
        }
        loop {
            let at = flush_at.map_or(renew_at, |flush_at| flush_at.min(renew_at));
            let event = tokio::select! {
                biased;
                () = active.wake.notified() => {
                    if self.active.is_draining() {
                        journal.drain();
                    }
                    journal.extend_soon();
                    continue;
                }
                () = over.as_mut() => {
                    stream.stop();
                    return stream.finish().await;
                }
                event = stream.next() => event,
                // Steps of a log are stored later too.
                () = journal.unwritten(), if flush_at.is_none() => {
                    flush_at = Some(Instant::now() + WRITE_PAUSE);
                    continue;
                }
                () = sleep_until(at) => {
                    // A write extends the lease too, where it is due.
                    if Instant::now() >= renew_at {
                        journal.extend_soon();
                    } else {
                        journal.flush_soon();
                    }
                    flush_at = None;
                    renew_at = Instant::now() + renewal;
                    continue;
                }
            };
            let Some(event) = event else {
                return stream.finish().await;
            };
            if matches!(
                event.kind,
                EventKind::RunFailed { .. } | EventKind::RunStopped { .. }
            ) {
                // A run that pauses goes on after that.
                journal.hold_last_event(&event);
                continue;
            }
            if let Err(error) = journal.send(&event) {
                tracing::warn!(%error, "an event of a run is lost");
            }
        }
    }
}

/// The runner, with the conversation of the run. A session of the application, and a conversation that the provider
/// keeps, take its place.
fn with_conversation<C: Send + Sync + 'static>(
    team: &Runner<C, Arc<C>>,
    runs: &RunStore,
    conversation: &str,
) -> Runner<C, Arc<C>> {
    if !has_conversation(team) {
        return team.clone();
    }
    let is_exclusive = team.config().exclusive.is_some();
    let runner = team
        .clone()
        .session(&runs.conversations().get(conversation));
    if is_exclusive {
        runner
    } else {
        runner.exclusive(Duration::ZERO)
    }
}

/// The runner of a drive, for which the conversation was taken or is still to be taken.
fn begin_with<C>(runner: &Runner<C, Arc<C>>, is_taken: bool) -> Runner<C, Arc<C>> {
    let runner = runner.clone();
    if is_taken {
        runner.conversation_is_taken()
    } else {
        runner
    }
}

/// Returns `true` if the runs of a team are those of a conversation in the store of the engine.
fn has_conversation<C, S>(team: &Runner<C, S>) -> bool {
    let config = team.config();
    config.session.is_none() && config.server_history.is_none()
}

fn read_start(start: &RawValue) -> Result<Run, Error> {
    serde_json::from_str(start.get()).map_err(|error| {
        let message = format!("the start of the run cannot be read: {error}");
        switchboard_core::__agent_parts::error(ErrorKind::Configuration, message)
    })
}

/// Gives a run the decisions and answers that were sent. One that fits nothing that waits is dropped.
fn apply(run: &mut Run, signals: Vec<Signal>) {
    for signal in signals {
        let applied = match signal {
            Signal::Decide(waiting, decision) => run.decide(&waiting, decision),
            Signal::Answer(waiting, answer) => run.answer(&waiting, answer),
            Signal::Input(words) => run.add_input(words),
            Signal::Cancel | Signal::Resume { .. } => Ok(()),
        };
        if let Err(error) = applied {
            tracing::warn!(%error, "a decision does not fit the run, and is dropped");
        }
    }
}

/// Returns `true` if something that the run waited for is decided.
fn is_decided(run: &Run) -> bool {
    !matches!(run.step(), switchboard_core::Step::AwaitDecision)
}
