//! Realtime items as the items of stored conversations, and back: a text run goes on with what was
//! said, and a realtime session with what was written.

use std::collections::HashMap;
use std::sync::Arc;

use switchboard_core::Item;
use switchboard_core::items::ItemKind;

use crate::items::{
    RealtimeContent, RealtimeItem, RealtimeItemStatus, RealtimeMessageItem, RealtimeRole,
    RealtimeToolCallItem,
};

/// The text in place of audio that was not transcribed.
const NO_TRANSCRIPT: &str = "[audio without a transcript]";

/// Returns a realtime item as items of a stored conversation: a message as its text, a tool call and
/// its output. A call without an output, and a message without content, have none.
///
/// ```
/// use switchboard_realtime::conversation::{to_items, to_realtime_items};
/// use switchboard_core::Item;
///
/// let stored = [
///     Item::user("My bill is wrong"),
///     Item::function_call("call_1", "lookup", "{}"),
///     Item::function_call_output("call_1", "12 euros"),
///     Item::assistant("It is 12 euros."),
/// ];
/// let spoken = to_realtime_items(&stored);
/// assert_eq!(spoken.len(), 3);
/// let again: Vec<Item> = spoken.iter().flat_map(to_items).collect();
/// assert_eq!(again.len(), 4);
/// assert_eq!(again[3].text().as_deref(), Some("It is 12 euros."));
/// ```
pub fn to_items(item: &RealtimeItem) -> Vec<Item> {
    match item {
        RealtimeItem::Message(message) => message_item(message).into_iter().collect(),
        RealtimeItem::ToolCall(call) => {
            let (Some(call_id), Some(output)) = (&call.call_id, &call.output) else {
                return Vec::new();
            };
            vec![
                Item::function_call(call_id, &call.name, &call.arguments),
                Item::function_call_output(call_id, output),
            ]
        }
    }
}

fn message_item(message: &RealtimeMessageItem) -> Option<Item> {
    if message.content.is_empty() {
        return None;
    }
    let text = match message.text() {
        text if text.is_empty() && has_audio(message) => NO_TRANSCRIPT.to_owned(),
        text if text.is_empty() => return None,
        text => text,
    };
    Some(match message.role {
        RealtimeRole::System => Item::system(text),
        RealtimeRole::User => Item::user(text),
        RealtimeRole::Assistant => Item::assistant(text),
    })
}

fn has_audio(message: &RealtimeMessageItem) -> bool {
    let is_audio = |part: &RealtimeContent| {
        matches!(
            part,
            RealtimeContent::Audio { .. } | RealtimeContent::InputAudio { .. }
        )
    };
    message.content.iter().any(is_audio)
}

/// Returns items of a stored conversation as realtime items. Calls without outputs, and items that only
/// text models have, such as reasoning, are left out.
pub fn to_realtime_items(items: &[Item]) -> Vec<RealtimeItem> {
    let outputs: HashMap<String, String> = items
        .iter()
        .filter(|item| item.kind() == ItemKind::FunctionCallOutput)
        .filter_map(|item| Some((item.call_id()?.into_owned(), item.output()?.into_owned())))
        .collect();
    let realtime = items.iter().enumerate().filter_map(|(at, item)| {
        let item_id: Arc<str> = format!("stored_{at}").into();
        match item.kind() {
            ItemKind::Message => stored_message(item_id, item),
            ItemKind::FunctionCall => {
                let call_id = item.call_id()?;
                let output = outputs.get(call_id.as_ref())?;
                let call = RealtimeToolCallItem {
                    item_id,
                    previous_item_id: None,
                    call_id: Some(call_id.as_ref().into()),
                    status: RealtimeItemStatus::Completed,
                    arguments: item.arguments().unwrap_or_default().into(),
                    name: item.name()?.into(),
                    output: Some(output.as_str().into()),
                };
                Some(call.into())
            }
            _ => None,
        }
    });
    realtime.collect()
}

fn stored_message(item_id: Arc<str>, item: &Item) -> Option<RealtimeItem> {
    let text = item.text()?.into_owned();
    let (role, content) = match item.role()?.as_ref() {
        "user" => (
            RealtimeRole::User,
            RealtimeContent::InputText { text: Some(text) },
        ),
        "assistant" => (
            RealtimeRole::Assistant,
            RealtimeContent::Text { text: Some(text) },
        ),
        "system" | "developer" => (
            RealtimeRole::System,
            RealtimeContent::InputText { text: Some(text) },
        ),
        _ => return None,
    };
    let mut message = RealtimeMessageItem::new(item_id, role, [content]);
    message.status = Some(RealtimeItemStatus::Completed);
    Some(message.into())
}

/// Returns `true` if nothing of an item is still to come. The transcript of a user's audio may come
/// after the answer.
pub(crate) fn is_complete(item: &RealtimeItem) -> bool {
    match item {
        RealtimeItem::ToolCall(call) => call.output.is_some(),
        RealtimeItem::Message(message) => {
            message.status != Some(RealtimeItemStatus::InProgress)
                && !(message.role == RealtimeRole::User
                    && has_audio(message)
                    && message.text().is_empty())
        }
    }
}
