//! Removes from a serialized run the fields that a protocol does not carry, or that its client adds.
//!
//! In Responses that is only the note of where reasoning came from, which servers other than OpenAI
//! get. Chat has no item identifiers and no status, and omits empty annotations. The client makes up
//! values for these, so that both sides are compared without them, also inside JSON texts and nested
//! history. `call_id` is carried and stays.

use fake_provider::Protocol;
use serde_json::{Map, Value};

/// Returns `value` without the fields that `protocol` does not carry.
pub(super) fn normalize(value: &Value, protocol: Protocol) -> Value {
    match value {
        Value::Object(fields) => {
            let dropped = dropped_fields(fields, protocol);
            fields
                .iter()
                .filter(|(name, _)| !dropped.contains(&name.as_str()))
                .map(|(name, value)| (name.clone(), normalize(value, protocol)))
                .collect()
        }
        Value::Array(list) => list.iter().map(|it| normalize(it, protocol)).collect(),
        Value::String(text) if protocol == Protocol::Chat => normalize_text(text).into(),
        other => other.clone(),
    }
}

/// The fields to drop from an item or a content part.
fn dropped_fields(fields: &Map<String, Value>, protocol: Protocol) -> &'static [&'static str] {
    match fields.get("type").and_then(Value::as_str) {
        Some("reasoning") if protocol == Protocol::Responses => &["provider_data"],
        _ if protocol == Protocol::Responses => &[],
        Some("message" | "function_call" | "reasoning") => &["id", "status", "provider_data"],
        Some("output_text") => &["annotations", "logprobs"],
        _ => &[],
    }
}

/// Normalizes a text that is JSON, or whose lines are records of a nested history.
fn normalize_text(text: &str) -> String {
    if !text.contains('{') {
        return text.to_owned();
    }
    if text.starts_with(['{', '[']) {
        return normalize_json(text);
    }
    let lines = text.split('\n').map(|line| {
        let record = line
            .split_once(". ")
            .filter(|(_, record)| record.starts_with('{'));
        match record {
            Some((number, record)) => format!("{number}. {}", normalize_json(record)),
            None => normalize_json(line),
        }
    });
    lines.collect::<Vec<String>>().join("\n")
}

fn normalize_json(text: &str) -> String {
    match serde_json::from_str::<Value>(text) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => {
            normalize(&value, Protocol::Chat).to_string()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn fields_that_chat_does_not_carry_are_dropped_from_items() {
        let message = json!({"type": "message", "id": "msg_1", "role": "assistant",
            "status": "completed", "content": [
                {"type": "output_text", "text": "Hi", "annotations": []}]});
        let call = json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "f",
                          "arguments": "{\"id\":1}"});
        let run = json!({"new_items": [{"raw": message}, {"raw": call}]});
        assert_eq!(
            normalize(&run, Protocol::Chat),
            json!({"new_items": [
                {"raw": {"type": "message", "role": "assistant",
                         "content": [{"type": "output_text", "text": "Hi"}]}},
                {"raw": {"type": "function_call", "call_id": "call_1", "name": "f",
                         "arguments": "{\"id\":1}"}},
            ]})
        );
    }

    #[test]
    fn fields_are_dropped_from_nested_history() {
        let inner = json!({"type": "reasoning", "id": "rs_1", "summary": []});
        let nested = format!("Head\n<H>\n1. user: Hi. {{}}\n2. {inner}\n</H>");
        let history = json!({"content": nested, "id": "kept: this is no item"});
        assert_eq!(
            normalize(&history, Protocol::Chat),
            json!({"content": "Head\n<H>\n1. user: Hi. {}\n2. {\"type\":\"reasoning\",\"summary\":[]}\n</H>",
                   "id": "kept: this is no item"})
        );
    }
}
