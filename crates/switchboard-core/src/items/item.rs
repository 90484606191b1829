//! One entry of a conversation.

mod building;
mod changed;
pub(super) mod content;
mod parts;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

pub use building::Building;
use content::joined;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::RawValue;

use super::head::{Head, Place, Scanned, Speaker, field};
use super::item_cache::{Clean, Notes, Search, Summary};
use super::kind::ItemKind;
use crate::json;
use crate::scan::Scanner;

/// One entry of a conversation: a message, a tool call, a tool output, reasoning, or anything
/// else a provider sends.
///
/// An item keeps the JSON it was made from and is replayed byte for byte, so types and fields
/// this version does not know survive. Beside the text it keeps a small view of the fields the
/// engine needs. Clones share everything.
///
/// ```
/// use switchboard_core::{Item, ItemKind};
///
/// let hello = Item::user("Hello");
/// assert_eq!(hello.as_json(), r#"{"role":"user","content":"Hello"}"#);
///
/// let odd = Item::from_json(r#"{"type":"hologram","id":"h1","depth":3}"#)?;
/// assert_eq!(odd.kind(), ItemKind::Unknown);
/// assert_eq!(odd.as_json(), r#"{"type":"hologram","id":"h1","depth":3}"#);
/// # Ok::<(), switchboard_core::InvalidItem>(())
/// ```
#[derive(Clone)]
pub struct Item(Arc<Inner>);

/// In this order: a request looks at the notes and the length of each item, which then mostly are in
/// one line of the cache.
#[repr(C)]
struct Inner {
    notes: Notes,
    raw: String,
    head: Head,
    clean: Clean,
    /// SmallMap items are one, so it stands elsewhere.
    summary: Option<Box<Summary>>,
}

impl Inner {
    fn new(raw: String, head: Head) -> Arc<Self> {
        Self::noted(raw, head, Notes::default())
    }

    fn noted(raw: String, head: Head, notes: Notes) -> Arc<Self> {
        Arc::new(Self {
            notes,
            raw,
            head,
            clean: Clean::default(),
            summary: None,
        })
    }
}

impl Item {
    /// An item from its JSON, which must be one object.
    ///
    /// # Errors
    /// Where `json` is not JSON, or not an object.
    pub fn from_json(json: impl Into<String>) -> Result<Self, InvalidItem> {
        let raw = json.into();
        let raw = match raw.trim_ascii() {
            trimmed if trimmed.len() == raw.len() => raw,
            trimmed => trimmed.to_owned(),
        };
        let mut scanner = Scanner::new(&raw);
        let scanned = Head::scan(&mut scanner).filter(|_| scanner.is_at_end());
        if let Some(Scanned { head, notes, .. }) = scanned {
            return Ok(Self(Inner::noted(raw, head, notes)));
        }
        let head = Head::parse(&raw).map_err(InvalidItem)?;
        Ok(Self(Inner::new(raw, head)))
    }

    /// The item that stands here in other JSON; `None` where it is not written as usual. Reading an
    /// answer and its items in one pass spares a model over the wire half of the reading.
    #[doc(hidden)]
    pub fn scan(scanner: &mut Scanner<'_>) -> Option<Self> {
        let Scanned { raw, head, notes } = Head::scan(scanner)?;
        let raw = raw.to_owned();
        Some(Self(Inner::noted(raw, head, notes)))
    }

