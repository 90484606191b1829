//! Behaviour that tests of the reference show and no other module does; see docs/coverage.md.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use switchboard_core::agent::{ToolResult, ToolUseBehavior};
use switchboard_core::guardrail::OutputGuardrail;
use switchboard_core::items::Items;
use switchboard_core::model::{ModelEvent, ModelHandle};
use switchboard_core::run::{Fallback, HistoryPolicy, RunConfig};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{MemoryTracer, SpanData};
use switchboard_core::{
    Agent, EventKind, FinalOutput, Item, MemorySession, ModelRequest, ModelResponse, ModelSettings,
    Runner, Tool, ToolContext, handoff, tool,
};

use crate::filters::invalid_output::Warnings;
use crate::{described, stored};

fn item(json: Value) -> Item {
    Item::from_json(json.to_string()).unwrap()
}

/// A tool whose failure ends the run.
fn failing(name: &str) -> Tool {
    let message = format!("{name} has no network");
    tool(name)
        .fail_run()
        .run(move |_ctx, (): ()| Err::<String, _>(message.clone()))
}

#[tokio::test]
async fn a_tool_that_the_provider_completed_is_kept_if_a_tool_beside_it_ends_the_run() {
    for (status, kept) in [("completed", 1), ("in_progress", 0)] {
        for is_streamed in [false, true] {
            let what = format!("{status}, streamed: {is_streamed}");
            let agent = Agent::new("A").tool(failing("fails"));
            let search = item(json!({"type": "web_search_call", "id": "ws", "status": status}));
            let call = Item::function_call("c", "fails", "{}");
            let model = ScriptedModel::new().reply([search.clone(), call]);
            let session = MemorySession::new();
            let runner = Runner::new(&agent).model(model).session(&session);
            let error = if is_streamed {
                runner.stream("x").finish().await.unwrap_err()
            } else {
                runner.run("x").await.unwrap_err()
            };
            let stored: Vec<Item> = session.items().into_iter().skip(1).collect();
            assert_eq!(stored, [search][..kept], "{what}");
            assert_eq!(error.run().unwrap().completed_items().len(), kept, "{what}");
        }
    }
}

#[tokio::test]
async fn completed_tools_are_kept_if_the_function_that_decides_after_them_fails() {
    let agent: Agent = Agent::new("A")
        .tool(tool("t").run(|_ctx, (): ()| "1"))
        .tool_use_behavior(ToolUseBehavior::decide(
            |_ctx, _results: Vec<ToolResult>| Err::<Option<FinalOutput>, _>("no decision"),
        ));
    let session = MemorySession::new();
    let model = ScriptedModel::new().call("t", "{}");
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.run("x").await.unwrap_err();
    assert_eq!(
        described(&session.items()),
        ["user: x", "call t", "output of call_1: 1"]
    );
}

#[tokio::test]
async fn of_several_tools_that_end_the_run_the_first_call_is_the_error() {
    let agent = Agent::new("A").tool(failing("one")).tool(failing("two"));
    let model = ScriptedModel::new().calls([("two", "{}"), ("one", "{}")]);
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert!(error.to_string().contains("two has no network"), "{error}");
}

#[tokio::test]
async fn the_error_of_a_condition_cancels_the_others() {
    // In the first turn, or when the conditions of tools are asked again before they run.
    for calls_before_failure in [0, 1] {
        let asked = Arc::new(AtomicUsize::new(0));
        let fails = move |_ctx, _agent| {
            let is_first = asked.fetch_add(1, Ordering::SeqCst) < calls_before_failure;
            async move {
                tokio::task::yield_now().await;
                if is_first { Ok(true) } else { Err("no policy") }
            }
        };
        let begun = Arc::new(AtomicUsize::new(0));
        let waits = move |_ctx, _agent| {
            let is_first = begun.fetch_add(1, Ordering::SeqCst) < calls_before_failure;
            async move {
                if !is_first {
                    std::future::pending::<()>().await;
                }
                true
            }
        };
        let agent: Agent = Agent::new("A")
            .tool(tool("waits").enabled_if(waits).run(|_ctx, (): ()| "never"))
            .tool(tool("fails").enabled_if(fails).run(|_ctx, (): ()| "never"));
        let model = ScriptedModel::new().calls([("waits", "{}"), ("fails", "{}")]);
        let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
        assert!(error.to_string().contains("no policy"), "{error}");
    }
    let (b, c): (Agent, Agent) = (Agent::new("B"), Agent::new("C"));
    let agent = Agent::new("A")
        .handoff(handoff(&b).enabled_if(|_ctx, _agent| std::future::pending::<bool>()))
        .handoff(handoff(&c).enabled_if(|_ctx, _agent| Err::<bool, _>("no policy")));
    let model = ScriptedModel::new().say("never");
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert!(error.to_string().contains("no policy"), "{error}");
}

