//! A position in a JSON Schema.

use serde_json::{Map, Value};

use crate::document::Entry;

/// A subschema, with the name of the type it describes.
#[derive(Clone, Copy)]
pub(super) struct SchemaNode<'a> {
    pub(super) schema: &'a Value,
    /// The whole schema, whose `$defs` are referred to.
    pub(super) root: &'a Value,
    /// The name of the type in messages: `agent`, `handoff`.
    pub(super) type_name: &'a str,
    /// The innermost field that holds the value.
    pub(super) field: Option<&'a Entry>,
}

impl<'a> SchemaNode<'a> {
    pub(super) fn root(schema: &'a Value) -> Self {
        Self {
            schema,
            root: schema,
            type_name: schema["title"].as_str().unwrap_or("file"),
            field: None,
        }
    }

    /// Follows `$ref`s.
    pub(super) fn dereferenced(mut self) -> Self {
        while let Some(reference) = self.get("$ref").and_then(Value::as_str) {
            // Names are percent-encoded in references.
            let definition = reference.strip_prefix("#/$defs/").and_then(|name| {
                let mut definitions = self.root["$defs"].as_object()?.iter();
                definitions.find(|(key, _)| key.replace(' ', "%20") == name)
            });
            let Some((name, schema)) = definition else {
                break;
            };
            self.type_name = name;
            self.schema = schema;
        }
        self
    }

    pub(super) fn child(self, schema: &'a Value, field: Option<&'a Entry>) -> Self {
        Self {
            schema,
            field: field.or(self.field),
            ..self
        }
        .dereferenced()
    }

    pub(super) fn get(&self, keyword: &str) -> Option<&'a Value> {
        self.schema.get(keyword)
    }

    pub(super) fn properties(&self) -> Option<&'a Map<String, Value>> {
        self.get("properties").and_then(Value::as_object)
    }

    /// The alternatives of `anyOf` or `oneOf`; the schema itself if it has none.
    pub(super) fn variants(self) -> Vec<Self> {
        let variants = self.get("anyOf").or_else(|| self.get("oneOf"));
        match variants.and_then(Value::as_array) {
            Some(variants) => variants
                .iter()
                .flat_map(|variant| self.child(variant, None).variants())
                .collect(),
            None => vec![self],
        }
    }

    /// The JSON types that are allowed; empty if all are.
    pub(super) fn types(&self) -> Vec<&'a str> {
        match self.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ if self.choices().is_empty() => Vec::new(),
            _ => vec!["string"],
        }
    }

    /// The texts that `const` or `enum` allows; empty if the schema has neither.
    pub(super) fn choices(&self) -> Vec<&'a str> {
        let constant = self.get("const").and_then(Value::as_str);
        let choices = self.get("enum").and_then(Value::as_array);
        let choices = choices.into_iter().flatten().filter_map(Value::as_str);
        constant.into_iter().chain(choices).collect()
    }
}
