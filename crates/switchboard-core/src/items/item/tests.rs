use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

#[test]
fn unknown_types_and_fields_are_kept() {
    let json =
        r#"{ "type":"function_call","call_id":"c","name":"n","arguments":"{}","x":[1,  2] }"#;
    let item = Item::from_json(json).unwrap();
    assert_eq!(item.as_json(), json);
    assert_eq!(item.kind(), ItemKind::FunctionCall);
    assert_eq!(serde_json::to_string(&item).unwrap(), json);
    assert_eq!(item.call_id().unwrap(), "c");
}

#[test]
fn text_joins_the_text_parts_and_leaves_refusals_out() {
    let item = Item::from_json(
        r#"{"role":"assistant","content":[{"type":"output_text","text":"a\n"},{"type":"refusal","refusal":"no"},{"type":"output_text","text":"b"},{"type":"output_text","text":null}]}"#,
    )
    .unwrap();
    assert_eq!(item.text().unwrap(), "a\nb");
    assert_eq!(item.refusal().unwrap(), "no");
    assert_eq!(Item::user("hi").text().unwrap(), "hi");
    assert_eq!(Item::function_call("c", "n", "{}").text(), None);
}

#[test]
fn the_json_of_a_text_is_found_in_a_message_of_one_text() {
    let text_json = |content: &str| {
        let item = Item::from_json(format!(r#"{{"role":"user","content":{content}}}"#)).unwrap();
        item.text_json().map(str::to_owned)
    };
    let part = r#"{"type":"output_text","text":"a\n\u00e9"}"#;
    assert_eq!(text_json(r#""a\n""#).as_deref(), Some(r#""a\n""#));
    assert_eq!(
        text_json(&format!("[{part}]")).as_deref(),
        Some(r#""a\n\u00e9""#)
    );
    let beside = format!(r#"[{{"type":"input_image"}},{part},{{"type":"text","text":null}}]"#);
    assert_eq!(text_json(&beside).as_deref(), Some(r#""a\n\u00e9""#));
    for none in [
        "null",
        "[]",
        "7",
        r#"[{"type":"text","text":""}]"#,
        r#"[{"type":"other","text":"x"}]"#,
        r#"[{"type":"refusal","refusal":"no"},{"type":"text","text":"x"}]"#,
        &format!("[{part},{part}]"),
    ] {
        assert_eq!(text_json(none), None, "{none}");
    }
    assert_eq!(Item::function_call("c", "n", "{}").text_json(), None);
}

#[test]
fn every_field_is_found() {
    let json = r#"{"type":"x","role":"r","id":"i","call_id":"c","name":"n","arguments":"a","output":"o","content":"t","status":null,"provider_data":{},"other":1}"#;
    let item = Item::from_json(json).unwrap();
    for (name, value) in json::object_fields(json).unwrap() {
        assert_eq!(item.field(&name), Some(value), "{name}");
        assert_eq!(Item::from_json("{}").unwrap().field(&name), None, "{name}");
    }
    let done = Item::from_json(r#"{"status":null,"status":"done"}"#).unwrap();
    assert_eq!(done.field("status"), Some("\"done\""));
}

#[test]
fn only_an_object_is_an_item() {
    for bad in ["", "[]", "1", "\"x\"", "{", "{} {}", "null"] {
        assert!(Item::from_json(bad).is_err(), "{bad}");
    }
}

#[test]
fn hostile_items_keep_their_bytes() {
    let deep = format!(
        r#"{{"type":"x","deep":{}{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let lone = r#"{"type":"message","role":"user","content":"a\ud800"}"#;
    let bad_key = r#"{"\ud800":1,"type":"function_call"}"#;
    let twice = r#"{"type":"a","type":"function_call","call_id":"1","call_id":"2"}"#;
    for json in [&deep, lone, bad_key, twice] {
        assert_eq!(Item::from_json(json).unwrap().as_json(), json);
    }
    assert_eq!(Item::from_json(lone).unwrap().text().unwrap(), "a\u{fffd}");
    let bad_key = Item::from_json(bad_key).unwrap();
    assert_eq!(bad_key.kind(), ItemKind::FunctionCall);
    assert_eq!(
        bad_key.without_fields(&["type"]).as_json(),
        "{\"\u{fffd}\":1}"
    );
    assert_eq!(Item::from_json(twice).unwrap().call_id().unwrap(), "2");
}

#[test]
fn the_last_of_two_contents_counts() {
    let parts = r#"[{"type":"output_text","text":"a"}]"#;
    for (first, last, text) in [
        (parts, "null", None),
        (parts, "{}", None),
        (parts, r#""b""#, Some("b")),
        ("null", parts, Some("a")),
    ] {
        let json = format!(r#"{{"role":"assistant","content":{first},"content":{last}}}"#);
        let item = Item::from_json(json).unwrap();
        assert_eq!(item.text().as_deref(), text, "{item:?}");
    }
}

#[test]
fn internal_fields_do_not_reach_a_model() {
    let item = Item::from_json(
        r#"{"type":"function_call","call_id":"c","created_by":"s","status":null,"x":{"created_by":1}}"#,
    )
    .unwrap();
    assert_eq!(
        item.to_input().as_json(),
        r#"{"type":"function_call","call_id":"c","x":{"created_by":1}}"#
    );
}

#[test]
fn a_built_item_equals_the_item_that_is_read_back() {
    let built = |text: &str| {
        Item::builder()
            .string("type", "message")
            .string("id", "a\"b")
            .string("role", "assistant")
            .output_text(text)
            .value("provider_data", &serde_json::json!({"model": "m"}))
            .build()
    };
    for item in [
        built("say \"hi\"\n"),
        built(""),
        Item::builder().build(),
        Item::user("a"),
        Item::function_call("c", "n", "{}"),
        Item::output_message("m", "a"),
    ] {
        let read = Item::from_json(item.as_json()).unwrap();
        assert_eq!(
            format!("{:?}", item.0.fields),
            format!("{:?}", read.0.fields)
        );
    }
}

/// Unusual objects: with repeated fields, values of other types, and escapes.
fn odd_object() -> impl Strategy<Value = String> {
    let texts = r#""(|a|é\\n\\"|\\ud800|\\ud83d\\ude00|(long ){12})""#;
    let value = || prop_oneof![3 => texts, 1 => r#"null|7|\[\]|\{"type":"text","text":"x"\}"#];
    let kinds = r#""type" :("(output_text|text|refusal|output\\u005ftext)"|null)"#;
    let names = r"text|text|refusal|te\\u0078t|\\ud800|x";
    let part = prop_oneof![
        kinds,
        (names, value()).prop_map(|(name, value)| format!(r#""{name}": {value}"#)),
    ];
    let part = prop_oneof![
        2 => vec(part, 0..4).prop_map(|fields| format!("{{{}}}", fields.join(" ,"))),
        1 => texts.prop_map(|text| format!(r#"{{"type":"output_text","text":{text}}}"#)),
        1 => value(),
    ];
    let parts = vec(part, 0..3).prop_map(|parts| format!("[ {}]", parts.join(",")));
    let content = prop_oneof![1 => value(), 2 => parts];
    let names = r"id|call_id|name|arguments|output|status|provider_data|created_by|c\\u006fntent|i\\u0064|x";
    let kinds =
        r#""type":("(m|\\u006d)essage"|"function_call(_output)?"|"mcp_approval_response"|null|7)"#;
    let field = prop_oneof![
        content.prop_map(|content| format!(r#""content" : {content}"#)),
        kinds,
        r#""role":("(user|us\\u0065r|assistant|tool)"|null)"#,
        (names, value()).prop_map(|(name, value)| format!(r#""{name}":{value}"#)),
    ];
    vec(field, 0..7).prop_map(|fields| format!("{{{} }}", fields.join(", ")))
}

proptest! {
    #[test]
    fn the_json_of_a_text_is_the_text(json in odd_object()) {
        let item = Item::from_json(&*json).unwrap();
        prop_assert_eq!(item.as_json(), &*json);
        if let Some(text) = item.text_json() {
            let parts = join_parts(item.field("content").unwrap(), "", Part::text);
            prop_assert_eq!(parts.or_else(|| json::unquote(text)), json::unquote(text));
            prop_assert_eq!(item.refusal(), None);
        }
    }

    #[test]
    fn odd_objects_are_read_as_serde_json_reads_them(json in odd_object()) {
        let item = Item::from_json(&*json).unwrap();
        let value: Value = serde_json::from_str(&json::replace_lone_surrogates(&json)).unwrap();
        for name in ["type", "role", "id", "call_id", "name", "arguments", "output", "content", "status", "x"] {
            let field = item.field(name).map(json::replace_lone_surrogates);
            let field = field.map(|json| serde_json::from_str(&json).unwrap());
            prop_assert_eq!(field.as_ref(), value.get(name));
        }
    }
}
