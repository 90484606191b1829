//! Processes that are killed with signal 9 in the middle of many runs, one after the other.

use std::collections::BTreeMap;
use std::fs;

use switchboard_core::conversation::Conversations;
use switchboard_durable::{DurableRunner, Embedded};
use switchboard_sessions::SqliteStore;

use crate::child_process::{child, read_effects};
use crate::world::{Note, check_effects, outcome, runner, undisturbed};

/// The variable that asks for more runs.
const RUNS: &str = "SWITCHBOARD_KILLED_RUNS";

/// The number of kills, after which a process is left alone.
const MAX_KILLS: u64 = 400;

#[tokio::test]
async fn runs_go_on_after_their_process_was_killed() {
    let runs: u64 = std::env::var(RUNS)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(50);
    let folder = tempfile::tempdir().unwrap();
    let mut kills = 0;
    loop {
        let status = child(folder.path(), runs, kills).status().unwrap();
        if status.success() {
            break;
        }
        kills += 1;
        assert!(kills <= MAX_KILLS + 1, "a process that nobody kills fails");
    }
    assert!(kills > runs / 5, "only {kills} processes were killed");

    let path = folder.path().join("conversations.db");
    let store = Conversations::new(SqliteStore::open(&path).await.unwrap());
    let note: Note = std::sync::Arc::new(|_| {});
    let durable = DurableRunner::new(Embedded::new(store.clone()), runner(0, &note));
    let records = durable.list(None).await.unwrap();
    assert_eq!(records.len() as u64, runs);
    for record in &records {
        let seed: u64 = record.conversation.parse().unwrap();
        let (mut expected, _) = undisturbed(seed).await;
        let mut lines = outcome(&store, record).await;
        assert_eq!(lines.pop(), expected.pop(), "the status of seed {seed}");
        assert_eq!(lines, expected, "the history of seed {seed}");
        let asked = lines
            .iter()
            .filter(|line| line.contains("\"Hello\""))
            .count();
        assert!(asked <= 1, "the message of seed {seed} is stored once");
    }
    let mut effects: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for line in read_effects(folder.path()) {
        if let Some((seed, effect)) = line.split_once(' ') {
            effects
                .entry(seed.to_owned())
                .or_default()
                .push(effect.to_owned());
        }
    }
    assert!(!effects.is_empty());
    effects.values().for_each(|notes| check_effects(notes));
    fs::remove_file(path).unwrap();
}

#[must_use]
pub(crate) fn max_kills() -> u64 {
    MAX_KILLS
}
