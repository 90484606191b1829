//! Deleting runs.

use std::time::{Duration, SystemTime};

use switchboard_core::conversation::{ConversationStore as _, ListQuery, folder_of};

use super::{RunStore, journal_name, run_id, to_records};
use crate::error::{DurableError, DurableErrorKind};
use crate::record::RunRecord;

/// The number of runs that are listed at once.
const LISTED: usize = 512;

/// The precision of the times of a store.
const MILLISECOND: Duration = Duration::from_millis(1);

/// The runs that may be deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DeletedRuns {
    /// Those that have ended: done, failed or cancelled.
    Ended,
    /// All. The message of one that has not ended is not answered any more, and a process that has it stops.
    All,
}

impl DeletedRuns {
    fn includes(self, run: &RunRecord) -> bool {
        self == Self::All || run.is_ended()
    }
}

impl RunStore {
    /// Deletes the journal of a run. The conversation stays, and the key of its message is free again.
    ///
    /// # Errors
    /// [`DurableErrorKind::NotFound`] if there is no such run, [`DurableErrorKind::NotWaiting`] if it may not be deleted, and the
    /// store's error.
    pub async fn delete(&self, id: &str, deleted: DeletedRuns) -> Result<(), DurableError> {
        let run = match self.record(id).await {
            // Its state cannot be read.
            Err(error) if error.kind() == DurableErrorKind::Damaged => {
                return match deleted {
                    DeletedRuns::All => self.delete_journal(id).await,
                    DeletedRuns::Ended => Err(error),
                };
            }
            found => found?,
        };
        if !deleted.includes(&run) {
            let status = run.status.name();
            let message = format!("the run \"{id}\" is {status}: it has not ended");
            return Err(DurableError::new(DurableErrorKind::NotWaiting, message));
        }
        self.delete_run(&run).await
    }

    /// Deletes the journals of runs that were last changed before a time. The conversations stay. Returns how many there were.
    ///
    /// # Errors
    /// The store's error. Journals that were deleted before it stay deleted.
    pub async fn prune(
        &self,
        time: SystemTime,
        deleted: DeletedRuns,
    ) -> Result<usize, DurableError> {
        let mut query = ListQuery::default();
        query.changed_before = Some(time);
        self.delete_listed(query, deleted).await
    }

    /// Deletes the journals of the runs of a conversation, which is to be deleted. Returns how many there were.
    ///
    /// # Errors
    /// The store's error. Journals that were deleted before it stay deleted.
    pub async fn delete_of_conversation(
        &self,
        conversation: &str,
        deleted: DeletedRuns,
    ) -> Result<usize, DurableError> {
        let mut query = ListQuery::default();
        let journal = journal_name(&run_id(conversation, ""));
        query.folder = Some(folder_of(&journal).into());
        self.delete_listed(query, deleted).await
    }

    /// Deletes listed runs, page by page.
    async fn delete_listed(
        &self,
        mut query: ListQuery,
        deleted: DeletedRuns,
    ) -> Result<usize, DurableError> {
        let mut limit = LISTED;
        let mut number = 0;
        loop {
            query.limit = Some(limit);
            let heads = self.heads(query.clone()).await?;
            for run in to_records(&heads).filter(|run| deleted.includes(run)) {
                self.delete_run(&run).await?;
                number += 1;
            }
            let Some(last) = heads.last().filter(|_| heads.len() >= limit) else {
                return Ok(number);
            };
            // Others may have changed at the same time as the last one.
            let next = Some(last.changed + MILLISECOND);
            if query.changed_before == next {
                limit = limit.saturating_mul(2);
            }
            query.changed_before = next;
        }
    }

    async fn delete_run(&self, run: &RunRecord) -> Result<(), DurableError> {
        self.delete_journal(&run.id).await?;
        if !run.is_ended() {
            let released = self.0.release(&run.conversation, &run.lease_owner);
            released
                .await
                .map_err(|error| DurableError::store(&run.id, error))?;
        }
        Ok(())
    }

    async fn delete_journal(&self, id: &str) -> Result<(), DurableError> {
        let deleted = self.0.delete(&journal_name(id)).await;
        deleted
            .map(drop)
            .map_err(|error| DurableError::store(id, error))
    }
}
