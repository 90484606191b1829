//! Other words, other outputs, other requests: what the application may change on the way.

use serde_json::json;
use switchboard_core::guardrail::{OutputGuardrail, OutputVerdict};
use switchboard_core::handoff::HandoffInputData;
use switchboard_core::run::{Fallback, RunFailure, RunProblem};
use switchboard_core::stream::ItemEvent;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{MemoryTracer, SpanData};
use switchboard_core::{
    Agent, ErrorKind, EventKind, FinalOutput, Item, MemorySession, Runner, handoff, tool,
};

use crate::described;

#[tokio::test]
async fn a_run_that_cannot_continue_may_have_a_fallback_output() {
    let recover = |_ctx, failure: RunFailure| async move {
        match failure.problem {
            RunProblem::MaxTurns => {
                let items = failure.run.new_items().len();
                Some(format!("Stopped after {items} items: {}", failure.message).into())
            }
            RunProblem::Refusal => Some(Fallback::from("Let us talk of something else.")),
            _ => None,
        }
    };
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let model = ScriptedModel::new().call("t", "{}");
    let runner = Runner::new(&agent)
        .model(model)
        .max_turns(1)
        .recover(recover);
    let result = runner.run("x").await.unwrap();
    assert!(
        result.final_text().starts_with("Stopped after 2 items: "),
        "{}",
        result.final_text()
    );
    assert_eq!(
        result.new_items().len(),
        3,
        "the output is part of the record"
    );

    let refusal =
        r#"{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"No."}]}"#;
    let model = ScriptedModel::new().reply([Item::from_json(refusal).unwrap()]);
    let runner = Runner::new(&agent).model(model).recover(recover);
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.final_text(), "Let us talk of something else.");

    let typed: Agent = Agent::new("A").output::<Vec<u32>>();
    let model = ScriptedModel::new().say("no list");
    let error = Runner::new(&typed)
        .model(model)
        .recover(recover)
        .run("x")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ModelBehavior);
}

#[tokio::test]
async fn every_request_can_be_changed_before_a_model_is_asked() {
    let agent: Agent = Agent::new("A").instructions("Help.");
    let model = ScriptedModel::new().say("ok");
    let runner =
        Runner::new(&agent)
            .model(model.clone())
            .model_filter(|_ctx, agent, mut request| {
                request.instructions = Some(format!("You are {}.", agent.name()).into());
                request.input = request.input.skip(1);
                request
            });
    runner
        .run(vec![Item::user("1"), Item::user("2")])
        .await
        .unwrap();
    let asked = &model.requests()[0];
    assert_eq!(asked.instructions.as_deref(), Some("You are A."));
    assert_eq!(described(&asked.input), ["user: 2"]);
}

#[tokio::test]
async fn orphaned_calls_that_a_filter_left_can_be_removed() {
    let boss: Agent = Agent::new("Boss");
    let careless = |data: HandoffInputData| {
        let outputs = data.new_items().clone().into_iter().skip(1);
        data.with_input_items(outputs)
    };
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(careless));
    let script = || {
        ScriptedModel::new()
            .call("transfer_to_boss", "{}")
            .say("ok")
    };
    let model = script();
    Runner::new(&clerk)
        .model(model.clone())
        .run("x")
        .await
        .unwrap();
    assert_eq!(
        model.requests()[1].input.len(),
        2,
        "what a filter returns is passed on as given"
    );
    let model = script();
    Runner::new(&clerk)
        .model(model.clone())
        .drop_orphaned_calls(true)
        .run("x")
        .await
        .unwrap();
    assert_eq!(described(&model.requests()[1].input), ["user: x"]);
}

#[tokio::test]
async fn a_fallback_output_of_a_typed_run_is_of_its_type_or_an_error() {
    let agent: Agent = Agent::new("A").output::<Vec<u32>>();
    let run = |output: FinalOutput| {
        let model = ScriptedModel::new().say("no list");
        let recover = move |_ctx, _failure| Some(Fallback::new(output.clone()));
        Runner::new(&agent).model(model).recover(recover).run("x")
    };
    let result = run(FinalOutput::from(serde_json::json!([3])))
        .await
        .unwrap();
    assert_eq!(result.final_output_as::<Vec<u32>>().unwrap(), [3]);
    assert_eq!(
        described(&result.to_input_list()).last().unwrap(),
        r#"assistant: {"response":[3]}"#
    );
    let error = run(FinalOutput::from("sorry")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    assert!(
        error.to_string().contains("the recovery gave an output"),
        "{error}"
    );
}

#[tokio::test]
async fn a_fallback_may_stay_out_of_the_history() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let session = MemorySession::new();
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new().call("t", "{}"))
        .max_turns(1)
        .session(&session)
        .recover(|_ctx, _failure| None::<Fallback>)
        .recover_from(RunProblem::MaxTurns, |_ctx, _failure| {
            Some(Fallback::from("Sorry.").out_of_history())
        });
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.final_text(), "Sorry.");
    let history = ["user: x", "call t", "output of call_1: 1"];
    assert_eq!(described(&result.to_input_list()), history);
    assert_eq!(described(&session.items()), history);
}

