//! Many tasks and processes on one file.

use std::collections::BTreeMap;
use std::time::Duration;

use switchboard_core::{Item, Session};
use switchboard_sessions::SqliteSessions;

use crate::children::child;
use crate::{batch, execute, loaded, new_path, new_sessions, raw, whole_batches};

/// Every writer's batches are there, each once, whole, and in the order they were appended in.
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
    // Tasks that share sessions, and sessions that share the file.
    let opened = futures_util::future::join_all((0..3).map(|_| SqliteSessions::open(&path))).await;
    let opened: Vec<SqliteSessions> = opened.into_iter().map(Result::unwrap).collect();
    let tasks = (0..30).map(|task: usize| {
        let session = opened[task % opened.len()].session("shared");
        tokio::spawn(async move {
            for number in 0..5 {
                let items = batch(&task.to_string(), number, 1 + (task + number) % 5);
                session.append(&items).await.unwrap();
                // A reader sees whole batches at any time.
                whole_batches(&loaded(&session).await);
            }
        })
    });
    for task in tasks.collect::<Vec<_>>() {
        task.await.unwrap();
    }
    assert_nothing_lost(&loaded(&opened[0].session("shared")).await, 30, 5);
}

#[tokio::test]
async fn many_processes_lose_and_mix_nothing_on_a_file_that_each_may_make() {
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
    assert_nothing_lost(&loaded(&sessions.session("shared")).await, 20, 10);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_read_without_a_log_is_waited_for() {
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
async fn an_append_that_is_given_up_has_happened_or_not() {
    let (_folder, sessions) = new_sessions().await;
    let session = sessions.session("shared");
    for number in 0..100 {
        let items = batch("giver-up", number, 30);
        let patience = Duration::from_micros(number as u64 * 60);
        let _ = tokio::time::timeout(patience, session.append(&items)).await;
    }
    // The connection that was left in the middle is as good as new.
    session.append(&batch("stayer", 0, 3)).await.unwrap();
    let stored = whole_batches(&loaded(&session).await);
    assert_eq!(stored.last(), Some(&("stayer".to_owned(), 0)));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn items_popped_by_many_are_each_given_to_one() {
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
