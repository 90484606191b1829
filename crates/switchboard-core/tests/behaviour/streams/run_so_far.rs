//! The run as it is at each event.

use std::collections::BTreeSet;
use std::sync::Arc;

use serde_json::json;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, EventKind, Runner, ToolContext, tool};

use super::events::tool_handoff_and_answer;
use super::type_of;

#[tokio::test]
async fn the_stream_has_the_run_as_it_is_at_each_event() {
    let mut stream = tool_handoff_and_answer().stream("Where is my refund?");
    assert!(stream.run().is_none(), "before the first event");
    let mut seen = Vec::new();
    while let Some(event) = stream.next().await {
        let run = stream.run().unwrap();
        seen.push(json!([
            type_of(&event),
            run.agent(),
            run.turns(),
            run.new_items().len()
        ]));
    }
    assert!(stream.run().is_none(), "after the last event");
    assert_eq!(
        seen,
        [
            json!(["run_started", "Triage", 0, 0]),
            json!(["agent_updated", "Triage", 0, 0]),
            json!(["turn_started", "Triage", 0, 0]),
            json!(["usage", "Triage", 0, 0]),
            json!(["item", "Triage", 1, 0]),
            json!(["tool_started", "Triage", 1, 0]),
            json!(["tool_ended", "Triage", 1, 0]),
            json!(["item", "Triage", 1, 2]),
            json!(["turn_started", "Triage", 1, 2]),
            json!(["usage", "Triage", 1, 2]),
            json!(["item", "Triage", 2, 2]),
            json!(["handoff", "Billing", 2, 2]),
            json!(["agent_updated", "Billing", 2, 2]),
            json!(["turn_started", "Billing", 2, 2]),
            json!(["text_delta", "Billing", 2, 2]),
            json!(["text_delta", "Billing", 2, 2]),
            json!(["text_delta", "Billing", 2, 2]),
            json!(["usage", "Billing", 2, 2]),
            json!(["item", "Billing", 3, 2]),
            json!(["run_finished", "Billing", 3, 3]),
        ]
    );
}

#[tokio::test]
async fn the_stream_has_the_run_also_at_a_progress_report() {
    let import = tool("import").run(|ctx: ToolContext, (): ()| async move {
        ctx.report_progress("half");
        tokio::task::yield_now().await;
        "imported"
    });
    let agent: Agent = Agent::new("A").tool(import);
    let model = ScriptedModel::new().call("import", "{}").say("ok");
    let mut stream = Runner::new(&agent).model(model).stream("x");
    let mut reports = 0;
    while let Some(event) = stream.next().await {
        let run = stream.run();
        assert!(run.is_some(), "no run at {event:?}");
        if let EventKind::ToolProgress { .. } = event.kind {
            assert_eq!(run.unwrap().turns(), 1);
            reports += 1;
        }
    }
    assert_eq!(reports, 1);
}

/// Runs a conversation with a handoff, and returns the addresses at which the run was.
async fn addresses(keeps_run: bool) -> BTreeSet<usize> {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A").handoff(&b);
    let model = ScriptedModel::new().call("transfer_to_b", "{}").say("ok");
    let mut stream = Runner::new(&a).model(model).stream("x");
    let (mut addresses, mut kept) = (BTreeSet::new(), Vec::new());
    while stream.next().await.is_some() {
        let run = stream.run().unwrap();
        addresses.insert(Arc::as_ptr(&run) as usize);
        if keeps_run {
            kept.push(run);
        }
    }
    if let Some(first) = kept.first() {
        assert_eq!((first.agent(), first.turns()), ("A", 0));
    }
    addresses
}

#[tokio::test]
async fn the_run_is_copied_only_if_the_listener_keeps_it() {
    assert_eq!(addresses(false).await.len(), 1);
    assert!(addresses(true).await.len() > 1);
}
