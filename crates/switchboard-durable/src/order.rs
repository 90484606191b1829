//! The order of the runs of a conversation: one after the other, as they were stored.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use switchboard_core::conversation::now;

use crate::active_runs::{ActiveRun, ActiveRuns};
use crate::engine::Engine;
use crate::error::{DurableError, DurableErrorKind};
use crate::overdue::Overdue;
use crate::record::{RunRecord, RunStatus};
use crate::run_store::RunStore;

/// The first and the longest pause between two looks at the run before, or at the conversation's lease.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// The time for which a run has its conversation, and keeps it beyond a pause.
pub(crate) const KEPT: Duration = Duration::from_secs(30);

/// The longest time for which a run waits in memory for one that has paused.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(60);

/// The outcome of waiting for the turn of a run.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turn {
    /// The run has its conversation.
    Taken,
    /// The run is settled, or has no conversation in the store.
    NotTaken,
    /// An earlier run waits in this process, and is to be executed before this one, which waits behind it now.
    Behind,
    /// The run before has paused for long: this one is to be looked at again then.
    Later(SystemTime),
}

/// A run that waits for those before it.
pub(crate) struct Waiting<'a> {
    pub(crate) runs: &'a RunStore,
    pub(crate) run: &'a ActiveRun,
    /// Executes runs before this one that nobody does.
    pub(crate) engine: Option<Arc<dyn Engine>>,
    /// Set if the engine has the messages of a conversation in order.
    pub(crate) is_ordered: bool,
}

impl Waiting<'_> {
    /// Waits until the earlier runs of the conversation have ended or wait for a person, and nobody else has the
    /// conversation; takes it for the run. Nothing is written to the journal.
    ///
    /// # Errors
    /// [`DurableErrorKind::Closed`] if this process takes no further steps.
    pub(crate) async fn take_conversation(
        &self,
        has_conversation: impl Fn(&RunRecord) -> bool,
    ) -> Result<Turn, DurableError> {
        let (shortest, longest) = PAUSES;
        let mut pause = shortest;
        let mut known = self.run.known_record();
        loop {
            let (own, before) = self.look(known.take()).await?;
            if own.is_settled() {
                return Ok(Turn::NotTaken);
            }
            self.check()?;
            if let Some(before) = before {
                if let Some(turn) = self.wait_for(&own, &before.id).await? {
                    return Ok(turn);
                }
                pause = shortest;
                continue;
            }
            if !has_conversation(&own) {
                return Ok(Turn::NotTaken);
            }
            // A run is settled before it has let go of the conversation.
            let freed = self.run.all().freed(&own.id);
            if self.runs.take_conversation(&own, KEPT).await? {
                return Ok(Turn::Taken);
            }
            tokio::select! {
                () = freed => pause = shortest,
                () = self.run.pause(pause) => pause = (pause * 2).min(longest),
            }
        }
    }

    /// The state of the run, which may be known, and the last of the runs that it waits for.
    async fn look(
        &self,
        known: Option<RunRecord>,
    ) -> Result<(RunRecord, Option<RunRecord>), DurableError> {
        let id = &self.run.id;
        if self.is_ordered {
            return match known {
                Some(own) => Ok((own, None)),
                None => Ok((self.runs.record(id).await?, None)),
            };
        }
        let mut unsettled = self.runs.unsettled_beside(id).await?;
        let own = match unsettled.iter().position(|run| run.id == *id) {
            Some(at) => unsettled.swap_remove(at),
            None => self.runs.record(id).await?,
        };
        unsettled.retain(|run| !run.is_settled() && own.comes_after(run));
        let last = unsettled.into_iter().reduce(
            |last, run| {
                if run.comes_after(&last) { run } else { last }
            },
        );
        Ok((own, last))
    }

    /// Waits until another run is settled. Returns the outcome if the run does not have to wait any more, or not here.
    async fn wait_for(&self, own: &RunRecord, id: &str) -> Result<Option<Turn>, DurableError> {
        let active: &ActiveRuns = self.run.all();
        let (mut pause, longest) = PAUSES;
        let mut overdue = Overdue::default();
        loop {
            let settled = active.settled(id);
            let record = match self.runs.record(id).await {
                Err(error) if error.kind() == DurableErrorKind::NotFound => return Ok(None),
                found => found?,
            };
            if record.is_settled() {
                return Ok(None);
            }
            let soon = now() + LONGEST_WAIT;
            if matches!(record.status, RunStatus::Pending { .. })
                && record.due.is_some_and(|due| due > soon)
            {
                return Ok(Some(Turn::Later(soon)));
            }
            if let Some(engine) = &self.engine
                && !active.has(id)
            {
                overdue.look(&**engine, &record).await?;
            }
            if active.queues().wait_behind_earlier(own) {
                return Ok(Some(Turn::Behind));
            }
            tokio::select! {
                () = settled => {}
                // It may have been cancelled, or is to wait behind another one, or this process is to take no further steps.
                () = self.run.pause(pause) => {}
            }
            if self.runs.record(&own.id).await?.is_settled() {
                return Ok(Some(Turn::NotTaken));
            }
            self.check()?;
            pause = (pause * 2).min(longest);
        }
    }

    fn check(&self) -> Result<(), DurableError> {
        if !self.run.all().is_draining() {
            return Ok(());
        }
        let id = &self.run.id;
        let message = format!("the run \"{id}\" has not begun; this process shuts down");
        Err(DurableError::new(DurableErrorKind::Closed, message))
    }
}
