//! A store that counts what is read of tasks, and can hold back their next commit.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Entry, Found, Head, ListQuery, SearchQuery,
};
use tokio::sync::Semaphore;

#[derive(Clone)]
pub(super) struct WatchedStore {
    inner: Conversations,
    reads: Arc<AtomicUsize>,
    holds_back: Arc<AtomicBool>,
    is_held: Arc<AtomicBool>,
    release: Arc<Semaphore>,
}

impl WatchedStore {
    pub(super) fn new(inner: &Conversations) -> Self {
        Self {
            inner: inner.clone(),
            reads: Arc::default(),
            holds_back: Arc::default(),
            is_held: Arc::default(),
            release: Arc::new(Semaphore::new(0)),
        }
    }

    /// The number of tasks that were read since this was asked last.
    pub(super) fn take_reads(&self) -> usize {
        self.reads.swap(0, Ordering::SeqCst)
    }

    /// Holds the next commit of a task back, until [`Self::release`].
    pub(super) fn hold_back(&self) {
        self.holds_back.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::SeqCst)
    }

    pub(super) fn release(&self) {
        self.release.add_permits(1);
    }
}

fn is_task(id: &str) -> bool {
    id.starts_with("~task/")
}

impl ConversationStore for WatchedStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        ConversationStore::head(&self.inner, id).await
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        if is_task(id) {
            self.reads.fetch_add(1, Ordering::SeqCst);
        }
        ConversationStore::read(&self.inner, id, positions).await
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        if is_task(id) && self.holds_back.swap(false, Ordering::SeqCst) {
            self.is_held.store(true, Ordering::SeqCst);
            self.release.acquire().await?.forget();
        }
        ConversationStore::commit(&self.inner, id, commit).await
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        ConversationStore::clear(&self.inner, id).await
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        ConversationStore::delete(&self.inner, id).await
    }

    async fn delete_expired(&self, id: &str, time: SystemTime) -> Result<bool, BoxError> {
        ConversationStore::delete_expired(&self.inner, id, time).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        ConversationStore::list(&self.inner, query).await
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        ConversationStore::search(&self.inner, query).await
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        ConversationStore::lease(&self.inner, id, owner, time).await
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        ConversationStore::release(&self.inner, id, owner).await
    }
}