#[tokio::test]
async fn the_error_of_a_filter_on_model_calls_is_marked_in_the_turn() {
    for (sensitive, expected) in [(true, "row 7"), (false, "redacted")] {
        let agent: Agent = Agent::new("A");
        let tracer = MemoryTracer::new();
        let runner = Runner::new(&agent)
            .model(ScriptedModel::new().say("never"))
            .model_filter(|_ctx, _agent, _request| Err::<ModelRequest, _>("row 7"))
            .trace_sensitive_data(sensitive)
            .tracer(tracer.clone());
        runner.run("x").await.unwrap_err();
        let spans = tracer.take();
        let turn = spans
            .iter()
            .find(|span| matches!(span.data, SpanData::Turn { .. }));
        let error = turn.unwrap().error.clone().unwrap();
        assert_eq!(error.message, "Error in the filter on model calls");
        assert!(
            error.data["error"].to_string().contains(expected),
            "{error:?}"
        );
    }
}

#[tokio::test]
async fn a_filter_on_model_calls_may_put_identifiers_of_reasoning_back() {
    let reasoning = json!({"type": "reasoning", "id": "rs_1", "summary": []});
    let again = json!({"type": "reasoning", "id": "rs_again", "summary": []});
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let model = ScriptedModel::new()
        .reply([item(reasoning), Item::function_call("c", "t", "{}")])
        .say("ok");
    let runner = Runner::new(&agent)
        .model(model.clone())
        .omit_reasoning_ids(true)
        .model_filter(move |_ctx, _agent, mut request: ModelRequest| {
            let again = item(again.clone());
            let changed = request.input.iter().map(|item| {
                let is_reasoning = item.as_json().contains("\"reasoning\"");
                if is_reasoning {
                    again.clone()
                } else {
                    item.clone()
                }
            });
            request.input = changed.collect::<Items>();
            request
        });
    let result = runner.run("x").await.unwrap();
    let sent = format!("{:?}", model.requests()[1].input);
    assert!(
        sent.contains("rs_again") && !sent.contains("rs_1"),
        "{sent}"
    );
    assert!(!format!("{:?}", result.to_input_list()).contains("rs_"));
}

#[tokio::test]
async fn code_of_a_tool_can_read_its_agent_its_call_and_the_settings_of_the_run() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let noted = seen.clone();
    let look: Tool = tool("look").run(move |ctx: ToolContext, (): ()| {
        let turns = ctx.config().max_turns;
        let call = ctx.call().call_id().unwrap_or_default().into_owned();
        let said = format!("{} {} {call} {turns:?}", ctx.agent().name(), ctx.tool());
        noted.lock().unwrap().push(said);
        "seen"
    });
    let agent = Agent::new("A").tool(look);
    let model = ScriptedModel::new().call("look", "{}").say("ok");
    let runner = Runner::new(&agent).model(model).max_turns(7);
    runner.run("x").await.unwrap();
    assert_eq!(*seen.lock().unwrap(), ["A look call_1 Some(7)"]);
}

