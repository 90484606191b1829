//! The JSON Schema of team files.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde_json::Value;

use crate::types::TeamSpec;

/// The schema of team files.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(generate::<TeamSpec>);

/// Generates the schema of a type, for validation and for editors.
pub(crate) fn generate<T: JsonSchema>() -> Value {
    let mut schema = schemars::SchemaGenerator::default()
        .into_root_schema_for::<T>()
        .to_value();
    simplify(&mut schema);
    schema
}

/// Removes null, which TOML does not have, and empty texts as defaults, and replaces the number formats of Rust by bounds.
fn simplify(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            let is_empty = |default: &Value| default.is_null() || default.as_str() == Some("");
            if map.get("default").is_some_and(is_empty) {
                map.shift_remove("default");
            }
            if let Some(Value::Array(types)) = map.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    map.insert("type".to_owned(), only);
                }
            }
            if map.get("format").is_some_and(|format| format == "uint32") {
                map.entry("maximum").or_insert_with(|| u32::MAX.into());
            }
            map.shift_remove("format");
            // Line breaks of a doc comment mean nothing.
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            if let Some(Value::Array(variants)) = map.get_mut("anyOf") {
                variants.retain(|variant| variant["type"] != "null");
                if let [Value::Object(only)] = variants.as_slice() {
                    let only = only.clone();
                    map.shift_remove("anyOf");
                    for (key, value) in only {
                        map.entry(key).or_insert(value);
                    }
                }
            }
            map.values_mut().for_each(simplify);
        }
        Value::Array(items) => items.iter_mut().for_each(simplify),
        _ => {}
    }
}
