//! Guardrails that trip, and a session that does not work just then.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, BoxError, ErrorKind, FinalOutput, Input, InputGuardrail, Item, Items, MemorySession,
    OutputGuardrail, Runner, Session, ToolUseBehavior, tool,
};

use crate::{stored, told};

/// A session whose `fails`th write fails, counted from 0.
#[derive(Clone)]
struct FailsAt {
    held: MemorySession,
    writes: Arc<AtomicUsize>,
    fails: usize,
}

impl FailsAt {
    fn write(fails: usize) -> Self {
        Self {
            held: MemorySession::new(),
            writes: Arc::default(),
            fails,
        }
    }
}

impl Session for FailsAt {
    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        self.held.load(limit).await
    }

    async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        if self.writes.fetch_add(1, Ordering::SeqCst) == self.fails {
            Err("disk full".into())
        } else {
            self.held.append(items).await
        }
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        self.held.pop().await
    }

    async fn clear(&self) -> Result<(), BoxError> {
        self.held.clear().await
    }
}

/// Trips the first time it is asked.
fn trips_once() -> impl Fn() -> bool + Send + Sync + 'static {
    let asked = AtomicUsize::new(0);
    move || asked.fetch_add(1, Ordering::SeqCst) == 0
}

#[tokio::test]
async fn a_tripped_input_guardrail_is_told_though_the_session_fails() {
    let trips = trips_once();
    let agent: Agent = Agent::new("A").input_guardrail(InputGuardrail::new(
        "once",
        move |_ctx, _agent, _input: Input| trips(),
    ));
    let session = FailsAt::write(0);
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent).model(model).session(&session);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert_eq!(&*error.guardrail().unwrap().guardrail, "once");
    let run = error.into_run().unwrap();
    assert_eq!(run.input_guardrail_results().len(), 1);
    assert!(session.held.items().is_empty());
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(told(&session.held.items()), ["user: x", "assistant: ok"]);
    let tripped = result.input_guardrail_results().iter();
    let tripped: Vec<bool> = tripped.map(|found| found.verdict.tripped).collect();
    assert_eq!(tripped, [false], "what tripped has passed since");
}

#[tokio::test]
async fn a_tripped_output_guardrail_is_told_though_the_session_fails() {
    let trips = trips_once();
    let agent: Agent = Agent::new("A")
        .tool(tool("read").run(|_ctx, (): ()| "the secret"))
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(OutputGuardrail::new(
            "once",
            move |_ctx, _agent, _output: FinalOutput| trips(),
        ));
    let session = FailsAt::write(1);
    let model = ScriptedModel::new().call("read", "{}");
    let runner = Runner::new(&agent).model(model).session(&session);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputGuardrail);
    let run = error.into_run().unwrap();
    assert_eq!(run.output_guardrail_results().len(), 1);
    assert_eq!(told(&session.held.items()), ["user: x"]);
    runner.resume(stored(&run)).await.unwrap();
    assert_eq!(
        told(&session.held.items()),
        [
            "user: x",
            "call read",
            "output of call_1: Output withheld by an output guardrail."
        ]
    );
}

#[tokio::test]
async fn what_is_withheld_joins_what_the_session_has_not_got_yet() {
    let trips = trips_once();
    let agent: Agent = Agent::new("A")
        .tool(tool("look").run(|_ctx, (): ()| "there"))
        .tool(tool("read").run(|_ctx, (): ()| "the secret"))
        .tool_use_behavior(ToolUseBehavior::stop_at(["read"]))
        .output_guardrail(OutputGuardrail::new(
            "once",
            move |_ctx, _agent, _output: FinalOutput| trips(),
        ));
    let model = ScriptedModel::new().call("look", "{}").call("read", "{}");
    let session = MemorySession::new();
    let without = Runner::new(&agent).model(model);
    let with = without.clone().session(&session);
    let mut run = with.begin("x");
    with.step(&mut run).await.unwrap();
    let run = without.resume(run).await.unwrap_err().into_run().unwrap();
    with.resume(stored(&run)).await.unwrap();
    assert_eq!(
        told(&session.items()),
        [
            "user: x",
            "call look",
            "output of call_1: there",
            "call read",
            "output of call_2: Output withheld by an output guardrail."
        ]
    );
}

#[tokio::test]
async fn a_run_without_any_turn_that_is_recovered_is_stored_once_its_input_has_passed() {
    let agent: Agent = Agent::new("A").input_guardrail(InputGuardrail::replacing(
        "cards",
        |_ctx, _agent, input: Input| {
            input
                .last_words()
                .map(|words| words.replace("4111", "[CARD]"))
        },
    ));
    let session = MemorySession::new();
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new())
        .max_turns(0)
        .recover(|_ctx, _problem, _message| Some(FinalOutput::from("Sorry.")))
        .session(&session);
    runner.run("pay with 4111").await.unwrap();
    assert_eq!(
        told(&session.items()),
        ["user: pay with [CARD]", "assistant: Sorry."]
    );
}
