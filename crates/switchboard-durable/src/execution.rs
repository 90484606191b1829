//! Driving a run with its journal, from its start or from where it was.

use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_core::journal::JournalHandle;
use switchboard_core::run::RunStatus as Status;
use switchboard_core::{Error, ErrorKind, FinalOutput, Run, RunResult, RunStream, Runner};
use tokio::time::{Instant, sleep_until};

use crate::active_runs::{ActiveRun, ActiveRuns};
use crate::embedded::Embedded;
use crate::entry::Signal;
use crate::error::DurableError;
use crate::journal::{End, Recorded, RunJournal};
use crate::record::RunStatus;

/// The time that events wait for others to be written with.
const EVENT_PAUSE: Duration = Duration::from_millis(50);

/// The pause before a run that found its conversation in use is tried again.
const BUSY_PAUSE: Duration = Duration::from_millis(200);

/// The pauses after failures that may pass: the first, which doubles, and the longest.
const RETRY_PAUSES: (Duration, Duration) = (Duration::from_millis(500), Duration::from_secs(60));

/// Drives runs of one runner.
pub(crate) struct Executor<C> {
    pub(crate) engine: Embedded,
    pub(crate) runner: Runner<C, Arc<C>>,
    pub(crate) active: ActiveRuns,
    pub(crate) max_failures: u32,
}

