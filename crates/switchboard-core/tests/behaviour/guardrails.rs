//! Guardrails: before the model, beside it, and on the output.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, BoxError, ErrorKind, GuardrailVerdict, InputGuardrail, MemorySession, Model,
    ModelRequest, ModelResponse, OutputGuardrail, Runner, ToolUse, tool,
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
    let slow = InputGuardrail::new("slow", |_ctx, _agent, _input| async {
        tokio::task::yield_now().await;
        true
    });
    let agent: Agent = Agent::new("A").input_guardrail(slow.beside_model());
    let runner = Runner::new(&agent).model(Endless(cancelled.clone()));
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert!(cancelled.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_guardrail_beside_the_model_is_waited_for_before_tools_run() {
    let ran = Arc::new(AtomicBool::new(false));
    let noted = ran.clone();
    let slow = InputGuardrail::new("slow", |_ctx, _agent, _input| async {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        true
    });
    let agent: Agent = Agent::new("A")
        .input_guardrail(slow.beside_model())
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
        .tool_use(ToolUse::stop_on_first_tool())
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
    let slow = InputGuardrail::new("slow", |_ctx, _agent, _input| async {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        true
    });
    let agent: Agent = Agent::new("A").input_guardrail(slow.beside_model());
    let model = ScriptedModel::new().say("Hi.");
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert_eq!(error.run().unwrap().usage().requests, 1);
}
