//! Conversations that the provider keeps.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::OutputGuardrail;
use switchboard_core::items::ItemKind;
use switchboard_core::model::ServerState;
use switchboard_core::run::ServerHistory;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, Item, MemorySession, Model, ModelRequest, ModelResponse, Run, Runner, filters, handoff,
    tool,
};

use crate::described;

/// Numbers the answers of a script, as a provider that keeps them does.
struct Kept(ScriptedModel, AtomicUsize);

impl Kept {
    fn new(script: &ScriptedModel) -> Self {
        Self(script.clone(), AtomicUsize::new(0))
    }
}

impl Model for Kept {
    async fn respond(&self, request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let mut answer = self.0.respond(request).await?;
        let number = self.1.fetch_add(1, Ordering::SeqCst) + 1;
        answer.response_id = Some(format!("resp_{number}").into());
        Ok(answer)
    }
}

fn desk(calls: &Arc<AtomicUsize>) -> Agent {
    let counted = calls.clone();
    let billing: Agent = Agent::new("Billing").tool(tool("lookup").run(|_ctx, (): ()| "42"));
    Agent::new("Triage").handoff(handoff(&billing).on_handoff(move |_ctx| {
        counted.fetch_add(1, Ordering::SeqCst);
    }))
}

fn script() -> ScriptedModel {
    ScriptedModel::new()
        .call("transfer_to_billing", "{}")
        .call("lookup", "{}")
        .say("It is 42.")
}

fn follows(id: &str) -> Option<ServerState> {
    Some(ServerState::PreviousResponse(id.into()))
}

#[tokio::test]
async fn only_what_is_new_is_sent_and_each_response_follows_the_last() {
    let script = script();
    let runner = Runner::new(&desk(&Arc::default()))
        .model(Kept::new(&script))
        .server_history(ServerHistory::Responses { previous: None });
    let result = runner.run("How much?").await.unwrap();
    let requests = script.requests();
    assert_eq!(described(&requests[0].input), ["user: How much?"]);
    assert_eq!(requests[0].server, None);
    assert_eq!(
        described(&requests[1].input),
        [r#"output of call_1: {"assistant": "Billing"}"#]
    );
    assert_eq!(requests[1].server, follows("resp_1"));
    assert_eq!(described(&requests[2].input), ["output of call_2: 42"]);
    assert_eq!(requests[2].server, follows("resp_2"));
    assert_eq!(result.to_input_list().len(), 6, "the run itself has it all");

    let script = ScriptedModel::new().say("Hi.");
    let runner = runner.model(Kept::new(&script)).previous_response("resp_9");
    runner.run("Again").await.unwrap();
    assert_eq!(script.requests()[0].server, follows("resp_9"));
}

#[tokio::test]
async fn a_conversation_keeps_its_name_and_a_stored_run_knows_what_was_sent() {
    let script = script();
    let runner = Runner::new(&desk(&Arc::default()))
        .model(Kept::new(&script))
        .conversation("conv_1");
    let mut run = runner.begin("How much?");
    while !matches!(run.step(), switchboard_core::Step::Done(_)) {
        runner.step(&mut run).await.unwrap();
        let stored = serde_json::to_string(&run).unwrap();
        run = serde_json::from_str::<Run>(&stored).unwrap();
    }
    let requests = script.requests();
    let lengths: Vec<usize> = requests.iter().map(|request| request.input.len()).collect();
    assert_eq!(lengths, [1, 1, 1]);
    for request in &requests {
        let conversation = Some(ServerState::Conversation("conv_1".into()));
        assert_eq!(request.server, conversation);
    }
}

#[tokio::test]
async fn settings_that_cannot_apply_are_errors_before_the_callback_and_nesting_is_off() {
    let calls = Arc::new(AtomicUsize::new(0));
    let run = |runner: Runner| {
        let runner = runner.conversation("conv_1");
        async move { runner.run("x").await }
    };
    let with_filter = Runner::new(&desk(&calls))
        .model(script())
        .handoff_input_filter(filters::remove_all_tools());
    let error = run(with_filter).await.unwrap_err();
    assert!(error.is_configuration(), "{error}");
    assert_eq!(error.handoff(), Some("transfer_to_billing"));
    assert_eq!(calls.load(Ordering::SeqCst), 0);

    let nested = script();
    let runner = Runner::new(&desk(&calls)).model(nested.clone());
    run(runner.nest_handoff_history(true)).await.unwrap();
    let sent = &nested.requests()[1].input;
    assert_eq!(sent.len(), 1);
    assert_eq!(
        sent.iter().next().map(Item::kind),
        Some(ItemKind::FunctionCallOutput)
    );

    let session = MemorySession::new();
    let error = run(Runner::new(&desk(&calls)).session(&session)).await;
    assert!(error.unwrap_err().is_configuration());
    let guardrail = OutputGuardrail::new("g", |_ctx, _agent, _output| ());
    let error = run(Runner::new(&desk(&calls)).output_guardrail(guardrail)).await;
    assert!(error.unwrap_err().is_configuration());
}

#[tokio::test]
async fn an_answer_without_an_identifier_cannot_be_followed() {
    let runner = Runner::new(&desk(&Arc::default()))
        .model(script())
        .server_history(ServerHistory::Responses { previous: None });
    let error = runner.run("x").await.unwrap_err();
    assert!(error.is_configuration(), "{error}");
    assert!(error.to_string().contains("Responses"), "{error}");
}

#[tokio::test]
async fn a_run_is_resumed_only_in_the_conversation_it_began_in() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let script = ScriptedModel::new().call("t", "{}").say("ok");
    let begun = Runner::new(&agent).model(script.clone());
    let mut run = begun.begin("x");
    begun.step(&mut run).await.unwrap();
    let error = begun
        .clone()
        .conversation("conv_1")
        .resume(run)
        .await
        .unwrap_err();
    assert!(error.is_configuration(), "{error}");

    let begun = begun.conversation("conv_1");
    let script = ScriptedModel::new().call("t", "{}").say("ok");
    let begun = begun.model(script.clone());
    let mut run = begun.begin("x");
    begun.step(&mut run).await.unwrap();
    let other = begun
        .clone()
        .conversation("conv_2")
        .resume(run.clone())
        .await;
    assert!(other.unwrap_err().is_configuration());
    // Without any, everything is sent.
    let alone = Runner::new(&agent).model(script.clone());
    alone.resume(run).await.unwrap();
    assert_eq!(script.requests()[1].input.len(), 3);
}

