//! Guardrails: before the model, beside it, and on the output.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, BoxError, Error, ErrorKind, GuardrailVerdict, HandoffDecision, HandoffGuardrail,
    HandoffRequest, HandoffVerdict, InputGuardrail, MemorySession, Model, ModelRequest,
    ModelResponse, OutputGuardrail, RunResult, Runner, ToolUseBehavior, filters, handoff, tool,
};

use crate::told;

fn trips(name: &str) -> InputGuardrail {
    InputGuardrail::new(name, |_ctx, _agent, _input| {
        GuardrailVerdict::trip().info("too rude")
    })
}

#[tokio::test]
async fn a_tripwire_before_the_model_spends_nothing() {
    let agent: Agent = Agent::new("A").input_guardrail(trips("manners"));
    let model = ScriptedModel::new().say("never");
    let error = Runner::new(&agent)
        .model(model.clone())
        .run("x")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert_eq!(&*error.guardrail().unwrap().guardrail, "manners");
    assert!(error.to_string().contains("too rude"), "{error}");
    assert_eq!(model.requests().len(), 0);
    assert_eq!(error.run().unwrap().input_guardrail_results().len(), 1);
}

/// Notes whether a call was cancelled.
struct Endless(Arc<AtomicBool>);

struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Model for Endless {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let _cancelled = OnDrop(self.0.clone());
        pending().await
    }
}

#[tokio::test]
async fn a_tripwire_beside_the_model_cancels_the_call() {
    let cancelled = Arc::new(AtomicBool::new(false));
    let slow = InputGuardrail::beside_model("slow", |_ctx, _agent, _input| async {
        tokio::task::yield_now().await;
        true
    });
    let agent: Agent = Agent::new("A").input_guardrail(slow);
    let runner = Runner::new(&agent).model(Endless(cancelled.clone()));
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert!(cancelled.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_guardrail_beside_the_model_is_waited_for_before_tools_run() {
    let ran = Arc::new(AtomicBool::new(false));
    let noted = ran.clone();
    let slow = InputGuardrail::beside_model("slow", |_ctx, _agent, _input| async {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        true
    });
    let agent: Agent =
        Agent::new("A")
            .input_guardrail(slow)
            .tool(tool("t").run(move |_ctx, (): ()| {
                noted.store(true, Ordering::SeqCst);
                "x"
            }));
    let model = ScriptedModel::new().call("t", "{}");
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert!(!ran.load(Ordering::SeqCst));
}

#[tokio::test]
async fn guardrails_of_the_run_and_of_the_agent_both_count() {
    let allow = |name: &str| InputGuardrail::new(name, |_ctx, _agent, _input| false);
    let agent: Agent = Agent::new("A").input_guardrail(allow("agent"));
    let model = ScriptedModel::new().say("Hi.");
    let result = Runner::new(&agent)
        .model(model)
        .input_guardrail(allow("run"))
        .output_guardrail(OutputGuardrail::new(
            "out",
            |_ctx, _agent, output: switchboard_core::FinalOutput| output.text().contains("secret"),
        ))
        .run("x")
        .await
        .unwrap();
    let names: Vec<&str> = result
        .input_guardrail_results()
        .iter()
        .map(|r| &*r.guardrail)
        .collect();
    assert_eq!(names, ["agent", "run"]);
    assert_eq!(result.output_guardrail_results().len(), 1);
}

#[tokio::test]
async fn a_withheld_tool_output_does_not_reach_the_session() {
    let agent: Agent = Agent::new("A")
        .tool(tool("read").run(|_ctx, (): ()| "the secret"))
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(OutputGuardrail::new(
            "no_secrets",
            |_ctx, _agent, output: switchboard_core::FinalOutput| output.text().contains("secret"),
        ));
    let session = MemorySession::new();
    let model = ScriptedModel::new().call("read", "{}");
    let runner = Runner::new(&agent).model(model).session(&session);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputGuardrail);
    // Trying again stores nothing again.
    let run = error.into_run().unwrap();
    runner.resume(run).await.unwrap_err();
    assert_eq!(
        told(&session.items()),
        [
            "user: x",
            "call read",
            "output of call_1: Output withheld by an output guardrail."
        ]
    );
}

#[tokio::test]
async fn an_answer_that_a_guardrail_was_too_late_for_still_counts() {
    let slow = InputGuardrail::beside_model("slow", |_ctx, _agent, _input| async {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        true
    });
    let agent: Agent = Agent::new("A").input_guardrail(slow);
    let model = ScriptedModel::new().say("Hi.");
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert_eq!(error.run().unwrap().usage().requests, 1);
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
#[expect(dead_code, reason = "read by serde and schemars only")]
struct Refund {
    amount: u32,
}

/// A desk whose refunds are checked, with a script, and how often the callback ran.
async fn refund(
    guardrail: HandoffGuardrail,
    model: &ScriptedModel,
) -> (Result<RunResult, Error>, usize) {
    let called = Arc::new(std::sync::atomic::AtomicUsize::new(0));
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
async fn a_guardrail_on_an_edge_sees_the_payload_and_what_is_carried_and_may_refuse() {
    let limit = HandoffGuardrail::new("limit", |check: HandoffRequest| async move {
        assert_eq!((check.from.name(), check.to.name()), ("Desk", "Refunds"));
        assert_eq!(
            check.data.history_items().len(),
            0,
            "the filter has had its say"
        );
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
        told(&model.requests()[1].input),
        [
            "user: x",
            "call transfer_to_refunds",
            "output of call_1: Too much for you."
        ]
    );
    assert_eq!(model.requests()[2].input.len(), 2);
}

#[tokio::test]
async fn a_guardrail_on_an_edge_may_stop_the_run_before_any_side_effect() {
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
        told(&model.requests()[1].input)[3..],
        [
            "output of call_2: Multiple handoffs detected, ignoring this one.",
            "output of call_1: B is closed.",
        ]
    );
}
