//! Opens and creates the file.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::sqlite::SqliteSynchronous;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqlitePool, SqlitePoolOptions};
use sqlx::{ConnectOptions, Connection, query, query_scalar};
use tokio::time::{Instant, sleep};

use crate::error::{SessionError, SessionErrorKind, result_code};

/// The application ID of files with sessions: "SWBD".
const APPLICATION: i64 = 0x5357_4244;
/// The version of the tables below.
const VERSION: i64 = 1;

/// The tables, as SQLite stores their definitions.
const TABLES: [(&str, &str); 2] = [
    (
        "session",
        "CREATE TABLE session (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    agent TEXT,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL
) STRICT",
    ),
    (
        "item",
        "CREATE TABLE item (
    session INTEGER NOT NULL REFERENCES session (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    json TEXT NOT NULL,
    UNIQUE (session, position)
) STRICT",
    ),
];

const READERS: u32 = 4;

/// The timeout for callers that queue for a connection. Each waits for the file's lock only when it
/// has the connection, so a long queue is not an error.
const QUEUE_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Opens the file at `path`. Returns the pools of the writer and of the readers.
pub(super) async fn open(
    path: &Path,
    timeout: Duration,
) -> Result<(SqlitePool, SqlitePool), SessionError> {
    let file = absolute(path)?;
    let failed = |error| SessionError::sqlite(error, path);
    if find_or_create(path, &file)? == FileState::NonEmpty {
        check_existing(path, &file).await?;
    }

    let options = SqliteConnectOptions::new()
        .filename(&file)
        .busy_timeout(timeout)
        // A stored turn survives a power failure. Turns are seconds apart, so this is cheap enough.
        .synchronous(SqliteSynchronous::Full)
        // Deleted conversations are overwritten.
        .pragma("secure_delete", "ON")
        // The file may be from an untrusted source.
        .pragma("trusted_schema", "OFF")
        .disable_statement_logging();
    let writer = pool(1)
        .max_lifetime(None)
        .idle_timeout(None)
        // If SQLite itself rolled back a transaction (on a full disk, for example), sqlx believes that it
        // is still open, and the connection cannot begin another.
        .before_acquire(|connection, _| {
            let is_usable = !connection.is_in_transaction();
            Box::pin(async move { Ok(is_usable) })
        })
        .connect_with(options.clone())
        .await
        .map_err(failed)?;
    let mut connection = writer.acquire().await.map_err(failed)?;
    ensure_tables(path, &mut connection).await?;
    ensure_wal(path, &mut connection, timeout).await?;

    let readers = pool(READERS).connect_lazy_with(options.pragma("query_only", "ON"));
    Ok((writer, readers))
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(QUEUE_TIMEOUT)
        // The connection is a thread of this process and cannot be lost.
        .test_before_acquire(false)
}

/// Returns the absolute path. SQLite would read one that begins with `file:` as a URI.
fn absolute(path: &Path) -> Result<PathBuf, SessionError> {
    let refused = |why| Err(SessionError::new(SessionErrorKind::Path, path, why));
    if path == Path::new(":memory:") {
        return refused("this is not a file; for a session in memory use `MemorySession`");
    }
    let file = std::path::absolute(path).map_err(|error| SessionError::io(error, path))?;
    match file.to_str() {
        Some(text) if !text.contains('\0') => Ok(file),
        _ => refused("the path must be UTF-8 without NUL for SQLite; choose another"),
    }
}

#[derive(PartialEq)]
enum FileState {
    Empty,
    NonEmpty,
}

/// Looks for the file, and creates an empty one if there is none.
fn find_or_create(path: &Path, file: &Path) -> Result<FileState, SessionError> {
    // Closing a file that this process has open through SQLite would drop SQLite's locks on it
    // (POSIX locks belong to the process). So the new file must be closed before anything else in
    // this process opens it, and an existing file is not opened here at all.
    static CREATING: Mutex<()> = Mutex::new(());
    let _creating = CREATING.lock().unwrap_or_else(PoisonError::into_inner);

    let refused = |why| Err(SessionError::new(SessionErrorKind::Path, path, why));
    match fs::metadata(file) {
        Ok(metadata) if metadata.is_dir() => refused("this is a folder; name a file in it"),
        Ok(metadata) if !metadata.is_file() => {
            refused("this is not a regular file; choose another path")
        }
        Ok(metadata) if metadata.len() > 0 => Ok(FileState::NonEmpty),
        Ok(_) => Ok(FileState::Empty),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            if !file.parent().is_some_and(Path::is_dir) {
                return refused("its folder does not exist; create it first");
            }
            match create_for_owner().open(file) {
                Ok(_) => Ok(FileState::Empty),
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(FileState::Empty),
                Err(error) => Err(SessionError::io(error, path)),
            }
        }
        Err(error) => Err(SessionError::io(error, path)),
    }
}

