//! The calls of a store as SQL. Those that write run within a transaction.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension, Row, ffi, params};
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, Entry, EntryContent, Expected, Found, Head, ListQuery, Listed, Revision,
    SearchQuery, from_millis, now, to_millis,
};

use crate::error::{StoreError, StoreErrorKind};

/// The failure of a call.
pub(super) enum Failure {
    Sqlite(Arc<rusqlite::Error>),
    /// An entry cannot be read.
    Entry(u64, BoxError),
}

impl From<rusqlite::Error> for Failure {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(Arc::new(error))
    }
}

impl Failure {
    /// The error for the file at `path`.
    pub(super) fn describe(self, path: &Path) -> StoreError {
        match self {
            Self::Sqlite(error) => describe_error(&error, path).caused_by(error),
            Self::Entry(position, error) => {
                let message = "this is not an entry (an item is one JSON object)";
                StoreError::new(StoreErrorKind::Entry, path, message)
                    .at_position(position)
                    .caused_by(error)
            }
        }
    }
}

impl StoreError {
    /// Converts an SQLite error of the file at `path`.
    pub(crate) fn sqlite(error: rusqlite::Error, path: &Path) -> Self {
        describe_error(&error, path).caused_by(error)
    }
}

fn describe_error(error: &rusqlite::Error, path: &Path) -> StoreError {
    let code = primary_code(error);
    let kind = match code {
        // That the file exists was checked before.
        ffi::SQLITE_PERM | ffi::SQLITE_READONLY | ffi::SQLITE_CANTOPEN => {
            StoreErrorKind::Permission
        }
        ffi::SQLITE_BUSY | ffi::SQLITE_LOCKED => StoreErrorKind::Busy,
        ffi::SQLITE_CORRUPT => StoreErrorKind::Damaged,
        ffi::SQLITE_FULL => StoreErrorKind::Full,
        ffi::SQLITE_NOTADB => StoreErrorKind::Foreign,
        _ => StoreErrorKind::Storage,
    };
    let message = match error {
        rusqlite::Error::SqliteFailure(_, Some(message)) => message.clone(),
        rusqlite::Error::SqliteFailure(error, None) => {
            ffi::code_to_str(error.extended_code).to_owned()
        }
        _ => "SQLite could not be used".to_owned(),
    };
    // A disk without room for the index of the write-ahead log is reported as this, and not as full.
    let advice = match code {
        ffi::SQLITE_IOERR => "; check that the disk works and has room",
        _ => "",
    };
    StoreError::new(kind, path, message + advice)
}

/// SQLite's primary result code; 0 for errors of other origin.
pub(super) fn primary_code(error: &rusqlite::Error) -> i32 {
    match error {
        rusqlite::Error::SqliteFailure(error, _) => error.extended_code & 0xff,
        _ => 0,
    }
}

/// The folder of a conversation's name: what is left when all but its last `/` is cut off the end. The index
/// has the same expression.
macro_rules! folder_of_name {
    () => {
        "rtrim(name, replace(name, '/', ''))"
    };
}

/// The columns of a conversation, as [`parse_head`] expects them.
macro_rules! head_columns {
    () => {
        "name, epoch, next, first, state, agent, details, created, changed, expires"
    };
}

/// The columns of an entry, as [`parse_entry`] expects them.
macro_rules! entry_columns {
    () => {
        "position, kind, json, run, turn, commit_number, entry.agent, time"
    };
}

pub(super) fn head(connection: &Connection, name: &str) -> Result<Option<Head>, Failure> {
    let stored = find(connection, name)?;
    Ok(stored.map(|(_, head)| head))
}

/// The row ID of a conversation, and its head.
fn find(connection: &Connection, name: &str) -> Result<Option<(i64, Head)>, rusqlite::Error> {
    let sql = concat!(
        "SELECT ",
        head_columns!(),
        ", id FROM conversation WHERE name = ?"
    );
    let mut statement = connection.prepare_cached(sql)?;
    let parse = |row: &Row<'_>| Ok((row.get(10)?, parse_head(row)?));
    statement.query_row([name], parse).optional()
}

pub(super) fn read(
    connection: &Connection,
    name: &str,
    positions: &Range<u64>,
) -> Result<Vec<Entry>, Failure> {
    let sql = concat!(
        "SELECT ",
        entry_columns!(),
        " FROM entry WHERE conversation = (SELECT id FROM conversation WHERE name = ?) \
         AND position >= ? AND position < ? ORDER BY position"
    );
    let mut statement = connection.prepare_cached(sql)?;
    let parameters = params![name, to_sql(positions.start), to_sql(positions.end)];
    let mut rows = statement.query(parameters)?;
    let mut entries = Vec::new();
    while let Some(row) = rows.next()? {
        entries.push(parse_entry(row)?);
    }
    Ok(entries)
}

