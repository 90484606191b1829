//! Runs the conformance corpus against the engine.
//!
//! `cases/FORMAT.md` describes the corpus: scenarios with a scripted model, and everything the
//! reference did with them. A scenario is built from its JSON, run plain and streamed, and
//! what it did is written down in the corpus's own form; [`compare`] says where the two differ. Its
//! model is the script itself, or a client of a provider that answers from the script.

pub mod compare;
pub mod corpus;
mod models;
mod scenario;
mod tables;
mod types;
mod wire;
mod written;

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use fake_provider::Protocol;

    use crate::corpus::{self, Plan};

    fn cases() -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("cases")
    }

    #[test]
    fn the_corpus_passes() {
        let mut failures = Vec::new();
        let tally = corpus::run(&cases(), Plan::default(), &mut |failure| {
            failures.push(failure)
        })
        .unwrap();
        assert_eq!(failures, [""; 0]);
        assert_eq!((tally.passed, tally.failed, tally.skipped), (513, 0, 10));
    }

    #[test]
    fn every_case_a_protocol_can_carry_passes_over_the_wire() {
        for (protocol, passed, skipped) in
            [(Protocol::Responses, 414, 4), (Protocol::Chat, 264, 79)]
        {
            let mut failures = Vec::new();
            let plan = Plan {
                wire: Some(protocol),
                ..Plan::default()
            };
            let tally = corpus::run(&cases(), plan, &mut |failure| failures.push(failure)).unwrap();
            assert_eq!(failures, [""; 0]);
            let found = (tally.passed, tally.failed, tally.skipped);
            assert_eq!(found, (passed, 0, skipped), "{protocol:?}");
        }
    }

    #[test]
    fn a_changed_word_fails_with_its_path_and_both_values() {
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
        let tally = corpus::run(&folder, Plan::default(), &mut |failure| {
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
    fn a_folder_without_a_corpus_is_said_to_be_one() {
        let error =
            corpus::run(Path::new("/nonexistent"), Plan::default(), &mut |_| {}).unwrap_err();
        assert!(error.to_string().contains("no corpus here"), "{error}");
    }
}
