//! Tools that run side by side in a streamed run.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::run::UnknownTool;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, Runner, tool};
use tokio::time::timeout;

use super::{Signal, collect, to_json};

/// The events of tools, in short: `[type, tool]`.
fn tool_events(events: &[Value]) -> Vec<Value> {
    events
        .iter()
        .filter(|event| event["type"].as_str().unwrap().starts_with("tool_"))
        .map(|event| json!([event["type"], event["tool"]]))
        .collect()
}

#[tokio::test]
async fn a_quick_tool_is_reported_before_a_slow_one_has_ended() {
    let quick_ended = Signal::default();
    let signal = quick_ended.clone();
    let slow = tool("slow").run(move |_ctx, (): ()| {
        let signal = signal.clone();
        async move {
            signal.wait_for(1).await;
            "slow"
        }
    });
    let agent: Agent = Agent::new("A")
        .tool(slow)
        .tool(tool("quick").run(|_ctx, (): ()| "quick"));
    let model = ScriptedModel::new()
        .calls([("slow", "{}"), ("quick", "{}")])
        .say("ok");
    let mut stream = Runner::new(&agent).model(model).stream("x");
    let mut events = Vec::new();
    let read = async {
        while let Some(event) = stream.next().await {
            if matches!(&event.kind, EventKind::ToolEnded { tool, .. } if &**tool == "quick") {
                quick_ended.increment();
            }
            events.push(event);
        }
    };
    timeout(Duration::from_secs(5), read).await.unwrap();
    assert_eq!(
        tool_events(&to_json(&events)),
        [
            json!(["tool_started", "slow"]),
            json!(["tool_started", "quick"]),
            json!(["tool_ended", "quick"]),
            json!(["tool_ended", "slow"]),
        ]
    );
    // The model gets the outputs in the order of the calls.
    let result = stream.finish().await.unwrap();
    assert_eq!(
        crate::described(&result.to_input_list())[3..5],
        ["output of call_1: slow", "output of call_2: quick"]
    );
}

#[tokio::test]
async fn tools_that_fail_or_do_not_exist_are_reported_as_failed() {
    let agent: Agent = Agent::new("A").tool(
        tool("broken")
            .failure_text(|_ctx, error| format!("Failed: {error}"))
            .run(|_ctx, (): ()| Err::<String, _>("no paper")),
    );
    let model = ScriptedModel::new()
        .calls([("broken", ""), ("missing", "not JSON")])
        .say("ok");
    let runner = Runner::new(&agent)
        .model(model)
        .unknown_tool(UnknownTool::TellModel);
    let mut stream = runner.stream("x");
    let events = to_json(&collect(&mut stream).await);
    let ended: Vec<_> = events
        .into_iter()
        .filter(|event| event["type"] == "tool_ended")
        .collect();
    assert_eq!(
        ended,
        [
            json!({
                "type": "tool_ended", "agent": "A", "turn": 1, "call_id": "call_1",
                "tool": "broken", "arguments": {}, "output": "Failed: no paper", "failed": true,
                "error": "no paper",
            }),
            json!({
                "type": "tool_ended", "agent": "A", "turn": 1, "call_id": "call_2",
                "tool": "missing", "arguments": "not JSON", "output": "Tool 'missing' not found.",
                "failed": true, "error": "Tool 'missing' not found.",
            }),
        ]
    );
}
