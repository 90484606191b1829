//! Dropping a run, and stopping a stream.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_core::run::RunStatus;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::MemoryTracer;
use switchboard_core::{Agent, EventKind, Item, MemorySession, Runner, Step, handoff, tool};
use tokio::time::timeout;

use crate::described;

#[tokio::test]
async fn dropping_a_run_stops_callbacks_where_they_await_and_keeps_whole_turns() {
    let reached = Arc::new(AtomicUsize::new(0));
    let passed = Arc::new(AtomicUsize::new(0));
    let (before, after) = (reached.clone(), passed.clone());
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk")
        .tool(tool("lookup").run(|_ctx, (): ()| "42"))
        .handoff(handoff(&boss).on_handoff(move |_ctx| {
            let (before, after) = (before.clone(), after.clone());
            async move {
                before.fetch_add(1, Ordering::SeqCst);
                pending::<()>().await;
                after.fetch_add(1, Ordering::SeqCst);
            }
        }));
    let model = ScriptedModel::new()
        .call("lookup", "{}")
        .call("transfer_to_boss", "{}");
    let session = MemorySession::new();
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&clerk)
        .model(model)
        .session(&session)
        .tracer(tracer.clone());
    let run = runner.run("Hi");
    assert!(timeout(Duration::from_millis(30), run).await.is_err());
    assert_eq!(reached.load(Ordering::SeqCst), 1);
    assert_eq!(passed.load(Ordering::SeqCst), 0);
    let stored = described(&session.items());
    assert_eq!(stored, ["user: Hi", "call lookup", "output of call_1: 42"]);
    assert!(
        tracer.spans().iter().all(|span| span.ended.is_some()),
        "spans end all the same"
    );
}

#[tokio::test]
async fn a_stream_stopped_after_the_turn_can_be_resumed() {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(&boss);
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("Done.");
    let runner = Runner::new(&clerk).model(model.clone());
    let mut stream = runner.stream("Hi");
    while let Some(event) = stream.next().await {
        if let EventKind::Item { .. } = event.kind {
            stream.stop_after_turn();
        }
    }
    let result = stream.finish().await.unwrap();
    assert_eq!(result.status(), RunStatus::Stopped);
    assert_eq!(result.final_output(), None);
    assert_eq!(result.last_agent().name(), "Boss");
    assert_eq!(model.left(), 1);
    let result = runner.resume(result.into_run()).await.unwrap();
    assert_eq!(
        (result.status(), &*result.final_text()),
        (RunStatus::Completed, "Done.")
    );
}

#[tokio::test]
async fn a_stream_stopped_at_once_gives_the_run_before_the_turn_in_flight() {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).on_handoff(|_ctx| pending::<()>()));
    let model = ScriptedModel::new().call("transfer_to_boss", "{}");
    let runner = Runner::new(&clerk).model(model);
    let stream = runner.stream("Hi");
    let stopper = stream.stop_handle();
    let finished = tokio::spawn(stream.finish());
    tokio::time::sleep(Duration::from_millis(20)).await;
    stopper.stop();
    let result = timeout(Duration::from_secs(5), finished)
        .await
        .unwrap()
        .unwrap()
        .unwrap();
    assert_eq!(result.status(), RunStatus::Stopped);
    assert_eq!(result.last_agent().name(), "Clerk");
    assert!(matches!(result.run().step(), Step::TakeHandoff([_])));
}

#[tokio::test]
async fn dropping_a_stream_stops_the_work() {
    let calls = Arc::new(AtomicUsize::new(0));
    let counted = calls.clone();
    let agent: Agent = Agent::new("A").tool(tool("t").run(move |_ctx, (): ()| {
        counted.fetch_add(1, Ordering::SeqCst);
        "ok"
    }));
    let model = ScriptedModel::new()
        .call("t", "{}")
        .reply([Item::output_message("m", "x")]);
    let mut stream = Runner::new(&agent).model(model).stream("Hi");
    let first = stream.next().await;
    assert!(matches!(first.unwrap().kind, EventKind::RunStarted { .. }));
    drop(stream);
    tokio::task::yield_now().await;
    assert_eq!(calls.load(Ordering::SeqCst), 0);
}
