//! Processes that are killed with signal 9 in the middle of many runs, one after the other: before an effect, between an
//! effect and its entry in the journal, and after the entry.
//!
//! `SWITCHBOARD_KILLED_RUNS=1000 cargo test -p switchboard-durable --test durable killed` is the long form. Those on
//! servers need `crates/switchboard-sessions/tests/with-servers`.

use std::collections::BTreeMap;
use std::path::Path;

use switchboard_durable::RunStore;

use crate::child_process::{child, open, read_effects};
use crate::world::{check_against, noted, outcome};

/// The variable that asks for more runs.
const RUNS: &str = "SWITCHBOARD_KILLED_RUNS";

/// The number of kills for each run, after which a process is left alone.
const KILLS_PER_RUN: u64 = 8;

async fn check_killed(address: Option<&str>) {
    let runs: u64 = std::env::var(RUNS)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(50);
    let folder = tempfile::tempdir().unwrap();
    let mut kills = 0;
    loop {
        let status = child(folder.path(), address, runs, kills).status().unwrap();
        if status.success() {
            break;
        }
        kills += 1;
        assert!(
            kills <= max_kills(runs) + 1,
            "a process that nobody kills fails"
        );
    }
    assert!(kills > runs / 5, "only {kills} processes were killed");
    check_outcomes(folder.path(), address, runs).await;
    println!("{runs} runs, {kills} kills");
}

/// Compares runs with those that nothing interrupts, and checks their side effects.
pub(crate) async fn check_outcomes(folder: &Path, address: Option<&str>, runs: u64) {
    let mut effects: BTreeMap<u64, Vec<String>> = BTreeMap::new();
    for line in read_effects(folder) {
        // The last line of a process may be cut off.
        if let Some((seed, effect)) = line.split_once(' ')
            && let Ok(seed) = seed.parse()
        {
            effects.entry(seed).or_default().push(effect.to_owned());
        }
    }
    let store = open(folder, address).await;
    let records = RunStore::new(store.clone()).list(None).await.unwrap();
    assert_eq!(records.len() as u64, runs);
    for record in &records {
        let seed: u64 = record.conversation.parse().unwrap();
        let (mut expected, _, undisturbed) = noted(seed).await;
        let mut lines = outcome(&store, record).await;
        assert_eq!(lines.pop(), expected.pop(), "the status of seed {seed}");
        assert_eq!(lines, expected, "the history of seed {seed}");
        let is_message = |line: &&String| line.contains("\"Hello\"");
        let asked = lines.iter().filter(is_message).count();
        assert!(asked <= 1, "the message of seed {seed} is stored once");
        check_against(&effects[&seed], &undisturbed);
    }
}

/// The number of kills, after which a process is left alone.
pub(crate) fn max_kills(runs: u64) -> u64 {
    runs * KILLS_PER_RUN
}

#[tokio::test]
async fn runs_go_on_after_their_process_was_killed() {
    check_killed(None).await;
}

#[tokio::test]
#[ignore = "needs PostgreSQL; ./test starts one"]
async fn runs_in_postgres_go_on_after_their_process_was_killed() {
    let address = std::env::var("SWITCHBOARD_TEST_POSTGRES").unwrap();
    check_killed(Some(&address)).await;
}

#[tokio::test]
#[ignore = "needs Redis; ./test starts one"]
async fn runs_in_redis_go_on_after_their_process_was_killed() {
    let address = std::env::var("SWITCHBOARD_TEST_REDIS").unwrap();
    check_killed(Some(&address)).await;
}
