//! An item without some of its fields, or with others.

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::Item;
use crate::items::head::{INTERNAL_FIELDS, fields};
use crate::json;

impl Item {
    /// The item without these fields at its top.
    #[must_use]
    pub fn without_fields(&self, names: &[&str]) -> Self {
        self.without(names)
    }

    /// The item with a field set to a JSON value; `None` where `json` is not JSON.
    pub fn with_json_field(&self, name: &str, json: &str) -> Option<Self> {
        serde_json::from_str::<&RawValue>(json).ok()?;
        Some(self.with_raw_field(name, json))
    }

    /// The item without fields that are not for a model.
    pub(crate) fn without_internal_fields(&self) -> Self {
        if !self.0.head.has_internal_fields {
            return self.clone();
        }
        self.without(&INTERNAL_FIELDS)
    }

    /// The item as it goes into a summary of the conversation.
    pub(crate) fn without_provider_data(&self) -> Self {
        if !self.0.head.has_provider_data {
            return self.clone();
        }
        self.without(&["provider_data"])
    }

    /// A generated item as input for the next model call.
    pub(crate) fn to_input(&self) -> Self {
        let head = &self.0.head;
        if !head.has_internal_fields && !head.has_null_status {
            return self.clone();
        }
        let status: &[&str] = if head.has_null_status {
            &["status"]
        } else {
            &[]
        };
        let dropped: Vec<&str> = INTERNAL_FIELDS.iter().chain(status).copied().collect();
        self.without(&dropped)
    }

    /// A message with other words; its other parts, such as images, stay.
    pub(crate) fn with_text(&self, words: &str) -> Self {
        let parts = self
            .field("content")
            .map(serde_json::from_str::<Vec<Value>>);
        let Some(Ok(mut parts)) = parts else {
            return self.with_field("content", words);
        };
        let is_text = |part: &Value| {
            let kind = part["type"].as_str();
            matches!(kind, Some("input_text" | "output_text" | "text"))
        };
        let at = parts.iter().position(is_text).unwrap_or_default();
        let kept = parts.iter().any(is_text).then(|| parts[at].clone());
        parts.retain(|part| !is_text(part));
        let mut said = kept.unwrap_or_else(|| json!({"type": "input_text"}));
        said["text"] = words.into();
        parts.insert(at.min(parts.len()), said);
        self.with_raw_field("content", &Value::from(parts).to_string())
    }

    /// The item with `name` set to the string `value`.
    pub(crate) fn with_field(&self, name: &str, value: &str) -> Self {
        let mut quoted = String::with_capacity(value.len() + 2);
        json::quote_into(&mut quoted, value);
        self.with_raw_field(name, &quoted)
    }

    fn with_raw_field(&self, name: &str, value: &str) -> Self {
        let mut raw = String::with_capacity(self.0.raw.len() + value.len() + 8);
        let kept = fields(&self.0.raw).unwrap_or_default();
        raw.push('{');
        for (key, token) in kept.iter().filter(|(key, _)| key != name) {
            json::quote_into(&mut raw, key);
            raw.push(':');
            raw.push_str(token);
            raw.push(',');
        }
        json::quote_into(&mut raw, name);
        raw.push(':');
        raw.push_str(value);
        raw.push('}');
        Self::trusted(raw)
    }

    fn without(&self, dropped: &[&str]) -> Self {
        let Some(kept) = fields(&self.0.raw) else {
            return self.clone();
        };
        let mut raw = String::with_capacity(self.0.raw.len());
        for (key, token) in kept
            .iter()
            .filter(|(key, _)| !dropped.contains(&key.as_str()))
        {
            raw.push(if raw.is_empty() { '{' } else { ',' });
            json::quote_into(&mut raw, key);
            raw.push(':');
            raw.push_str(token);
        }
        if raw.is_empty() {
            raw.push('{');
        }
        raw.push('}');
        Self::trusted(raw)
    }
}
