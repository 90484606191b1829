//! Lost connections: the conversation is replayed, and no tool runs twice.

use std::time::Duration;

use bytes::Bytes;
use serde_json::{Value, json};
use switchboard_realtime::model::{
    RealtimeClose, RealtimeConnectionStatus, RealtimeModelCommand, RealtimeModelConfig,
    RealtimeModelErrorKind, RealtimeModelEvent, RealtimeModelPolicy, RealtimeModelSettings,
    RealtimeResponseStatus, RealtimeToolOutput,
};

use crate::support::{
    Line, call_done, response_created, response_done, session_created, settings, within,
};

/// Waits for the new connection.
async fn reconnected(line: &mut Line) {
    line.peer = within(line.server.connection()).await;
}

async fn status(line: &mut Line) -> RealtimeConnectionStatus {
    line.event_where(|event| match event {
        RealtimeModelEvent::ConnectionStatus(status) => Some(status),
        _ => None,
    })
    .await
}

fn items(frames: &[Value]) -> Vec<Value> {
    let created = frames
        .iter()
        .filter(|frame| frame["type"] == "conversation.item.create");
    created.map(|frame| frame["item"].clone()).collect()
}

fn user_item(id: &str, text: &str) -> Value {
    json!({"type": "conversation.item.added", "event_id": "e", "previous_item_id": null, "item": {
        "type": "message", "id": id, "role": "user", "status": "completed",
        "content": [{"type": "input_text", "text": text}],
    }})
}

#[tokio::test]
async fn a_session_that_lasted_too_long_goes_on_with_its_conversation() {
    let mut line = Line::open().await;
    line.sender
        .send(RealtimeModelCommand::say("Hello"))
        .await
        .unwrap();
    line.peer.send(&user_item("u1", "Hello"));
    line.peer.send(&response_created("r1"));
    line.peer.send(&json!({
        "type": "response.output_audio_transcript.delta", "event_id": "e", "response_id": "r1", "item_id": "a1",
        "output_index": 0, "content_index": 0, "delta": "Good ",
    }));
    line.peer.send(&json!({
        "type": "response.output_audio_transcript.delta", "event_id": "e", "response_id": "r1", "item_id": "a1",
        "output_index": 0, "content_index": 0, "delta": "morning!",
    }));
    line.peer.send(&response_done("r1"));
    line.settle().await;
    line.peer.close(1001, "session expired");
    let lost = status(&mut line).await;
    let close = Some(RealtimeClose {
        code: 1001,
        reason: "session expired".into(),
    });
    assert_eq!(
        lost,
        RealtimeConnectionStatus::Reconnecting { attempt: 1, close }
    );
    assert_eq!(
        status(&mut line).await,
        RealtimeConnectionStatus::Reconnected {
            dropped_audio_ms: 0
        }
    );
    reconnected(&mut line).await;
    line.settle().await;
    let frames = line.peer.frames();
    assert_eq!(frames[0]["type"], "session.update");
    assert_eq!(
        items(&frames),
        [
            json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hello"}], "id": "u1"}),
            json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Good morning!"}], "id": "a1"}),
        ]
    );
    // Nothing was being answered: nothing is asked for.
    assert!(
        frames
            .iter()
            .all(|frame| frame["type"] != "response.create")
    );
    line.server.assert_valid();
}

#[tokio::test]
async fn items_that_were_replayed_are_not_told_again() {
    let mut line = Line::open().await;
    line.peer.send(&user_item("u1", "Hello"));
    line.settle().await;
    line.peer.break_off();
    reconnected(&mut line).await;
    line.peer.send(&user_item("u1", "Hello"));
    line.peer.send(&user_item("u2", "More"));
    let mut told = Vec::new();
    while told.len() < 2 {
        if let RealtimeModelEvent::ItemUpdated(item) = line.event().await {
            told.push(item.item_id().to_string());
        }
    }
    // The first is that of the first connection.
    assert_eq!(told, ["u1", "u2"]);
}

