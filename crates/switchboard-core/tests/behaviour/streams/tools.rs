//! Tools that run side by side in a streamed run.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::guardrail::{ToolGuardrail, ToolVerdict};
use switchboard_core::hooks::{HookResult, RunHooks, ToolEnd};
use switchboard_core::run::UnknownTool;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, RunContext, RunStream, Runner, Tool, ToolContext, tool};
use tokio::time::timeout;

use super::{Signal, collect, to_json};
use crate::stored;

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

/// An agent with a tool that takes a while.
fn agent_with_slow_tool(guardrail: Option<ToolGuardrail>) -> Agent {
    let slow = tool("slow").run(|_ctx, (): ()| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        "done"
    });
    let agent = Agent::new("A").tool(slow);
    match guardrail {
        Some(guardrail) => agent.tool_guardrail(guardrail),
        None => agent,
    }
}

/// The tools that ended in the rest of a stream, and whether they took any time.
async fn ended(stream: &mut RunStream) -> Vec<(String, bool)> {
    let events = collect(stream).await.into_iter();
    let ended = events.filter_map(|event| match event.kind {
        EventKind::ToolEnded { tool, seconds, .. } => Some((tool.to_string(), seconds > 0.001)),
        _ => None,
    });
    ended.collect()
}

/// Hooks that fail at the first end of a tool.
#[derive(Default)]
struct FailsAtToolEnd(AtomicUsize);

impl RunHooks for FailsAtToolEnd {
    async fn on_tool_end(
        &self,
        _ctx: &RunContext,
        _agent: &Agent,
        _tool: &Tool,
        _call: &ToolContext,
        end: &ToolEnd<'_>,
    ) -> HookResult {
        assert!(end.duration > Duration::from_millis(1));
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Err("not yet".into()),
            _ => Ok(()),
        }
    }
}

#[tokio::test]
async fn the_end_of_a_tool_is_reported_once_also_if_a_hook_fails_and_the_run_is_resumed() {
    let agent = agent_with_slow_tool(None);
    for first_is_streamed in [true, false] {
        let model = ScriptedModel::new().call("slow", "{}").say("ok");
        let runner = Runner::new(&agent)
            .model(model)
            .hooks(FailsAtToolEnd::default());
        let slow = || vec![("slow".to_owned(), true)];
        let (error, before, after) = if first_is_streamed {
            let mut stream = runner.stream("x");
            let before = ended(&mut stream).await;
            (stream.finish().await.unwrap_err(), (before, slow()), vec![])
        } else {
            // Nobody has listened to the first attempt.
            let error = runner.run("x").await.unwrap_err();
            (error, (vec![], vec![]), slow())
        };
        assert_eq!(before.0, before.1);
        let mut resumed = runner.resume_stream(stored(error.run().unwrap())).unwrap();
        assert_eq!(ended(&mut resumed).await, after);
        assert_eq!(resumed.finish().await.unwrap().final_text(), "ok");
    }
}

#[tokio::test]
async fn a_tool_whose_output_is_checked_again_is_reported_with_the_time_it_took() {
    let asked = AtomicUsize::new(0);
    let trips = ToolGuardrail::on_output("trips", move |_ctx: ToolContext, _output| {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => ToolVerdict::trip("not yet"),
            _ => ToolVerdict::Allow,
        }
    });
    let agent = agent_with_slow_tool(Some(trips));
    let model = ScriptedModel::new().call("slow", "{}").say("ok");
    let runner = Runner::new(&agent).model(model);
    let mut stream = runner.stream("x");
    assert_eq!(ended(&mut stream).await, []);
    let error = stream.finish().await.unwrap_err();
    let mut resumed = runner.resume_stream(stored(error.run().unwrap())).unwrap();
    assert_eq!(ended(&mut resumed).await, [("slow".to_owned(), true)]);
}
