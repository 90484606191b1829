//! Handoffs that are refused or ignored in a streamed run.

use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use switchboard_core::handoff::HandoffDecision;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Runner, StreamEvent, handoff};

use super::{collect, to_json};

/// A run whose first response asks for three handoffs, the first of which is refused at first.
pub(super) fn several_handoffs() -> Runner {
    let (b, c): (Agent, Agent) = (Agent::new("B"), Agent::new("C"));
    let asked = AtomicUsize::new(0);
    let to_b = handoff(&b).on_handoff(move |_ctx| match asked.fetch_add(1, Ordering::SeqCst) {
        0 => HandoffDecision::refuse("B is closed."),
        _ => HandoffDecision::Proceed,
    });
    let a = Agent::new("A").handoff(to_b).handoff(&c);
    let model = ScriptedModel::new()
        .calls([
            ("transfer_to_b", r#"{"x":1}"#),
            ("transfer_to_c", ""),
            ("transfer_to_c", "not JSON"),
        ])
        .calls([("transfer_to_b", ""), ("transfer_to_c", r#"{"y":2}"#)])
        .say("Done.");
    Runner::new(&a).model(model)
}

fn handoff_events(events: &[StreamEvent]) -> Vec<Value> {
    let events = to_json(events).into_iter();
    events.filter(|event| event["type"] == "handoff").collect()
}

#[tokio::test]
async fn refused_and_ignored_handoffs_are_events_with_a_status_and_a_reason() {
    let mut stream = several_handoffs().stream("x");
    let events = collect(&mut stream).await;
    let ignored = "Multiple handoffs detected, ignoring this one.";
    assert_eq!(
        handoff_events(&events),
        [
            json!({
                "type": "handoff", "agent": "A", "turn": 1, "from": "A", "to": "B",
                "tool": "transfer_to_b", "call_id": "call_1", "payload": {"x": 1},
                "status": "refused", "reason": "B is closed.",
            }),
            json!({
                "type": "handoff", "agent": "A", "turn": 1, "from": "A", "to": "C",
                "tool": "transfer_to_c", "call_id": "call_2", "payload": {},
                "status": "ignored", "reason": ignored,
            }),
            json!({
                "type": "handoff", "agent": "A", "turn": 1, "from": "A", "to": "C",
                "tool": "transfer_to_c", "call_id": "call_3", "payload": "not JSON",
                "status": "ignored", "reason": ignored,
            }),
            json!({
                "type": "handoff", "agent": "A", "turn": 2, "from": "A", "to": "B",
                "tool": "transfer_to_b", "call_id": "call_4", "payload": {},
                "status": "taken", "carried_items": 11, "of_items": 11,
            }),
            json!({
                "type": "handoff", "agent": "A", "turn": 2, "from": "A", "to": "C",
                "tool": "transfer_to_c", "call_id": "call_5", "payload": {"y": 2},
                "status": "ignored", "reason": ignored,
            }),
        ]
    );
}

#[tokio::test]
async fn the_reason_in_an_event_is_the_output_of_the_call() {
    let mut stream = several_handoffs().stream("x");
    let events = collect(&mut stream).await;
    let result = stream.finish().await.unwrap();
    let items = result.to_input_list();
    for event in handoff_events(&events) {
        if event["status"] == "taken" {
            continue;
        }
        let output = items
            .iter()
            .find(|item| {
                item.output().is_some() && item.call_id().as_deref() == event["call_id"].as_str()
            })
            .and_then(|item| item.output());
        assert_eq!(output.as_deref(), event["reason"].as_str(), "{event}");
    }
}
