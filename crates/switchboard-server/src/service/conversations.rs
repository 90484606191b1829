//! The stored conversations of a tenant.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde_json::{Map, Value};
use switchboard_core::approval::Interruption;
use switchboard_core::conversation::{
    Commit, Committed, Conversation, ConversationStore, Entry, Expected, Found, Head, ListQuery,
    SearchQuery, from_millis, to_millis,
};

use super::{Caller, Service, temporary};
use crate::changes::{Change, ConversationChange};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::realtime::CloseReason;
use crate::recording::cut;

/// The least number of conversations that are read at once.
const PAGE: usize = 100;

/// The most entries that a search looks through for those that are listed.
const MAX_SEARCHED: usize = 10_000;

/// The precision of the times of changes.
const MILLISECOND: Duration = Duration::from_millis(1);

/// The number of conversations whose beginnings are read at once.
const TITLES: usize = 16;

/// The number of entries among which the first message is looked for.
const FIRST_ENTRIES: usize = 8;

/// The longest title, in characters.
const MAX_TITLE: usize = 120;

/// A page of a list of conversations.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) conversations: Vec<ListedConversation>,
    /// The cursor of the next page.
    pub(crate) next: Option<String>,
}

/// A conversation in a list.
#[derive(Debug)]
pub(crate) struct ListedConversation {
    /// The identifier for clients.
    pub(crate) id: Arc<str>,
    pub(crate) head: Head,
    pub(crate) details: ConversationDetails,
    /// The beginning of the first message.
    pub(crate) title: Option<String>,
    /// The run that is under way.
    pub(crate) running: Option<Arc<str>>,
    pub(crate) is_waiting: bool,
}

/// A conversation with a page of its entries.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) listed: ListedConversation,
    pub(crate) entries: Vec<Entry>,
    /// Set if there are earlier entries.
    pub(crate) has_more: bool,
    pub(crate) waiting: Vec<Interruption>,
}

/// Everything in a folder of the store, the last changed first, page by page and each once.
pub(crate) struct HeadPages {
    folder: Arc<str>,
    before: Option<SystemTime>,
    size: usize,
    seen: HashSet<Arc<str>>,
    is_ended: bool,
}

impl HeadPages {
    /// Pages of at least this size. With a time, only what was changed then or before.
    pub(crate) fn new(folder: Arc<str>, size: usize, changed: Option<SystemTime>) -> Self {
        Self {
            folder,
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
        query.folder = Some(self.folder.clone());
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

/// The parts of a conversation's details that the service uses.
#[derive(Debug, Default)]
pub(crate) struct ConversationDetails {
    /// The name of the team.
    pub(crate) team: Option<String>,
    /// The values of the team's context that were chosen for it.
    pub(crate) context: Map<String, Value>,
    /// The stored name of the conversation that it is a copy of, and the position.
    pub(crate) forked_from: Option<(String, Option<u64>)>,
    /// Set if the conversation goes with its run.
    pub(crate) is_temporary: bool,
}

impl ConversationDetails {
    pub(crate) fn read(details: Option<&str>) -> Self {
        let details: Value = details
            .and_then(|details| serde_json::from_str(details).ok())
            .unwrap_or_default();
        let text = |value: &Value| value.as_str().map(ToOwned::to_owned);
        let origin = &details["forked_from"];
        Self {
            team: text(&details["team"]["name"]),
            context: details["context"].as_object().cloned().unwrap_or_default(),
            forked_from: text(&origin["conversation"]).map(|id| (id, origin["before"].as_u64())),
            is_temporary: temporary::is_marked(&details),
        }
    }
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
        let mut pages = HeadPages::new(caller.tenant.folder(), limit.saturating_mul(2), after);
        // Conversations of the cursor's millisecond that come before it.
        let mut is_skipping = cursor;
        let mut listed: Vec<(Arc<str>, Head)> = Vec::new();
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
                if ConversationDetails::read(head.details.as_deref()).is_temporary {
                    continue;
                }
                if listed.len() == limit {
                    let last: Option<&(Arc<str>, Head)> = listed.last();
                    let next = last.map(|(id, head)| format!("{}~{id}", to_millis(head.changed)));
                    return Ok(Listed {
                        conversations: self.with_titles(caller, listed).await?,
                        next,
                    });
                }
                listed.push((id, head));
            }
        }
        Ok(Listed {
            conversations: self.with_titles(caller, listed).await?,
            next: None,
        })
    }

