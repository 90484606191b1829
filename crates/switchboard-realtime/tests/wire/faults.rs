//! Servers that misbehave.

use std::time::Duration;

use base64::Engine as _;
use bytes::Bytes;
use fake_provider::RealtimeServer;
use futures_util::StreamExt as _;
use serde_json::json;
use switchboard_realtime::model::{
    RealtimeModel as _, RealtimeModelCommand, RealtimeModelConfig, RealtimeModelErrorKind,
    RealtimeModelEvent, RealtimeModelPolicy, RealtimeServerError,
};

use crate::support::{Line, audio, model, response_created, response_done, settings, within};

#[tokio::test]
async fn malformed_frames_are_told_and_the_session_goes_on() {
    let mut line = Line::open().await;
    for text in [
        "{not json",
        "",
        "[1, 2]",
        "\"text\"",
        "{}",
        r#"{"type": 7}"#,
        r#"{"type":"response.done"}"#,
    ] {
        line.peer.send_text(text);
        let event = line.event().await;
        assert!(
            matches!(
                event,
                RealtimeModelEvent::Error(RealtimeServerError::Unreadable(_))
            ),
            "{text}: {event:?}"
        );
    }
    line.peer.send(&response_created("r1"));
    assert!(matches!(
        line.event().await,
        RealtimeModelEvent::TurnStarted { .. }
    ));
}

#[tokio::test]
async fn with_the_reference_a_frame_that_is_not_json_is_an_exception() {
    let mut line = Line::with_policy(RealtimeModelPolicy::reference()).await;
    line.peer.send_text("{not json");
    let event = line.event().await;
    let RealtimeModelEvent::Exception { error, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(error.kind(), RealtimeModelErrorKind::Parse);
}

#[tokio::test]
async fn events_of_unknown_types_are_passed_on() {
    let mut line = Line::open().await;
    line.peer
        .send(&json!({"type": "response.sparkles", "glitter": true}));
    let event = line.event().await;
    assert!(
        matches!(&event, RealtimeModelEvent::Other(value) if value["glitter"] == true),
        "{event:?}"
    );
}

#[tokio::test]
async fn deep_json_and_lone_surrogates_do_no_harm() {
    let mut line = Line::open().await;
    let deep = format!("{}{}", "{\"a\":".repeat(100_000), "1");
    line.peer.send_text(&deep);
    assert!(matches!(line.event().await, RealtimeModelEvent::Error(_)));
    line.peer.send_text(
        r#"{"type":"response.output_text.delta","event_id":"e","response_id":"r","item_id":"i","output_index":0,"content_index":0,"delta":"a\ud800b"}"#,
    );
    let event = line.event().await;
    assert!(
        matches!(&event, RealtimeModelEvent::OutputTextDelta(delta) if delta.delta == "a\u{fffd}b"),
        "{event:?}"
    );
}

#[tokio::test]
async fn a_binary_frame_is_read_like_any_other() {
    let mut line = Line::open().await;
    line.peer
        .send_binary(response_created("r1").to_string().into_bytes());
    assert!(matches!(
        line.event().await,
        RealtimeModelEvent::TurnStarted { .. }
    ));
    line.peer.send_binary(vec![0xff, 0xfe]);
    assert!(matches!(line.event().await, RealtimeModelEvent::Error(_)));
}

#[tokio::test]
async fn a_frame_over_the_limit_ends_the_session_and_tells_what_to_do() {
    let mut settings = settings();
    settings.max_frame_bytes = 3_000;
    let mut line = Line::with(RealtimeModelConfig::default(), settings).await;
    line.peer.send(&audio("r1", "i", &"A".repeat(400)));
    assert!(matches!(line.event().await, RealtimeModelEvent::Audio(_)));
    line.peer.send(&audio("r1", "i", &"A".repeat(4_000)));
    let event = line.event().await;
    let RealtimeModelEvent::Exception { error, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(error.kind(), RealtimeModelErrorKind::Transport);
    assert!(error.to_string().contains("max_frame_bytes"), "{error}");
    assert_eq!(within(line.peer.ended()).await, 1009);
    assert!(within(line.events.next()).await.is_none());
}

#[tokio::test]
async fn a_hundred_megabytes_of_audio_arrive_in_bounded_memory() {
    let mut settings = settings();
    settings.max_waiting_bytes = 1 << 20;
    let mut line = Line::with(RealtimeModelConfig::default(), settings).await;
    let chunk = base64::engine::general_purpose::STANDARD.encode(vec![1; 1 << 20]);
    line.peer.send(&response_created("r1"));
    for _ in 0..100 {
        line.peer.send(&audio("r1", "item_a", &chunk));
    }
    line.peer.send(&response_done("r1"));
    // Nobody reads: commands still go through while the server is held up.
    tokio::time::sleep(Duration::from_millis(100)).await;
    within(line.sender.send(RealtimeModelCommand::say("Are you done?")))
        .await
        .unwrap();
    let mut bytes = 0;
    loop {
        match line.event().await {
            RealtimeModelEvent::Audio(audio) => bytes += audio.data.len(),
            RealtimeModelEvent::TurnEnded(_) => break,
            _ => {}
        }
    }
    assert_eq!(bytes, 100 << 20);
}

#[tokio::test]
async fn a_server_that_never_answers_the_handshake_is_given_up() {
    let server = RealtimeServer::start().await.unwrap();
    server.stay_silent(true);
    let mut settings = settings();
    settings.handshake_timeout = Duration::from_millis(50);
    let model = model(&server).connection(settings);
    let error = within(model.connect(RealtimeModelConfig::default()))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), RealtimeModelErrorKind::Timeout);
    assert!(error.to_string().contains("handshake_timeout"), "{error}");
}

