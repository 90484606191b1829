//! Opening the file: whose it is, and making it where there is none.

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

/// What marks a file as one of sessions: "SWBD".
const APPLICATION: i64 = 0x5357_4244;
/// The version of the tables below.
const VERSION: i64 = 1;

/// As SQLite keeps them, so that they can be compared.
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

/// How long callers queue for a connection. Each waits for the file's lock only when its turn has
/// come, so a long queue is no reason to give up.
const QUEUE: Duration = Duration::from_secs(10 * 60);

/// Opens the file at `path` for one writer and some readers.
pub(super) async fn open(
    path: &Path,
    patience: Duration,
) -> Result<(SqlitePool, SqlitePool), SessionError> {
    let file = absolute(path)?;
    let failed = |error| SessionError::sqlite(error, path);
    if found_or_made(path, &file)? == Found::Something {
        refuse_what_is_not_ours(path, &file).await?;
    }

    let options = SqliteConnectOptions::new()
        .filename(&file)
        .busy_timeout(patience)
        // A turn that was stored stays, also when the power goes. Turns are seconds apart.
        .synchronous(SqliteSynchronous::Full)
        // What is deleted is somebody's conversation: it is overwritten.
        .pragma("secure_delete", "ON")
        // The file may come from anywhere.
        .pragma("trusted_schema", "OFF")
        .disable_statement_logging();
    let writer = pool(1).max_lifetime(None).idle_timeout(None);
    // Where SQLite itself has ended a transaction (on a full disk, say), sqlx believes that it is
    // still going on, and the connection can begin no other.
    let writer = writer.before_acquire(|connection, _| {
        let is_usable = !connection.is_in_transaction();
        Box::pin(async move { Ok(is_usable) })
    });
    let writer = writer.connect_with(options.clone()).await.map_err(failed)?;
    let mut connection = writer.acquire().await.map_err(failed)?;
    ensure_tables(path, &mut connection).await?;
    ensure_wal(path, &mut connection, patience).await?;

    let readers = pool(READERS).connect_lazy_with(options.pragma("query_only", "ON"));
    Ok((writer, readers))
}

fn pool(connections: u32) -> SqlitePoolOptions {
    SqlitePoolOptions::new()
        .max_connections(connections)
        .acquire_timeout(QUEUE)
        // A thread of this process does not hang up.
        .test_before_acquire(false)
}

/// The path as SQLite takes it: one that begins with `file:` would be an address to it.
fn absolute(path: &Path) -> Result<PathBuf, SessionError> {
    let refused = |why| Err(SessionError::new(SessionErrorKind::Path, path, why));
    if path == Path::new(":memory:") {
        return refused("this names no file; for a session in memory use `MemorySession`");
    }
    let file = std::path::absolute(path).map_err(|error| SessionError::io(error, path))?;
    match file.to_str() {
        Some(text) if !text.contains('\0') => Ok(file),
        _ => refused("the path must be UTF-8 without NUL for SQLite; choose another"),
    }
}

#[derive(PartialEq)]
enum Found {
    /// A file with nothing in it, made just now or before.
    Empty,
    Something,
}

/// Looks for the file, and makes an empty one where there is none.
fn found_or_made(path: &Path, file: &Path) -> Result<Found, SessionError> {
    // Closing a file that this process has open through SQLite would drop SQLite's locks on it
    // (POSIX locks belong to the process). So nobody here may open the new file before it is closed
    // again, and a file that is there is not opened at all.
    static MAKING: Mutex<()> = Mutex::new(());
    let _making = MAKING.lock().unwrap_or_else(PoisonError::into_inner);

    let refused = |why| Err(SessionError::new(SessionErrorKind::Path, path, why));
    match fs::metadata(file) {
        Ok(found) if found.is_dir() => refused("this is a folder; name a file in it"),
        Ok(found) if !found.is_file() => refused("this is no regular file; name another"),
        Ok(found) if found.len() > 0 => Ok(Found::Something),
        Ok(_) => Ok(Found::Empty),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let folder = file.parent().is_some_and(Path::is_dir);
            if !folder {
                return refused("its folder does not exist; create it first");
            }
            match for_the_owner_alone().open(file) {
                Ok(_) => Ok(Found::Empty),
                // Another process was faster.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(Found::Empty),
                Err(error) => Err(SessionError::io(error, path)),
            }
        }
        Err(error) => Err(SessionError::io(error, path)),
    }
}

