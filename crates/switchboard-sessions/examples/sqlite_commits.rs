//! Measures commits to a SQLite file: per second, and the CPU time of each.
//!
//! `cargo run --release -p switchboard-sessions --example sqlite_commits [FOLDER]`
//!
//! A commit is a turn of four items. The folder decides on the disk that is measured.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cpu_time::ProcessTime;
use switchboard_core::Item;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, ConversationStore, Conversations, Entry, EntryContent, Expected,
};
use switchboard_sessions::{Durability, SqliteStore};

const TIME: Duration = Duration::from_secs(5);

#[tokio::main]
async fn main() -> Result<(), BoxError> {
    let folder = match std::env::args_os().nth(1) {
        Some(parent) => tempfile::tempdir_in(parent)?,
        None => tempfile::tempdir()?,
    };
    println!("durability  writers  sleepers  commits/s  CPU µs per commit");
    for durability in [Durability::Full, Durability::Normal] {
        for (writers, sleepers) in [(1, 0), (64, 0), (200, 0), (200, 1_000)] {
            let path = folder
                .path()
                .join(format!("{durability:?}-{writers}-{sleepers}.db"));
            let store = SqliteStore::options()
                .durability(durability)
                .open(path)
                .await?;
            let (rate, cpu) = measure(&store, writers, sleepers).await?;
            println!(
                "{:10}  {writers:7}  {sleepers:8}  {rate:9.0}  {cpu:17.1}",
                format!("{durability:?}")
            );
            store.close().await;
        }
    }
    measure_reading(&folder.path().join("reading.db")).await
}

/// Commits per second, and the CPU time of each in microseconds.
async fn measure(store: &SqliteStore, writers: u64, sleepers: u64) -> Result<(f64, f64), BoxError> {
    let is_done = Arc::new(AtomicBool::new(false));
    let commits = Arc::new(AtomicU64::new(0));
    for _ in 0..sleepers {
        let is_done = is_done.clone();
        tokio::spawn(async move {
            while !is_done.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        });
    }
    let (started, cpu) = (Instant::now(), ProcessTime::now());
    let tasks = (0..writers).map(|writer| {
        let (store, is_done, commits) = (store.clone(), is_done.clone(), commits.clone());
        tokio::spawn(async move {
            let name = format!("customer-{writer}");
            while !is_done.load(Ordering::Relaxed) {
                store
                    .commit(&name, Commit::new(Expected::Any, turn()))
                    .await?;
                commits.fetch_add(1, Ordering::Relaxed);
            }
            Ok::<(), BoxError>(())
        })
    });
    let tasks: Vec<_> = tasks.collect();
    tokio::time::sleep(TIME).await;
    is_done.store(true, Ordering::Relaxed);
    for task in tasks {
        task.await??;
    }
    let (elapsed, cpu) = (started.elapsed(), cpu.elapsed());
    #[allow(clippy::cast_precision_loss, reason = "fewer than 2^52 commits")]
    let count = commits.load(Ordering::Relaxed) as f64;
    let rate = count / elapsed.as_secs_f64();
    Ok((rate, cpu.as_secs_f64() * 1e6 / count))
}

/// The items of a turn: a message, a call, its output, and an answer.
fn turn() -> Vec<Entry> {
    let text =
        "The invoice of March has the same charge twice, once on the 3rd and once on the 4th. ";
    let items = [
        Item::user(text),
        Item::function_call("call_1", "find_invoice", r#"{"month":"March","year":2025}"#),
        Item::function_call_output("call_1", &text.repeat(8)),
        Item::assistant(text.repeat(3)),
    ];
    let entry = |item| Entry::new(EntryContent::Item(item)).made_in("run", 1, 1);
    items.into_iter().map(entry).collect()
}

/// The time to load a long conversation, and its last items.
async fn measure_reading(path: &std::path::Path) -> Result<(), BoxError> {
    use switchboard_core::Session;
    let store = SqliteStore::open(path).await?;
    for _ in 0..2_500 {
        store
            .commit("long", Commit::new(Expected::Any, turn()))
            .await?;
    }
    store.close().await;
    let size = std::fs::metadata(path)?.len();
    let store = SqliteStore::open(path).await?;
    let conversation = Conversations::new(store).get("long");
    for limit in [None, Some(20)] {
        let (started, cpu) = (Instant::now(), ProcessTime::now());
        for _ in 0..50 {
            conversation.load(limit).await?;
        }
        let (elapsed, cpu) = (started.elapsed() / 50, cpu.elapsed() / 50);
        println!("load {limit:?} of 10,000 items: {elapsed:.1?}, CPU {cpu:.1?}");
    }
    println!("file: {} KB", size / 1_024);
    Ok(())
}
