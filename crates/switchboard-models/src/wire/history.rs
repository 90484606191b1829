//! A conversation as the provider at hand accepts it, whoever made its items.

use std::borrow::Cow;

use serde_json::value::RawValue;
use serde_json::{Value, json};
use switchboard_core::__private::{Chunk, Fact, Form, Usual};
use switchboard_core::{Item, ItemKind, Items};

use super::error::{ModelError, ModelErrorKind};
use super::lenient::{self, Object};

/// An identifier that stands for "the provider gave none".
pub(super) const PLACEHOLDER_ID: &str = "__fake_id__";

/// The longest identifier the API takes.
const LONGEST_ID: usize = 64;

/// What a model over Responses takes of a conversation.
pub(super) struct InputSanitizer<'a> {
    /// Where its own reasoning comes from, as items of other servers than OpenAI say it.
    pub(super) origin: &'a str,
    /// Whether it takes reasoning at all.
    pub(super) takes_reasoning: bool,
    /// Whether the server keeps nothing, so that reasoning counts only in full.
    pub(super) is_stateless: bool,
}

impl InputSanitizer<'_> {
    /// The items to send: mostly the very items of the conversation.
    ///
    /// # Errors
    /// Where an item is nothing that the API takes, and nobody can mend it.
    pub(super) fn take(&self, items: &Items) -> Result<Items, ModelError> {
        if items.chunks().all(|stretch| all_go_as_they_are(&stretch)) {
            Ok(items.clone())
        } else {
            self.pick(items)
        }
    }

    /// Reasoning goes back only to where it came from; items that came after
    /// reasoning that stays behind lose their identifiers, by which the server would miss it. Those
    /// that are nothing without one stay behind as well, and so does what answers them.
    fn pick(&self, items: &Items) -> Result<Items, ModelError> {
        let mut taken = Vec::with_capacity(items.len());
        let mut lost_reasoning = false;
        let mut lost: Vec<Cow<'_, str>> = Vec::new();
        for item in items {
            if !lost_reasoning && lost.is_empty() && goes_as_it_is(item) {
                taken.push(item.clone());
                continue;
            }
            match item.kind() {
                ItemKind::Reasoning if !self.takes(item) => {
                    lost_reasoning = true;
                    continue;
                }
                ItemKind::Reasoning => lost_reasoning = false,
                // The server made these in the middle of an answer.
                ItemKind::ProgramOutput | ItemKind::ToolSearchOutput => {}
                kind if kind.is_output() => lost_reasoning = false,
                ItemKind::Message if !is_assistants(item) => lost_reasoning = false,
                _ => {}
            }
            if needs_id(item.kind()) && (lost_reasoning || has_no_id(item)) {
                tracing::debug!(
                    kind = item.kind().as_str(),
                    "left out: the server would miss its reasoning or its identifier"
                );
                lost.extend(item.call_id().into_iter().chain(item.id()));
                continue;
            }
            if !lost.is_empty() && answers(item).is_some_and(|id| lost.contains(&id)) {
                continue;
            }
            taken.push(identified(sendable(item, lost_reasoning).into_owned())?);
        }
        Ok(taken.into())
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
    item.is_of_assistant()
}

/// The kinds that the API takes only with an identifier.
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

/// The kinds that the API takes only with a status. Messages are looked at on their own.
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
    let own = item
        .id()
        .filter(|id| !id.is_empty() && id != PLACEHOLDER_ID);
    match item.kind() {
        // It goes by the identifier of its call.
        ItemKind::LocalShellCallOutput => own.or(item.call_id()).is_none(),
        _ => own.is_none(),
    }
}

/// The identifier of what an item answers.
fn answers(item: &Item) -> Option<Cow<'_, str>> {
    match item.kind() {
        ItemKind::McpApprovalResponse => {
            let id = item.field("approval_request_id").and_then(lenient::text);
            id.map(Cow::Owned)
        }
        kind if kind.is_output() => item.call_id().or(item.id()),
        _ => None,
    }
}

/// Whether nothing about an item keeps it from being sent as it stands. Items say so once: with it a
/// request over 1,000 items costs little more than copying them.
fn goes_as_it_is(item: &Item) -> bool {
    item.fact(Fact::SentAsItIs, |item| {
        let kind = item.kind();
        kind != ItemKind::Reasoning
            && !(needs_id(kind) && has_no_id(item))
            && lacks(item).is_none()
            && matches!(sendable(item, false), Cow::Borrowed(_))
    })
}

/// Whether all items of a stretch go as they stand. It notes the first ones that do, with their lengths and
/// a comma after each.
fn all_go_as_they_are(stretch: &Chunk<'_, Item>) -> bool {
    let known = stretch.usual(Form::Responses);
    let Usual {
        mut elements,
        mut length,
    } = known;
    for item in &stretch.elements[elements..] {
        if !goes_as_it_is(item) {
            break;
        }
        elements += 1;
        length += item.as_json().len() + 1;
    }
    if elements > known.elements {
        stretch.note(Form::Responses, Usual { elements, length });
    }
    elements == stretch.elements.len()
}

