//! The offline model responds to any input, however large or malformed.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "in a test, a panic is the report"
)]

use std::sync::Arc;

use futures_util::FutureExt as _;
use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_core::agent::Knowledge;
use switchboard_core::items::ItemKind;
use switchboard_core::{
    Agent, Item, Model as _, ModelRequest, ModelResponse, Runner, Tool, handoff, tool,
};
use switchboard_offline::OfflineModel;

fn respond(request: ModelRequest) -> ModelResponse {
    let model = OfflineModel::new();
    let response = model.respond(request).now_or_never();
    response
        .expect("the model never waits")
        .expect("the model never fails")
}

fn lookup(name: &str, description: &str, parameters: &Value) -> Tool {
    tool::<()>(name)
        .description(description)
        .strict(false)
        .run_raw(parameters, |_ctx| async { "found" })
}

fn run(agent: &Agent, input: &str) -> String {
    let run = Runner::new(agent)
        .model(OfflineModel::new())
        .run(input.to_owned());
    let result = run.now_or_never().expect("the model never waits");
    result
        .expect("the model never fails")
        .final_text()
        .into_owned()
}

fn team() -> Agent {
    let billing: Agent = Agent::new("Billing")
        .handoff_description("Bills and refunds. 账单与退款")
        .knowledge(Knowledge::new("refund time", "Five days."));
    let payload = json!({
        "type": "object",
        "properties": {
            "reason": {"type": "string"},
            "level": {"enum": ["low", "high"]},
            "count": {"type": "integer", "minimum": 1},
        },
        "required": ["reason", "level", "count"],
        "additionalProperties": false,
    });
    let order = json!({
        "type": "object",
        "properties": {"order_id": {"type": "string"}, "express": {"type": "boolean"}},
        "required": ["order_id", "express"],
    });
    Agent::new("Triage")
        .handoff(
            handoff(&billing)
                .payload_schema(payload)
                .on_handoff(|_ctx, _payload| async {}),
        )
        .tool(lookup("track_order", "Tracks an order. 查快递", &order))
        .knowledge(Knowledge::new("opening hours 营业时间", "9 to 5."))
}

#[test]
fn a_message_of_a_megabyte_is_answered() {
    for piece in [
        "refund ", "退", "a", "1", "#", "a@", "\u{200d}", "。", "A-1 ", "🙃",
    ] {
        let text = piece.repeat(1_000_000 / piece.len());
        assert!(run(&team(), &text).len() < 1_000, "{piece}");
    }
}

#[test]
fn one_of_ten_thousand_tools_is_found() {
    let none = json!({"type": "object", "properties": {}});
    let agent = (0..10_000).fold(Vec::new(), |mut tools, number| {
        tools.push(lookup(
            &format!("tool_{number}"),
            &format!("Does thing {number}."),
            &none,
        ));
        tools
    });
    let mut request = ModelRequest::new(vec![Item::user("please use tool 7777")]);
    request.tools = agent.iter().map(|tool| tool.spec().clone()).collect();
    let response = respond(request);
    assert_eq!(response.output[0].name().as_deref(), Some("tool_7777"));
}

#[test]
fn recursive_and_invalid_schemas_are_filled() {
    let node = |name: &str| json!({"$ref": format!("#/$defs/{name}")});
    let wide: Value = (0..20)
        .map(|at| (format!("part{at}"), node("Node")))
        .collect();
    let names: Vec<String> = (0..20).map(|at| format!("part{at}")).collect();
    let endless = json!({
        "type": "object", "properties": wide, "required": names,
        "$defs": {"Node": {"type": "object", "properties": wide, "required": names}, "Loop": {"$ref": "#/$defs/Loop"}},
    });
    let deep = format!(
        "{}{}",
        r#"{"items":"#.repeat(5_000) + "{}",
        "}".repeat(5_000)
    );
    for schema in [
        endless.to_string(),
        deep,
        "[]".into(),
        "1".into(),
        "{\"$ref\":\"#\"}".into(),
    ] {
        let mut spec = lookup("find_order", "Finds an order.", &json!({"type": "object"}))
            .spec()
            .clone();
        let parameters = serde_json::value::RawValue::from_string(schema).unwrap();
        spec.parameters = Arc::from(parameters);
        let mut request = ModelRequest::new(vec![Item::user("find the order ORD-1")]);
        request.tools = [spec].into_iter().collect();
        assert_eq!(respond(request).output.len(), 1);
    }
}

#[test]
fn a_history_without_text_is_answered() {
    for items in [
        vec![],
        vec![Item::user("")],
        vec![Item::function_call_output("c", "alone")],
        vec![Item::from_json(r#"{"type":"hologram"}"#).unwrap()],
        vec![Item::from_json(r#"{"role":"user","content":[{"type":"input_image"}]}"#).unwrap()],
        vec![Item::from_json(r#"{"role":"user","content":"a\ud800b"}"#).unwrap()],
        vec![Item::from_json(r#"{"role":"assistant","content":7}"#).unwrap()],
    ] {
        let response = respond(ModelRequest::new(items));
        assert_eq!(response.output[0].kind(), ItemKind::Message);
    }
}

/// Random text, mixed with terms that the team handles.
fn any_text() -> impl Strategy<Value = String> {
    let word = prop_oneof![
        Just("refund".to_owned()),
        Just("退款".to_owned()),
        Just("track order".to_owned()),
        Just("ORD-12".to_owned()),
        Just("urgent".to_owned()),
        Just("hello".to_owned()),
        Just("-9999999999999999999999".to_owned()),
        any::<String>(),
        "\\PC{0,20}",
    ];
    prop::collection::vec(word, 0..12).prop_map(|words| words.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_text_is_answered(text in any_text()) {
        let answer = run(&team(), &text);
        prop_assert!(!answer.trim().is_empty());
    }

    #[test]
    fn answers_are_deterministic(text in any_text()) {
        let request = || ModelRequest::new(vec![Item::user(&text)]);
        prop_assert_eq!(respond(request()), respond(request()));
    }
}
