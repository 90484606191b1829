//! Progress reports of tools.

use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, RunStream, Runner, StreamEvent, Tool, ToolContext, tool};
use tokio::time::timeout;

use super::{Signal, to_json};

/// Runs an agent whose model calls this tool once.
fn runner(tool: Tool) -> Runner {
    let name = tool.name().to_owned();
    let agent: Agent = Agent::new("A").tool(tool);
    Runner::new(&agent).model(ScriptedModel::new().call(&name, "{}").say("ok"))
}

/// Reads a stream to its end, and calls `listen` with each event as it comes.
async fn listen(stream: &mut RunStream, mut listen: impl FnMut(&StreamEvent)) -> Vec<StreamEvent> {
    let mut events = Vec::new();
    let read = async {
        while let Some(event) = stream.next().await {
            listen(&event);
            events.push(event);
        }
    };
    timeout(Duration::from_secs(5), read).await.unwrap();
    events
}

/// The events of the tool, in their order.
fn tool_events(events: &[StreamEvent]) -> Vec<Value> {
    let events = to_json(events).into_iter();
    events
        .filter(|event| event["type"].as_str().unwrap().starts_with("tool_"))
        .collect()
}

#[tokio::test]
async fn reports_arrive_while_the_tool_runs() {
    let seen = Signal::default();
    let signal = seen.clone();
    let import = tool("import").run(move |ctx: ToolContext, (): ()| {
        let signal = signal.clone();
        async move {
            for files in 1..=2 {
                ctx.report_progress(json!({"files": files}));
                signal.wait_for(files).await;
            }
            "imported"
        }
    });
    let mut stream = runner(import).stream("x");
    let events = listen(&mut stream, |event| {
        if let EventKind::ToolProgress { .. } = event.kind {
            seen.increment();
        }
    })
    .await;
    assert_eq!(
        tool_events(&events),
        [
            json!({
                "type": "tool_started", "agent": "A", "turn": 1, "call_id": "call_1",
                "tool": "import", "arguments": {},
            }),
            json!({
                "type": "tool_progress", "agent": "A", "turn": 1, "call_id": "call_1",
                "tool": "import", "progress": {"files": 1},
            }),
            json!({
                "type": "tool_progress", "agent": "A", "turn": 1, "call_id": "call_1",
                "tool": "import", "progress": {"files": 2},
            }),
            json!({
                "type": "tool_ended", "agent": "A", "turn": 1, "call_id": "call_1",
                "tool": "import", "arguments": {}, "output": "imported", "failed": false,
            }),
        ]
    );
}

#[tokio::test]
async fn reports_of_another_task_wake_the_listener() {
    let import = tool("import").run(|ctx: ToolContext, (): ()| async move {
        let reporter = ctx.clone();
        let work = tokio::spawn(async move {
            for percent in [50, 100] {
                tokio::time::sleep(Duration::from_millis(5)).await;
                reporter.report_progress(percent);
            }
        });
        work.await.unwrap();
        "imported"
    });
    let mut stream = runner(import).stream("x");
    let events = listen(&mut stream, |_| {}).await;
    assert_eq!(progress(&events), [(json!(50), 0), (json!(100), 0)]);
}

/// The progress reports and the number of those dropped before each.
fn progress(events: &[StreamEvent]) -> Vec<(Value, u64)> {
    let report = |event: &StreamEvent| match &event.kind {
        EventKind::ToolProgress {
            progress, dropped, ..
        } => Some((progress.clone(), *dropped)),
        _ => None,
    };
    events.iter().filter_map(report).collect()
}

/// A run whose tool reports 10,000 times at once, and again when the listener has read all of it.
/// The signal is for the listener to increment then.
pub(super) fn ten_thousand_reports() -> (Runner, Signal) {
    let all_read = Signal::default();
    let signal = all_read.clone();
    let count = tool("count").run(move |ctx: ToolContext, (): ()| {
        let signal = signal.clone();
        async move {
            for n in 0..10_000 {
                ctx.report_progress(n);
            }
            signal.wait_for(1).await;
            ctx.report_progress("last");
            ctx.report_progress("very last");
            "counted"
        }
    });
    (runner(count), all_read)
}

#[tokio::test]
async fn reports_that_are_not_read_are_dropped_and_counted() {
    let (runner, all_read) = ten_thousand_reports();
    let mut stream = runner.stream("x");
    let events = listen(&mut stream, |event| {
        if matches!(&event.kind, EventKind::ToolProgress { progress, .. } if *progress == 255) {
            all_read.increment();
        }
    })
    .await;
    let mut expected: Vec<(Value, u64)> = (0..256).map(|n| (json!(n), 0)).collect();
    expected.push((json!("last"), 10_000 - 256));
    expected.push((json!("very last"), 0));
    assert_eq!(progress(&events), expected);
}

#[tokio::test]
async fn reports_of_a_run_that_is_not_streamed_are_ignored() {
    let import = tool("import").run(|ctx: ToolContext, (): ()| {
        ctx.report_progress("half");
        "imported"
    });
    let result = runner(import).run("x").await.unwrap();
    assert_eq!(result.final_text(), "ok");
}
