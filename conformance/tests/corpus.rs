//! The corpus passes, and changes to it are found.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::path::{Path, PathBuf};

use conformance::corpus::{self, Options, Protocol, Tally};

fn cases() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
}

#[test]
fn the_corpus_passes_and_no_case_is_skipped() {
    let mut failures = Vec::new();
    let tally = corpus::run(&cases(), Options::default(), &mut |failure| {
        failures.push(failure)
    })
    .unwrap();
    assert_eq!(failures, [""; 0]);
    assert_eq!((tally.passed, tally.failed, tally.skipped), (1154, 0, 0));
    assert_eq!(tally.skips, [""; 0]);
}

#[test]
fn every_case_that_a_protocol_can_represent_passes_over_http() {
    for (protocol, passed, skipped) in [(Protocol::Responses, 634, 9), (Protocol::Chat, 484, 84)] {
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

/// Runs a copy of a file of the corpus in which a text is replaced once, in all cases whose name
/// contains `only`.
fn run_changed(file: &str, only: &str, from: &str, to: &str) -> (Tally, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let cases = std::fs::read_to_string(cases().join(file)).unwrap();
    let changed = cases.replacen(from, to, 1);
    assert!(cases != changed, "{from} is not in {file}");
    std::fs::write(path, changed).unwrap();
    let options = Options {
        only: Some(only),
        ..Options::default()
    };
    let mut failures = Vec::new();
    let tally = corpus::run(folder.path(), options, &mut |failure| {
        failures.push(failure)
    });
    (tally.unwrap(), failures)
}

#[test]
fn a_field_that_may_differ_is_not_compared_in_a_recorded_case() {
    for (field, passes) in [("log", false), ("final_output", true)] {
        let may_differ = format!(
            "\"may_differ\":[{{\"fields\":[\"{field}\"]}}],\"expect\":{{\"final_output\":\"Bye.\""
        );
        let from = "\"expect\":{\"final_output\":\"Hi.\"";
        let file = "recorded/sessions.json";
        let (tally, failures) =
            run_changed(file, "session_before_the_first_turn", from, &may_differ);
        let expected = if passes { (2, 0) } else { (0, 2) };
        assert_eq!((tally.passed, tally.failed), expected, "{failures:?}");
    }
}

#[test]
fn a_changed_value_fails_with_its_path_and_both_values() {
    let (tally, failures) = run_changed(
        "runs/triage_basic.json",
        "",
        "\"last_agent\": \"Billing agent\"",
        "\"last_agent\": \"Filling agent\"",
    );
    assert_eq!((tally.passed, tally.failed), (0, 2));
    assert_eq!(
        failures[0],
        "FAILED triage_basic (plain): expect.last_agent: expected \"Filling agent\", got \"Billing agent\""
    );
}

#[test]
fn a_run_in_stages_also_runs_with_its_state_stored_where_a_stage_follows() {
    let (tally, failures) = run_changed(
        "agent_tools.json",
        "no_session_inside",
        "\"final_output\":\"12 still.\"",
        "\"final_output\":\"13 now.\"",
    );
    assert_eq!((tally.passed, tally.failed), (0, 4));
    let difference = "expect.stages[1].final_output: expected \"13 now.\", got \"12 still.\"";
    let ways = ["plain", "plain, stored", "streamed", "streamed, stored"];
    let expected = ways.map(|way| format!("FAILED no_session_inside ({way}): {difference}"));
    assert_eq!(failures, expected);
}

#[test]
fn a_folder_without_a_corpus_is_an_error() {
    let error =
        corpus::run(Path::new("/nonexistent"), Options::default(), &mut |_| {}).unwrap_err();
    assert!(error.to_string().contains("no corpus here"), "{error}");
}
