//! Output guardrails: withheld and replaced outputs.

use serde_json::Value;
use switchboard_core::agent::ToolUseBehavior;
use switchboard_core::guardrail::{GuardrailKind, OutputGuardrail, OutputVerdict};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, FinalOutput, Item, MemorySession, Runner, tool};

use super::{FlakySession, trips_once};
use crate::{described, stored};

/// Trips the first time.
fn trips_first() -> OutputGuardrail {
    let trips = trips_once();
    OutputGuardrail::new("once", move |_ctx, _agent, _output: FinalOutput| {
        OutputVerdict::trip_if(trips(), Value::Null)
    })
}

#[tokio::test]
async fn a_withheld_tool_output_does_not_reach_the_session() {
    let agent: Agent = Agent::new("A")
        .tool(tool("read").run(|_ctx, (): ()| "the secret"))
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(OutputGuardrail::new(
            "no_secrets",
            |_ctx, _agent, output: FinalOutput| {
                OutputVerdict::trip_if(output.text().contains("secret"), Value::Null)
            },
        ));
    let session = MemorySession::new();
    let model = ScriptedModel::new().call("read", "{}");
    let runner = Runner::new(&agent).model(model).session(&session);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputGuardrail);
    // Another attempt stores nothing twice.
    let run = error.into_run().unwrap();
    runner.resume(run).await.unwrap_err();
    assert_eq!(
        described(&session.items()),
        [
            "user: x",
            "call read",
            "output of call_1: Output withheld by an output guardrail."
        ]
    );
}

#[tokio::test]
async fn a_tripped_output_guardrail_is_reported_even_if_the_session_fails() {
    let agent: Agent = Agent::new("A")
        .tool(tool("read").run(|_ctx, (): ()| "the secret"))
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(trips_first());
    let session = FlakySession::new(1);
    let model = ScriptedModel::new().call("read", "{}");
    let runner = Runner::new(&agent).model(model).session(&session);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputGuardrail);
    let run = error.into_run().unwrap();
    assert_eq!(run.guardrail_results(GuardrailKind::Output).len(), 1);
    assert_eq!(described(&session.stored.items()), ["user: x"]);
    // The output stays rejected, and the session gets what it missed.
    runner.resume(stored(&run)).await.unwrap_err();
    assert_eq!(
        described(&session.stored.items()),
        [
            "user: x",
            "call read",
            "output of call_1: Output withheld by an output guardrail."
        ]
    );
}

#[tokio::test]
async fn a_withheld_output_is_saved_after_the_items_not_saved_yet() {
    let agent: Agent = Agent::new("A")
        .tool(tool("look").run(|_ctx, (): ()| "there"))
        .tool(tool("read").run(|_ctx, (): ()| "the secret"))
        .tool_use_behavior(ToolUseBehavior::stop_at(["read"]))
        .output_guardrail(trips_first());
    let model = ScriptedModel::new().call("look", "{}").call("read", "{}");
    let session = MemorySession::new();
    let without = Runner::new(&agent).model(model);
    let with = without.clone().session(&session);
    let mut run = with.begin("x");
    with.step(&mut run).await.unwrap();
    let run = without.resume(run).await.unwrap_err().into_run().unwrap();
    with.resume(stored(&run)).await.unwrap_err();
    assert_eq!(
        described(&session.items()),
        [
            "user: x",
            "call look",
            "output of call_1: there",
            "call read",
            "output of call_2: Output withheld by an output guardrail."
        ]
    );
}

/// Replaces `from` by `to` in the output.
fn mask(from: &'static str, to: &'static str) -> OutputGuardrail {
    OutputGuardrail::replacing(from, move |_ctx, _agent, output: FinalOutput| {
        if output.text().contains(from) {
            OutputVerdict::replace(output.text().replace(from, to))
        } else {
            OutputVerdict::Allow
        }
    })
}

#[tokio::test]
async fn outputs_are_replaced_in_order_and_then_checked() {
    let agent: Agent = Agent::new("A")
        .output_guardrail(OutputGuardrail::new(
            "checked",
            |_ctx, _agent, output: FinalOutput| {
                OutputVerdict::trip_if(output.text().contains("secret"), Value::Null)
            },
        ))
        .output_guardrail(mask("secret", "hidden"))
        .output_guardrail(mask("hidden", "gone"));
    let session = MemorySession::new();
    let model = ScriptedModel::new().say("the secret");
    let runner = Runner::new(&agent).model(model).session(&session);
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.final_text(), "the gone");
    assert_eq!(
        described(&session.items()),
        ["user: x", "assistant: the gone"]
    );
    assert!(!format!("{:?}", result.new_items()).contains("secret"));
}

#[tokio::test]
async fn a_replaced_output_is_of_the_agents_type_or_an_error() {
    let run = |instead: &'static str| async move {
        let agent: Agent =
            Agent::new("A")
                .output::<Vec<u32>>()
                .output_guardrail(OutputGuardrail::replacing(
                    "other",
                    move |_ctx, _agent, _output| OutputVerdict::replace(instead),
                ));
        let model = ScriptedModel::new().say(r#"{"response":[1,2]}"#);
        Runner::new(&agent).model(model).run("x").await
    };
    let result = run("[3]").await.unwrap();
    assert_eq!(result.final_output_as::<Vec<u32>>().unwrap(), [3]);
    assert_eq!(
        described(&result.to_input_list())[1],
        r#"assistant: {"response":[3]}"#
    );
    let error = run("nothing").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    assert!(error.to_string().contains("other"), "{error}");
}

