//! One entry of a conversation.

mod edit;
pub(super) mod text_parts;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use text_parts::{Part, join_parts};

use super::field_positions::{Field, ItemFields};
use super::item_builder::ItemBuilder;
use super::item_cache::{CleanSearches, Search, Summary};
use super::item_kind::ItemKind;
use super::item_table;
use crate::json;

/// One entry of a conversation: a message, a tool call, a tool output, reasoning, or anything
/// else a provider sends.
///
/// An item keeps the JSON it was made from and is sent again byte for byte, so types and fields
/// that this version does not know are preserved. Clones share everything.
///
/// ```
/// use switchboard_core::items::ItemKind;
/// use switchboard_core::Item;
///
/// let hello = Item::user("Hello");
/// assert_eq!(hello.as_json(), r#"{"role":"user","content":"Hello"}"#);
///
/// let odd = Item::from_json(r#"{"type":"hologram","id":"h1","depth":3}"#)?;
/// assert_eq!(odd.kind(), ItemKind::Unknown);
/// assert_eq!(odd.as_json(), r#"{"type":"hologram","id":"h1","depth":3}"#);
/// # Ok::<(), switchboard_core::items::InvalidItem>(())
/// ```
#[derive(Clone)]
pub struct Item(Arc<Inner>);

struct Inner {
    json: String,
    fields: ItemFields,
    clean: CleanSearches,
    /// Boxed, since few items are summaries.
    summary: Option<Box<Summary>>,
}

impl Item {
    /// Parses an item from its JSON, which must be one object.
    ///
    /// # Errors
    /// If `json` is not JSON, or not an object.
    pub fn from_json(json: impl Into<String>) -> Result<Self, InvalidItem> {
        let mut json = json.into();
        let trimmed = json.trim_ascii();
        if trimmed.len() < json.len() {
            json = trimmed.to_owned();
        }
        let fields = ItemFields::read(&json).map_err(InvalidItem)?;
        Ok(Self::from_parts(json, fields))
    }

    pub(super) fn from_parts(json: String, fields: ItemFields) -> Self {
        Self(Arc::new(Inner {
            json,
            fields,
            clean: CleanSearches::default(),
            summary: None,
        }))
    }

    /// Starts an item without fields.
    pub fn builder() -> ItemBuilder {
        ItemBuilder::new(0)
    }

    /// Creates an item from a JSON value, which must be an object.
    ///
    /// # Errors
    /// If `value` is not an object.
    pub fn from_value(value: &Value) -> Result<Self, InvalidItem> {
        Self::from_json(value.to_string())
    }

    /// A message of the user.
    pub fn user(text: impl AsRef<str>) -> Self {
        Self::message("user", text)
    }

    /// A message of the assistant.
    pub fn assistant(text: impl AsRef<str>) -> Self {
        Self::message("assistant", text)
    }

    /// A message of the system.
    pub fn system(text: impl AsRef<str>) -> Self {
        Self::message("system", text)
    }

    /// A message of the developer.
    pub fn developer(text: impl AsRef<str>) -> Self {
        Self::message("developer", text)
    }

    /// A message of any role.
    pub fn message(role: &str, text: impl AsRef<str>) -> Self {
        Self::from_strings(&[("role", role), ("content", text.as_ref())])
    }