#[tokio::test]
async fn a_tool_that_runs_while_the_connection_breaks_runs_once_and_is_answered() {
    let mut line = Line::open().await;
    line.peer.send(&session_created(&Value::Null));
    line.peer.send(&response_created("r1"));
    line.peer.send(&call_done("r1", "call_1", "slow"));
    let call = line
        .event_where(|event| match event {
            RealtimeModelEvent::ToolCall(call) => Some(call),
            _ => None,
        })
        .await;
    line.peer.break_off();
    let end = line
        .event_where(|event| match event {
            RealtimeModelEvent::TurnEnded(end) => Some(end),
            _ => None,
        })
        .await;
    assert_eq!(end.status, RealtimeResponseStatus::Incomplete);
    reconnected(&mut line).await;
    line.settle().await;
    // The call is in the conversation, and no response is asked for while it runs.
    let expected = json!({"type": "function_call", "call_id": "call_1", "name": "slow", "arguments": "{}", "id": "item_call_1"});
    assert_eq!(items(&line.peer.frames()), [expected]);
    assert!(!line.frame_types().contains(&"response.create".to_owned()));
    // A server that tells of the call again does not start it again.
    line.peer.send(&call_done("r9", "call_1", "slow"));
    line.settle().await;
    let output = RealtimeToolOutput {
        tool_call: call,
        output: "done".into(),
        start_response: true,
    };
    line.sender
        .send(RealtimeModelCommand::ToolOutput(output))
        .await
        .unwrap();
    line.settle().await;
    let frames = line.peer.frames();
    assert_eq!(items(&frames)[1]["output"], "done");
    assert_eq!(frames.last().unwrap()["type"], "response.create");
    line.peer.send(&response_created("r2"));
    let mut calls = 0;
    loop {
        match line.event().await {
            RealtimeModelEvent::ToolCall(_) => calls += 1,
            RealtimeModelEvent::TurnStarted { response_id }
                if response_id.as_deref() == Some("r2") =>
            {
                break;
            }
            _ => {}
        }
    }
    assert_eq!(calls, 0);
    line.server.assert_valid();
}

#[tokio::test]
async fn a_break_in_the_middle_of_a_handoff_keeps_the_new_settings_and_answers_the_call() {
    let mut line = Line::open().await;
    line.peer.send(&response_created("r1"));
    line.peer
        .send(&call_done("r1", "call_1", "transfer_to_billing"));
    let call = line
        .event_where(|event| match event {
            RealtimeModelEvent::ToolCall(call) => Some(call),
            _ => None,
        })
        .await;
    line.sender
        .send(RealtimeModelCommand::UpdateSession {
            settings: Box::new(RealtimeModelSettings {
                instructions: Some("You are Billing.".into()),
                ..RealtimeModelSettings::default()
            }),
            update_id: Some("handoff_1".into()),
        })
        .await
        .unwrap();
    // The connection breaks before the server has taken the update.
    line.server.refuse_with(Some(503));
    line.peer.break_off();
    assert!(matches!(
        status(&mut line).await,
        RealtimeConnectionStatus::Reconnecting { .. }
    ));
    let output = RealtimeToolOutput {
        tool_call: call,
        output: "{\"assistant\":\"Billing\"}".into(),
        start_response: true,
    };
    line.sender
        .send(RealtimeModelCommand::ToolOutput(output))
        .await
        .unwrap();
    line.server.refuse_with(None);
    reconnected(&mut line).await;
    line.settle().await;
    let frames = line.peer.frames();
    let kinds: Vec<&str> = frames
        .iter()
        .map(|frame| frame["type"].as_str().unwrap())
        .collect();
    assert_eq!(
        kinds,
        [
            "session.update",
            "conversation.item.create",
            "conversation.item.create",
            "response.create"
        ]
    );
    assert_eq!(frames[0]["session"]["instructions"], "You are Billing.");
    // The update counts as taken when the new session has taken it.
    line.peer.send(&json!({"type": "session.updated", "event_id": "e", "session": {"type": "realtime", "instructions": "You are Billing."}}));
    line.event_where(|event| match event {
        RealtimeModelEvent::SessionUpdated {
            update_id: Some(id),
        } if *id == *"handoff_1" => Some(()),
        _ => None,
    })
    .await;
    line.server.assert_valid();
}

#[tokio::test]
async fn audio_of_the_user_that_was_lost_is_counted() {
    let mut line = Line::open().await;
    line.server.refuse_with(Some(503));
    line.peer.break_off();
    assert!(matches!(
        status(&mut line).await,
        RealtimeConnectionStatus::Reconnecting { .. }
    ));
    let audio = Bytes::from(vec![0; 4_800]);
    line.sender
        .send(RealtimeModelCommand::Audio {
            audio,
            commit: false,
        })
        .await
        .unwrap();
    line.server.refuse_with(None);
    loop {
        match status(&mut line).await {
            RealtimeConnectionStatus::Reconnecting { .. } => {}
            reconnected => {
                assert_eq!(
                    reconnected,
                    RealtimeConnectionStatus::Reconnected {
                        dropped_audio_ms: 100
                    }
                );
                break;
            }
        }
    }
}

