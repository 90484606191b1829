//! Reading a JSON schema.

use serde_json::Value;

/// How deep a schema is followed.
pub(super) const DEEPEST: usize = 8;
/// How many parts of a schema are looked at.
pub(super) const MOST_PARTS: usize = 500;

/// Whether a tool with this schema must be told something.
pub(super) fn has_required(schema: &str) -> bool {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    schema["required"]
        .as_array()
        .is_some_and(|names| !names.is_empty())
}

/// The schema that a reference leads to.
pub(super) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..DEEPEST {
        // A single `allOf` is how some writers add words to a reference.
        let only = schema["allOf"].as_array().filter(|all| all.len() == 1);
        let next = match (schema["$ref"].as_str(), only) {
            (Some(path), _) => path.strip_prefix('#').and_then(|path| root.pointer(path)),
            (None, Some(all)) => all.first(),
            (None, None) => None,
        };
        match next {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}

pub(super) fn requires(schema: &Value, name: &str) -> bool {
    schema["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|known| known == name))
}

pub(super) fn is_object(schema: &Value) -> bool {
    type_of(schema) == "object"
}

pub(super) fn type_of(schema: &Value) -> &str {
    match &schema["type"] {
        Value::String(name) => name,
        Value::Array(names) => {
            let mut names = names.iter().filter_map(Value::as_str);
            names.find(|name| *name != "null").unwrap_or("null")
        }
        _ if schema["properties"].is_object() => "object",
        _ => "",
    }
}

pub(super) fn is_nullable(schema: &Value) -> bool {
    let is_null = |part: &Value| part["type"] == "null";
    schema["type"] == "null"
        || schema["type"]
            .as_array()
            .is_some_and(|names| names.iter().any(|name| name == "null"))
        || all_alternatives(schema).is_some_and(|all| all.iter().any(is_null))
}

fn all_alternatives(schema: &Value) -> Option<&Vec<Value>> {
    schema["anyOf"]
        .as_array()
        .or_else(|| schema["oneOf"].as_array())
}

pub(super) fn alternatives(schema: &Value) -> Option<&[Value]> {
    all_alternatives(schema)
        .map(Vec::as_slice)
        .filter(|all| !all.is_empty())
}

/// The values a schema allows, where it lists them.
pub(super) fn choices(schema: &Value) -> Vec<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().take(MOST_PARTS).cloned().collect();
    }
    let parts = all_alternatives(schema).into_iter().flatten();
    let constants: Option<Vec<Value>> = parts.map(|part| part.get("const").cloned()).collect();
    constants.unwrap_or_default()
}

pub(super) fn smallest(schema: &Value) -> f64 {
    let least = schema["minimum"].as_f64();
    let above = schema["exclusiveMinimum"]
        .as_f64()
        .map(|bound| bound.floor() + 1.0);
    let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
    least.or(above).unwrap_or(0.0).max(0.0).min(most)
}
