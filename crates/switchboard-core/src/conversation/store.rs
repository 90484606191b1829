//! The trait of stores, and the handle to one.

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::entry::{Commit, Committed, Entry, Head};
use super::{Conversation, MemoryStore};
use crate::callback::{BoxError, BoxFuture};

/// Stores conversations.
///
/// A conversation is a record of [`Entry`]s that only grows, and a [`Head`]. Everything else (views,
/// branches, agents) is made of these by [`Conversation`], so that all stores behave alike.
/// `switchboard-sessions` has stores for SQLite, PostgreSQL and Redis.
pub trait ConversationStore: Send + Sync + 'static {
    /// Returns the head of a conversation; `None` if it does not exist.
    fn head(&self, id: &str) -> impl Future<Output = Result<Option<Head>, BoxError>> + Send;

    /// Returns the entries at these positions, in order. Positions that have none are skipped.
    fn read(
        &self,
        id: &str,
        positions: Range<u64>,
    ) -> impl Future<Output = Result<Vec<Entry>, BoxError>> + Send;

    /// Appends the entries of a commit and changes the head, all or nothing, if the conversation is as
    /// the commit expects it. A commit that was made before (the same run and number, and the
    /// conversation has its entries after the expected revision) changes nothing and succeeds.
    ///
    /// A commit that was cancelled is either done before anything that is asked for later, or never.
    fn commit(
        &self,
        id: &str,
        commit: Commit,
    ) -> impl Future<Output = Result<Committed, BoxError>> + Send;

    /// Deletes all entries of a conversation, its agent, its details and its expiry. Positions go on where
    /// they were; the epoch is another one, so that nothing that was loaded before can be committed any more.
    fn clear(&self, id: &str) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Deletes a conversation. Returns `false` if it does not exist.
    fn delete(&self, id: &str) -> impl Future<Output = Result<bool, BoxError>> + Send;

    /// Deletes a conversation if its time of expiry is not later than `time`, as one operation: another
    /// writer may set another time. Returns `false` if it is later, there is none, or no conversation.
    fn delete_expired(
        &self,
        id: &str,
        time: SystemTime,
    ) -> impl Future<Output = Result<bool, BoxError>> + Send;

    /// Lists conversations, the last changed first.
    fn list(&self, query: &ListQuery) -> impl Future<Output = Result<Vec<Head>, BoxError>> + Send;

    /// Finds entries by their text, the latest first. Stores that cannot read their entries return an
    /// error that says so.
    fn search(
        &self,
        query: &SearchQuery,
    ) -> impl Future<Output = Result<Vec<Found>, BoxError>> + Send;

    /// Takes the lease of a conversation, or extends it if `owner` has it. Returns `false` if another
    /// owner has it. A lease ends by itself after `time`.
    fn lease(
        &self,
        id: &str,
        owner: &str,
        time: Duration,
    ) -> impl Future<Output = Result<bool, BoxError>> + Send;

    /// Ends the lease of a conversation, if `owner` has it.
    fn release(&self, id: &str, owner: &str) -> impl Future<Output = Result<(), BoxError>> + Send;

    /// Closes the store, and waits until everything is stored.
    fn close(&self) -> impl Future<Output = ()> + Send {
        async {}
    }
}

/// The conversations to list.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct ListQuery {
    /// The number of conversations; `None` is all.
    pub limit: Option<usize>,
    /// Only those that were changed before this time.
    pub changed_before: Option<SystemTime>,
    /// Only those that expired before this time.
    pub expired_before: Option<SystemTime>,
    /// Only those that expire at this time or later, in the order in which they expire and then by their names. Otherwise a list
    /// begins with the last changed.
    pub expired_from: Option<SystemTime>,
    /// Conversations, or the journals of durable runs.
    pub listed: Listed,
    /// Only those in this folder; see [`folder_of`]. Stores have an index for it, so that the conversations of
    /// other folders cost nothing.
    pub folder: Option<Arc<str>>,
}

/// The beginning of the names of journals.
pub const JOURNAL_PREFIX: &str = "switchboard-run:";

/// The records that a list has.
///
/// A journal is stored as a conversation is: a record that only grows, whose writer knows its revision. Its name begins
/// with [`JOURNAL_PREFIX`], and its entries are [`EntryContent::Step`](super::EntryContent::Step)s. Its time of
/// expiry is the time at which the run is due.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Listed {
    /// Conversations.
    #[default]
    Conversations,
    /// Journals of durable runs.
    Journals,
}

impl Listed {
    /// Returns `true` if the record of this name is of this kind.
    pub fn includes(self, id: &str) -> bool {
        id.starts_with(JOURNAL_PREFIX) == (self == Self::Journals)
    }
}

/// The entries to search for.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SearchQuery {
    /// The text that an entry contains, whatever the case of its letters.
    pub text: Arc<str>,
    /// The number of entries.
    pub limit: usize,
    /// Only entries of conversations in this folder; see [`folder_of`].
    pub folder: Option<Arc<str>>,
}

impl SearchQuery {
    /// Creates a search in all conversations.
    pub fn new(text: impl Into<Arc<str>>, limit: usize) -> Self {
        Self {
            text: text.into(),
            limit,
            folder: None,
        }
    }
}

/// The folder of a conversation: its name up to the last `/`, with it. Names without a `/` are in the folder
/// `""`. A folder does not contain those inside it.
///
/// ```
/// use switchboard_core::conversation::folder_of;
///
/// assert_eq!(folder_of("acme/tuesday"), "acme/");
/// assert_eq!(folder_of("tuesday"), "");
/// ```
pub fn folder_of(name: &str) -> &str {
    name.rfind('/').map_or("", |at| &name[..=at])
}

