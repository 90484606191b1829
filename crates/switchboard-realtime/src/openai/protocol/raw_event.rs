//! The check of client events that the application writes itself.

use serde_json::{Map, Value};

use crate::model::{RealtimeModelError, RealtimeModelErrorKind, RealtimeRawCommand};

/// The fields of a client event, if the official types accept it.
pub(super) fn checked(
    command: RealtimeRawCommand,
) -> Result<Map<String, Value>, RealtimeModelError> {
    let mut fields = Map::new();
    fields.insert("type".into(), (*command.kind).into());
    fields.extend(command.fields);
    let kind = text(&fields, "type").unwrap_or_default().to_owned();
    let problem = match &*kind {
        "input_audio_buffer.clear" | "input_audio_buffer.commit" | "output_audio_buffer.clear" => {
            None
        }
        "response.cancel" => optional(&fields, "response_id", Value::is_string),
        "response.create" => {
            let response = fields
                .get("response")
                .filter(|response| !response.is_null());
            response.and_then(response_problem)
        }
        "input_audio_buffer.append" => required(&fields, "audio", Value::is_string),
        "conversation.item.delete" | "conversation.item.retrieve" => {
            required(&fields, "item_id", Value::is_string)
        }
        "conversation.item.truncate" => required(&fields, "item_id", Value::is_string)
            .or_else(|| required(&fields, "content_index", is_integer))
            .or_else(|| required(&fields, "audio_end_ms", is_integer)),
        "conversation.item.create" => required(&fields, "item", Value::is_object)
            .or_else(|| optional(&fields, "previous_item_id", Value::is_string))
            .or_else(|| item_problem(&fields["item"])),
        "session.update" => required(&fields, "session", Value::is_object)
            .or_else(|| session_problem(&fields["session"])),
        _ => Some("its type is not part of the protocol".to_owned()),
    };
    let problem = problem.or_else(|| optional(&fields, "event_id", Value::is_string));
    match problem {
        None => Ok(fields),
        Some(problem) => Err(RealtimeModelError::new(
            RealtimeModelErrorKind::Validation,
            format!("the client event `{kind}` was not sent: {problem}"),
        )),
    }
}

fn required(
    fields: &Map<String, Value>,
    field: &str,
    is_valid: fn(&Value) -> bool,
) -> Option<String> {
    match fields.get(field) {
        None | Some(Value::Null) => Some(format!("`{field}` is missing")),
        Some(value) if is_valid(value) => None,
        Some(_) => Some(format!("`{field}` has the wrong type")),
    }
}

fn optional(
    fields: &Map<String, Value>,
    field: &str,
    is_valid: fn(&Value) -> bool,
) -> Option<String> {
    match fields.get(field) {
        None | Some(Value::Null) => None,
        Some(value) if is_valid(value) => None,
        Some(_) => Some(format!("`{field}` has the wrong type")),
    }
}

fn response_problem(response: &Value) -> Option<String> {
    let Some(fields) = response.as_object() else {
        return Some("`response` is no object".to_owned());
    };
    optional(fields, "instructions", Value::is_string)
        .or_else(|| optional(fields, "output_modalities", Value::is_array))
        .or_else(|| optional(fields, "metadata", Value::is_object))
        .or_else(|| optional(fields, "tools", Value::is_array))
        .or_else(|| optional(fields, "input", Value::is_array))
        .or_else(|| optional(fields, "parallel_tool_calls", Value::is_boolean))
}

fn item_problem(item: &Value) -> Option<String> {
    let Some(fields) = item.as_object() else {
        return Some("`item` is no object".to_owned());
    };
    match text(fields, "type") {
        Some("message") => {
            let parts: &[&str] = match text(fields, "role") {
                Some("system") => &["input_text"],
                Some("user") => &["input_text", "input_audio", "input_image"],
                Some("assistant") => &["output_text", "output_audio"],
                _ => return Some("`item.role` is not `system`, `user` or `assistant`".to_owned()),
            };
            required(fields, "content", Value::is_array).or_else(|| content_problem(fields, parts))
        }
        Some("function_call") => required(fields, "arguments", Value::is_string)
            .or_else(|| required(fields, "name", Value::is_string)),
        Some("function_call_output") => required(fields, "call_id", Value::is_string)
            .or_else(|| required(fields, "output", Value::is_string)),
        Some("mcp_approval_response") => required(fields, "id", Value::is_string)
            .or_else(|| required(fields, "approval_request_id", Value::is_string))
            .or_else(|| required(fields, "approve", Value::is_boolean)),
        Some("mcp_list_tools" | "mcp_call" | "mcp_approval_request") => None,
        _ => Some("`item.type` is not part of the protocol".to_owned()),
    }
}

fn content_problem(item: &Map<String, Value>, kinds: &[&str]) -> Option<String> {
    let parts = item.get("content").and_then(Value::as_array)?;
    for part in parts {
        let Some(part) = part.as_object() else {
            return Some("a part of `item.content` is no object".to_owned());
        };
        if let Some(kind) = part.get("type").filter(|kind| !kind.is_null())
            && !kind.as_str().is_some_and(|kind| kinds.contains(&kind))
        {
            return Some(format!(
                "a part of the type {kind} is not allowed in this message"
            ));
        }
        for field in ["text", "audio", "transcript", "image_url"] {
            if let Some(problem) = optional(part, field, Value::is_string) {
                return Some(problem);
            }
        }
    }
    None
}

fn session_problem(session: &Value) -> Option<String> {
    match session.get("type").and_then(Value::as_str) {
        Some("realtime" | "transcription") => {}
        _ => return Some("`session.type` is not `realtime` or `transcription`".to_owned()),
    }
    let fields = session.as_object()?;
    optional(fields, "instructions", Value::is_string)
        .or_else(|| optional(fields, "audio", Value::is_object))
        .or_else(|| optional(fields, "tools", Value::is_array))
        .or_else(|| optional(fields, "output_modalities", Value::is_array))
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64()
}

fn text<'a>(fields: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    fields.get(field).and_then(Value::as_str)
}
