//! The input of a request as items, and the conversation that it belongs to.
//!
//! A client that keeps its conversations itself sends all of it each time. If it runs tools, the run waits in a
//! conversation that the service has named, and the identifiers of the calls say in which: `sbc` or `sbt`, 16 hex
//! digits, `_`, and the model's own identifier. So the outputs go on with the agent that called, and nothing that the
//! team's own tools did before is done again.

use std::sync::Arc;

use serde_json::{Value, json};
use switchboard_core::Item;
use switchboard_core::conversation::{Conversation, EntryContent};
use switchboard_core::items::ItemKind;
use switchboard_core::tool::{OutputPart, ToolOutput};

use crate::error::ServiceError;
use crate::keys::random_id;
use crate::service::GivenOutputs;

/// The kinds of conversations that the service names: kept ones, and temporary ones, with the letters in
/// identifiers of calls.
const NAMED: [(&str, char); 2] = [("conv", 'c'), ("temp", 't')];

/// The number of hex digits that name a conversation.
const KEY_LEN: usize = 16;

/// Makes the name of a conversation: one that is kept, or a temporary one.
pub(super) fn new_conversation(is_kept: bool) -> Result<Arc<str>, ServiceError> {
    let (kind, _) = NAMED[usize::from(!is_kept)];
    let id = random_id(kind)?;
    Ok(id[..kind.len() + 1 + KEY_LEN].into())
}

/// The identifier of a call for the client.
pub(super) fn exported_call_id(conversation: &str, call_id: &str) -> String {
    let named = NAMED.iter().find_map(|(kind, letter)| {
        let key = conversation.strip_prefix(kind)?.strip_prefix('_')?;
        (key.len() == KEY_LEN).then_some((letter, key))
    });
    match named {
        Some((letter, key)) => format!("sb{letter}{key}_{call_id}"),
        None => call_id.to_owned(),
    }
}

/// The conversation and the model's own identifier of a call.
fn imported_call_id(call_id: &str) -> Option<(Arc<str>, &str)> {
    let rest = call_id.strip_prefix("sb")?;
    let (kind, letter) = NAMED.iter().find(|(_, letter)| rest.starts_with(*letter))?;
    let (key, own) = rest.strip_prefix(*letter)?.split_at_checked(KEY_LEN)?;
    let own = own.strip_prefix('_')?;
    let is_key = key.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_key.then(|| (format!("{kind}_{key}").into(), own))
}

/// Outputs of calls that wait in a conversation, and the messages after them.
pub(super) struct WaitingOutputs {
    pub(super) conversation: Arc<str>,
    pub(super) given: GivenOutputs,
}

/// Finds the outputs at the end of a conversation that the client keeps.
pub(super) fn waiting_outputs(items: &[Item]) -> Option<WaitingOutputs> {
    let start = new_items_start(items);
    let new = &items[start..];
    let outputs = new
        .iter()
        .filter(|item| item.kind() == ItemKind::FunctionCallOutput);
    let outputs: Vec<_> = outputs
        .filter_map(|item| {
            let call_id = item.call_id()?;
            let (conversation, own) = imported_call_id(&call_id)?;
            Some((conversation, (Arc::from(own), tool_output(item))))
        })
        .collect();
    let conversation = outputs.first()?.0.clone();
    let given = GivenOutputs {
        outputs: (outputs.into_iter())
            .filter(|(other, _)| *other == conversation)
            .map(|(_, output)| output)
            .collect(),
        added: messages(new),
    };
    Some(WaitingOutputs {
        conversation,
        given,
    })
}

/// The outputs and the messages among items that are new in a stored conversation.
pub(super) fn given_outputs(items: &[Item]) -> GivenOutputs {
    GivenOutputs {
        outputs: outputs(items),
        added: messages(items),
    }
}

/// The messages among items.
fn messages(items: &[Item]) -> Vec<Item> {
    let is_message = |item: &&Item| item.kind() != ItemKind::FunctionCallOutput;
    items.iter().filter(is_message).cloned().collect()
}

