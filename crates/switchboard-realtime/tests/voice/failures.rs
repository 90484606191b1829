//! Stages that fail or are slow.

use std::time::Duration;

use switchboard_core::testing::ScriptedModel;
use switchboard_realtime::testing::{ScriptedSpeechToText, ScriptedTextToSpeech, speech};
use switchboard_realtime::voice::{VoiceEventKind, VoicePipeline, VoiceStage};

use crate::{all, short, stored, team};

#[tokio::test(start_paused = true)]
async fn speech_that_cannot_be_written_down_is_told_and_the_session_goes_on() {
    let model = ScriptedModel::new().say("Yes.");
    let (runner, _) = team(&model);
    let hears = ScriptedSpeechToText::default()
        .fail("no ears")
        .then_after(Duration::from_secs(60), "too late")
        .then("hello");
    let pipeline = VoicePipeline::new(runner, hears, ScriptedTextToSpeech::new());
    let (handle, session) = pipeline.open();
    let sending = async {
        for _ in 0..3 {
            handle.send_audio(speech(16_000)).await.unwrap();
        }
        handle.close().await;
    };
    let (events, ()) = tokio::join!(all(session), sending);
    let failures: Vec<String> = events
        .iter()
        .filter_map(|event| match &event.kind {
            VoiceEventKind::Error(error) => {
                assert_eq!(error.stage(), VoiceStage::Transcription);
                Some(error.to_string())
            }
            _ => None,
        })
        .collect();
    assert_eq!(
        failures,
        [
            "the speech could not be written down: no ears",
            "the speech could not be written down: scripted speech to text took more than 30 seconds",
        ]
    );
    assert!(short(&events).contains(&"Triage: Yes.".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_cannot_be_spoken_is_kept_as_text() {
    let model = ScriptedModel::new().say("One. Two. Three.").say("Four.");
    let (runner, conversation) = team(&model);
    let speaks = ScriptedTextToSpeech::new().fail_at(1, "hoarse");
    let pipeline = VoicePipeline::new(runner, ScriptedSpeechToText::default(), speaks);
    let (handle, mut session) = pipeline.open();
    handle.send_text("count").await.unwrap();
    let mut events = Vec::new();
    while let Some(event) = session.next().await {
        let is_end = matches!(event.kind, VoiceEventKind::AnswerEnded);
        events.push(event);
        if is_end {
            break;
        }
    }
    assert_eq!(
        short(&events),
        [
            "Triage: One.",
            "audio",
            "Triage: Two.",
            "audio",
            "the answer could not be spoken: hoarse",
            "answer_ended",
        ]
    );
    // The next answer is spoken again.
    handle.send_text("more").await.unwrap();
    handle.close().await;
    let events = all(session).await;
    assert_eq!(short(&events), ["Triage: Four.", "audio", "answer_ended"]);
    let kept = stored(&conversation).await;
    assert_eq!(kept[1], "assistant: One. Two. Three.");
}

#[tokio::test(start_paused = true)]
async fn speech_that_is_too_slow_is_given_up() {
    let model = ScriptedModel::new().say("One. Two.");
    let (runner, _) = team(&model);
    let speaks = ScriptedTextToSpeech::new().delay(Duration::from_secs(90));
    let pipeline = VoicePipeline::new(runner, ScriptedSpeechToText::default(), speaks)
        .speech_timeout(Duration::from_secs(5));
    let (handle, session) = pipeline.open();
    handle.send_text("count").await.unwrap();
    handle.close().await;
    let began = tokio::time::Instant::now();
    assert_eq!(
        short(&all(session).await),
        [
            "Triage: One.",
            "the answer could not be spoken: scripted text to speech took more than 5 seconds",
            "answer_ended",
        ]
    );
    assert!(began.elapsed() < Duration::from_secs(7));
}

#[tokio::test(start_paused = true)]
async fn speech_without_an_end_is_cut_off() {
    struct Endless;
    impl switchboard_realtime::voice::TextToSpeech for Endless {
        fn speak(
            &self,
            _: switchboard_realtime::voice::SpeechRequest,
        ) -> impl futures_core::Stream<
            Item = Result<switchboard_realtime::voice::Audio, switchboard_core::callback::BoxError>,
        > + Send {
            let second = switchboard_realtime::voice::Audio::silence(8_000, Duration::from_secs(1));
            futures_util::stream::repeat_with(move || Ok(second.clone()))
        }
    }
    let (runner, _) = team(&ScriptedModel::new().say("One."));
    let pipeline = VoicePipeline::new(runner, ScriptedSpeechToText::default(), Endless)
        .playback(switchboard_realtime::voice::Playback::Instant);
    let (handle, session) = pipeline.open();
    handle.send_text("count").await.unwrap();
    handle.close().await;
    let events = all(session).await;
    assert!(crate::spoken(&events) < Duration::from_secs(185));
    let lines = short(&events);
    assert!(
        lines.iter().any(|line| line.contains("180 seconds")),
        "{lines:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn a_run_that_fails_is_told_and_the_caller_hears_words() {
    let model = ScriptedModel::new()
        .fail("no route to host")
        .say("Here again.");
    let (runner, conversation) = team(&model);
    let pipeline = VoicePipeline::new(
        runner,
        ScriptedSpeechToText::new(["hello", "hello again"]),
        ScriptedTextToSpeech::new(),
    )
    .barge_in(switchboard_realtime::voice::BargeIn::Wait)
    .failure_words("Please say that again.");
    let (handle, session) = pipeline.open();
    let sending = async {
        for _ in 0..2 {
            handle.send_audio(speech(16_000)).await.unwrap();
        }
        handle.close().await;
    };
    let (events, ()) = tokio::join!(all(session), sending);
    let lines = short(&events);
    assert!(
        lines[3].starts_with("the run failed: ") && lines[3].contains("no route"),
        "{lines:?}"
    );
    assert_eq!(lines[4], "Triage: Please say that again.");
    assert!(
        lines.contains(&"Triage: Here again.".to_owned()),
        "{lines:?}"
    );
    assert_eq!(
        stored(&conversation).await,
        ["user: hello again", "assistant: Here again."]
    );
}