#[tokio::test]
async fn words_that_were_not_confirmed_are_said_again_and_answered() {
    let mut line = Line::open().await;
    line.sender
        .send(RealtimeModelCommand::say("Are you there?"))
        .await
        .unwrap();
    line.settle().await;
    line.peer.break_off();
    reconnected(&mut line).await;
    line.settle().await;
    let frames = line.peer.frames();
    assert_eq!(items(&frames)[0]["content"][0]["text"], "Are you there?");
    assert_eq!(frames.last().unwrap()["type"], "response.create");
}

#[tokio::test]
async fn a_server_that_refuses_for_good_ends_the_session() {
    let mut line = Line::open().await;
    line.server.refuse_with(Some(401));
    line.peer.break_off();
    let error = line
        .event_where(|event| match event {
            RealtimeModelEvent::Exception { error, .. } => Some(error),
            _ => None,
        })
        .await;
    assert_eq!(error.status(), Some(401));
    assert_eq!(line.server.handshakes().len(), 2);
    let error = line
        .sender
        .send(RealtimeModelCommand::say("Hello?"))
        .await
        .unwrap_err();
    assert_eq!(error.status(), Some(401));
}

#[tokio::test]
async fn a_storm_of_lost_connections_ends_after_the_attempts() {
    let mut line = Line::open().await;
    let mut attempts = Vec::new();
    let error = loop {
        // Every new connection breaks at once.
        line.peer.break_off();
        let outcome = line
            .event_where(|event| match event {
                RealtimeModelEvent::ConnectionStatus(RealtimeConnectionStatus::Reconnecting {
                    attempt,
                    ..
                }) => Some(Ok(attempt)),
                RealtimeModelEvent::Exception { error, .. } => Some(Err(error)),
                _ => None,
            })
            .await;
        match outcome {
            Ok(attempt) => attempts.push(attempt),
            Err(error) => break error,
        }
        reconnected(&mut line).await;
    };
    assert_eq!(attempts, [1, 2, 3, 4, 5, 6]);
    assert_eq!(error.kind(), RealtimeModelErrorKind::Transport);
    assert!(error.to_string().contains("6 attempts"), "{error}");
}

#[tokio::test]
async fn a_connection_that_lasted_begins_to_count_anew() {
    let mut settings = settings();
    if let Some(reconnection) = &mut settings.reconnection {
        reconnection.max_attempts = 1;
        reconnection.stable_after = Duration::ZERO;
    }
    let mut line = Line::with(RealtimeModelConfig::default(), settings).await;
    for _ in 0..4 {
        line.peer.break_off();
        reconnected(&mut line).await;
        line.settle().await;
    }
    assert_eq!(line.server.handshakes().len(), 5);
}

#[tokio::test]
async fn closing_while_it_connects_again_ends_at_once() {
    let mut line = Line::open().await;
    line.server.stay_silent(true);
    line.peer.break_off();
    assert!(matches!(
        status(&mut line).await,
        RealtimeConnectionStatus::Reconnecting { .. }
    ));
    within(line.sender.close()).await.unwrap();
    let error = line
        .sender
        .send(RealtimeModelCommand::say("Hello?"))
        .await
        .unwrap_err();
    assert_eq!(error.kind(), RealtimeModelErrorKind::NotConnected);
}

#[tokio::test]
async fn closes_that_would_be_repeated_end_the_session() {
    for code in [1003, 1007, 1008, 1009, 4000] {
        let mut line = Line::open().await;
        line.peer.close(code, "no");
        let error = line
            .event_where(|event| match event {
                RealtimeModelEvent::Exception { error, .. } => Some(error),
                _ => None,
            })
            .await;
        assert_eq!(error.close_code(), Some(code));
        assert_eq!(line.server.handshakes().len(), 1);
    }
}

#[tokio::test]
async fn the_reference_never_connects_again() {
    let mut line = Line::with_policy(RealtimeModelPolicy::reference()).await;
    line.peer.close(1001, "");
    let close = Some(RealtimeClose {
        code: 1001,
        reason: String::new(),
    });
    assert_eq!(
        status(&mut line).await,
        RealtimeConnectionStatus::Disconnected { close }
    );
    assert!(matches!(
        line.event().await,
        RealtimeModelEvent::EndOfStream
    ));
    assert_eq!(line.server.handshakes().len(), 1);
}
