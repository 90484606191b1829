//! A store that stops its process, or behaves as if the process were gone, at one of its writes.

use std::future::pending;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use switchboard_core::callback::{BoxError, BoxFuture};
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Entry, Found, Head, JOURNAL_PREFIX,
    ListQuery, SearchQuery,
};

/// The moment of a crash, relative to a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// An effect has taken place, and is not recorded.
    BeforeWrite,
    AfterWrite,
}

/// A store whose process ends at one of its writes. Clones share it.
#[derive(Clone)]
pub(crate) struct FaultStore(Arc<Inner>);

struct Inner {
    store: Conversations,
    writes: AtomicUsize,
    crash: Option<(usize, Moment)>,
    is_gone: AtomicBool,
    /// Ends the process; otherwise all calls from the crash on never return.
    kill: Option<fn()>,
    /// The write whose answer is lost, and what others do until it is repeated.
    lost: Option<(usize, Meanwhile)>,
    /// The time that each call for a journal takes.
    latency: Duration,
}

/// Something that others do.
pub(crate) type Meanwhile = Box<dyn Fn() -> BoxFuture<'static, ()> + Send + Sync>;

impl FaultStore {
    /// Crashes at the given write, counted from 1.
    pub(crate) fn new(
        store: Conversations,
        crash: Option<(usize, Moment)>,
        kill: Option<fn()>,
    ) -> Self {
        Self(Arc::new(Inner {
            store,
            writes: AtomicUsize::new(0),
            crash,
            is_gone: AtomicBool::new(false),
            kill,
            lost: None,
            latency: Duration::ZERO,
        }))
    }

    /// Loses the answer to the given write, counted from 1, if it is one to a journal, and repeats it later, as stores do whose connection was lost.
    pub(crate) fn losing_an_answer(store: Conversations, at: usize, meanwhile: Meanwhile) -> Self {
        Self(Arc::new(Inner {
            store,
            writes: AtomicUsize::new(0),
            crash: None,
            is_gone: AtomicBool::new(false),
            kill: None,
            lost: Some((at, meanwhile)),
            latency: Duration::ZERO,
        }))
    }

    /// Takes its time for each call for a journal.
    pub(crate) fn slow(store: Conversations, latency: Duration) -> Self {
        Self(Arc::new(Inner {
            store,
            writes: AtomicUsize::new(0),
            crash: None,
            is_gone: AtomicBool::new(false),
            kill: None,
            lost: None,
            latency,
        }))
    }

    /// The number of writes so far.
    pub(crate) fn writes(&self) -> usize {
        self.0.writes.load(Ordering::SeqCst)
    }

    /// Waits until the process is gone.
    pub(crate) async fn gone(&self) {
        while !self.is_gone() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    pub(crate) fn is_gone(&self) -> bool {
        self.0.is_gone.load(Ordering::SeqCst)
    }

    async fn crash(&self) {
        self.0.is_gone.store(true, Ordering::SeqCst);
        if let Some(kill) = self.0.kill {
            kill();
        }
        pending::<()>().await;
    }

    async fn delay(&self, id: &str) {
        if id.starts_with(JOURNAL_PREFIX) && !self.0.latency.is_zero() {
            tokio::time::sleep(self.0.latency).await;
        }
    }

    async fn check(&self) {
        if self.is_gone() {
            pending::<()>().await;
        }
    }
}

impl ConversationStore for FaultStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        self.check().await;
        self.delay(id).await;
        self.0.store.head(id).await
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        self.check().await;
        self.delay(id).await;
        self.0.store.read(id, positions).await
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        self.check().await;
        self.delay(id).await;
        // Leases are extended whenever the time has come.
        let number = if commit.entries.is_empty() && commit.details.is_none() {
            0
        } else {
            self.0.writes.fetch_add(1, Ordering::SeqCst) + 1
        };
        let crash = self.0.crash.filter(|(at, _)| *at == number);
        if let Some((_, Moment::BeforeWrite)) = crash {
            self.crash().await;
        }
        if let Some((at, meanwhile)) = &self.0.lost
            && *at == number
            && id.starts_with(JOURNAL_PREFIX)
        {
            let _ = self.0.store.commit(id, commit.clone()).await;
            meanwhile().await;
        }
        let committed = self.0.store.commit(id, commit).await;
        if crash.is_some() {
            self.crash().await;
        }
        committed
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
        self.check().await;
        ConversationStore::list(&self.0.store, query).await
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        ConversationStore::search(&self.0.store, query).await
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        self.check().await;
        self.0.store.lease(id, owner, time).await
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        self.check().await;
        self.0.store.release(id, owner).await
    }

    async fn close(&self) {
        self.0.store.close().await;
    }
}
