//! Sessions: stores of a conversation between runs.

use std::future::Future;
use std::sync::{Arc, Mutex, OnceLock};

use crate::callback::{BoxError, BoxFuture};
use crate::handle::into_handle;
use crate::items::{Item, Items};
use crate::lock::lock;

/// The store of one conversation.
///
/// A run loads the conversation when it starts, appends the user's message, and then appends once
/// per turn: a crash loses at most the turn in progress, and only whole turns are stored.
pub trait Session: Send + Sync + 'static {
    /// Returns the conversation, oldest item first; with a limit, the latest `limit` items.
    fn load(&self, limit: Option<usize>) -> impl Future<Output = Result<Items, BoxError>> + Send;

    /// Appends items, all or none of them.
    fn append(&self, items: &[Item]) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Removes and returns the last item.
    fn pop(&self) -> impl Future<Output = Result<Option<Item>, BoxError>> + Send;

    /// Removes all items.
    fn clear(&self) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// The identifier of the conversation, if it has one; the requests of its runs share a key of the
    /// provider's prompt cache.
    fn id(&self) -> Option<&str> {
        None
    }

    /// The number of latest items that a run loads, where the run sets no limit; `None` is all.
    fn limit(&self) -> Option<usize> {
        None
    }
}

/// A session in memory. Clones share it.
///
/// ```
/// use switchboard_core::{Item, MemorySession, Session};
///
/// # futures_util::FutureExt::now_or_never(async {
/// let session = MemorySession::new();
/// session.append(&[Item::user("Hi")]).await?;
/// assert_eq!(session.load(None).await?.len(), 1);
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemorySession(Arc<Memory>);

#[derive(Debug, Default)]
struct Memory {
    items: Mutex<Items>,
    id: OnceLock<String>,
}

impl MemorySession {
    /// Creates an empty session.
    pub fn new() -> Self {
        Self::default()
    }

    /// The items of the conversation.
    pub fn items(&self) -> Items {
        lock(&self.0.items).clone()
    }
}

impl Session for MemorySession {
    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        let items = self.items();
        let skipped = limit.map_or(0, |limit| items.len().saturating_sub(limit));
        Ok(items.skip(skipped))
    }

    async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        lock(&self.0.items).extend(items.iter().cloned());
        Ok(())
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        let mut held = lock(&self.0.items);
        let last = held.last().cloned();
        let kept = held.len().saturating_sub(1);
        *held = held.iter().take(kept).cloned().collect();
        Ok(last)
    }

    async fn clear(&self) -> Result<(), BoxError> {
        *lock(&self.0.items) = Items::new();
        Ok(())
    }

    fn id(&self) -> Option<&str> {
        let id = self.0.id.get_or_init(|| {
            let id = fastrand::u128(..);
            format!("{id:032x}")
        });
        Some(id)
    }
}

/// A handle to a session; clones share it.
#[derive(Clone)]
pub struct SessionHandle(Arc<dyn DynSession>);

impl SessionHandle {
    /// Creates a handle.
    pub fn new(session: impl Session) -> Self {
        Self::from_arc(Arc::new(session))
    }

    fn from_arc(session: Arc<impl Session>) -> Self {
        Self(session)
    }

    /// See [`Session::load`].
    ///
    /// # Errors
    /// The session's error.
    pub async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        self.0.load_dyn(limit).await
    }

    /// See [`Session::append`].
    ///
    /// # Errors
    /// The session's error.
    pub async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        self.0.append_dyn(items).await
    }

    /// See [`Session::pop`].
    ///
    /// # Errors
    /// The session's error.
    pub async fn pop(&self) -> Result<Option<Item>, BoxError> {
        self.0.pop_dyn().await
    }

    /// See [`Session::clear`].
    ///
    /// # Errors
    /// The session's error.
    pub async fn clear(&self) -> Result<(), BoxError> {
        self.0.clear_dyn().await
    }

    /// See [`Session::id`].
    pub fn id(&self) -> Option<&str> {
        self.0.id_dyn()
    }

    /// See [`Session::limit`].
    pub fn limit(&self) -> Option<usize> {
        self.0.limit_dyn()
    }
}

impl<S: Session> From<S> for SessionHandle {
    fn from(session: S) -> Self {
        Self::new(session)
    }
}

into_handle! { impl[] SessionHandle, made of [S: Session] S }

impl_debug!(SessionHandle);

/// [`Session`] as a trait object.
trait DynSession: Send + Sync {
    fn load_dyn(&self, limit: Option<usize>) -> BoxFuture<'_, Result<Items, BoxError>>;
    fn append_dyn<'a>(&'a self, items: &'a [Item]) -> BoxFuture<'a, Result<(), BoxError>>;
    fn pop_dyn(&self) -> BoxFuture<'_, Result<Option<Item>, BoxError>>;
    fn clear_dyn(&self) -> BoxFuture<'_, Result<(), BoxError>>;
    fn id_dyn(&self) -> Option<&str>;
    fn limit_dyn(&self) -> Option<usize>;
}

impl<S: Session> DynSession for S {
    fn load_dyn(&self, limit: Option<usize>) -> BoxFuture<'_, Result<Items, BoxError>> {
        Box::pin(self.load(limit))
    }

    fn append_dyn<'a>(&'a self, items: &'a [Item]) -> BoxFuture<'a, Result<(), BoxError>> {
        Box::pin(self.append(items))
    }

    fn pop_dyn(&self) -> BoxFuture<'_, Result<Option<Item>, BoxError>> {
        Box::pin(self.pop())
    }

    fn clear_dyn(&self) -> BoxFuture<'_, Result<(), BoxError>> {
        Box::pin(self.clear())
    }

    fn id_dyn(&self) -> Option<&str> {
        self.id()
    }

    fn limit_dyn(&self) -> Option<usize> {
        self.limit()
    }
}
