use std::fmt::Write as _;

use proptest::prelude::*;

use super::*;

fn markers() -> HistoryMarkers {
    HistoryMarkers::default()
}

#[test]
fn records_are_read_back() {
    let items = [
        Item::user("Hello"),
        Item::user("line one\nline two"),
        Item::function_call("c", "lookup", r#"{"a": 1}"#),
        Item::function_call_output("c", "账单"),
        Item::from_json(r#"{"role":"user","content":"hi","name":"Ann"}"#).unwrap(),
        Item::from_json("{\n  \"type\": \"x\",\n  \"y\": \"a b\"\n}").unwrap(),
    ];
    let values = |items: &[Item]| -> Vec<Value> {
        items.iter().map(|item| item.to_value().unwrap()).collect()
    };
    let read = read(&write(&items, &markers()), &markers()).unwrap();
    assert_eq!(values(&read), values(&items));
}

/// The plain version of [`write`]: builds the text and escapes it afterwards.
fn write_plainly(items: &[Item]) -> Item {
    let mut text = format!("{PREAMBLE}\n{}", markers().start);
    for (index, item) in items.iter().enumerate() {
        let _ = write!(text, "\n{}. ", index + 1);
        let item = item.without_internal_fields();
        let content = match item.field("content") {
            None | Some("null") => Some("".into()),
            Some(token) => json::unquote(token),
        };
        let content = content.filter(|text| !text.contains(['\n', '\r']));
        match (item.role(), content) {
            (Some(role), Some(content)) => {
                let name = item.name().filter(|name| !name.is_empty());
                let name = name.map(|name| format!(" ({name})")).unwrap_or_default();
                let _ = write!(text, "{role}{name}: {content}");
            }
            _ => {
                let item = item.without_provider_data();
                let raw = item.as_json();
                let ends = ["\u{85}", "\u{2028}", "\\u0085", "\\u2028"];
                text.push_str(&if ends.iter().any(|end| raw.contains(end)) {
                    json::as_python_writes(&item.to_value().unwrap(), json::quote_into)
                } else {
                    json::on_one_line(raw).into_owned()
                });
            }
        }
    }
    Item::assistant(format!("{text}\n{}", markers().end))
}

proptest! {
    #[test]
    fn a_summary_is_the_same_as_written_plainly(
        texts in prop::collection::vec(
            "([ -~]{0,30}|[\n\r\t\"\\\\\u{1}\u{85}\u{2028}é账“]){0,4}", 1..6,
        ),
        forms in prop::collection::vec(0..8_usize, 6),
    ) {
        let items: Vec<Item> = texts.iter().zip(forms).map(|(text, form)| {
            let quoted = serde_json::to_string(text).unwrap();
            match form {
                0 => Item::user(text),
                1 => Item::named_message("user", text, text),
                2 => Item::function_call("c", "f", text),
                3 => Item::output_message("m", text),
                4 => Item::from_json(format!("{{\n \"type\": \"x\",\r\n \"y\": {quoted}}}")).unwrap(),
                5 => Item::from_json(format!(r#"{{"type":"x","created_by":1,"provider_data":{quoted}}}"#)).unwrap(),
                6 => Item::from_json(format!(r#"{{"role":"user","content":"\u2028\/{}"}}"#, &quoted[1..quoted.len() - 1])).unwrap(),
                _ => Item::from_json(format!(r#"{{"type":"x","y":"\u2028\u00e9","z":{quoted}}}"#)).unwrap(),
            }
        }).collect();
        let written = write(&items, &markers());
        let expected = write_plainly(&items);
        prop_assert_eq!(written.as_json(), expected.as_json());
        prop_assert_eq!(written.text(), expected.text());
    }
}

#[test]
fn an_empty_conversation_has_a_placeholder() {
    let message = write(&[], &markers());
    assert!(
        message
            .text()
            .unwrap()
            .contains("(no previous turns recorded)")
    );
    assert_eq!(read(&message, &markers()).unwrap(), []);
}

#[test]
fn a_message_that_only_resembles_a_summary_is_not_read() {
    for text in [
        "Hello",
        "For context, here is the conversation so far:\nno markers",
        "For context, here is the conversation so far:\n<CONVERSATION HISTORY></CONVERSATION HISTORY>",
    ] {
        assert_eq!(read(&Item::assistant(text), &markers()), None, "{text}");
    }
    assert_eq!(read(&Item::user("x"), &markers()), None);
}