    /// An item from a JSON value, which must be an object.
    ///
    /// # Errors
    /// Where `value` is not an object.
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
        Self::built(&[("role", role), ("content", text.as_ref())])
    }

    /// A message whose text is written as it is escaped; `size` is about how long it gets.
    pub(crate) fn written_message(
        role: &str,
        size: usize,
        write: impl FnOnce(&mut json::Quoted<'_>),
    ) -> Self {
        let mut building = Building::of(size);
        building.add("role", |quoted| quoted.push(role));
        building.add("content", write);
        building.built()
    }

    pub(crate) fn named_message(role: &str, name: &str, text: &str) -> Self {
        Self::built(&[("role", role), ("name", name), ("content", text)])
    }

    /// What a user said where a run is given only that.
    pub(crate) fn words_of_user(text: &str) -> Self {
        Self::built(&[("content", text), ("role", "user")])
    }

    /// A model's call of a function tool, or of a handoff. `arguments` is JSON text.
    pub fn function_call(call_id: &str, name: &str, arguments: &str) -> Self {
        Self::built(&[
            ("type", "function_call"),
            ("call_id", call_id),
            ("name", name),
            ("arguments", arguments),
        ])
    }

    /// The answer to a function call.
    pub fn function_call_output(call_id: &str, output: &str) -> Self {
        Self::built(&[
            ("call_id", call_id),
            ("output", output),
            ("type", "function_call_output"),
        ])
    }

    /// A model's message as the Responses API gives it.
    pub fn output_message(id: &str, text: &str) -> Self {
        Self::of_fields(text.len() + id.len() + 128, |fields| {
            fields.text("type", "message");
            fields.text("id", id);
            fields.text("role", "assistant");
            fields.text("status", "completed");
            fields.output_text(text);
        })
    }

    /// An item of the fields that `write` gives it; `size` is about how long it gets.
    #[doc(hidden)]
    pub fn of_fields(size: usize, write: impl FnOnce(&mut Building)) -> Self {
        let mut building = Building::of(size);
        write(&mut building);
        building.built()
    }

    /// An item of these string fields.
    fn built(fields: &[(&str, &str)]) -> Self {
        let size: usize = fields.iter().map(|(k, v)| k.len() + v.len() + 8).sum();
        Self::of_fields(size, |building| {
            for (name, value) in fields {
                building.text(name, value);
            }
        })
    }

    /// An item from text this crate has written itself.
    fn trusted(raw: String) -> Self {
        let json = raw.as_str();
        match Head::scan(&mut Scanner::new(json)) {
            Some(Scanned { head, notes, .. }) => Self(Inner::noted(raw, head, notes)),
            None => {
                let head = Head::parse(json).unwrap_or_default();
                Self(Inner::new(raw, head))
            }
        }
    }

    /// The item's JSON, as it came.
    pub fn as_json(&self) -> &str {
        &self.0.raw
    }

    /// The item as a JSON value, `None` where [`Value`] cannot hold it (nested too deeply, or text
    /// with a lone surrogate); [`Item::as_json`] always has it.
    pub fn to_value(&self) -> Option<Value> {
        serde_json::from_str(&self.0.raw).ok()
    }

    /// What the item is.
    pub fn kind(&self) -> ItemKind {
        self.0.head.kind.unwrap_or(ItemKind::Unknown)
    }

    /// The `type` field as it stands; absent on plain messages.
    pub fn type_name(&self) -> Option<Cow<'_, str>> {
        self.name_at(self.0.head.type_name)
    }

    /// Who speaks: `user`, `assistant`, `system`, `developer`, or what else the item says.
    pub fn role(&self) -> Option<Cow<'_, str>> {
        self.name_at(self.0.head.role)
    }

    /// The item's identifier.
    pub fn id(&self) -> Option<Cow<'_, str>> {
        self.name_at(self.0.head.id)
    }

    /// What ties a call and its output together.
    #[inline]
    pub fn call_id(&self) -> Option<Cow<'_, str>> {
        self.name_at(self.0.head.call_id)
    }

    /// The called tool's name, or a speaker's name.
    #[inline]
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.name_at(self.0.head.name)
    }

    /// The arguments of a function call: JSON text, if the model kept to it.
    pub fn arguments(&self) -> Option<Cow<'_, str>> {
        self.text_at(self.0.head.arguments)
    }

    /// A call's output where it is text.
    pub fn output(&self) -> Option<Cow<'_, str>> {
        self.text_at(self.0.head.output)
    }

    /// The JSON of one field at the top of the item.
    pub fn field(&self, name: &str) -> Option<&str> {
        let head = &self.0.head;
        let place = match name {
            "content" => head.content,
            "output" => head.output,
            "arguments" => head.arguments,
            "type" => head.type_name,
            "role" => head.role,
            "id" => head.id,
            "call_id" => head.call_id,
            "name" => head.name,
            "status" if !head.has_status => return None,
            "status" if head.has_null_status => return Some("null"),
            "provider_data" if !head.has_provider_data => return None,
            _ => return field(&self.0.raw, name),
        };
        place.token(&self.0.raw)
    }

    /// The JSON of what a provider wants to remember with the item, which is not for other models.
    pub fn provider_data(&self) -> Option<&str> {
        self.field("provider_data")
    }

    /// The text of a message: its content, or its text parts one after another.
    ///
    /// `None` for items without text, also for a message whose content is a refusal.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        let content = self.0.head.content.token(&self.0.raw)?;
        match self.only_text() {
            Some(token) => json::unquote(token),
            None => joined(content, |part| part.text()),
        }
    }

    /// What the model said when it refused to answer.
    pub fn refusal(&self) -> Option<Cow<'_, str>> {
        let content = self.0.head.content.token(&self.0.raw)?;
        // Refusals are rare; most messages are done with after this.
        if self.only_text().is_some() || !content.contains("refusal") {
            return None;
        }
        joined(content, |part| part.refusal.map(RawValue::get))
    }

    /// Whether a search is known to find nothing here.
    pub(crate) fn is_clean_of(&self, search: Search) -> bool {
        self.0.clean.is_of(search)
    }

    /// Notes that a search finds nothing here.
    pub(crate) fn note_clean_of(&self, search: Search) {
        self.0.clean.note(search);
    }

    /// This item, which was just made, as such a summary.
    pub(crate) fn with_summary(mut self, summary: Summary) -> Self {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.summary = Some(Box::new(summary));
        }
        self
    }

    /// What is known of a summary whose records can be copied.
    pub(crate) fn summary(&self) -> Option<&Summary> {
        self.0.summary.as_deref()
    }

    /// Whether both are the same item in memory, not merely equal.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// An address that is this item's as long as it lives.
    pub(crate) fn address(&self) -> usize {
        Arc::as_ptr(&self.0) as usize
    }

    /// Hash of what makes two items the same occurrence; 0 without an identity.
    pub(crate) fn identity(&self) -> u64 {
        self.0.head.identity
    }

    /// For a call: the identity its output will have; 0 otherwise.
    pub(crate) fn output_identity(&self) -> u64 {
        self.0.head.output_identity
    }

    pub(crate) fn has_internal_fields(&self) -> bool {
        self.0.head.has_internal_fields
    }

    #[inline]
    fn name_at(&self, place: Place) -> Option<Cow<'_, str>> {
        self.0.head.name_at(place, &self.0.raw)
    }

    fn text_at(&self, place: Place) -> Option<Cow<'_, str>> {
        place.token(&self.0.raw).and_then(json::unquote)
    }
}

/// Two items are equal where their JSON is the same text.
impl PartialEq for Item {
    fn eq(&self, other: &Self) -> bool {
        self.ptr_eq(other) || self.0.raw == other.0.raw
    }
}

impl Eq for Item {}

impl fmt::Debug for Item {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.raw)
    }
}

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue =
            serde_json::from_str(&self.0.raw).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Item {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw: Box<RawValue> = Box::deserialize(deserializer)?;
        Self::from_json(Box::<str>::from(raw)).map_err(serde::de::Error::custom)
    }
}

/// Why some JSON is not an item.
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
