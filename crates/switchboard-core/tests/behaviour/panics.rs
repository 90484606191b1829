//! User code that panics: the error names the code, and the run stays intact.

use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::InputGuardrail;
use switchboard_core::hooks::{HookResult, RunHooks};
use switchboard_core::items::Items;
use switchboard_core::run::HandoffPolicy;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{Span, Tracer};
use switchboard_core::{
    Agent, Error, ErrorKind, Item, MemorySession, Model, ModelRequest, ModelResponse, RunContext,
    Runner, Session, Step, handoff, tool,
};

fn expect_caught(error: &Error, what: &str) {
    assert_eq!(error.kind(), ErrorKind::UserCode, "{error}");
    let message = error.to_string();
    assert!(message.contains("it panicked: boom"), "{message}");
    assert!(message.contains(what), "{message}");
}

async fn hand_off(edge: impl switchboard_core::handoff::IntoHandoff<()>) -> Error {
    let clerk = Agent::new("Clerk").handoff(edge);
    let model = ScriptedModel::new().call("transfer_to_boss", "{}");
    let outcome = Runner::new(&clerk)
        .handoff_policy(HandoffPolicy::reference())
        .model(model)
        .run("x")
        .await;
    let error = outcome.unwrap_err();
    assert_eq!(
        (error.agent(), error.handoff()),
        (Some("Clerk"), Some("transfer_to_boss"))
    );
    assert!(matches!(
        error.run().unwrap().step(),
        Step::TakeHandoff([_])
    ));
    error
}

#[expect(clippy::panic, reason = "that is what is tested")]
fn boom() {
    panic!("boom");
}

#[tokio::test]
async fn a_callback_or_filter_that_panics_leaves_the_run_before_the_handoff() {
    let boss: Agent = Agent::new("Boss");
    let error = hand_off(handoff(&boss).on_handoff(|_ctx| boom())).await;
    expect_caught(&error, "the on_handoff callback failed");
    let later = |_ctx| async {
        tokio::task::yield_now().await;
        boom();
    };
    let error = hand_off(handoff(&boss).on_handoff(later)).await;
    expect_caught(&error, "the on_handoff callback failed");
    let error = hand_off(handoff(&boss).filter_fn(|data| {
        boom();
        data
    }))
    .await;
    expect_caught(&error, "the filter failed");
}

#[tokio::test]
async fn the_model_gets_an_error_as_the_output_of_a_tool_that_panics() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| boom()));
    let model = ScriptedModel::new().call("t", "{}").say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let outputs = crate::described(&result.to_input_list());
    assert!(
        outputs[2].contains("An error occurred while running the tool"),
        "{outputs:?}"
    );
}

#[tokio::test]
async fn a_guardrail_a_condition_and_instructions_that_panic_are_errors() {
    let model = || ScriptedModel::new().say("never");
    let agent: Agent =
        Agent::new("A").input_guardrail(InputGuardrail::new("g", |_ctx, _agent, _input| {
            boom();
        }));
    let error = Runner::new(&agent)
        .model(model())
        .run("x")
        .await
        .unwrap_err();
    expect_caught(&error, "the guardrail \"g\" failed");

    let boss: Agent = Agent::new("Boss");
    let agent = Agent::new("A").handoff(handoff(&boss).enabled_if(|_ctx, _agent| {
        boom();
        true
    }));
    let error = Runner::new(&agent)
        .model(model())
        .run("x")
        .await
        .unwrap_err();
    expect_caught(&error, "a condition failed");

    let agent: Agent = Agent::new("A").instructions_fn(|_ctx, _agent| {
        boom();
        String::new()
    });
    let error = Runner::new(&agent)
        .model(model())
        .run("x")
        .await
        .unwrap_err();
    expect_caught(&error, "instructions failed");
}

#[tokio::test]
async fn a_hook_that_panics_is_an_error() {
    struct Booming;
    impl RunHooks for Booming {
        async fn on_agent_start(&self, _ctx: &RunContext, _agent: &Agent) -> HookResult {
            boom();
            Ok(())
        }
    }
    let agent: Agent = Agent::new("A");
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new())
        .hooks(Booming);
    expect_caught(
        &runner.run("x").await.unwrap_err(),
        "a hook on the agent's start failed",
    );
}

#[tokio::test]
async fn the_default_failure_text_is_used_if_the_function_for_it_panics() {
    let broken = tool("t")
        .failure_text(|_ctx, _error| {
            boom();
            String::new()
        })
        .run(|_ctx, (): ()| Err::<(), _>("no"));
    let agent: Agent = Agent::new("A").tool(broken);
    let model = ScriptedModel::new().call("t", "{}").say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    assert_eq!(
        crate::described(&result.to_input_list())[2],
        "output of call_1: An error occurred while running the tool. Please try again."
    );
}

#[tokio::test]
async fn a_mapper_of_histories_that_panics_leaves_the_run_before_the_handoff() {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(&boss);
    let model = ScriptedModel::new().call("transfer_to_boss", "{}");
    let runner = Runner::new(&clerk)
        .model(model)
        .nest_handoff_history(true)
        .handoff_history_mapper(|items| {
            boom();
            items
        });
    let error = runner.run("x").await.unwrap_err();
    expect_caught(&error, "the mapper of nested histories failed");
    let run = error.run().unwrap();
    assert!(matches!(run.step(), Step::TakeHandoff([_])));
}

#[tokio::test]
async fn a_model_that_panics_is_a_model_that_failed() {
    struct Booming;
    impl Model for Booming {
        async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
            boom();
            Err("never".into())
        }
    }
    let agent: Agent = Agent::new("A");
    let runner = Runner::new(&agent).model(Booming);
    for outcome in [runner.run("x").await, runner.stream("x").finish().await] {
        let error = outcome.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Model);
        assert!(error.to_string().contains("it panicked: boom"), "{error}");
        assert_eq!(error.run().unwrap().step(), Step::CallModel);
    }
}

/// A session that panics when it is loaded, or when it is written to.
#[derive(Clone)]
struct BoomingSession {
    held: MemorySession,
    on_load: bool,
}

impl Session for BoomingSession {
    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        if self.on_load {
            boom();
        }
        self.held.load(limit).await
    }

    async fn append(&self, _items: &[Item]) -> Result<(), BoxError> {
        boom();
        Ok(())
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        self.held.pop().await
    }

    async fn clear(&self) -> Result<(), BoxError> {
        self.held.clear().await
    }
}

#[tokio::test]
async fn a_session_that_panics_is_a_session_that_failed() {
    for on_load in [true, false] {
        let agent: Agent = Agent::new("A");
        let session = BoomingSession {
            held: MemorySession::new(),
            on_load,
        };
        let runner = Runner::new(&agent)
            .model(ScriptedModel::new().say("ok"))
            .session(&session);
        let error = runner.run("x").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Session);
        assert!(error.to_string().contains("it panicked: boom"), "{error}");
        assert_eq!(error.run().unwrap().step(), Step::CallModel);
    }
}

#[tokio::test]
async fn a_tracer_that_panics_is_ignored() {
    struct Booming;
    impl Tracer for Booming {
        fn start(&self, _span: &Span) {
            boom();
        }

        fn end(&self, _span: Span) {
            boom();
        }
    }
    let agent: Agent = Agent::new("A");
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent).model(model).tracer(Booming);
    assert_eq!(runner.run("x").await.unwrap().final_text(), "ok");
}
