//! Good and bad request bodies, and the problems of the bad ones.
//!
//! `samples.json` holds `items` (an item of each kind, with what it needs beside it), `good` bodies and
//! `bad` ones with the problem.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use fake_provider::{Protocol, Rules, check};
use serde_json::{Value, json};

fn samples() -> Value {
    serde_json::from_str(include_str!("samples.json")).unwrap()
}

fn list(value: &Value) -> &[Value] {
    value.as_array().unwrap()
}

fn problem(protocol: &Value, body: &Value) -> Option<String> {
    let protocol = match protocol.as_str().unwrap() {
        "chat" => Protocol::Chat,
        _ => Protocol::Responses,
    };
    let problem = check(protocol, body, Rules::default()).err()?;
    Some(problem.to_string())
}

#[test]
fn good_bodies_are_accepted() {
    for sample in list(&samples()["good"]) {
        assert_eq!(
            problem(&sample["protocol"], &sample["body"]),
            None,
            "{sample}"
        );
    }
}

#[test]
fn bad_bodies_are_rejected_with_the_path_and_the_reason() {
    for sample in list(&samples()["bad"]) {
        let problem = problem(&sample["protocol"], &sample["body"]);
        assert_eq!(json!(problem), sample["problem"], "{}", sample["name"]);
    }
}

#[test]
fn every_kind_of_item_is_accepted_and_rejected_with_an_unknown_field() {
    for items in list(&samples()["items"]) {
        let body = |items: &Value| json!({"model": "gpt-x", "input": items});
        let responses = json!("responses");
        assert_eq!(problem(&responses, &body(items)), None, "{items}");
        for field in ["zzz", "provider_data"] {
            let mut changed = items.clone();
            changed[0][field] = json!({"model": "x"});
            let problem = problem(&responses, &body(&changed)).unwrap();
            assert_eq!(
                problem,
                format!("input[0].{field}: Unknown parameter: 'input[0].{field}'.")
            );
        }
    }
}

#[test]
fn fields_of_compatible_servers_are_accepted_if_the_rules_say_so() {
    let body = json!({"model": "m", "messages": [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Ho", "reasoning_content": "Hm"},
    ]});
    let rules = Rules::default();
    assert!(check(Protocol::Chat, &body, rules).is_err());
    assert_eq!(check(Protocol::Chat, &body, rules.compatible(true)), Ok(()));
}

#[test]
fn reasoning_must_be_followed_if_the_rules_say_so() {
    let body = json!({"model": "m", "input": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"role": "user", "content": "Hi"},
    ]});
    let rules = Rules::default();
    assert_eq!(check(Protocol::Responses, &body, rules), Ok(()));
    let problem = check(Protocol::Responses, &body, rules.reasoning_followed(true)).unwrap_err();
    assert_eq!(
        problem.message,
        "Item 'rs_1' of type 'reasoning' was provided without its required following item."
    );
}

#[test]
fn a_provider_without_rules_accepts_anything() {
    assert_eq!(check(Protocol::Chat, &json!([]), Rules::none()), Ok(()));
}