#[tokio::test]
async fn a_server_that_never_answers_a_request_is_given_up() {
    let mut settings = settings();
    settings.answer_timeout = Some(Duration::from_millis(100));
    settings.reconnection = None;
    let mut line = Line::with(RealtimeModelConfig::default(), settings).await;
    line.peer
        .send(&json!({"type": "rate_limits.updated", "event_id": "e", "rate_limits": []}));
    line.settle().await;
    // Silence is no fault as long as nothing is asked.
    tokio::time::sleep(Duration::from_millis(200)).await;
    line.sender
        .send(RealtimeModelCommand::say("Hello?"))
        .await
        .unwrap();
    let event = line.event().await;
    let RealtimeModelEvent::Exception { error, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(error.kind(), RealtimeModelErrorKind::Timeout);
    assert!(error.to_string().contains("answer_timeout"), "{error}");
}

#[tokio::test]
async fn a_server_that_answers_no_pings_is_given_up() {
    let mut settings = settings();
    settings.ping_interval = Some(Duration::from_millis(20));
    settings.ping_timeout = Some(Duration::from_millis(50));
    settings.reconnection = None;
    let mut line = Line::with(RealtimeModelConfig::default(), settings).await;
    // As long as it reads, it answers.
    tokio::time::sleep(Duration::from_millis(150)).await;
    line.settle().await;
    line.peer.pause_reading(true);
    let event = line.event().await;
    let RealtimeModelEvent::Exception { error, .. } = event else {
        panic!("{event:?}");
    };
    assert_eq!(error.kind(), RealtimeModelErrorKind::Timeout);
    assert!(error.to_string().contains("ping"), "{error}");
}

#[tokio::test]
async fn a_server_that_takes_nothing_holds_senders_up_and_is_given_up() {
    let mut settings = settings();
    settings.write_timeout = Duration::from_millis(200);
    settings.reconnection = None;
    let line = Line::with(RealtimeModelConfig::default(), settings).await;
    line.peer.pause_reading(true);
    let flood = async {
        loop {
            let audio = Bytes::from(vec![0; 1 << 20]);
            let sent = line
                .sender
                .send(RealtimeModelCommand::Audio {
                    audio,
                    commit: false,
                })
                .await;
            if let Err(error) = sent {
                return error;
            }
        }
    };
    let error = within(flood).await;
    assert_eq!(error.kind(), RealtimeModelErrorKind::Timeout);
    assert!(error.to_string().contains("write_timeout"), "{error}");
}

#[tokio::test]
async fn the_server_closing_in_order_ends_the_events() {
    let mut line = Line::open().await;
    line.peer.close(1000, "bye");
    assert!(matches!(
        line.event().await,
        RealtimeModelEvent::ConnectionStatus(_)
    ));
    assert!(matches!(
        line.event().await,
        RealtimeModelEvent::EndOfStream
    ));
    assert!(within(line.events.next()).await.is_none());
    let error = line
        .sender
        .send(RealtimeModelCommand::say("two"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), RealtimeModelErrorKind::Transport);
    assert!(error.to_string().contains("bye"), "{error}");
}

#[tokio::test]
async fn closing_sends_a_normal_close() {
    let mut line = Line::open().await;
    within(line.sender.close()).await.unwrap();
    assert_eq!(within(line.peer.ended()).await, 1000);
    assert!(within(line.events.next()).await.is_none());
    let error = line
        .sender
        .send(RealtimeModelCommand::say("two"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), RealtimeModelErrorKind::NotConnected);
    within(line.sender.close()).await.unwrap();
}

#[tokio::test]
async fn dropping_both_sides_closes_the_connection() {
    let Line {
        peer,
        sender,
        events,
        server: _server,
    } = Line::open().await;
    drop(events);
    assert!(peer.ping().await);
    drop(sender);
    assert_eq!(within(peer.ended()).await, 1000);
}

#[tokio::test]
async fn a_reader_alone_keeps_the_connection() {
    let Line {
        peer,
        sender,
        mut events,
        server: _server,
    } = Line::open().await;
    drop(sender);
    peer.send(&response_created("r1"));
    assert!(matches!(
        within(events.next()).await,
        Some(RealtimeModelEvent::TurnStarted { .. })
    ));
    drop(events);
    assert_eq!(within(peer.ended()).await, 1000);
}
