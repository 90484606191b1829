//! Messages whose parts are copied from the JSON of their items. Most of a conversation consists of
//! these.

use std::borrow::Cow;

use switchboard_core::__private::replace_lone_surrogates;
use switchboard_core::Item;
use switchboard_core::items::ItemKind;

use crate::wire::has_role;

/// A message, or a call and its output, in pieces of JSON.
pub(super) struct CopiedMessage<'a> {
    pieces: [&'a str; 12],
    /// The number of items it is made of.
    pub(super) items: usize,
}

impl<'a> CopiedMessage<'a> {
    /// The message of an item that does not continue the message before it. A call is written together
    /// with its output, which must be `next`. `None` if the message cannot be copied.
    pub(super) fn new(item: &'a Item, next: Option<&'a Item>) -> Option<Self> {
        let message = Self::unchecked(item, next)?;
        // What an assistant says and calls in one go is one message.
        let may_go_on = item.kind() == ItemKind::Message && has_role(item, "assistant");
        if may_go_on && !next.is_none_or(begins_message) {
            return None;
        }
        let mut items = [Some(item), next].into_iter().flatten().take(message.items);
        (!items.any(has_lone_surrogates)).then_some(message)
    }

    /// The same without the checks, for items that have passed them.
    fn unchecked(item: &'a Item, next: Option<&'a Item>) -> Option<Self> {
        match (item.kind(), item.field("role")) {
            (ItemKind::FunctionCall, _) => Self::answered_call(item, next?),
            (ItemKind::Message, Some(r#""user""#)) => {
                let content = item
                    .field("content")
                    .filter(|content| content.starts_with('"'))?;
                Some(Self::text(r#"{"role":"user","content":"#, content))
            }
            (ItemKind::Message, Some(r#""assistant""#)) => Some(Self::text(
                r#"{"role":"assistant","content":"#,
                item.text_json()?,
            )),
            _ => None,
        }
    }

    fn text(prefix: &'static str, text: &'a str) -> Self {
        let mut pieces = [""; 12];
        pieces[..3].copy_from_slice(&[prefix, text, "}"]);
        Self { pieces, items: 1 }
    }

    fn answered_call(call: &'a Item, output: &'a Item) -> Option<Self> {
        if output.kind() != ItemKind::FunctionCallOutput {
            return None;
        }
        let id = text_field(call, "call_id")?;
        let pieces = [
            r#"{"role":"assistant","content":null"#,
            r#","tool_calls":[{"id":"#,
            id,
            r#","type":"function","function":{"name":"#,
            text_field(call, "name")?,
            r#","arguments":"#,
            text_field(call, "arguments")?,
            r#"}}]},{"role":"tool","tool_call_id":"#,
            id,
            r#","content":"#,
            text_field(output, "output")?,
            "}",
        ];
        let is_answered = output.field("call_id") == Some(id);
        is_answered.then_some(Self { pieces, items: 2 })
    }

    /// The serialized length.
    pub(super) fn length(&self) -> usize {
        self.pieces.iter().map(|piece| piece.len()).sum()
    }

    /// Writes the message without its first `skipped` pieces. The first piece of a call is the beginning of
    /// the message that calls.
    pub(super) fn write(&self, out: &mut Vec<u8>, skipped: usize) {
        let pieces = self.pieces.iter().skip(skipped);
        for piece in pieces.filter(|piece| !piece.is_empty()) {
            out.extend_from_slice(piece.as_bytes());
        }
    }
}

/// Writes the message of an item that has a [`CopiedMessage`].
pub(super) fn write_message(out: &mut Vec<u8>, item: &Item, next: Option<&Item>) -> usize {
    CopiedMessage::unchecked(item, next).map_or(1, |message| {
        message.write(out, 0);
        message.items
    })
}

/// The JSON of a field that is a string and not empty.
fn text_field<'a>(item: &'a Item, name: &str) -> Option<&'a str> {
    let json = item.field(name)?;
    (json.starts_with('"') && json != r#""""#).then_some(json)
}

/// Returns `true` if the JSON of an item holds a lone surrogate, which servers reject.
fn has_lone_surrogates(item: &Item) -> bool {
    matches!(replace_lone_surrogates(item.as_json()), Cow::Owned(_))
}

/// Returns `true` for an item that begins a message of its own.
fn begins_message(item: &Item) -> bool {
    item.kind() == ItemKind::Message && !has_role(item, "tool")
}
