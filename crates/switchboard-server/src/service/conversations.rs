//! The stored conversations of a tenant.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use switchboard_core::approval::Interruption;
use switchboard_core::conversation::{
    ConversationStore, Entry, Found, Head, ListQuery, from_millis, to_millis,
};

use super::{Caller, Service};
use crate::error::ServiceError;
use crate::realtime::CloseReason;

/// The least number of conversations that are read at once.
const PAGE: usize = 100;

/// The precision of the times of changes.
const MILLISECOND: Duration = Duration::from_millis(1);

/// The largest number of entries that a search looks at, over all tenants.
const MAX_FOUND: usize = 20_000;

/// A page of a list of conversations.
#[derive(Debug)]
pub(crate) struct Listed {
    /// The conversations with their identifiers for clients.
    pub(crate) conversations: Vec<(Arc<str>, Head)>,
    /// The cursor of the next page.
    pub(crate) next: Option<String>,
}

/// A conversation with its latest entries.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) head: Head,
    pub(crate) team: Option<String>,
    pub(crate) entries: Vec<Entry>,
    pub(crate) waiting: Vec<Interruption>,
}

/// Everything in the store, the last changed first, page by page and each once.
pub(crate) struct HeadPages {
    before: Option<SystemTime>,
    size: usize,
    seen: HashSet<Arc<str>>,
    is_ended: bool,
}

impl HeadPages {
    /// Pages of at least this size. With a time, only what was changed then or before.
    pub(crate) fn new(size: usize, changed: Option<SystemTime>) -> Self {
        Self {
            before: changed.map(|time| time + MILLISECOND),
            size: size.max(PAGE),
            seen: HashSet::new(),
            is_ended: false,
        }
    }

    /// The next page; `None` after the last.
    pub(crate) async fn next(
        &mut self,
        service: &Service,
    ) -> Result<Option<Vec<Head>>, ServiceError> {
        if self.is_ended {
            return Ok(None);
        }
        let mut query = ListQuery::default();
        query.limit = Some(self.size);
        query.changed_before = self.before;
        let heads = ConversationStore::list(&service.inner().store, &query).await;
        let mut heads = heads.map_err(|error| ServiceError::of_store(&error))?;
        let next = heads.last().map(|head| head.changed + MILLISECOND);
        self.is_ended = heads.len() < self.size || next.is_none();
        if next == self.before {
            // A whole page of one millisecond.
            self.size = self.size.saturating_mul(2);
        }
        self.before = next;
        heads.retain(|head| self.seen.insert(head.id.clone()));
        Ok(Some(heads))
    }
}

/// The name of the team in the details of a conversation.
pub(super) fn team_name(details: &str) -> Option<String> {
    let details: Value = serde_json::from_str(details).ok()?;
    Some(details["team"]["name"].as_str()?.to_owned())
}

impl Service {
    /// Lists the caller's conversations, the last changed first. `cursor` is [`Listed::next`] of the page before.
    pub(crate) async fn conversations_of(
        &self,
        caller: &Caller,
        limit: usize,
        cursor: Option<&str>,
    ) -> Result<Listed, ServiceError> {
        let cursor = match cursor {
            None => None,
            Some(cursor) => {
                let parsed = cursor.split_once('~');
                let parsed = parsed.and_then(|(time, id)| Some((time.parse::<i64>().ok()?, id)));
                Some(parsed.ok_or_else(|| ServiceError::invalid("this is no cursor of a list"))?)
            }
        };
        let after = cursor.map(|(time, _)| from_millis(time));
        let mut pages = HeadPages::new(limit.saturating_mul(2), after);
        // Conversations of the cursor's millisecond that come before it.
        let mut is_skipping = cursor;
        let mut listed = Vec::new();
        while let Some(heads) = pages.next(self).await? {
            for head in heads {
                let Some(id) = caller.tenant.id_of(&head.id).map(Arc::<str>::from) else {
                    continue;
                };
                if let Some((time, last)) = is_skipping {
                    if to_millis(head.changed) == time {
                        if *id == *last {
                            is_skipping = None;
                        }
                        continue;
                    }
                    is_skipping = None;
                }
                if listed.len() == limit {
                    let last: Option<&(Arc<str>, Head)> = listed.last();
                    let next = last.map(|(id, head)| format!("{}~{id}", to_millis(head.changed)));
                    return Ok(Listed {
                        conversations: listed,
                        next,
                    });
                }
                listed.push((id, head));
            }
        }
        Ok(Listed {
            conversations: listed,
            next: None,
        })
    }

    /// Finds entries of the caller's conversations, the latest first.
    pub(crate) async fn search(
        &self,
        caller: &Caller,
        text: &str,
        limit: usize,
    ) -> Result<Vec<(Arc<str>, Entry)>, ServiceError> {
        let mut most = limit.saturating_mul(2).max(PAGE);
        loop {
            let found = self.inner().store.search(text, most).await;
            let found = found.map_err(|error| ServiceError::of_store(&error))?;
            let is_all = found.len() < most || most >= MAX_FOUND;
            let own = found.into_iter().filter_map(
                |Found {
                     conversation,
                     entry,
                     ..
                 }| { Some((caller.tenant.id_of(&conversation)?.into(), entry)) },
            );
            let own: Vec<(Arc<str>, Entry)> = own.take(limit).collect();
            if is_all || own.len() == limit {
                return Ok(own);
            }
            most = most.saturating_mul(4).min(MAX_FOUND);
        }
    }

    /// Reads a conversation with its latest entries.
    pub(crate) async fn show(
        &self,
        caller: &Caller,
        id: &str,
        limit: usize,
    ) -> Result<Shown, ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let conversation = self.conversation(caller, id)?;
        let head = conversation.head().await.map_err(failed)?;
        let head = head.ok_or_else(|| ServiceError::not_found("there is no such conversation"))?;
        let entries = conversation.record(limit).await.map_err(failed)?;
        let waiting = conversation.waiting_run().await.map_err(failed)?;
        Ok(Shown {
            team: head.details.as_deref().and_then(team_name),
            head,
            entries,
            waiting: waiting.map(|run| run.interruptions()).unwrap_or_default(),
        })
    }

    /// Copies a conversation, or what came before a position of it, to a new one.
    pub(crate) async fn fork(
        &self,
        caller: &Caller,
        id: &str,
        to: &str,
        before: Option<u64>,
    ) -> Result<(), ServiceError> {
        let conversation = self.conversation(caller, id)?;
        let to = caller.tenant.stored_name(to)?;
        let forked = conversation.fork(to, before).await;
        forked
            .map(drop)
            .map_err(|error| ServiceError::of_store(&error))
    }

    /// Deletes a conversation, cancels its runs, and ends its realtime session.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<(), ServiceError> {
        let name = caller.tenant.stored_name(id)?;
        for run in self.runs(caller) {
            if run.conversation.as_deref() == Some(id) && run.end(|_| ()).is_none() {
                run.cancel();
                run.log.closed().await;
            }
        }
        let sessions = &self.inner().sessions;
        sessions.end(&caller.tenant, id, CloseReason::Deleted).await;
        // What clients of AG-UI have given to it.
        let record = crate::agui::record_name(caller, id);
        let deleted = self.inner().store.delete(&record).await;
        deleted.map_err(|error| ServiceError::of_store(&error))?;
        let is_deleted = self.inner().store.delete(&name).await;
        if is_deleted.map_err(|error| ServiceError::of_store(&error))? {
            Ok(())
        } else {
            Err(ServiceError::not_found("there is no such conversation"))
        }
    }
}
