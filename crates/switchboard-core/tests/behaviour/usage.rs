//! Usage is counted, however the step that caused it ends.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::{InputGuardrail, ToolGuardrail, ToolVerdict};
use switchboard_core::hooks::{HookResult, RunHooks, ToolEnd};
use switchboard_core::model::Usage;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, ErrorKind, Item, Model, ModelRequest, ModelResponse, RunContext, Runner, Tool,
    ToolContext, tool,
};

use crate::stored;

fn tokens(input_tokens: u64) -> Usage {
    Usage {
        input_tokens,
        ..Usage::default()
    }
}

/// An answer at a cost.
fn answer(item: Item, input_tokens: u64) -> ModelResponse {
    ModelResponse::new([item]).usage(tokens(input_tokens))
}

struct Billing;

impl RunHooks for Billing {
    async fn on_tool_end(
        &self,
        _ctx: &RunContext,
        _agent: &Agent,
        _tool: &Tool,
        call: &ToolContext,
        _end: &ToolEnd<'_>,
    ) -> HookResult {
        call.add_usage(tokens(1_000));
        Ok(())
    }
}

#[tokio::test]
async fn guardrails_and_hooks_of_a_tool_count_like_the_tool() {
    let on_call = ToolGuardrail::on_call("call", |ctx: ToolContext| ctx.add_usage(tokens(1)));
    let on_output = ToolGuardrail::on_output("output", |ctx: ToolContext, _output| {
        ctx.add_usage(tokens(10));
    });
    let agent: Agent = Agent::new("A").tool(tool("t").guardrail(on_call).guardrail(on_output).run(
        |ctx, (): ()| {
            ctx.add_usage(tokens(100));
            ctx.run_context().add_usage(tokens(10_000));
        },
    ));
    let model = ScriptedModel::new()
        .respond_with(answer(Item::function_call("c", "t", "{}"), 0))
        .respond_with(answer(Item::output_message("m", "ok"), 0));
    let runner = Runner::new(&agent).model(model).hooks(Billing);
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.usage().input_tokens, 11_111);
}

#[tokio::test]
async fn the_usage_of_a_guardrail_that_trips_counts() {
    let asked = AtomicUsize::new(0);
    let once = ToolGuardrail::on_call("once", move |ctx: ToolContext| {
        ctx.add_usage(tokens(5));
        match asked.fetch_add(1, Ordering::SeqCst) {
            0 => ToolVerdict::trip("no"),
            _ => ToolVerdict::Allow,
        }
    });
    let agent: Agent = Agent::new("A").tool(tool("t").guardrail(once).run(|_ctx, (): ()| "1"));
    let model = ScriptedModel::new()
        .respond_with(answer(Item::function_call("c", "t", "{}"), 0))
        .respond_with(answer(Item::output_message("m", "ok"), 0));
    let runner = Runner::new(&agent).model(model);
    let run = runner.run("x").await.unwrap_err().into_run().unwrap();
    assert_eq!(run.usage().input_tokens, 5);
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(result.usage().input_tokens, 10);
}

/// Answers its first request with a call, and then never.
struct Endless(Arc<AtomicUsize>);

impl Model for Endless {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Ok(answer(Item::function_call("d", "look", "{}"), 7)),
            _ => std::future::pending().await,
        }
    }
}

