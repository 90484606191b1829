//! A run without what a protocol does not carry, and without what its client adds.
//!
//! Over Responses that is only the note of where reasoning came from, which a server that is not
//! OpenAI itself gets. Chat has neither identifiers of items nor their status, and says nothing where there are no
//! annotations. What a client puts in their place is its own affair, so that both sides are compared
//! without them, also within texts that are JSON and within nested history. `call_id` is carried, and
//! stays.

use fake_provider::Protocol;
use serde_json::{Map, Value};

/// The same value without them.
pub(crate) fn without_ids(value: &Value, protocol: Protocol) -> Value {
    match value {
        Value::Object(fields) => {
            let dropped = dropped(fields, protocol);
            let kept = fields
                .iter()
                .filter(|(name, _)| !dropped.contains(&name.as_str()));
            let kept = kept.map(|(name, value)| (name.clone(), without_ids(value, protocol)));
            Value::Object(kept.collect())
        }
        Value::Array(list) => list
            .iter()
            .map(|value| without_ids(value, protocol))
            .collect(),
        Value::String(text) if protocol == Protocol::Chat => text_without_ids(text).into(),
        other => other.clone(),
    }
}

/// The fields that do not count, of an item or of a part of one.
fn dropped(fields: &Map<String, Value>, protocol: Protocol) -> &'static [&'static str] {
    match fields.get("type").and_then(Value::as_str) {
        Some("reasoning") if protocol == Protocol::Responses => &["provider_data"],
        _ if protocol == Protocol::Responses => &[],
        Some("message" | "function_call" | "reasoning") => &["id", "status", "provider_data"],
        Some("output_text") => &["annotations", "logprobs"],
        _ => &[],
    }
}

/// A text that is JSON, or has lines that are records of a nested history, without them.
fn text_without_ids(text: &str) -> String {
    if !text.contains('{') {
        return text.to_owned();
    }
    let lines = text.split('\n').map(|line| {
        let record = line
            .split_once(". ")
            .filter(|(_, record)| record.starts_with('{'));
        match record {
            Some((number, record)) => format!("{number}. {}", json_without_ids(record)),
            None => json_without_ids(line),
        }
    });
    match text.starts_with(['{', '[']) {
        true => json_without_ids(text),
        false => lines.collect::<Vec<String>>().join("\n"),
    }
}

fn json_without_ids(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => {
            without_ids(&value, Protocol::Chat).to_string()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn items_lose_what_chat_does_not_carry() {
        let message = json!({"type": "message", "id": "msg_1", "role": "assistant",
            "status": "completed", "content": [
                {"type": "output_text", "text": "Hi", "annotations": []}]});
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
                          "arguments": "{\"id\":1}"});
        let run = json!({"new_items": [{"raw": message}, {"raw": call}]});
        assert_eq!(
            without_ids(&run, Protocol::Chat),
            json!({"new_items": [
                {"raw": {"type": "message", "role": "assistant",
                         "content": [{"type": "output_text", "text": "Hi"}]}},
                {"raw": {"type": "function_call", "call_id": "call_1", "name": "f",
                         "arguments": "{\"id\":1}"}},
            ]})
        );
    }

    #[test]
    fn nested_history_loses_it_too() {
        let inner = json!({"type": "reasoning", "id": "rs_1", "summary": []});
        let nested = format!("Head\n<H>\n1. user: Hi. {{}}\n2. {inner}\n</H>");
        let history = json!({"content": nested, "id": "kept: this is no item"});
        assert_eq!(
            without_ids(&history, Protocol::Chat),
            json!({"content": "Head\n<H>\n1. user: Hi. {}\n2. {\"type\":\"reasoning\",\"summary\":[]}\n</H>",
                   "id": "kept: this is no item"})
        );
    }
}