pub(super) fn commit(
    connection: &Connection,
    name: &str,
    commit: &Commit,
) -> Result<Committed, Failure> {
    let stored = find(connection, name)?;
    let is_expected = match (commit.expected, &stored) {
        (Expected::Any, _) | (Expected::New, None) => true,
        (Expected::At(revision), Some((_, head))) => head.revision == revision,
        _ => false,
    };
    if !is_expected {
        let Some((id, head)) = stored else {
            return Ok(Committed::Conflict);
        };
        return Ok(if is_made(connection, id, &head, commit)? {
            Committed::At(head.revision)
        } else {
            Committed::Conflict
        });
    }
    let (id, mut head) = match stored {
        Some(stored) => stored,
        None => insert(connection, name, commit)?,
    };
    let (positions, expires) = (head.revision.next.., head.expires);
    head.apply(commit);
    if head.expires == expires {
        update(connection, id, &head)?;
    } else {
        update_with_expiry(connection, id, &head)?;
    }
    let mut statement = connection.prepare_cached(
        "INSERT INTO entry \
         (conversation, position, kind, run, turn, commit_number, agent, time, json, text) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for (position, entry) in positions.zip(&commit.entries) {
        statement.execute(params![
            id,
            to_sql(position),
            entry.content.kind(),
            &*entry.run,
            entry.turn,
            entry.commit,
            entry.agent.as_deref(),
            to_millis(entry.time),
            entry.content.as_json(),
            searched_text(&entry.content),
        ])?;
    }
    Ok(Committed::At(head.revision))
}

/// Returns `true` if the conversation has the entries of this commit already.
fn is_made(
    connection: &Connection,
    id: i64,
    head: &Head,
    commit: &Commit,
) -> Result<bool, rusqlite::Error> {
    let from = match commit.expected {
        Expected::At(expected) if expected.epoch != head.revision.epoch => return Ok(false),
        Expected::At(expected) => expected.next,
        _ => 0,
    };
    // 0 is never the same commit.
    if commit.number == 0 {
        return Ok(false);
    }
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM entry \
         WHERE conversation = ? AND position >= ? AND commit_number = ? AND run = ?)",
    )?;
    let parameters = params![id, to_sql(from), commit.number, &*commit.run];
    statement.query_row(parameters, |row| row.get(0))
}

fn insert(
    connection: &Connection,
    name: &str,
    commit: &Commit,
) -> Result<(i64, Head), rusqlite::Error> {
    let head = Head::new(name, Revision::of_new_conversation(), commit.time);
    let mut statement = connection.prepare_cached(
        "INSERT INTO conversation (name, epoch, first, next, created, changed) \
         VALUES (?, ?, 0, 0, ?, ?)",
    )?;
    let created = to_millis(head.created);
    let parameters = params![name, to_sql(head.revision.epoch), created, created];
    Ok((statement.insert(parameters)?, head))
}

/// Stores a head, but for its time of expiry: SQLite writes an index of a column whenever a statement names the column.
fn update(connection: &Connection, id: i64, head: &Head) -> Result<(), rusqlite::Error> {
    let mut statement = connection.prepare_cached(
        "UPDATE conversation SET epoch = ?, next = ?, first = ?, state = ?, agent = ?, details = ?, \
         changed = ? WHERE id = ?",
    )?;
    statement.execute(params![
        to_sql(head.revision.epoch),
        to_sql(head.revision.next),
        to_sql(head.first),
        head.state.map(to_sql),
        head.agent.as_deref(),
        head.details.as_deref(),
        to_millis(head.changed),
        id,
    ])?;
    Ok(())
}

fn update_with_expiry(
    connection: &Connection,
    id: i64,
    head: &Head,
) -> Result<(), rusqlite::Error> {
    update(connection, id, head)?;
    let mut statement =
        connection.prepare_cached("UPDATE conversation SET expires = ? WHERE id = ?")?;
    statement.execute(params![head.expires.map(to_millis), id])?;
    Ok(())
}

pub(super) fn clear(connection: &Connection, name: &str) -> Result<(), Failure> {
    let Some((id, mut head)) = find(connection, name)? else {
        return Ok(());
    };
    let mut statement = connection.prepare_cached("DELETE FROM entry WHERE conversation = ?")?;
    statement.execute([id])?;
    head.revision = head.revision.cleared();
    head.first = head.revision.next;
    head.state = None;
    head.agent = None;
    head.details = None;
    head.expires = None;
    head.changed = now();
    Ok(update_with_expiry(connection, id, &head)?)
}