/// SQLite gives the files beside it the same rights.
fn for_the_owner_alone() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Reads the head of the file and nothing else: no lock is taken, no journal played back, nothing
/// made beside it.
async fn refuse_what_is_not_ours(path: &Path, file: &Path) -> Result<(), SessionError> {
    let failed = |error| SessionError::sqlite(error, path);
    let options = SqliteConnectOptions::new()
        .filename(file)
        .read_only(true)
        .immutable(true)
        .disable_statement_logging();
    let mut connection = options.connect().await.map_err(failed)?;
    let head = Head::read(&mut connection).await;
    connection.close().await.map_err(failed)?;
    match head {
        Ok(head) => head.check(path),
        // Without a lock, a file that is being written looks damaged (CORRUPT). Whether it is shows
        // when it is opened.
        Err(sqlx::Error::Database(error)) if result_code(&*error) == 11 => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

/// What a file says of itself.
#[derive(Clone, Copy, PartialEq)]
struct Head {
    application: i64,
    version: i64,
}

impl Head {
    const NONE: Self = Self {
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
            let message = format!("the file is of version {version}, this program knows {VERSION}");
            return Err(SessionError::new(
                SessionErrorKind::NewerFile,
                path,
                message,
            ));
        }
        Ok(())
    }
}

/// Checks the tables, and makes them where there are none. In a rollback journal, all in one
/// transaction: so the file is empty or its head says whose it is, also after a crash.
async fn ensure_tables(path: &Path, connection: &mut SqliteConnection) -> Result<(), SessionError> {
    let failed = |error| SessionError::sqlite(error, path);
    let begun = connection.begin_with("BEGIN IMMEDIATE").await;
    let mut transaction = begun.map_err(failed)?;
    let head = Head::read(&mut transaction).await.map_err(failed)?;
    let tables = query_scalar("SELECT count(*) FROM sqlite_schema");
    let tables: i64 = tables.fetch_one(&mut *transaction).await.map_err(failed)?;
    if head != Head::NONE || tables != 0 {
        head.check(path)?;
        check_tables(path, &mut transaction).await?;
        // SQLite opens a file that it may only read as well, and says so at the first change.
        let change = query("UPDATE session SET changed = changed WHERE FALSE");
        let changed = change.execute(&mut *transaction).await;
        return changed.map(drop).map_err(failed);
    }
    for (_, table) in TABLES {
        let made = query(table).execute(&mut *transaction).await;
        made.map_err(failed)?;
    }
    // A pragma takes no parameters.
    const { assert!(APPLICATION == 1_398_227_524 && VERSION == 1) };
    for mark in [
        "PRAGMA application_id = 1398227524",
        "PRAGMA user_version = 1",
    ] {
        let marked = query(mark).execute(&mut *transaction).await;
        marked.map_err(failed)?;
    }
    transaction.commit().await.map_err(failed)
}

/// Others may have put tables and indexes of their own beside ours (tools that replicate do).
async fn check_tables(path: &Path, connection: &mut SqliteConnection) -> Result<(), SessionError> {
    for (name, table) in TABLES {
        let found = query_scalar("SELECT count(*) FROM sqlite_schema WHERE name = ? AND sql = ?");
        let found: Result<i64, _> = found
            .bind(name)
            .bind(table)
            .fetch_one(&mut *connection)
            .await;
        if found.map_err(|error| SessionError::sqlite(error, path))? != 1 {
            let message = format!("its table \"{name}\" is missing or was changed");
            return Err(SessionError::new(SessionErrorKind::Damaged, path, message));
        }
    }
    Ok(())
}

/// With a write-ahead log, readers and the writer do not wait for each other. The file remembers it.
async fn ensure_wal(
    path: &Path,
    connection: &mut SqliteConnection,
    patience: Duration,
) -> Result<(), SessionError> {
    let deadline = Instant::now() + patience;
    loop {
        let mode = query_scalar("PRAGMA journal_mode = WAL");
        let mode: Result<String, _> = mode.fetch_one(&mut *connection).await;
        match mode.map_err(|error| SessionError::sqlite(error, path)) {
            Ok(mode) if mode == "wal" => return Ok(()),
            Ok(_) => {
                let message = "this file system has no shared memory for SQLite; use a local disk";
                return Err(SessionError::new(SessionErrorKind::Storage, path, message));
            }
            // SQLite does not wait here by itself: another process is just as new to the file.
            Err(error) if error.kind() == SessionErrorKind::Busy && Instant::now() < deadline => {
                sleep(Duration::from_millis(10)).await;
            }
            Err(error) => return Err(error),
        }
    }
}
