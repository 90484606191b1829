//! A store that counts what is read of tasks, and can hold commits back or fail.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Entry, Found, Head, ListQuery, SearchQuery,
};
use tokio::sync::Semaphore;

#[derive(Clone)]
pub(crate) struct WatchedStore {
    inner: Conversations,
    reads: Arc<AtomicUsize>,
    faults: Arc<Mutex<Faults>>,
    is_held: Arc<AtomicBool>,
    has_failed_writes: Arc<AtomicBool>,
    release: Arc<Semaphore>,
}

/// Each is the beginning of the names that it is about.
#[derive(Default)]
struct Faults {
    held: Option<String>,
    failing_writes: Option<String>,
    failing_reads: Option<String>,
}

/// Returns `true` for a name that begins with what is given, if anything is.
fn is_meant(prefix: Option<&String>, id: &str) -> bool {
    prefix.is_some_and(|prefix| id.starts_with(prefix.as_str()))
}

impl WatchedStore {
    pub(crate) fn new(inner: &Conversations) -> Self {
        Self {
            inner: inner.clone(),
            reads: Arc::default(),
            faults: Arc::default(),
            is_held: Arc::default(),
            has_failed_writes: Arc::default(),
            release: Arc::new(Semaphore::new(0)),
        }
    }

    /// The number of tasks that were read since this was asked last.
    pub(crate) fn take_reads(&self) -> usize {
        self.reads.swap(0, Ordering::SeqCst)
    }

    /// Holds the next commit to a name that begins so back, until [`Self::release`].
    pub(crate) fn hold_back(&self, prefix: &str) {
        self.faults.lock().unwrap().held = Some(prefix.to_owned());
    }

    /// Lets all commits and deletions of names that begin so fail, until [`Self::heal`].
    pub(crate) fn fail_writes(&self, prefix: &str) {
        self.faults.lock().unwrap().failing_writes = Some(prefix.to_owned());
    }

    /// Lets all reads of names that begin so fail, until [`Self::heal`].
    pub(crate) fn fail_reads(&self, prefix: &str) {
        self.faults.lock().unwrap().failing_reads = Some(prefix.to_owned());
    }

    /// Returns `true` once a write has failed.
    pub(crate) fn has_failed_writes(&self) -> bool {
        self.has_failed_writes.load(Ordering::SeqCst)
    }

    pub(crate) fn heal(&self) {
        *self.faults.lock().unwrap() = Faults::default();
    }

    fn read_fault(&self, id: &str) -> Result<(), BoxError> {
        if is_meant(self.faults.lock().unwrap().failing_reads.as_ref(), id) {
            return Err("the store cannot be read".into());
        }
        Ok(())
    }

    fn write_fault(&self, id: &str) -> Result<(), BoxError> {
        if is_meant(self.faults.lock().unwrap().failing_writes.as_ref(), id) {
            self.has_failed_writes.store(true, Ordering::SeqCst);
            return Err("the store cannot be written".into());
        }
        Ok(())
    }

    /// Returns `true` once for a name whose commits are held back.
    fn take_held(&self, id: &str) -> bool {
        let mut faults = self.faults.lock().unwrap();
        let is_held = is_meant(faults.held.as_ref(), id);
        if is_held {
            faults.held = None;
        }
        is_held
    }

    pub(crate) fn is_held(&self) -> bool {
        self.is_held.load(Ordering::SeqCst)
    }

    /// Returns `true` once for a commit that is held back.
    pub(crate) fn take_is_held(&self) -> bool {
        self.is_held.swap(false, Ordering::SeqCst)
    }

    pub(crate) fn release(&self) {
        self.release.add_permits(1);
    }
}

fn is_task(id: &str) -> bool {
    id.starts_with("~task/")
}

impl ConversationStore for WatchedStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        self.read_fault(id)?;
        ConversationStore::head(&self.inner, id).await
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        if is_task(id) {
            self.reads.fetch_add(1, Ordering::SeqCst);
        }
        self.read_fault(id)?;
        ConversationStore::read(&self.inner, id, positions).await
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        self.write_fault(id)?;
        if self.take_held(id) {
            self.is_held.store(true, Ordering::SeqCst);
            self.release.acquire().await?.forget();
        }
        ConversationStore::commit(&self.inner, id, commit).await
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        ConversationStore::clear(&self.inner, id).await
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        self.write_fault(id)?;
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
