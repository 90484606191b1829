//! The tests of all stores: the contract of `ConversationStore`, and what conversations build on it.
//!
//! Each test runs on every store. Those that need a server are run by `./test`, or by
//! `tests/with-servers cargo test -p switchboard-sessions --all-features --test stores -- --include-ignored`.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

/// Defines tests that run on every store.
macro_rules! tests {
    ($(async fn $name:ident($backend:ident) $body:block)*) => {$(
        mod $name {
            use super::*;
            use crate::backends;

            async fn test($backend: impl backends::Backend) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn memory() {
                test(backends::Memory::new()).await;
            }

            #[cfg(feature = "sqlite")]
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                test(backends::Sqlite::new()).await;
            }

            #[cfg(feature = "postgres")]
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs PostgreSQL; ./test starts one"]
            async fn postgres() {
                test(backends::Postgres::new()).await;
            }

            #[cfg(feature = "redis")]
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            #[ignore = "needs Redis; ./test starts one"]
            async fn redis() {
                test(backends::Redis::new()).await;
            }
        }
    )*};
}

#[cfg(any(feature = "postgres", feature = "redis"))]
mod addresses;
mod backends;
mod commits;
mod conversations;
mod killed_runs;
mod leases;
mod lists;
#[cfg(feature = "postgres")]
mod postgres_only;
mod promises;
#[cfg(any(feature = "postgres", feature = "redis"))]
mod proxy;
mod realtime;
#[cfg(feature = "redis")]
mod redis_only;
mod values;
mod writers;

use std::time::{Duration, SystemTime};

use switchboard_core::Item;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, EntryContent, Expected, Head, Revision,
    from_millis,
};

/// A time that is not the current one, in milliseconds after a fixed one.
fn time(millis: i64) -> SystemTime {
    from_millis(1_700_000_000_000 + millis)
}

fn item(text: &str) -> EntryContent {
    EntryContent::Item(Item::user(text))
}

/// An entry of a run.
fn entry(run: &str, number: u32, content: EntryContent) -> Entry {
    Entry::new(content)
        .made_in(run, 1, number)
        .committed_at(time(0))
}

/// A commit of a run with one message for each text.
fn commit(expected: Expected, run: &str, number: u32, texts: &[&str]) -> Commit {
    let entries = texts.iter().map(|text| entry(run, number, item(text)));
    let mut commit = Commit::new(expected, entries.collect());
    commit.run = run.into();
    commit.number = number;
    commit.time = time(0);
    commit
}

/// Makes a commit that must succeed.
async fn committed(store: &impl ConversationStore, id: &str, commit: Commit) -> Revision {
    match store.commit(id, commit).await.unwrap() {
        Committed::At(revision) => revision,
        other => panic!("{other:?}"),
    }
}

/// All entries of a conversation.
async fn all(store: &impl ConversationStore, id: &str) -> Vec<Entry> {
    store.read(id, 0..u64::MAX).await.unwrap()
}

/// The texts of all messages of a conversation, with their positions.
async fn texts(store: &impl ConversationStore, id: &str) -> Vec<(u64, String)> {
    let entries = all(store, id).await;
    let text = |entry: &Entry| {
        let text = entry
            .content
            .item()
            .and_then(Item::text)
            .unwrap_or_default();
        (entry.position, text.into_owned())
    };
    entries.iter().map(text).collect()
}

async fn head(store: &impl ConversationStore, id: &str) -> Head {
    store.head(id).await.unwrap().unwrap()
}

/// Downcasts the error of a store.
#[cfg(any(feature = "postgres", feature = "redis"))]
fn store_error(error: &switchboard_core::callback::BoxError) -> &switchboard_sessions::StoreError {
    error.downcast_ref().unwrap()
}

/// A time that is long enough for any server.
const LONG: Duration = Duration::from_secs(600);
