//! Messages are the same whether they are copied, cached or built.

use super::*;
use crate::wire::chat::copied_message::write_message;
use proptest::prelude::*;
use serde_json::Value;
use switchboard_core::items::Items;

fn written(items: impl Into<Items>) -> Result<Value, String> {
    let request = ModelRequest::new(items);
    let write = || {
        let mut payload = Payload::new(&request.input, write_message);
        write(&mut payload, &request, true).map_err(|error| error.to_string())?;
        let length = payload.length();
        let json = payload.into_json();
        assert_eq!(json.len(), length);
        Ok::<_, String>(json)
    };
    // The second time uses the cache.
    write()?;
    Ok(serde_json::from_slice(&write()?).unwrap())
}

/// The same JSON with every letter of its strings escaped, except keys and types.
fn escaped(item: &Item) -> Item {
    fn write(value: &Value) -> String {
        match value {
            Value::String(text) => {
                let units = text.encode_utf16().map(|unit| format!("\\u{unit:04x}"));
                format!("\"{}\"", units.collect::<String>())
            }
            Value::Array(values) => {
                let values: Vec<String> = values.iter().map(write).collect();
                format!("[{}]", values.join(","))
            }
            Value::Object(fields) => {
                let is_type = |key: &str| key == "type";
                let field = |(key, value): (&String, &Value)| {
                    if is_type(key) {
                        format!("{}:{value}", json!(key))
                    } else {
                        format!("{}:{}", json!(key), write(value))
                    }
                };
                let fields: Vec<String> = fields.iter().map(field).collect();
                format!("{{{}}}", fields.join(","))
            }
            other => other.to_string(),
        }
    }
    Item::from_json(write(&item.to_value().unwrap())).unwrap()
}

fn any_item() -> impl Strategy<Value = Item> {
    let (id, text) = ("[ab]?", "[a-c\"\\\\\n\u{e9}\u{1f600}]{0,6}");
    prop_oneof![
        text.prop_map(Item::user),
        text.prop_map(Item::developer),
        text.prop_map(Item::assistant),
        text.prop_map(|text| Item::output_message("msg_1", &text)),
        (id, text).prop_map(|(id, text)| Item::function_call(&id, "n\"", &text)),
        (id, text).prop_map(|(id, text)| Item::function_call_output(&id, &text)),
        (text, text).prop_map(|(one, two)| {
            let message = json!({"type": "message", "role": "assistant", "content": [
                {"type": "output_text", "text": one}, {"type": "refusal", "refusal": two}]});
            Item::from_value(&message).unwrap()
        }),
        (id, text).prop_map(|(id, text)| {
            let message = json!({"role": "tool", "tool_call_id": id, "content": text});
            Item::from_value(&message).unwrap()
        }),
    ]
}

/// Conversations in which outputs mostly follow their calls.
fn any_items() -> impl Strategy<Value = Vec<Item>> {
    let answered = |(id, text): (String, String)| {
        let output = Item::function_call_output(&id, &text);
        vec![Item::function_call(&id, "n", &text), output]
    };
    let some = prop_oneof![
        any_item().prop_map(|item| vec![item]),
        ("[ab]?", "[a-c\"]{0,6}").prop_map(answered),
    ];
    proptest::collection::vec(some, 0..12).prop_map(|items| items.concat())
}

