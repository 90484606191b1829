//! A place in the schema.

use serde_json::{Map, Value};

use crate::document::Entry;

/// A part of the schema, and what its value is called.
#[derive(Clone, Copy)]
pub(super) struct Place<'a> {
    pub(super) schema: &'a Value,
    /// The whole schema, which has what is referred to.
    pub(super) whole: &'a Value,
    /// The name of the type: `agent`, `handoff`.
    pub(super) called: &'a str,
    /// The field that holds the value.
    pub(super) field: Option<&'a Entry>,
}

impl<'a> Place<'a> {
    pub(super) fn top(schema: &'a Value) -> Self {
        Self {
            schema,
            whole: schema,
            called: schema["title"].as_str().unwrap_or("file"),
            field: None,
        }
    }

    /// The schema behind a reference.
    pub(super) fn resolved(mut self) -> Self {
        while let Some(reference) = self.schema.get("$ref").and_then(Value::as_str) {
            let Some(name) = reference.strip_prefix("#/$defs/") else {
                break;
            };
            // Names are percent-encoded in references.
            let Some((name, schema)) = self.whole["$defs"]
                .as_object()
                .and_then(|all| all.iter().find(|(key, _)| encoded(key) == name))
            else {
                break;
            };
            self.called = name;
            self.schema = schema;
        }
        self
    }

    pub(super) fn to(self, schema: &'a Value, field: Option<&'a Entry>) -> Self {
        Self {
            schema,
            field: field.or(self.field),
            ..self
        }
        .resolved()
    }

    /// What the schema says of this field, if it knows it.
    pub(super) fn field_of(&self, entry: &'a Entry) -> Option<Self> {
        let schema = self.properties()?.get(&entry.name)?;
        Some(self.to(schema, Some(entry)))
    }

    pub(super) fn properties(&self) -> Option<&'a Map<String, Value>> {
        self.schema.get("properties").and_then(Value::as_object)
    }

    /// The forms a value may have; itself where there is but one.
    pub(super) fn forms(self) -> Vec<Self> {
        for key in ["anyOf", "oneOf"] {
            if let Some(forms) = self.schema.get(key).and_then(Value::as_array) {
                let forms = forms.iter();
                return forms.flat_map(|form| self.to(form, None).forms()).collect();
            }
        }
        vec![self]
    }

    /// The JSON types a value may have; empty is any.
    pub(super) fn types(&self) -> Vec<&'a str> {
        match self.schema.get("type") {
            Some(Value::String(one)) => vec![one],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => match (self.schema.get("const"), self.schema.get("enum")) {
                (Some(Value::String(_)), _) | (_, Some(Value::Array(_))) => vec!["string"],
                _ => Vec::new(),
            },
        }
    }
}

fn encoded(name: &str) -> String {
    name.replace(' ', "%20")
}
