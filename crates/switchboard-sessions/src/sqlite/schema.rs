//! The tables of the file, their version, and the migration from the version before.

use std::path::Path;

use rusqlite::functions::FunctionFlags;
use rusqlite::{Connection, params};
use switchboard_core::conversation::{EntryContent, Revision, now, to_millis};

use super::statements::searched_text;
use crate::error::{StoreError, StoreErrorKind};

/// The application ID of files with conversations: "SWBD".
const APPLICATION: i64 = 0x5357_4244;
/// The version of [`TABLES`].
const VERSION: i64 = 2;

/// The tables, as SQLite stores their definitions.
///
/// `entry` has row IDs: without them, SQLite moves all but the start of each larger row to pages of
/// their own, and a commit took three times the CPU time and twice the space.
const TABLES: [(&str, &str); 3] = [
    (
        "conversation",
        "CREATE TABLE conversation (
    id INTEGER PRIMARY KEY,
    name TEXT NOT NULL UNIQUE,
    epoch INTEGER NOT NULL,
    first INTEGER NOT NULL,
    next INTEGER NOT NULL,
    state INTEGER,
    agent TEXT,
    details TEXT,
    created INTEGER NOT NULL,
    changed INTEGER NOT NULL,
    expires INTEGER
) STRICT",
    ),
    (
        "entry",
        "CREATE TABLE entry (
    conversation INTEGER NOT NULL REFERENCES conversation (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    kind TEXT NOT NULL,
    run TEXT NOT NULL,
    turn INTEGER NOT NULL,
    commit_number INTEGER NOT NULL,
    agent TEXT,
    time INTEGER NOT NULL,
    json TEXT NOT NULL,
    text TEXT,
    PRIMARY KEY (conversation, position)
) STRICT",
    ),
    (
        "lease",
        "CREATE TABLE lease (
    name TEXT PRIMARY KEY,
    owner TEXT NOT NULL,
    until INTEGER NOT NULL
) STRICT",
    ),
];

const INDEXES: [&str; 2] = [
    "CREATE INDEX conversation_changed ON conversation (changed DESC, name)",
    "CREATE INDEX conversation_expires ON conversation (expires) WHERE expires IS NOT NULL",
];

/// The indexes of folders: by change, and by expiry. Earlier programs of this version did not make them; they keep them
/// up to date.
const FOLDER_INDEXES: &str = "
CREATE INDEX IF NOT EXISTS conversation_folder
    ON conversation (rtrim(name, replace(name, '/', '')), changed DESC, name);
CREATE INDEX IF NOT EXISTS conversation_folder_expires
    ON conversation (rtrim(name, replace(name, '/', '')), expires) WHERE expires IS NOT NULL";

/// The tables of version 1, which had neither agents nor times of single items.
const TABLES_1: [(&str, &str); 2] = [
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

/// The application ID and version in the header of a file.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct FileHeader {
    application: i64,
    version: i64,
}

impl FileHeader {
    /// The header of a new file.
    const NEW: Self = Self {
        application: 0,
        version: 0,
    };

    pub(super) fn read(connection: &Connection) -> Result<Self, rusqlite::Error> {
        let pragma = |sql| connection.query_row(sql, [], |row| row.get(0));
        Ok(Self {
            application: pragma("PRAGMA application_id")?,
            version: pragma("PRAGMA user_version")?,
        })
    }

    pub(super) fn check(self, path: &Path) -> Result<(), StoreError> {
        let Self {
            application,
            version,
        } = self;
        if application != APPLICATION || version < 1 {
            let message = "this is a file of another program";
            return Err(StoreError::new(StoreErrorKind::Foreign, path, message));
        }
        if version > VERSION {
            let message =
                format!("the file is of version {version}, this program supports {VERSION}");
            return Err(StoreError::new(StoreErrorKind::Newer, path, message));
        }
        Ok(())
    }
}

