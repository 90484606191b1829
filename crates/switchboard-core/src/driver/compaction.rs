//! Summaries that take the place of the older part of a long conversation, before its run begins.

use std::time::Duration;

use futures_timer::Delay;
use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};

use super::Driver;
use super::conversation::{is_conflict, load_error, session_error};
use crate::callback::{BoxError, catch_panic};
use crate::conversation::{Conversation, OpenConversation, Revision};
use crate::environment::environment;
use crate::error::Error;
use crate::filters::write_summary;
use crate::items::Items;
use crate::journal::{Repeat, StepKind};

/// The outcome of a compaction.
#[derive(Debug)]
enum Compacted {
    /// The conversation is short enough, or has its summary.
    Done,
    /// The conversation stays as it is, for this reason.
    Failed(String),
    /// Another writer has changed the conversation while the summary was written.
    Changed,
}

/// A compaction as it is recorded.
#[derive(Debug, Serialize, Deserialize)]
struct CompactionStep {
    /// The revision of the conversation afterwards.
    revision: Option<Revision>,
    failure: Option<String>,
}

/// A conversation after its compaction.
pub(super) struct Compaction {
    /// The reason for which the conversation is as it was.
    pub(super) failure: Option<String>,
    /// Set if the conversation was opened again.
    pub(super) is_reopened: bool,
}

impl<C: Send + Sync + 'static> Driver<C> {
    /// Opens a conversation for a new run, on a replay at the revision that the run began with.
    pub(super) async fn open_recorded(
        &self,
        conversation: &Conversation,
        limit: Option<usize>,
    ) -> Result<OpenConversation, Error> {
        let mut opened = None;
        let open = async {
            let open = catch_panic(conversation.open(limit)).await;
            let open = opened.insert(open.map_err(load_error)?);
            Ok::<_, Error>(open.revision())
        };
        let revision = match self.journal.as_deref() {
            None => open.await?,
            Some(journal) => {
                let place = (self.run.turns(), StepKind::Conversation, "open");
                let opened = journal.step(place, Repeat::Idempotent, Box::pin(open));
                opened.await?.into_value()?
            }
        };
        match opened {
            Some(open) => Ok(open),
            None => reopen(conversation, revision, limit).await,
        }
    }

    /// Compacts a conversation, unless the journal has that it is done.
    pub(super) async fn compact_recorded(
        &self,
        conversation: &Conversation,
        open: &mut OpenConversation,
    ) -> Result<Compaction, Error> {
        let before = open.revision();
        let mut is_live = false;
        let mut is_reopened = false;
        let compact = async {
            is_live = true;
            let failure = match self.compact(open).await? {
                Compacted::Done => None,
                Compacted::Failed(reason) => Some(reason),
                Compacted::Changed => {
                    *open = catch_panic(conversation.open(None))
                        .await
                        .map_err(load_error)?;
                    is_reopened = true;
                    Some("another writer changed the conversation meanwhile".to_owned())
                }
            };
            let revision = open.revision();
            Ok::<_, Error>(CompactionStep { revision, failure })
        };
        let step = effect!(self, Conversation, "compact", compact)?;
        if !is_live && step.revision != before {
            *open = reopen(conversation, step.revision, None).await?;
            is_reopened = true;
        }
        let failure = step.failure;
        Ok(Compaction {
            failure,
            is_reopened,
        })
    }

    /// Replaces the older part of a long view by a summary. A summary that cannot be written in time is
    /// no error: the message must not wait for it.
    async fn compact(&self, open: &mut OpenConversation) -> Result<Compacted, Error> {
        let Some(compaction) = &self.config.compaction else {
            return Ok(Compacted::Done);
        };
        let Some(model) = compaction.model.as_ref().or(self.model()) else {
            return Ok(Compacted::Done);
        };
        // A run that waits must be answered as it is, and could not be resumed any more.
        let cut = if open.has_waiting_run() {
            0
        } else {
            compaction.cut(&open.view)
        };
        if cut == 0 {
            return Ok(Compacted::Done);
        }
        let older: Items = open.view.iter().take(cut).cloned().collect();
        let ctx = self.ctx();
        let written = in_time(
            compaction.timeout,
            catch_panic(write_summary(model, &older, &ctx)),
        );
        let written = match &self.lease {
            Some(lease) => lease.kept_during(written).await,
            None => written.await,
        };
        let summary = match written {
            Ok(summary) => summary,
            Err(error) => return Ok(Compacted::Failed(error.to_string())),
        };
        let recent = open.view.skip(cut);
        let view: Items = std::iter::once(summary).chain(recent).collect();
        match catch_panic(open.rewrite(view)).await {
            Ok(()) => Ok(Compacted::Done),
            Err(error) if is_conflict(&error) => Ok(Compacted::Changed),
            Err(error) => Err(session_error("nothing was run", error)),
        }
    }
}

/// Opens a conversation as it was at a revision.
async fn reopen(
    conversation: &Conversation,
    revision: Option<Revision>,
    limit: Option<usize>,
) -> Result<OpenConversation, Error> {
    let open = catch_panic(conversation.open_at(revision, limit)).await;
    open.map_err(load_error)
}

/// Warns that a conversation was not compacted.
pub(super) fn warn_of_failure(reason: &str) {
    // The reason may quote the request.
    if environment().logs_model_data {
        tracing::warn!(
            error = reason,
            "a long conversation could not be summarised"
        );
    } else {
        tracing::warn!("a long conversation could not be summarised");
    }
}

/// Awaits work, and cancels it when the time is over.
async fn in_time<T>(
    limit: Duration,
    work: impl Future<Output = Result<T, BoxError>>,
) -> Result<T, BoxError> {
    match select(Box::pin(work), Delay::new(limit)).await {
        Either::Left((outcome, _)) => outcome,
        Either::Right(((), _)) => Err(format!(
            "the summary was not written within {} s; raise Compaction::timeout, or use a faster \
             model (Compaction::model)",
            limit.as_secs_f64()
        )
        .into()),
    }
}
