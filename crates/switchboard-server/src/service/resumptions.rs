//! The runs that go on after a decision or an answer.
//!
//! Each wait that was decided has a record in the store while its run is under way, so that other processes know that the
//! conversation neither waits nor has ended, and which process to ask to cancel the run. The record is named by the wait, and
//! taken by one decision only. The record of a run that ends without a result keeps the reason, and
//! that of a run whose process was killed stays as it was: readers of the wait tell from them what has become of it. These
//! records expire with the tasks of A2A that they are kept for.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use switchboard_core::Item;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, EntryContent, Expected, Head, ListQuery, Revision,
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
    run: Arc<str>,
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
}

/// A run that is about to go on.
pub(super) struct NewResumption<'a> {
    pub(super) conversation: &'a str,
    pub(super) run: &'a Arc<str>,
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
    /// Notes that this process goes on with a run, unless another decision of its wait is being carried out.
    pub(super) async fn begin_resumption(
        &self,
        caller: &Caller,
        resumption: &NewResumption<'_>,
    ) -> Result<(), ServiceError> {
        let (tenant, wait) = (&caller.tenant, resumption.wait);
        let name = record_name(tenant, resumption.conversation, wait);
        let head = ConversationStore::head(&self.0.store, &name).await;
        let head = head.map_err(|error| ServiceError::of_store(&error))?;
        let expected = match &head {
            None => Expected::New,
            Some(head) => {
                if let Some(record) = read_record(head)
                    && self.is_going_on(tenant, &record).await?
                {
                    return Err(being_carried_out());
                }
                // The run waits as it did before this one, so nothing has come of it.
                Expected::At(head.revision)
            }
        };
        self.announce_process().await?;
        let record = ResumptionRecord {
            run: resumption.run.clone(),
            process: self.0.process.clone(),
            wait,
            end: None,
        };
        match self.write_resumption(&name, &record, expected).await? {
            Committed::At(_) => Ok(()),
            _ => Err(being_carried_out()),
        }
    }

    /// Notes the end of a run that went on. `still_waits` is set if the conversation waits for the same as before.
    pub(super) async fn end_resumption(
        &self,
        run: &RunRecord,
        wait: Revision,
        status: EndStatus,
        still_waits: bool,
    ) {
        let Some(conversation) = &run.conversation else {
            return;
        };
        let name = record_name(&run.tenant, conversation, wait);
        let end = match status {
            EndStatus::Completed | EndStatus::Interrupted => None,
            // Another decision came first, or the next one goes on with the run.
            _ if still_waits || run.has_only_begun() => None,
            EndStatus::Stopped if run.is_cancelled() => Some(ResumptionEnd::Cancelled),
            EndStatus::Stopped => Some(ResumptionEnd::Stopped),
            EndStatus::Failed(_) => Some(ResumptionEnd::Failed(failure_of(run))),
        };
        let stored = store_persistently(|| self.store_end(&name, &run.id, end.clone()).boxed());
        if let Err(error) = stored.await {
            tracing::warn!(%error, run = &*run.id, "the end of a run could not be noted");
        }
    }

    /// Stores the end of a run, or removes its record if there is none, unless another run goes on from its wait.
    async fn store_end(
        &self,
        name: &str,
        run: &str,
        end: Option<ResumptionEnd>,
    ) -> Result<(), ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let head = ConversationStore::head(&self.0.store, name).await;
        let head = head.map_err(failed)?;
        let known = head.and_then(|head| Some((read_record(&head)?, head.revision)));
        match (known.filter(|(record, _)| *record.run == *run), end) {
            (None, _) => Ok(()),
            (Some(_), None) => self.0.store.delete(name).await.map(drop).map_err(failed),
            (Some((record, revision)), Some(end)) => {
                let record = ResumptionRecord {
                    end: Some(end),
                    ..record
                };
                let written = self.write_resumption(name, &record, Expected::At(revision));
                written.await.map(drop)
            }
        }
    }

    async fn write_resumption(
        &self,
        name: &str,
        record: &ResumptionRecord,
        expected: Expected,
    ) -> Result<Committed, ServiceError> {
        let internal =
            |error: BoxError| ServiceError::new(ServiceErrorKind::Internal, error.to_string());
        let json = serde_json::to_string(record).map_err(|error| internal(error.into()))?;
        // An entry, so that the revision changes and only one of two writers succeeds.
        let item = Item::from_json(json.clone()).map_err(|error| internal(error.into()))?;
        let mut commit = Commit::new(expected, vec![Entry::new(EntryContent::Item(item))]);
        commit.details = Some(json.into());
        commit.expires = Some(Some(SystemTime::now() + self.0.limits.keep_responses));
        let committed = ConversationStore::commit(&self.0.store, name, commit).await;
        committed.map_err(|error| ServiceError::of_store(&error))
    }

    /// Forgets a run that could not go on.
    pub(super) async fn forget_resumption(&self, tenant: &Tenant, resumption: &NewResumption<'_>) {
        let name = record_name(tenant, resumption.conversation, resumption.wait);
        if let Err(error) = self.store_end(&name, resumption.run, None).await {
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

    /// Forgets all runs that went on in the conversation of a run, which was deleted.
    pub(super) async fn forget_temporary_resumptions(&self, run: &RunRecord) {
        let Some(conversation) = &run.conversation else {
            return;
        };
        let forgotten =
            store_persistently(|| self.forget_resumptions(&run.tenant, conversation).boxed());
        if let Err(error) = forgotten.await {
            tracing::warn!(%error, run = &*run.id, "the records of runs could not be removed");
        }
    }

    /// The runs that went on in a conversation, in this process or another.
    pub(crate) async fn resumptions(
        &self,
        caller: &Caller,
        conversation: &str,
    ) -> Result<Resumptions, ServiceError> {
        let heads = self.resumption_heads(&caller.tenant, conversation).await?;
        let mut found = Resumptions::default();
        for head in heads {
            let Some(record) = read_record(&head) else {
                continue;
            };
            let is_under_way = self.is_going_on(&caller.tenant, &record).await?;
            let ResumptionRecord {
                run,
                process,
                wait,
                end,
            } = record;
            if is_under_way {
                found.under_way = Some(ResumedRun { run, process, wait });
            } else {
                found.ended.push(EndedResumption {
                    wait,
                    end: end.unwrap_or(ResumptionEnd::CutOff),
                });
            }
        }
        found.ended.sort_by_key(|ended| ended.wait.next);
        Ok(found)
    }

    /// Returns `true` if the run of a record is under way, in this process or another.
    async fn is_going_on(
        &self,
        tenant: &Tenant,
        record: &ResumptionRecord,
    ) -> Result<bool, ServiceError> {
        match &record.end {
            Some(_) => Ok(false),
            None if record.process == self.0.process => {
                Ok(self.is_run_under_way(tenant, &record.run))
            }
            None => self.is_process_alive(&record.process).await,
        }
    }

    fn is_run_under_way(&self, tenant: &Tenant, run: &str) -> bool {
        if self.0.beginning.runs().contains(run) {
            return true;
        }
        let run = self.0.runs.get(tenant, run);
        run.is_some_and(|run| run.is_under_way())
    }

    async fn resumption_heads(
        &self,
        tenant: &Tenant,
        conversation: &str,
    ) -> Result<Vec<Head>, ServiceError> {
        let mut query = ListQuery::default();
        query.folder = Some(record_folder(tenant, conversation));
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

/// The error of a decision or an answer that comes while another is being carried out.
fn being_carried_out() -> ServiceError {
    let message = "another decision or answer came first, and is being carried out";
    ServiceError::new(ServiceErrorKind::Conflict, message)
}

/// The name of the record of the run that goes on from a wait.
fn record_name(tenant: &Tenant, conversation: &str, wait: Revision) -> Arc<str> {
    let Revision { epoch, next, .. } = wait;
    tenant.record_name(KIND, &format!("{conversation}/{epoch}-{next}"))
}

fn record_folder(tenant: &Tenant, conversation: &str) -> Arc<str> {
    tenant.record_name(KIND, &format!("{conversation}/"))
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
