//! Tools: side by side, failing, stopping the run, and unknown ones.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use switchboard_core::agent::ToolUseBehavior;
use switchboard_core::run::UnknownTool;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::tool::ToolOutput;
use switchboard_core::{Agent, FinalOutput, Item, RunConfig, Runner, Tool, tool};

use crate::described;

/// A tool that notes how many of its calls are under way at once.
fn busy(peak: &Arc<AtomicUsize>) -> Tool {
    let now = Arc::new(AtomicUsize::new(0));
    let peak = peak.clone();
    tool::<()>("busy").run(move |ctx, (): ()| {
        let (now, peak) = (now.clone(), peak.clone());
        async move {
            peak.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            tokio::task::yield_now().await;
            now.fetch_sub(1, Ordering::SeqCst);
            ctx.call_id().to_owned()
        }
    })
}

#[tokio::test]
async fn tools_of_one_response_run_side_by_side_and_answer_in_order() {
    for (limit, expected) in [
        (None, 4),
        (NonZeroUsize::new(2), 2),
        (NonZeroUsize::new(1), 1),
    ] {
        let peak = Arc::new(AtomicUsize::new(0));
        let agent = Agent::new("A").tool(busy(&peak));
        let model = ScriptedModel::new().calls([("busy", "{}"); 4]).say("ok");
        let mut runner = Runner::new(&agent).model(model);
        if let Some(limit) = limit {
            runner = runner.tool_concurrency(limit);
        }
        let result = runner.run("x").await.unwrap();
        assert_eq!(peak.load(Ordering::SeqCst), expected);
        let outputs: Vec<String> = described(&result.to_input_list()).split_off(5);
        assert_eq!(
            outputs[..4],
            [1, 2, 3, 4].map(|n| format!("output of call_{n}: call_{n}"))
        );
    }
}

#[derive(Deserialize, JsonSchema)]
struct Lookup {
    account: u32,
}

#[tokio::test]
async fn the_model_gets_the_failure_text_of_the_tool_or_the_default_text() {
    let agent: Agent = Agent::new("A")
        .tool(tool("quiet").run(|_ctx, _: Lookup| Err::<String, _>("password is hunter2")))
        .tool(
            tool::<()>("open")
                .failure_text(|ctx, error| format!("{} failed: {error}", ctx.tool()))
                .run(|_ctx, lookup: Lookup| {
                    Err::<String, _>(format!("no account {}", lookup.account))
                }),
        );
    let model = ScriptedModel::new()
        .calls([
            ("quiet", r#"{"account": 1}"#),
            ("open", r#"{"account": 2}"#),
            ("quiet", "not json"),
        ])
        .say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let plain = "An error occurred while running the tool. Please try again.";
    assert_eq!(
        described(&result.to_input_list())[4..7],
        [
            format!("output of call_1: {plain}"),
            "output of call_2: open failed: no account 2".to_owned(),
            "output of call_3: The arguments are invalid: expected ident at line 1 column 2. \
             Correct them and call the tool again."
                .to_owned(),
        ]
    );
}

#[tokio::test]
async fn arguments_are_checked_against_a_schema_known_only_at_run_time() {
    let schema = json!({
        "type": "object",
        "properties": { "account": { "type": "integer" } },
        "required": ["account"],
    });
    let agent: Agent = Agent::new("A").tool(
        tool("find").run_checked(schema.clone(), |_ctx, found: Value| {
            found["account"].to_string()
        }),
    );
    let model = ScriptedModel::new()
        .calls([
            ("find", r#"{"account": 1}"#),
            ("find", r#"{"account": "secret"}"#),
            ("find", ""),
            ("find", "[1]"),
        ])
        .say("ok");
    let result = Runner::new(&agent)
        .model(model.clone())
        .run("x")
        .await
        .unwrap();
    let outputs = described(&result.to_input_list())[5..9].to_vec();
    assert_eq!(outputs[0], "output of call_1: 1");
    // The output names the error and does not repeat the arguments.
    for (output, wrong) in
        outputs[1..]
            .iter()
            .zip(["at /account: ", "account", "not a JSON object"])
    {
        assert!(
            output.contains(wrong) && !output.contains("secret"),
            "{output}"
        );
    }
    let offered: Value =
        serde_json::from_str(model.requests()[0].tools[0].parameters.get()).unwrap();
    assert_eq!(offered, schema);

    let wrong: Agent = Agent::new("A")
        .tool(tool("find").run_checked(json!({ "type": "strng" }), |_ctx, _: Value| "never"));
    let error = Runner::new(&wrong)
        .model(ScriptedModel::new())
        .run("x")
        .await
        .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the schema of its arguments is wrong"),
        "{error}"
    );
}

#[tokio::test]
async fn a_tool_without_arguments_has_an_empty_schema_and_takes_anything() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| "1"));
    let schema = agent.tools()[0].spec().parameters.get();
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    assert_eq!(
        (&schema["type"], &schema["properties"]),
        (&json!("object"), &json!({}))
    );
    let model = ScriptedModel::new()
        .calls([("t", ""), ("t", "{}"), ("t", "{\"x\":1}")])
        .say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let outputs = &described(&result.to_input_list())[4..7];
    assert_eq!(
        outputs,
        [
            "output of call_1: 1",
            "output of call_2: 1",
            "output of call_3: 1"
        ]
    );
}

