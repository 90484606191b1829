//! Building an item field by field.

use serde::Serialize;

use super::field_positions::{ItemFields, Span};
use super::item::Item;
use crate::json::{Quoted, quote_into};

/// Builds an [`Item`] field by field.
///
/// The fields' positions are recorded as they are written, so the item is not parsed again.
///
/// ```
/// use switchboard_core::Item;
/// use serde_json::json;
///
/// let item = Item::builder()
///     .string("type", "reasoning")
///     .value("summary", &json!([]))
///     .build();
/// assert_eq!(item.as_json(), r#"{"type":"reasoning","summary":[]}"#);
/// ```
#[derive(Debug)]
#[must_use]
pub struct ItemBuilder {
    json: String,
    fields: ItemFields,
}

impl ItemBuilder {
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            json: String::with_capacity(capacity),
            fields: ItemFields::NONE,
        }
    }

    /// Reserves room for this many more bytes of JSON.
    pub fn reserve(mut self, additional: usize) -> Self {
        self.json.reserve(additional);
        self
    }

    /// Adds a field that is a string.
    pub fn string(mut self, name: &str, text: &str) -> Self {
        self.add_string(name, |quoted| quoted.push(text));
        self
    }

    /// Adds a field of any value. One that has no JSON form (a map whose keys are not text) is null.
    pub fn value(mut self, name: &str, value: &impl Serialize) -> Self {
        let value = serde_json::to_string(value);
        self.add(name, |json| {
            json.push_str(value.as_deref().unwrap_or("null"));
        });
        self
    }

    /// Adds the content of a model's message that consists of one text.
    pub fn output_text(mut self, text: &str) -> Self {
        let mut span = Span::default();
        self.add("content", |json| {
            json.push_str(r#"[{"type":"output_text","text":"#);
            let start = json.len();
            quote_into(json, text);
            span = Span::from(start..json.len());
            json.push_str(r#","annotations":[]}]"#);
        });
        if !text.is_empty() {
            self.fields.only_text = span;
        }
        self
    }

    /// Builds the item.
    pub fn build(mut self) -> Item {
        self.json
            .push_str(if self.json.is_empty() { "{}" } else { "}" });
        self.fields.derive(&self.json);
        Item::from_parts(self.json, self.fields)
    }

    /// Adds a field that is a string, whose text `write` writes.
    pub(super) fn add_string(&mut self, name: &str, write: impl FnOnce(&mut Quoted<'_>)) {
        let span = self.add(name, |json| Quoted::write(json, write));
        if name == "content" {
            self.fields.only_text = span;
        }
    }

    fn add(&mut self, name: &str, write: impl FnOnce(&mut String)) -> Span {
        self.json.push(if self.json.is_empty() { '{' } else { ',' });
        quote_into(&mut self.json, name);
        self.json.push(':');
        let start = self.json.len();
        write(&mut self.json);
        let span = Span::from(start..self.json.len());
        self.fields.set_named(name, span, &self.json[start..]);
        span
    }
}
