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

/// The timeout for locks that other processes hold on the file. An append takes milliseconds; this
/// allows for many of them, and for a slow disk.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// Conversations in one SQLite file. Clones share the same connections.
///
/// A file may be open several times, in one process or in many, and any number of tasks may use each
/// handle. The file must be on a local disk: SQLite cannot share one over a network.
///
/// # Panics
/// The methods panic outside of a Tokio runtime.
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
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// # })?;
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// ```
#[derive(Clone)]
pub struct SqliteSessions(Arc<Inner>);

struct Inner {
    path: PathBuf,
    /// One connection: writers of this process queue for it in order, instead of racing for the
    /// file's lock.
    writer: SqlitePool,
    /// Readers never wait for a writer, nor writers for them.
    readers: SqlitePool,
}

/// The metadata of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SessionInfo {
    /// The name.
    pub name: String,
    /// The number of items.
    pub items: usize,
    /// The agent set by [`SqliteSession::set_agent`], if any.
    pub agent: Option<String>,
    /// The time when it was created.
    pub created: SystemTime,
    /// The time of the last change.
    pub changed: SystemTime,
}

impl SqliteSessions {
    /// Opens the file, and creates it if it does not exist or is empty. On Unix only its owner can
    /// read a file that is created here.
    ///
    /// # Errors
    /// Returns an error if the folder is missing, the file does not hold sessions or is of a later
    /// version, or it cannot be read and written. A file that is rejected is not changed.
    pub async fn open(path: impl AsRef<Path>) -> Result<Self, SessionError> {
        Self::open_with_timeout(path.as_ref(), BUSY_TIMEOUT).await
    }

    async fn open_with_timeout(path: &Path, timeout: Duration) -> Result<Self, SessionError> {
        let (writer, readers) = file::open(path, timeout).await?;
        Ok(Self(Arc::new(Inner {
            path: path.to_owned(),
            writer,
            readers,
        })))
    }

    /// Returns a handle to the session of this name, which may be any text. Nothing is stored before
    /// the first change.
    pub fn session(&self, name: impl Into<Arc<str>>) -> SqliteSession {
        SqliteSession::new(self.clone(), name.into())
    }

    /// Lists all sessions, the last changed first.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub async fn list(&self) -> Result<Vec<SessionInfo>, SessionError> {
        // Positions have no gaps, so the last one gives the number of items without counting.
        let rows = sqlx::query(
            "SELECT name, agent, created, changed, \
             (SELECT coalesce(max(position) + 1, 0) FROM item WHERE item.session = session.id) AS items \
             FROM session ORDER BY changed DESC, id DESC",
        )
        .fetch_all(&self.0.readers)
        .await;
        rows.and_then(|rows| rows.iter().map(session_info).collect())
            .map_err(|error| self.error(error))
    }

    /// Deletes a session and all of its items, which are overwritten in the file. Returns `false` if
    /// there is no such session.
    ///
    /// [`clear`](switchboard_core::Session::clear) empties a session and leaves it in the list.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub async fn delete(&self, name: &str) -> Result<bool, SessionError> {
        let deleted = sqlx::query("DELETE FROM session WHERE name = ?")
            .bind(name)
            .execute(&self.0.writer)
            .await
            .map_err(|error| self.error(error).in_session(name))?;
        Ok(deleted.rows_affected() > 0)
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Closes the file for all clones and sessions, and waits until that is done.
    ///
    /// Dropping all of them closes it too, but in the background. Afterwards everything is in the one
    /// file: the files beside it (`-wal`, `-shm`) are removed, unless others have it open.
    pub async fn close(&self) {
        // The last connection cleans up, and must be able to write for that.
        self.0.readers.close().await;
        self.0.writer.close().await;
    }

    fn readers(&self) -> &SqlitePool {
        &self.0.readers
    }

    fn writer(&self) -> &SqlitePool {
        &self.0.writer
    }

    /// Begins a write transaction. Dropping it rolls it back.
    async fn begin(&self) -> Result<Transaction<'static, Sqlite>, sqlx::Error> {
        // A deferred one could fail later because of another writer.
        self.0.writer.begin_with("BEGIN IMMEDIATE").await
    }

    fn error(&self, error: sqlx::Error) -> SessionError {
        SessionError::sqlite(error, &self.0.path)
    }
}

impl fmt::Debug for SqliteSessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("SqliteSessions").field(&self.0.path).finish()
    }
}

fn session_info(row: &SqliteRow) -> Result<SessionInfo, sqlx::Error> {
    Ok(SessionInfo {
        name: row.try_get("name")?,
        items: usize::try_from(row.try_get::<i64, _>("items")?).unwrap_or_default(),
        agent: row.try_get("agent")?,
        created: time(row.try_get("created")?),
        changed: time(row.try_get("changed")?),
    })
}

/// The current time in milliseconds since 1970, as it is stored.
fn now() -> i64 {
    let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
    i64::try_from(since_epoch.unwrap_or_default().as_millis()).unwrap_or(i64::MAX)
}

fn time(stored: i64) -> SystemTime {
    let since_epoch = Duration::from_millis(u64::try_from(stored).unwrap_or_default());
    UNIX_EPOCH.checked_add(since_epoch).unwrap_or(UNIX_EPOCH)
}

#[cfg(test)]
mod tests {
    use sqlx::{Connection, query};
    use switchboard_core::{Item, Session};

    use super::*;
    use crate::error::SessionErrorKind;

    #[tokio::test]
    async fn a_file_that_others_lock_is_busy_and_usable_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conversations.db");
        let timeout = Duration::from_millis(100);
        let sessions = SqliteSessions::open_with_timeout(&path, timeout)
            .await
            .unwrap();
        let session = sessions.session("a");
        let others = SqliteSessions::open(&path).await.unwrap();
        let lock = others.begin().await.unwrap();

        let error = session.append(&[Item::user("1")]).await.unwrap_err();
        let error: &SessionError = error.downcast_ref().unwrap();
        assert_eq!(error.kind(), SessionErrorKind::Busy);
        let error = session.set_agent("Billing").await.unwrap_err();
        assert_eq!(error.kind(), SessionErrorKind::Busy);
        let error = SqliteSessions::open_with_timeout(&path, timeout)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), SessionErrorKind::Busy);
        // Readers do not wait.
        assert_eq!(sessions.list().await.unwrap(), []);

        lock.rollback().await.unwrap();
        session.append(&[Item::user("2")]).await.unwrap();
        assert_eq!(session.load(None).await.unwrap().len(), 1);
    }

    #[tokio::test]
    async fn a_full_disk_loses_nothing_and_appends_work_once_there_is_room() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("conversations.db");
        let sessions = SqliteSessions::open(&path).await.unwrap();
        let session = sessions.session("a");
        session.append(&[Item::user("1")]).await.unwrap();
        // SQLite fails in the same way if the file may not grow.
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