    /// Reads the beginnings of conversations.
    async fn with_titles(
        &self,
        caller: &Caller,
        heads: Vec<(Arc<str>, Head)>,
    ) -> Result<Vec<ListedConversation>, ServiceError> {
        let listed = heads
            .into_iter()
            .map(|(id, head)| self.with_title(caller, id, head));
        stream::iter(listed).buffered(TITLES).try_collect().await
    }

    async fn with_title(
        &self,
        caller: &Caller,
        id: Arc<str>,
        head: Head,
    ) -> Result<ListedConversation, ServiceError> {
        let conversation = self.conversation(caller, &id)?;
        let first = conversation.record_from(head.first, FIRST_ENTRIES);
        // A conversation that cannot be read must not hide the others.
        let first = first.await.unwrap_or_default();
        let message = first.iter().find_map(|entry| {
            let item = entry.content.item()?;
            let is_user = item.role().as_deref() == Some("user");
            is_user.then(|| cut(&item.text()?, MAX_TITLE)).flatten()
        });
        let mut runs = self.0.runs.of_conversation(&caller.tenant, &id).into_iter();
        let running = runs.find(|run| run.is_under_way());
        Ok(ListedConversation {
            details: ConversationDetails::read(head.details.as_deref()),
            title: message,
            running: running.map(|run| run.id.clone()),
            is_waiting: self.is_marked_waiting(&caller.tenant, &id),
            head,
            id,
        })
    }

    /// A conversation as lists have it; `None` if it does not exist.
    pub(crate) async fn listed(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Option<ListedConversation>, ServiceError> {
        let head = self.conversation(caller, id)?.head().await;
        match head.map_err(|error| ServiceError::of_store(&error))? {
            None => Ok(None),
            Some(head) => self.with_title(caller, id.into(), head).await.map(Some),
        }
    }

    /// Finds entries of the caller's conversations, the latest first, without those of temporary conversations.
    pub(crate) async fn search(
        &self,
        caller: &Caller,
        text: &str,
        limit: usize,
    ) -> Result<Vec<(Arc<str>, Entry)>, ServiceError> {
        let mut temporary = HashMap::new();
        let mut asked = limit;
        loop {
            let mut query = SearchQuery::new(text, asked);
            query.folder = Some(caller.tenant.folder());
            let found = ConversationStore::search(&self.inner().store, &query).await;
            let found = found.map_err(|error| ServiceError::of_store(&error))?;
            let is_all = found.len() < asked || asked >= MAX_SEARCHED;
            let mut listed = self
                .without_temporary(caller, found, &mut temporary)
                .await?;
            if is_all || listed.len() >= limit {
                listed.truncate(limit);
                return Ok(listed);
            }
            // Entries of temporary conversations took the place of others.
            asked = asked.saturating_mul(4).clamp(PAGE, MAX_SEARCHED);
        }
    }

    /// Leaves the entries of temporary conversations out. `temporary` has those that were looked at.
    async fn without_temporary(
        &self,
        caller: &Caller,
        found: Vec<Found>,
        temporary: &mut HashMap<Arc<str>, bool>,
    ) -> Result<Vec<(Arc<str>, Entry)>, ServiceError> {
        let mut own: Vec<(Arc<str>, Entry)> = Vec::with_capacity(found.len());
        for Found {
            conversation,
            entry,
            ..
        } in found
        {
            let Some(id) = caller.tenant.id_of(&conversation).map(Arc::<str>::from) else {
                continue;
            };
            let is_temporary = match temporary.get(&id) {
                Some(is_temporary) => *is_temporary,
                None => self.is_temporary(caller, &id).await?,
            };
            temporary.insert(id.clone(), is_temporary);
            if !is_temporary {
                own.push((id, entry));
            }
        }
        Ok(own)
    }

    /// Reads a conversation with its latest entries, or the latest before a position.
    pub(crate) async fn show(
        &self,
        caller: &Caller,
        id: &str,
        limit: usize,
        before: Option<u64>,
    ) -> Result<Shown, ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let listed = self.listed(caller, id).await?;
        let mut listed = listed.ok_or_else(missing)?;
        let conversation = self.conversation(caller, id)?;
        let before = before.unwrap_or(u64::MAX);
        let entries = conversation.record_before(before, limit + 1).await;
        let mut entries = entries.map_err(failed)?;
        let has_more = entries.len() > limit;
        if has_more {
            entries.remove(0);
        }
        let waiting = conversation.waiting_run().await.map_err(failed)?;
        let waiting = waiting.map(|run| run.interruptions()).unwrap_or_default();
        listed.is_waiting = !waiting.is_empty();
        Ok(Shown {
            listed,
            entries,
            has_more,
            waiting,
        })
    }

