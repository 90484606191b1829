//! Tools that completed in a turn that then failed: kept in the session, the stream and the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use switchboard_core::agent::ToolUseBehavior;
use switchboard_core::guardrail::{ToolGuardrail, ToolVerdict};
use switchboard_core::stream::ItemEvent;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, Item, MemorySession, Runner, Session, Tool, tool};

use crate::tool_failures::Hooks;
use crate::{described, stored};

/// A tool that counts its calls.
fn refund(calls: &Arc<AtomicUsize>) -> Tool {
    let calls = calls.clone();
    tool("refund").run(move |_ctx, (): ()| {
        calls.fetch_add(1, Ordering::SeqCst);
        "refunded"
    })
}

fn reasoning(id: &str) -> Item {
    let json = json!({"type": "reasoning", "id": id, "summary": []});
    Item::from_json(json.to_string()).unwrap()
}

const KEPT: [&str; 4] = [
    "user: x",
    "reasoning",
    "call refund",
    "output of c1: refunded",
];

/// A tool has completed also if the hook on its end fails.
const BOTH_KEPT: [&str; 7] = [
    "user: x",
    "reasoning",
    "call refund",
    "reasoning",
    "call other",
    "output of c1: refunded",
    "output of c2: done",
];

/// The items of a session in short.
async fn in_session(session: &MemorySession) -> Vec<String> {
    let items = session.load(None).await.unwrap();
    let mut described = described(&items);
    for text in &mut described {
        if text.contains("\"reasoning\"") {
            *text = "reasoning".to_owned();
        }
    }
    described
}

#[tokio::test]
async fn a_tool_that_completed_is_kept_whatever_happens_to_its_sibling() {
    let on_call = ToolGuardrail::on_call("no", |_ctx| ToolVerdict::trip("no"));
    let on_output = ToolGuardrail::on_output("no", |_ctx, _output| ToolVerdict::trip("no"));
    let plain = tool::<()>("other");
    for (what, other, hooks) in [
        (
            "guardrail on the call",
            plain.guardrail(on_call),
            Hooks::default(),
        ),
        (
            "guardrail on the output",
            tool("other").guardrail(on_output),
            Hooks::default(),
        ),
        (
            "hook",
            tool("other"),
            Hooks {
                fails_at_end_of: Some("other"),
                ..Hooks::default()
            },
        ),
        (
            "tool that ends the run",
            tool("other").fail_run(),
            Hooks::default(),
        ),
    ] {
        let calls = Arc::new(AtomicUsize::new(0));
        let ends_run = what == "tool that ends the run";
        let other = other.run(move |_ctx, (): ()| async move {
            // The sibling completes first.
            tokio::time::sleep(Duration::from_millis(5)).await;
            if ends_run {
                Err("no network")
            } else {
                Ok("done")
            }
        });
        let agent = Agent::new("A").tool(refund(&calls)).tool(other);
        for is_streamed in [false, true] {
            let what = format!("{what}, streamed: {is_streamed}");
            calls.store(0, Ordering::SeqCst);
            let model = ScriptedModel::new().reply([
                reasoning("r1"),
                Item::function_call("c1", "refund", "{}"),
                reasoning("r2"),
                Item::function_call("c2", "other", "{}"),
            ]);
            let session = MemorySession::new();
            let runner = Runner::new(&agent)
                .model(model)
                .hooks(hooks.clone())
                .session(&session);
            let error = if is_streamed {
                let mut stream = runner.stream("x");
                let mut outputs = Vec::new();
                while let Some(event) = stream.next().await {
                    if let EventKind::Item {
                        name: ItemEvent::ToolOutput,
                        item,
                        ..
                    } = event.kind
                    {
                        outputs.push(item.item().output().unwrap().into_owned());
                    }
                }
                assert_eq!(outputs[0], "refunded", "{what}");
                stream.finish().await.unwrap_err()
            } else {
                runner.run("x").await.unwrap_err()
            };
            let expected: &[&str] = if what.starts_with("hook") {
                &BOTH_KEPT
            } else {
                &KEPT
            };
            assert_eq!(in_session(&session).await, expected, "{what}");
            let kept = error.run().unwrap().completed_items();
            assert_eq!(kept.len(), expected.len() - 1, "{what}: {kept:?}");

            // The next run on the session sees it.
            let model = ScriptedModel::new().say("ok");
            let next = Runner::new(&agent).model(model.clone()).session(&session);
            next.run("go on").await.unwrap();
            let seen = described(&model.requests()[0].input);
            assert!(
                seen.contains(&"output of c1: refunded".to_owned()),
                "{what}: {seen:?}"
            );
            assert_eq!(calls.load(Ordering::SeqCst), 1, "{what}");
        }
    }
}

