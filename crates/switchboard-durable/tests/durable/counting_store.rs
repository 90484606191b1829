//! A store that counts calls, and is slow to let go of conversations.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Entry, Found, Head, ListQuery, SearchQuery,
};

/// A store that counts calls. Clones share the counts.
#[derive(Clone)]
pub(crate) struct CountingStore(Arc<Inner>);

struct Inner {
    store: Conversations,
    lists: AtomicUsize,
    listed: AtomicUsize,
    longest: AtomicUsize,
    refused: AtomicUsize,
}

impl CountingStore {
    pub(crate) fn new(store: &Conversations) -> Self {
        Self(Arc::new(Inner {
            store: store.clone(),
            lists: AtomicUsize::new(0),
            listed: AtomicUsize::new(0),
            longest: AtomicUsize::new(0),
            refused: AtomicUsize::new(0),
        }))
    }

    /// The number of lists.
    pub(crate) fn lists(&self) -> usize {
        self.0.lists.load(Ordering::SeqCst)
    }

    /// The number of records in all lists, and in the longest one.
    pub(crate) fn listed(&self) -> (usize, usize) {
        let Inner {
            listed, longest, ..
        } = &*self.0;
        (
            listed.load(Ordering::SeqCst),
            longest.load(Ordering::SeqCst),
        )
    }

    /// The number of times that a conversation was refused to a run.
    pub(crate) fn refused(&self) -> usize {
        self.0.refused.load(Ordering::SeqCst)
    }
}

impl ConversationStore for CountingStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        self.0.store.head(id).await
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        self.0.store.read(id, positions).await
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
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
        let heads = ConversationStore::list(&self.0.store, query).await?;
        self.0.lists.fetch_add(1, Ordering::SeqCst);
        self.0.listed.fetch_add(heads.len(), Ordering::SeqCst);
        self.0.longest.fetch_max(heads.len(), Ordering::SeqCst);
        Ok(heads)
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        ConversationStore::search(&self.0.store, query).await
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        let is_taken = self.0.store.lease(id, owner, time).await?;
        self.0
            .refused
            .fetch_add(usize::from(!is_taken), Ordering::SeqCst);
        Ok(is_taken)
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        // Long enough for others to see that the run is settled.
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
        self.0.store.release(id, owner).await
    }

    async fn close(&self) {
        self.0.store.close().await;
    }
}
