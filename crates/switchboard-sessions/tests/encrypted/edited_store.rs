//! A store whose answers are changed, as if somebody had changed what is stored.

use std::ops::Range;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, Found, Head, ListQuery, MemoryStore, SearchQuery,
};

type Edit<T> = Arc<dyn Fn(&mut T) + Send + Sync>;

/// A store in memory with edits of its heads and its entries.
#[derive(Clone)]
pub(crate) struct EditedStore {
    store: MemoryStore,
    head: Edit<Head>,
    entries: Edit<Vec<Entry>>,
    /// A call of the store before which a conversation is cleared, once.
    clear_before: Arc<Mutex<Option<&'static str>>>,
}

impl EditedStore {
    pub(crate) fn new(store: &MemoryStore) -> Self {
        Self {
            store: store.clone(),
            head: Arc::new(|_| ()),
            entries: Arc::new(|_| ()),
            clear_before: Arc::default(),
        }
    }

    pub(crate) fn edit_head(mut self, edit: impl Fn(&mut Head) + Send + Sync + 'static) -> Self {
        self.head = Arc::new(edit);
        self
    }

    /// All entries of the conversation are edited, whatever is read of them.
    pub(crate) fn edit_entries(
        mut self,
        edit: impl Fn(&mut Vec<Entry>) + Send + Sync + 'static,
    ) -> Self {
        self.entries = Arc::new(edit);
        self
    }

    pub(crate) fn clear_before(self, call: &'static str) -> Self {
        *self.clear_before.lock().unwrap() = Some(call);
        self
    }

    async fn before(&self, call: &'static str, id: &str) {
        let is_cleared = self.clear_before.lock().unwrap().take_if(|at| *at == call);
        if is_cleared.is_some() {
            self.store.clear(id).await.unwrap();
        }
    }
}

impl ConversationStore for EditedStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        let mut head = self.store.head(id).await?;
        if let Some(head) = &mut head {
            (self.head)(head);
        }
        Ok(head)
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        self.before("read", id).await;
        let mut entries = self.store.read(id, 0..u64::MAX).await?;
        (self.entries)(&mut entries);
        entries.retain(|entry| positions.contains(&entry.position));
        Ok(entries)
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        self.before("commit", id).await;
        self.store.commit(id, commit).await
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
        let mut heads = self.store.list(query).await?;
        heads.iter_mut().for_each(&*self.head);
        Ok(heads)
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        self.store.search(query).await
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        self.store.lease(id, owner, time).await
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        self.store.release(id, owner).await
    }
}
