//! The runs that go on after a decision or an answer.
//!
//! Each has a record in the store while it is under way, so that other processes know that its conversation neither waits
//! nor has ended, and which process to ask to cancel it. The record of a run that ends without a result keeps the reason, and
//! that of a run whose process was killed stays as it was: readers of the wait tell from them what has become of it. These
//! records expire with the tasks of A2A that they are kept for.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use switchboard_core::conversation::{
    Commit, ConversationStore, Expected, Head, ListQuery, Revision,
};
use switchboard_core::stream::EventKind;

use super::{Caller, Service};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::runs::RunRecord;
use crate::team::EndStatus;
use crate::tenant::Tenant;

/// The kind of the records.
const KIND: &str = "resumed";

/// The pauses before something is stored once more, if the store has failed.
const PAUSES: [Duration; 4] = [
    Duration::from_millis(50),
    Duration::from_millis(200),
    Duration::from_secs(1),
    Duration::from_secs(3),
];

/// The record of a run that goes on.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct ResumptionRecord {
    /// The process that has the run.
    process: Arc<str>,
    /// The place of the wait that the run goes on from.
    wait: Revision,
    /// The reason of an end without a result.
    end: Option<ResumptionEnd>,
}

/// The end of a run without a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResumptionEnd {
    /// The process has ended before the run did.
    CutOff,
    Cancelled,
    /// Its time was over, or the service has shut down.
    Stopped,
    Failed(String),
}

/// The runs that went on in a conversation, as far as their records are kept.
#[derive(Debug, Default)]
pub(crate) struct Resumptions {
    pub(crate) under_way: Option<ResumedRun>,
    /// Those that ended without a result, the earliest first.
    pub(crate) ended: Vec<EndedResumption>,
}

/// A run that goes on.
#[derive(Debug)]
pub(crate) struct ResumedRun {
    pub(crate) run: Arc<str>,
    pub(crate) process: Arc<str>,
    /// The place of the wait that it goes on from.
    pub(crate) wait: Revision,
}

/// A run that went on and ended without a result.
#[derive(Debug)]
pub(crate) struct EndedResumption {
    /// The place of the wait that it went on from.
    pub(crate) wait: Revision,
    pub(crate) end: ResumptionEnd,
    name: Arc<str>,
}

/// A run that is about to go on.
pub(super) struct NewResumption<'a> {
    pub(super) conversation: &'a str,
    pub(super) run: &'a str,
    pub(super) wait: Revision,
}

/// The runs of this process that are about to go on, and are not in the list of runs yet.
#[derive(Debug, Default)]
pub(super) struct Beginning(Mutex<HashSet<Arc<str>>>);

/// A run that is about to go on, until this is dropped.
#[derive(Debug)]
pub(super) struct BeginningRun<'a> {
    beginning: &'a Beginning,
    run: Arc<str>,
}

impl Beginning {
    fn runs(&self) -> MutexGuard<'_, HashSet<Arc<str>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn add(&self, run: &Arc<str>) -> BeginningRun<'_> {
        self.runs().insert(run.clone());
        BeginningRun {
            beginning: self,
            run: run.clone(),
        }
    }
}

impl Drop for BeginningRun<'_> {
    fn drop(&mut self) {
        self.beginning.runs().remove(&self.run);
    }
}

impl Service {
    /// Notes that this process goes on with a run, unless another already does.
    pub(super) async fn begin_resumption(
        &self,
        caller: &Caller,
        resumption: NewResumption<'_>,
    ) -> Result<(), ServiceError> {
        let known = self.resumptions(caller, resumption.conversation).await?;
        let wait = resumption.wait;
        if known.under_way.is_some_and(|run| run.wait == wait) {
            let message = "another decision or answer came first, and is being carried out";
            return Err(ServiceError::new(ServiceErrorKind::Conflict, message));
        }
        // The run waits as it did before these, so nothing has come of them.
        for ended in known.ended {
            if ended.wait == wait {
                let deleted = self.0.store.delete(&ended.name).await;
                deleted.map_err(|error| ServiceError::of_store(&error))?;
            }
        }
        self.announce_process().await?;
        let record = ResumptionRecord {
            process: self.0.process.clone(),
            wait,
            end: None,
        };
        let name = record_name(&caller.tenant, resumption.conversation, resumption.run);
        self.write_resumption(&name, &record).await
    }

    /// Notes the end of a run that went on. `still_waits` is set if the conversation waits for the same as before.
    pub(super) async fn end_resumption(
        &self,
        run: &RunRecord,
        status: EndStatus,
        still_waits: bool,
    ) {
        let Some(conversation) = &run.conversation else {
            return;
        };
        let name = record_name(&run.tenant, conversation, &run.id);
        let end = match status {
            EndStatus::Completed | EndStatus::Interrupted => None,
            // Another decision came first, or the next one goes on with the run.
            _ if still_waits || run.has_only_begun() => None,
            EndStatus::Stopped if run.is_cancelled() => Some(ResumptionEnd::Cancelled),
            EndStatus::Stopped => Some(ResumptionEnd::Stopped),
            EndStatus::Failed(_) => Some(ResumptionEnd::Failed(failure_of(run))),
        };
        let stored = store_persistently(|| self.store_end(&name, end.clone()).boxed());
        if let Err(error) = stored.await {
            tracing::warn!(%error, run = &*run.id, "the end of a run could not be noted");
        }
    }

