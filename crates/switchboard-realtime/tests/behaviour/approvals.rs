//! Calls that wait for a person.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use switchboard_core::approval::Decision;
use switchboard_core::guardrail::{ToolGuardrail, ToolVerdict};
use switchboard_core::tool;
use switchboard_realtime::RealtimeAgent;
use switchboard_realtime::testing::ScriptedRealtimeModel;

use crate::support::{connect, eventually, names, outputs, read_answer_of, read_until_event};

fn refunding(runs: &Arc<AtomicU32>, checks: &Arc<AtomicU32>) -> RealtimeAgent {
    let (runs, checks) = (runs.clone(), checks.clone());
    let refund = tool("refund")
        .needs_approval()
        .guardrail(ToolGuardrail::<()>::on_call("limit", move |ctx| {
            checks.fetch_add(1, Ordering::Relaxed);
            if ctx.arguments().contains("million") {
                ToolVerdict::replace("Too much.")
            } else {
                ToolVerdict::Allow
            }
        }))
        .run_raw(&serde_json::json!({"type": "object"}), move |_ctx| {
            runs.fetch_add(1, Ordering::Relaxed);
            "refunded"
        });
    let clock = tool("clock").run(|_ctx, (): ()| "noon");
    RealtimeAgent::new("Desk").tool(refund).tool(clock)
}

#[tokio::test]
async fn a_call_runs_when_it_is_approved_and_its_guardrails_look_once_before_a_person_does() {
    let (runs, checks): (Arc<AtomicU32>, Arc<AtomicU32>) = Default::default();
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call_as("a", "refund", r#"{"amount": "one million"}"#))
        .turn(|turn| turn.call_as("b", "refund", r#"{"amount": "five"}"#))
        .turn(|turn| turn.say("Done."));
    let mut session = connect(&refunding(&runs, &checks), &model).await;
    session.send_message("My money").await.unwrap();
    read_until_event(&mut session, "tool_approval_required").await;
    assert_eq!(outputs(&model)[0].1, "Too much.");
    assert_eq!(session.waiting_calls(), ["b".into()]);
    session.decide("b", Decision::approve()).await.unwrap();
    let events = read_until_event(&mut session, "tool_end").await;
    assert!(names(&events).contains(&"tool_start"));
    assert_eq!(outputs(&model)[1].1, "refunded");
    assert_eq!(
        (runs.load(Ordering::Relaxed), checks.load(Ordering::Relaxed)),
        (1, 2)
    );
}

#[tokio::test]
async fn a_rejected_call_is_answered_and_never_runs() {
    let (runs, checks): (Arc<AtomicU32>, Arc<AtomicU32>) = Default::default();
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| turn.call_as("a", "refund", "{}"))
        .turn(|turn| turn.call_as("b", "refund", "{}"))
        .turn(|turn| turn.say("Sorry."));
    let mut session = connect(&refunding(&runs, &checks), &model).await;
    session.send_message("My money").await.unwrap();
    read_until_event(&mut session, "tool_approval_required").await;
    let never = Decision::reject().message("Ask a manager.").always();
    session.decide("a", never).await.unwrap();
    eventually(|| outputs(&model).len() == 2).await;
    let texts: Vec<String> = outputs(&model).into_iter().map(|output| output.1).collect();
    assert_eq!(texts, ["Ask a manager.", "Ask a manager."]);
    assert_eq!(runs.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_decision_on_a_call_that_does_not_wait_is_an_error() {
    let model = ScriptedRealtimeModel::new();
    let session = connect(&RealtimeAgent::new("Desk"), &model).await;
    let error = session
        .decide("nobody", Decision::approve())
        .await
        .unwrap_err();
    assert!(error.is_configuration());
}

#[tokio::test]
async fn outputs_beside_a_call_that_waits_are_answered_by_the_model() {
    let (runs, checks): (Arc<AtomicU32>, Arc<AtomicU32>) = Default::default();
    let model = ScriptedRealtimeModel::new()
        .turn(|turn| {
            turn.call_as("a", "clock", "{}")
                .call_as("b", "refund", "{}")
        })
        .turn(|turn| turn.say("It is noon; the refund waits."));
    let mut session = connect(&refunding(&runs, &checks), &model).await;
    session.send_message("My money").await.unwrap();
    read_answer_of(&mut session, "Desk").await;
    read_answer_of(&mut session, "Desk").await;
    assert_eq!(model.responses(), 2);
    assert_eq!(session.waiting_calls(), ["b".into()]);
}