#[tokio::test]
async fn an_empty_answer_of_a_typed_agent_asks_for_a_fallback_and_otherwise_the_model_again() {
    let typed: Agent = Agent::new("A").output::<Vec<u32>>();
    for first in [vec![], vec![Item::output_message("m", "")]] {
        let model = ScriptedModel::new()
            .reply(first.clone())
            .say(r#"{"response": [1]}"#);
        let runner =
            Runner::new(&typed)
                .model(model.clone())
                .recover(|_ctx, failure: RunFailure| {
                    assert!(failure.response.is_some());
                    Some(Fallback::from(serde_json::json!([3])))
                });
        let result = runner.run("x").await.unwrap();
        assert_eq!(result.final_output_as::<Vec<u32>>().unwrap(), [3]);
        assert_eq!(model.left(), 1);

        let model = ScriptedModel::new()
            .reply(first)
            .say(r#"{"response": [1]}"#);
        let runner = Runner::new(&typed)
            .model(model.clone())
            .recover(|_ctx, _failure| None::<Fallback>);
        let result = runner.run("x").await.unwrap();
        assert_eq!(result.final_output_as::<Vec<u32>>().unwrap(), [1]);
        assert_eq!(model.left(), 0);
    }
}

#[tokio::test]
async fn a_fallback_follows_the_rejected_answer_in_the_result_and_in_the_stream() {
    let agent: Agent = Agent::new("A").output::<Vec<u32>>();
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new().say("no list"))
        .recover(|_ctx, _failure| Some(Fallback::from(json!([1]))));
    let mut stream = runner.stream("x");
    let mut streamed = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventKind::Item { item, .. } = event.kind {
            streamed.push(item.item().clone());
        }
    }
    let result = stream.finish().await.unwrap();

    let recorded = result.new_items().iter().map(|item| item.item().clone());
    let answer = r#"assistant: {"response":[1]}"#;
    let expected = ["assistant: no list", answer];
    assert_eq!(described(&streamed.into()), expected);
    assert_eq!(described(&recorded.collect()), expected);
    let responses = result.raw_responses().iter();
    let texts = responses.map(|response| response.output[0].text().unwrap_or_default());
    assert_eq!(texts.collect::<Vec<_>>(), ["no list"]);
}

#[tokio::test]
async fn a_run_that_had_too_many_turns_is_marked_in_the_trace_though_it_has_a_fallback() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new().call("t", "{}"))
        .tracer(tracer.clone())
        .max_turns(1)
        .recover(|_ctx, _failure| Some(Fallback::from("Sorry.")));

    let result = runner.run("x").await.unwrap();

    assert_eq!(result.final_text(), "Sorry.");
    let spans = tracer.spans();
    let mut agents = spans.iter();
    let agent = agents.find(|span| matches!(span.data, SpanData::Agent { .. }));
    let error = agent.unwrap().error.as_ref().unwrap();
    assert_eq!(error.message, "Max turns exceeded");
}

#[tokio::test]
async fn a_fallback_is_streamed_once_the_guardrails_have_passed_it() {
    for (trips, expected) in [(false, 1), (true, 0)] {
        let check = OutputGuardrail::new("check", move |_ctx, _agent, _output| {
            OutputVerdict::trip_if(trips, "no")
        });
        let agent: Agent = Agent::new("A")
            .tool(tool("t").run(|_ctx, (): ()| "1"))
            .output_guardrail(check);
        let runner = Runner::new(&agent)
            .model(ScriptedModel::new().call("t", "{}"))
            .max_turns(1)
            .recover(|_ctx, _failure| Some(Fallback::from("Sorry.")));
        let mut stream = runner.stream("x");
        let mut messages = 0;
        while let Some(event) = stream.next().await {
            let name = ItemEvent::MessageOutputCreated;
            messages +=
                usize::from(matches!(event.kind, EventKind::Item { name: n, .. } if n == name));
        }
        assert_eq!(messages, expected);
    }
}
