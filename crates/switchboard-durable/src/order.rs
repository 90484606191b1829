//! The order of the runs of a conversation: one after the other, as they were stored.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use switchboard_core::conversation::now;

use crate::active_runs::{ActiveRun, ActiveRuns};
use crate::engine::Engine;
use crate::error::{DurableError, DurableErrorKind};
use crate::events::Overdue;
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
        let (mut pause, longest) = PAUSES;
        let mut overdue = Overdue::default();
        loop {
            let (own, before) = self.look().await?;
            if own.is_settled() {
                return Ok(Turn::NotTaken);
            }
            self.check()?;
            if let Some(before) = before {
                let soon = now() + LONGEST_WAIT;
                if matches!(before.status, RunStatus::Pending { .. })
                    && before.due.is_some_and(|due| due > soon)
                {
                    return Ok(Turn::Later(soon));
                }
                self.wait_for(&before.id, pause, &mut overdue).await?;
            } else if !has_conversation(&own) {
                return Ok(Turn::NotTaken);
            } else if self.runs.take_conversation(&own, KEPT).await? {
                return Ok(Turn::Taken);
            } else {
                self.run.pause(pause).await;
            }
            pause = (pause * 2).min(longest);
        }
    }

    /// The state of the run, and the last of the runs that it waits for.
    async fn look(&self) -> Result<(RunRecord, Option<RunRecord>), DurableError> {
        let id = &self.run.id;
        if self.is_ordered {
            return Ok((self.runs.record(id).await?, None));
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

    /// Waits until another run is settled, or this one is woken, or for a time.
    async fn wait_for(
        &self,
        id: &str,
        pause: Duration,
        overdue: &mut Overdue,
    ) -> Result<(), DurableError> {
        let active: &ActiveRuns = self.run.all();
        let settled = active.settled(id);
        let record = match self.runs.record(id).await {
            Err(error) if error.kind() == DurableErrorKind::NotFound => return Ok(()),
            found => found?,
        };
        if record.is_settled() {
            return Ok(());
        }
        if let Some(engine) = &self.engine
            && !active.has(id)
        {
            overdue.look(&**engine, &record).await?;
        }
        tokio::select! {
            () = settled => {}
            () = tokio::time::sleep(pause) => {}
            // It may have been cancelled, or this process is to take no further steps.
            () = self.run.wake.notified() => {}
        }
        Ok(())
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
