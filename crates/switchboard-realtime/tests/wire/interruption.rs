//! Interruptions: truncation at what was heard, cancelled responses, dropped audio.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use base64::Engine as _;
use fake_provider::RealtimeServer;
use serde_json::{Value, json};
use switchboard_realtime::model::{
    AudioPart, PlaybackTracker, RealtimeInterrupt, RealtimeModel as _, RealtimeModelCommand,
    RealtimeModelConfig, RealtimeModelErrorKind, RealtimeModelEvent,
};

use crate::support::{
    Line, audio, model, response_created, response_done, session_created, settings,
};

fn zeros(bytes: usize) -> String {
    base64::engine::general_purpose::STANDARD.encode(vec![0; bytes])
}

async fn with_tracker() -> (Line, PlaybackTracker) {
    let mut config = RealtimeModelConfig::default();
    let tracker = PlaybackTracker::new();
    config.playback = Some(tracker.clone());
    let line = Line::with(config, settings()).await;
    line.peer.send(&session_created(
        &json!({"type": "semantic_vad", "interrupt_response": true}),
    ));
    line.peer.send(&response_created("r1"));
    // 100 ms of audio.
    line.peer.send(&audio("r1", "item_a", &zeros(4_800)));
    line.settle().await;
    (line, tracker)
}

fn truncations(line: &Line) -> Vec<Value> {
    let frames = line.peer.frames();
    let truncations = frames
        .into_iter()
        .filter(|frame| frame["type"] == "conversation.item.truncate");
    truncations
        .map(|frame| json!([frame["item_id"], frame["audio_end_ms"]]))
        .collect()
}

fn interrupt(interrupt: RealtimeInterrupt) -> RealtimeModelCommand {
    RealtimeModelCommand::Interrupt(interrupt)
}

#[tokio::test]
async fn an_interruption_cuts_to_what_the_tracker_heard() {
    let (line, tracker) = with_tracker().await;
    tracker.played_ms("item_a", 0, 42.9);
    let events = line
        .sender
        .send(interrupt(RealtimeInterrupt::default()))
        .await
        .unwrap();
    let [RealtimeModelEvent::AudioInterrupted(part)] = &events[..] else {
        panic!("{events:?}");
    };
    assert_eq!(*part, AudioPart::new("item_a", 0));
    line.settle().await;
    assert_eq!(truncations(&line), [json!(["item_a", 42])]);
    assert_eq!(tracker.state(), None);
    // The server cancels by itself.
    assert!(!line.frame_types().contains(&"response.cancel".to_owned()));
    line.server.assert_valid();
}

#[tokio::test]
async fn the_server_hearing_the_user_cuts_with_rounding() {
    let (line, tracker) = with_tracker().await;
    tracker.played_ms("item_a", 0, 42.9);
    line.peer.send(&json!({
        "type": "input_audio_buffer.speech_started", "event_id": "e", "item_id": "u1", "audio_start_ms": 5,
    }));
    line.settle().await;
    assert_eq!(truncations(&line), [json!(["item_a", 43])]);
}

#[tokio::test]
async fn nothing_is_cut_beyond_what_was_received() {
    let (line, tracker) = with_tracker().await;
    tracker.played_ms("item_a", 0, 5_000.0);
    line.sender
        .send(interrupt(RealtimeInterrupt::default()))
        .await
        .unwrap();
    line.settle().await;
    assert_eq!(truncations(&line), [json!(["item_a", 100])]);
}

#[tokio::test]
async fn a_forced_interruption_cancels_as_well() {
    let (line, tracker) = with_tracker().await;
    tracker.played_ms("item_a", 0, 10.0);
    let forced = RealtimeInterrupt {
        force_response_cancel: true,
        ..RealtimeInterrupt::default()
    };
    line.sender.send(interrupt(forced.clone())).await.unwrap();
    line.sender.send(interrupt(forced)).await.unwrap();
    line.settle().await;
    let cancels = line
        .frame_types()
        .into_iter()
        .filter(|kind| kind == "response.cancel");
    assert_eq!(cancels.count(), 1);
    line.server.assert_valid();
}

#[tokio::test]
async fn an_interruption_of_one_response_drops_its_further_audio_only() {
    let mut line = Line::open().await;
    line.peer.send(&response_created("r1"));
    line.peer.send(&audio("r1", "item_a", &zeros(480)));
    line.settle().await;
    let one = RealtimeInterrupt {
        response_id: Some("r1".into()),
        force_response_cancel: true,
        ..RealtimeInterrupt::default()
    };
    line.sender.send(interrupt(one)).await.unwrap();
    line.peer.send(&audio("r1", "item_a", &zeros(480)));
    line.peer.send(&audio("r2", "item_b", &zeros(480)));
    line.peer.send(&response_done("r1"));
    let mut heard = Vec::new();
    loop {
        match line.event().await {
            RealtimeModelEvent::Audio(audio) => heard.push(audio.part.item_id.to_string()),
            RealtimeModelEvent::TurnEnded(_) => break,
            _ => {}
        }
    }
    assert_eq!(heard, ["item_a", "item_b"]);
    let cancel = line
        .peer
        .frames()
        .into_iter()
        .find(|frame| frame["type"] == "response.cancel");
    assert_eq!(cancel.unwrap()["response_id"], "r1");
}

#[tokio::test]
async fn without_a_tracker_the_clock_says_what_was_heard() {
    let server = RealtimeServer::start().await.unwrap();
    let time = Arc::new(AtomicU64::new(0));
    let clock = time.clone();
    let model = model(&server).clock(move || Duration::from_millis(clock.load(Ordering::SeqCst)));
    let (sender, events) = model
        .connect(RealtimeModelConfig::default())
        .await
        .unwrap()
        .split();
    let line = Line {
        peer: server.connection().await,
        server,
        sender,
        events,
    };
    line.peer.send(&response_created("r1"));
    line.peer.send(&audio("r1", "item_a", &zeros(48_000)));
    line.settle().await;
    time.store(250, Ordering::SeqCst);
    line.sender
        .send(interrupt(RealtimeInterrupt::default()))
        .await
        .unwrap();
    line.settle().await;
    assert_eq!(truncations(&line), [json!(["item_a", 250])]);
}

#[tokio::test]
async fn interruptions_that_contradict_themselves_are_errors() {
    let line = Line::open().await;
    for wrong in [
        RealtimeInterrupt {
            playback_only: true,
            force_response_cancel: true,
            ..Default::default()
        },
        RealtimeInterrupt {
            cancel_response_only: true,
            ..Default::default()
        },
    ] {
        let error = line.sender.send(interrupt(wrong)).await.unwrap_err();
        assert_eq!(error.kind(), RealtimeModelErrorKind::Configuration);
    }
}
