//! Speech with flite and pocketsphinx.
//!
//! The tests of both need `flite`, and a Python with `pocketsphinx` that `SWITCHBOARD_PYTHON` names.

use std::time::Duration;

use futures_util::StreamExt as _;
use switchboard_core::agent::Knowledge;
use switchboard_core::{Agent, EventKind, Runner};
use switchboard_offline::OfflineModel;
use switchboard_realtime::voice::{
    Audio, BargeIn, Flite, Playback, PocketSphinx, SpeechRequest, SpeechToText as _,
    TextToSpeech as _, VoiceEventKind, VoicePipeline,
};

use crate::{all, run_events, short};

async fn spoken(flite: &Flite, text: &str) -> Result<Audio, String> {
    let mut audio = std::pin::pin!(flite.speak(SpeechRequest::new(text, "caller")));
    let audio = audio.next().await.expect("audio or an error");
    audio.map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_program_that_is_missing_is_named_with_advice() {
    let error = spoken(&Flite::new("/nowhere/flite"), "Hi.")
        .await
        .unwrap_err();
    assert!(error.contains("apt-get install flite"), "{error}");
    let hears = PocketSphinx::new("/nowhere/python");
    let error = hears.check().await.unwrap_err().to_string();
    assert!(error.contains("pip install pocketsphinx"), "{error}");
    assert!(error.contains("SWITCHBOARD_PYTHON"), "{error}");
}

#[cfg(unix)]
#[tokio::test]
async fn programs_that_fail_hang_or_answer_nonsense_are_errors() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = tempfile::tempdir().unwrap();
    let program = |name: &str, script: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        path
    };
    let limit = Duration::from_millis(300);
    for (name, script, expected) in [
        ("fails", "echo no voice >&2; exit 3", "no voice"),
        ("hangs", "exec sleep 60", "more than 0.3 seconds"),
        ("silent", "exit 0", "WAV file"),
    ] {
        let error = spoken(&Flite::new(program(name, script)).time_limit(limit), "Hi.").await;
        let error = error.unwrap_err();
        assert!(error.contains(expected), "{name}: {error}");
    }
    let second = Audio::silence(16_000, Duration::from_secs(1));
    for (name, script, expected) in [
        ("ends", "echo no module >&2; exit 1", "no module"),
        ("sleeps", "exec sleep 60", "more than 0.3 seconds"),
        ("babbles", "echo hello; exec sleep 60", "something else"),
        (
            "lacks",
            r#"echo '{"error": "x", "missing": true}'"#,
            "pip install pocketsphinx",
        ),
        (
            "breaks",
            r#"echo '{"ready": true}'; head -c 4 >/dev/null; exit 1"#,
            "pocketsphinx",
        ),
        (
            "refuses",
            r#"echo '{"ready": true}'; echo '{"error": "bad"}'; exec sleep 60"#,
            "failed: bad",
        ),
    ] {
        let hears = PocketSphinx::new(program(name, script)).time_limit(limit);
        let error = hears
            .transcribe(second.clone())
            .await
            .unwrap_err()
            .to_string();
        let is_expected = error.contains(expected) || error.contains("roken pipe");
        assert!(is_expected, "{name}: {error}");
    }
    let hears = PocketSphinx::new("python3");
    let long = Audio::silence(16_000, Duration::from_secs(121));
    let error = hears.transcribe(long).await.unwrap_err().to_string();
    assert!(error.contains("120 seconds"), "{error}");
}

#[tokio::test]
#[ignore = "needs flite, and SWITCHBOARD_PYTHON: a Python with pocketsphinx; ./test installs both"]
async fn a_spoken_request_is_handed_over_and_the_answer_is_understood() {
    let flite = Flite::from_env();
    let hears = PocketSphinx::from_env();
    hears.check().await.unwrap();
    let request = spoken(&flite, "my bill is wrong").await.unwrap();

    let billing: Agent = Agent::new("Billing")
        .handoff_description("Bills, invoices, charges and refunds.")
        .knowledge(Knowledge::new(
            "wrong bill",
            "We will send the money back to your account.",
        ));
    let technical = Agent::new("Technical")
        .handoff_description("Internet, connection and router problems.")
        .knowledge(Knowledge::new("slow internet", "Restart the router."));
    let triage = Agent::new("Triage").handoff(&billing).handoff(&technical);
    let runner = Runner::new(&triage).model(OfflineModel::new());
    let pipeline = VoicePipeline::new(runner, hears.clone(), flite)
        .voice("Billing", "slt")
        .barge_in(BargeIn::Wait)
        .playback(Playback::Instant);
    let (handle, session) = pipeline.open();
    let pause = Audio::silence(16_000, Duration::from_secs(1));
    handle.send_audio(pause.clone()).await.unwrap();
    handle.send_audio(request).await.unwrap();
    handle.send_audio(pause).await.unwrap();
    handle.close().await;
    let events = all(session).await;
    let lines = short(&events);
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("heard") && line.contains("bill")),
        "{lines:?}"
    );
    let handoff = run_events(&events).find_map(|event| match &event.kind {
        EventKind::Handoff(handoff) => Some((&*handoff.from, &*handoff.to)),
        _ => None,
    });
    assert_eq!(handoff, Some(("Triage", "Billing")), "{lines:?}");

    // The answer, as somebody who hears it would write it down.
    let samples = events.iter().filter_map(|event| match &event.kind {
        VoiceEventKind::Audio { audio, .. } => Some(audio.samples()),
        _ => None,
    });
    let answer = Audio::new(24_000, samples.flatten().copied().collect());
    let understood = hears.transcribe(answer).await.unwrap();
    for word in ["send", "money", "back"] {
        assert!(understood.contains(word), "{understood:?} lacks {word}");
    }
}
