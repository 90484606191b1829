//! The conversations that wait for a decision or a person.
//!
//! Each has a record of its own in the store, so that they are found without reading all conversations, also
//! those that another process or an earlier start has left waiting. A mark may be out of date; it is checked when it is
//! read. While a process goes on with the run, the mark names it, so that the others know that the conversation neither
//! waits nor has ended.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use switchboard_core::approval::Interruption;
use switchboard_core::conversation::{Commit, ConversationStore, Expected, Head, ListQuery};

use super::{Caller, Service};
use crate::changes::Change;
use crate::error::ServiceError;
use crate::runs::RunRecord;
use crate::tenant::Tenant;

/// The kind of the records.
const KIND: &str = "waiting";

/// The largest number of conversations in the list.
const MAX_LISTED: usize = 1000;

/// The conversations that this process has marked.
#[derive(Debug, Default)]
pub(super) struct WaitingMarks(Mutex<HashSet<(Tenant, Arc<str>)>>);

impl WaitingMarks {
    fn marked(&self) -> MutexGuard<'_, HashSet<(Tenant, Arc<str>)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The details of a mark.
#[derive(Debug, Default, Serialize, Deserialize)]
struct MarkDetails {
    /// The process that goes on with the run.
    resumed_by: Option<Arc<str>>,
}

/// The work of another process on the run that a conversation has waited with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Resumption {
    /// No other process has gone on with it, or one has to its end.
    None,
    UnderWay,
    /// The process has ended before the run did.
    CutOff,
}

/// A conversation that waits.
#[derive(Debug)]
pub(crate) struct WaitingConversation {
    pub(crate) id: Arc<str>,
    pub(crate) title: Option<String>,
    pub(crate) team: Option<String>,
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) since: SystemTime,
    pub(crate) calls: Vec<Interruption>,
    /// Set if the conversation cannot be read; then nothing else is known of it.
    pub(crate) error: Option<ServiceError>,
}

impl Service {
    /// Notes after a run if its conversation waits, for `calls` calls and people.
    pub(super) async fn mark_waiting(&self, run: &RunRecord, calls: usize, is_resumed: bool) {
        let Some(id) = &run.conversation else {
            return;
        };
        let key = (run.tenant.clone(), id.clone());
        if calls > 0 {
            self.mark(&run.tenant, id).await;
            return;
        }
        let was_marked = self.0.waiting.marked().remove(&key);
        if was_marked || is_resumed {
            self.unmark_waiting(&run.tenant, id).await;
        }
    }

    /// Notes after an answer of a realtime session if its conversation waits, and tells clients of the change.
    pub(crate) async fn note_spoken(&self, caller: &Caller, id: &Arc<str>) {
        let is_marked = self.is_marked_waiting(&caller.tenant, id);
        match self.waiting_for(caller, id).await {
            Ok(calls) if calls.is_empty() != is_marked => {}
            Ok(_) if is_marked => self.unmark_waiting(&caller.tenant, id).await,
            Ok(_) => self.mark(&caller.tenant, id).await,
            Err(error) => tracing::warn!(%error, "a conversation could not be looked at"),
        }
        self.tell_of_conversation(caller, id.clone(), "changed");
    }

    /// Marks a conversation that waits.
    pub(super) async fn mark(&self, tenant: &Tenant, id: &Arc<str>) {
        let key = (tenant.clone(), id.clone());
        self.0.waiting.marked().insert(key);
        self.write_mark(tenant, id, &MarkDetails::default()).await;
        self.tell_of_waiting(tenant, id, true);
    }

    /// Notes that this process goes on with the run of a conversation that waits.
    pub(super) async fn mark_resumed(&self, tenant: &Tenant, id: &str) -> Result<(), ServiceError> {
        self.announce_process().await?;
        let details = MarkDetails {
            resumed_by: Some(self.0.process.clone()),
        };
        self.write_mark(tenant, id, &details).await;
        Ok(())
    }

    async fn write_mark(&self, tenant: &Tenant, id: &str, details: &MarkDetails) {
        let mut mark = Commit::new(Expected::Any, Vec::new());
        mark.details = serde_json::to_string(details).ok().map(Into::into);
        let name = tenant.record_name(KIND, id);
        if let Err(error) = ConversationStore::commit(&self.0.store, &name, mark).await {
            tracing::warn!(%error, "a conversation that waits could not be marked");
        }
    }