#[tokio::test]
async fn an_agent_tool_may_have_settings_of_its_own() {
    let own = ScriptedModel::new().say("from its own model");
    let config = RunConfig {
        model: Some(ModelHandle::new(own)),
        ..RunConfig::default()
    };
    let expert: Agent = Agent::new("Expert");
    let clerk = Agent::new("Clerk").tool(expert.as_tool("ask").config(config));
    let model = ScriptedModel::new()
        .call("ask", r#"{"input": "x"}"#)
        .say("ok");
    let runner = Runner::new(&clerk).model(model.clone());
    runner.run("x").await.unwrap();
    assert_eq!(
        described(&model.requests()[1].input)[2],
        "output of call_1: from its own model"
    );
}

#[test]
fn a_default_tool_name_that_had_to_be_changed_is_warned_about() {
    // With a single dispatcher, `tracing` asks only the thread that reaches a call site first.
    let _second = tracing::Dispatch::new(Warnings::default());
    let warnings = Warnings::default();
    let _guard = tracing::subscriber::set_default(warnings.clone());
    for (name, expected) in [("Refund agent", 0), ("Refund/agent", 1)] {
        let agent: Agent = Agent::new(name);
        let edge = handoff(&agent).build();
        assert_eq!(edge.tool_name(), "transfer_to_refund_agent");
        assert_eq!(warnings.0.lock().unwrap().len(), expected, "{name}");
    }
    assert!(warnings.0.lock().unwrap()[0].contains("characters that a tool's name cannot have"));
}

#[tokio::test]
async fn a_session_does_not_get_an_output_whose_guardrail_failed() {
    let fails = OutputGuardrail::new("fails", |_ctx, _agent, _output| Err::<(), _>("no network"));
    // A final message, and the fallback of a run without turns left.
    for max_turns in [1, 0] {
        for is_streamed in [false, true] {
            let agent: Agent = Agent::new("A").output_guardrail(fails.clone());
            let session = MemorySession::new();
            let runner = Runner::new(&agent)
                .model(ScriptedModel::new().say("ok"))
                .session(&session)
                .history(HistoryPolicy::Reference)
                .max_turns(max_turns)
                .recover(|_ctx, _failure| Some(Fallback::from("Sorry.")));
            let error = if is_streamed {
                runner.stream("x").finish().await.unwrap_err()
            } else {
                runner.run("x").await.unwrap_err()
            };
            assert!(error.is_user_code(), "{error}");
            assert_eq!(described(&session.items()), ["user: x"]);
            // The output stays in the run: without the guardrail, it is the result.
            let unguarded: Agent = Agent::new("A");
            let runner = Runner::new(&unguarded).session(&session);
            let result = runner.resume(stored(error.run().unwrap())).await.unwrap();
            let expected = ["Sorry.", "ok"][max_turns as usize];
            assert_eq!(result.final_text(), expected);
            assert_eq!(
                described(&session.items()),
                ["user: x".to_owned(), format!("assistant: {expected}")]
            );
        }
    }
}

#[tokio::test]
async fn a_script_may_have_functions_and_exact_stream_events() {
    let answer = ModelResponse::new([Item::output_message("m", "Hi.")]);
    let model = ScriptedModel::new()
        .stream_events([
            ModelEvent::text_delta("m", "H"),
            ModelEvent::text_delta("m", "i."),
            ModelEvent::Completed(answer),
        ])
        .respond_by(|request| {
            let said = described(&request.input).join(", ");
            Ok(ModelResponse::new([Item::output_message("m", &said)]))
        });
    let agent: Agent = Agent::new("A").model(model);
    let mut stream = Runner::new(&agent).stream("x");
    let mut deltas = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventKind::TextDelta { text, .. } = event.kind {
            deltas.push(text.to_string());
        }
    }
    assert_eq!(deltas, ["H", "i."]);
    assert_eq!(stream.finish().await.unwrap().final_text(), "Hi.");
    let result = Runner::new(&agent).run("y").await.unwrap();
    assert_eq!(result.final_text(), "user: y");
}

#[test]
fn further_fields_of_a_request_are_merged() {
    let with = |fields: &[(&str, &str)]| ModelSettings {
        extra_body: fields
            .iter()
            .map(|(name, value)| ((*name).to_owned(), json!(value)))
            .collect(),
        ..ModelSettings::default()
    };
    let agent = with(&[("one", "agent"), ("two", "agent")]);
    let run = with(&[("one", "run"), ("three", "run")]);
    let merged = with(&[("one", "run"), ("two", "agent"), ("three", "run")]);
    assert_eq!(agent.overridden_by(&run), merged);
    assert_eq!(agent.overridden_by(&ModelSettings::default()), agent);
    let stored = serde_json::to_string(&merged).unwrap();
    let read: ModelSettings = serde_json::from_str(&stored).unwrap();
    assert_eq!(read, merged);
}
