//! Reading numbers and booleans that a model sent as text.

use serde_json::{Number, Value};

use super::references::resolve;

/// The limit of references and alternatives that are followed for one value.
const MAX_HOPS: usize = 16;

/// The limit of schemas that are looked at for one payload.
const MAX_STEPS: usize = 20_000;

/// Turns a text into the number or boolean that it spells, where the schema asks for one and accepts
/// no text; and a number without a fraction (`5.0`) into an integer, where it asks for one. Returns
/// `true` if anything was changed.
pub(super) fn coerce(schema: &Value, value: &mut Value) -> bool {
    let mut coercion = Coercion {
        root: schema,
        steps: 0,
        is_changed: false,
    };
    coercion.coerce(schema, value);
    coercion.is_changed
}

struct Coercion<'a> {
    root: &'a Value,
    /// The number of schemas looked at so far.
    steps: usize,
    is_changed: bool,
}

impl<'a> Coercion<'a> {
    fn coerce(&mut self, schema: &'a Value, value: &mut Value) {
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    if let Some(part) = self.field_schema(schema, name) {
                        self.coerce(part, field);
                    }
                }
            }
            Value::Array(items) => {
                let Some(schema) = self.keyword(schema, "items", MAX_HOPS) else {
                    return;
                };
                for item in items {
                    self.coerce(schema, item);
                }
            }
            Value::String(text) => {
                let coerced = self.types(schema).read(text);
                self.replace(value, coerced);
            }
            Value::Number(number) => {
                let types = self.types(schema);
                if types.integer && !types.number && number.is_f64() {
                    let coerced = without_fraction(number);
                    self.replace(value, coerced);
                }
            }
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn replace(&mut self, value: &mut Value, coerced: Option<Value>) {
        if let Some(coerced) = coerced {
            *value = coerced;
            self.is_changed = true;
        }
    }

    /// The schema of a field of an object.
    fn field_schema(&mut self, schema: &'a Value, name: &str) -> Option<&'a Value> {
        let properties = self.keyword(schema, "properties", MAX_HOPS);
        let named = properties.and_then(|properties| properties.get(name));
        named.or_else(|| self.keyword(schema, "additionalProperties", MAX_HOPS))
    }

    /// The value of a keyword, in the schema or in one that applies to the same value.
    fn keyword(&mut self, schema: &'a Value, name: &str, hops: usize) -> Option<&'a Value> {
        let hops = hops.checked_sub(1)?;
        if let Some(found) = schema.get(name) {
            return Some(found);
        }
        if !self.may_go_on() {
            return None;
        }
        let parts: Vec<&'a Value> = applied_in_place(self.root, schema).collect();
        parts
            .into_iter()
            .find_map(|part| self.keyword(part, name, hops))
    }

    fn may_go_on(&mut self) -> bool {
        self.steps += 1;
        self.steps <= MAX_STEPS
    }

    /// The types that a schema accepts.
    fn types(&mut self, schema: &'a Value) -> Types {
        let mut types = Types::default();
        self.add_types(&mut types, schema, MAX_HOPS);
        types
    }

    fn add_types(&mut self, types: &mut Types, schema: &'a Value, hops: usize) {
        let hops = hops.checked_sub(1).filter(|_| self.may_go_on());
        let Some(hops) = hops else {
            types.string = true;
            return;
        };
        match schema.get("type") {
            Some(Value::String(name)) => types.add(name),
            Some(Value::Array(names)) => {
                for name in names.iter().filter_map(Value::as_str) {
                    types.add(name);
                }
            }
            _ => {
                let parts: Vec<&'a Value> = applied_in_place(self.root, schema).collect();
                types.string |= parts.is_empty();
                for part in parts {
                    self.add_types(types, part, hops);
                }
            }
        }
    }
}

/// The schemas that a schema applies to the same value.
fn applied_in_place<'a>(root: &'a Value, schema: &'a Value) -> impl Iterator<Item = &'a Value> {
    let reference = schema.get("$ref").and_then(Value::as_str);
    let target = reference.and_then(|reference| resolve(root, reference));
    let lists = ["allOf", "anyOf", "oneOf"]
        .into_iter()
        .filter_map(|list| schema.get(list)?.as_array());
    target.into_iter().chain(lists.flatten())
}

/// The types that a schema accepts, as far as it names them.
#[derive(Default)]
struct Types {
    integer: bool,
    number: bool,
    boolean: bool,
    /// Set also if the schema does not name a type.
    string: bool,
}

impl Types {
    fn add(&mut self, name: &str) {
        match name {
            "integer" => self.integer = true,
            "number" => self.number = true,
            "boolean" => self.boolean = true,
            "string" => self.string = true,
            _ => {}
        }
    }

    /// The value that a text spells exactly.
    fn read(&self, text: &str) -> Option<Value> {
        if self.string {
            return None;
        }
        let is_exact =
            !text.starts_with(char::is_whitespace) && !text.ends_with(char::is_whitespace);
        match serde_json::from_str(text).ok().filter(|_| is_exact)? {
            Value::Bool(spelt) if self.boolean => Some(spelt.into()),
            Value::Number(spelt) if self.number => Some(spelt.into()),
            Value::Number(spelt) if self.integer => without_fraction(&spelt),
            _ => None,
        }
    }
}

/// The integer that a number is, if it has no fraction.
fn without_fraction(number: &Number) -> Option<Value> {
    if number.is_i64() || number.is_u64() {
        return Some(number.clone().into());
    }
    // Beyond this limit not every integer is a float.
    const MAX_EXACT: f64 = 9_007_199_254_740_992.0;
    let float = number.as_f64()?;
    (float.fract() == 0.0 && float.abs() < MAX_EXACT).then(|| Value::from(float as i64))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// As schemars describes a struct with options and a list of structs.
    fn order() -> Value {
        json!({
            "type": "object",
            "properties": {
                "amount": {"type": "integer", "minimum": 0},
                "price": {"type": "number"},
                "gift": {"type": ["boolean", "null"]},
                "note": {"type": "string"},
                "code": {"type": ["string", "null"]},
                "lines": {"type": "array", "items": {"$ref": "#/$defs/Line"}},
            },
            "$defs": {"Line": {"type": "object", "properties": {
                "count": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            }}},
        })
    }

    fn coerced(mut value: Value) -> Value {
        coerce(&order(), &mut value);
        value
    }

    #[test]
    fn numbers_and_booleans_are_read_from_exact_text() {
        let sent = json!({"amount": "5", "price": "1.5e1", "gift": "true", "note": "5",
            "code": "7", "lines": [{"count": "-2"}, {"count": 3.0}], "more": "1"});
        let read = json!({"amount": 5, "price": 15.0, "gift": true, "note": "5",
            "code": "7", "lines": [{"count": -2}, {"count": 3}], "more": "1"});
        assert_eq!(coerced(sent), read);
    }

    #[test]
    fn a_schema_of_many_alternatives_is_left_after_a_while() {
        let mut levels = serde_json::Map::new();
        for level in 0..5 {
            let next = json!({"$ref": format!("#/$defs/l{}", level + 1)});
            levels.insert(format!("l{level}"), json!({"anyOf": vec![next; 10]}));
        }
        levels.insert("l5".to_owned(), json!({"type": "object"}));
        let schema = json!({"$ref": "#/$defs/l0", "$defs": levels});
        let fields = (0..200).map(|field| (format!("f{field}"), json!("1")));
        let mut value = Value::Object(fields.collect());
        let mut coercion = Coercion {
            root: &schema,
            steps: 0,
            is_changed: false,
        };
        coercion.coerce(&schema, &mut value);
        // Each field may still ask once or twice after the limit.
        assert!(coercion.steps < MAX_STEPS + 1_000, "{}", coercion.steps);
    }

    #[test]
    fn anything_else_stays_as_it_is() {
        for sent in [
            json!({"amount": " 5", "gift": "yes", "price": "1,5"}),
            json!({"amount": "5.5", "gift": "True", "price": ""}),
            json!({"amount": true, "gift": 1, "price": "NaN"}),
            json!({"amount": 5.5, "gift": null, "price": "0x10"}),
            json!([1, "2"]),
        ] {
            assert_eq!(coerced(sent.clone()), sent);
        }
    }
}
