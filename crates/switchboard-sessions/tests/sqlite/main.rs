//! Conversations in a SQLite file: storage, concurrency, crashes, and files that are rejected.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod access;
mod child_process;
mod concurrency;
mod crash;
mod files;
mod migration;
mod properties;
mod python_files;
mod storage;

use std::path::{Path, PathBuf};

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{Conversation, Conversations};
use switchboard_core::{Item, Session};
use switchboard_sessions::{SqliteStore, StoreError};
use tempfile::TempDir;

/// A temporary folder, and the path of a file in it that does not exist yet.
fn new_path() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("conversations.db");
    (folder, path)
}

/// Opens the file.
async fn open(path: impl AsRef<Path>) -> Result<Conversations, StoreError> {
    SqliteStore::open(path).await.map(Conversations::new)
}

async fn new_conversations() -> (TempDir, Conversations) {
    let (folder, path) = new_path();
    (folder, open(path).await.unwrap())
}

async fn jsons(conversation: &Conversation) -> Vec<String> {
    let items = conversation.load(None).await.unwrap();
    items.iter().map(|item| item.as_json().to_owned()).collect()
}

fn user_items(texts: &[&str]) -> Vec<Item> {
    texts.iter().map(Item::user).collect()
}

/// Downcasts the error of a method of conversations.
fn store_error(error: &BoxError) -> &StoreError {
    error.downcast_ref().unwrap()
}

/// Opens a plain connection to the file, as `sqlite3` would.
fn raw(path: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(path).unwrap()
}

/// Runs statements on a connection of its own.
fn execute(path: &Path, sql: &str) {
    let connection = raw(path);
    connection.execute_batch(sql).unwrap();
    connection.close().unwrap();
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
async fn load_all(session: &Conversation) -> Vec<Item> {
    session.load(None).await.unwrap().iter().cloned().collect()
}
