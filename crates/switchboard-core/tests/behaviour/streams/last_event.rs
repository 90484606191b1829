//! The last event of a run: finished, stopped or failed.

use std::future::pending;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use switchboard_core::guardrail::{InputGuardrail, InputVerdict};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Error, EventKind, Item, MemorySession, RunResult, RunStream, Runner, ToolContext,
    handoff, tool,
};

use super::events::{tool_handoff_and_answer, usage};
use super::{collect, response, to_json};

/// Returns the last event and the outcome. No other event may be the last of a run.
async fn last_event(mut stream: RunStream) -> (Value, Result<RunResult, Error>) {
    let mut events = to_json(&collect(&mut stream).await);
    assert!(stream.next().await.is_none(), "an event after the end");
    let last = events.pop().unwrap();
    let ends = ["run_finished", "run_stopped", "run_failed"];
    let is_end = |event: &Value| ends.contains(&event["type"].as_str().unwrap());
    assert!(is_end(&last), "{last}");
    assert!(!events.iter().any(is_end), "{events:#?}");
    (last, stream.finish().await)
}

#[tokio::test]
async fn a_run_with_a_final_output_ends_with_run_finished() {
    let (last, result) = last_event(tool_handoff_and_answer().stream("x")).await;
    assert_eq!(
        last,
        json!({
            "type": "run_finished", "agent": "Billing", "turn": 3,
            "output": "On its way.", "turns": 3, "usage": usage(3),
        })
    );
    assert_eq!(result.unwrap().final_text(), "On its way.");
}

