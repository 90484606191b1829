//! Events as JSON.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::stream::{EventKind, STREAM_VERSION, StreamEvent};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Runner, tool};

use super::events::{Pieces, guarded, tool_handoff_and_answer};
use super::handoffs::several_handoffs;
use super::progress::ten_thousand_reports;
use super::{collect, type_of};

/// The events of runs that together have events of every kind.
async fn events_of_every_kind() -> Vec<StreamEvent> {
    let (reporting, all_read) = ten_thousand_reports();
    all_read.increment();
    let pieces: Agent = Agent::new("A").model(Pieces);
    let failing: Agent = Agent::new("A").model(ScriptedModel::new().fail("down"));
    // Items keep their bytes: numbers as they were written, and lone surrogates.
    let odd = r#"{"type":"reasoning","id":"rs","summary":[],"n":[1.0,1e2,"\ud800"],"n":0}"#;
    let odd: Agent = Agent::new("A").model(ScriptedModel::new().reply([
        Item::from_json(odd).unwrap(),
        Item::output_message("m", "\"quoted\" \\ \u{1F600} \u{0} {\"type\":\"x\"}"),
    ]));
    let mut events = Vec::new();
    for runner in [
        tool_handoff_and_answer(),
        several_handoffs(),
        guarded(),
        reporting,
        Runner::new(&pieces),
        Runner::new(&failing),
        Runner::new(&odd),
    ] {
        events.extend(collect(&mut runner.stream("Hi")).await);
    }
    let mut stopped = tool_handoff_and_answer().stream("Hi");
    stopped.stop_after_turn();
    events.extend(collect(&mut stopped).await);
    events
}

#[tokio::test]
async fn events_of_every_kind_survive_a_round_trip_through_json() {
    let events = events_of_every_kind().await;
    for event in &events {
        let text = serde_json::to_string(event).unwrap();
        let read: StreamEvent = serde_json::from_str(&text).unwrap();
        assert_eq!(read, *event, "{text}");
        assert_eq!(serde_json::to_string(&read).unwrap(), text);
    }
    let kinds: BTreeSet<String> = events.iter().map(type_of).collect();
    let expected = [
        "agent_updated",
        "arguments_delta",
        "guardrail",
        "handoff",
        "input_passed",
        "item",
        "model_retry",
        "raw",
        "reasoning_delta",
        "run_failed",
        "run_finished",
        "run_started",
        "run_stopped",
        "text_delta",
        "tool_ended",
        "tool_progress",
        "tool_started",
        "turn_started",
        "usage",
    ];
    assert_eq!(kinds, expected.map(str::to_owned).into());
}

#[test]
fn times_survive_a_round_trip_through_json() {
    let read = |json: &str| serde_json::from_str::<StreamEvent>(json).unwrap();
    let event = read(
        r#"{"type":"tool_ended","agent":"A","turn":1,"call_id":"c","tool":"t","arguments":{},"output":"","failed":false,"seconds":0.0}"#,
    );
    let nanoseconds = (1..2_000_u64).flat_map(|n| [n * 7_919, n * 7_919_000_003]);
    for nanoseconds in nanoseconds {
        let mut event = event.clone();
        let EventKind::ToolEnded { seconds, .. } = &mut event.kind else {
            panic!("{event:?}");
        };
        *seconds = Duration::from_nanos(nanoseconds).as_secs_f64();
        let text = serde_json::to_string(&event).unwrap();
        assert_eq!(read(&text), event, "{text}");
    }
}

#[tokio::test]
async fn deep_values_survive_a_round_trip_through_json() {
    let depth = 120;
    let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    let value: Value = serde_json::from_str(&deep).unwrap();
    let agent: Agent = Agent::new("A").tool(tool("t").run(move |_ctx, (): ()| value.clone()));
    let model = ScriptedModel::new()
        .call("t", &format!(r#"{{"x":{deep}}}"#))
        .say("ok");
    let mut stream = Runner::new(&agent).model(model).stream("x");
    for event in collect(&mut stream).await {
        let text = serde_json::to_string(&event).unwrap();
        let read: StreamEvent = serde_json::from_str(&text).unwrap();
        assert_eq!(read, event, "{text}");
    }
}

#[test]
fn an_event_of_an_unknown_type_is_read_as_unknown() {
    for json in [
        r#"{"type":"coffee_break","agent":"A","turn":2,"minutes":5}"#,
        r#"{"minutes":{"type":"text_delta"},"turn":2,"agent":"A","type":"coffee_break"}"#,
        r#"{"type":"unknown","agent":"A","turn":2}"#,
        r#"{"type":"\"} `x`","agent":"A","turn":2}"#,
    ] {
        let event: StreamEvent = serde_json::from_str(json).unwrap();
        assert!(matches!(event.kind, EventKind::Unknown(_)), "{json}");
        assert_eq!(serde_json::to_string(&event).unwrap(), json);
        assert_eq!((&*event.agent, event.turn), ("A", 2));
    }
}

#[test]
fn unknown_fields_are_ignored() {
    let read = |json: &str| serde_json::from_str::<StreamEvent>(json).unwrap();
    for (known, with_more) in [
        (
            r#"{"type":"turn_started","agent":"A","turn":1}"#,
            r#"{"type":"turn_started","agent":"A","turn":1,"mood":{"good":[true]}}"#,
        ),
        (
            r#"{"type":"text_delta","agent":"A","turn":1,"item":"m","text":"Hi"}"#,
            r#"{"mood":1,"item":"m","type":"text_delta","text":"Hi","agent":"A","turn":1}"#,
        ),
        (
            r#"{"type":"handoff","agent":"A","turn":1,"from":"A","to":"B","tool":"t","call_id":"c","payload":{},"status":"taken"}"#,
            r#"{"type":"handoff","agent":"A","turn":1,"from":"A","to":"B","tool":"t","call_id":"c","payload":{},"status":"taken","mood":1}"#,
        ),
    ] {
        assert_eq!(read(with_more), read(known));
    }
}

#[test]
fn an_event_without_a_type_or_with_wrong_fields_is_an_error() {
    for json in [
        r#"{"agent":"A","turn":1}"#,
        r#"{"type":"text_delta","turn":1,"item":"m","text":"Hi"}"#,
        r#"{"type":"text_delta","agent":"A","turn":1,"item":"m","text":7}"#,
        r#"{"type":"text_delta","agent":"A","turn":1,"item":"m"}"#,
        "[]",
        "",
    ] {
        assert!(serde_json::from_str::<StreamEvent>(json).is_err(), "{json}");
    }
}

#[tokio::test]
async fn the_first_event_has_the_version_of_the_json_form() {
    let stream = &mut tool_handoff_and_answer().stream("Hi");
    let first = serde_json::to_value(stream.next().await.unwrap()).unwrap();
    assert_eq!(first["version"], json!(STREAM_VERSION));
}
