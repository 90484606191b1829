//! A conversation as the Responses API accepts it, whichever provider made its items.

use std::borrow::Cow;

use serde_json::{Value, json};
use switchboard_core::__private::unquote;
use switchboard_core::Item;
use switchboard_core::items::{ItemKind, Items};

use crate::wire::lenient_json::{self, field, non_empty, text};
use crate::wire::model_error::ModelError;
use crate::wire::request_cache::with_cache;
use crate::wire::{PLACEHOLDER_ID, has_role, own_id};

/// The longest identifier that the API accepts.
const LONGEST_ID: usize = 64;

/// Prepares a conversation for a model over the Responses API.
pub(super) struct InputSanitizer<'a> {
    /// The origin of the model's own reasoning, as recorded in the items of servers other than OpenAI.
    pub(super) origin: &'a str,
    /// Set if the model accepts reasoning.
    pub(super) takes_reasoning: bool,
    /// Set if the server stores nothing, so that reasoning must be sent in full.
    pub(super) is_stateless: bool,
}

/// The items of a chunk that are sent unchanged, as far as they have been checked.
#[derive(Default)]
pub(in crate::wire) struct UnchangedItems {
    /// For each checked item, from the first on: `true` if it is sent unchanged whatever items are
    /// around it.
    flags: Vec<bool>,
    /// The serialized length of the checked items, with a comma after each.
    length: usize,
}

impl UnchangedItems {
    /// Checks the items that have not been checked yet.
    fn check(&mut self, items: &[Item]) {
        let unchecked = &items[self.flags.len()..];
        self.flags.extend(unchecked.iter().map(is_sent_unchanged));
        self.length += length_with_commas(unchecked);
    }
}

/// The serialized length of items with a comma after each.
fn length_with_commas<'a>(items: impl IntoIterator<Item = &'a Item>) -> usize {
    items.into_iter().map(|item| item.as_json().len() + 1).sum()
}

impl InputSanitizer<'_> {
    /// The items to send, and their serialized length with commas between them. Most are the items of
    /// the conversation, unchanged.
    ///
    /// # Errors
    /// If an item is not accepted by the API and cannot be repaired.
    pub(super) fn sanitize(&self, items: &Items) -> Result<(Items, usize), ModelError> {
        let mut flags = Vec::new();
        let mut length = 0;
        for chunk in items.chunks() {
            with_cache(
                &chunk,
                |cache| &cache.responses,
                |checked| {
                    checked.check(chunk.elements());
                    length += checked.length;
                    if !flags.is_empty() || checked.flags.contains(&false) {
                        flags.extend_from_slice(&checked.flags);
                    }
                },
            );
        }
        if flags.is_empty() {
            return Ok((items.clone(), length.saturating_sub(1)));
        }
        // The chunks before the first changed item have no flags.
        let unchanged = std::iter::repeat_n(true, items.len() - flags.len()).chain(flags);
        let sanitized = self.sanitize_each(items.iter().zip(unchanged))?;
        let length = length_with_commas(&sanitized);
        Ok((sanitized.into(), length.saturating_sub(1)))
    }

    /// Reasoning goes back only to its origin. Items after omitted reasoning lose their identifiers, by
    /// which the server would look for the reasoning. Items that need an identifier are then omitted as
    /// well, and so are their outputs.
    fn sanitize_each<'i>(
        &self,
        items: impl Iterator<Item = (&'i Item, bool)>,
    ) -> Result<Vec<Item>, ModelError> {
        let mut sanitized = Vec::with_capacity(items.size_hint().0);
        let mut lost_reasoning = false;
        let mut omitted_ids: Vec<Cow<'_, str>> = Vec::new();
        for (item, is_unchanged) in items {
            if !lost_reasoning && omitted_ids.is_empty() && is_unchanged {
                sanitized.push(item.clone());
                continue;
            }
            match item.kind() {
                ItemKind::Reasoning if !self.takes(item) => {
                    lost_reasoning = true;
                    continue;
                }
                ItemKind::Reasoning => lost_reasoning = false,
                // The server makes these in the middle of an answer.
                ItemKind::ProgramOutput | ItemKind::ToolSearchOutput => {}
                kind if kind.is_output() => lost_reasoning = false,
                ItemKind::Message if !has_role(item, "assistant") => lost_reasoning = false,
                _ => {}
            }
            if needs_id(item.kind()) && (lost_reasoning || has_no_id(item)) {
                tracing::debug!(
                    kind = item.kind().as_str(),
                    "an item is left out: its reasoning or its identifier is missing"
                );
                omitted_ids.extend(item.call_id().into_iter().chain(item.id()));
                continue;
            }
            if answered_id(item).is_some_and(|id| omitted_ids.contains(&id)) {
                continue;
            }
            let item = repaired(item, lost_reasoning).into_owned();
            if let Some(field) = missing_field(&item) {
                let kind = item.kind().as_str();
                return Err(ModelError::unsupported(format!(
                    "an item of type \"{kind}\" has no {field}, which the API requires"
                )));
            }
            sanitized.push(item);
        }
        Ok(sanitized)
    }

    fn takes(&self, reasoning: &Item) -> bool {
        let is_own = match reasoning.provider_data() {
            Some(data) => text(field(data, "origin")) == self.origin,
            None => self.origin == OPENAI,
        };
        let encrypted = non_empty(reasoning.field("encrypted_content"));
        let is_sendable = !self.is_stateless || encrypted.is_some();
        self.takes_reasoning && is_own && is_sendable
    }
}

