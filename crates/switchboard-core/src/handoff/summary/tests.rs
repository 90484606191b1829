use proptest::prelude::*;

use super::*;

fn markers() -> HistoryMarkers {
    HistoryMarkers::default()
}

fn round_trip(items: &[Item]) -> Vec<Item> {
    read(&write(items, &markers()), &markers()).unwrap()
}

#[test]
fn what_is_written_is_read_back() {
    let items = [
        Item::user("Hello"),
        Item::user("line one\nline two"),
        Item::function_call("c", "lookup", r#"{"a": 1}"#),
        Item::function_call_output("c", "账单"),
        Item::from_json(r#"{"role":"user","content":"hi","name":"Ann"}"#).unwrap(),
        Item::from_json("{\n  \"type\": \"x\",\n  \"y\": \"a b\"\n}").unwrap(),
    ];
    let back = round_trip(&items);
    let values = |items: &[Item]| {
        items
            .iter()
            .map(|i| i.to_value().unwrap())
            .collect::<Vec<_>>()
    };
    assert_eq!(values(&back), values(&items));
}

/// A summary put together as text and quoted afterwards.
fn written_slowly(items: &[Item]) -> Item {
    let mut text = format!("{PREAMBLE}\n{}", markers().start);
    for (index, item) in items.iter().enumerate() {
        let _ = write!(text, "\n{}. ", index + 1);
        let item = item.without_internal_fields();
        let content = match item.field("content") {
            None | Some("null") => Some("".into()),
            Some(token) => json::unquote(token),
        };
        match (
            item.role(),
            content.filter(|said| !said.contains(['\n', '\r'])),
        ) {
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
                    json::as_python_writes(&item.to_value().unwrap())
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
    fn escaping_along_the_way_changes_nothing(
        said in prop::collection::vec(
            "([ -~]{0,30}|[\n\r\t\"\\\\\u{1}\u{85}\u{2028}é账“]){0,4}", 1..6,
        ),
        forms in prop::collection::vec(0..8_usize, 6),
    ) {
        let items: Vec<Item> = said.iter().zip(forms).map(|(said, form)| {
            let quoted = serde_json::to_string(said).unwrap();
            match form {
                0 => Item::user(said),
                1 => Item::named_message("user", said, said),
                2 => Item::function_call("c", "f", said),
                3 => Item::output_message("m", said),
                4 => Item::from_json(format!("{{\n \"type\": \"x\",\r\n \"y\": {quoted}}}")).unwrap(),
                5 => Item::from_json(format!(r#"{{"type":"x","created_by":1,"provider_data":{quoted}}}"#)).unwrap(),
                6 => Item::from_json(format!(r#"{{"role":"user","content":"\u2028\/{}"}}"#, &quoted[1..quoted.len() - 1])).unwrap(),
                _ => Item::from_json(format!(r#"{{"type":"x","y":"\u2028\u00e9","z":{quoted}}}"#)).unwrap(),
            }
        }).collect();
        let written = write(&items, &markers());
        let slowly = written_slowly(&items);
        prop_assert_eq!(written.as_json(), slowly.as_json());
        prop_assert_eq!(written.text(), slowly.text());
    }
}

#[test]
fn an_empty_conversation_is_said_to_be_empty() {
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
fn a_message_that_only_looks_like_a_summary_is_none() {
    for text in [
        "Hello",
        "For context, here is the conversation so far:\nno markers",
        "For context, here is the conversation so far:\n<CONVERSATION HISTORY></CONVERSATION HISTORY>",
    ] {
        assert_eq!(read(&Item::assistant(text), &markers()), None, "{text}");
    }
    assert_eq!(read(&Item::user("x"), &markers()), None);
}
