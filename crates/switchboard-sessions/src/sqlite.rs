//! Conversations in one SQLite file.

mod file;
mod session;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sqlx::sqlite::{Sqlite, SqlitePool, SqliteRow};
use sqlx::{Row, Transaction};

pub use session::SqliteSession;

use crate::error::SessionError;

/// How long is waited for other processes that write to the file. An append takes milliseconds;
/// this is for many of them, and for a slow disk.
const PATIENCE: Duration = Duration::from_secs(30);

/// Conversations in one SQLite file. Clones are the same sessions.
///
/// Several of these, in one process or in many, may be open on one file, and any number of tasks may
/// use each. The file must be on a local disk: SQLite cannot share one over a network.
///
/// It needs a Tokio runtime and panics outside of one.
///
/// ```
/// use switchboard_core::{Item, Session};
/// use switchboard_sessions::SqliteSessions;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("conversations.db");
/// let sessions = SqliteSessions::open(&path).await?;
/// sessions.session("a").append(&[Item::user("Hi")]).await?;
/// sessions.close().await;
///
/// let sessions = SqliteSessions::open(&path).await?;
/// let items = sessions.session("a").load(None).await?;
/// assert_eq!(items.iter().collect::<Vec<_>>(), [&Item::user("Hi")]);
/// assert!(sessions.delete("a").await?);
/// assert_eq!(sessions.list().await?, []);
/// # sessions.close().await;
/// # Ok::<(), switchboard_core::BoxError>(())
/// # })?;
/// # Ok::<(), switchboard_core::BoxError>(())
/// ```
#[derive(Clone)]
pub struct SqliteSessions(Arc<Inner>);

struct Inner {
    path: PathBuf,
    /// One connection: writers of this process queue for it in their order, where SQLite would
    /// let them race for the file's lock.
    writer: SqlitePool,
    /// These never wait for a writer, nor writers for them.
    readers: SqlitePool,
}

/// What is known of a session without loading it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// Its name.
    pub name: String,
    /// How many items it holds.
    pub items: usize,
    /// The agent that had the conversation last, where one was noted.
    pub agent: Option<String>,
    /// When it began.
    pub created: SystemTime,
    /// When it was last changed.
    pub changed: SystemTime,
}

impl SqliteSessions {
    /// Opens the file, and makes it where there is none or an empty one. On Unix only its owner may
    /// read a file that is made here.
    ///
    /// # Errors
    /// Where the folder is missing, the file is none of sessions or of a later version, or it cannot
    /// be read and written. A file that is refused is left as it is.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, SessionError> {
        Self::open_within(path.as_ref(), PATIENCE).await
    }

    async fn open_within(path: &Path, patience: Duration) -> Result<Self, SessionError> {
        let (writer, readers) = file::open(path, patience).await?;
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            writer,
            readers,
        })))
    }

    /// The session of this name, which may be any text. Nothing is stored before something is put
    /// into it.
    pub fn session(&self, name: impl Into<Arc<str>>) -> SqliteSession {
        SqliteSession::new(self.clone(), name.into())
    }

    /// All sessions, the one that was changed last first.
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn list(&self) -> Result<Vec<SessionInfo>, SessionError> {
        // Positions have no gaps, so the last one tells how many there are without counting.
        let rows = sqlx::query(
            "SELECT name, agent, created, changed, \
             (SELECT coalesce(max(position) + 1, 0) FROM item WHERE item.session = session.id) AS items \
             FROM session ORDER BY changed DESC, id DESC",
        );
        let rows = rows.fetch_all(&self.0.readers).await;
        let infos = rows.and_then(|rows| rows.iter().map(info).collect());
        infos.map_err(|error| self.failed(error))
    }

    /// Takes a session out of the file with all it holds, and tells whether there was one. What it
    /// held is overwritten in the file.
    ///
    /// [`clear`](switchboard_core::Session::clear) empties a session and leaves it in the list.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub async fn delete(&self, name: &str) -> Result<bool, SessionError> {
        let gone = sqlx::query("DELETE FROM session WHERE name = ?").bind(name);
        match gone.execute(&self.0.writer).await {
            Ok(gone) => Ok(gone.rows_affected() > 0),
            Err(error) => Err(self.failed(error).in_session(name)),
        }
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Closes the file, and waits until that is done; for all clones and sessions of these.
    ///
    /// Dropping them closes it as well, a moment later. Afterwards all is in the one file: what
    /// lay beside it (`-wal`, `-shm`) is gone, unless others have it open.
    pub async fn close(&self) {
        // The last connection to go tidies up, and needs the right to write for that.
        self.0.readers.close().await;
        self.0.writer.close().await;
    }

    fn readers(&self) -> &SqlitePool {
        &self.0.readers
    }

    fn writer(&self) -> &SqlitePool {
        &self.0.writer
    }

    /// A transaction that no other writer can get into. Dropped, it has not happened.
    async fn begin(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        // Not a deferred one: that would find out only half-way that another writer was faster.
        self.0.writer.begin_with("BEGIN IMMEDIATE").await
    }

    fn failed(&self, error: sqlx::Error) -> SessionError {
        SessionError::sqlite(error, &self.0.path)
    }
}

