//! Exchange with the session files of the OpenAI Agents SDK for Python (`SQLiteSession`).
//!
//! Items are copied byte for byte, with their times (of which such a file has whole seconds). A session of
//! Python has neither agents nor views: a conversation that was imported begins with the agent of its
//! runner, and an export holds the record.
//!
//! ```
//! use switchboard_core::conversation::Conversations;
//! use switchboard_core::{Item, Session};
//! use switchboard_sessions::python;
//!
//! # tokio::runtime::Runtime::new()?.block_on(async {
//! # let folder = tempfile::tempdir()?;
//! # let path = folder.path().join("sessions.db");
//! let conversations = Conversations::in_memory();
//! let conversation = conversations.get("user_123");
//! conversation.append(&[Item::user("Hi"), Item::assistant("Hello!")]).await?;
//! // Read in Python with SQLiteSession("user_123", "sessions.db").
//! assert_eq!(python::export(&conversation, &path).await?, 2);
//!
//! let others = Conversations::in_memory();
//! assert_eq!(python::import(&path, &others).await?, ["user_123"]);
//! assert_eq!(others.get("user_123").load(None).await?.len(), 2);
//! # Ok::<(), switchboard_core::callback::BoxError>(())
//! # })?;
//! # Ok::<(), switchboard_core::callback::BoxError>(())
//! ```

use std::path::Path;
use std::thread;
use std::time::Duration;

use futures_channel::oneshot;
use rusqlite::{Connection, OpenFlags, TransactionBehavior, params};
use serde::Serialize;
use serde_json::value::RawValue;
use switchboard_core::Item;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Conversation, Conversations, Entry, EntryContent, Exported, to_millis,
};

use crate::error::{StoreError, StoreErrorKind};
use crate::sqlite::file::{absolute, find_or_create};

/// The timeout for locks that other processes hold on the file.
const BUSY_TIMEOUT: Duration = Duration::from_secs(30);

