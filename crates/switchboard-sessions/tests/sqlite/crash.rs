//! Processes that are killed while they write.

use std::io::{BufRead, BufReader};
use std::time::Duration;

use switchboard_core::Session;
use switchboard_sessions::SqliteSessions;

use crate::children::{child, child_with_little_room};
use crate::{batch, loaded, new_path, whole_batches};

/// Appends in a child that is killed some time after its first batch, and tells how many it had
/// said were stored.
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
async fn a_process_killed_in_mid_append_leaves_whole_batches_and_all_that_it_had_stored() {
    let (_folder, path) = new_path();
    let mut before = 0;
    for round in 0..12_u64 {
        let name = format!("round {round}");
        let after = Duration::from_millis(round * 13 % 60);
        let told = killed_while_appending(&name, &path, after);

        let sessions = SqliteSessions::open(&path).await.unwrap();
        let session = sessions.session("shared");
        let stored = whole_batches(&loaded(&session).await);
        let of_round: Vec<usize> = stored[before..].iter().map(|(_, number)| *number).collect();
        // The last one may have been stored without a chance to say so.
        assert!(
            (told..=told + 1).contains(&of_round.len()),
            "{told} {of_round:?}"
        );
        assert_eq!(of_round, (0..of_round.len()).collect::<Vec<_>>());
        // It goes on, and nobody's lock is left.
        session.append(&batch("parent", 0, 2)).await.unwrap();
        before = stored.len() + 1;
        sessions.close().await;
    }
}

#[tokio::test]
async fn a_process_killed_while_it_makes_the_file_leaves_one_that_opens() {
    for round in 0..25_u64 {
        let (_folder, path) = new_path();
        let mut child = child("append_forever", "a", &path).spawn().unwrap();
        while !path.exists() {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_micros(round * 300));
        child.kill().unwrap();
        child.wait().unwrap();

        let sessions = SqliteSessions::open(&path).await.unwrap();
        let session = sessions.session("shared");
        let stored = whole_batches(&loaded(&session).await).len();
        session.append(&batch("parent", 0, 2)).await.unwrap();
        assert_eq!(whole_batches(&loaded(&session).await).len(), stored + 1);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn where_no_more_can_be_written_whole_batches_stay_and_the_error_says_why() {
    let (_folder, path) = new_path();
    let mut child = child_with_little_room("append_until_it_fails", "a", &path, 400);
    let output = child.output().unwrap();
    let told = String::from_utf8(output.stderr).unwrap();
    let lines: Vec<&str> = told.lines().collect();
    assert!(output.status.success(), "{told}");
    let [stored, found, first, second] = lines[..] else {
        panic!("{told}")
    };
    // The limit of a process is not a full disk to SQLite.
    let refused = format!(
        "refused SessionError(Storage: sessions in {path:?}, session \"shared\": disk I/O error)"
    );
    assert_eq!([first, second], [&*refused, &*refused]);
    let stored: usize = stored.strip_prefix("stored ").unwrap().parse().unwrap();
    assert!(stored > 0);
    assert_eq!(found, format!("found {}", stored * 20));

    let sessions = SqliteSessions::open(&path).await.unwrap();
    let session = sessions.session("shared");
    session.append(&batch("parent", 0, 50)).await.unwrap();
    assert_eq!(whole_batches(&loaded(&session).await).len(), stored + 1);
}
