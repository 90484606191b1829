//! Reading the items and the usage that events of the server contain.

use serde_json::{Map, Value};
use switchboard_core::model::Usage;

use crate::items::{RealtimeContent, RealtimeItemStatus, RealtimeMessageItem, RealtimeRole};
use crate::model::{RealtimeModelUsage, RealtimeTokensDetails, RealtimeToolCall};

/// An item of a response.
pub(super) enum ServerItem {
    Message(RealtimeMessageItem),
    /// A call that is complete.
    ToolCall(RealtimeToolCall),
    /// An item that changes nothing yet.
    Other,
}

/// Reads an item of a response.
pub(super) fn read_output(
    item: &Map<String, Value>,
    strict: bool,
    is_done: bool,
) -> Result<ServerItem, String> {
    match text(item, "type") {
        Some("message") => Ok(ServerItem::Message(output_message(item, is_done))),
        Some("function_call") if is_completed(item, strict, is_done) => {
            let call_id = text(item, "call_id").unwrap_or_default();
            let mut call = RealtimeToolCall::new(
                text(item, "name").ok_or("`item.name` is no text")?,
                call_id,
                text(item, "arguments").unwrap_or_default(),
            );
            call.id = Some(text(item, "id").unwrap_or_default().into());
            Ok(ServerItem::ToolCall(call))
        }
        _ => Ok(ServerItem::Other),
    }
}

/// Returns `true` for a call that can be run. A server that leaves the status out means a call that is
/// done.
fn is_completed(item: &Map<String, Value>, strict: bool, is_done: bool) -> bool {
    match text(item, "status") {
        Some(status) => status == "completed",
        None => is_done && !strict,
    }
}

/// A message of a response. Parts of unknown types are left out.
fn output_message(item: &Map<String, Value>, is_done: bool) -> RealtimeMessageItem {
    let role = match text(item, "role") {
        Some("user") => RealtimeRole::User,
        Some("system") => RealtimeRole::System,
        _ => RealtimeRole::Assistant,
    };
    let parts = item.get("content").and_then(Value::as_array);
    let parts = parts.into_iter().flatten().filter_map(Value::as_object);
    let id = text(item, "id").unwrap_or_default();
    let mut message = RealtimeMessageItem::new(id, role, parts.filter_map(output_part));
    let default = if is_done {
        RealtimeItemStatus::Completed
    } else {
        RealtimeItemStatus::InProgress
    };
    message.status = Some(status(item).unwrap_or(default));
    message
}

fn output_part(part: &Map<String, Value>) -> Option<RealtimeContent> {
    match text(part, "type")? {
        "audio" | "output_audio" => Some(RealtimeContent::Audio {
            audio: owned(part, "audio"),
            transcript: owned(part, "transcript"),
        }),
        "text" | "output_text" => Some(RealtimeContent::Text {
            text: owned(part, "text"),
        }),
        _ => None,
    }
}

/// Reads a message of the conversation. `None` if the item is something else. With `strict`, parts of
/// unknown types are an error; otherwise they are left out.
pub(super) fn read_message(
    item: &Map<String, Value>,
    strict: bool,
) -> Result<Option<RealtimeMessageItem>, String> {
    let kind = text(item, "type").ok_or("`item.type` is no text")?;
    if kind != "message" {
        return Ok(None);
    }
    let role = match text(item, "role") {
        Some("user") => RealtimeRole::User,
        Some("system") => RealtimeRole::System,
        Some("assistant") => RealtimeRole::Assistant,
        role => return Err(format!("the role {role:?} is not known")),
    };
    let parts = item.get("content").and_then(Value::as_array);
    if strict && parts.is_none() {
        return Err("`item.content` is no list".to_owned());
    }
    let mut content = Vec::new();
    for part in parts.into_iter().flatten() {
        let part = part.as_object();
        match part.and_then(|part| conversation_part(part, role)) {
            Some(part) => content.push(part),
            None if strict => return Err("a part of `item.content` is not known".to_owned()),
            None => {}
        }
    }
    let id = text(item, "id").unwrap_or_default();
    let mut message = RealtimeMessageItem::new(id, role, content);
    message.status = Some(status(item).unwrap_or(RealtimeItemStatus::InProgress));
    Ok(Some(message))
}

fn conversation_part(part: &Map<String, Value>, role: RealtimeRole) -> Option<RealtimeContent> {
    let kind = text(part, "type")?;
    match (role, kind) {
        (RealtimeRole::Assistant, _) => output_part(part),
        (_, "input_text") => Some(RealtimeContent::InputText {
            text: owned(part, "text"),
        }),
        (RealtimeRole::User, "input_audio") => Some(RealtimeContent::InputAudio {
            audio: owned(part, "audio"),
            transcript: owned(part, "transcript"),
        }),
        (RealtimeRole::User, "input_image") => Some(RealtimeContent::InputImage {
            image_url: owned(part, "image_url"),
            detail: owned(part, "detail"),
        }),
        _ => None,
    }
}

fn status(item: &Map<String, Value>) -> Option<RealtimeItemStatus> {
    match text(item, "status")? {
        "in_progress" => Some(RealtimeItemStatus::InProgress),
        "completed" => Some(RealtimeItemStatus::Completed),
        "incomplete" => Some(RealtimeItemStatus::Incomplete),
        _ => None,
    }
}

/// The tokens of a response.
pub(super) fn usage(usage: &Map<String, Value>) -> RealtimeModelUsage {
    let count = |field: &str| usage.get(field).and_then(Value::as_u64);
    let input_tokens = count("input_tokens").unwrap_or_default();
    let output_tokens = count("output_tokens").unwrap_or_default();
    let input = details(usage.get("input_token_details"));
    let cached = usage.get("input_token_details");
    let cached = cached.and_then(|input| input.get("cached_tokens_details"));
    RealtimeModelUsage {
        usage: Usage {
            requests: 1,
            input_tokens,
            output_tokens,
            cached_tokens: input
                .and_then(|input| input.cached_tokens)
                .unwrap_or_default(),
            ..Usage::default()
        },
        total_tokens: count("total_tokens").unwrap_or(input_tokens.saturating_add(output_tokens)),
        input_tokens_details: input,
        cached_tokens_details: details(cached),
        output_tokens_details: details(usage.get("output_token_details")),
    }
}

fn details(value: Option<&Value>) -> Option<RealtimeTokensDetails> {
    let fields = value?.as_object()?;
    let count = |field: &str| fields.get(field).and_then(Value::as_u64);
    Some(RealtimeTokensDetails {
        text_tokens: count("text_tokens"),
        audio_tokens: count("audio_tokens"),
        image_tokens: count("image_tokens"),
        cached_tokens: count("cached_tokens"),
    })
}

fn text<'a>(fields: &'a Map<String, Value>, field: &str) -> Option<&'a str> {
    fields.get(field).and_then(Value::as_str)
}

fn owned(fields: &Map<String, Value>, field: &str) -> Option<String> {
    text(fields, field).map(str::to_owned)
}