    async fn store_end(&self, name: &str, end: Option<ResumptionEnd>) -> Result<(), ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let record = match end {
            None => None,
            Some(end) => {
                let head = ConversationStore::head(&self.0.store, name).await;
                let record = head.map_err(failed)?.as_ref().and_then(read_record);
                record.map(|record| ResumptionRecord {
                    end: Some(end),
                    ..record
                })
            }
        };
        match record {
            Some(record) => self.write_resumption(name, &record).await,
            None => self.0.store.delete(name).await.map(drop).map_err(failed),
        }
    }

    async fn write_resumption(
        &self,
        name: &str,
        record: &ResumptionRecord,
    ) -> Result<(), ServiceError> {
        let mut commit = Commit::new(Expected::Any, Vec::new());
        commit.details = serde_json::to_string(record).ok().map(Into::into);
        commit.expires = Some(Some(SystemTime::now() + self.0.limits.keep_responses));
        let committed = ConversationStore::commit(&self.0.store, name, commit).await;
        committed
            .map(drop)
            .map_err(|error| ServiceError::of_store(&error))
    }

    /// Forgets a run that could not go on.
    pub(super) async fn forget_resumption(&self, tenant: &Tenant, conversation: &str, run: &str) {
        let name = record_name(tenant, conversation, run);
        if let Err(error) = self.0.store.delete(&name).await {
            tracing::warn!(%error, "the record of a run could not be removed");
        }
    }

    /// Forgets all runs that went on in a conversation.
    pub(super) async fn forget_resumptions(
        &self,
        tenant: &Tenant,
        conversation: &str,
    ) -> Result<(), ServiceError> {
        for head in self.resumption_heads(tenant, conversation).await? {
            let deleted = self.0.store.delete(&head.id).await;
            deleted.map_err(|error| ServiceError::of_store(&error))?;
        }
        Ok(())
    }

    /// The runs that went on in a conversation, in this process or another.
    pub(crate) async fn resumptions(
        &self,
        caller: &Caller,
        conversation: &str,
    ) -> Result<Resumptions, ServiceError> {
        let heads = self.resumption_heads(&caller.tenant, conversation).await?;
        let folder = record_name(&caller.tenant, conversation, "");
        let mut found = Resumptions::default();
        for head in heads {
            let (Some(record), Some(run)) = (read_record(&head), head.id.strip_prefix(&*folder))
            else {
                continue;
            };
            let ResumptionRecord { process, wait, end } = record;
            let is_under_way = match &end {
                Some(_) => false,
                None if process == self.0.process => self.is_run_under_way(&caller.tenant, run),
                None => self.is_process_alive(&process).await?,
            };
            if is_under_way {
                found.under_way = Some(ResumedRun {
                    run: run.into(),
                    process,
                    wait,
                });
            } else {
                found.ended.push(EndedResumption {
                    wait,
                    end: end.unwrap_or(ResumptionEnd::CutOff),
                    name: head.id.clone(),
                });
            }
        }
        found.ended.sort_by_key(|ended| ended.wait.next);
        Ok(found)
    }

    fn is_run_under_way(&self, tenant: &Tenant, run: &str) -> bool {
        if self.0.beginning.runs().contains(run) {
            return true;
        }
        let run = self.0.runs.get(tenant, run);
        run.is_some_and(|run| run.end(|_| ()).is_none())
    }

    async fn resumption_heads(
        &self,
        tenant: &Tenant,
        conversation: &str,
    ) -> Result<Vec<Head>, ServiceError> {
        let mut query = ListQuery::default();
        query.folder = Some(record_name(tenant, conversation, ""));
        let heads = ConversationStore::list(&self.0.store, &query).await;
        heads.map_err(|error| ServiceError::of_store(&error))
    }
}

/// Stores what came of a run. Where the store fails, it is tried again for a few seconds.
pub(crate) async fn store_persistently<'a, T>(
    store: impl Fn() -> BoxFuture<'a, Result<T, ServiceError>>,
) -> Result<T, ServiceError> {
    let mut stored = store().await;
    for pause in PAUSES {
        if stored.is_ok() {
            break;
        }
        tokio::time::sleep(pause).await;
        stored = store().await;
    }
    stored
}

fn record_name(tenant: &Tenant, conversation: &str, run: &str) -> Arc<str> {
    tenant.record_name(KIND, &format!("{conversation}/{run}"))
}

fn read_record(head: &Head) -> Option<ResumptionRecord> {
    serde_json::from_str(head.details.as_deref()?).ok()
}

/// The message of a run that has failed.
fn failure_of(run: &RunRecord) -> String {
    let last = run.log.last();
    match last.as_ref().map(|last| &last.event.kind) {
        Some(EventKind::RunFailed { message, .. }) => message.to_string(),
        _ => "The run ended without a result.".to_owned(),
    }
}
