//! Many tasks and processes on one file.

use std::collections::BTreeMap;
use std::time::Duration;

use switchboard_core::{Item, Session};
use switchboard_sessions::SqliteSessions;

use crate::child_process::child;
use crate::{batch, execute, load_all, new_path, new_sessions, raw, whole_batches};

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
    let opened = futures_util::future::join_all((0..3).map(|_| SqliteSessions::open(&path))).await;
    let opened: Vec<SqliteSessions> = opened.into_iter().map(Result::unwrap).collect();
    let tasks = (0..30).map(|task: usize| {
        let session = opened[task % opened.len()].session("shared");
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
    assert_nothing_lost(&load_all(&opened[0].session("shared")).await, 30, 5);
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
    let sessions = SqliteSessions::open(&path).await.unwrap();
    assert_nothing_lost(&load_all(&sessions.session("shared")).await, 20, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn opening_waits_for_a_reader_without_a_write_ahead_log() {
    let (_folder, path) = new_path();
    SqliteSessions::open(&path).await.unwrap().close().await;
    let mut reader = raw(&path).await;
    execute(&mut reader, "PRAGMA journal_mode = DELETE").await;
    execute(&mut reader, "BEGIN; SELECT * FROM session").await;

    let opening = tokio::spawn(async move { SqliteSessions::open(&path).await });
    tokio::time::sleep(Duration::from_millis(200)).await;
    assert!(!opening.is_finished());
    execute(&mut reader, "COMMIT").await;
    opening.await.unwrap().unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_append_is_stored_completely_or_not_at_all() {
    let (_folder, sessions) = new_sessions().await;
    let session = sessions.session("shared");
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

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_pops_return_each_item_once() {
    let (_folder, sessions) = new_sessions().await;
    let session = sessions.session("shared");
    let items: Vec<Item> = (0..40).map(|n| Item::user(n.to_string())).collect();
    session.append(&items).await.unwrap();
    let tasks = (0..8).map(|_| {
        let session = session.clone();
        tokio::spawn(async move {
            let mut popped = Vec::new();
            while let Some(item) = session.pop().await.unwrap() {
                popped.push(item);
            }
            popped
        })
    });
    let mut popped = Vec::new();
    for task in tasks.collect::<Vec<_>>() {
        popped.extend(task.await.unwrap());
    }
    let number = |item: &Item| item.text().unwrap().parse::<u32>().unwrap();
    popped.sort_by_key(number);
    assert_eq!(popped, items);
}