    /// All entries of a conversation's record, the oldest first.
    pub(crate) async fn all_entries(
        &self,
        caller: &Caller,
        id: &str,
    ) -> Result<Vec<Entry>, ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let conversation = self.conversation(caller, id)?;
        conversation
            .head()
            .await
            .map_err(failed)?
            .ok_or_else(missing)?;
        conversation.record(None).await.map_err(failed)
    }

    /// Chooses the values of the team's context for a conversation. They can be chosen once, before the first
    /// message is stored.
    pub(crate) async fn choose_context(
        &self,
        conversation: &Conversation,
        context: &Map<String, Value>,
    ) -> Result<(), ServiceError> {
        if context.is_empty() {
            return Ok(());
        }
        let failed = |error| ServiceError::of_store(&error);
        let head = conversation.head().await.map_err(failed)?;
        let details = head.as_ref().and_then(|head| head.details.as_deref());
        if ConversationDetails::read(details).context == *context {
            return Ok(());
        }
        if head.as_ref().is_some_and(|head| head.entries() > 0) {
            let message = "the context is chosen with the first message of a conversation";
            return Err(ServiceError::new(ServiceErrorKind::Conflict, message));
        }
        let mut details: Map<String, Value> = details
            .and_then(|details| serde_json::from_str(details).ok())
            .unwrap_or_default();
        details.insert("context".to_owned(), Value::Object(context.clone()));
        let expected = match &head {
            None => Expected::New,
            Some(head) => Expected::At(head.revision),
        };
        let mut commit = Commit::new(expected, Vec::new());
        commit.details = Some(Value::Object(details).to_string().into());
        let store = &self.inner().store;
        let committed = ConversationStore::commit(store, conversation.name(), commit).await;
        match committed.map_err(failed)? {
            Committed::At(_) => Ok(()),
            _ => Err(ServiceError::new(
                ServiceErrorKind::Conflict,
                "the conversation was changed meanwhile; try again",
            )),
        }
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
        let forked = conversation.fork(to.clone(), before).await;
        let failed = |error| ServiceError::of_store(&error);
        let forked = forked.map_err(failed)?;
        temporary::make_ordinary(&forked, None)
            .await
            .map_err(failed)?;
        if let Some(id) = caller.tenant.id_of(&to).map(Arc::from) {
            if matches!(forked.waiting_run().await, Ok(Some(_))) {
                self.mark(&caller.tenant, &id).await;
            }
            self.tell_of_conversation(caller, id, "created");
        }
        Ok(())
    }

    /// Goes back in a conversation to what it was before a position.
    pub(crate) async fn rewind(
        &self,
        caller: &Caller,
        id: &str,
        position: u64,
    ) -> Result<(), ServiceError> {
        let conversation = self.conversation(caller, id)?;
        let rewound = conversation.rewind(position).await;
        rewound.map_err(|error| ServiceError::of_store(&error))
    }

    pub(super) fn tell_of_conversation(&self, caller: &Caller, id: Arc<str>, change: &'static str) {
        let change = Change::Conversation(ConversationChange { id, change });
        self.0.changes.tell(&caller.tenant, change);
    }

    /// Deletes a conversation with the events and recordings of its runs, cancels those that are under way, and ends
    /// its realtime session.
    pub(crate) async fn delete(&self, caller: &Caller, id: &str) -> Result<(), ServiceError> {
        let name = caller.tenant.stored_name(id)?;
        for run in self.runs(caller) {
            if run.conversation.as_deref() == Some(id) && run.is_under_way() {
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
        let is_deleted = is_deleted.map_err(|error| ServiceError::of_store(&error))?;
        let had_runs = self.inner().runs.forget_conversation(&caller.tenant, id);
        if !is_deleted && !had_runs {
            return Err(missing());
        }
        self.forget_resumptions(&caller.tenant, id).await?;
        let id: Arc<str> = id.into();
        if let Some(recordings) = &self.inner().recordings {
            recordings.forget(&caller.tenant, &id);
        }
        if self.is_marked_waiting(&caller.tenant, &id) {
            self.unmark_waiting(&caller.tenant, &id).await;
        }
        self.tell_of_conversation(caller, id, "deleted");
        Ok(())
    }
}

fn missing() -> ServiceError {
    ServiceError::not_found("there is no such conversation")
}