/// The outputs among items, by the identifiers of their calls.
fn outputs(items: &[Item]) -> Vec<(Arc<str>, ToolOutput)> {
    let outputs = items
        .iter()
        .filter(|item| item.kind() == ItemKind::FunctionCallOutput);
    outputs
        .filter_map(|item| {
            let call_id = item.call_id()?;
            let own = imported_call_id(&call_id).map_or(&*call_id, |(_, own)| own);
            Some((own.into(), tool_output(item)))
        })
        .collect()
}

/// The output of a tool of the client: text, or parts.
fn tool_output(item: &Item) -> ToolOutput {
    if let Some(text) = item.output() {
        return ToolOutput::Text(text.into_owned());
    }
    let parts = item
        .to_value()
        .map(|item| item["output"].clone())
        .unwrap_or_default();
    match serde_json::from_value::<Vec<OutputPart>>(parts.clone()) {
        Ok(parts) => ToolOutput::Parts(parts),
        Err(_) => ToolOutput::Json(parts),
    }
}

/// The index of the first item after the last one that a model has made.
fn new_items_start(items: &[Item]) -> usize {
    let is_new = |item: &Item| {
        item.kind() == ItemKind::FunctionCallOutput
            || matches!(
                item.role().as_deref(),
                Some("user" | "system" | "developer")
            )
    };
    items
        .iter()
        .rposition(|item| !is_new(item))
        .map_or(0, |at| at + 1)
}

/// Brings a stored conversation to where the client has it, and returns the items that are new. A client that edits
/// a message or wants another answer sends fewer messages of the user than are stored; what followed is taken back.
pub(super) async fn align(
    conversation: &Conversation,
    items: Vec<Item>,
) -> Result<Vec<Item>, ServiceError> {
    let start = new_items_start(&items);
    let is_user = |item: &Item| item.role().as_deref() == Some("user");
    let before = items[..start].iter().filter(|item| is_user(item)).count();
    let record = conversation.record(None).await;
    let record = record.map_err(|error| ServiceError::of_store(&error))?;
    let stored = record.iter().filter(|entry| match &entry.content {
        EntryContent::Item(item) => is_user(item),
        _ => false,
    });
    let stored: Vec<u64> = stored.map(|entry| entry.position).collect();
    if stored.is_empty() {
        return Ok(items);
    }
    let has_message = items[start..].iter().any(is_user);
    if let Some(position) = stored.get(before).filter(|_| has_message) {
        let rewound = conversation.rewind(*position).await;
        rewound.map_err(|error| ServiceError::of_store(&error))?;
    }
    Ok(items.into_iter().skip(start).collect())
}

/// Reads the input of a Responses request.
pub(super) fn response_items(input: &Value) -> Result<Vec<Item>, ServiceError> {
    let items = match input {
        Value::String(text) if !text.is_empty() => return Ok(vec![Item::user(text)]),
        Value::Array(items) if !items.is_empty() => items,
        _ => {
            return Err(ServiceError::invalid(
                "input is a text or a list of items, and not empty",
            ));
        }
    };
    items
        .iter()
        .filter_map(|item| response_item(item).transpose())
        .collect()
}

fn response_item(item: &Value) -> Result<Option<Item>, ServiceError> {
    let kind = item.get("type").map_or(Some("message"), Value::as_str);
    match kind {
        Some("message") if item["role"].is_string() && !item["content"].is_null() => {}
        Some("function_call") if item["call_id"].is_string() && item["name"].is_string() => {}
        Some("function_call_output")
            if item["call_id"].is_string() && item.get("output").is_some() => {}
        // The reasoning of another response, which no model of the team can read.
        Some("reasoning") => return Ok(None),
        Some(kind) => {
            let message = format!("input has an item of the type {kind:?} that cannot be used");
            return Err(ServiceError::invalid(message));
        }
        None => return Err(ServiceError::invalid("input has an item without a type")),
    }
    let mut item = item.clone();
    if let Some(fields) = item.as_object_mut() {
        // Identifiers of responses of this service mean nothing to a model's provider.
        fields.remove("id");
        fields.remove("agent");
    }
    let item = Item::from_value(&item);
    item.map(Some)
        .map_err(|error| ServiceError::invalid(error.to_string()))
}

