//! Conversations in one SQLite file.

pub(crate) mod file;
mod schema;
mod statements;
mod threads;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, Found, Head, ListQuery,
};

use self::file::Opener;
use self::threads::{After, Threads};
use crate::error::StoreError;

/// The timeout for locks that other processes hold on the file. A commit takes milliseconds; this
/// allows for many of them, and for a slow disk.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Conversations in one SQLite file. Clones share it.
///
/// A file may be open several times, in one process or in many, and any number of tasks may use each
/// handle. The file must be on a local disk: SQLite cannot share one over a network. A file of an
/// earlier version is migrated when it is opened.
///
/// The store works in threads of its own and in any async runtime. A commit that was begun is done also
/// if its future is dropped, and is seen by everything that is asked for later.
///
/// ```
/// use switchboard_core::conversation::Conversations;
/// use switchboard_core::{Item, Session};
/// use switchboard_sessions::SqliteStore;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("conversations.db");
/// let conversations = Conversations::new(SqliteStore::open(&path).await?);
/// conversations.get("customer-42").append(&[Item::user("Hi")]).await?;
/// conversations.close().await;
///
/// let conversations = Conversations::new(SqliteStore::open(&path).await?);
/// let items = conversations.get("customer-42").load(None).await?;
/// assert_eq!(items.iter().collect::<Vec<_>>(), [&Item::user("Hi")]);
/// assert!(conversations.delete("customer-42").await?);
/// assert_eq!(conversations.list(None).await?, []);
/// # conversations.close().await;
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// # })?;
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// ```
#[derive(Clone)]
pub struct SqliteStore(Arc<Inner>);

struct Inner {
    path: Arc<Path>,
    threads: Threads,
}

/// The certainty with which a commit is on the disk when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum Durability {
    /// A commit that has returned survives a power failure.
    #[default]
    Full,
    /// A power failure may lose the last commits, in whole commits from the end; a crash of the process
    /// loses nothing.
    Normal,
}

/// The options of a [`SqliteStore`].
///
/// ```
/// use std::time::Duration;
/// use switchboard_sessions::{Durability, SqliteStore};
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("conversations.db");
/// let store = SqliteStore::options()
///     .durability(Durability::Normal)
///     .busy_timeout(Duration::from_secs(5))
///     .open(path)
///     .await?;
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// # })?;
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// ```
#[derive(Debug, Clone)]
#[must_use = "options do nothing before a file is opened with them"]
pub struct SqliteOptions {
    durability: Durability,
    busy_timeout: Duration,
}

impl SqliteOptions {
    /// Sets the certainty with which commits are on the disk. The default is [`Durability::Full`].
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets the time to wait for other processes that have locked the file. The default is 30 seconds.
    pub fn busy_timeout(mut self, time: Duration) -> Self {
        self.busy_timeout = time;
        self
    }

    /// Opens the file, and creates it if it does not exist or is empty. On Unix only its owner can
    /// read a file that is created here.
    ///
    /// # Errors
    /// Returns an error if the folder is missing, the file does not hold conversations or is of a later
    /// version, or it cannot be read and written. A file that is rejected is not changed.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore, StoreError> {
        let opener = Opener::new(path.as_ref(), self.busy_timeout, self.durability)?;
        Ok(SqliteStore(Arc::new(Inner {
            path: opener.path.clone(),
            threads: Threads::start(opener).await?,
        })))
    }
}

impl SqliteStore {
    /// Opens the file with the default options; see [`SqliteOptions::open`].
    ///
    /// # Errors
    /// Returns an error if the file cannot be used.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::options().open(path).await
    }

    /// Returns the default options.
    pub fn options() -> SqliteOptions {
        SqliteOptions {
            durability: Durability::default(),
            busy_timeout: BUSY_TIMEOUT,
        }
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }
}

impl ConversationStore for SqliteStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        let name = id.to_owned();
        let read = move |connection: &_| statements::head(connection, &name);
        Ok(self.0.threads.read(After::WritesTo(id), read).await?)
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        let name = id.to_owned();
        let read = move |connection: &_| statements::read(connection, &name, &positions);
        Ok(self.0.threads.read(After::WritesTo(id), read).await?)
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        let name = id.to_owned();
        let write = move |connection: &_| statements::commit(connection, &name, &commit);
        Ok(self.0.threads.write(Some(id), write).await?)
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        let name = id.to_owned();
        let write = move |connection: &_| statements::clear(connection, &name);
        Ok(self.0.threads.write(Some(id), write).await?)
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        let name = id.to_owned();
        let write = move |connection: &_| statements::delete(connection, &name);
        Ok(self.0.threads.write(Some(id), write).await?)
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        let query = query.clone();
        let read = move |connection: &_| statements::list(connection, &query);
        Ok(self.0.threads.read(After::AllWrites, read).await?)
    }

    async fn search(&self, text: &str, limit: usize) -> Result<Vec<Found>, BoxError> {
        let text = text.to_owned();
        let read = move |connection: &_| statements::search(connection, &text, limit);
        Ok(self.0.threads.read(After::AllWrites, read).await?)
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        let (name, owner) = (id.to_owned(), owner.to_owned());
        let write = move |connection: &_| statements::lease(connection, &name, &owner, time);
        Ok(self.0.threads.write(Some(id), write).await?)
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        let (name, owner) = (id.to_owned(), owner.to_owned());
        let write = move |connection: &_| statements::release(connection, &name, &owner);
        Ok(self.0.threads.write(Some(id), write).await?)
    }

    /// Closes the file for all clones, and waits until that is done.
    ///
    /// Dropping all of them closes it too, but in the background. Afterwards everything is in the one
    /// file: the files beside it (`-wal`, `-shm`) are removed, unless others have it open.
    async fn close(&self) {
        self.0.threads.close().await;
    }
}

impl fmt::Debug for SqliteStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteStore").field(&self.0.path).finish()
    }
}
