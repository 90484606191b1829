//! The turns of the messages of a conversation: DBOS gets only the first one that is not settled. A workflow that waits for its
//! turn would keep a place among those that a process takes at once.
//!
//! Whoever settles a run submits the one that follows. If its process ends before, a sweep does.

use switchboard_core::conversation::folder_of;

use super::DbosEngine;
use crate::error::DurableError;
use crate::record::RunRecord;

impl DbosEngine {
    /// The run that is to be submitted when somebody submits one: itself, or an earlier one of its conversation that has not
    /// begun. `None` if an earlier one goes on, or waits for a time.
    pub(super) async fn in_turn(&self, run: &RunRecord) -> Result<Option<RunRecord>, DurableError> {
        // It has the conversation, or is the next that gets it.
        if run.has_begun {
            return Ok(Some(run.clone()));
        }
        let first = self.first_beside(&run.id).await?;
        Ok(first.filter(|first| self.is_to_be_submitted(first)))
    }

    /// Submits the message that follows a run of its conversation, which is settled. It is executed here if there is room.
    pub(super) async fn submit_next(&self, id: &str) {
        let submitted = async {
            let next = self.first_beside(id).await?;
            let Some(next) = next.filter(|next| self.is_to_be_submitted(next)) else {
                return Ok(());
            };
            if self.executor.active().number() < self.settings.at_once {
                self.start(&next).await
            } else {
                self.enqueue(&next).await
            }
        };
        if let Err(error) = submitted.await {
            tracing::warn!(after = id, %error, "the next message cannot be submitted yet");
        }
    }

    /// The first run of a conversation that is not settled.
    async fn first_beside(&self, id: &str) -> Result<Option<RunRecord>, DurableError> {
        let mut unsettled = self.runs.unsettled_beside(id).await?;
        unsettled.retain(|run| !run.is_settled());
        Ok(unsettled.into_iter().reduce(
            |first, run| {
                if first.comes_after(&run) { run } else { first }
            },
        ))
    }

    /// Returns `true` if DBOS may not have a run of this team yet.
    fn is_to_be_submitted(&self, run: &RunRecord) -> bool {
        !run.has_begun && self.executor.takes(run)
    }
}

/// The runs that a sweep sees to together: the messages of a conversation that have not begun.
pub(super) fn group(run: &RunRecord) -> &str {
    if run.has_begun {
        &run.id
    } else {
        folder_of(&run.id)
    }
}
