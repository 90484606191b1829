//! Runs whose steps lie in the log of an engine.

use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_core::conversation::now;

use super::outcome::{After, Driven};
use super::{TeamExecutor, apply, begin_with, is_decided};
use crate::active_runs::ActiveRun;
use crate::engine::StepLog;
use crate::error::{DurableError, DurableErrorKind};
use crate::executor::Execution;
use crate::journal::RunJournal;
use crate::order::{KEPT, LONGEST_WAIT, Turn};
use crate::record::RunStatus;
use crate::run_store::RunStore;

/// The time in which runs on an engine with a log show that they are executed.
const LEASE: Duration = Duration::from_secs(30);

impl<C: Send + Sync + 'static> TeamExecutor<C> {
    /// Takes a run, and drives it until it ends, with its waits and pauses in between.
    pub(super) async fn take_and_drive_logged(
        &self,
        runs: &RunStore,
        active: ActiveRun,
        log: &mut dyn StepLog,
    ) -> Result<Execution, DurableError> {
        let is_ordered = log.is_ordered();
        let mut is_taken = loop {
            match self.take_conversation(runs, &active, is_ordered).await? {
                Turn::Taken => break true,
                Turn::NotTaken => break false,
                // The log has a task for it anyway.
                Turn::Later(_) | Turn::Behind => active.pause(LONGEST_WAIT).await,
            }
        };
        let taken = RunJournal::take_logged(runs, &active, LEASE).await;
        let (journal, start) = match taken {
            // Its last step was to store how it has ended.
            Err(error) if error.kind() == DurableErrorKind::NotWaiting => {
                if log.is_compared() {
                    self.make_again(runs, &active, log).await?;
                } else if is_taken {
                    let (_, record) = runs.head(&active.id).await?;
                    runs.release_conversation(&record).await;
                }
                return Ok(Execution::Ended);
            }
            Err(error) if error.kind() == DurableErrorKind::Damaged => {
                let reason = error.to_string();
                return Ok(Execution::Stopped { reason });
            }
            taken => taken?,
        };
        journal.set_limits(self.teams.max_failures, self.teams.max_interruptions);
        loop {
            let after = self
                .drive_logged(
                    runs,
                    &journal,
                    &start,
                    &active,
                    log,
                    std::mem::take(&mut is_taken),
                )
                .await?;
            match after {
                After::Status(status) => {
                    let execution = match &status {
                        RunStatus::Stopped { reason } => Execution::Stopped {
                            reason: reason.clone(),
                        },
                        _ => Execution::Ended,
                    };
                    journal.release(status, 0, None).await?;
                    runs.release_conversation(&journal.record()).await;
                    return Ok(execution);
                }
                After::Nothing => return Ok(Execution::Taken),
                After::Timer(pause) => {
                    let time = pause.until.duration_since(now()).unwrap_or_default();
                    runs.keep_conversation(&journal.record(), time + KEPT).await;
                    journal.pause_in_log(log, &pause).await?;
                    journal.begin_again().await?;
                }
                After::Pause {
                    reason,
                    failures,
                    time,
                } => {
                    if !self.active.is_draining() {
                        tracing::info!(run = active.id, reason, "a run pauses");
                        journal.set_failures(failures);
                        runs.keep_conversation(&journal.record(), time + KEPT).await;
                        self.pause(&journal, &active, time).await;
                    }
                    if self.active.is_draining() {
                        if let Err(error) = journal.flush().await {
                            tracing::debug!(%error, "the last events are stored by the next process");
                        }
                        return Ok(Execution::Draining);
                    }
                    journal.begin_again().await?;
                }
            }
        }
    }

    /// Makes the calls of a run that has ended again, in which nothing takes place.
    async fn make_again(
        &self,
        runs: &RunStore,
        active: &ActiveRun,
        log: &mut dyn StepLog,
    ) -> Result<(), DurableError> {
        let (journal, start) = RunJournal::reopen_logged(runs, active, LEASE).await?;
        while let After::Timer(pause) = self
            .drive_logged(runs, &journal, &start, active, log, false)
            .await?
        {
            journal.pause_in_log(log, &pause).await?;
        }
        runs.release_conversation(&journal.record()).await;
        Ok(())
    }

    /// Waits before a retry, unless the run is cancelled or resumed or this process takes no further steps. The run shows that
    /// it is executed meanwhile.
    async fn pause(&self, journal: &RunJournal, active: &ActiveRun, time: Duration) {
        let mut pause = std::pin::pin!(tokio::time::sleep(time));
        let mut over = std::pin::pin!(journal.over());
        let renewal = journal.lease() / 3;
        journal.flush_soon();
        while !self.active.is_draining() {
            tokio::select! {
                () = pause.as_mut() => return,
                () = over.as_mut() => return,
                () = journal.woken() => return,
                () = active.wake.notified() => {}
                () = tokio::time::sleep(renewal) => {}
            }
            journal.extend_soon();
        }
    }

    async fn drive_logged(
        &self,
        runs: &RunStore,
        journal: &RunJournal,
        start: &RawValue,
        active: &ActiveRun,
        log: &mut dyn StepLog,
        mut is_taken: bool,
    ) -> Result<After, DurableError> {
        let (mut run, runner) = match self.begin(runs, journal, start) {
            Ok(begun) => begun,
            Err(after) => return Ok(after),
        };
        let mut waits = 0;
        loop {
            let runner = begin_with(&runner, std::mem::take(&mut is_taken));
            let drive = async {
                let driven = self.drive(&runner, journal, run, active).await;
                // The state of a run that is done says enough for the log.
                let is_done = matches!(driven, Driven::Done(_));
                if !is_done && let Err(error) = journal.finish_log().await {
                    tracing::debug!(%error, "the end of a drive is not recorded");
                }
                driven
            };
            let waiting = match journal.with_log(log, drive).await {
                Driven::Waiting(result) if !journal.stops() => result,
                driven => return Ok(self.after(journal, Some(driven))),
            };
            run = waiting.into_run();
            while !is_decided(&run) {
                let interruptions = run.interruptions();
                let signals = journal.wait_in_log(log, waits, interruptions).await?;
                waits += 1;
                if signals.is_empty() {
                    return Ok(self.after(journal, None));
                }
                apply(&mut run, signals);
            }
        }
    }
}