pub(super) fn delete(connection: &Connection, name: &str) -> Result<bool, Failure> {
    let mut statement = connection.prepare_cached("DELETE FROM conversation WHERE name = ?")?;
    Ok(statement.execute([name])? > 0)
}

pub(super) fn delete_expired(
    connection: &Connection,
    name: &str,
    time: SystemTime,
) -> Result<bool, Failure> {
    let mut statement =
        connection.prepare_cached("DELETE FROM conversation WHERE name = ? AND expires <= ?")?;
    Ok(statement.execute(params![name, to_millis(time)])? > 0)
}

pub(super) fn list(connection: &Connection, query: &ListQuery) -> Result<Vec<Head>, Failure> {
    let (sql, parameters) = list_statement(query);
    let mut statement = connection.prepare_cached(&sql)?;
    let heads = statement.query_map(rusqlite::params_from_iter(parameters), parse_head)?;
    Ok(heads.collect::<Result<_, _>>()?)
}

fn list_statement(query: &ListQuery) -> (String, Vec<Value>) {
    let mut sql = concat!("SELECT ", head_columns!(), " FROM conversation WHERE TRUE").to_owned();
    let mut parameters: Vec<Value> = Vec::new();
    if let Some(folder) = &query.folder {
        sql += concat!(" AND ", folder_of_name!(), " = ?");
        parameters.push(folder.to_string().into());
    }
    if let Some(time) = query.changed_before {
        sql += " AND changed < ?";
        parameters.push(to_millis(time).into());
    }
    if let Some(time) = query.expired_before {
        sql += " AND expires <= ?";
        parameters.push(to_millis(time).into());
    }
    if let Some(time) = query.expired_from {
        sql += " AND expires >= ?";
        parameters.push(to_millis(time).into());
    }
    let is_by_expiry = query.expired_before.is_some() || query.expired_from.is_some();
    // Those that have expired are few, and so are the last ones: a plus keeps the indexes of other columns from being used.
    let plus = |is_set: bool| if is_set { "+" } else { "" };
    let of_change = plus(is_by_expiry);
    let of_name = plus(is_by_expiry || query.limit.is_some());
    let order = match query.expired_from {
        None => format!("{of_change}changed DESC"),
        Some(_) => "expires".to_owned(),
    };
    let not = match query.listed {
        Listed::Journals => "",
        _ => "NOT ",
    };
    sql += &format!(
        " AND {not}({of_name}name >= 'switchboard-run:' AND {of_name}name < 'switchboard-run;') \
         ORDER BY {order}, name LIMIT ?"
    );
    parameters.push(to_limit(query.limit).into());
    (sql, parameters)
}

pub(super) fn search(connection: &Connection, query: &SearchQuery) -> Result<Vec<Found>, Failure> {
    let mut sql = concat!(
        "SELECT ",
        entry_columns!(),
        ", name FROM entry JOIN conversation ON conversation.id = conversation \
         WHERE instr(text, ?) > 0"
    )
    .to_owned();
    let mut parameters: Vec<Value> = vec![query.text.to_lowercase().into()];
    if let Some(folder) = &query.folder {
        sql += concat!(" AND ", folder_of_name!(), " = ?");
        parameters.push(folder.to_string().into());
    }
    sql += " ORDER BY time DESC, position DESC LIMIT ?";
    parameters.push(to_limit(Some(query.limit)).into());
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query(rusqlite::params_from_iter(parameters))?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let name: Arc<str> = row.get(8)?;
        found.push(Found::new(name, parse_entry(row)?));
    }
    Ok(found)
}

pub(super) fn lease(
    connection: &Connection,
    name: &str,
    owner: &str,
    time: Duration,
) -> Result<bool, Failure> {
    let now = to_millis(now());
    let time = i64::try_from(time.as_millis()).unwrap_or(i64::MAX);
    let mut statement = connection.prepare_cached(
        "INSERT INTO lease (name, owner, until) VALUES (?1, ?2, ?3) \
         ON CONFLICT (name) DO UPDATE SET owner = ?2, until = ?3 \
         WHERE owner = ?2 OR until <= ?4",
    )?;
    let taken = statement.execute(params![name, owner, now.saturating_add(time), now])?;
    Ok(taken > 0)
}

pub(super) fn release(connection: &Connection, name: &str, owner: &str) -> Result<(), Failure> {
    let mut statement =
        connection.prepare_cached("DELETE FROM lease WHERE name = ? AND owner = ?")?;
    statement.execute([name, owner])?;
    Ok(())
}

