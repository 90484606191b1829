//! The conversations that wait for a decision or a person.
//!
//! Each has a record of its own in the store, so that they are found without reading all conversations, also
//! those that another process or an earlier start has left waiting. A mark may be out of date; it is checked when it is
//! read.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use switchboard_core::approval::Interruption;
use switchboard_core::conversation::{Commit, ConversationStore, Expected, ListQuery};

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

/// A conversation that waits.
#[derive(Debug)]
pub(crate) struct WaitingConversation {
    pub(crate) id: Arc<str>,
    pub(crate) title: Option<String>,
    pub(crate) team: Option<String>,
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) since: SystemTime,
    pub(crate) calls: Vec<Interruption>,
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

    /// Marks a conversation that waits.
    pub(super) async fn mark(&self, tenant: &Tenant, id: &Arc<str>) {
        let key = (tenant.clone(), id.clone());
        self.0.waiting.marked().insert(key);
        let name = tenant.record_name(KIND, id);
        let mark = Commit::new(Expected::Any, Vec::new());
        if let Err(error) = ConversationStore::commit(&self.0.store, &name, mark).await {
            tracing::warn!(%error, "a conversation that waits could not be marked");
        }
        self.tell_of_waiting(tenant, id, true);
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
            let conversation = self.conversation(caller, &id)?;
            let run = conversation.waiting_run().await.map_err(failed)?;
            let calls = run.map(|run| run.interruptions()).unwrap_or_default();
            let listed = self.listed(caller, &id).await?;
            let (Some(listed), false) = (listed, calls.is_empty()) else {
                self.unmark_waiting(tenant, &id).await;
                continue;
            };
            self.0.waiting.marked().insert((tenant.clone(), id.clone()));
            waiting.push(WaitingConversation {
                id,
                title: listed.title,
                team: listed.details.team,
                agent: listed.head.agent,
                since: mark.changed,
                calls,
            });
        }
        Ok(waiting)
    }
}
