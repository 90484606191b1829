//! Session updates and the server's answers to them.

use serde_json::{Value, json};
use switchboard_realtime::model::{
    RealtimeModelCommand, RealtimeModelEvent, RealtimeModelSettings, RealtimeServerError,
};

use crate::support::{Line, session_created};

fn update(instructions: &str, id: &str) -> RealtimeModelCommand {
    RealtimeModelCommand::UpdateSession {
        settings: Box::new(RealtimeModelSettings {
            instructions: Some(instructions.into()),
            ..RealtimeModelSettings::default()
        }),
        update_id: Some(id.into()),
    }
}

fn updated(instructions: Option<&str>) -> Value {
    json!({"type": "session.updated", "event_id": "e", "session": {"type": "realtime", "instructions": instructions}})
}

async fn answers(line: &mut Line, count: usize) -> Vec<(bool, Option<String>)> {
    let mut answers = Vec::new();
    while answers.len() < count {
        match line.event().await {
            RealtimeModelEvent::SessionUpdated { update_id } => {
                answers.push((true, update_id.map(|id| id.to_string())));
            }
            RealtimeModelEvent::SessionUpdateRefused { update_id, .. } => {
                answers.push((false, update_id.map(|id| id.to_string())));
            }
            _ => {}
        }
    }
    answers
}

#[tokio::test]
async fn the_trace_is_set_once_the_session_exists() {
    let line = Line::open().await;
    line.peer.send(&session_created(&Value::Null));
    line.settle().await;
    assert_eq!(
        line.peer.frames()[1]["session"],
        json!({
            "type": "realtime", "model": "gpt-realtime-2.1", "tracing": "auto",
        })
    );
    line.server.assert_valid();
}

#[tokio::test]
async fn updates_are_taken_in_order() {
    let mut line = Line::open().await;
    line.peer.send(&session_created(&Value::Null));
    line.settle().await;
    line.sender.send(update("B", "update_b")).await.unwrap();
    line.settle().await;
    // The first settings, the trace, and the update.
    for _ in 0..3 {
        line.peer.send(&updated(None));
    }
    let taken = answers(&mut line, 3).await;
    assert_eq!(
        taken,
        [
            (true, None),
            (true, None),
            (true, Some("update_b".to_owned()))
        ]
    );
}

#[tokio::test]
async fn the_instructions_that_a_server_reports_say_which_update_it_took() {
    let mut line = Line::open().await;
    line.sender.send(update("B", "update_b")).await.unwrap();
    line.sender.send(update("C", "update_c")).await.unwrap();
    line.settle().await;
    // This server answers only once.
    line.peer.send(&updated(Some("B")));
    assert_eq!(
        answers(&mut line, 2).await,
        [(true, None), (true, Some("update_b".to_owned()))]
    );
    line.peer.send(&updated(Some("C")));
    assert_eq!(
        answers(&mut line, 1).await,
        [(true, Some("update_c".to_owned()))]
    );
}

#[tokio::test]
async fn a_refused_update_is_told_with_the_reason() {
    let mut line = Line::open().await;
    line.peer.send(&updated(None));
    line.sender.send(update("B", "update_b")).await.unwrap();
    line.settle().await;
    line.peer
        .send(&json!({"type": "error", "event_id": "e", "error": {
            "type": "invalid_request_error", "message": "No such voice.", "event_id": "update_b",
        }}));
    let refused = line
        .event_where(|event| match event {
            RealtimeModelEvent::SessionUpdateRefused { update_id, error } => {
                Some((update_id, error))
            }
            _ => None,
        })
        .await;
    assert_eq!(refused.0.as_deref(), Some("update_b"));
    assert!(
        matches!(refused.1, RealtimeServerError::Reported(error) if error.message == "No such voice.")
    );
}
