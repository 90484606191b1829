//! Hooks of a process that reads a run which another one has taken there, without these hooks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_core::approval::Decision;
use switchboard_core::conversation::Conversations;
use switchboard_core::hooks::{HookResult, RunHooks};
use switchboard_core::run::RunStatus as Status;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ModelRequest, RunContext, Runner, Tool, tool};
use switchboard_durable::{DurableRunner, Embedded, IntoEngine, RunStatus};

use crate::logged::engine::Logged;

/// Hooks that count their calls.
#[derive(Clone, Default)]
pub(crate) struct Counted(Arc<AtomicUsize>);

impl Counted {
    pub(crate) fn calls(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }

    fn count(&self) -> HookResult {
        self.0.fetch_add(1, Ordering::SeqCst);
        Ok(())
    }
}

impl RunHooks<()> for Counted {
    async fn on_agent_start(&self, _ctx: &RunContext<()>, _agent: &Agent<()>) -> HookResult {
        self.count()
    }

    async fn on_llm_start(
        &self,
        _ctx: &RunContext<()>,
        _agent: &Agent<()>,
        _request: &ModelRequest,
    ) -> HookResult {
        self.count()
    }
}

/// Reads a run that waits, decides it, and reads its end, with hooks that the process which executes it has not.
async fn a_run_is_read_with_other_hooks<E: IntoEngine + Clone>(engine: E) {
    let pay: Tool = tool("pay").needs_approval().run(|_ctx, (): ()| "paid");
    let model = ScriptedModel::new().call("pay", "{}").say("It is paid.");
    let agent: Agent = Agent::new("Desk").model(model).tool(pay);
    let worker = DurableRunner::new(engine.clone(), &agent);
    worker.start("talk", "m1", "Pay").await.unwrap();

    let hooks = Counted::default();
    let reader = DurableRunner::new(engine, Runner::new(&agent).hooks(hooks.clone()));
    assert!(reader.drain(Duration::from_secs(1)).await);
    let run = reader.attach("talk/m1").await.unwrap();
    let waiting = run.wait().await.unwrap();
    let RunStatus::Waiting { interruptions } = &waiting.status else {
        panic!("{waiting:?}");
    };
    let result = run.result().await.unwrap().unwrap();
    assert_eq!(result.status(), Status::Interrupted);
    assert_eq!(result.into_run().interruptions(), *interruptions);

    let same = worker.attach("talk/m1").await.unwrap();
    let decided = same.decide(&interruptions[0], Decision::approve()).await;
    decided.unwrap();
    while !run.record().await.unwrap().is_ended() {
        tokio::task::yield_now().await;
    }
    let result = run.result().await.unwrap().unwrap();
    assert_eq!(
        result.final_output().unwrap().to_value(),
        "It is paid.",
        "{result:?}"
    );
    assert_eq!(hooks.calls(), 0, "reading calls no hooks");
}

#[tokio::test]
async fn a_run_in_a_store_is_read_with_other_hooks_than_it_was_taken_there() {
    let engine = Embedded::new(Conversations::in_memory());
    a_run_is_read_with_other_hooks(engine).await;
}

#[tokio::test]
async fn a_run_in_a_log_is_read_with_other_hooks_than_it_was_taken_there() {
    let engine = Logged::new(&Conversations::in_memory(), None);
    a_run_is_read_with_other_hooks(engine).await;
}