    /// A message whose text `write` writes; `capacity` is the expected length of the JSON.
    pub(crate) fn written_message(
        role: &str,
        capacity: usize,
        write: impl FnOnce(&mut json::Quoted<'_>),
    ) -> Self {
        let mut builder = ItemBuilder::new(capacity).string("role", role);
        builder.add_string("content", write);
        builder.build()
    }

    pub(crate) fn named_message(role: &str, name: &str, text: &str) -> Self {
        Self::from_strings(&[("role", role), ("name", name), ("content", text)])
    }

    /// The user's message of a run that starts from text.
    pub(crate) fn input_message(text: &str) -> Self {
        Self::from_strings(&[("content", text), ("role", "user")])
    }

    /// A model's call of a function tool, or of a handoff. `arguments` is JSON text.
    pub fn function_call(call_id: &str, name: &str, arguments: &str) -> Self {
        Self::from_strings(&[
            ("type", "function_call"),
            ("call_id", call_id),
            ("name", name),
            ("arguments", arguments),
        ])
    }

    /// A model's call of a free-form tool.
    pub fn custom_tool_call(call_id: &str, name: &str, input: &str) -> Self {
        Self::from_strings(&[
            ("type", "custom_tool_call"),
            ("call_id", call_id),
            ("name", name),
            ("input", input),
        ])
    }

    /// The output of a function call.
    pub fn function_call_output(call_id: &str, output: &str) -> Self {
        Self::from_strings(&[
            ("call_id", call_id),
            ("output", output),
            ("type", "function_call_output"),
        ])
    }

    /// The output of this call of a function.
    pub(crate) fn output_of(call: &Self, output: &str) -> Self {
        Self::function_call_output(&call.call_id().unwrap_or_default(), output)
    }

    /// The answer to a provider's request for approval to call an MCP tool.
    pub(crate) fn mcp_approval_response(id: &str, approve: bool, reason: Option<&str>) -> Self {
        let builder = ItemBuilder::new(id.len() + reason.map_or(0, str::len) + 96)
            .string("type", "mcp_approval_response")
            .string("approval_request_id", id)
            .value("approve", &approve);
        match reason {
            Some(reason) => builder.string("reason", reason),
            None => builder,
        }
        .build()
    }

    /// A model's message as the Responses API returns it.
    pub fn output_message(id: &str, text: &str) -> Self {
        ItemBuilder::new(text.len() + id.len() + 128)
            .string("type", "message")
            .string("id", id)
            .string("role", "assistant")
            .string("status", "completed")
            .output_text(text)
            .build()
    }

    /// An item of these string fields.
    fn from_strings(fields: &[(&str, &str)]) -> Self {
        let capacity: usize = fields.iter().map(|(k, v)| k.len() + v.len() + 8).sum();
        let mut builder = ItemBuilder::new(capacity);
        for (name, text) in fields {
            builder.add_string(name, |quoted| quoted.push(text));
        }
        builder.build()
    }

    /// The item's JSON, byte for byte as it was received.
    pub fn as_json(&self) -> &str {
        &self.0.json
    }

    /// The item as a JSON value. `None` if [`Value`] cannot hold it: it is nested too deeply, or has
    /// text with a lone surrogate.
    pub fn to_value(&self) -> Option<Value> {
        serde_json::from_str(&self.0.json).ok()
    }

    /// The kind of item.
    pub fn kind(&self) -> ItemKind {
        self.0.fields.kind
    }

    /// The `type` field; absent on plain messages.
    pub fn type_name(&self) -> Option<Cow<'_, str>> {
        self.string(Field::Type)
    }

