//! Requests that continue earlier responses.

use fake_provider::{FakeProvider, Reply};
use serde_json::{Value, json};

use crate::http::post;
use crate::provider;

fn ask(provider: &FakeProvider, body: Value) -> (u16, Value) {
    let mut all = json!({"model": "gpt-test"});
    all.as_object_mut()
        .unwrap()
        .extend(body.as_object().unwrap().clone());
    let answer = post(provider, "responses", "k", &all);
    (answer.status, answer.json())
}

fn output(call_id: &str) -> Value {
    json!({"type": "function_call_output", "call_id": call_id, "output": "ok"})
}

fn message_of(answer: (u16, Value)) -> String {
    assert_eq!(answer.0, 400);
    answer.1["error"]["message"].as_str().unwrap().to_owned()
}

#[test]
fn an_output_answers_a_call_of_the_previous_response() {
    let provider = provider();
    provider.script(
        "k",
        [Reply::call("call_1", "look", "{}"), Reply::text("Done")],
    );
    let (_, first) = ask(&provider, json!({"input": "Hi"}));
    let next = |input: Value| json!({"previous_response_id": first["id"], "input": input});
    assert_eq!(
        message_of(ask(&provider, next(json!([output("call_2")])))),
        "No tool call found for function call output with call_id call_2."
    );
    assert_eq!(
        message_of(ask(&provider, next(json!("And?")))),
        "No tool output found for function call call_1."
    );
    let (status, second) = ask(&provider, next(json!([output("call_1")])));
    assert_eq!(
        (status, &second["previous_response_id"]),
        (200, &first["id"])
    );
}

#[test]
fn a_response_that_is_not_stored_cannot_be_continued() {
    let provider = provider();
    provider.script("k", [Reply::text("Hello")]);
    let (_, first) = ask(&provider, json!({"input": "Hi", "store": false}));
    let id = first["id"].as_str().unwrap();
    assert_eq!(
        message_of(ask(
            &provider,
            json!({"input": "Hi", "previous_response_id": id})
        )),
        format!("Previous response with id '{id}' not found.")
    );
}

#[test]
fn a_conversation_waits_for_outputs() {
    let provider = provider();
    provider.script(
        "k",
        [Reply::call("call_1", "look", "{}"), Reply::text("Done")],
    );
    provider.script("k", [Reply::text("Again")]);
    let turn = |input: Value| ask(&provider, json!({"conversation": "conv_1", "input": input}));
    assert_eq!(turn(json!("Hi")).0, 200);
    assert_eq!(
        message_of(turn(json!("And?"))),
        "No tool output found for function call call_1."
    );
    assert_eq!(turn(json!([output("call_1")])).0, 200);
    assert_eq!(
        message_of(turn(json!([output("call_1")]))),
        "No tool call found for function call output with call_id call_1."
    );
    assert_eq!(turn(json!("Thanks")).0, 200);
}
