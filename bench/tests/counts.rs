//! Allocation counts of runs. They are deterministic, unlike times, so that they can fail a build:
//! `bench/counts.json` has the expected counts, and more than 5 % above them fails.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use allocation_counter::AllocationInfo;
use bench::{HistoryOwner, LONG, ParkedRuns, Work, history};
use serde_json::{Value, json};

/// The variable to set in order to write the counts instead of comparing them.
const WRITE: &str = "BENCH_WRITE_COUNTS";

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/counts.json");

/// The maximum ratio to the expected count.
const TOLERANCE: f64 = 1.05;

fn cost(name: &str) -> AllocationInfo {
    let work = Work::named(name).unwrap();
    // The first run makes one-time allocations.
    work.run();
    allocation_counter::measure(|| work.run())
}

#[expect(clippy::cast_precision_loss, reason = "for a ratio")]
fn ratio(more: u64, less: u64) -> f64 {
    more as f64 / less as f64
}

#[test]
fn runs_allocate_no_more_than_expected() {
    let mut expected: Value =
        serde_json::from_str(&std::fs::read_to_string(FILE).unwrap()).unwrap();
    let write = std::env::var_os(WRITE).is_some();
    let mut exceeded = Vec::new();
    for name in Work::NAMES {
        let cost = cost(name);
        let counted = [
            ("allocations", cost.count_total),
            ("bytes", cost.bytes_total),
        ];
        for (what, count) in counted {
            let limit = expected[what][name].as_u64();
            if write {
                expected[what][name] = json!(count);
                continue;
            }
            match limit {
                Some(limit) if ratio(count, limit) > TOLERANCE => {
                    exceeded.push(format!("{name}: {count} {what}, expected {limit}"));
                }
                Some(_) => {}
                None => exceeded.push(format!("{name}: no {what} in bench/counts.json")),
            }
        }
    }
    if write {
        let text = serde_json::to_string_pretty(&expected).unwrap();
        std::fs::write(FILE, text + "\n").unwrap();
    }
    assert!(
        exceeded.is_empty(),
        "{}\nIf that is intended: {WRITE}=1 cargo test -p bench",
        exceeded.join("\n")
    );
}

#[test]
fn a_chain_of_handoffs_allocates_in_proportion_to_its_length() {
    let (short, long) = (cost("chain_100"), cost("chain_200"));
    assert!(ratio(long.count_total, short.count_total) < 2.05);
    assert!(
        ratio(long.bytes_total, short.bytes_total) < 2.2,
        "{short:?} {long:?}"
    );
}

#[test]
fn recording_every_request_does_not_copy_the_history() {
    for name in ["chain_200", "history_1000"] {
        let (plain, recorded) = (cost(name), cost(&format!("{name}_recorded")));
        // A recorded request costs a list segment, not the list.
        assert!(
            ratio(recorded.bytes_total, plain.bytes_total) < 1.3,
            "{plain:?} {recorded:?}"
        );
    }
}

#[test]
fn a_handoff_over_a_long_history_copies_none_of_it() {
    let items = history(LONG);
    let body: usize = items.iter().map(|item| item.as_json().len()).sum();
    for name in ["history_1000", "history_1000_without_tools"] {
        let cost = cost(name);
        let share = ratio(cost.bytes_total, body as u64);
        assert!(
            share < 0.1,
            "{name} allocates {share} of the history's bytes"
        );
        assert!(cost.count_total < 100, "{name}: {cost:?}");
    }
}

#[test]
fn a_parked_run_is_small() {
    let mut parked = None;
    let counted = allocation_counter::measure(|| {
        parked = Some(ParkedRuns::start(100, HistoryOwner::Shared));
    });
    // Includes the history, which is shared.
    let bytes = counted.bytes_current / 100;
    assert_eq!(parked.map(|parked| parked.len()), Some(100));
    assert!(bytes < 5_000, "{bytes} bytes");
}
