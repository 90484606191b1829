//! Copies of an item with fields changed or removed.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Item;
use crate::items::ItemKind;
use crate::items::field_positions::{INTERNAL_FIELDS, ItemFields};
use crate::json;

impl Item {
    /// The item without these top-level fields.
    #[must_use]
    pub fn without_fields(&self, names: &[&str]) -> Self {
        self.edited(|name| names.contains(&name), None)
    }

    /// The item with a field set to a JSON value. `None` if `json` is not JSON.
    pub fn with_json_field(&self, name: &str, json: &str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(json).ok()?;
        Some(self.with_raw_field(name, json))
    }

    /// The item, without its identifier if it is reasoning.
    pub(crate) fn without_reasoning_id(&self) -> Self {
        if self.kind() == ItemKind::Reasoning && self.id().is_some() {
            return self.without_fields(&["id"]);
        }
        self.clone()
    }

    /// The item without the fields that are never shown to a model.
    pub(crate) fn without_internal_fields(&self) -> Self {
        if !self.has_internal_fields() {
            return self.clone();
        }
        self.without_fields(&INTERNAL_FIELDS)
    }

    /// The item without `provider_data`.
    pub(crate) fn without_provider_data(&self) -> Self {
        if self.provider_data().is_none() {
            return self.clone();
        }
        self.without_fields(&["provider_data"])
    }

    /// A generated item as input for the next model call.
    pub(crate) fn to_input(&self) -> Self {
        if self.field("status") != Some("null") {
            return self.without_internal_fields();
        }
        let [description, title, created_by] = INTERNAL_FIELDS;
        self.without_fields(&[description, title, created_by, "status"])
    }

    /// The message with another text; its other parts, such as images, stay.
    pub(crate) fn with_text(&self, text: &str) -> Self {
        let parts = self
            .field("content")
            .map(serde_json::from_str::<Vec<Value>>);
        let Some(Ok(mut parts)) = parts else {
            return self.with_field("content", text);
        };
        let is_text = |part: &Value| {
            let kind = part["type"].as_str();
            matches!(kind, Some("input_text" | "output_text" | "text"))
        };
        let at = parts.iter().position(is_text).unwrap_or_default();
        let kept = parts.iter().any(is_text).then(|| parts[at].clone());
        parts.retain(|part| !is_text(part));
        let mut text_part = kept.unwrap_or_else(|| json!({"type": "input_text"}));
        text_part["text"] = text.into();
        parts.insert(at.min(parts.len()), text_part);
        self.with_raw_field("content", &Value::from(parts).to_string())
    }

    /// The item with `name` set to the string `value`.
    pub(crate) fn with_field(&self, name: &str, value: &str) -> Self {
        let mut quoted = String::with_capacity(value.len() + 2);
        json::quote_into(&mut quoted, value);
        self.with_raw_field(name, &quoted)
    }

    fn with_raw_field(&self, name: &str, value: &str) -> Self {
        self.edited(|key| key == name, Some((name, value)))
    }

    /// The item without the fields for which `is_dropped` is true, and with one more at the end.
    fn edited(&self, is_dropped: impl Fn(&str) -> bool, added: Option<(&str, &str)>) -> Self {
        let fields = json::object_fields(self.as_json()).unwrap_or_default();
        let kept = fields.iter().filter(|(name, _)| !is_dropped(name));
        let kept = kept.map(|(name, value)| (&**name, *value));
        let capacity =
            self.as_json().len() + added.map_or(0, |(name, value)| name.len() + value.len() + 8);
        let mut out = String::with_capacity(capacity);
        for (name, value) in kept.chain(added) {
            out.push(if out.is_empty() { '{' } else { ',' });
            json::quote_into(&mut out, name);
            out.push(':');
            out.push_str(value);
        }
        out.push_str(if out.is_empty() { "{}" } else { "}" });
        let fields = ItemFields::read(&out).unwrap_or(ItemFields::NONE);
        Self::from_parts(out, fields)
    }
}
