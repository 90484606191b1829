//! Writing the journal of a run to its store, and catching up with what others have written there.

use std::time::{Duration, Instant, SystemTime};

use switchboard_core::conversation::{Commit, Committed, Entry, Expected, Revision, now};

use super::{ATTEMPTS, End, Inner, RunJournal, ended};
use crate::entry::JournalEntry;
use crate::error::{DurableError, DurableErrorKind};
use crate::record::{RunStatus, StoredRecord};
use crate::run_store::{details, stored};

/// The first pause before a write that failed is tried again.
const WRITE_PAUSE: Duration = Duration::from_millis(20);

/// The state in which a run is let go.
pub(super) struct Release {
    pub(super) status: RunStatus,
    pub(super) failures: u32,
    pub(super) due: Option<SystemTime>,
    pub(super) wake: Option<String>,
}

/// The condition under which a state is stored.
#[derive(Clone, Copy)]
enum Waits {
    Never,
    /// Not if a signal has come meanwhile.
    UnlessSignalled,
}

impl RunJournal {
    /// Waits until something waits to be written.
    pub(crate) async fn unwritten(&self) {
        self.until(|state| !state.queue.is_empty()).await;
    }

    /// Writes everything that waits. Writers that come while another one writes share the next write.
    pub(crate) async fn flush(&self) -> Result<(), DurableError> {
        let added = self.state().queue.added();
        self.in_task(move |this| async move { this.write_up_to(added).await })
            .await
    }

    /// Begins to write what waits, unless that is written by then with other entries: a store that is slower than the events
    /// come would otherwise get more and more writes to do before that of a step.
    pub(crate) fn flush_soon(&self) {
        let this = self.clone();
        let added = self.state().queue.added();
        drop(tokio::spawn(async move { this.write_up_to(added).await }));
    }

    async fn write_up_to(&self, added: u64) -> Result<(), DurableError> {
        let _writing = self.0.writing.lock().await;
        if self.state().written >= added {
            return self.check();
        }
        self.write(None, Waits::Never).await.map(drop)
    }

    /// Begins to extend the lease, which also notices signals and other owners. If that fails, the run cannot go on here.
    pub(crate) fn extend_soon(&self) {
        let this = self.clone();
        drop(tokio::spawn(async move { this.extend_now().await }));
    }

    async fn extend_now(&self) -> Result<(), DurableError> {
        let _writing = self.0.writing.lock().await;
        // A lease that is given back stays so.
        if self.state().is_released {
            return Ok(());
        }
        self.write(None, Waits::Never).await.map(drop)
    }

    /// Lets the run go, with this status. Returns `false` if it is to wait and a signal has come meanwhile.
    pub(crate) async fn release(
        &self,
        status: RunStatus,
        failures: u32,
        pause: Option<Duration>,
    ) -> Result<bool, DurableError> {
        let last_event = self.state().last_event.take();
        if let (RunStatus::Failed { .. } | RunStatus::Cancelled, Some(event)) =
            (&status, last_event)
        {
            self.state().queue.push_event(event);
        }
        let release = Release {
            status,
            failures,
            due: pause.map(|pause| now() + pause),
            wake: None,
        };
        self.store_state(release).await
    }

    pub(super) async fn store_state(&self, release: Release) -> Result<bool, DurableError> {
        let waits = match release.status {
            RunStatus::Waiting { .. } => Waits::UnlessSignalled,
            _ => Waits::Never,
        };
        self.in_task(move |this| async move {
            let _writing = this.0.writing.lock().await;
            this.write(Some(release), waits).await
        })
        .await
    }

    /// Does something in a task of its own, which ends also if nobody waits for it any more: entries that were taken from
    /// the queue are written.
    pub(super) async fn in_task<T, F>(
        &self,
        work: impl FnOnce(Self) -> F,
    ) -> Result<T, DurableError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, DurableError>> + Send + 'static,
    {
        match tokio::spawn(work(self.clone())).await {
            Ok(outcome) => outcome,
            Err(error) => {
                let message = format!("the journal of run \"{}\" failed: {error}", self.0.id);
                Err(DurableError::new(DurableErrorKind::Store, message))
            }
        }
    }

    pub(super) fn check(&self) -> Result<(), DurableError> {
        match &self.state().end {
            Some(end @ (End::Taken | End::Broken(_))) => Err(ended(&self.0.id, end)),
            _ => Ok(()),
        }
    }