/// The origin of reasoning without a recorded origin.
pub(super) const OPENAI: &str = "openai";

/// Records the origin in an item that is reasoning.
pub(super) fn mark_origin(item: Item, origin: &str) -> Item {
    if origin == OPENAI || item.kind() != ItemKind::Reasoning {
        return item;
    }
    let data = json!({"origin": origin}).to_string();
    item.with_json_field("provider_data", &data).unwrap_or(item)
}

/// Returns `true` for kinds that the API accepts only with an identifier.
fn needs_id(kind: ItemKind) -> bool {
    matches!(
        kind,
        ItemKind::CodeInterpreterCall
            | ItemKind::ComputerCall
            | ItemKind::FileSearchCall
            | ItemKind::ImageGenerationCall
            | ItemKind::LocalShellCall
            | ItemKind::LocalShellCallOutput
            | ItemKind::McpApprovalRequest
            | ItemKind::McpCall
            | ItemKind::McpListTools
            | ItemKind::Program
            | ItemKind::ProgramOutput
            | ItemKind::WebSearchCall
    )
}

/// Returns `true` for kinds that the API accepts only with a status; see [`complete_message`] for messages.
fn needs_status(kind: ItemKind) -> bool {
    matches!(
        kind,
        ItemKind::ApplyPatchCall
            | ItemKind::ApplyPatchCallOutput
            | ItemKind::CodeInterpreterCall
            | ItemKind::ComputerCall
            | ItemKind::FileSearchCall
            | ItemKind::ImageGenerationCall
            | ItemKind::LocalShellCall
            | ItemKind::ProgramOutput
            | ItemKind::WebSearchCall
    )
}

fn has_no_id(item: &Item) -> bool {
    let own = own_id(item);
    match item.kind() {
        // It is sent with the identifier of its call.
        ItemKind::LocalShellCallOutput => own.or(item.call_id()).is_none(),
        _ => own.is_none(),
    }
}

/// The identifier of the call or request that an item answers.
fn answered_id(item: &Item) -> Option<Cow<'_, str>> {
    match item.kind() {
        ItemKind::McpApprovalResponse => item.field("approval_request_id").and_then(unquote),
        kind if kind.is_output() => item.call_id().or(item.id()),
        _ => None,
    }
}

fn is_sent_unchanged(item: &Item) -> bool {
    let kind = item.kind();
    kind != ItemKind::Reasoning
        && !(needs_id(kind) && has_no_id(item))
        && missing_field(item).is_none()
        && matches!(repaired(item, false), Cow::Borrowed(_))
}

/// The field that a call or an output lacks and without which it cannot be matched.
fn missing_field(item: &Item) -> Option<&'static str> {
    match item.kind() {
        ItemKind::FunctionCall if item.name().is_none() => Some("name"),
        ItemKind::FunctionCall | ItemKind::FunctionCallOutput if item.call_id().is_none() => {
            Some("call_id")
        }
        _ => None,
    }
}

/// The item in the form that the API accepts; borrowed if nothing needs to change.
fn repaired(item: &Item, without_id: bool) -> Cow<'_, Item> {
    let kind = item.kind();
    let mut dropped: Vec<&str> = Vec::new();
    if item.provider_data().is_some() {
        dropped.push("provider_data");
    }
    // An unknown item may need its identifier.
    let may_lack_id = kind != ItemKind::Unknown && !needs_id(kind);
    if may_lack_id && without_id || has_foreign_id(item, may_lack_id) {
        dropped.push("id");
    }
    if item.field("status") == Some("null") {
        dropped.push("status");
    }
    let item = if dropped.is_empty() {
        Cow::Borrowed(item)
    } else {
        Cow::Owned(item.without_fields(&dropped))
    };
    let changed = match kind {
        ItemKind::Message => complete_message(&item),
        ItemKind::FunctionCall => with_text(&item, "arguments", "{}"),
        ItemKind::FunctionCallOutput | ItemKind::CustomToolCallOutput => {
            with_text(&item, "output", "")
        }
        ItemKind::LocalShellCallOutput => identify_by_call(&item),
        kind if needs_status(kind) && item.field("status").is_none() => {
            item.with_json_field("status", "\"completed\"")
        }
        _ => None,
    };
    changed.map_or(item, Cow::Owned)
}

/// Gives the output of a local shell the identifier of its call in place of its own.
fn identify_by_call(item: &Item) -> Option<Item> {
    let call_id = item.field("call_id")?;
    let identified = match item.id() {
        Some(_) => None,
        None => item.with_json_field("id", call_id),
    };
    let item = identified.as_ref().unwrap_or(item);
    Some(item.without_fields(&["call_id"]))
}

