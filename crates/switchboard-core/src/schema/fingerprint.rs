//! A stable fingerprint of a schema: two schemas that accept the same have the same one, whatever their
//! descriptions and the order of their fields.

use serde_json::{Map, Value};

/// The keywords that describe values and do not restrict them.
const ANNOTATIONS: [&str; 5] = ["title", "description", "examples", "$comment", "$schema"];

/// The keywords whose value is a map from names to schemas.
const SCHEMAS_BY_NAME: [&str; 5] = [
    "properties",
    "patternProperties",
    "dependentSchemas",
    "$defs",
    "definitions",
];

/// The keywords whose value is JSON that is compared as it is.
const LITERALS: [&str; 3] = ["enum", "const", "default"];

/// The fingerprint of a schema, as 16 hexadecimal digits, the same in every process.
pub(crate) fn fingerprint(schema: &str) -> String {
    let mut text = String::new();
    match serde_json::from_str(schema) {
        Ok(schema) => write_schema(&schema, &mut text),
        // A schema that is too deep to be read.
        Err(_) => text.push_str(schema),
    }
    // FNV-1a with 64 bits.
    let hash = text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    format!("{hash:016x}")
}

/// Writes a schema without annotations, with its fields in order.
fn write_schema(schema: &Value, into: &mut String) {
    match schema {
        Value::Object(fields) => write_sorted(fields, into, |name, value, into| {
            if ANNOTATIONS.contains(&name) {
                return;
            }
            into.push_str(name);
            into.push(':');
            match value {
                Value::Object(schemas) if SCHEMAS_BY_NAME.contains(&name) => {
                    write_sorted(schemas, into, |name, schema, into| {
                        into.push_str(&Value::from(name).to_string());
                        write_schema(schema, into);
                    });
                }
                Value::Array(names) if name == "required" => {
                    let mut names: Vec<String> = names.iter().map(Value::to_string).collect();
                    names.sort();
                    into.push_str(&names.join(","));
                }
                value if LITERALS.contains(&name) => into.push_str(&value.to_string()),
                value => write_schema(value, into),
            }
            into.push(';');
        }),
        Value::Array(schemas) => {
            into.push('[');
            for schema in schemas {
                write_schema(schema, into);
                into.push(',');
            }
            into.push(']');
        }
        value => into.push_str(&value.to_string()),
    }
}

fn write_sorted(
    fields: &Map<String, Value>,
    into: &mut String,
    mut write: impl FnMut(&str, &Value, &mut String),
) {
    let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
    sorted.sort_by_key(|(name, _)| *name);
    into.push('{');
    for (name, value) in sorted {
        write(name, value, into);
    }
    into.push('}');
}

#[cfg(test)]
mod tests {
    use super::fingerprint;

    #[test]
    fn the_order_of_fields_and_descriptions_do_not_count_and_restrictions_do() {
        let schema = |text: &str| fingerprint(text);
        let first = schema(
            r#"{"type":"object","title":"A","properties":{"a":{"type":"string","description":"x"},
            "description":{"type":"integer"}},"required":["a","description"]}"#,
        );
        let same = schema(
            r#"{"required":["description","a"],"properties":{"description":{"type":"integer"},
            "a":{"description":"y","type":"string"}},"type":"object"}"#,
        );
        assert_eq!(first, same);
        for other in [
            r#"{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"},"description":{"type":"string"}},
            "required":["a","description"]}"#,
            r#"{"type":"object","properties":{"a":{"type":"string"},"description":{"type":"integer"}},
            "required":["a"]}"#,
            "{}",
        ] {
            assert_ne!(schema(other), first, "{other}");
        }
        assert_ne!(
            schema(r#"{"enum":["a","b"]}"#),
            schema(r#"{"enum":["a","c"]}"#)
        );
        // Stored states have it: it never changes.
        assert_eq!(schema(r#"{"type":"object"}"#), "f4f853e58002ffc5");
    }
}