/// Unusual items: fields that are empty, null, repeated or of another type, and lone surrogates.
fn odd_item() -> impl Strategy<Value = Item> {
    let text = r#""(|a|b|\\n\\"é|\\ud800|\\ud83d\\ude00|x{300})""#;
    let id = || prop_oneof![4 => r#""[ab]""#, 1 => r#""(|\\u0061|\\ud800|cé)"|null|7"#];
    let other = r#"null|7|\[\]|\{\}|\[\{"type":"input_text","text":"p"\}\]"#;
    let value = || prop_oneof![4 => text, 1 => other];
    let part = (
        r#""(output_text","text|text","refusal":null,"text|refusal","refusal)""#,
        text,
    )
        .prop_map(|(kind, text)| format!(r#"{{"type":{kind}:{text}}}"#));
    let parts = prop::collection::vec(part, 0..3);
    let parts = parts.prop_map(|parts| format!("[{}]", parts.join(",")));
    let content = prop_oneof![3 => value(), 2 => parts];
    let role = r"user|us\\u0065r|assistant|assistant|tool|system";
    let arguments = prop_oneof![4 => text, 1 => r"null|7|\[\]"];
    let kind = "function_call|custom_tool_call|reasoning";
    let more = || {
        prop_oneof![
            3 => Just(String::new()),
            1 => value().prop_map(|value| format!(r#","content":{value},"output":{value}"#)),
            1 => text.prop_map(|text| format!(r#","role":"user","arguments":{text}"#)),
        ]
    };
    let json = prop_oneof![
        (role, content, id(), more()).prop_map(|(role, content, id, more)| {
            format!(r#"{{"role":"{role}", "content" : {content},"tool_call_id":{id}{more}}}"#)
        }),
        (kind, id(), r#""n(\\u0061)?""#, arguments, more()).prop_map(
            |(kind, id, name, given, more)| format!(
                r#"{{"type":"{kind}","call_id":{id},"name":{name},"arguments": {given}{more}}}"#
            )
        ),
        ("(function|custom_tool)_call_output", id(), value(), more()).prop_map(
            |(kind, id, output, more)| format!(
                r#"{{"type":"{kind}","output":{output},"call_id":{id}{more}}}"#
            )
        ),
    ];
    json.prop_map(|json| Item::from_json(json).unwrap())
}

fn odd_items() -> impl Strategy<Value = Vec<Item>> {
    let mostly_answered = |item: Item| match item.call_id() {
        Some(id) if item.kind() == ItemKind::FunctionCall => {
            let output = Item::function_call_output(&id, "o");
            vec![item, output]
        }
        _ => vec![item],
    };
    let some = prop_oneof![
        odd_item().prop_map(|item| vec![item]),
        odd_item().prop_map(mostly_answered),
    ];
    prop::collection::vec(some, 0..12).prop_map(|items| items.concat())
}

/// The same item without lone surrogates and repeated fields, escaped.
fn repaired(item: &Item) -> Item {
    let value = crate::wire::lenient_json::value(item.as_json()).unwrap();
    escaped(&Item::from_value(&value).unwrap())
}

/// A block may end anywhere, also before the comma between two chunks.
#[test]
fn blocks_may_end_anywhere() {
    for length in 0..150 {
        let first = vec![Item::user("x".repeat(length))];
        let call = Item::function_call("c", "n", "{}");
        let second = vec![Item::user("a"), call];
        let third = vec![Item::function_call_output("c", "o"), Item::assistant("b")];
        let list = [first.clone(), second.clone(), third.clone()].concat();
        let mut grown: Items = first.into();
        let mut shared = Vec::new();
        for chunk in [second, third] {
            shared.push(grown.clone());
            grown.extend(chunk);
        }
        assert_eq!(written(grown), written(list), "{length}");
    }
}

proptest! {
    #[test]
    fn odd_items_are_written_like_repaired_ones(items in odd_items()) {
        let repaired: Vec<Item> = items.iter().map(repaired).collect();
        let stray = vec![Item::function_call_output("none", "")];
        let indexed = [stray, items.clone()].concat();
        let written = written(items);
        prop_assert_eq!(&written, &self::written(repaired));
        prop_assert_eq!(&written, &self::written(indexed));
    }

    /// The cache stays true while a conversation grows.
    #[test]
    fn messages_do_not_depend_on_chunks(
        items in prop_oneof![any_items(), odd_items()],
        cuts in prop::collection::vec((any::<bool>(), any::<bool>()), 24),
    ) {
        let mut grown = Items::new();
        let mut shared = Vec::new();
        for (item, (is_cut, is_written)) in items.iter().zip(cuts.into_iter().cycle()) {
            if is_cut {
                shared.push(grown.clone());
            }
            grown.extend([item.clone()]);
            if is_written {
                let _ = written(grown.clone());
            }
        }
        prop_assert_eq!(written(grown), written(items));
    }

    /// An output without a call is left out; because of it, all others are looked up in the index.
    #[test]
    fn outputs_are_matched_with_and_without_an_index(items in any_items()) {
        let stray = Item::function_call_output("none", "");
        let indexed = [vec![stray], items.clone()].concat();
        prop_assert_eq!(written(items), written(indexed));
    }

    #[test]
    fn copied_messages_are_equal_to_built_ones(items in any_items()) {
        let other: Items = items.iter().map(escaped).collect();
        prop_assert_eq!(written(items), written(other));
    }
}