#[tokio::test]
async fn text_that_replaces_a_typed_output_is_its_value_or_its_json() {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[serde(rename_all = "snake_case")]
    enum Answer {
        Yes,
        No,
    }
    let always = |instead: &'static str| {
        OutputGuardrail::replacing("other", move |_ctx, _agent, _output| {
            OutputVerdict::replace(instead)
        })
    };
    let text: Agent = Agent::new("A").output::<String>();
    let choice: Agent = Agent::new("A").output::<Answer>();
    let number: Agent = Agent::new("A").output::<u32>();
    for (agent, said, instead, expected) in [
        (&text, r#""yes""#, "no", r#"{"response":"no"}"#),
        (&text, r#""yes""#, "[3]", r#"{"response":"[3]"}"#),
        (&choice, r#""yes""#, "no", r#"{"response":"no"}"#),
        (&choice, r#""yes""#, r#""no""#, r#"{"response":"no"}"#),
        (&number, "1", "3", r#"{"response":3}"#),
    ] {
        let agent = agent.clone().output_guardrail(always(instead));
        let model = ScriptedModel::new().say(&format!(r#"{{"response":{said}}}"#));
        let result = Runner::new(&agent).model(model).run("x").await.unwrap();
        assert_eq!(
            described(&result.to_input_list())[1],
            format!("assistant: {expected}")
        );
    }
}

#[tokio::test]
async fn the_reasoning_for_a_replaced_output_is_removed() {
    let reasoning = |id: &str, text: &str| {
        let json = format!(
            r#"{{"type":"reasoning","id":"{id}","summary":[{{"type":"summary_text","text":"{text}"}}]}}"#
        );
        Item::from_json(json).unwrap()
    };
    let search =
        Item::from_json(r#"{"type":"web_search_call","id":"w","status":"completed"}"#).unwrap();
    let agent: Agent = Agent::new("A").output_guardrail(mask("secret", "hidden"));
    let session = MemorySession::new();
    let model = ScriptedModel::new().reply([
        reasoning("r1", "look it up"),
        search,
        reasoning("r2", "tell the secret"),
        Item::output_message("m", "the secret"),
    ]);
    let runner = Runner::new(&agent).model(model).session(&session);
    let result = runner.run("x").await.unwrap();
    let kept = |items: &[String]| {
        assert!(
            items.iter().any(|item| item.contains("look it up")),
            "{items:?}"
        );
        assert!(
            !items.iter().any(|item| item.contains("secret")),
            "{items:?}"
        );
        assert_eq!(items.len(), 4);
    };
    kept(&described(&session.items()));
    kept(&described(&result.to_input_list()));
}

#[tokio::test]
async fn a_replaced_tool_output_is_removed_from_the_record() {
    let agent: Agent = Agent::new("A")
        .tool(tool("read").run(|_ctx, (): ()| "the secret"))
        .tool(tool("time").run(|_ctx, (): ()| "noon"))
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(mask("secret", "hidden"));
    let session = MemorySession::new();
    let model = ScriptedModel::new().calls([("read", "{}"), ("time", "{}")]);
    let runner = Runner::new(&agent).model(model).session(&session);
    let result = runner.run("x").await.unwrap();
    assert_eq!(result.final_text(), "the hidden");
    assert_eq!(
        described(&session.items()),
        [
            "user: x",
            "call read",
            "call time",
            "output of call_1: the hidden",
            "output of call_2: noon"
        ]
    );

    // If the output is not that of one tool, all tool outputs are withheld.
    let decide = ToolUseBehavior::decide(|_ctx, _results| Some(FinalOutput::from("all secret")));
    let agent = agent.tool_use_behavior(decide);
    let model = ScriptedModel::new().call("read", "{}");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    assert_eq!(result.final_text(), "all hidden");
    assert_eq!(
        described(&result.to_input_list())[2],
        "output of call_1: Output withheld by an output guardrail."
    );
}

#[tokio::test]
async fn a_rejected_output_of_a_tool_is_in_nothing_that_is_stored() {
    let secret = OutputGuardrail::new("secret", |_ctx, _agent, output: FinalOutput| {
        OutputVerdict::trip_if(output.text().contains("hunter2"), "a secret")
    });
    let agent: Agent = Agent::new("A")
        .tool(tool("t").run(|_ctx, (): ()| "hunter2"))
        .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
        .output_guardrail(secret);
    let session = MemorySession::new();
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new().call("t", "{}"))
        .session(&session);
    let error = runner.run("x").await.unwrap_err();
    let json = serde_json::to_string(error.run().unwrap()).unwrap();
    assert!(!json.contains("hunter2"), "{json}");
    assert!(!format!("{:?}", session.items()).contains("hunter2"));

    // It stays rejected.
    let run = serde_json::from_str(&json).unwrap();
    let error = runner.resume(run).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::OutputGuardrail);
    assert_eq!(session.items().len(), 3);
}

#[tokio::test]
async fn the_application_may_word_the_text_in_place_of_a_blocked_output() {
    for (panics, expected) in [
        (false, "Blocked by secret."),
        (true, "Output withheld by an output guardrail."),
    ] {
        let secret =
            OutputGuardrail::new("secret", |_ctx, _agent, _output| OutputVerdict::trip("no"));
        let agent: Agent = Agent::new("A")
            .tool(tool("t").run(|_ctx, (): ()| "hunter2"))
            .tool_use_behavior(ToolUseBehavior::stop_on_first_tool())
            .output_guardrail(secret);
        let session = MemorySession::new();
        let runner = Runner::new(&agent)
            .model(ScriptedModel::new().call("t", "{}"))
            .session(&session)
            .blocked_output_text(move |result| {
                assert!(!panics);
                format!("Blocked by {}.", result.guardrail)
            });
        runner.run("x").await.unwrap_err();
        assert_eq!(
            described(&session.items())[2],
            format!("output of call_1: {expected}")
        );
    }
}