/// An entry that a search has found.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Found {
    /// The name of the conversation.
    pub conversation: Arc<str>,
    /// The entry.
    pub entry: Entry,
}

impl Found {
    /// Creates the result of a search.
    pub fn new(conversation: impl Into<Arc<str>>, entry: Entry) -> Self {
        Self {
            conversation: conversation.into(),
            entry,
        }
    }
}

/// The conversations of a store. Clones share it.
///
/// ```
/// use switchboard_core::conversation::Conversations;
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::{Agent, Runner};
///
/// # futures_util::FutureExt::now_or_never(async {
/// let conversations = Conversations::in_memory();
/// let session = conversations.get("customer-42");
///
/// let agent: Agent = Agent::new("Support").model(ScriptedModel::new().say("Hello!"));
/// Runner::new(&agent).session(&session).run("Hi").await?;
///
/// let listed = conversations.list(None).await?;
/// assert_eq!(&*listed[0].id, "customer-42");
/// assert_eq!(listed[0].agent.as_deref(), Some("Support"));
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Clone)]
pub struct Conversations(Arc<dyn DynStore>);

impl Conversations {
    /// Creates a handle to a store.
    pub fn new(store: impl ConversationStore) -> Self {
        Self(Arc::new(store))
    }

    /// Creates a store in memory.
    pub fn in_memory() -> Self {
        Self::new(MemoryStore::default())
    }

    /// Returns a handle to the conversation of this name, which may be any text. Nothing is stored
    /// before the first change.
    pub fn get(&self, id: impl Into<Arc<str>>) -> Conversation {
        Conversation::new(self.clone(), id.into())
    }

    /// Lists the conversations, the last changed first.
    ///
    /// # Errors
    /// The store's error.
    pub async fn list(&self, limit: impl Into<Option<usize>>) -> Result<Vec<Head>, BoxError> {
        let limit = limit.into();
        let query = ListQuery {
            limit,
            ..ListQuery::default()
        };
        self.0.list_dyn(&query).await
    }

    /// Finds entries whose text contains `text`, whatever the case of its letters, the latest first.
    ///
    /// # Errors
    /// The store's error. A store that encrypts cannot search.
    pub async fn search(&self, text: &str, limit: usize) -> Result<Vec<Found>, BoxError> {
        self.0.search_dyn(&SearchQuery::new(text, limit)).await
    }

    /// Deletes a conversation. Returns `false` if it does not exist.
    ///
    /// # Errors
    /// The store's error.
    pub async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        self.0.delete_dyn(id).await
    }

    /// Deletes the conversations whose time has passed; see [`Conversation::expire_at`]. Returns how
    /// many there were.
    ///
    /// # Errors
    /// The store's error. Conversations that were deleted before it stay deleted.
    pub async fn delete_expired(&self) -> Result<usize, BoxError> {
        let now = super::entry::now();
        let query = ListQuery {
            expired_before: Some(now),
            ..ListQuery::default()
        };
        let mut deleted = 0;
        for head in self.0.list_dyn(&query).await? {
            deleted += usize::from(self.0.delete_expired_dyn(&head.id, now).await?);
        }
        Ok(deleted)
    }

    /// Closes the store, and waits until everything is stored.
    pub async fn close(&self) {
        self.0.close_dyn().await;
    }

    pub(super) fn store(&self) -> &dyn DynStore {
        &*self.0
    }
}

/// The store itself, for stores that wrap another one.
impl ConversationStore for Conversations {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        self.0.head_dyn(id).await
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        self.0.read_dyn(id, positions).await
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        self.0.commit_dyn(id, commit).await
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        self.0.clear_dyn(id).await
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        self.0.delete_dyn(id).await
    }

    async fn delete_expired(&self, id: &str, time: SystemTime) -> Result<bool, BoxError> {
        self.0.delete_expired_dyn(id, time).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        self.0.list_dyn(query).await
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        self.0.search_dyn(query).await
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        self.0.lease_dyn(id, owner, time).await
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        self.0.release_dyn(id, owner).await
    }

    async fn close(&self) {
        self.0.close_dyn().await;
    }
}

impl_debug!(Conversations);

/// Declares [`ConversationStore`] as a trait object.
macro_rules! dyn_store {
    ($($name:ident = $method:ident($($argument:ident: $type:ty),*) -> $output:ty;)*) => {
        pub(super) trait DynStore: Send + Sync {
            $(fn $name<'a>(&'a self, $($argument: $type),*) -> BoxFuture<'a, $output>;)*
        }

        impl<S: ConversationStore> DynStore for S {
            $(fn $name<'a>(&'a self, $($argument: $type),*) -> BoxFuture<'a, $output> {
                Box::pin(self.$method($($argument),*))
            })*
        }
    };
}

dyn_store! {
    head_dyn = head(id: &'a str) -> Result<Option<Head>, BoxError>;
    read_dyn = read(id: &'a str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError>;
    commit_dyn = commit(id: &'a str, commit: Commit) -> Result<Committed, BoxError>;
    clear_dyn = clear(id: &'a str) -> Result<(), BoxError>;
    delete_dyn = delete(id: &'a str) -> Result<bool, BoxError>;
    delete_expired_dyn = delete_expired(id: &'a str, time: SystemTime) -> Result<bool, BoxError>;
    list_dyn = list(query: &'a ListQuery) -> Result<Vec<Head>, BoxError>;
    search_dyn = search(query: &'a SearchQuery) -> Result<Vec<Found>, BoxError>;
    lease_dyn = lease(id: &'a str, owner: &'a str, time: Duration) -> Result<bool, BoxError>;
    release_dyn = release(id: &'a str, owner: &'a str) -> Result<(), BoxError>;
    close_dyn = close() -> ();
}
