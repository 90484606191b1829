//! Many tasks and processes on one file.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Conversations, Entry, EntryContent, Expected,
};
use switchboard_core::{Item, Session};
use switchboard_sessions::SqliteStore;

use crate::child_process::child;
use crate::{batch, execute, load_all, new_conversations, new_path, open, raw, whole_batches};

/// Only means "does not hang".
const TIMEOUT: Duration = Duration::from_secs(300);

/// Asserts that each writer's batches are there once, complete and in order.
fn assert_nothing_lost(items: &[Item], writers: usize, batches: usize) {
    let mut by_writer: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (writer, number) in whole_batches(items) {
        by_writer.entry(writer).or_default().push(number);
    }
    assert_eq!(by_writer.len(), writers);
    for (writer, numbers) in by_writer {
        assert_eq!(numbers, (0..batches).collect::<Vec<_>>(), "{writer}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn many_tasks_lose_and_mix_nothing() {
    let (_folder, path) = new_path();
    // Several handles to one file, each shared by several tasks.
    let opened = futures_util::future::join_all((0..3).map(|_| open(&path))).await;
    let opened: Vec<Conversations> = opened.into_iter().map(Result::unwrap).collect();
    let tasks = (0..30).map(|task: usize| {
        let session = opened[task % opened.len()].get("shared");
        tokio::spawn(async move {
            for number in 0..5 {
                let items = batch(&task.to_string(), number, 1 + (task + number) % 5);
                session.append(&items).await.unwrap();
                // A reader sees complete batches at any time.
                whole_batches(&load_all(&session).await);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_nothing_lost(&load_all(&opened[0].get("shared")).await, 30, 5);
}

#[tokio::test]
async fn many_processes_lose_and_mix_nothing_in_a_new_file() {
    let (_folder, path) = new_path();
    let children = (0..5).map(|name: usize| {
        let mut command = child("append_from_several_tasks", &name.to_string(), &path);
        command.spawn().unwrap()
    });
    for child in children.collect::<Vec<_>>() {
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success(), "{output:?}");
    }
    let conversations = open(&path).await.unwrap();
    assert_nothing_lost(&load_all(&conversations.get("shared")).await, 20, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_waits_for_a_reader_without_a_write_ahead_log() {
    let (_folder, path) = new_path();
    open(&path).await.unwrap().close().await;
    execute(&path, "PRAGMA journal_mode = DELETE");
    let reader = raw(&path);
    let read = "BEGIN; SELECT * FROM conversation";
    reader.execute_batch(read).unwrap();

    let opening = tokio::spawn(async move { open(&path).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!opening.is_finished());
    reader.execute_batch("COMMIT").unwrap();
    opening.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_append_is_stored_completely_or_not_at_all() {
    let (_folder, conversations) = new_conversations().await;
    let session = conversations.get("shared");
    for number in 0..100 {
        let items = batch("cancelled", number, 30);
        let timeout = Duration::from_micros(number as u64 * 60);
        let _ = tokio::time::timeout(timeout, session.append(&items)).await;
    }
    // The connection is usable after a cancelled transaction.
    session.append(&batch("completed", 0, 3)).await.unwrap();
    let stored = whole_batches(&load_all(&session).await);
    assert_eq!(stored.last(), Some(&("completed".to_owned(), 0)));
}

fn item_commit(expected: Expected, text: &str) -> Commit {
    Commit::new(
        expected,
        vec![Entry::new(EntryContent::Item(Item::user(text)))],
    )
}

/// The texts of the items from a position on.
async fn texts(store: &SqliteStore, name: &str, from: u64) -> Vec<String> {
    let entries = store.read(name, from..u64::MAX).await.unwrap();
    let text = |entry: &Entry| entry.content.item().unwrap().text().unwrap().into_owned();
    entries.iter().map(text).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn writers_that_expect_a_revision_lose_nothing_and_store_nothing_twice() {
    let (_folder, path) = new_path();
    let store = SqliteStore::open(&path).await.unwrap();
    let conflicts = Arc::new(AtomicUsize::new(0));
    let tasks = (0..64).map(|writer| {
        let (store, conflicts) = (store.clone(), conflicts.clone());
        tokio::spawn(async move {
            let mut positions = Vec::new();
            for number in 0..5_u32 {
                loop {
                    let head = store.head("shared").await.unwrap();
                    let (expected, position) = match head {
                        Some(head) => (Expected::At(head.revision), head.revision.next),
                        None => (Expected::New, 0),
                    };
                    let mut commit = item_commit(expected, &format!("{writer} {number}"));
                    commit.run = writer.to_string().into();
                    commit.number = number + 1;
                    if let Committed::At(revision) = store.commit("shared", commit).await.unwrap() {
                        assert_eq!(revision.next, position + 1);
                        positions.push((position, format!("{writer} {number}")));
                        break;
                    }
                    conflicts.fetch_add(1, Ordering::Relaxed);
                }
            }
            positions
        })
    });
    let mut expected = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        let positions = task.await.unwrap();
        assert!(positions.is_sorted());
        expected.extend(positions);
    }
    expected.sort();
    assert!(conflicts.load(Ordering::Relaxed) > 0);
    let positions: Vec<u64> = expected.iter().map(|(position, _)| *position).collect();
    assert_eq!(positions, (0..320).collect::<Vec<_>>());
    let expected: Vec<String> = expected.into_iter().map(|(_, text)| text).collect();
    assert_eq!(texts(&store, "shared", 0).await, expected);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_conversations_go_side_by_side() {
    let (_folder, conversations) = new_conversations().await;
    let tasks = (0..10_000).map(|number| {
        let conversation = conversations.get(format!("customer-{number}"));
        tokio::spawn(async move {
            let text = number.to_string();
            conversation.append(&[Item::user(&text)]).await.unwrap();
            conversation
                .append(&[Item::assistant(&text)])
                .await
                .unwrap();
            let expected = [Item::user(&text), Item::assistant(&text)];
            assert_eq!(load_all(&conversation).await, expected);
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    let listed = conversations.list(None).await.unwrap();
    assert_eq!(listed.len(), 10_000);
    assert!(listed.iter().all(|head| head.entries() == 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dropped_commit_is_in_the_next_read_or_never_stored() {
    let (_folder, path) = new_path();
    let store = SqliteStore::open(&path).await.unwrap();
    // Other writers, so that there is always a queue.
    let is_done = Arc::new(AtomicBool::new(false));
    let others = (0..8).map(|writer| {
        let (store, is_done) = (store.clone(), is_done.clone());
        tokio::spawn(async move {
            while !is_done.load(Ordering::Relaxed) {
                let commit = item_commit(Expected::Any, "other");
                let name = format!("other {writer}");
                store.commit(&name, commit).await.unwrap();
            }
        })
    });
    let others: Vec<_> = others.collect();

    let mut seen = HashMap::new();
    for number in 0..400_u64 {
        let name = format!("conversation {}", number % 7);
        let text = number.to_string();
        let commit = item_commit(Expected::Any, &text);
        let wait = Duration::from_micros(number * 7_919 % 3_000);
        let _ = tokio::time::timeout(wait, store.commit(&name, commit)).await;
        let next = texts(&store, &name, 0).await;
        seen.insert(number, (name, next.contains(&text)));
    }
    is_done.store(true, Ordering::Relaxed);
    for other in others {
        other.await.unwrap();
    }
    store.close().await;

    let store = SqliteStore::open(&path).await.unwrap();
    for (number, (name, was_seen)) in seen {
        let stored = texts(&store, &name, 0).await;
        let count = stored
            .iter()
            .filter(|text| **text == number.to_string())
            .count();
        assert_eq!(count, usize::from(was_seen), "{number}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn appends_complete_beside_a_thousand_tasks_that_only_sleep_and_wake() {
    let (_folder, conversations) = new_conversations().await;
    let is_done = Arc::new(AtomicBool::new(false));
    let sleepers = (0..1_000).map(|_| {
        let is_done = is_done.clone();
        tokio::spawn(async move {
            while !is_done.load(Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        })
    });
    let sleepers: Vec<_> = sleepers.collect();
    let writers = (0..200).map(|writer| {
        let conversation = conversations.get(format!("customer-{writer}"));
        tokio::spawn(async move {
            for number in 0..10 {
                let item = Item::user(number.to_string());
                conversation.append(&[item]).await.unwrap();
            }
        })
    });
    let all = futures_util::future::join_all(writers);
    for writer in tokio::time::timeout(TIMEOUT, all).await.unwrap() {
        writer.unwrap();
    }
    is_done.store(true, Ordering::Relaxed);
    for sleeper in sleepers {
        sleeper.await.unwrap();
    }
    let listed = conversations.list(None).await.unwrap();
    let entries: u64 = listed.iter().map(|head| head.entries()).sum();
    assert_eq!((listed.len(), entries), (200, 2_000));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_one_owner_at_a_time_has_a_lease() {
    let (_folder, path) = new_path();
    let opened = futures_util::future::join_all((0..2).map(|_| SqliteStore::open(&path))).await;
    let [a, b] =
        <[SqliteStore; 2]>::try_from(opened.into_iter().map(Result::unwrap).collect::<Vec<_>>())
            .unwrap();
    let hour = Duration::from_secs(3_600);
    assert!(a.lease("x", "a", hour).await.unwrap());
    assert!(a.lease("x", "a", Duration::from_millis(100)).await.unwrap());
    assert!(!b.lease("x", "b", hour).await.unwrap());
    b.release("x", "b").await.unwrap();
    assert!(!b.lease("x", "b", hour).await.unwrap());
    // A lease creates no conversation, and ends by itself.
    assert_eq!(a.head("x").await.unwrap(), None);
    tokio::time::sleep(Duration::from_millis(150)).await;
    assert!(b.lease("x", "b", hour).await.unwrap());
    assert!(!a.lease("x", "a", hour).await.unwrap());
    b.release("x", "b").await.unwrap();
    assert!(a.lease("x", "a", hour).await.unwrap());
}
