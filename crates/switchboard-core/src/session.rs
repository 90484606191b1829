//! Sessions: stores of a conversation between runs.

use std::future::Future;
use std::sync::Arc;

use futures_util::FutureExt as _;

use crate::callback::{BoxError, BoxFuture};
use crate::conversation::{Conversation, Conversations};
use crate::handle::into_handle;
use crate::items::{Item, Items};

/// The store of one conversation as a list of items.
///
/// Implement it to use a store of your own. A run loads the items when it starts, appends the user's
/// message, and then appends once per turn: a crash loses at most the turn in progress, and only whole
/// turns are stored. What filters leave out, and which agent has the conversation, is not stored; the
/// sessions of Switchboard itself are [`Conversation`]s, which store both.
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

    /// The conversation behind the session, where it keeps more than a list of items: what the current
    /// agent's model is shown, and the agent. Runs then use that instead of the methods above, unless
    /// they are set to [`HistoryPolicy::Reference`](crate::run::HistoryPolicy::Reference).
    fn conversation(&self) -> Option<Conversation> {
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
#[derive(Debug, Clone)]
pub struct MemorySession(Conversation);

impl MemorySession {
    /// Creates an empty session.
    pub fn new() -> Self {
        let id = fastrand::u128(..);
        Self(Conversations::in_memory().get(format!("{id:032x}")))
    }

    /// The items of the conversation: all that was said and done.
    pub fn items(&self) -> Items {
        // A store in memory never waits and never fails.
        let loaded = self.0.load(None).now_or_never();
        loaded.and_then(Result::ok).unwrap_or_default()
    }
}

impl Default for MemorySession {
    fn default() -> Self {
        Self::new()
    }
}

impl Session for MemorySession {
    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        self.0.load(limit).await
    }

    async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        self.0.append(items).await
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        self.0.pop().await
    }

    async fn clear(&self) -> Result<(), BoxError> {
        self.0.clear().await
    }

    fn id(&self) -> Option<&str> {
        self.0.id()
    }

    fn conversation(&self) -> Option<Conversation> {
        Some(self.0.clone())
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

    /// See [`Session::conversation`].
    pub fn conversation(&self) -> Option<Conversation> {
        self.0.conversation_dyn()
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
    fn conversation_dyn(&self) -> Option<Conversation>;
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

    fn conversation_dyn(&self) -> Option<Conversation> {
        self.conversation()
    }
}