/// Reads the messages of a Chat Completions request: items, and instructions of the client.
pub(super) fn chat_items(messages: &Value) -> Result<(Vec<Item>, Option<String>), ServiceError> {
    let messages = messages.as_array().filter(|messages| !messages.is_empty());
    let messages =
        messages.ok_or_else(|| ServiceError::invalid("messages is a list, and not empty"))?;
    let mut items = Vec::new();
    let mut instructions: Vec<String> = Vec::new();
    for message in messages {
        let content = &message["content"];
        match message["role"].as_str() {
            Some("system" | "developer") => instructions.push(text_of(content)),
            Some("user") => items.push(item(
                &json!({"role": "user", "content": user_content(content)?}),
            )?),
            Some("assistant") => {
                let text = text_of(content);
                if !text.is_empty() {
                    items.push(Item::assistant(text));
                }
                for call in message["tool_calls"].as_array().into_iter().flatten() {
                    let function = &call["function"];
                    let (Some(id), Some(name)) = (call["id"].as_str(), function["name"].as_str())
                    else {
                        return Err(ServiceError::invalid("a tool call has no id or no name"));
                    };
                    let arguments = function["arguments"].as_str().unwrap_or("{}");
                    items.push(Item::function_call(id, name, arguments));
                }
            }
            Some("tool") => {
                let call_id = message["tool_call_id"].as_str();
                let call_id = call_id.ok_or_else(|| {
                    ServiceError::invalid("a message of a tool has no tool_call_id")
                })?;
                items.push(Item::function_call_output(call_id, &text_of(content)));
            }
            _ => {
                return Err(ServiceError::invalid(
                    "messages have the role system, developer, user, assistant or tool",
                ));
            }
        }
    }
    if items.is_empty() {
        return Err(ServiceError::invalid("there is no message of the user"));
    }
    let instructions = instructions.join("\n\n");
    Ok((
        items,
        (!instructions.trim().is_empty()).then_some(instructions),
    ))
}

fn item(value: &Value) -> Result<Item, ServiceError> {
    Item::from_value(value).map_err(|error| ServiceError::invalid(error.to_string()))
}

/// The text of a message's content.
pub(crate) fn text_of(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => {
            let texts = parts.iter().filter_map(|part| part["text"].as_str());
            texts.collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    }
}

/// The content of a user's message in the form of Responses.
fn user_content(content: &Value) -> Result<Value, ServiceError> {
    let parts = match content {
        Value::String(_) => return Ok(content.clone()),
        Value::Array(parts) => parts,
        _ => {
            return Err(ServiceError::invalid(
                "the content of a message is a text or a list of parts",
            ));
        }
    };
    let part = |part: &Value| match part["type"].as_str() {
        Some("text") => Ok(json!({"type": "input_text", "text": part["text"]})),
        Some("image_url") => {
            let image = &part["image_url"];
            let detail = image["detail"].as_str().unwrap_or("auto");
            Ok(json!({"type": "input_image", "image_url": image["url"], "detail": detail}))
        }
        Some("file") => {
            let file = &part["file"];
            Ok(
                json!({"type": "input_file", "filename": file["filename"], "file_data": file["file_data"]}),
            )
        }
        _ => Err(ServiceError::invalid(
            "parts of a message are text, image_url or file",
        )),
    };
    parts
        .iter()
        .map(part)
        .collect::<Result<Vec<Value>, _>>()
        .map(Value::Array)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::*;

    #[test]
    fn the_identifier_of_a_call_leads_back_to_its_conversation() {
        for is_kept in [true, false] {
            let conversation = new_conversation(is_kept).unwrap();
            let exported = exported_call_id(&conversation, "call_a_1");
            assert_eq!(
                imported_call_id(&exported),
                Some((conversation.clone(), "call_a_1"))
            );
        }
        assert_eq!(exported_call_id("tuesday", "call_1"), "call_1");
        for other in [
            "call_1",
            "sb",
            "sbc",
            "sbc123_x",
            "sbx0123456789abcdef_c",
            "sbc0123456789abcdeg_c",
        ] {
            assert_eq!(imported_call_id(other), None, "{other}");
        }
    }
}
