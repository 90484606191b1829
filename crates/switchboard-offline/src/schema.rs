//! Accessors for JSON schemas.

use serde_json::Value;

/// The maximum depth to which a schema is followed.
pub(crate) const MAX_DEPTH: usize = 8;
/// The maximum number of subschemas that are read.
pub(crate) const MAX_SUBSCHEMAS: usize = 500;

/// Returns `true` if the schema has required properties.
pub(crate) fn has_required(schema: &str) -> bool {
    let schema: Value = serde_json::from_str(schema).unwrap_or_default();
    schema["required"]
        .as_array()
        .is_some_and(|names| !names.is_empty())
}

/// Follows `$ref` to the schema that it names.
pub(crate) fn resolve<'a>(root: &'a Value, schema: &'a Value) -> &'a Value {
    let mut schema = schema;
    for _ in 0..MAX_DEPTH {
        // Some generators wrap a reference in an `allOf` of one to add a description.
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

/// Returns `true` if the property `name` is required.
pub(crate) fn requires(schema: &Value, name: &str) -> bool {
    schema["required"]
        .as_array()
        .is_some_and(|names| names.iter().any(|known| known == name))
}

pub(crate) fn is_object(schema: &Value) -> bool {
    type_of(schema) == "object"
}

/// Returns the schema's `type`, the first other than `null` if there are several; empty if unknown.
pub(crate) fn type_of(schema: &Value) -> &str {
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

pub(crate) fn is_nullable(schema: &Value) -> bool {
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

/// Returns the schemas of `anyOf` or `oneOf`, unless there are none.
pub(crate) fn alternatives(schema: &Value) -> Option<&[Value]> {
    all_alternatives(schema)
        .map(Vec::as_slice)
        .filter(|all| !all.is_empty())
}

/// Returns the values that a schema lists as `enum`, or as alternatives that are all constants.
pub(crate) fn choices(schema: &Value) -> Vec<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return values.iter().take(MAX_SUBSCHEMAS).cloned().collect();
    }
    let parts = all_alternatives(schema).into_iter().flatten();
    let constants: Option<Vec<Value>> = parts.map(|part| part.get("const").cloned()).collect();
    constants.unwrap_or_default()
}

/// Returns the number closest to zero from above that the bounds of a schema allow.
pub(crate) fn smallest(schema: &Value) -> f64 {
    let least = schema["minimum"].as_f64();
    let above = schema["exclusiveMinimum"]
        .as_f64()
        .map(|bound| bound.floor() + 1.0);
    let most = schema["maximum"].as_f64().unwrap_or(f64::MAX);
    least.or(above).unwrap_or(0.0).max(0.0).min(most)
}