    /// Returns what another process does with the run that a conversation has waited with.
    pub(crate) async fn resumption_elsewhere(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Resumption, ServiceError> {
        let name = caller.tenant.record_name(KIND, id);
        let mark = ConversationStore::head(&self.0.store, &name).await;
        match mark.map_err(|error| ServiceError::of_store(&error))? {
            Some(mark) => self.resumption_of(&mark).await,
            None => Ok(Resumption::None),
        }
    }

    async fn resumption_of(&self, mark: &Head) -> Result<Resumption, ServiceError> {
        let details = mark.details.as_deref().unwrap_or_default();
        let details: MarkDetails = serde_json::from_str(details).unwrap_or_default();
        Ok(match details.resumed_by {
            Some(process) if process != self.0.process => {
                if self.is_process_alive(&process).await? {
                    Resumption::UnderWay
                } else {
                    Resumption::CutOff
                }
            }
            _ => Resumption::None,
        })
    }

    /// Removes the mark of a conversation that does not wait any more.
    pub(super) async fn unmark_waiting(&self, tenant: &Tenant, id: &Arc<str>) {
        let key = (tenant.clone(), id.clone());
        self.0.waiting.marked().remove(&key);
        let name = tenant.record_name(KIND, id);
        if let Err(error) = self.0.store.delete(&name).await {
            tracing::warn!(%error, "the mark of a conversation could not be removed");
        }
        self.tell_of_waiting(tenant, id, false);
    }

    fn tell_of_waiting(&self, tenant: &Tenant, id: &Arc<str>, is_waiting: bool) {
        let conversation = id.clone();
        let change = Change::Waiting {
            conversation,
            is_waiting,
        };
        self.0.changes.tell(tenant, change);
    }

    /// Returns `true` if this process knows that the conversation waits.
    pub(super) fn is_marked_waiting(&self, tenant: &Tenant, id: &Arc<str>) -> bool {
        let key = (tenant.clone(), id.clone());
        self.0.waiting.marked().contains(&key)
    }

    /// Lists the caller's conversations that wait, the longest waiting first.
    pub(crate) async fn waiting_conversations(
        &self,
        caller: &Caller,
    ) -> Result<Vec<WaitingConversation>, ServiceError> {
        let tenant = &caller.tenant;
        let mut query = ListQuery::default();
        query.folder = Some(tenant.record_folder(KIND));
        query.limit = Some(MAX_LISTED);
        let failed = |error| ServiceError::of_store(&error);
        let marks = ConversationStore::list(&self.0.store, &query)
            .await
            .map_err(failed)?;
        let mut waiting = Vec::new();
        for mark in marks.into_iter().rev() {
            let Some(id) = tenant.record_id(KIND, &mark.id).map(Arc::<str>::from) else {
                continue;
            };
            // A conversation that cannot be read must not hide the others.
            let found = self.waiting_conversation(caller, &id, &mark).await;
            waiting.extend(found.unwrap_or_else(|error| {
                Some(WaitingConversation {
                    id,
                    title: None,
                    team: None,
                    agent: None,
                    since: mark.changed,
                    calls: Vec::new(),
                    error: Some(error),
                })
            }));
        }
        Ok(waiting)
    }

    /// A conversation that has a mark; `None` if it does not wait any more.
    async fn waiting_conversation(
        &self,
        caller: &Caller,
        id: &Arc<str>,
        mark: &Head,
    ) -> Result<Option<WaitingConversation>, ServiceError> {
        let tenant = &caller.tenant;
        let calls = self.waiting_for(caller, id).await?;
        let listed = self.listed(caller, id).await?;
        let (Some(listed), false) = (listed, calls.is_empty()) else {
            if self.resumption_of(mark).await? != Resumption::UnderWay {
                self.unmark_waiting(tenant, id).await;
            }
            return Ok(None);
        };
        self.0.waiting.marked().insert((tenant.clone(), id.clone()));
        Ok(Some(WaitingConversation {
            id: id.clone(),
            title: listed.title,
            team: listed.details.team,
            agent: listed.head.agent,
            since: mark.changed,
            calls,
            error: None,
        }))
    }
}
