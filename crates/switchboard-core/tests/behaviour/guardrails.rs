//! Guardrails on inputs, outputs, tools and handoffs.

mod handoffs;
mod input;
mod output;
mod results;
mod tools;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::{InputGuardrail, OutputGuardrail, ToolGuardrail};
use switchboard_core::items::Items;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, FinalOutput, Item, MemorySession, Runner, Session, tool};

use crate::described;

/// A session of which one write fails.
#[derive(Clone)]
struct FlakySession {
    stored: MemorySession,
    writes: Arc<AtomicUsize>,
    failing_write: usize,
}

impl FlakySession {
    /// `failing_write` counts from 0.
    fn new(failing_write: usize) -> Self {
        Self {
            stored: MemorySession::new(),
            writes: Arc::default(),
            failing_write,
        }
    }
}

impl Session for FlakySession {
    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        self.stored.load(limit).await
    }

    async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        if self.writes.fetch_add(1, Ordering::SeqCst) == self.failing_write {
            Err("disk full".into())
        } else {
            self.stored.append(items).await
        }
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        self.stored.pop().await
    }

    async fn clear(&self) -> Result<(), BoxError> {
        self.stored.clear().await
    }
}

/// Returns a check that trips the first time only.
fn trips_once() -> impl Fn() -> bool + Send + Sync + 'static {
    let checks = AtomicUsize::new(0);
    move || checks.fetch_add(1, Ordering::SeqCst) == 0
}

#[tokio::test]
async fn plain_text_replaces_inputs_outputs_tool_calls_and_tool_outputs() {
    let agent: Agent = Agent::new("A")
        .input_guardrail(InputGuardrail::replacing(
            "input",
            |_ctx, _agent, _input| Some("Hello"),
        ))
        .output_guardrail(OutputGuardrail::replacing(
            "output",
            |_ctx, _agent, output: FinalOutput| Some(format!("{}!", output.text())),
        ))
        .tool_guardrail(ToolGuardrail::<()>::on_call("call", |ctx| {
            (ctx.tool() == "shut").then_some("Shut.")
        }))
        .tool_guardrail(ToolGuardrail::on_output("answer", |_ctx, output| {
            Some(format!("<{}>", output.text()))
        }))
        .tool(tool("shut").run(|_ctx, (): ()| "never"))
        .tool(tool("open").run(|_ctx, (): ()| "1"));
    let model = ScriptedModel::new()
        .call("shut", "{}")
        .call("open", "{}")
        .say("Bye");
    let runner = Runner::new(&agent).model(model.clone());
    assert_eq!(runner.run("x").await.unwrap().final_text(), "Bye!");
    let seen = described(&model.requests()[2].input);
    assert_eq!(seen[0], "user: Hello");
    assert!(seen[2].ends_with(": Shut."), "{seen:?}");
    assert!(seen[4].ends_with(": <1>"), "{seen:?}");
}