#[tokio::test]
async fn a_rejected_response_is_not_continued_from() {
    let agent: Agent = Agent::new("A");
    let script = ScriptedModel::new().call("no_such_tool", "{}").say("ok");
    let runner = Runner::new(&agent)
        .model(Kept::new(&script))
        .server_history(ServerHistory::Responses { previous: None });
    let error = runner.run("x").await.unwrap_err();
    runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(described(&script.requests()[1].input), ["user: x"]);
    assert_eq!(script.requests()[1].server, None);
}

#[tokio::test]
async fn an_agent_used_as_a_tool_has_a_conversation_of_its_own() {
    let inner: Agent = Agent::new("Inner");
    let outer = Agent::new("Outer").tool(inner.as_tool("ask"));
    let script = ScriptedModel::new()
        .call("ask", r#"{"input": "q"}"#)
        .say("inner")
        .say("outer");
    let runner = Runner::new(&outer)
        .model(script.clone())
        .conversation("conv_1");
    runner.run("x").await.unwrap();
    let servers: Vec<bool> = script
        .requests()
        .iter()
        .map(|r| r.server.is_some())
        .collect();
    assert_eq!(servers, [true, false, true]);
}

#[tokio::test]
async fn an_item_that_a_filter_left_out_is_sent_later() {
    let script = ScriptedModel::new().call("lookup", "{}").say("ok");
    let agent: Agent = Agent::new("A").tool(tool("lookup").run(|_ctx, (): ()| "42"));
    let runner = Runner::new(&agent)
        .model(Kept::new(&script))
        .server_history(ServerHistory::Responses { previous: None })
        .model_filter(|ctx, _agent, mut request| {
            if ctx.usage().requests == 0 {
                request.input = request.input.iter().take(1).cloned().collect();
            }
            request
        });
    let input = vec![Item::user("first"), Item::user("second")];
    runner.run(input).await.unwrap();
    let sent: Vec<_> = script
        .requests()
        .iter()
        .map(|it| described(&it.input))
        .collect();
    assert_eq!(
        sent,
        [
            vec!["user: first"],
            vec!["user: second", "output of call_1: 42"],
        ]
    );
}
