//! A store that tests look into.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use futures_util::future::BoxFuture;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, Found, Head, ListQuery, MemoryStore, SearchQuery,
};

/// A store in memory that counts the entries that are read and written, and the leases that are taken or extended, can lose the answer to a commit,
/// and lets something happen after a list.
#[derive(Clone, Default)]
pub(super) struct ObservedStore {
    store: MemoryStore,
    entries: Arc<AtomicUsize>,
    calls: Arc<AtomicUsize>,
    leases: Arc<AtomicUsize>,
    loses_answer: Arc<AtomicBool>,
    after_list: Arc<Mutex<Option<BoxFuture<'static, ()>>>>,
}

impl ObservedStore {
    fn count(&self, entries: usize) {
        self.entries.fetch_add(entries, Ordering::Relaxed);
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Stores the next commit, and fails all the same.
    pub(super) fn lose_next_answer(&self) {
        self.loses_answer.store(true, Ordering::Relaxed);
    }

    /// Does something between the next list and its answer.
    pub(super) fn after_next_list(&self, action: impl Future<Output = ()> + Send + 'static) {
        *self.after_list.lock().unwrap() = Some(Box::pin(action));
    }

    /// The number of times that a lease was taken or extended.
    pub(super) fn leases(&self) -> usize {
        self.leases.load(Ordering::Relaxed)
    }

    /// The entries and the calls since the last time.
    pub(super) fn take(&self) -> (usize, usize) {
        let take = |count: &AtomicUsize| count.swap(0, Ordering::Relaxed);
        (take(&self.entries), take(&self.calls))
    }
}

impl ConversationStore for ObservedStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        self.count(0);
        self.store.head(id).await
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        let entries = self.store.read(id, positions).await?;
        self.count(entries.len());
        Ok(entries)
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        self.count(commit.entries.len());
        let committed = self.store.commit(id, commit).await?;
        if self.loses_answer.swap(false, Ordering::Relaxed) {
            return Err("the connection was lost".into());
        }
        Ok(committed)
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        self.store.clear(id).await
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        self.store.delete(id).await
    }

    async fn delete_expired(&self, id: &str, time: SystemTime) -> Result<bool, BoxError> {
        self.store.delete_expired(id, time).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        let heads = self.store.list(query).await?;
        let action = self.after_list.lock().unwrap().take();
        if let Some(action) = action {
            action.await;
        }
        Ok(heads)
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        self.store.search(query).await
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        self.leases.fetch_add(1, Ordering::Relaxed);
        self.store.lease(id, owner, time).await
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        self.store.release(id, owner).await
    }
}
