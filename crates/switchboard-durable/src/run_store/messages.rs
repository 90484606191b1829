//! Messages to runs: decisions, answers, and the wishes to cancel or resume them.

use std::sync::Arc;

use switchboard_core::conversation::{Commit, Committed, Entry, Expected, Head, now};

use super::{RunStore, details, stored, to_record};
use crate::entry::{JournalEntry, Signal};
use crate::error::{DurableError, DurableErrorKind};
use crate::record::{RunRecord, RunStatus};

impl RunStore {
    /// Cancels a run. One that a process has, or that waits in the log of an engine under a name, ends as soon as it
    /// learns of it, which takes some seconds if nobody wakes it ([`DurableRun::cancel`](crate::DurableRun::cancel) does); any
    /// other has ended when this returns. Returns the state of the run before.
    ///
    /// # Errors
    /// An error if the run has ended, or the store cannot be written.
    pub async fn cancel(&self, id: &str) -> Result<RunRecord, DurableError> {
        loop {
            let (head, mut stored_record) = self.head(id).await?;
            let record = to_record(id, &head, stored_record.clone());
            not_ended(&record)?;
            if record.is_executed() || record.wake.is_some() {
                return self.signal(id, &[Signal::Cancel], |_| Ok(())).await;
            }
            stored_record.status = RunStatus::Cancelled;
            stored_record.owner = None;
            let entry = stored(id, &JournalEntry::Signal(Signal::Cancel))?;
            let mut commit = Commit::new(Expected::At(head.revision), vec![entry]);
            commit.details = Some(details(id, &stored_record)?);
            commit.expires = Some(None);
            if let Committed::At(_) = self.commit(id, commit).await? {
                self.release_conversation(&stored_record).await;
                return Ok(record);
            }
        }
    }

    /// Stops a run that is due and that its engine does not execute any more, unless it has changed meanwhile.
    #[cfg(feature = "dbos")]
    pub(crate) async fn stop(&self, run: &RunRecord, reason: String) -> Result<(), DurableError> {
        let (head, mut stored_record) = self.head(&run.id).await?;
        if to_record(&run.id, &head, stored_record.clone()) != *run {
            return Ok(());
        }
        tracing::warn!(run = run.id, reason, "a run is stopped");
        stored_record.status = RunStatus::Stopped { reason };
        let entry = stored(&run.id, &JournalEntry::Released)?;
        let mut commit = Commit::new(Expected::At(head.revision), vec![entry]);
        commit.details = Some(details(&run.id, &stored_record)?);
        commit.expires = Some(None);
        if let Committed::At(_) = self.commit(&run.id, commit).await? {
            self.release_conversation(&stored_record).await;
        }
        Ok(())
    }

    /// Adds signals to a run of which `fits` holds, and makes one that waits or has stopped due. Returns the state of the run
    /// before. The revision is that of the state that was read, so that a run that begins to wait at the same time does not
    /// miss them, and nothing else is decided in between.
    pub(crate) async fn signal(
        &self,
        id: &str,
        signals: &[Signal],
        fits: impl Fn(&RunRecord) -> Result<(), DurableError>,
    ) -> Result<RunRecord, DurableError> {
        // A write whose answer is lost is found by this name, and not repeated.
        let name: Arc<str> = format!("{:032x}", fastrand::u128(..)).into();
        let entries = signals.iter().map(|signal| {
            let entry = stored(id, &JournalEntry::Signal(signal.clone()));
            entry.map(|entry| entry.made_in(name.clone(), 0, 1))
        });
        let entries: Vec<Entry> = entries.collect::<Result<_, _>>()?;
        loop {
            let (head, mut stored_record) = self.head(id).await?;
            let record = to_record(id, &head, stored_record.clone());
            not_ended(&record)?;
            fits(&record)?;
            let is_sent_more =
                matches!(record.status, RunStatus::Waiting { .. }) && record.due.is_some();
            if is_sent_more {
                self.check_undecided(id, &head, signals).await?;
            }
            let mut commit = Commit::new(Expected::At(head.revision), entries.clone());
            (commit.run, commit.number) = (name.clone(), 1);
            if let RunStatus::Stopped { .. } = record.status {
                stored_record.status = RunStatus::Pending { reason: None };
                stored_record.log += 1;
                stored_record.log_from = Some(head.revision.next);
                commit.details = Some(details(id, &stored_record)?);
            }
            if !matches!(record.status, RunStatus::Running { .. }) {
                commit.expires = Some(Some(now()));
            }
            if let Committed::At(_) = self.commit(id, commit).await? {
                return Ok(record);
            }
        }
    }

    /// Checks that no message which the run has not taken yet decides the same.
    async fn check_undecided(
        &self,
        id: &str,
        head: &Head,
        signals: &[Signal],
    ) -> Result<(), DurableError> {
        let mut open: Vec<(u64, Signal)> = Vec::new();
        for (position, entry) in self.read(id, head.first, head.revision.next).await? {
            match entry {
                JournalEntry::Signal(signal) => open.push((position, signal)),
                JournalEntry::Resumed { signals } => open.retain(|(at, _)| !signals.contains(at)),
                _ => {}
            }
        }
        let mut decided = open.iter().filter_map(|(_, signal)| signal.interruption());
        let is_decided = decided.any(|decided| {
            let mut new = signals.iter().filter_map(Signal::interruption);
            new.any(|new| new == decided)
        });
        if !is_decided {
            return Ok(());
        }
        let message = format!("what the run \"{id}\" waits for is decided already");
        Err(DurableError::new(DurableErrorKind::NotWaiting, message))
    }
}

fn not_ended(record: &RunRecord) -> Result<(), DurableError> {
    if !record.is_ended() {
        return Ok(());
    }
    let message = format!(
        "the run \"{}\" is {} already",
        record.id,
        record.status.name()
    );
    Err(DurableError::new(DurableErrorKind::NotWaiting, message))
}