#[tokio::test]
async fn a_typed_output_is_json_in_run_finished() {
    let agent: Agent = Agent::new("A").output::<Vec<u32>>();
    let model = ScriptedModel::new().say(r#"{"response":[1,2]}"#);
    let (last, _) = last_event(Runner::new(&agent).model(model).stream("x")).await;
    assert_eq!(last["output"], json!([1, 2]));
}

#[tokio::test]
async fn a_run_stopped_after_a_turn_ends_with_run_stopped() {
    let stream = tool_handoff_and_answer().stream("x");
    stream.stop_after_turn();
    let (last, result) = last_event(stream).await;
    assert_eq!(
        last,
        json!({
            "type": "run_stopped", "agent": "Triage", "turn": 1, "turns": 1, "usage": usage(1),
        })
    );
    assert_eq!(result.unwrap().final_output(), None);
}

#[tokio::test]
async fn a_run_stopped_at_once_ends_with_run_stopped() {
    let boss: Agent = Agent::new("Boss");
    let edge = handoff(&boss).on_handoff(|_ctx| pending::<()>());
    let clerk = Agent::new("Clerk").handoff(edge);
    let call = Item::function_call("c", "transfer_to_boss", "{}");
    let model = ScriptedModel::new().respond_with(response([call]));
    let mut stream = Runner::new(&clerk).model(model).stream("x");
    while let Some(event) = stream.next().await {
        if let EventKind::Item { .. } = event.kind {
            break;
        }
    }
    stream.stop();
    let (last, _) = last_event(stream).await;
    assert_eq!(
        last,
        json!({
            "type": "run_stopped", "agent": "Clerk", "turn": 1, "turns": 1, "usage": usage(1),
        })
    );
}

#[tokio::test]
async fn a_stop_after_the_final_output_changes_nothing() {
    let mut stream = tool_handoff_and_answer().stream("x");
    while let Some(event) = stream.next().await {
        if let EventKind::RunFinished { .. } = event.kind {
            stream.stop();
        }
    }
    let result = stream.finish().await.unwrap();
    assert_eq!(result.final_text(), "On its way.");
}

/// Runs that fail, with the kind of error, the turn and the guardrail that tripped.
fn failing_runs() -> Vec<(Runner, &'static str, u32, Option<Value>)> {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let call = || ScriptedModel::new().call("t", "{}");
    let rude = InputGuardrail::new("manners", |_ctx, _agent, _input| {
        InputVerdict::trip("too rude")
    });
    let tripped = json!({
        "guardrail": "manners", "agent": "A", "outcome": "tripped", "info": "too rude",
    });
    let runner = Runner::new(&agent);
    vec![
        (runner.clone(), "configuration", 1, None),
        (
            runner.clone().model(ScriptedModel::new().fail("down")),
            "model",
            1,
            None,
        ),
        (
            runner.clone().model(call()).max_turns(1),
            "max_turns",
            1,
            None,
        ),
        (
            runner.clone().model(call().call("missing", "{}")),
            "model_behavior",
            2,
            None,
        ),
        (
            runner.model(call()).input_guardrail(rude),
            "input_guardrail",
            1,
            Some(tripped),
        ),
    ]
}

#[tokio::test]
async fn a_run_that_fails_ends_with_run_failed() {
    for (runner, kind, turn, guardrail) in failing_runs() {
        let (mut last, outcome) = last_event(runner.stream("x")).await;
        let error = outcome.unwrap_err();
        let run = error.run().unwrap();
        let message = last["message"].take();
        assert!(error.to_string().contains(message.as_str().unwrap()));
        let mut expected = json!({
            "type": "run_failed", "agent": "A", "turn": turn, "error": kind,
            "message": null, "turns": run.turns(), "usage": run.usage(),
        });
        if let Some(guardrail) = guardrail {
            expected["guardrail"] = guardrail;
        }
        assert_eq!(last, expected);
    }
}

#[tokio::test]
async fn the_message_of_run_failed_is_that_of_the_error() {
    let (mut messages, mut errors) = (Vec::new(), Vec::new());
    for (runner, ..) in failing_runs() {
        let (last, outcome) = last_event(runner.stream("x")).await;
        messages.push(last["message"].as_str().unwrap().to_owned());
        errors.push(outcome.unwrap_err().to_string());
    }
    assert_eq!(messages, errors);
}

#[tokio::test]
async fn a_report_of_a_tool_after_the_end_of_the_run_is_dropped() {
    let kept = Arc::new(Mutex::new(None::<ToolContext>));
    let keep = kept.clone();
    let agent: Agent = Agent::new("A").tool(tool("t").run(move |ctx: ToolContext, (): ()| {
        *keep.lock().unwrap() = Some(ctx);
        "started"
    }));
    let model = ScriptedModel::new().call("t", "{}").say("ok");
    let mut stream = Runner::new(&agent).model(model).stream("x");
    let mut last = None;
    while let Some(event) = stream.next().await {
        last = Some(event);
    }
    kept.lock().unwrap().take().unwrap().report_progress("late");
    assert!(matches!(last.unwrap().kind, EventKind::RunFinished { .. }));
    let late = stream.next().await;
    assert!(late.is_none(), "{late:?}");
}

#[tokio::test]
async fn a_run_stopped_at_a_handoff_is_with_one_agent() {
    let billing: Agent = Agent::new("Billing");
    let triage = Agent::new("Triage").handoff(&billing);
    let model = ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .say("Done.");
    let mut stream = Runner::new(&triage).model(model).stream("x");
    let mut last = None;
    while let Some(event) = stream.next().await {
        if let EventKind::Handoff(_) = event.kind {
            stream.stop();
        }
        last = Some(event);
    }
    let result = stream.finish().await.unwrap();
    assert_eq!(result.last_agent().name(), "Billing");
    assert_eq!(result.run().agent(), "Billing");
    assert_eq!(&*last.unwrap().agent, "Billing");
}

#[tokio::test]
async fn a_turn_that_was_reported_is_in_the_session_after_a_stop() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let session = MemorySession::new();
    let model = ScriptedModel::new().call("t", "{}").say("Done.");
    let runner = Runner::new(&agent).model(model).session(&session);
    let mut stream = runner.stream("x");
    while let Some(event) = stream.next().await {
        if let EventKind::Item { name, .. } = event.kind
            && name.as_str() == "tool_output"
        {
            stream.stop();
        }
    }
    let result = stream.finish().await.unwrap();
    assert_eq!(result.new_items().len(), 2);
    assert_eq!(session.items().len(), 3);
}
