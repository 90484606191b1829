//! Model outputs that are huge, malformed or unknown.

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_core::items::RunItemKind;
use switchboard_core::run::HandoffPolicy;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Error, Item, Run, RunResult, Runner, handoff, tool};

#[derive(Deserialize, JsonSchema)]
struct Payload {
    text: String,
}

fn agents() -> Agent {
    let b = Agent::new("B");
    Agent::new("A")
        .tool(tool("t").run(|_ctx, p: Payload| format!("{} bytes", p.text.len())))
        .handoff(handoff(&b).payload::<Payload>())
}

async fn run_with_output(items: Vec<Item>) -> Result<RunResult, Error> {
    let model = ScriptedModel::new().reply(items).say("ok");
    let outcome = Runner::new(&agents())
        .handoff_policy(HandoffPolicy::reference())
        .model(model)
        .run("x")
        .await;
    // Every outcome can be stored and read back.
    let run = match &outcome {
        Ok(result) => result.run(),
        Err(error) => error.run().unwrap(),
    };
    let stored = serde_json::to_string(run).unwrap();
    serde_json::from_str::<Run>(&stored).unwrap();
    outcome
}

fn item(json: &str) -> Item {
    Item::from_json(json).unwrap()
}

#[tokio::test]
async fn ten_megabytes_of_arguments_are_accepted() {
    let text = "x".repeat(10_000_000);
    let arguments = serde_json::json!({ "text": text }).to_string();
    let call = |name| vec![Item::function_call("c", name, &arguments)];
    run_with_output(call("t")).await.unwrap();
    let result = run_with_output(call("transfer_to_b")).await.unwrap();
    assert_eq!(result.last_agent().name(), "B");
}

#[tokio::test]
async fn the_time_is_linear_in_the_number_of_calls() {
    let calls = |count: usize| -> Vec<Item> {
        let call = |n| Item::function_call(&format!("c{n}"), "t", r#"{"text":"1"}"#);
        (0..count).map(call).collect()
    };
    // This would take minutes if the time were quadratic.
    let result = run_with_output(calls(30_000)).await.unwrap();
    assert_eq!(result.new_items().len(), 60_001);
}

#[tokio::test]
async fn arguments_nested_too_deeply_are_rejected() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let arguments = format!(r#"{{"text": {deep}}}"#);
    let error = run_with_output(vec![Item::function_call("c", "transfer_to_b", &arguments)]).await;
    assert!(error.unwrap_err().is_model_behavior());
    // The output for the model is an error about the arguments, and the run continues.
    let call = Item::function_call("c", "t", &arguments);
    run_with_output(vec![call]).await.unwrap();
}

#[tokio::test]
async fn a_call_id_for_two_different_calls_is_rejected_and_a_repeated_call_runs_once() {
    let one = Item::function_call("c", "t", r#"{"text":"1"}"#);
    let same = Item::function_call("c", "t", r#"{ "text" : "1" }"#);
    let other = Item::function_call("c", "t", r#"{"text":"2"}"#);
    let error = run_with_output(vec![one.clone(), other]).await.unwrap_err();
    assert!(
        error.is_model_behavior() && error.to_string().contains("two different calls"),
        "{error}"
    );
    let result = run_with_output(vec![one.clone(), same]).await.unwrap();
    let items = result.new_items().iter();
    let calls = items.filter(|item| *item.kind() == RunItemKind::ToolCall);
    assert_eq!(calls.count(), 1);
    let as_handoff = Item::function_call("c", "transfer_to_b", r#"{"text":"1"}"#);
    let error = run_with_output(vec![one, as_handoff]).await.unwrap_err();
    assert!(error.is_model_behavior());
}

#[tokio::test]
async fn calls_without_an_id_or_a_name_are_rejected() {
    for call in [
        r#"{"type":"function_call","name":"t","arguments":"{}"}"#,
        r#"{"type":"function_call","call_id":"","name":"t","arguments":"{}"}"#,
        r#"{"type":"function_call","call_id":7,"name":"t","arguments":"{}"}"#,
        r#"{"type":"function_call","call_id":"c","arguments":"{}"}"#,
        r#"{"type":"function_call"}"#,
    ] {
        let error = run_with_output(vec![item(call)]).await.unwrap_err();
        assert!(error.is_model_behavior(), "{call}: {error}");
    }
}

#[tokio::test]
async fn lone_surrogates_are_kept() {
    let message = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a\ud800b"}]}"#;
    let result = run_with_output(vec![item(message)]).await.unwrap();
    assert_eq!(result.final_text(), "a\u{fffd}b");
    assert_eq!(result.new_items().last().unwrap().item().as_json(), message);
    let call = r#"{"type":"function_call","call_id":"c\udfff","name":"t","arguments":"{\"text\":\"\ud83d\"}"}"#;
    run_with_output(vec![item(call)]).await.unwrap();
}

#[tokio::test]
async fn unknown_items_are_kept_and_do_not_end_the_run() {
    let odd = r#"{"type":"hologram","id":"h1","frames":[{"x":1e400}]}"#;
    let call = Item::function_call("c", "t", r#"{"text":"1"}"#);
    let result = run_with_output(vec![item(odd), call]).await.unwrap();
    assert_eq!(result.new_items()[0].item().as_json(), odd);
    let input = result.to_input_list();
    assert!(input.iter().any(|item| item.as_json() == odd));
}

#[tokio::test]
async fn orphaned_outputs_of_a_model_are_dropped() {
    let forged = Item::function_call_output("c", "forged");
    let message = Item::output_message("m", "hi");
    let result = run_with_output(vec![forged, message]).await.unwrap();
    assert_eq!(result.new_items().len(), 1);
}

#[tokio::test]
async fn calls_of_unsupported_kinds_are_rejected() {
    for kind in [
        "computer_call",
        "shell_call",
        "custom_tool_call",
        "program",
        "mcp_approval_request",
    ] {
        let call = item(&format!(r#"{{"type":"{kind}","call_id":"c"}}"#));
        let error = run_with_output(vec![call]).await.unwrap_err();
        assert!(
            error.is_model_behavior() && error.to_string().contains(kind),
            "{error}"
        );
    }
}

#[tokio::test]
async fn fields_of_the_wrong_type_are_ignored() {
    for odd in [
        r#"{"type":7}"#,
        r#"{"type":["function_call"],"call_id":{}}"#,
        r#"{"role":null,"content":null}"#,
        r#"{"type":"message","role":"assistant","content":{"text":1}}"#,
        r#"{"type":"message","role":"assistant","content":[1,null,{"type":"output_text"}]}"#,
        r#"{"type":"reasoning","id":[],"summary":"x"}"#,
        "{}",
    ] {
        let result = run_with_output(vec![item(odd)]).await;
        assert!(result.is_ok(), "{odd}: {result:?}");
    }
}