/// The tables as Python creates them.
const TABLES: &str = "
CREATE TABLE IF NOT EXISTS agent_sessions (
    session_id TEXT PRIMARY KEY,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    updated_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP
);
CREATE TABLE IF NOT EXISTS agent_messages (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    session_id TEXT NOT NULL,
    message_data TEXT NOT NULL,
    created_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP,
    FOREIGN KEY (session_id) REFERENCES agent_sessions (session_id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS idx_agent_messages_session_id ON agent_messages (session_id, id);
";

/// Imports all sessions of a file that Python's `SQLiteSession` has written, each as a new conversation
/// named by its session ID. Returns the names, in order. The file is not changed; sessions without items
/// are skipped.
///
/// # Errors
/// Returns an error, and imports nothing, if the file has no such sessions, if an item cannot be read, or
/// if there is a conversation of one of the names. Also the error of the store, which leaves the
/// conversations before it imported.
pub async fn import(
    path: impl AsRef<Path>,
    conversations: &Conversations,
) -> Result<Vec<String>, BoxError> {
    let path = path.as_ref();
    let file = path.to_owned();
    let sessions = in_thread(path, move || read_sessions(&file)).await?;
    for (name, _) in &sessions {
        if conversations.get(name.as_str()).head().await?.is_some() {
            let message = "the store has a conversation of this name";
            let error = StoreError::new(StoreErrorKind::Exists, path, message);
            return Err(error.in_conversation(name).into());
        }
    }
    let mut names = Vec::with_capacity(sessions.len());
    for (name, exported) in sessions {
        conversations.get(name.as_str()).import(&exported).await?;
        names.push(name);
    }
    Ok(names)
}

/// Exports the record of a conversation as a session for Python's `SQLiteSession`, whose ID is the name of
/// the conversation. The file is created if there is none; other sessions in it are kept. Returns the
/// number of items. A conversation without items is not written.
///
/// # Errors
/// Returns an error, and changes nothing, if the file has a session of that ID, or cannot be used.
pub async fn export(
    conversation: &Conversation,
    path: impl AsRef<Path>,
) -> Result<usize, BoxError> {
    let is_item = |entry: &Entry| matches!(entry.content, EntryContent::Item(_));
    let mut entries = conversation.record(None).await?;
    entries.retain(is_item);
    if entries.is_empty() {
        return Ok(0);
    }
    let path = path.as_ref();
    let (file, name) = (path.to_owned(), conversation.name().to_owned());
    let write = move || {
        write_session(&file, &name, &entries).map_err(|error| error.in_conversation(&name))?;
        Ok(entries.len())
    };
    Ok(in_thread(path, write).await?)
}

fn read_sessions(path: &Path) -> Result<Vec<(String, Exported)>, StoreError> {
    let failed = |error| StoreError::sqlite(error, path);
    if !path.exists() {
        let message = "there is no such file";
        return Err(StoreError::new(StoreErrorKind::Address, path, message));
    }
    let mut connection = connect(path).map_err(failed)?;
    connection
        .pragma_update(None, "query_only", true)
        .map_err(failed)?;
    let transaction = connection.transaction().map_err(failed)?;
    if !has_tables(&transaction).map_err(failed)? {
        let message = "this is not a session file of Python's OpenAI Agents SDK (it has no tables \
                       \"agent_sessions\" and \"agent_messages\")";
        return Err(StoreError::new(StoreErrorKind::Foreign, path, message));
    }
    let names = session_names(&transaction).map_err(failed)?;
    let sessions = names.into_iter().map(|name| {
        let session = read_session(path, &transaction, &name)
            .map_err(|error| error.in_conversation(&name))?;
        Ok((name, session))
    });
    sessions.collect()
}

fn has_tables(connection: &Connection) -> Result<bool, rusqlite::Error> {
    let sql = "SELECT count(*) FROM sqlite_schema \
               WHERE type = 'table' AND name IN ('agent_sessions', 'agent_messages')";
    connection.query_row(sql, [], |row| Ok(row.get::<_, i64>(0)? == 2))
}

fn session_names(connection: &Connection) -> Result<Vec<String>, rusqlite::Error> {
    let sql = "SELECT session_id FROM agent_sessions WHERE EXISTS \
               (SELECT 1 FROM agent_messages m WHERE m.session_id = agent_sessions.session_id) \
               ORDER BY created_at, session_id";
    let mut names = connection.prepare(sql)?;
    names.query_map([], |row| row.get(0))?.collect()
}

/// A conversation in the form of [`Exported`].
#[derive(Serialize)]
struct SessionFile<'a> {
    switchboard_conversation: u32,
    id: &'a str,
    entries: Vec<SessionEntry>,
}

#[derive(Serialize)]
struct SessionEntry {
    position: u64,
    kind: &'static str,
    run: &'static str,
    turn: u32,
    commit: u32,
    time: i64,
    content: Box<RawValue>,
}

fn read_session(path: &Path, connection: &Connection, name: &str) -> Result<Exported, StoreError> {
    let failed = |error| StoreError::sqlite(error, path);
    let sql = "SELECT message_data, coalesce(unixepoch(created_at), unixepoch()) * 1000 \
               FROM agent_messages WHERE session_id = ? ORDER BY id";
    let mut statement = connection.prepare_cached(sql).map_err(failed)?;
    let mut rows = statement.query([name]).map_err(failed)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next().map_err(failed)? {
        let position = entries.len() as u64;
        let unreadable = |error: BoxError| {
            let message = "this is not an item (an item is one JSON object)";
            StoreError::new(StoreErrorKind::Entry, path, message)
                .at_position(position)
                .caused_by(error)
        };
        let json: String = row.get(0).map_err(|error| unreadable(error.into()))?;
        let item = Item::from_json(json).map_err(|error| unreadable(error.into()))?;
        let content = RawValue::from_string(item.as_json().to_owned());
        entries.push(SessionEntry {
            position,
            kind: "item",
            run: "",
            turn: 0,
            commit: 0,
            time: row.get(1).map_err(failed)?,
            content: content.map_err(|error| unreadable(error.into()))?,
        });
    }
    let file = SessionFile {
        switchboard_conversation: 1,
        id: name,
        entries,
    };
    let json = serde_json::to_string(&file);
    let exported = json.and_then(|json| serde_json::from_str(&json));
    exported.map_err(|error| {
        let message = "the session cannot be imported";
        StoreError::new(StoreErrorKind::Storage, path, message).caused_by(error)
    })
}

fn write_session(path: &Path, name: &str, entries: &[Entry]) -> Result<(), StoreError> {
    let failed = |error| StoreError::sqlite(error, path);
    find_or_create(path, &absolute(path)?)?;
    let mut connection = connect(path).map_err(failed)?;
    let transaction = connection
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .map_err(failed)?;
    let application: i64 = transaction
        .query_row("PRAGMA application_id", [], |row| row.get(0))
        .map_err(failed)?;
    if application != 0 {
        let message = "this is a file of another program";
        return Err(StoreError::new(StoreErrorKind::Foreign, path, message));
    }
    transaction.execute_batch(TABLES).map_err(failed)?;
    let sql = "SELECT EXISTS (SELECT 1 FROM agent_sessions WHERE session_id = ?)";
    let exists = transaction.query_row(sql, [name], |row| row.get(0));
    if exists.map_err(failed)? {
        let message = "the file has a session of this name";
        return Err(StoreError::new(StoreErrorKind::Exists, path, message));
    }
    insert_session(&transaction, name, entries).map_err(failed)?;
    transaction.commit().map_err(failed)
}

fn insert_session(
    connection: &Connection,
    name: &str,
    entries: &[Entry],
) -> Result<(), rusqlite::Error> {
    let seconds = |entry: &Entry| to_millis(entry.time) / 1_000;
    let created = entries.first().map(seconds);
    let changed = entries.last().map(seconds);
    connection.execute(
        "INSERT INTO agent_sessions (session_id, created_at, updated_at) \
         VALUES (?, datetime(?, 'unixepoch'), datetime(?, 'unixepoch'))",
        params![name, created, changed],
    )?;
    let mut insert = connection.prepare(
        "INSERT INTO agent_messages (session_id, message_data, created_at) \
         VALUES (?, ?, datetime(?, 'unixepoch'))",
    )?;
    for entry in entries {
        insert.execute(params![name, entry.content.as_json(), seconds(entry)])?;
    }
    Ok(())
}

fn connect(path: &Path) -> Result<Connection, rusqlite::Error> {
    let file = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(file, flags)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // The file may be from an untrusted source.
    connection.pragma_update(None, "trusted_schema", false)?;
    Ok(connection)
}

/// Runs code that waits for the disk in a thread of its own.
async fn in_thread<T: Send + 'static>(
    path: &Path,
    run: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let (sender, receiver) = oneshot::channel();
    let thread = thread::Builder::new().name("switchboard-sqlite-file".to_owned());
    let started = thread.spawn(move || {
        // The caller may be gone.
        let _ = sender.send(run());
    });
    let failed = |message: &str| StoreError::new(StoreErrorKind::Storage, path, message);
    started.map_err(|error| failed("no thread could be started").caused_by(error))?;
    let answer = receiver.await;
    answer.map_err(|_| failed("the thread of the file has ended"))?
}
