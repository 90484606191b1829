//! The corpus passes, and changes to it are found.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::path::{Path, PathBuf};

use conformance::corpus::{self, Options, Protocol};

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

#[test]
fn the_corpus_passes() {
    let mut failures = Vec::new();
    let tally = corpus::run(&cases(), Options::default(), &mut |failure| {
        failures.push(failure)
    })
    .unwrap();
    assert_eq!(failures, [""; 0]);
    assert_eq!((tally.passed, tally.failed, tally.skipped), (513, 0, 10));
}

#[test]
fn every_case_that_a_protocol_can_represent_passes_over_http() {
    for (protocol, passed, skipped) in [(Protocol::Responses, 414, 4), (Protocol::Chat, 264, 79)] {
        let mut failures = Vec::new();
        let options = Options {
            wire: Some(protocol),
            ..Options::default()
        };
        let tally = corpus::run(&cases(), options, &mut |failure| failures.push(failure)).unwrap();
        assert_eq!(failures, [""; 0]);
        let found = (tally.passed, tally.failed, tally.skipped);
        assert_eq!(found, (passed, 0, skipped), "{protocol:?}");
    }
}

#[test]
fn a_changed_value_fails_with_its_path_and_both_values() {
    let folder = std::env::temp_dir().join(format!("conformance-{}", std::process::id()));
    let runs = folder.join("runs");
    std::fs::create_dir_all(&runs).unwrap();
    let case = std::fs::read_to_string(cases().join("runs/triage_basic.json")).unwrap();
    let changed = case.replacen(
        "\"last_agent\": \"Billing agent\"",
        "\"last_agent\": \"Filling agent\"",
        1,
    );
    assert_ne!(case, changed);
    std::fs::write(runs.join("changed.json"), changed).unwrap();
    let mut failures = Vec::new();
    let tally = corpus::run(&folder, Options::default(), &mut |failure| {
        failures.push(failure)
    })
    .unwrap();
    std::fs::remove_dir_all(&folder).unwrap();
    assert_eq!((tally.passed, tally.failed), (0, 2));
    assert_eq!(
        failures[0],
        "FAILED triage_basic (plain): expect.last_agent: expected \"Filling agent\", got \"Billing agent\""
    );
}

#[test]
fn a_folder_without_a_corpus_is_an_error() {
    let error =
        corpus::run(Path::new("/nonexistent"), Options::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("no corpus here"), "{error}");
}
