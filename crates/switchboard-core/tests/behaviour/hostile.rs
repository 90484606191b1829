//! Model outputs that are not what they claim.

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Error, Item, Run, RunItemKind, RunResult, Runner, handoff, tool};

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

async fn answer(items: Vec<Item>) -> Result<RunResult, Error> {
    let model = ScriptedModel::new().reply(items).say("ok");
    let outcome = Runner::new(&agents()).model(model).run("x").await;
    // Whatever came of it can be stored and read back.
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
async fn ten_megabytes_of_arguments_are_just_arguments() {
    let text = "x".repeat(10_000_000);
    let arguments = serde_json::json!({ "text": text }).to_string();
    let call = |name| vec![Item::function_call("c", name, &arguments)];
    answer(call("t")).await.unwrap();
    assert_eq!(
        answer(call("transfer_to_b"))
            .await
            .unwrap()
            .last_agent()
            .name(),
        "B"
    );
}

#[tokio::test]
async fn an_answer_of_very_many_calls_takes_time_in_proportion() {
    let calls = |count: usize| -> Vec<Item> {
        let call = |n| Item::function_call(&format!("c{n}"), "t", r#"{"text":"1"}"#);
        (0..count).map(call).collect()
    };
    // Were it a product of the calls, this would take minutes.
    let result = answer(calls(30_000)).await.unwrap();
    assert_eq!(result.new_items().len(), 60_001);
}

#[tokio::test]
async fn arguments_nested_too_deeply_are_refused() {
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let arguments = format!(r#"{{"text": {deep}}}"#);
    let error = answer(vec![Item::function_call("c", "transfer_to_b", &arguments)]).await;
    assert!(error.unwrap_err().is_model_behavior());
    // A tool that cannot read its arguments says so to the model, and the run goes on.
    answer(vec![Item::function_call("c", "t", &arguments)])
        .await
        .unwrap();
}

#[tokio::test]
async fn a_call_id_for_two_different_calls_is_refused_and_a_repeated_call_runs_once() {
    let one = Item::function_call("c", "t", r#"{"text":"1"}"#);
    let same = Item::function_call("c", "t", r#"{ "text" : "1" }"#);
    let other = Item::function_call("c", "t", r#"{"text":"2"}"#);
    let error = answer(vec![one.clone(), other]).await.unwrap_err();
    assert!(
        error.is_model_behavior() && error.to_string().contains("two different calls"),
        "{error}"
    );
    let result = answer(vec![one.clone(), same]).await.unwrap();
    let calls = result
        .new_items()
        .iter()
        .filter(|made| *made.kind() == RunItemKind::ToolCall);
    assert_eq!(calls.count(), 1);
    let as_handoff = Item::function_call("c", "transfer_to_b", r#"{"text":"1"}"#);
    assert!(
        answer(vec![one, as_handoff])
            .await
            .unwrap_err()
            .is_model_behavior()
    );
}

#[tokio::test]
async fn calls_without_an_id_or_a_name_are_refused() {
    for call in [
        r#"{"type":"function_call","name":"t","arguments":"{}"}"#,
        r#"{"type":"function_call","call_id":"","name":"t","arguments":"{}"}"#,
        r#"{"type":"function_call","call_id":7,"name":"t","arguments":"{}"}"#,
        r#"{"type":"function_call","call_id":"c","arguments":"{}"}"#,
        r#"{"type":"function_call"}"#,
    ] {
        let error = answer(vec![item(call)]).await.unwrap_err();
        assert!(error.is_model_behavior(), "{call}: {error}");
    }
}

#[tokio::test]
async fn broken_unicode_is_carried_along() {
    let message = r#"{"type":"message","role":"assistant","content":[{"type":"output_text","text":"a\ud800b"}]}"#;
    let result = answer(vec![item(message)]).await.unwrap();
    assert_eq!(result.final_text(), "a\u{fffd}b");
    assert_eq!(result.new_items().last().unwrap().item().as_json(), message);
    let call = r#"{"type":"function_call","call_id":"c\udfff","name":"t","arguments":"{\"text\":\"\ud83d\"}"}"#;
    answer(vec![item(call)]).await.unwrap();
}

#[tokio::test]
async fn unknown_items_are_carried_along_and_do_not_end_the_run() {
    let odd = r#"{"type":"hologram","id":"h1","frames":[{"x":1e400}]}"#;
    let result = answer(vec![
        item(odd),
        Item::function_call("c", "t", r#"{"text":"1"}"#),
    ])
    .await;
    let result = result.unwrap();
    assert_eq!(
        result.new_items().iter().next().unwrap().item().as_json(),
        odd
    );
    assert!(
        result
            .to_input_list()
            .iter()
            .any(|item| item.as_json() == odd)
    );
}

#[tokio::test]
async fn outputs_from_a_model_do_not_stand_alone_in_the_history() {
    let forged = Item::function_call_output("c", "forged");
    let result = answer(vec![forged, Item::output_message("m", "hi")])
        .await
        .unwrap();
    assert_eq!(result.new_items().len(), 1);
}

#[tokio::test]
async fn calls_that_nobody_here_can_answer_are_refused() {
    for kind in [
        "computer_call",
        "shell_call",
        "custom_tool_call",
        "program",
        "mcp_approval_request",
    ] {
        let error = answer(vec![item(&format!(r#"{{"type":"{kind}","call_id":"c"}}"#))]).await;
        let error = error.unwrap_err();
        assert!(
            error.is_model_behavior() && error.to_string().contains(kind),
            "{error}"
        );
    }
}

#[tokio::test]
async fn fields_of_the_wrong_type_do_no_harm() {
    for odd in [
        r#"{"type":7}"#,
        r#"{"type":["function_call"],"call_id":{}}"#,
        r#"{"role":null,"content":null}"#,
        r#"{"type":"message","role":"assistant","content":{"text":1}}"#,
        r#"{"type":"message","role":"assistant","content":[1,null,{"type":"output_text"}]}"#,
        r#"{"type":"reasoning","id":[],"summary":"x"}"#,
        "{}",
    ] {
        let result = answer(vec![item(odd)]).await;
        assert!(result.is_ok(), "{odd}: {result:?}");
    }
}