/// Options to create a file that only its owner can read. SQLite gives the files beside it the same
/// permissions.
fn create_for_owner() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Checks the header of an existing file without changing anything: it takes no lock, replays no
/// journal, and creates no file beside it.
async fn check_existing(path: &Path, file: &Path) -> Result<(), SessionError> {
    let failed = |error| SessionError::sqlite(error, path);
    let options = SqliteConnectOptions::new()
        .filename(file)
        .read_only(true)
        .immutable(true)
        .disable_statement_logging();
    let mut connection = options.connect().await.map_err(failed)?;
    let header = FileHeader::read(&mut connection).await;
    connection.close().await.map_err(failed)?;
    match header {
        Ok(header) => header.check(path),
        // Without a lock, a file that is being written looks corrupt (CORRUPT). Opening it finds out.
        Err(sqlx::Error::Database(error)) if result_code(&*error) == 11 => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// The application ID and version in the header of a file.
#[derive(Clone, Copy, PartialEq)]
struct FileHeader {
    application: i64,
    version: i64,
}

impl FileHeader {
    /// The header of a new file.
    const NEW: Self = Self {
        application: 0,
        version: 0,
    };

    async fn read(connection: &mut SqliteConnection) -> Result<Self, sqlx::Error> {
        let application = query_scalar("PRAGMA application_id");
        let version = query_scalar("PRAGMA user_version");
        Ok(Self {
            application: application.fetch_one(&mut *connection).await?,
            version: version.fetch_one(connection).await?,
        })
    }

    fn check(self, path: &Path) -> Result<(), SessionError> {
        let Self {
            application,
            version,
        } = self;
        if application != APPLICATION || version < VERSION {
            let message = "this is a file of another program";
            return Err(SessionError::new(
                SessionErrorKind::ForeignFile,
                path,
                message,
            ));
        }
        if version > VERSION {
            let message =
                format!("the file is of version {version}, this program supports {VERSION}");
            return Err(SessionError::new(
                SessionErrorKind::NewerFile,
                path,
                message,
            ));
        }
        Ok(())
    }
}

/// Checks the tables, and creates them in a new file. It uses one transaction with a rollback journal,
/// so that even after a crash the file is empty or has a header.
async fn ensure_tables(path: &Path, connection: &mut SqliteConnection) -> Result<(), SessionError> {
    let failed = |error| SessionError::sqlite(error, path);
    let mut transaction = connection
        .begin_with("BEGIN IMMEDIATE")
        .await
        .map_err(failed)?;
    let header = FileHeader::read(&mut transaction).await.map_err(failed)?;
    let tables: i64 = query_scalar("SELECT count(*) FROM sqlite_schema")
        .fetch_one(&mut *transaction)
        .await
        .map_err(failed)?;
    if header != FileHeader::NEW || tables != 0 {
        header.check(path)?;
        check_tables(path, &mut transaction).await?;
        // SQLite opens read-only files too, and reports that only at the first change.
        return query("UPDATE session SET changed = changed WHERE FALSE")
            .execute(&mut *transaction)
            .await
            .map(drop)
            .map_err(failed);
    }
    for (_, table) in TABLES {
        query(table)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
    }
    // A pragma takes no parameters.
    const { assert!(APPLICATION == 1_398_227_524 && VERSION == 1) };
    for pragma in [
        "PRAGMA application_id = 1398227524",
        "PRAGMA user_version = 1",
    ] {
        query(pragma)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Checks that the tables exist and are unchanged. Other tables and indexes are allowed: replication
/// tools add some.
async fn check_tables(path: &Path, connection: &mut SqliteConnection) -> Result<(), SessionError> {
    for (name, table) in TABLES {
        let count: i64 =
            query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = ? AND sql = ?")
                .bind(name)
                .bind(table)
                .fetch_one(&mut *connection)
                .await
                .map_err(|error| SessionError::sqlite(error, path))?;
        if count != 1 {
            let message = format!("its table \"{name}\" is missing or was changed");
            return Err(SessionError::new(SessionErrorKind::Damaged, path, message));
        }
    }
    Ok(())
}

/// Enables the write-ahead log, which lets readers and the writer work concurrently. The setting is
/// stored in the file.
async fn ensure_wal(
    path: &Path,
    connection: &mut SqliteConnection,
    timeout: Duration,
) -> Result<(), SessionError> {
    let deadline = Instant::now() + timeout;
    loop {
        let mode: Result<String, _> = query_scalar("PRAGMA journal_mode = WAL")
            .fetch_one(&mut *connection)
            .await;
        match mode.map_err(|error| SessionError::sqlite(error, path)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) => {
                let message = "this file system has no shared memory for SQLite; use a local disk";
                return Err(SessionError::new(SessionErrorKind::Storage, path, message));
            }
            // SQLite's busy timeout does not apply here: another process may be doing the same.
            Err(error) if error.kind() == SessionErrorKind::Busy && Instant::now() < deadline => {
                sleep(Duration::from_millis(10)).await;
            }
            Err(error) => return Err(error),
        }
    }
}