/// An item that says what it belongs to.
fn identified(item: Item) -> Result<Item, ModelError> {
    let Some(lacks) = lacks(&item) else {
        return Ok(item);
    };
    let kind = item.kind().as_str();
    let message = format!(
        "an item of type \"{kind}\" has no {lacks}, and without it nobody knows what it belongs to"
    );
    Err(ModelError::new(ModelErrorKind::Unsupported, message))
}

/// What a call or an output must have and does not.
fn lacks(item: &Item) -> Option<&'static str> {
    match item.kind() {
        ItemKind::FunctionCall if item.name().is_none() => Some("name"),
        ItemKind::FunctionCall | ItemKind::FunctionCallOutput if item.call_id().is_none() => {
            Some("call_id")
        }
        _ => None,
    }
}

/// An item as the API accepts it.
fn sendable(item: &Item, without_id: bool) -> Cow<'_, Item> {
    let kind = item.kind();
    let mut dropped: Vec<&str> = Vec::new();
    if item.provider_data().is_some() {
        dropped.push("provider_data");
    }
    // Of what nobody knows nobody knows whether it may lack one.
    let may_lack_id = kind != ItemKind::Unknown && !needs_id(kind);
    if may_lack_id && without_id || has_odd_id(item, may_lack_id) {
        dropped.push("id");
    }
    if item.has_null_status() {
        dropped.push("status");
    }
    let item = if dropped.is_empty() {
        Cow::Borrowed(item)
    } else {
        Cow::Owned(item.without_fields(&dropped))
    };
    let mended = match kind {
        ItemKind::Message => completed(&item),
        ItemKind::FunctionCall => with_text(&item, "arguments", "{}"),
        ItemKind::FunctionCallOutput | ItemKind::CustomToolCallOutput => {
            with_text(&item, "output", "")
        }
        ItemKind::LocalShellCallOutput => by_call(&item),
        kind if needs_status(kind) && !item.has_status() => {
            item.with_json_field("status", "\"completed\"")
        }
        _ => None,
    };
    mended.map_or(item, Cow::Owned)
}

/// The output of a local shell, which has the identifier of its call in place of its own.
fn by_call(item: &Item) -> Option<Item> {
    let call_id = item.field("call_id")?;
    let named = match item.id() {
        Some(_) => None,
        None => item.with_json_field("id", call_id),
    };
    Some(named.as_ref().unwrap_or(item).without_fields(&["call_id"]))
}

/// Whether the identifier is not one the API would have given to such an item.
fn has_odd_id(item: &Item, may_lack_id: bool) -> bool {
    let prefix = match item.kind() {
        // Only what a model said has one.
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

/// Whether a message is of the form in which a model answers.
fn is_output_message(item: &Item) -> bool {
    let content = item.field("content").unwrap_or_default();
    content.starts_with('[') && is_assistants(item)
}

/// An item whose field must be text: other JSON is put into one. `None` where nothing is to be done.
fn with_text(item: &Item, name: &str, otherwise: &str) -> Option<Item> {
    let text = match item.field(name) {
        Some(json) if json.starts_with('"') => return None,
        Some(parts) if name == "output" && is_parts(parts) => return None,
        None | Some("null") => otherwise,
        Some(other) => other,
    };
    item.with_json_field(name, &json!(text).to_string())
}

/// Whether this is what a tool may answer other than text.
fn is_parts(json: &str) -> bool {
    let parts: Option<Vec<&RawValue>> = serde_json::from_str(json).ok();
    let kind = |part: &&RawValue| Object::of(part.get()).and_then(|part| part.text("type"));
    let is_known = |kind: Option<String>| {
        let kinds = ["input_text", "input_image", "input_file"];
        kind.is_some_and(|kind| kinds.contains(&&*kind))
    };
    parts.is_some_and(|parts| parts.iter().map(kind).all(is_known))
}

/// A message with the fields that the API asks for and that other servers and people leave out.
/// `None` where nothing is to be done.
fn completed(item: &Item) -> Option<Item> {
    let content = item.field("content").unwrap_or("null");
    if content == "null" {
        let empty = item.without_fields(&["status"]);
        return empty.with_json_field("content", "\"\"");
    }
    if !content.starts_with('[') {
        // A message whose content is text has no status.
        return item.has_status().then(|| item.without_fields(&["status"]));
    }
    let count = |word: &str| content.matches(word).count();
    let texts = count("\"output_text\"");
    let is_output = texts > 0 || content.contains("\"refusal\"");
    let lacks_detail = content.contains("\"input_image\"");
    let lacks_status = is_output && !item.has_status();
    let lacks_notes = count("\"annotations\"") < texts || content.contains("null");
    if !(lacks_detail || lacks_status || lacks_notes) {
        return None;
    }
    let mut message = lenient::value(item.as_json())?;
    let is_output = is_output && is_assistants(item);
    for part in message["content"].as_array_mut()? {
        complete(part, is_output);
    }
    let message = message.as_object_mut()?;
    if is_output {
        message.entry("type").or_insert(json!("message"));
        message.entry("status").or_insert(json!("completed"));
    }
    Item::from_value(&Value::Object(std::mem::take(message))).ok()
}

/// A part of a message with what the API asks for; nulls count as missing.
fn complete(part: &mut Value, is_output: bool) {
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
