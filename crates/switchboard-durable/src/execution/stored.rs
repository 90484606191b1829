//! Runs whose steps lie in the store, between their other entries.

use std::time::Duration;

use serde_json::value::RawValue;
use switchboard_core::conversation::now;

use super::outcome::{After, Driven};
use super::{TeamExecutor, apply, begin_with, is_decided};
use crate::active_runs::ActiveRun;
use crate::error::{DurableError, DurableErrorKind};
use crate::journal::RunJournal;
use crate::order::{KEPT, Turn};
use crate::record::RunStatus;
use crate::run_store::RunStore;

impl<C: Send + Sync + 'static> TeamExecutor<C> {
    /// Takes a run, and drives it until it ends, waits or pauses. Returns `true` if it has ended for good, or waits behind an
    /// earlier one of this process.
    pub(super) async fn take_and_drive_stored(
        &self,
        runs: &RunStore,
        lease: Duration,
        run: ActiveRun,
    ) -> Result<bool, DurableError> {
        let turn = self.take_conversation(runs, &run, false).await?;
        match turn {
            Turn::Later(time) => {
                runs.put_off(&run.id, time).await?;
                return Ok(false);
            }
            Turn::Behind => return Ok(true),
            Turn::Taken | Turn::NotTaken => {}
        }
        let is_taken = turn == Turn::Taken;
        let (journal, start) = match RunJournal::take(runs, &run, lease).await {
            // It has ended since: nobody else has the conversation for it.
            Err(error) if is_taken && error.kind() == DurableErrorKind::NotWaiting => {
                let (_, record) = runs.head(&run.id).await?;
                runs.release_conversation(&record).await;
                return Err(error);
            }
            taken => taken?,
        };
        journal.set_limits(self.teams.max_failures, self.teams.max_interruptions);
        let after = match journal.pause_after_interruption() {
            Some(time) => After::Pause {
                reason: Some("it was interrupted several times in a row".to_owned()),
                failures: journal.failures(),
                time,
            },
            None => {
                let driven = self.drive_stored(runs, &journal, &start, &run, is_taken);
                driven.await?
            }
        };
        let record = journal.record();
        match after {
            After::Status(status) => {
                // If it is not stored, the conversation stays with the run, which another process may have.
                let may_be_resumed = matches!(status, RunStatus::Stopped { .. });
                journal.release(status, 0, None).await?;
                runs.release_conversation(&record).await;
                return Ok(!may_be_resumed);
            }
            After::Pause {
                reason,
                failures,
                time,
            } => {
                runs.keep_conversation(&record, time + KEPT).await;
                let pending = RunStatus::Pending { reason };
                journal.release(pending, failures, Some(time)).await?;
            }
            After::Timer(pause) => {
                let time = pause.until.duration_since(now()).unwrap_or_default();
                runs.keep_conversation(&record, time + KEPT).await;
                let pending = RunStatus::Pending {
                    reason: Some(pause.reason),
                };
                journal.release(pending, 0, Some(time)).await?;
            }
            After::Nothing => {}
        }
        Ok(false)
    }

    /// Drives a run whose steps lie in the store until it ends, waits or pauses.
    async fn drive_stored(
        &self,
        runs: &RunStore,
        journal: &RunJournal,
        start: &RawValue,
        active: &ActiveRun,
        mut is_taken: bool,
    ) -> Result<After, DurableError> {
        if journal.end().is_some() {
            return Ok(self.after(journal, None));
        }
        let (mut run, runner) = match self.begin(runs, journal, start) {
            Ok(begun) => begun,
            Err(after) => return Ok(after),
        };
        let mut waits = 0;
        loop {
            let runner = begin_with(&runner, std::mem::take(&mut is_taken));
            let waiting = match self.drive(&runner, journal, run, active).await {
                Driven::Waiting(result) if journal.end().is_none() => result,
                driven => return Ok(self.after(journal, Some(driven))),
            };
            run = waiting.into_run();
            loop {
                let Some(signals) = journal.signals(waits).await? else {
                    let interruptions = run.interruptions();
                    let waiting = RunStatus::Waiting { interruptions };
                    if journal.release(waiting, 0, None).await? {
                        return Ok(After::Nothing);
                    }
                    if journal.end().is_some() {
                        return Ok(self.after(journal, None));
                    }
                    continue;
                };
                apply(&mut run, signals);
                waits += 1;
                // Signals that fit nothing that waits leave the run waiting.
                if is_decided(&run) {
                    break;
                }
            }
        }
    }
}
