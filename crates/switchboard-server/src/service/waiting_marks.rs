//! The conversations that wait for a decision or a person.
//!
//! Each has a record of its own in the store, so that they are found without reading all conversations, also
//! those that another process or an earlier start has left waiting. A mark may be out of date; it is checked when it is
//! read.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use switchboard_core::approval::Interruption;
use switchboard_core::conversation::{Commit, ConversationStore, Expected, Head, ListQuery};
use switchboard_core::stream::EventKind;

use super::{Caller, Service};
use crate::changes::{Change, WaitingChange};
use crate::error::ServiceError;
use crate::runs::RunRecord;
use crate::team::{EndStatus, ServedTeam};
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

    /// The conversations of a tenant.
    fn of(&self, tenant: &Tenant) -> HashSet<Arc<str>> {
        let marked = self.marked();
        let own = marked.iter().filter(|(owner, _)| owner == tenant);
        own.map(|(_, id)| id.clone()).collect()
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
    /// Set if the conversation cannot be read; then nothing else is known of it.
    pub(crate) error: Option<ServiceError>,
}

impl Service {
    /// Notes after a run if its conversation waits. Returns `true` if it does, as far as can be seen.
    pub(super) async fn note_wait(
        &self,
        caller: &Caller,
        team: &ServedTeam,
        run: &RunRecord,
        status: EndStatus,
        is_resumed: bool,
    ) -> bool {
        let Some(id) = &run.conversation else {
            return false;
        };
        let has_waited = is_resumed || self.is_marked_waiting(&run.tenant, id);
        let waits = match status {
            EndStatus::Completed => false,
            EndStatus::Interrupted => is_interrupted(run, team),
            // Where nothing of the run was stored, the wait goes on; so it does for a run that another came before.
            EndStatus::Stopped | EndStatus::Failed(_) if has_waited => {
                match self.waiting_for(caller, id).await {
                    Ok(wait) => wait.is_some_and(|wait| {
                        let mut calls = wait.calls.iter();
                        calls.any(|call| !team.is_client_call(call))
                    }),
                    Err(error) => {
                        // The mark stays, and is checked when it is read.
                        tracing::warn!(%error, "a conversation could not be looked at");
                        return false;
                    }
                }
            }
            EndStatus::Stopped | EndStatus::Failed(_) => false,
        };
        if waits {
            self.mark(&run.tenant, id).await;
        } else if has_waited {
            self.unmark_waiting(&run.tenant, id).await;
        }
        waits
    }

    /// Notes after an answer of a realtime session if its conversation waits, and tells clients of the change.
    pub(crate) async fn note_spoken(&self, caller: &Caller, id: &Arc<str>) {
        let tenant = &caller.tenant;
        let is_marked = self.is_marked_waiting(tenant, id);
        match self.waiting_for(caller, id).await {
            // Another process removes the mark when it carries out a decision.
            Ok(Some(_)) if is_marked && self.has_stored_mark(tenant, id).await => {}
            Ok(Some(_)) => self.mark(tenant, id).await,
            Ok(None) if is_marked => self.unmark_waiting(tenant, id).await,
            Ok(None) => {}
            Err(error) => tracing::warn!(%error, "a conversation could not be looked at"),
        }
        self.tell_of_conversation(caller, id.clone(), "changed");
    }

    /// Marks a conversation that waits.
    pub(super) async fn mark(&self, tenant: &Tenant, id: &Arc<str>) {
        let mark = Commit::new(Expected::Any, Vec::new());
        let name = tenant.record_name(KIND, id);
        if let Err(error) = ConversationStore::commit(&self.0.store, &name, mark).await {
            tracing::warn!(%error, "a conversation that waits could not be marked");
        }
        let key = (tenant.clone(), id.clone());
        self.0.waiting.marked().insert(key);
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
        let change = WaitingChange {
            conversation,
            is_waiting,
        };
        self.0.changes.tell(tenant, Change::Waiting(change));
    }

    /// Returns `true` if the store has the mark of a conversation.
    async fn has_stored_mark(&self, tenant: &Tenant, id: &Arc<str>) -> bool {
        let name = tenant.record_name(KIND, id);
        let head = ConversationStore::head(&self.0.store, &name).await;
        matches!(head, Ok(Some(_)))
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
        let known = self.0.waiting.of(tenant);
        let marks = ConversationStore::list(&self.0.store, &query)
            .await
            .map_err(failed)?;
        if marks.len() < MAX_LISTED {
            self.forget_decided(tenant, known, &marks);
        }
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

    /// Forgets those of the known conversations whose marks another process has removed.
    fn forget_decided(&self, tenant: &Tenant, mut known: HashSet<Arc<str>>, marks: &[Head]) {
        for mark in marks {
            if let Some(id) = tenant.record_id(KIND, &mark.id) {
                known.remove(id);
            }
        }
        for id in known {
            self.0.waiting.marked().remove(&(tenant.clone(), id));
        }
    }

    /// A conversation that has a mark; `None` if it does not wait any more.
    async fn waiting_conversation(
        &self,
        caller: &Caller,
        id: &Arc<str>,
        mark: &Head,
    ) -> Result<Option<WaitingConversation>, ServiceError> {
        let tenant = &caller.tenant;
        // Asked for before the wait: a run that is under way now may wait again before its conversation is read.
        let is_resumed = self.resumptions(caller, id).await?.under_way.is_some();
        let wait = self.waiting_for(caller, id).await?;
        let listed = self.listed(caller, id).await?;
        let (Some(listed), Some(wait)) = (listed, wait) else {
            if !is_resumed {
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
            calls: wait.calls,
            error: None,
        }))
    }
}

/// Returns `true` if a run that was interrupted waits for more than calls that the client of a protocol carries out.
pub(super) fn is_interrupted(run: &RunRecord, team: &ServedTeam) -> bool {
    let last = run.log.last();
    match last.as_ref().map(|last| &last.event.kind) {
        Some(EventKind::RunInterrupted { interruptions, .. }) => {
            let mut waiting = interruptions.iter();
            waiting.any(|waiting| !team.is_client_call(waiting))
        }
        _ => false,
    }
}
