//! Conversations in a SQLite file: what they keep, who may share them, what they survive, and which
//! files they refuse.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod children;
mod crash;
mod files;
mod keeping;
mod properties;
mod sharing;

use std::path::PathBuf;

use switchboard_core::{BoxError, Item, Session};
use switchboard_sessions::{SessionError, SqliteSession, SqliteSessions};
use tempfile::TempDir;

/// A folder for one test, and the path of a file in it that is not there yet.
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

fn said(texts: &[&str]) -> Vec<Item> {
    texts.iter().map(Item::user).collect()
}

/// What the trait gives as its error.
fn session_error(error: &BoxError) -> &SessionError {
    error.downcast_ref().unwrap()
}

/// A connection to the file past the sessions, as `sqlite3` would make it.
async fn raw(path: &std::path::Path) -> sqlx::SqliteConnection {
    use sqlx::ConnectOptions;
    let options = sqlx::sqlite::SqliteConnectOptions::new();
    let options = options.filename(path).create_if_missing(true);
    options.connect().await.unwrap()
}

async fn execute(connection: &mut sqlx::SqliteConnection, sql: &'static str) {
    sqlx::raw_sql(sql).execute(connection).await.unwrap();
}

/// A batch that tells whose it is, which one, and how many items it has.
fn batch(writer: &str, number: usize, size: usize) -> Vec<Item> {
    let item = |at| {
        let json = format!(r#"{{"writer":"{writer}","batch":{number},"at":{at},"of":{size}}}"#);
        Item::from_json(json).unwrap()
    };
    (0..size).map(item).collect()
}

/// The batches that items are made of, as writer and number. Panics where one is not whole.
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

/// All items, to look through.
async fn loaded(session: &SqliteSession) -> Vec<Item> {
    session.load(None).await.unwrap().iter().cloned().collect()
}
