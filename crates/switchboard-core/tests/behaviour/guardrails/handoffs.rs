//! Handoff guardrails, and callbacks that refuse a handoff.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_core::guardrail::{HandoffGuardrail, HandoffRequest, HandoffVerdict};
use switchboard_core::handoff::{HandoffDecision, HandoffInputData};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Error, ErrorKind, Item, RunResult, Runner, filters, handoff};

use crate::described;

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "read by serde and schemars only")]
struct Refund {
    amount: u32,
}

/// Runs a desk that hands off refunds under a guardrail. Also returns the number of times that the
/// callback ran.
async fn refund(
    guardrail: HandoffGuardrail,
    model: &ScriptedModel,
) -> (Result<RunResult, Error>, usize) {
    let called = Arc::new(AtomicUsize::new(0));
    let counted = called.clone();
    let refunds: Agent = Agent::new("Refunds");
    let desk = Agent::new("Desk").handoff(
        handoff(&refunds)
            .payload::<Refund>()
            .on_handoff(move |_ctx, _refund| {
                counted.fetch_add(1, Ordering::SeqCst);
            })
            .filter(filters::keep_last(2))
            .guardrail(guardrail),
    );
    let outcome = Runner::new(&desk).model(model.clone()).run("x").await;
    (outcome, called.load(Ordering::SeqCst))
}

#[tokio::test]
async fn a_handoff_guardrail_sees_the_payload_and_the_filtered_data_and_may_refuse() {
    let limit = HandoffGuardrail::new("limit", |check: HandoffRequest| async move {
        assert_eq!((check.from.name(), check.to.name()), ("Desk", "Refunds"));
        assert_eq!(check.data.history_items().len(), 0, "the filter ran before");
        match check.payload.unwrap()["amount"].as_u64() {
            Some(1_000..) => HandoffVerdict::refuse("Too much for you."),
            _ => HandoffVerdict::Allow,
        }
    });
    let model = ScriptedModel::new()
        .call("transfer_to_refunds", r#"{"amount": 5000}"#)
        .call("transfer_to_refunds", r#"{"amount": 50}"#)
        .say("Done.");
    let (outcome, called) = refund(limit, &model).await;
    let result = outcome.unwrap();
    assert_eq!((result.last_agent().name(), called), ("Refunds", 1));
    assert_eq!(
        described(&model.requests()[1].input),
        [
            "user: x",
            "call transfer_to_refunds",
            "output of call_1: Too much for you."
        ]
    );
    assert_eq!(model.requests()[2].input.len(), 2);
}

#[tokio::test]
async fn a_handoff_guardrail_may_stop_the_run_before_any_side_effect() {
    let never = HandoffGuardrail::new("never", |_check: HandoffRequest| HandoffVerdict::trip("no"));
    let model = ScriptedModel::new().call("transfer_to_refunds", r#"{"amount": 1}"#);
    let (outcome, called) = refund(never, &model).await;
    let error = outcome.unwrap_err();
    assert_eq!((error.kind(), called), (ErrorKind::HandoffGuardrail, 0));
    assert!(error.is_guardrail());
    assert_eq!(&*error.guardrail().unwrap().guardrail, "never");
    assert_eq!(error.handoff(), Some("transfer_to_refunds"));
}

#[tokio::test]
async fn a_callback_may_refuse_and_every_call_is_answered() {
    let (b, c): (Agent, Agent) = (Agent::new("B"), Agent::new("C"));
    let a = Agent::new("A")
        .handoff(handoff(&b).on_handoff(|_ctx| HandoffDecision::refuse("B is closed.")))
        .handoff(&c);
    let model = ScriptedModel::new()
        .calls([("transfer_to_b", "{}"), ("transfer_to_c", "{}")])
        .call("transfer_to_c", "{}")
        .say("ok");
    let guardrail = HandoffGuardrail::new("all", |_check: HandoffRequest| ());
    let runner = Runner::new(&a)
        .model(model.clone())
        .handoff_guardrail(guardrail);
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.last_agent().name(), "C");
    assert_eq!(
        described(&model.requests()[1].input)[3..],
        [
            "output of call_2: Multiple handoffs detected, ignoring this one.",
            "output of call_1: B is closed.",
        ]
    );
}

#[tokio::test]
async fn a_guarded_handoff_passes_on_the_data_that_was_checked() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[expect(dead_code, reason = "read by serde and schemars only")]
    struct Case {
        number: u32,
    }
    struct App {
        filtered: AtomicUsize,
    }
    let billing = Agent::<App>::new("Billing");
    let count = |data: HandoffInputData<App>| {
        data.run_context().filtered.fetch_add(1, Ordering::SeqCst);
        let note = format!("case {}", data.payload().unwrap()["number"]);
        data.with_input_history(vec![Item::user(note)])
    };
    let guardrail = HandoffGuardrail::new("seen", |check: HandoffRequest<App>| {
        assert_eq!(described(&check.data.history_items()), ["user: case 7"]);
    });
    let triage = Agent::<App>::new("Triage").handoff(
        handoff(&billing)
            .payload::<Case>()
            .on_handoff(|_ctx, _case: Case| ())
            .filter_fn(count)
            .guardrail(guardrail),
    );
    let app = Arc::new(App {
        filtered: AtomicUsize::new(0),
    });
    let model = ScriptedModel::new()
        .call("transfer_to_billing", r#"{"number": 7}"#)
        .say("ok");
    let runner = Runner::new(&triage)
        .model(model.clone())
        .context(app.clone());
    runner.run("x").await.unwrap();
    assert_eq!(app.filtered.load(Ordering::SeqCst), 1);
    assert_eq!(described(&model.requests()[1].input)[0], "user: case 7");
}

#[tokio::test]
async fn a_guarded_handoff_passes_on_the_same_as_an_unguarded_one() {
    let run = |is_guarded: bool| async move {
        let last: Agent = Agent::new("Last");
        let mut edge = handoff(&last);
        if is_guarded {
            edge = edge.guardrail(HandoffGuardrail::new("all", |_check: HandoffRequest| ()));
        }
        let middle = Agent::new("Middle").handoff(edge);
        let first = Agent::new("First").handoff(handoff(&middle).nest_history(true));
        let model = ScriptedModel::new()
            .call("transfer_to_middle", "{}")
            .call("transfer_to_last", "{}")
            .say("ok");
        let runner = Runner::new(&first).model(model.clone());
        let result = runner.run("x").await.unwrap();
        (
            described(&model.requests()[2].input),
            described(&result.to_input_list()),
        )
    };
    assert_eq!(run(true).await, run(false).await);
}
