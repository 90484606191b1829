//! Runs that are encrypted or signed.

use proptest::prelude::*;
use serde_json::Value;
use switchboard_core::approval::Decision;
use switchboard_core::run::{StateError, StateErrorKind, StateLimits};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Run, Runner, tool};
use switchboard_sessions::{EncryptionErrorKind, Keys, RunSeal};

use super::first_key;

fn desk() -> Agent {
    Agent::new("Desk").tool(
        tool("refund")
            .needs_approval()
            .run(|_ctx, (): ()| "refunded"),
    )
}

/// A run that waits for a decision.
async fn waiting() -> Run {
    let model = ScriptedModel::new().call("refund", r#"{"secret":"hunter2"}"#);
    let result = Runner::new(&desk()).model(model).run("I am Ann").await;
    result.unwrap().into_run()
}

fn text(run: &Run) -> String {
    serde_json::to_string(run).unwrap()
}

fn opened(seal: &RunSeal, sealed: &str, place: &str) -> Result<String, EncryptionErrorKind> {
    let run = seal.open(sealed, place);
    run.map(|run| text(&run)).map_err(|error| error.kind())
}

#[tokio::test]
async fn a_sealed_run_is_opened_byte_for_byte_and_goes_on() {
    let run = waiting().await;
    let seal = RunSeal::new(first_key());
    let encrypted = seal.encrypt(&run, "customer").unwrap();
    let signed = seal.sign(&run, "customer").unwrap();
    for hidden in ["hunter2", "Ann", "Desk", "refund", "customer"] {
        assert!(!encrypted.contains(hidden), "{hidden}");
    }
    assert!(signed.contains("hunter2") && !signed.contains("customer"));
    // The same run twice gives other texts.
    assert_ne!(seal.encrypt(&run, "customer").unwrap(), encrypted);
    for sealed in [encrypted, signed] {
        let mut run = seal.open(&sealed, "customer").unwrap();
        assert_eq!(opened(&seal, &sealed, "customer"), Ok(text(&run)));
        for waiting in run.interruptions() {
            run.decide(&waiting, Decision::approve()).unwrap();
        }
        let runner = Runner::new(&desk()).model(ScriptedModel::new().say("Done."));
        assert_eq!(
            runner.resume(run.fork()).await.unwrap().final_text(),
            "Done."
        );
    }
}

#[tokio::test]
async fn a_run_is_not_opened_in_another_place_or_with_another_key() {
    let run = waiting().await;
    let seal = RunSeal::new(first_key());
    for sealed in [
        seal.encrypt(&run, "customer").unwrap(),
        seal.sign(&run, "customer").unwrap(),
    ] {
        for (seal, place, expected) in [
            (&seal, "somebody else", EncryptionErrorKind::Tampered),
            (&seal, "", EncryptionErrorKind::Tampered),
            (
                &RunSeal::new(Keys::new("first", [2; 32])),
                "customer",
                EncryptionErrorKind::WrongKey,
            ),
            (
                &RunSeal::new(Keys::new("second", [1; 32])),
                "customer",
                EncryptionErrorKind::MissingKey,
            ),
        ] {
            assert_eq!(opened(seal, &sealed, place), Err(expected));
        }
        let rotated = RunSeal::new(Keys::new("second", [2; 32]).and_older("first", [1; 32]));
        assert_eq!(opened(&rotated, &sealed, "customer"), Ok(text(&run)));
        let again = rotated.sign(&run, "customer").unwrap();
        assert_eq!(
            opened(&seal, &again, "customer"),
            Err(EncryptionErrorKind::MissingKey)
        );
    }
}

#[tokio::test]
async fn a_changed_signed_run_is_refused_also_if_it_reads_the_same() {
    let run = waiting().await;
    let seal = RunSeal::new(first_key());
    let signed = seal.sign(&run, "c").unwrap();
    for (from, to) in [
        (r#""is_needed":true"#, r#""is_needed":false"#),
        (r#""version":5"#, r#""version": 5"#),
        ("hunter2", "hunter3"),
    ] {
        assert!(signed.contains(from), "{from}");
        let changed = signed.replacen(from, to, 1);
        let error = opened(&seal, &changed, "c");
        assert_eq!(error, Err(EncryptionErrorKind::Tampered), "{from}");
    }
    // Parts of one in place of those of another.
    let mut value: Value = serde_json::from_str(&signed).unwrap();
    let other: Value = serde_json::from_str(&seal.encrypt(&run, "c").unwrap()).unwrap();
    let content = other["switchboard_sealed_run"]["content"].clone();
    let fields = value["switchboard_sealed_run"].as_object_mut().unwrap();
    fields.insert("content".to_owned(), content.clone());
    let both = value.to_string();
    assert_eq!(
        opened(&seal, &both, "c"),
        Err(EncryptionErrorKind::Tampered)
    );
    let fields = value["switchboard_sealed_run"].as_object_mut().unwrap();
    fields.remove("content");
    fields.insert("signature".to_owned(), content);
    let exchanged = value.to_string();
    assert_eq!(
        opened(&seal, &exchanged, "c"),
        Err(EncryptionErrorKind::Tampered)
    );
}

#[tokio::test]
async fn what_is_no_sealed_run_too_large_or_of_another_version_is_an_error_that_says_so() {
    let run = waiting().await;
    let seal = RunSeal::new(first_key());
    for plain in [
        text(&run).as_str(),
        "",
        "{}",
        "null",
        r#"{"switchboard_sealed_run":{}}"#,
    ] {
        assert_eq!(
            opened(&seal, plain, "c"),
            Err(EncryptionErrorKind::NotEncrypted),
            "{plain}"
        );
    }
    let sealed = seal.encrypt(&run, "c").unwrap();
    let newer = sealed.replacen(r#""version":1"#, r#""version":2"#, 1);
    let error = seal.open(&newer, "c").unwrap_err();
    assert_eq!(error.kind(), EncryptionErrorKind::NewerVersion);
    assert!(error.to_string().contains("version 2"), "{error}");

    let small = RunSeal::new(first_key()).limits(StateLimits::default().bytes(100));
    assert_eq!(
        opened(&small, &sealed, "c"),
        Err(EncryptionErrorKind::TooLarge)
    );
    // Within the limit as a text, and not as a run.
    let exact = StateLimits::default().bytes(text(&run).len() - 1);
    let error = RunSeal::new(first_key())
        .limits(exact)
        .open(&sealed, "c")
        .unwrap_err();
    assert_eq!(error.kind(), EncryptionErrorKind::InvalidRun);
    let source = std::error::Error::source(&error).unwrap();
    let source = source.downcast_ref::<StateError>().unwrap();
    assert_eq!(source.kind(), StateErrorKind::TooLarge);
    let debug = format!("{seal:?} {error:?}");
    assert!(
        !debug.contains("hunter2") && !debug.contains("[1, 1"),
        "{debug}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() })]

    #[test]
    fn no_change_of_a_byte_goes_unnoticed(
        at in any::<prop::sample::Index>(),
        by in 1..127_u8,
        is_encrypted in any::<bool>(),
    ) {
        let agent: Agent = Agent::new("Desk");
        let run = Runner::new(&agent).begin("Hi");
        let seal = RunSeal::new(first_key());
        let sealed = if is_encrypted { seal.encrypt(&run, "c") } else { seal.sign(&run, "c") };
        let mut bytes = sealed.unwrap().into_bytes();
        let at = at.index(bytes.len());
        bytes[at] = (bytes[at] + by) % 127;
        let changed = String::from_utf8(bytes).unwrap();
        if let Ok(opened) = seal.open(&changed, "c") {
            prop_assert_eq!(text(&opened), text(&run));
        }
    }
}