#[tokio::test]
async fn values_are_shown_to_the_model_as_json() {
    let agent: Agent = Agent::new("A").tool(tool("t").run(|_ctx, (): ()| json!({"a": [1, 2]})));
    let model = ScriptedModel::new().call("t", "{}").say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    assert_eq!(
        described(&result.to_input_list())[2],
        r#"output of call_1: {"a":[1,2]}"#
    );
}

#[tokio::test]
async fn a_run_can_stop_at_a_tool() {
    let two_tools = || {
        Agent::<()>::new("A")
            .tool(tool("first").run(|_ctx, (): ()| "1"))
            .tool(tool("last").run(|_ctx, (): ()| "2"))
    };
    let script = || {
        ScriptedModel::new()
            .calls([("first", "{}"), ("last", "{}")])
            .say("3")
    };
    let decide = |_ctx, results: Vec<switchboard_core::agent::ToolResult>| async move {
        let all: String = results
            .iter()
            .map(|r| r.output.text().into_owned())
            .collect();
        Some(FinalOutput::from(all))
    };
    for (rule, expected) in [
        (ToolUseBehavior::run_model_again(), "3"),
        (ToolUseBehavior::stop_on_first_tool(), "1"),
        (ToolUseBehavior::stop_at(["last"]), "2"),
        (ToolUseBehavior::stop_at(["other"]), "3"),
        (ToolUseBehavior::decide(decide), "12"),
        (
            ToolUseBehavior::decide(|_ctx, _results| None::<FinalOutput>),
            "3",
        ),
    ] {
        let agent = two_tools().tool_use_behavior(rule.clone());
        let result = Runner::new(&agent).model(script()).run("x").await.unwrap();
        assert_eq!(result.final_text(), expected, "{rule:?}");
    }
}

#[tokio::test]
async fn an_unknown_tool_ends_the_run_or_gives_the_model_an_error() {
    let agent: Agent = Agent::new("A");
    let script = || ScriptedModel::new().call("nope", "{}").say("Sorry.");
    let error = Runner::new(&agent)
        .model(script())
        .run("x")
        .await
        .unwrap_err();
    assert!(
        error.is_model_behavior() && error.to_string().contains("nope"),
        "{error}"
    );

    let config = RunConfig {
        unknown_tool: UnknownTool::TellModel,
        ..RunConfig::default()
    };
    let result = Runner::new(&agent)
        .replace_config(config)
        .model(script())
        .run("x")
        .await
        .unwrap();
    assert_eq!(
        described(&result.to_input_list())[1..3],
        ["call nope", "output of call_1: Tool 'nope' not found."]
    );
}

#[derive(Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Answer {
    mood: String,
    score: i32,
}

