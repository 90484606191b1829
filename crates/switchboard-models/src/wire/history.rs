//! A conversation as the provider at hand accepts it, whoever made its items.

use std::borrow::Cow;

use serde_json::{Value, json};
use switchboard_core::{Item, ItemKind, Items};

/// An identifier that stands for "the provider gave none".
pub(super) const PLACEHOLDER_ID: &str = "__fake_id__";

/// What a model over Responses takes of a conversation.
pub(super) struct Taker<'a> {
    /// Where its own reasoning comes from, as items of other servers than OpenAI say it.
    pub(super) origin: &'a str,
    /// Whether it takes reasoning at all.
    pub(super) takes_reasoning: bool,
    /// Whether the server keeps nothing, so that reasoning counts only in full.
    pub(super) is_stateless: bool,
}

impl Taker<'_> {
    /// The items to send. Reasoning goes back only to where it came from; items that came after
    /// reasoning that stays behind lose their identifiers, by which the server would miss it.
    pub(super) fn take<'i>(&self, items: &'i Items) -> Vec<Cow<'i, Item>> {
        let mut taken = Vec::with_capacity(items.len());
        let mut lost_reasoning = false;
        for item in items {
            match item.kind() {
                ItemKind::Reasoning if !self.takes(item) => {
                    lost_reasoning = true;
                    continue;
                }
                ItemKind::Reasoning => lost_reasoning = false,
                kind if kind.is_output() => lost_reasoning = false,
                ItemKind::Message if !is_assistants(item) => lost_reasoning = false,
                _ => {}
            }
            taken.push(sendable(item, lost_reasoning));
        }
        taken
    }

    fn takes(&self, reasoning: &Item) -> bool {
        let origin = reasoning.provider_data().map(origin_of);
        self.takes_reasoning
            && match origin {
                Some(origin) => origin.as_deref() == Some(self.origin),
                None => self.origin == OPENAI,
            }
            && (!self.is_stateless || has_text(reasoning.field("encrypted_content")))
    }
}

/// The origin of what bears no mark.
pub(super) const OPENAI: &str = "openai";

/// Reasoning with a note of where it came from.
pub(super) fn marked(reasoning: Item, origin: &str) -> Item {
    if origin == OPENAI || reasoning.kind() != ItemKind::Reasoning {
        return reasoning;
    }
    let note = json!({"origin": origin}).to_string();
    reasoning
        .with_json_field("provider_data", &note)
        .unwrap_or(reasoning)
}

fn origin_of(data: &str) -> Option<String> {
    let data: Value = serde_json::from_str(data).ok()?;
    data["origin"].as_str().map(str::to_owned)
}

fn has_text(json: Option<&str>) -> bool {
    json.is_some_and(|json| json.len() > 2 && json.starts_with('"'))
}

pub(super) fn is_assistants(item: &Item) -> bool {
    item.role().is_some_and(|role| role == "assistant")
}

/// An item as the API accepts it.
fn sendable(item: &Item, without_id: bool) -> Cow<'_, Item> {
    let mut dropped: Vec<&str> = Vec::new();
    if item.provider_data().is_some() {
        dropped.push("provider_data");
    }
    let may_lack_id = matches!(item.kind(), ItemKind::Message | ItemKind::FunctionCall);
    if without_id && may_lack_id || has_odd_id(item) {
        dropped.push("id");
    }
    let item = match dropped.is_empty() {
        true => Cow::Borrowed(item),
        false => Cow::Owned(item.without_fields(&dropped)),
    };
    match item.kind() {
        ItemKind::Message => match completed(&item) {
            Some(completed) => Cow::Owned(completed),
            None => item,
        },
        _ => item,
    }
}

/// Whether the identifier is not one the API would have given to such an item.
fn has_odd_id(item: &Item) -> bool {
    let prefix = match item.kind() {
        ItemKind::Message => "msg_",
        ItemKind::FunctionCall => "fc_",
        ItemKind::Reasoning => "rs_",
        _ => "",
    };
    item.id()
        .is_some_and(|id| id == PLACEHOLDER_ID || !id.starts_with(prefix))
}

/// A message with the fields that the API asks for and that other servers and people leave out.
fn completed(item: &Item) -> Option<Item> {
    let content = item.field("content")?;
    let lacks_detail = content.contains("\"input_image\"");
    let is_output = content.contains("\"output_text\"") || content.contains("\"refusal\"");
    let lacks_status = is_output && item.field("status").is_none();
    let lacks_notes = is_output && !content.contains("\"annotations\"");
    if !(lacks_detail || lacks_status || lacks_notes) {
        return None;
    }
    let mut message = item.to_value()?;
    let is_output = is_output && is_assistants(item);
    for part in message["content"].as_array_mut()? {
        let missing = match part["type"].as_str() {
            Some("output_text") if is_output => ("annotations", json!([])),
            Some("input_image") => ("detail", json!("auto")),
            _ => continue,
        };
        let part = part.as_object_mut()?;
        part.entry(missing.0).or_insert(missing.1);
    }
    let message = message.as_object_mut()?;
    if is_output {
        message.entry("type").or_insert(json!("message"));
        message.entry("status").or_insert(json!("completed"));
    }
    Item::from_value(&Value::Object(std::mem::take(message))).ok()
}