    /// The role of a message: `user`, `assistant`, `system`, `developer`, or another.
    pub fn role(&self) -> Option<Cow<'_, str>> {
        self.string(Field::Role)
    }

    /// The item's identifier.
    pub fn id(&self) -> Option<Cow<'_, str>> {
        self.string(Field::Id)
    }

    /// The identifier that a call and its output share.
    pub fn call_id(&self) -> Option<Cow<'_, str>> {
        self.string(Field::CallId)
    }

    /// The name of the called tool, or of a message's author.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.string(Field::Name)
    }

    /// The arguments of a function call, or the text of a call of a free-form tool. Arguments should
    /// be JSON, but models make mistakes.
    pub fn arguments(&self) -> Option<Cow<'_, str>> {
        if self.kind() == ItemKind::CustomToolCall {
            return self.field("input").and_then(json::unquote);
        }
        self.string(Field::Arguments)
    }

    /// The arguments of a call as JSON; a string where they are text.
    pub(crate) fn arguments_value(&self) -> Value {
        let arguments = self.arguments().unwrap_or_default();
        match self.kind() {
            ItemKind::CustomToolCall => Value::String(arguments.into_owned()),
            _ => json::arguments_value(&arguments),
        }
    }

    /// The output of a call, if it is text.
    pub fn output(&self) -> Option<Cow<'_, str>> {
        self.string(Field::Output)
    }

    /// The text of a call's output: the output, where it is text, or its text parts, each on a line.
    /// `None` for items without an output.
    ///
    /// ```
    /// use switchboard_core::Item;
    ///
    /// let output = Item::from_json(
    ///     r#"{"type":"function_call_output","call_id":"c","output":[
    ///         {"type":"input_text","text":"A map:"},{"type":"input_image","image_url":"https://x"}]}"#,
    /// )?;
    /// assert_eq!(output.output_text().as_deref(), Some("A map:"));
    /// # Ok::<(), switchboard_core::items::InvalidItem>(())
    /// ```
    pub fn output_text(&self) -> Option<Cow<'_, str>> {
        let json = self.field("output")?;
        if json.starts_with('[') {
            return Some(join_parts(json, "\n", Part::text).unwrap_or_default());
        }
        self.output()
    }

    /// The JSON of a top-level field.
    #[inline]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.0.fields.token_named(name, &self.0.json)
    }

    /// The JSON of the data that the provider attached to the item, which is not for other models.
    pub fn provider_data(&self) -> Option<&str> {
        self.field("provider_data")
    }

    /// The text of a message: its content, or its text parts joined.
    ///
    /// `None` for items without text, such as a message whose content is a refusal.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match self.text_json() {
            Some(token) => json::unquote(token),
            None => join_parts(self.field("content")?, "", Part::text),
        }
    }

    /// The JSON string that is the whole text of a message: its content, or the text of its only text
    /// part.
    ///
    /// `None` for a message of several texts or with a refusal, and for other items.
    ///
    /// ```
    /// use switchboard_core::Item;
    ///
    /// assert_eq!(Item::user("a\n").text_json(), Some(r#""a\n""#));
    /// ```
    pub fn text_json(&self) -> Option<&str> {
        self.0.fields.only_text.token(&self.0.json)
    }

    /// The text of a model's refusal to answer.
    pub fn refusal(&self) -> Option<Cow<'_, str>> {
        let content = self.field("content")?;
        // Cheaper than parsing, and refusals are rare.
        if self.text_json().is_some() || !content.contains("refusal") {
            return None;
        }
        join_parts(content, "", Part::refusal)
    }

    /// Returns `true` if the search is known to find nothing in this item.
    pub(crate) fn is_clean_of(&self, search: Search) -> bool {
        self.0.clean.contains(search)
    }

    /// Records that the search finds nothing in this item.
    pub(crate) fn note_clean_of(&self, search: Search) {
        self.0.clean.insert(search);
    }

    /// Attaches the metadata of a summary to this item, which must not be shared yet.
    pub(crate) fn with_summary(mut self, summary: Summary) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.summary = Some(Box::new(summary));
        }
        self
    }

    /// The metadata of a summary whose records can be copied.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.0.summary.as_deref()
    }

    /// Returns `true` if both are the same item in memory, not merely equal.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// The item's address, unique as long as the item lives.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// A hash that is equal for repetitions of the same item; 0 without an identity.
    pub(crate) fn identity(&self) -> u64 {
        self.0.fields.identity
    }

    /// For a call: the identity of its output; 0 otherwise.
    pub(crate) fn output_identity(&self) -> u64 {
        self.0.fields.output_identity
    }

    pub(crate) fn has_internal_fields(&self) -> bool {
        self.0.fields.has_internal_fields
    }

    fn string(&self, field: Field) -> Option<Cow<'_, str>> {
        self.0.fields.text(field, &self.0.json)
    }
}

/// Two items are equal if their JSON is the same text.
impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other) || self.0.json == other.0.json
    }
}

impl Eq for Item {}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let Some(index) = item_table::index_of(self) {
            return index.serialize(serializer);
        }
        json::as_written::serialize(&self.0.json, serializer)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        if item_table::is_reading() {
            let index = usize::deserialize(deserializer)?;
            return item_table::item_at(index).map_err(serde::de::Error::custom);
        }
        let json: String = json::as_written::deserialize(deserializer)?;
        Self::from_json(json).map_err(serde::de::Error::custom)
    }
}

/// The error for JSON that is not an item.
#[derive(Debug)]
pub struct InvalidItem(serde_json::Error);

impl fmt::Display for InvalidItem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "not an item (an item is one JSON object): {}", self.0)
    }
}

impl std::error::Error for InvalidItem {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.0)
    }
}

#[cfg(test)]
mod tests;