#[tokio::test]
async fn an_answer_comes_in_the_users_type() {
    let agent: Agent = Agent::new("A").output::<Answer>();
    let model = ScriptedModel::new().say(r#"{"mood": "fine", "score": 7}"#);
    let result = Runner::new(&agent)
        .model(model.clone())
        .run("x")
        .await
        .unwrap();
    let answer: Answer = result.final_output_as().unwrap();
    assert_eq!(
        answer,
        Answer {
            mood: "fine".to_owned(),
            score: 7
        }
    );
    assert_eq!(
        model.requests()[0].output.as_ref().unwrap().name(),
        "Answer"
    );

    for bad in ["fine", "[\"fine\", 7]", r#"{"mood": "fine"}"#] {
        let model = ScriptedModel::new().say(bad);
        let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
        assert!(error.is_model_behavior(), "{error}");
    }
}

#[tokio::test]
async fn an_answer_that_is_no_object_is_put_into_one_for_the_model() {
    let agent: Agent = Agent::new("A").output::<Vec<Answer>>();
    let model = ScriptedModel::new().say(r#"{"response": [{"mood": "fine", "score": 7}]}"#);
    let result = Runner::new(&agent)
        .model(model.clone())
        .run("x")
        .await
        .unwrap();
    let answers: Vec<Answer> = result.final_output_as().unwrap();
    assert_eq!(answers[0].score, 7);
    let schema = model.requests()[0].output.clone().unwrap();
    let schema: serde_json::Value = serde_json::from_str(schema.schema().get()).unwrap();
    assert_eq!(schema["properties"]["response"]["type"], "array");
    let model = ScriptedModel::new().say(r#"[{"mood": "fine", "score": 7}]"#);
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert!(error.is_model_behavior(), "{error}");
    assert_eq!(error.rejected_response().unwrap().output.len(), 1);
}

#[tokio::test]
async fn arguments_that_cannot_be_strict_can_be_loose() {
    use std::collections::HashMap;
    let agent: Agent = Agent::new("A").tool(
        tool("t")
            .strict(false)
            .run(|_ctx, args: HashMap<String, u32>| switchboard_core::Json(args.len())),
    );
    let model = ScriptedModel::new()
        .calls([("t", r#"{"a": 1}"#), ("t", "")])
        .say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let outputs = described(&result.to_input_list());
    assert_eq!(
        outputs[3..5],
        ["output of call_1: 1", "output of call_2: 0"]
    );

    let strict: Agent = Agent::new("A").tool(tool("t").run(|_ctx, _: HashMap<String, u32>| ()));
    let model = ScriptedModel::new().say("never");
    let error = Runner::new(&strict)
        .model(model)
        .run("x")
        .await
        .unwrap_err();
    assert!(
        error.is_configuration() && error.to_string().contains(".strict(false)"),
        "{error}"
    );
}

#[tokio::test]
async fn a_refusal_is_its_own_error() {
    let agent: Agent = Agent::new("A");
    let refusal = Item::from_json(
        r#"{"type":"message","role":"assistant","content":[{"type":"refusal","refusal":"I won't."}]}"#,
    );
    let model = ScriptedModel::new().reply([refusal.unwrap()]);
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert_eq!(error.kind(), switchboard_core::ErrorKind::ModelRefusal);
    assert!(error.to_string().contains("I won't."), "{error}");
}

#[test]
fn outputs_keep_text_and_values_apart() {
    assert_eq!(
        ToolOutput::from(json!("text")),
        ToolOutput::Text("text".to_owned())
    );
    assert_eq!(ToolOutput::from(json!(1)).text(), "1");
}

#[tokio::test]
async fn a_tool_that_takes_too_long_is_cancelled_and_the_model_gets_an_error() {
    let finished = Arc::new(AtomicUsize::new(0));
    let counted = finished.clone();
    let agent: Agent = Agent::new("A").tool(
        tool("slow")
            .timeout(std::time::Duration::from_millis(20))
            .run(move |_ctx, (): ()| {
                let counted = counted.clone();
                async move {
                    tokio::time::sleep(std::time::Duration::from_millis(200)).await;
                    counted.fetch_add(1, Ordering::SeqCst);
                    "late"
                }
            }),
    );
    let model = ScriptedModel::new().call("slow", "{}").say("ok");
    let result = Runner::new(&agent).model(model).run("x").await.unwrap();
    let outputs = described(&result.to_input_list());
    assert_eq!(
        outputs[2],
        "output of call_1: Tool 'slow' timed out after 0.02 seconds."
    );
    tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    assert_eq!(finished.load(Ordering::SeqCst), 0);
}
