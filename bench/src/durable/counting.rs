//! A store that counts its calls.

use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde::Deserialize;
use serde::de::IgnoredAny;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Entry, Found, Head, JOURNAL_PREFIX,
    ListQuery, SearchQuery,
};

/// A store that counts its calls. Clones share it.
#[derive(Clone)]
pub(super) struct CountingStore(Arc<Inner>);

struct Inner {
    store: Conversations,
    counted: Mutex<Counted>,
}

#[derive(Default)]
struct Counted {
    counts: Counts,
    commits: Vec<(String, Commit)>,
    keeps_commits: bool,
}

/// Numbers of calls, and what they wrote.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    /// The recorded outcomes of steps.
    pub(super) steps: u64,
    pub(super) events: u64,
    pub(super) journal_commits: u64,
    /// Those with the outcomes of steps, without those that may be recorded with later ones.
    pub(super) step_commits: u64,
    /// The bytes of all entries and states of runs.
    pub(super) journal_bytes: u64,
    /// The bytes of the outcomes of steps.
    pub(super) step_bytes: u64,
    pub(super) conversation_commits: u64,
    /// Leases of conversations, taken and given back.
    pub(super) leases: u64,
    pub(super) heads: u64,
    pub(super) reads: u64,
}

/// The entry of a journal for events.
#[derive(Deserialize)]
struct Events {
    events: Vec<IgnoredAny>,
}

impl CountingStore {
    pub(super) fn new(store: Conversations) -> Self {
        Self(Arc::new(Inner {
            store,
            counted: Mutex::default(),
        }))
    }

    /// Creates a store that also keeps the commits that are made.
    pub(super) fn keeping_commits(store: Conversations) -> Self {
        let this = Self::new(store);
        this.counted().keeps_commits = true;
        this
    }

    fn counted(&self) -> MutexGuard<'_, Counted> {
        let counted = &self.0.counted;
        counted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, add: impl FnOnce(&mut Counts)) {
        add(&mut self.counted().counts);
    }

    pub(super) fn counts(&self) -> Counts {
        self.counted().counts
    }

    /// The commits that were made, with the names of their records.
    pub(super) fn commits(&self) -> Vec<(String, Commit)> {
        self.counted().commits.clone()
    }
}

impl Counts {
    fn add(&mut self, id: &str, commit: &Commit) {
        if !id.starts_with(JOURNAL_PREFIX) {
            self.conversation_commits += 1;
            return;
        }
        self.journal_commits += 1;
        let mut is_of_steps = false;
        for entry in &commit.entries {
            let json = entry.content.as_json();
            self.journal_bytes += json.len() as u64;
            if json.starts_with(r#"{"step":"#) {
                self.steps += 1;
                is_of_steps |= !json.contains(r#""kind":"conversation""#);
                self.step_bytes += json.len() as u64;
            }
            if let Ok(Events { events }) = serde_json::from_str(json) {
                self.events += events.len() as u64;
            }
        }
        self.step_commits += u64::from(is_of_steps);
        self.journal_bytes += commit.details.as_ref().map_or(0, |json| json.len() as u64);
    }
}

impl ConversationStore for CountingStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        self.count(|counts| counts.heads += 1);
        self.0.store.head(id).await
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        self.count(|counts| counts.reads += 1);
        self.0.store.read(id, positions).await
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        {
            let mut counted = self.counted();
            counted.counts.add(id, &commit);
            if counted.keeps_commits {
                counted.commits.push((id.to_owned(), commit.clone()));
            }
        }
        self.0.store.commit(id, commit).await
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        self.0.store.clear(id).await
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        self.0.store.delete(id).await
    }

    async fn delete_expired(&self, id: &str, time: SystemTime) -> Result<bool, BoxError> {
        ConversationStore::delete_expired(&self.0.store, id, time).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        ConversationStore::list(&self.0.store, query).await
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        ConversationStore::search(&self.0.store, query).await
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        self.count(|counts| counts.leases += 1);
        self.0.store.lease(id, owner, time).await
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        self.count(|counts| counts.leases += 1);
        self.0.store.release(id, owner).await
    }

    async fn close(&self) {
        self.0.store.close().await;
    }
}