impl fmt::Debug for SqliteSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteSessions").field(&self.0.path).finish()
    }
}

fn info(row: &SqliteRow) -> Result<SessionInfo, sqlx::Error> {
    Ok(SessionInfo {
        name: row.try_get("name")?,
        items: usize::try_from(row.try_get::<i64, _>("items")?).unwrap_or_default(),
        agent: row.try_get("agent")?,
        created: time(row.try_get("created")?),
        changed: time(row.try_get("changed")?),
    })
}

/// Times are stored in milliseconds since 1970.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    let since = since.unwrap_or_default().as_millis();
    i64::try_from(since).unwrap_or(i64::MAX)
}

fn time(stored: i64) -> SystemTime {
    let since = Duration::from_millis(u64::try_from(stored).unwrap_or_default());
    UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection, query};
    use switchboard_core::{Item, Session};

    use super::*;
    use crate::error::SessionErrorKind;

    #[tokio::test]
    async fn a_file_that_others_keep_locked_is_busy_and_usable_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conversations.db");
        let patience = Duration::from_millis(100);
        let sessions = SqliteSessions::open_within(&path, patience).await.unwrap();
        let session = sessions.session("a");
        let others = SqliteSessions::open(&path).await.unwrap();
        let lock = others.begin().await.unwrap();

        let error = session.append(&[Item::user("1")]).await.unwrap_err();
        let error: &SessionError = error.downcast_ref().unwrap();
        assert_eq!(error.kind(), SessionErrorKind::Busy);
        let error = session.set_agent("Billing").await.unwrap_err();
        assert_eq!(error.kind(), SessionErrorKind::Busy);
        let error = SqliteSessions::open_within(&path, patience)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), SessionErrorKind::Busy);
        // Who reads does not wait.
        assert_eq!(sessions.list().await.unwrap(), []);

        lock.rollback().await.unwrap();
        session.append(&[Item::user("2")]).await.unwrap();
        assert_eq!(session.load(None).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_full_disk_loses_nothing_and_once_there_is_room_it_goes_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conversations.db");
        let sessions = SqliteSessions::open(&path).await.unwrap();
        let session = sessions.session("a");
        session.append(&[Item::user("1")]).await.unwrap();
        // SQLite fails in the same way where the disk is full and where the file may not grow.
        let mut connection = sessions.writer().acquire().await.unwrap();
        let limited = query("PRAGMA max_page_count = 10").execute(&mut *connection);
        limited.await.unwrap();
        connection.ping().await.unwrap();
        drop(connection);

        let big = Item::user("x".repeat(100_000));
        let items = [Item::user("2"), big, Item::user("3")];
        let error = session.append(&items).await.unwrap_err();
        let error: &SessionError = error.downcast_ref().unwrap();
        assert_eq!(error.kind(), SessionErrorKind::Full);
        assert_eq!(
            error.to_string(),
            format!(
                "sessions in {path:?}, session \"a\": database or disk is full; make room on the \
                 disk and try again; nothing was stored"
            )
        );
        assert_eq!(session.load(None).await.unwrap().len(), 1);
        // The connection is a new one, without the limit.
        session.append(&items).await.unwrap();
        assert_eq!(session.load(None).await.unwrap().len(), 4);
    }
}
