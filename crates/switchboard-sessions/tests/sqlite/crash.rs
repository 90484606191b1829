//! Processes that are killed while they write.
//!
//! `SWITCHBOARD_TEST_KILLS=200 cargo test -p switchboard-sessions --test sqlite killed` kills more of them.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use switchboard_core::Session;

use crate::child_process::{child, child_with_file_limit};
use crate::{batch, load_all, new_path, open, whole_batches};

/// The number of processes that a test kills.
fn kills() -> u64 {
    let kills = std::env::var("SWITCHBOARD_TEST_KILLS");
    kills.map_or(12, |kills| kills.parse().unwrap())
}

/// Appends in a child that is killed some time after its first batch. Returns the number of batches
/// that it printed as stored.
fn killed_while_appending(name: &str, path: &std::path::Path, after: Duration) -> usize {
    let mut child = child("append_forever", name, path).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    lines.find(|line| line.as_ref().unwrap().starts_with("stored"));
    std::thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap();
    1 + lines
        .filter(|line| line.as_ref().is_ok_and(|line| line.starts_with("stored")))
        .count()
}

#[tokio::test]
async fn a_process_killed_during_an_append_leaves_complete_batches() {
    let (_folder, path) = new_path();
    let mut before = 0;
    for round in 0..kills() {
        let name = format!("round {round}");
        let after = Duration::from_millis(round * 13 % 60);
        let reported = killed_while_appending(&name, &path, after);

        let conversations = open(&path).await.unwrap();
        let session = conversations.get("shared");
        let stored = whole_batches(&load_all(&session).await);
        let of_round: Vec<usize> = stored[before..].iter().map(|(_, number)| *number).collect();
        // The last one may have been stored but not printed.
        assert!(
            (reported..=reported + 1).contains(&of_round.len()),
            "{reported} {of_round:?}"
        );
        assert_eq!(of_round, (0..of_round.len()).collect::<Vec<_>>());
        // No lock is left.
        session.append(&batch("parent", 0, 2)).await.unwrap();
        before = stored.len() + 1;
        conversations.close().await;
    }
}

#[tokio::test]
async fn a_process_killed_while_several_tasks_append_keeps_all_that_was_reported() {
    let (_folder, path) = new_path();
    let mut before = [0; 8];
    for round in 0..kills() {
        let mut child = child("append_forever_from_several_tasks", "", &path)
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut reported = before;
        let mut count = |line: std::io::Result<String>| {
            let Ok(line) = line else {
                return false;
            };
            let Some(stored) = line.strip_prefix("stored ") else {
                return false;
            };
            // The last line may be incomplete.
            if let Some((task, number)) = stored.split_once(' ')
                && let (Ok(task), Ok(number)) = (task.parse::<usize>(), number.parse::<usize>())
            {
                reported[task] = reported[task].max(number + 1);
            }
            true
        };
        assert!(lines.by_ref().any(&mut count));
        std::thread::sleep(Duration::from_millis(round * 17 % 50));
        child.kill().unwrap();
        child.wait().unwrap();
        for line in lines {
            count(line);
        }

        let conversations = open(&path).await.unwrap();
        for (task, reported) in reported.into_iter().enumerate() {
            let items = load_all(&conversations.get(task.to_string())).await;
            let stored = whole_batches(&items);
            let numbers = stored.iter().map(|(_, number)| *number);
            assert!(numbers.eq(0..stored.len()), "{stored:?}");
            // The last one may have been stored but not printed.
            let is_expected = (reported..=reported + 1).contains(&stored.len());
            assert!(is_expected, "task {task}: {reported} {}", stored.len());
            before[task] = stored.len();
        }
        conversations.close().await;
    }
}

#[tokio::test]
async fn a_process_killed_while_it_creates_the_file_leaves_one_that_opens() {
    for round in 0..25_u64 {
        let (_folder, path) = new_path();
        let mut child = child("append_forever", "a", &path).spawn().unwrap();
        while !path.exists() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_micros(round * 300));
        child.kill().unwrap();
        child.wait().unwrap();

        let conversations = open(&path).await.unwrap();
        let session = conversations.get("shared");
        let stored = whole_batches(&load_all(&session).await).len();
        session.append(&batch("parent", 0, 2)).await.unwrap();
        assert_eq!(whole_batches(&load_all(&session).await).len(), stored + 1);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_failed_write_leaves_complete_batches_and_gives_the_reason() {
    let (_folder, path) = new_path();
    let mut child = child_with_file_limit("append_until_it_fails", "a", &path, 400);
    let output = child.output().unwrap();
    let reported = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = reported.lines().collect();
    assert!(output.status.success(), "{reported}");
    let [stored, found, first, second] = lines[..] else {
        panic!("{reported}")
    };
    // To SQLite, a file size limit is an I/O error and not a full disk.
    let refused = format!(
        "refused StoreError(Storage: conversations in {path:?}, conversation \"shared\": disk I/O error; \
         check that the disk works and has room)"
    );
    assert_eq!([first, second], [&*refused, &*refused]);
    let stored: usize = stored.strip_prefix("stored ").unwrap().parse().unwrap();
    assert!(stored > 0);
    assert_eq!(found, format!("found {}", stored * 20));

    let conversations = open(&path).await.unwrap();
    let session = conversations.get("shared");
    session.append(&batch("parent", 0, 50)).await.unwrap();
    assert_eq!(whole_batches(&load_all(&session).await).len(), stored + 1);
}
