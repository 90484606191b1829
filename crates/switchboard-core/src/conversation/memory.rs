//! Conversations in memory.

use std::collections::{BTreeMap, HashMap};
use std::ops::{Bound, Range};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use super::entry::{Commit, Committed, Entry, Expected, Head, Revision};
use super::store::{ConversationStore, Found, ListQuery, SearchQuery, folder_of};
use crate::callback::BoxError;
use crate::lock::lock;

/// Conversations in memory. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct MemoryStore(Arc<Memory>);

#[derive(Debug, Default)]
struct Memory {
    /// In the order of their names, so that those of a folder are found without the others.
    conversations: Mutex<BTreeMap<Arc<str>, Stored>>,
    leases: Mutex<HashMap<Arc<str>, Lease>>,
}

#[derive(Debug)]
struct Stored {
    head: Head,
    entries: Vec<Entry>,
}

#[derive(Debug)]
struct Lease {
    owner: String,
    until: SystemTime,
}

impl Stored {
    fn new(id: &str, time: SystemTime) -> Self {
        Self {
            head: Head::new(id, Revision::of_new_conversation(), time),
            entries: Vec::new(),
        }
    }

    /// The entries from this position on.
    fn since(&self, position: u64) -> &[Entry] {
        let start = position.saturating_sub(self.head.first);
        let start = usize::try_from(start).unwrap_or(usize::MAX);
        self.entries.get(start..).unwrap_or_default()
    }

    fn append(&mut self, commit: Commit) -> Revision {
        let positions = self.head.revision.next..;
        self.head.apply(&commit);
        let entries = commit.entries.into_iter().zip(positions);
        self.entries
            .extend(entries.map(|(entry, position)| entry.at(position)));
        self.head.revision
    }
}

/// The conversations of a folder; `None` is all.
fn in_folder<'a>(
    all: &'a BTreeMap<Arc<str>, Stored>,
    folder: Option<&'a str>,
) -> impl Iterator<Item = &'a Stored> {
    let start = Bound::Included(folder.unwrap_or_default());
    all.range::<str, _>((start, Bound::Unbounded))
        .take_while(move |(name, _)| folder.is_none_or(|folder| name.starts_with(folder)))
        .filter(move |(name, _)| folder.is_none_or(|folder| folder_of(name) == folder))
        .map(|(_, stored)| stored)
}

impl MemoryStore {
    fn commit_now(&self, id: &str, commit: Commit) -> Committed {
        let mut all = lock(&self.0.conversations);
        let stored = all.get_mut(id);
        let is_expected = match (commit.expected, &stored) {
            (Expected::Any, _) | (Expected::New, None) => true,
            (Expected::At(revision), Some(stored)) => stored.head.revision == revision,
            _ => false,
        };
        if !is_expected {
            let from = match (commit.expected, &stored) {
                (Expected::At(expected), Some(stored)) => {
                    let is_same = expected.epoch == stored.head.revision.epoch;
                    is_same.then_some(expected.next)
                }
                _ => Some(0),
            };
            let made = match (from, &stored) {
                (Some(from), Some(stored)) => stored.since(from),
                _ => &[],
            };
            let is_done = made.iter().any(|entry| commit.has_stored(entry));
            return match stored.filter(|_| is_done) {
                Some(stored) => Committed::At(stored.head.revision),
                None => Committed::Conflict,
            };
        }
        let stored = all
            .entry(id.into())
            .or_insert_with(|| Stored::new(id, commit.time));
        Committed::At(stored.append(commit))
    }

    /// Reads entries without waiting.
    pub(crate) fn read_now(&self, id: &str, positions: Range<u64>) -> Vec<Entry> {
        let all = lock(&self.0.conversations);
        let Some(stored) = all.get(id) else {
            return Vec::new();
        };
        let entries = stored.since(positions.start).iter();
        entries
            .take_while(|entry| entry.position < positions.end)
            .cloned()
            .collect()
    }

    /// The head, without waiting.
    pub(crate) fn head_now(&self, id: &str) -> Option<Head> {
        lock(&self.0.conversations)
            .get(id)
            .map(|stored| stored.head.clone())
    }
}

impl ConversationStore for MemoryStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        Ok(self.head_now(id))
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        Ok(self.read_now(id, positions))
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        Ok(self.commit_now(id, commit))
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        if let Some(stored) = lock(&self.0.conversations).get_mut(id) {
            stored.entries.clear();
            stored.head.revision = stored.head.revision.cleared();
            stored.head.first = stored.head.revision.next;
            stored.head.state = None;
            stored.head.agent = None;
            stored.head.details = None;
            stored.head.expires = None;
            stored.head.changed = super::entry::now();
        }
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        Ok(lock(&self.0.conversations).remove(id).is_some())
    }

    async fn delete_expired(&self, id: &str, time: SystemTime) -> Result<bool, BoxError> {
        let mut all = lock(&self.0.conversations);
        let expires = all.get(id).and_then(|stored| stored.head.expires);
        let is_expired = expires.is_some_and(|expires| expires <= time);
        Ok(is_expired && all.remove(id).is_some())
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        let all = lock(&self.0.conversations);
        let mut heads: Vec<&Head> = in_folder(&all, query.folder.as_deref())
            .map(|stored| &stored.head)
            .filter(|head| query.listed.includes(&head.id))
            .filter(|head| query.changed_before.is_none_or(|time| head.changed < time))
            .filter(|head| {
                query
                    .expired_before
                    .is_none_or(|time| head.expires.is_some_and(|expires| expires <= time))
            })
            .filter(|head| {
                query
                    .expired_from
                    .is_none_or(|time| head.expires.is_some_and(|expires| expires >= time))
            })
            .collect();
        match query.expired_from {
            None => heads.sort_by(|a, b| b.changed.cmp(&a.changed).then_with(|| a.id.cmp(&b.id))),
            Some(_) => heads.sort_by(|a, b| (a.expires, &a.id).cmp(&(b.expires, &b.id))),
        }
        let limit = query.limit.unwrap_or(usize::MAX);
        Ok(heads.into_iter().take(limit).cloned().collect())
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        let text = query.text.to_lowercase();
        let all = lock(&self.0.conversations);
        let mut found: Vec<Found> = in_folder(&all, query.folder.as_deref())
            .flat_map(|stored| stored.entries.iter().map(|entry| (&stored.head.id, entry)))
            .filter(|(_, entry)| {
                let searched = entry.content.searchable_text();
                searched.is_some_and(|searched| searched.to_lowercase().contains(&text))
            })
            .map(|(id, entry)| Found::new(id.clone(), entry.clone()))
            .collect();
        found.sort_by(|a, b| {
            let newest = b.entry.time.cmp(&a.entry.time);
            newest.then(b.entry.position.cmp(&a.entry.position))
        });
        found.truncate(query.limit);
        Ok(found)
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        let now = SystemTime::now();
        let mut leases = lock(&self.0.leases);
        leases.retain(|_, lease| lease.until > now);
        if leases.get(id).is_some_and(|lease| lease.owner != owner) {
            return Ok(false);
        }
        if let Some(until) = now.checked_add(time) {
            let owner = owner.to_owned();
            leases.insert(id.into(), Lease { owner, until });
        }
        Ok(true)
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        let mut leases = lock(&self.0.leases);
        if leases.get(id).is_some_and(|lease| lease.owner == owner) {
            leases.remove(id);
        }
        Ok(())
    }
}
