//! The order of responses.

use serde_json::json;
use switchboard_realtime::model::{
    RealtimeModelCommand, RealtimeModelEvent, RealtimeModelPolicy, RealtimeResponseStatus,
    RealtimeToolCall, RealtimeToolOutput,
};

use crate::support::{Line, call_done, response_created, response_done};

fn output(call: RealtimeToolCall, text: &str) -> RealtimeModelCommand {
    RealtimeModelCommand::ToolOutput(RealtimeToolOutput {
        tool_call: call,
        output: text.into(),
        start_response: true,
    })
}

async fn next_call(line: &mut Line) -> RealtimeToolCall {
    line.event_where(|event| match event {
        RealtimeModelEvent::ToolCall(call) => Some(call),
        _ => None,
    })
    .await
}

#[tokio::test]
async fn parallel_calls_share_one_response() {
    let mut line = Line::open().await;
    line.peer.send(&response_created("r1"));
    line.peer.send(&call_done("r1", "call_1", "clock"));
    line.peer.send(&call_done("r1", "call_2", "clock"));
    let first = next_call(&mut line).await;
    let second = next_call(&mut line).await;
    assert_eq!(first.response_id.as_deref(), Some("r1"));
    line.sender.send(output(second, "two")).await.unwrap();
    line.sender.send(output(first, "one")).await.unwrap();
    line.settle().await;
    assert_eq!(line.frame_types(), ["conversation.item.create"; 2]);
    line.peer.send(&response_done("r1"));
    line.settle().await;
    assert_eq!(
        line.frame_types(),
        [
            "conversation.item.create",
            "conversation.item.create",
            "response.create"
        ]
    );
    line.server.assert_valid();
}

#[tokio::test]
async fn the_end_of_another_response_frees_nothing() {
    let line = Line::open().await;
    line.peer.send(&response_created("r1"));
    line.settle().await;
    line.sender
        .send(RealtimeModelCommand::say("one"))
        .await
        .unwrap();
    line.peer.send(&response_done("r0"));
    line.settle().await;
    assert_eq!(line.frame_types(), ["conversation.item.create"]);
    line.peer.send(&response_done("r1"));
    line.settle().await;
    assert_eq!(
        line.frame_types(),
        ["conversation.item.create", "response.create"]
    );
}

fn collision(event_id: &serde_json::Value) -> serde_json::Value {
    json!({"type": "error", "event_id": "e", "error": {
        "type": "invalid_request_error", "code": "conversation_already_has_active_response",
        "message": "Conversation already has an active response in progress: resp_vad.", "event_id": event_id,
    }})
}

#[tokio::test]
async fn a_response_refused_because_one_was_active_is_asked_for_again() {
    let line = Line::open().await;
    line.sender
        .send(RealtimeModelCommand::say("one"))
        .await
        .unwrap();
    line.settle().await;
    let event_id = line.peer.frames()[2]["event_id"].clone();
    // The server's own response begins before the request arrives.
    line.peer.send(&response_created("resp_vad"));
    line.peer.send(&collision(&event_id));
    line.settle().await;
    assert_eq!(line.frame_types().len(), 2);
    line.peer.send(&response_done("resp_vad"));
    line.settle().await;
    assert_eq!(
        line.frame_types(),
        [
            "conversation.item.create",
            "response.create",
            "response.create"
        ]
    );
}

#[tokio::test]
async fn it_is_asked_for_again_also_if_the_error_names_nothing_and_comes_first() {
    let line = Line::open().await;
    line.sender
        .send(RealtimeModelCommand::say("one"))
        .await
        .unwrap();
    line.settle().await;
    line.peer.send(&collision(&serde_json::Value::Null));
    line.peer.send(&response_created("resp_vad"));
    line.settle().await;
    assert_eq!(line.frame_types().len(), 2);
    line.peer.send(&response_done("resp_vad"));
    line.settle().await;
    assert_eq!(line.frame_types().len(), 3);
}

#[tokio::test]
async fn the_reference_never_asks_again() {
    let line = Line::with_policy(RealtimeModelPolicy::reference()).await;
    line.sender
        .send(RealtimeModelCommand::say("one"))
        .await
        .unwrap();
    line.settle().await;
    let event_id = line.peer.frames()[2]["event_id"].clone();
    line.peer.send(&response_created("resp_vad"));
    line.peer.send(&collision(&event_id));
    line.peer.send(&response_done("resp_vad"));
    line.settle().await;
    assert_eq!(line.frame_types().len(), 2);
}

#[tokio::test]
async fn a_refused_request_frees_the_way_for_the_next() {
    let line = Line::open().await;
    line.sender
        .send(RealtimeModelCommand::say("one"))
        .await
        .unwrap();
    line.sender
        .send(RealtimeModelCommand::say("two"))
        .await
        .unwrap();
    line.settle().await;
    let event_id = line.peer.frames()[2]["event_id"].clone();
    assert_eq!(line.frame_types().len(), 3);
    line.peer
        .send(&json!({"type": "error", "event_id": "e", "error": {
            "type": "invalid_request_error", "message": "The model is busy.", "event_id": event_id,
        }}));
    line.settle().await;
    assert_eq!(line.frame_types()[3..], ["response.create"]);
}

#[tokio::test]
async fn a_repeated_call_is_passed_on_once() {
    let mut line = Line::open().await;
    line.peer.send(&response_created("r1"));
    line.peer.send(&call_done("r1", "call_1", "clock"));
    line.peer.send(&call_done("r1", "call_1", "clock"));
    line.peer.send(&response_done("r1"));
    let mut calls = 0;
    line.settle().await;
    loop {
        match line.event().await {
            RealtimeModelEvent::ToolCall(_) => calls += 1,
            RealtimeModelEvent::TurnEnded(_) => break,
            _ => {}
        }
    }
    assert_eq!(calls, 1);
}

#[tokio::test]
async fn failed_and_incomplete_responses_are_told_with_their_reason() {
    let mut line = Line::open().await;
    for (status, expected) in [
        ("failed", RealtimeResponseStatus::Failed),
        ("incomplete", RealtimeResponseStatus::Incomplete),
        ("cancelled", RealtimeResponseStatus::Cancelled),
    ] {
        let details = json!({"type": status, "reason": "max_output_tokens"});
        line.peer.send(&response_created("r1"));
        line.peer.send(
            &json!({"type": "response.done", "event_id": "e", "response": {
                "id": "r1", "status": status, "status_details": details,
            }}),
        );
        let end = line
            .event_where(|event| match event {
                RealtimeModelEvent::TurnEnded(end) => Some(end),
                _ => None,
            })
            .await;
        assert_eq!(end.status, expected);
        assert_eq!(end.details.as_deref(), Some(&details));
    }
}
