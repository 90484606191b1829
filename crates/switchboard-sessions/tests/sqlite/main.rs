//! Sessions in a SQLite file: storage, concurrency, crashes, and files that are rejected.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod child_process;
mod concurrency;
mod crash;
mod files;
mod properties;
mod storage;

use std::path::PathBuf;

use switchboard_core::callback::BoxError;
use switchboard_core::{Item, Session};
use switchboard_sessions::{SessionError, SqliteSession, SqliteSessions};
use tempfile::TempDir;

/// A temporary folder, and the path of a file in it that does not exist yet.
fn new_path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.db");
    (folder, path)
}

async fn new_sessions() -> (TempDir, SqliteSessions) {
    let (folder, path) = new_path();
    (folder, SqliteSessions::open(path).await.unwrap())
}

async fn jsons(session: &SqliteSession) -> Vec<String> {
    let items = session.load(None).await.unwrap();
    items.iter().map(|item| item.as_json().to_owned()).collect()
}

fn user_items(texts: &[&str]) -> Vec<Item> {
    texts.iter().map(Item::user).collect()
}

/// Downcasts the error of a `Session` method.
fn session_error(error: &BoxError) -> &SessionError {
    error.downcast_ref().unwrap()
}

/// Opens a plain connection to the file, as `sqlite3` would.
async fn raw(path: &std::path::Path) -> sqlx::SqliteConnection {
    use sqlx::ConnectOptions;
    let options = sqlx::sqlite::SqliteConnectOptions::new();
    let options = options.filename(path).create_if_missing(true);
    options.connect().await.unwrap()
}

async fn execute(connection: &mut sqlx::SqliteConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}

/// A batch of items, each with the writer, the number of the batch and its size.
fn batch(writer: &str, number: usize, size: usize) -> Vec<Item> {
    let item = |at| {
        let json = format!(r#"{{"writer":"{writer}","batch":{number},"at":{at},"of":{size}}}"#);
        Item::from_json(json).unwrap()
    };
    (0..size).map(item).collect()
}

/// Splits items into batches, as writer and number. Panics if one is incomplete.
fn whole_batches(items: &[Item]) -> Vec<(String, usize)> {
    let mut batches = Vec::new();
    let mut rest = items;
    while let Some(first) = rest.first() {
        let value = first.to_value().unwrap();
        let number = |field: &str| usize::try_from(value[field].as_u64().unwrap()).unwrap();
        let writer = value["writer"].as_str().unwrap();
        let expected = batch(writer, number("batch"), number("of"));
        assert_eq!(rest.get(..expected.len()), Some(&expected[..]));
        batches.push((writer.to_owned(), number("batch")));
        rest = &rest[expected.len()..];
    }
    batches
}

/// Loads all items.
async fn load_all(session: &SqliteSession) -> Vec<Item> {
    session.load(None).await.unwrap().iter().cloned().collect()
}