impl<C: Send + Sync + 'static> Executor<C> {
    /// Takes a run and drives it until it ends, waits, or has to pause.
    pub(crate) async fn execute(&self, run: ActiveRun, id: &str) -> Result<(), DurableError> {
        let (journal, start) = RunJournal::take(&self.engine, id).await?;
        if let Some(End::Cancelled) = journal.end() {
            journal.release(RunStatus::Cancelled, 0, None).await?;
            return Ok(());
        }
        let driven = self.drive(&journal, &start, &run).await;
        let released = match (journal.end(), driven) {
            (Some(End::Taken), _) => {
                tracing::warn!(run = id, "another process has taken the run");
                Ok(true)
            }
            (Some(End::Broken(reason)), _) => {
                tracing::warn!(
                    run = id,
                    reason,
                    "the journal of a run cannot be used; the run is taken up again later"
                );
                Ok(true)
            }
            (Some(End::Cancelled), _) => journal.release(RunStatus::Cancelled, 0, None).await,
            (Some(End::Diverged(reason)), _) => {
                tracing::warn!(
                    run = id,
                    reason,
                    "a run cannot go on with the code of today"
                );
                journal
                    .release(RunStatus::Stopped { reason }, 0, None)
                    .await
            }
            (Some(End::Draining), _) => {
                let reason = Some("its process shut down".to_owned());
                let pending = RunStatus::Pending { reason };
                journal
                    .release(pending, journal.failures(), Some(Duration::ZERO))
                    .await
            }
            (None, Driven::Waiting) => Ok(true),
            (None, Driven::Done(output)) => {
                let output = output.to_value();
                journal.release(RunStatus::Done { output }, 0, None).await
            }
            (None, Driven::Failed(error)) => self.fail(&journal, &error).await,
        };
        released.map(drop)
    }

    async fn drive(&self, journal: &RunJournal, start: &RawValue, active: &ActiveRun) -> Driven {
        match self.drive_to_end(journal, start, active).await {
            Ok(driven) => driven,
            Err(error) => Driven::Failed(error),
        }
    }

    async fn drive_to_end(
        &self,
        journal: &RunJournal,
        start: &RawValue,
        active: &ActiveRun,
    ) -> Result<Driven, Error> {
        let runner = self.runner_of(&journal.conversation());
        let runner = runner.journal(JournalHandle::new(journal.clone()));
        let mut run = read_start(start)?;
        let mut waits = 0;
        loop {
            let stream = runner.resume_stream(run)?;
            let result = self.follow(journal, stream, active).await?;
            if journal.end().is_some() || result.status() != Status::Interrupted {
                let output = result.final_output().cloned();
                return Ok(output.map_or(Driven::Waiting, Driven::Done));
            }
            run = result.into_run();
            loop {
                let Ok(signals) = journal.signals(waits).await else {
                    return Ok(Driven::Waiting);
                };
                if let Some(signals) = signals {
                    apply(&mut run, signals);
                    waits += 1;
                    // Signals that fit nothing that waits leave the run waiting.
                    if is_decided(&run) {
                        break;
                    }
                    continue;
                }
                let interruptions = run.interruptions();
                let waiting = RunStatus::Waiting { interruptions };
                match journal.release(waiting, 0, None).await {
                    Ok(false) => {}
                    Ok(true) | Err(_) => return Ok(Driven::Waiting),
                }
            }
        }
    }

    /// The runner, with the conversation of the run. A session of the application, and a conversation that the provider
    /// keeps, take its place.
    fn runner_of(&self, conversation: &str) -> Runner<C, Arc<C>> {
        let config = self.runner.config();
        let runner = self.runner.clone();
        if config.session.is_some() || config.server_history.is_some() {
            return runner;
        }
        let is_exclusive = config.exclusive.is_some();
        let conversation = self.engine.conversations().get(conversation);
        let runner = runner.session(&conversation);
        if is_exclusive {
            runner
        } else {
            runner.exclusive(Duration::ZERO)
        }
    }

    /// Makes a run again from its journal, as far as it got. Nothing takes place.
    pub(crate) async fn replay(
        &self,
        id: &str,
    ) -> Result<Result<RunResult<C>, Error>, DurableError> {
        let recorded = Recorded::read(&self.engine, id).await?;
        let runner = self.runner_of(&recorded.conversation);
        let runner = runner.journal(JournalHandle::new(recorded.steps));
        let mut run = match read_start(&recorded.start) {
            Ok(run) => run,
            Err(error) => return Ok(Err(error)),
        };
        let mut waits = recorded.waits.into_iter();
        Ok(loop {
            match runner.resume(run).await {
                Ok(result) if result.status() == Status::Interrupted => match waits.next() {
                    None => break Ok(result),
                    Some(signals) => {
                        run = result.into_run();
                        apply(&mut run, signals);
                    }
                },
                ended => break ended,
            }
        })
    }

    /// Stores the events of a run until it ends or waits. Stops if the journal cannot be written any more.
    async fn follow(
        &self,
        journal: &RunJournal,
        mut stream: RunStream<C>,
        active: &ActiveRun,
    ) -> Result<RunResult<C>, Error> {
        let renewal = self.engine.lease / 3;
        let mut renew_at = Instant::now() + renewal;
        let mut flush_at: Option<Instant> = None;
        loop {
            let at = flush_at.map_or(renew_at, |flush_at| flush_at.min(renew_at));
            let event = tokio::select! {
                biased;
                () = active.wake.notified() => {
                    if self.active.is_draining() {
                        journal.drain();
                    }
                    let _ = journal.extend().await;
                    if let Some(End::Taken | End::Cancelled | End::Broken(_)) = journal.end() {
                        return self.stop(stream).await;
                    }
                    continue;
                }
                event = stream.next() => event,
                () = sleep_until(at) => {
                    // A failure is noted in the journal, and ends the run here.
                    let _ = journal.extend().await;
                    self.active.notify();
                    flush_at = None;
                    renew_at = Instant::now() + renewal;
                    if let Some(End::Taken | End::Cancelled | End::Broken(_)) = journal.end() {
                        return self.stop(stream).await;
                    }
                    continue;
                }
            };
            let Some(event) = event else {
                self.active.notify();
                return stream.finish().await;
            };
            if let Err(error) = journal.send(&event) {
                tracing::warn!(%error, "an event of a run is lost");
            }
            if journal.has_unwritten() {
                flush_at.get_or_insert(Instant::now() + EVENT_PAUSE);
            }
        }
    }

    /// Cancels what a run does. The caller acts on the end of the journal.
    async fn stop(&self, stream: RunStream<C>) -> Result<RunResult<C>, Error> {
        stream.stop();
        stream.finish().await
    }

    async fn fail(&self, journal: &RunJournal, error: &Error) -> Result<bool, DurableError> {
        let id = journal.id();
        if error.is_transient() {
            let is_busy = error.cause().is_some_and(is_leased);
            let failures = journal.failures() + u32::from(!is_busy);
            if failures <= self.max_failures {
                let (first, longest) = RETRY_PAUSES;
                let doubled = first.saturating_mul(1 << failures.saturating_sub(1).min(16));
                let pause = if is_busy {
                    BUSY_PAUSE
                } else {
                    doubled.min(longest)
                };
                let reason = Some(error.to_string());
                return journal
                    .release(RunStatus::Pending { reason }, failures, Some(pause))
                    .await;
            }
        }
        let ahead = journal.steps_ahead();
        if let Some(first) = ahead.first()
            && !journal.is_live()
            && !error.is_guardrail()
        {
            let reason = format!(
                "the code of today fails where the run took step \"{first}\" before it was interrupted; a tool, \
                 an agent, a handoff or a filter has changed. Go on with the code from then, or cancel the run. \
                 The failure: {error}"
            );
            tracing::warn!(
                run = id,
                reason,
                "a run cannot go on with the code of today"
            );
            return journal
                .release(RunStatus::Stopped { reason }, 0, None)
                .await;
        }
        let (kind, message) = (error.kind(), error.to_string());
        journal
            .release(RunStatus::Failed { kind, message }, 0, None)
            .await
    }
}

/// The outcome of driving a run.
enum Driven {
    Done(FinalOutput),
    /// It waits, or the journal says why it cannot go on.
    Waiting,
    Failed(Error),
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
            Signal::Cancel | Signal::Resume => Ok(()),
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

fn is_leased(cause: &switchboard_core::callback::DynError) -> bool {
    use switchboard_core::conversation::{ConversationError, ConversationErrorKind};
    let error = cause.downcast_ref::<ConversationError>();
    error.is_some_and(|error| error.kind() == ConversationErrorKind::Leased)
}

/// Runs a future in the background.
pub(crate) fn spawn(work: impl Future<Output = ()> + Send + 'static) {
    drop(tokio::spawn(work));
}