/// The text that a search looks through, in lower case: SQLite knows only the letters of ASCII.
pub(super) fn searched_text(content: &EntryContent) -> Option<String> {
    content.searchable_text().map(|text| text.to_lowercase())
}

fn parse_head(row: &Row<'_>) -> Result<Head, rusqlite::Error> {
    let revision = Revision::new(from_sql(row.get(1)?), from_sql(row.get(2)?));
    let name: Arc<str> = row.get(0)?;
    let mut head = Head::new(name, revision, from_millis(row.get(7)?));
    head.first = from_sql(row.get(3)?);
    head.state = row.get::<_, Option<i64>>(4)?.map(from_sql);
    head.agent = row.get(5)?;
    head.details = row.get(6)?;
    head.changed = from_millis(row.get(8)?);
    head.expires = row.get::<_, Option<i64>>(9)?.map(from_millis);
    Ok(head)
}

fn parse_entry(row: &Row<'_>) -> Result<Entry, Failure> {
    let position = from_sql(row.get(0)?);
    let unreadable = |error: BoxError| Failure::Entry(position, error);
    let kind: String = row.get(1).map_err(|error| unreadable(error.into()))?;
    let json: String = row.get(2).map_err(|error| unreadable(error.into()))?;
    let content = EntryContent::from_stored(&kind, json);
    let content = content.map_err(|error| unreadable(error.into()))?;
    let run: Arc<str> = row.get(3)?;
    Ok(Entry::new(content)
        .at(position)
        .made_in(run, row.get(4)?, row.get(5)?)
        .made_by(row.get(6)?)
        .committed_at(from_millis(row.get(7)?)))
}

/// SQLite has no unsigned numbers.
fn to_sql(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn from_sql(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

/// To SQLite, a negative limit is none.
fn to_limit(limit: Option<usize>) -> i64 {
    limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]
mod tests {
    use super::*;
    use crate::sqlite::schema::ensure_tables;

    /// A worker asks for the runs that are due twice a second, also where very many wait.
    #[test]
    fn what_has_expired_is_found_by_its_time_and_not_by_looking_at_all() {
        for listed in [Listed::Journals, Listed::Conversations] {
            let mut query = ListQuery::default();
            (query.listed, query.expired_before) = (listed, Some(from_millis(1)));
            assert_eq!(
                plan(&query),
                [
                    "SEARCH conversation USING INDEX conversation_expires (expires<?)",
                    "USE TEMP B-TREE FOR ORDER BY"
                ]
            );
        }
    }

    #[test]
    fn the_last_changed_are_found_without_sorting_all() {
        for listed in [Listed::Journals, Listed::Conversations] {
            let mut query = ListQuery::default();
            (query.listed, query.limit) = (listed, Some(1));
            assert_eq!(
                plan(&query),
                ["SCAN conversation USING INDEX conversation_changed"]
            );
        }
    }

    /// Before it begins, a durable run looks for earlier ones of its conversation, which may have had thousands.
    #[test]
    fn what_has_expired_in_a_folder_is_found_without_the_others_of_the_folder() {
        let mut query = ListQuery::default();
        (query.listed, query.expired_before) = (Listed::Journals, Some(from_millis(1)));
        query.folder = Some("switchboard-run:talk/".into());
        assert_eq!(
            plan(&query),
            [
                "SEARCH conversation USING INDEX conversation_folder_expires (<expr>=? AND expires<?)",
                "USE TEMP B-TREE FOR ORDER BY"
            ]
        );
    }

    /// A worker that has looked at many runs of others goes on after them.
    #[test]
    fn a_page_of_what_has_expired_is_read_without_the_pages_before_it() {
        let mut query = ListQuery::default();
        (query.listed, query.limit) = (Listed::Journals, Some(100));
        query.expired_before = Some(from_millis(9));
        query.expired_from = Some(from_millis(1));
        let plan = plan(&query);
        assert_eq!(
            plan.first().map(String::as_str),
            Some("SEARCH conversation USING INDEX conversation_expires (expires>? AND expires<?)")
        );
        // Of the same time, only the names are sorted.
        assert_ne!(
            plan.get(1).map(String::as_str),
            Some("USE TEMP B-TREE FOR ORDER BY")
        );
    }

    fn plan(query: &ListQuery) -> Vec<String> {
        let mut connection = Connection::open_in_memory().unwrap();
        ensure_tables(Path::new("memory"), &mut connection).unwrap();
        let (sql, parameters) = list_statement(query);
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        let mut plan = connection.prepare(&sql).unwrap();
        let plan = plan.query_map(rusqlite::params_from_iter(parameters), |row| row.get(3));
        plan.unwrap().collect::<Result<_, _>>().unwrap()
    }
}