/// A clerk whose tool is an agent that never answers.
fn clerk(asked: &Arc<AtomicUsize>, listened_to: bool, timeout: Option<Duration>) -> Agent {
    let model = switchboard_core::model::ModelHandle::new(Endless(asked.clone()));
    let look = tool("look").run(|_ctx, (): ()| "nothing");
    let expert: Agent = Agent::new("Expert").model(model).tool(look);
    let mut ask = expert.as_tool("ask");
    if listened_to {
        ask = ask.on_event(|_ctx, _event| {});
    }
    if let Some(timeout) = timeout {
        ask = ask.timeout(timeout);
    }
    let script = ScriptedModel::new()
        .respond_with(answer(
            Item::function_call("c", "ask", r#"{"input": "x"}"#),
            100,
        ))
        .respond_with(answer(Item::output_message("m", "ok"), 1_000));
    Agent::new("Clerk").tool(ask).model(script)
}

#[tokio::test]
async fn the_usage_of_an_agent_that_takes_too_long_counts() {
    for listened_to in [false, true] {
        let clerk = clerk(
            &Arc::default(),
            listened_to,
            Some(Duration::from_millis(20)),
        );
        let result = Runner::new(&clerk).run("x").await.unwrap();
        assert_eq!(result.usage().input_tokens, 1_107, "{listened_to}");
    }
}

#[tokio::test]
async fn the_usage_of_a_stopped_agent_counts() {
    let asked = Arc::new(AtomicUsize::new(0));
    let stream = Runner::new(&clerk(&asked, false, None)).stream("x");
    let stopper = stream.stop_handle();
    let finished = tokio::spawn(stream.finish());
    while asked.load(Ordering::SeqCst) < 2 {
        tokio::task::yield_now().await;
    }
    stopper.stop();
    let result = finished.await.unwrap().unwrap();
    assert_eq!(result.usage().input_tokens, 107);
}

#[tokio::test]
async fn an_answer_counts_though_a_guardrail_beside_it_fails() {
    let slow = InputGuardrail::beside_model("slow", |_ctx, _agent, _input| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        Err::<(), _>("the service is down")
    });
    let agent: Agent = Agent::new("A").input_guardrail(slow);
    let model = ScriptedModel::new().respond_with(answer(Item::output_message("m", "ok"), 3));
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    assert_eq!(error.run().unwrap().usage().input_tokens, 3);
}

#[tokio::test]
async fn the_usage_of_a_failed_answer_counts() {
    struct Cut;
    impl switchboard_core::Model for Cut {
        async fn respond(
            &self,
            request: switchboard_core::ModelRequest,
        ) -> Result<switchboard_core::ModelResponse, switchboard_core::callback::BoxError> {
            request.add_usage(switchboard_core::model::Usage {
                requests: 1,
                output_tokens: 9,
                ..Default::default()
            });
            Err("the answer was cut".into())
        }
    }
    let agent: switchboard_core::Agent = switchboard_core::Agent::new("A");
    let runner = switchboard_core::Runner::new(&agent).model(Cut);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.run().unwrap().usage().output_tokens, 9);
}

#[tokio::test]
async fn the_usage_of_each_response_is_listed_with_its_agent_and_model() {
    let expert_model =
        ScriptedModel::new().respond_with(answer(Item::output_message("m", "42"), 7));
    let expert: Agent = Agent::new("Expert").model(expert_model);
    let note = tool("note").run(|ctx: ToolContext, (): ()| {
        ctx.add_usage(tokens(3));
        "noted"
    });
    let script = ScriptedModel::new()
        .respond_with(answer(
            Item::function_call("h", "transfer_to_clerk", "{}"),
            1,
        ))
        .respond_with(answer(
            Item::function_call("c", "ask", r#"{"input": "x"}"#),
            100,
        ))
        .respond_with(answer(Item::function_call("n", "note", "{}"), 1_000))
        .respond_with(answer(Item::output_message("m", "ok"), 10_000));
    let clerk = Agent::new("Clerk").tool(expert.as_tool("ask")).tool(note);
    let clerk = clerk.model(&script);
    let triage = Agent::new("Triage").handoff(&clerk).model(&script);
    let result = Runner::new(&triage).run("x").await.unwrap();
    let expected = [
        ("Triage", "scripted", 1),
        ("Clerk", "scripted", 100),
        ("Expert", "scripted", 7),
        ("Clerk", "scripted", 1_000),
        ("-", "-", 3),
        ("Clerk", "scripted", 10_000),
    ];
    for run in [result.run(), &stored(result.run())] {
        let requests = run.request_usage().iter();
        let listed: Vec<_> = requests
            .map(|one| {
                let agent = one.agent.as_deref().unwrap_or("-");
                let model = one.model.as_deref().unwrap_or("-");
                (agent, model, one.usage.input_tokens)
            })
            .collect();
        assert_eq!(listed, expected);
    }
    let requests = result.request_usage().iter();
    let sum = requests.fold(Usage::default(), |sum, one| sum + one.usage);
    assert_eq!(sum, *result.usage());
}

#[test]
fn tokens_written_to_the_cache_are_added_up_and_stored() {
    let one = Usage {
        cache_write_tokens: 5,
        ..Usage::default()
    };
    assert_eq!((one + one).cache_write_tokens, 10);
    let stored = serde_json::to_value(one).unwrap();
    assert_eq!(stored["cache_write_tokens"], 5);
    assert_eq!(serde_json::from_value::<Usage>(stored).unwrap(), one);
    let none = serde_json::to_string(&Usage::default()).unwrap();
    assert!(!none.contains("cache_write"), "{none}");
}
