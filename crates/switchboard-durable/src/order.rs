//! The order of the runs of a conversation: one after the other, as they were stored.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use crate::active_runs::{ActiveRun, ActiveRuns};
use crate::engine::Engine;
use crate::error::{DurableError, DurableErrorKind};
use crate::events::Overdue;
use crate::record::RunRecord;
use crate::run_store::RunStore;

/// The first and the longest pause between two looks at the run before, or at the conversation's lease.
const PAUSES: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(2));

/// The time for which a run has its conversation, and keeps it beyond a pause.
pub(crate) const KEPT: Duration = Duration::from_secs(30);

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
    /// conversation; takes it for the run. Nothing is written to the journal. Returns `false` if the conversation is not taken,
    /// because the run is settled, or `has_conversation` says that it has none in the store.
    ///
    /// # Errors
    /// [`DurableErrorKind::Closed`] if this process takes no further steps.
    pub(crate) async fn take_conversation(
        &self,
        has_conversation: impl Fn(&RunRecord) -> bool,
    ) -> Result<bool, DurableError> {
        let (mut pause, longest) = PAUSES;
        loop {
            let (own, before) = self.look().await?;
            if own.is_settled() {
                return Ok(false);
            }
            if let Some(before) = before {
                self.wait_for(&before.id).await?;
                continue;
            }
            if !has_conversation(&own) {
                return Ok(false);
            }
            if self.runs.take_conversation(&own, KEPT).await? {
                return Ok(true);
            }
            self.check()?;
            let _ = timeout(pause, self.run.wake.notified()).await;
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

    /// Waits until another run is settled, or this one is woken.
    async fn wait_for(&self, id: &str) -> Result<(), DurableError> {
        let active: &ActiveRuns = self.run.all();
        let mut overdue = Overdue::default();
        let (mut pause, longest) = PAUSES;
        loop {
            let settled = active.settled(id);
            let record = match self.runs.record(id).await {
                Err(error) if error.kind() == DurableErrorKind::NotFound => return Ok(()),
                found => found?,
            };
            if record.is_settled() {
                return Ok(());
            }
            self.check()?;
            if let Some(engine) = &self.engine
                && !active.has(id)
            {
                overdue.look(&**engine, &record).await?;
            }
            tokio::select! {
                () = settled => {}
                () = tokio::time::sleep(pause) => {}
                // It may have been cancelled, or this process is to take no further steps.
                () = self.run.wake.notified() => return self.check(),
            }
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
