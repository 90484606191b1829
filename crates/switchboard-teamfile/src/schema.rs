//! The JSON Schema of team files.

use std::sync::LazyLock;

use schemars::JsonSchema;
use serde_json::Value;

use crate::types::TeamShape;

/// The schema of team files, made once.
pub(crate) static SCHEMA: LazyLock<Value> = LazyLock::new(of::<TeamShape>);

/// The schema of a type, as files are checked against it and editors read it.
pub(crate) fn of<T: JsonSchema>() -> Value {
    let mut schema = schemars::SchemaGenerator::default()
        .into_root_schema_for::<T>()
        .to_value();
    settle(&mut schema);
    schema
}

/// Says of absent values that they are absent and not null, which TOML does not have, and of numbers
/// how large they may be.
fn settle(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.get("default") == Some(&Value::Null) {
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
            // Lines of a comment are not lines of a description.
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = text.replace('\n', " ");
            }
            if let Some(Value::Array(forms)) = map.get_mut("anyOf") {
                forms.retain(|form| form["type"] != "null");
                if let [Value::Object(only)] = forms.as_slice() {
                    let only = only.clone();
                    map.shift_remove("anyOf");
                    for (key, value) in only {
                        map.entry(key).or_insert(value);
                    }
                }
            }
            map.values_mut().for_each(settle);
        }
        Value::Array(items) => items.iter_mut().for_each(settle),
        _ => {}
    }
}
