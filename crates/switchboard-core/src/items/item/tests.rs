use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::items::head::fields;

#[test]
fn unknown_types_and_fields_survive() {
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
fn the_only_text_is_what_a_message_says() {
    let said = |content: &str| {
        let item = Item::from_json(format!(r#"{{"role":"user","content":{content}}}"#));
        let item = item.unwrap();
        let first = item.only_text().map(str::to_owned);
        assert_eq!(item.only_text(), first.as_deref(), "{content}");
        let text = first.as_deref().and_then(json::unquote);
        if text.is_some() {
            assert_eq!(item.text(), text, "{content}");
            assert_eq!(item.refusal(), None, "{content}");
        }
        first
    };
    let part = r#"{"type":"output_text","text":"a\n\u00e9"}"#;
    assert_eq!(said(r#""a\n""#).as_deref(), Some(r#""a\n""#));
    assert_eq!(
        said(&format!("[{part}]")).as_deref(),
        Some(r#""a\n\u00e9""#)
    );
    let beside = format!(r#"[{{"type":"input_image"}},{part},{{"type":"text","text":null}}]"#);
    assert_eq!(said(&beside).as_deref(), Some(r#""a\n\u00e9""#));
    for none in [
        "null",
        "[]",
        "7",
        r#"[{"type":"text","text":""}]"#,
        r#"[{"type":"other","text":"x"}]"#,
        r#"[{"type":"refusal","refusal":"no"},{"type":"text","text":"x"}]"#,
        &format!("[{part},{part}]"),
    ] {
        assert_eq!(said(none), None, "{none}");
    }
    assert_eq!(Item::function_call("c", "n", "{}").only_text(), None);
}

#[test]
fn a_role_is_known_however_it_is_written() {
    for (json, is_user) in [
        (r#"{"role":"user"}"#, true),
        (r#"{"role":"us\u0065r"}"#, true),
        (r#"{"role":"users"}"#, false),
        (r#"{"role":"use"}"#, false),
        (r#"{"role":null}"#, false),
        (r#"{"role":["user"]}"#, false),
        ("{}", false),
    ] {
        let item = Item::from_json(json).unwrap();
        assert_eq!(item.is_of_user(), is_user, "{json}");
        assert!(!item.is_of_assistant() && !item.is_of_tool(), "{json}");
    }
}

#[test]
fn a_field_is_found_wherever_its_place_is_kept() {
    let json = r#"{"type":"x","role":"r","id":"i","call_id":"c","name":"n","arguments":"a","output":"o","content":"t","status":null,"provider_data":{},"other":1}"#;
    let item = Item::from_json(json).unwrap();
    for (name, value) in fields(json).unwrap() {
        assert_eq!(item.field(&name), Some(value), "{name}");
        assert_eq!(Item::from_json("{}").unwrap().field(&name), None, "{name}");
    }
    let done = Item::from_json(r#"{"status":null,"status":"done"}"#).unwrap();
    assert_eq!(done.field("status"), Some("\"done\""));
}

#[test]
fn what_is_not_an_object_is_refused() {
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
    assert_eq!(Item::from_json(bad_key).unwrap().kind(), ItemKind::Unknown);
    assert_eq!(Item::from_json(twice).unwrap().call_id().unwrap(), "2");
}

#[test]
fn of_a_content_that_is_there_twice_the_last_counts() {
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
fn what_is_built_is_what_is_read() {
    let built = |text: &str| {
        Item::of_fields(0, |fields| {
            fields.text("type", "message");
            fields.text("id", "a\"b");
            fields.text("role", "assistant");
            fields.text("status", "completed");
            fields.output_text(text);
            fields.json("provider_data", |raw| raw.push_str(r#"{"model":"m"}"#));
        })
    };
    for item in [
        built("say \"hi\"\n"),
        built(""),
        Item::function_call("c", "n", "{}"),
        Item::output_message("m", "a"),
    ] {
        let read = Item::from_json(item.as_json()).unwrap();
        assert_eq!(format!("{:?}", item.0.head), format!("{:?}", read.0.head));
        assert_eq!(item.only_text(), read.only_text());
        assert_eq!(item.text(), read.text());
    }
}

/// Objects as nobody writes them: fields twice, of other types, and written in other ways.
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
    fn odd_items_are_the_same_however_they_are_read(json in odd_object()) {
        let slowly = Item(Inner::new(json.clone(), Head::parse(&json).unwrap()));
        let among_others = format!(" {json} , 7");
        let at_once = Item::scan(&mut Scanner::new(&among_others));
        for item in at_once.into_iter().chain([Item::from_json(&*json).unwrap()]) {
            prop_assert_eq!(&item, &slowly);
            prop_assert_eq!(format!("{:?}", item.0.head), format!("{:?}", slowly.0.head));
            prop_assert_eq!(item.only_text(), slowly.only_text());
            prop_assert_eq!(item.only_text_len(), slowly.only_text().map_or(0, str::len));
            prop_assert_eq!(item.text(), slowly.text());
            prop_assert_eq!(item.refusal(), slowly.refusal());
        }
    }
}