#[tokio::test]
async fn a_run_that_is_resumed_after_a_failure_stores_a_completed_tool_once() {
    let calls = Arc::new(AtomicUsize::new(0));
    let asked = Arc::new(AtomicUsize::new(0));
    let once = ToolGuardrail::on_output("once", move |_ctx, _output| {
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => ToolVerdict::trip("no"),
            _ => ToolVerdict::Allow,
        }
    });
    let other = tool("other").guardrail(once).run(|_ctx, (): ()| "done");
    let agent = Agent::new("A").tool(refund(&calls)).tool(other);
    let model = ScriptedModel::new()
        .reply([
            Item::function_call("c1", "refund", "{}"),
            Item::function_call("c2", "other", "{}"),
        ])
        .say("ok");
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model).session(&session);
    let error = runner.run("x").await.unwrap_err();
    let run = stored(error.run().unwrap());
    let result = runner.resume(run).await.unwrap();
    assert_eq!(calls.load(Ordering::SeqCst), 1);
    assert_eq!(
        in_session(&session).await,
        [
            "user: x",
            "call refund",
            "output of c1: refunded",
            "call other",
            "output of c2: done",
            "assistant: ok"
        ]
    );
    assert_eq!(
        described(&result.to_input_list())[1..5],
        [
            "call refund",
            "call other",
            "output of c1: refunded",
            "output of c2: done"
        ]
    );
}

#[tokio::test]
async fn tools_are_kept_if_the_last_hook_fails() {
    let calls = Arc::new(AtomicUsize::new(0));
    let agent = Agent::new("A")
        .tool(refund(&calls))
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool());
    let hooks = Hooks {
        fails_at_agent_end: true,
        ..Hooks::default()
    };
    let session = MemorySession::new();
    let model = ScriptedModel::new().call("refund", "{}");
    let runner = Runner::new(&agent).model(model).hooks(hooks.clone());
    runner.session(&session).run("x").await.unwrap_err();
    assert_eq!(
        in_session(&session).await,
        ["user: x", "call refund", "output of call_1: refunded"]
    );

    // A tool that the provider ran, beside the final message.
    let search = json!({"type": "web_search_call", "id": "ws_1", "status": "completed"});
    let search = Item::from_json(search.to_string()).unwrap();
    let model = ScriptedModel::new().reply([search, Item::output_message("m1", "Found it.")]);
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model).hooks(hooks);
    runner.session(&session).run("x").await.unwrap_err();
    let kept = in_session(&session).await;
    assert_eq!(kept.len(), 2, "{kept:?}");
    assert!(kept[1].contains("web_search_call"), "{kept:?}");
}

#[tokio::test]
async fn a_tool_search_that_the_provider_completed_is_kept() {
    let item = |json: Value| Item::from_json(json.to_string()).unwrap();
    let fails: Tool = tool("fails")
        .fail_run()
        .run(|_ctx, (): ()| Err::<String, _>("no"));
    let agent = Agent::new("A").tool(fails);
    let model = ScriptedModel::new().reply([
        item(
            json!({"type": "tool_search_call", "id": "tc", "call_id": "s", "status": "completed",
                    "execution": "server", "arguments": {}}),
        ),
        item(
            json!({"type": "tool_search_output", "id": "to", "call_id": "s",
                    "status": "completed", "execution": "server", "tools": []}),
        ),
        Item::function_call("c", "fails", "{}"),
    ]);
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.run("x").await.unwrap_err();
    assert_eq!(
        session.items().len(),
        3,
        "the input, the call and its output"
    );
}

#[tokio::test]
async fn reasoning_before_several_calls_is_kept_with_those_that_completed() {
    let calls = Arc::new(AtomicUsize::new(0));
    let fails: Tool = tool("fails").fail_run().run(|_ctx, (): ()| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Err::<String, _>("no")
    });
    let agent = Agent::new("A").tool(fails).tool(refund(&calls));
    let model = ScriptedModel::new().reply([
        reasoning("r1"),
        Item::function_call("c0", "fails", "{}"),
        Item::function_call("c1", "refund", "{}"),
    ]);
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.run("x").await.unwrap_err();
    assert_eq!(in_session(&session).await, KEPT);
}