/// Returns `true` if the identifier cannot have come from the API.
fn has_foreign_id(item: &Item, may_lack_id: bool) -> bool {
    let prefix = match item.kind() {
        // Only messages of a model have one.
        ItemKind::Message if !is_output_message(item) => return item.field("id").is_some(),
        ItemKind::Message => "msg_",
        ItemKind::FunctionCall => "fc_",
        ItemKind::Reasoning => "rs_",
        _ => "",
    };
    match item.id() {
        Some(id) if id == PLACEHOLDER_ID => true,
        Some(id) => may_lack_id && (id.len() > LONGEST_ID || !id.starts_with(prefix)),
        None => item.field("id") == Some("null"),
    }
}

/// Returns `true` for a message in the form of a model's output.
fn is_output_message(item: &Item) -> bool {
    let content = item.field("content").unwrap_or_default();
    content.starts_with('[') && has_role(item, "assistant")
}

/// Turns a field that must be a string into one. `None` if it is one.
fn with_text(item: &Item, name: &str, default: &str) -> Option<Item> {
    let text = match item.field(name) {
        Some(json) if json.starts_with('"') => return None,
        Some(parts) if name == "output" && is_parts(parts) => return None,
        None | Some("null") => default,
        Some(other) => other,
    };
    item.with_json_field(name, &json!(text).to_string())
}

/// Returns `true` for a list of parts that the API accepts as a tool's output.
fn is_parts(json: &str) -> bool {
    let is_known = |part: &&str| {
        let kind = text(field(part, "type"));
        matches!(&*kind, "input_text" | "input_image" | "input_file")
    };
    lenient_json::list(json).is_some_and(|parts| parts.iter().all(is_known))
}

/// Adds the fields that the API requires and that others leave out. `None` if nothing is missing.
fn complete_message(item: &Item) -> Option<Item> {
    let content = item.field("content").unwrap_or("null");
    if content == "null" {
        let empty = item.without_fields(&["status"]);
        return empty.with_json_field("content", "\"\"");
    }
    if !content.starts_with('[') {
        // A message whose content is a string has no status.
        let status = item.field("status");
        return status.map(|_| item.without_fields(&["status"]));
    }
    let count = |token: &str| content.matches(token).count();
    let texts = count("\"output_text\"");
    let is_output = texts > 0 || content.contains("\"refusal\"");
    let lacks_detail = content.contains("\"input_image\"");
    let lacks_status = is_output && item.field("status").is_none();
    let lacks_annotations = count("\"annotations\"") < texts || content.contains("null");
    if !(lacks_detail || lacks_status || lacks_annotations) {
        return None;
    }
    let mut message = lenient_json::value(item.as_json())?;
    let is_output = is_output && has_role(item, "assistant");
    for part in message["content"].as_array_mut()? {
        complete_part(part, is_output);
    }
    let message = message.as_object_mut()?;
    if is_output {
        message.entry("type").or_insert(json!("message"));
        message.entry("status").or_insert(json!("completed"));
    }
    Item::from_value(&Value::Object(std::mem::take(message))).ok()
}

/// Adds the fields that the API requires of a part; nulls count as missing.
fn complete_part(part: &mut Value, is_output: bool) {
    let Some(part) = part.as_object_mut() else {
        return;
    };
    part.retain(|_, value| !value.is_null());
    let kind = part.get("type").and_then(Value::as_str);
    let missing = match kind {
        Some("input_text") => ("text", json!("")),
        Some("output_text") if is_output => ("annotations", json!([])),
        Some("input_image") => ("detail", json!("auto")),
        _ => return,
    };
    part.entry(missing.0).or_insert(missing.1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_length_of_items_is_that_of_their_json() {
        let sanitizer = InputSanitizer {
            origin: OPENAI,
            takes_reasoning: true,
            is_stateless: false,
        };
        let mut items = Items::new();
        let mut shared = Vec::new();
        assert_eq!(sanitizer.sanitize(&items).unwrap(), (items.clone(), 0));
        for length in 0..9 {
            if length % 3 == 0 {
                shared.push(items.clone());
            }
            items.extend([Item::user("x".repeat(length))]);
            // The last chunk is checked when it has grown by one item or by two.
            if length % 3 == 1 {
                continue;
            }
            let list: Vec<&str> = items.iter().map(Item::as_json).collect();
            let sanitized = sanitizer.sanitize(&items).unwrap();
            assert_eq!(sanitized, (items.clone(), list.join(",").len()));
        }
        let invalid_id =
            json!({"type": "message", "role": "user", "content": "x", "id": "y".repeat(99)});
        items.extend([Item::from_value(&invalid_id).unwrap()]);
        let (sanitized, length) = sanitizer.sanitize(&items).unwrap();
        let list: Vec<&str> = sanitized.iter().map(Item::as_json).collect();
        assert_ne!(sanitized, items);
        assert_eq!(length, list.join(",").len());
    }
}