    /// Commits the queue, and the new state if there is one. The caller holds `writing`.
    async fn write(&self, release: Option<Release>, waits: Waits) -> Result<bool, DurableError> {
        self.check()?;
        let Inner {
            runs, id, owner, ..
        } = &*self.0;
        let (entries, added, mut revision, number, is_stale) = {
            let mut state = self.state();
            state.commits += 1;
            if release.is_some() {
                state.queue_rest_of_log(id)?;
            }
            let entries = state.queue.take();
            // Stores keep an index of leases, so that each extension costs.
            let extended = state.extended.map(|extended| extended.elapsed());
            let is_stale = extended.is_none_or(|time| time >= self.0.lease / 6);
            let (added, revision) = (state.queue.added(), state.revision);
            (entries, added, revision, state.commits, is_stale)
        };
        let stamped = entries
            .into_iter()
            .map(|entry| entry.made_in(owner.clone(), 0, number));
        let mut entries: Vec<Entry> = stamped.collect();
        if release.is_some() && entries.is_empty() {
            let entry = stored(id, &JournalEntry::Released)?;
            entries.push(entry.made_in(owner.clone(), 0, number));
        }
        let record = release.as_ref().map(|release| StoredRecord {
            status: release.status.clone(),
            failures: release.failures,
            wake: release.wake.clone(),
            version: self.version(),
            ..self.record()
        });
        let begun = Instant::now();
        let mut pause = WRITE_PAUSE;
        for _ in 0..ATTEMPTS {
            let mut commit = Commit::new(Expected::At(revision), entries.clone());
            (commit.run, commit.number) = (owner.clone(), number);
            match (&release, &record) {
                (Some(release), Some(record)) => {
                    commit.details = Some(details(id, record)?);
                    commit.expires = Some(release.due);
                }
                _ if is_stale => commit.expires = Some(Some(now() + self.0.lease)),
                _ => {}
            }
            let is_extended = commit.expires.is_some();
            // A commit that was made, and whose answer was lost, is found by its number.
            let made = Revision::new(revision.epoch, revision.next + entries.len() as u64);
            let written = match runs.commit(id, commit).await {
                Ok(Committed::At(revision)) if revision == made => Ok(Some(revision)),
                // It was made when its answer was lost, and others have written since.
                Ok(Committed::At(_)) => self.catch_up(made).await.map(Some),
                Ok(_) => self.catch_up(revision).await.map(|caught_up| {
                    revision = caught_up;
                    None
                }),
                Err(error) => Err(error),
            };
            match written {
                Err(error) if matches!(self.end(), Some(End::Taken)) => return Err(error),
                Err(error) if begun.elapsed() < self.0.lease / 2 => {
                    tracing::warn!(run = id, %error, "the journal cannot be written; it is tried again");
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(self.0.lease / 8);
                    continue;
                }
                // Entries are lost, so that no later ones may be written.
                Err(error) => {
                    self.set_end(End::Broken(error.to_string()));
                    return Err(error);
                }
                Ok(Some(revision)) => {
                    let mut state = self.state();
                    state.revision = revision;
                    state.written = added;
                    if is_extended {
                        state.extended = Some(begun);
                    }
                    let is_released = record.is_some();
                    if let Some(record) = record {
                        state.is_released = !matches!(record.status, RunStatus::Running {});
                        state.record = record;
                    }
                    drop(state);
                    self.0.readers.notify(id);
                    if is_released {
                        self.0.readers.notify_settled(id);
                    }
                    return Ok(true);
                }
                Ok(None) => {}
            }
            if let Waits::UnlessSignalled = waits {
                self.state().queue.put_back(entries);
                return Ok(false);
            }
        }
        let message = format!("too many signals were sent to the run \"{id}\" at once");
        self.set_end(End::Broken(message.clone()));
        Err(DurableError::new(DurableErrorKind::Store, message))
    }

    /// Reads what others have added since a revision. Returns the new one, unless another process has the run.
    async fn catch_up(&self, seen: Revision) -> Result<Revision, DurableError> {
        let Inner {
            runs, id, owner, ..
        } = &*self.0;
        let (head, record) = runs.head(id).await?;
        let is_mine = record.owner.as_deref() == Some(&**owner);
        if !is_mine || head.revision.epoch != seen.epoch {
            self.state().end = Some(End::Taken);
            self.0.changed.notify_waiters();
            return Err(ended(id, &End::Taken));
        }
        let entries = runs.read(id, seen.next, head.revision.next).await?;
        {
            let mut state = self.state();
            for (position, entry) in entries {
                if let JournalEntry::Signal(signal) = entry {
                    state.take_signal(position, signal);
                }
            }
            state.revision = head.revision;
            // Whoever sends a message to a run that waits makes it due.
            if head.expires.is_none_or(|at| at <= now()) {
                state.extended = None;
            }
        }
        self.0.changed.notify_waiters();
        Ok(head.revision)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]
mod tests {
    use serde_json::value::RawValue;
    use switchboard_core::conversation::Conversations;

    use super::*;
    use crate::active_runs::ActiveRuns;
    use crate::entry::Signal;
    use crate::run_store::{NewRun, RunStore, stored};

    #[tokio::test]
    async fn a_message_in_the_state_from_before_a_release_is_refused() {
        let runs = RunStore::new(Conversations::in_memory());
        let run = NewRun {
            id: "talk/m1",
            conversation: "talk",
            key: "m1",
            engine: "embedded",
            team: None,
            version: None,
            start: RawValue::from_string("{}".to_owned()).unwrap(),
            lease_owner: String::new(),
        };
        runs.create(run).await.unwrap();
        let active = ActiveRuns::default().add("talk/m1").unwrap();
        let taken = RunJournal::take(&runs, &active, Duration::from_secs(15)).await;
        let (journal, _) = taken.unwrap();
        // Somebody wants to cancel it, and sees that it is executed.
        let (head, record) = runs.head("talk/m1").await.unwrap();
        assert_eq!(record.status, RunStatus::Running {});
        let waiting = RunStatus::Waiting {
            interruptions: Vec::new(),
        };
        assert!(journal.release(waiting, 0, None).await.unwrap());
        let entry = stored("talk/m1", &JournalEntry::Signal(Signal::Cancel)).unwrap();
        let commit = Commit::new(Expected::At(head.revision), vec![entry]);
        let committed = runs.commit("talk/m1", commit).await.unwrap();
        assert!(matches!(committed, Committed::Conflict), "{committed:?}");
    }
}