/// Checks the tables, creates them in a new file, and migrates those of an older version, in one
/// transaction: even after a crash the file is as before or complete.
pub(super) fn ensure_tables(path: &Path, connection: &mut Connection) -> Result<(), StoreError> {
    let failed = |error| StoreError::sqlite(error, path);
    let immediate = rusqlite::TransactionBehavior::Immediate;
    let transaction = connection
        .transaction_with_behavior(immediate)
        .map_err(failed)?;
    let header = FileHeader::read(&transaction).map_err(failed)?;
    let tables: i64 = transaction
        .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
        .map_err(failed)?;
    if header == FileHeader::NEW && tables == 0 {
        create(&transaction).map_err(failed)?;
        return transaction.commit().map_err(failed);
    }
    header.check(path)?;
    if header.version == 1 {
        check_tables(path, &transaction, &TABLES_1)?;
        migrate(&transaction).map_err(failed)?;
        return transaction.commit().map_err(failed);
    }
    check_tables(path, &transaction, &TABLES)?;
    transaction.execute_batch(FOLDER_INDEXES).map_err(failed)?;
    // Also finds out about a read-only file, which SQLite opens and reports at the first change.
    transaction
        .execute("DELETE FROM lease WHERE until <= ?", [to_millis(now())])
        .map_err(failed)?;
    transaction.commit().map_err(failed)
}

/// Checks the tables of a file that cannot be written, and so not migrated.
pub(super) fn check_readable(
    path: &Path,
    connection: &Connection,
    header: FileHeader,
) -> Result<(), StoreError> {
    if header.version < VERSION {
        let message = format!(
            "the file is of version {}, and is brought to version {VERSION} only where it can be written; copy it \
             to a folder of your own",
            header.version
        );
        return Err(StoreError::new(StoreErrorKind::Storage, path, message));
    }
    check_tables(path, connection, &TABLES)
}

fn create(connection: &Connection) -> Result<(), rusqlite::Error> {
    for (_, table) in TABLES {
        connection.execute(table, [])?;
    }
    for index in INDEXES {
        connection.execute(index, [])?;
    }
    connection.execute_batch(FOLDER_INDEXES)?;
    // A pragma takes no parameters.
    let header = format!("PRAGMA application_id = {APPLICATION}; PRAGMA user_version = {VERSION}");
    connection.execute_batch(&header)
}

/// Copies the sessions and items of version 1. An item that cannot be read is copied as it is.
fn migrate(connection: &Connection) -> Result<(), rusqlite::Error> {
    create(connection)?;
    let flags = FunctionFlags::SQLITE_UTF8 | FunctionFlags::SQLITE_DIRECTONLY;
    connection.create_scalar_function("searched_text", 1, flags, |context| {
        let json = context.get_raw(0).as_str().unwrap_or_default();
        let content = EntryContent::from_stored("item", json);
        Ok(content.ok().and_then(|content| searched_text(&content)))
    })?;
    connection.create_scalar_function("new_epoch", 0, flags, |_| {
        let epoch = Revision::of_new_conversation().epoch;
        Ok(i64::try_from(epoch).unwrap_or_default())
    })?;
    connection.execute(
        "INSERT INTO conversation (id, name, epoch, first, next, agent, created, changed) \
         SELECT id, name, new_epoch(), 0, \
         (SELECT coalesce(max(position) + 1, 0) FROM item WHERE item.session = session.id), \
         agent, created, changed FROM session",
        [],
    )?;
    connection.execute(
        "INSERT INTO entry \
         (conversation, position, kind, run, turn, commit_number, time, json, text) \
         SELECT session, position, 'item', '', 0, 0, changed, json, searched_text(json) \
         FROM item JOIN session ON session.id = session ORDER BY session, position",
        params![],
    )?;
    connection.execute_batch("DROP TABLE item; DROP TABLE session")?;
    connection.remove_function("searched_text", 1)?;
    connection.remove_function("new_epoch", 0)
}

/// Checks that the tables exist and are unchanged. Other tables and indexes are allowed: replication
/// tools add some.
fn check_tables(
    path: &Path,
    connection: &Connection,
    tables: &[(&str, &str)],
) -> Result<(), StoreError> {
    for (name, table) in tables {
        let sql = "SELECT count(*) FROM sqlite_schema WHERE name = ? AND sql = ?";
        let count: i64 = connection
            .query_row(sql, [name, table], |row| row.get(0))
            .map_err(|error| StoreError::sqlite(error, path))?;
        if count != 1 {
            let message = format!("its table \"{name}\" is missing or was changed");
            return Err(StoreError::new(StoreErrorKind::Damaged, path, message));
        }
    }
    Ok(())
}
