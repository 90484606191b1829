//! Conversations in one SQLite file.

pub(crate) mod file;
mod schema;
mod statements;
mod threads;

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, Found, Head, ListQuery, SearchQuery,
};

use self::file::Opener;
use self::threads::{After, Threads};
use crate::error::StoreError;
use crate::open::Access;

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
///
/// Commits per second and the CPU time of each, for turns of four items (1.4 KB), on two cores and a
/// virtual disk, measured with `cargo run --release -p switchboard-sessions --example sqlite_commits`:
///
/// | | 1 writer | 64 writers |
/// | --- | --- | --- |
/// | `Full` | 350/s, 210 µs | 7,700/s, 42 µs |
/// | `Normal` | 5,000/s, 78 µs | 10,000/s, 39 µs |
///
/// Writers that wait at the same time share one confirmation of the disk, so `Full` costs little where
/// many conversations go on at once.
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
    access: Access,
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

    /// Sets the purpose for which the file is opened. The default is [`Access::Create`].
    pub fn access(mut self, access: Access) -> Self {
        self.access = access;
        self
    }

    /// Opens the file, and creates it if it does not exist or is empty, unless [`SqliteOptions::access`] says
    /// otherwise. On Unix only its owner can read a file that is created here.
    ///
    /// # Errors
    /// Returns an error if the folder is missing, the file does not hold conversations or is of a later
    /// version, or it cannot be read and written. A file that is rejected is not changed.
    pub async fn open(self, path: impl AsRef<Path>) -> Result<SqliteStore, StoreError> {
        let opener = Opener::new(path.as_ref(), &self)?;
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
            access: Access::default(),
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

    async fn delete_expired(&self, id: &str, time: SystemTime) -> Result<bool, BoxError> {
        let name = id.to_owned();
        let write = move |connection: &_| statements::delete_expired(connection, &name, time);
        Ok(self.0.threads.write(Some(id), write).await?)
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        let query = query.clone();
        let read = move |connection: &_| statements::list(connection, &query);
        Ok(self.0.threads.read(After::AllWrites, read).await?)
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        let query = query.clone();
        let read = move |connection: &_| statements::search(connection, &query);
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

#[cfg(test)]
mod tests {
    use futures_util::future::join_all;
    use switchboard_core::conversation::{Conversation, Conversations};
    use switchboard_core::{Item, Session};

    use super::*;
    use crate::error::StoreErrorKind;

    async fn new_store() -> (tempfile::TempDir, SqliteStore, Conversation) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conversations.db");
        let store = SqliteStore::open(&path).await.unwrap();
        let conversation = Conversations::new(store.clone()).get("a");
        conversation.append(&[Item::user("1")]).await.unwrap();
        (folder, store, conversation)
    }

    /// Sets a pragma of the connection that writes.
    async fn set_pragma(store: &SqliteStore, sql: &'static str) {
        // A call runs in a transaction.
        let set = move |connection: &rusqlite::Connection| Ok(connection.execute_batch(sql)?);
        store.0.threads.write(None, set).await.unwrap();
    }

    #[tokio::test]
    async fn a_full_disk_loses_nothing_and_commits_work_once_there_is_room() {
        let (_folder, store, conversation) = new_store().await;
        // SQLite fails in the same way if the file may not grow.
        set_pragma(&store, "PRAGMA max_page_count = 12").await;

        let big = Item::user("x".repeat(100_000));
        let items = [Item::user("2"), big, Item::user("3")];
        let error = conversation.append(&items).await.unwrap_err();
        let error: &StoreError = error.downcast_ref().unwrap();
        assert_eq!(error.kind(), StoreErrorKind::Full);
        assert_eq!(
            error.to_string(),
            format!(
                "conversations in {:?}, conversation \"a\": database or disk is full; make room on \
                 the disk and try again; nothing was stored",
                store.path()
            )
        );
        assert_eq!(conversation.load(None).await.unwrap().len(), 1);
        set_pragma(&store, "PRAGMA max_page_count = 1000").await;
        conversation.append(&items).await.unwrap();
        assert_eq!(conversation.load(None).await.unwrap().len(), 4);
    }

    #[tokio::test]
    async fn commits_succeed_beside_one_that_finds_the_disk_full() {
        let (_folder, store, conversation) = new_store().await;
        set_pragma(&store, "PRAGMA max_page_count = 30").await;
        let conversations = conversation.conversations();
        // All are in the queue before the first is done.
        let appends = (0..20).map(|number| {
            let other = conversations.get(format!("{number}"));
            async move {
                let length = if number == 7 { 200_000 } else { 10 };
                other
                    .append(&[Item::user("x".repeat(length))])
                    .await
                    .is_ok()
            }
        });
        let stored = join_all(appends).await;
        let expected: Vec<bool> = (0..20).map(|number| number != 7).collect();
        assert_eq!(stored, expected);
        assert_eq!(conversations.list(None).await.unwrap().len(), 20);
    }
}
