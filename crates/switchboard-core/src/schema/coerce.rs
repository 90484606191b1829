//! Reading numbers and booleans that a model sent as text.

use serde_json::{Number, Value};

use super::work::resolve;

/// The limit of references and alternatives that are followed for one value.
const MAX_HOPS: usize = 16;

/// Turns a text into the number or boolean that it spells, where the schema asks for one and accepts
/// no text; and a number without a fraction (`5.0`) into an integer, where it asks for one.
pub(super) fn coerce(schema: &Value, value: &mut Value) {
    coerce_with(schema, schema, value);
}

fn coerce_with(root: &Value, schema: &Value, value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                if let Some(part) = field_schema(root, schema, name, MAX_HOPS) {
                    coerce_with(root, part, field);
                }
            }
        }
        Value::Array(items) => {
            let Some(schema) = keyword(root, schema, "items", MAX_HOPS) else {
                return;
            };
            for item in items {
                coerce_with(root, schema, item);
            }
        }
        Value::String(text) => {
            let types = Types::of(root, schema, MAX_HOPS);
            if let Some(coerced) = types.read(text) {
                *value = coerced;
            }
        }
        Value::Number(number) => {
            let types = Types::of(root, schema, MAX_HOPS);
            if types.integer
                && !types.number
                && let Some(integer) = without_fraction(number)
            {
                *value = integer;
            }
        }
        Value::Null | Value::Bool(_) => {}
    }
}

/// The schema of a field of an object.
fn field_schema<'a>(
    root: &'a Value,
    schema: &'a Value,
    name: &str,
    hops: usize,
) -> Option<&'a Value> {
    let properties = keyword(root, schema, "properties", hops);
    let named = properties.and_then(|properties| properties.get(name));
    named.or_else(|| keyword(root, schema, "additionalProperties", hops))
}

/// The value of a keyword, in the schema or in one that applies to the same value.
fn keyword<'a>(root: &'a Value, schema: &'a Value, name: &str, hops: usize) -> Option<&'a Value> {
    let hops = hops.checked_sub(1)?;
    if let Some(found) = schema.get(name) {
        return Some(found);
    }
    applied_in_place(root, schema).find_map(|part| keyword(root, part, name, hops))
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
    fn of(root: &Value, schema: &Value, hops: usize) -> Self {
        let mut types = Self::default();
        types.add(root, schema, hops);
        types
    }

    fn add(&mut self, root: &Value, schema: &Value, hops: usize) {
        let Some(hops) = hops.checked_sub(1) else {
            self.string = true;
            return;
        };
        let named = match schema.get("type") {
            Some(Value::String(one)) => vec![one.as_str()],
            Some(Value::Array(several)) => several.iter().filter_map(Value::as_str).collect(),
            _ => {
                let mut is_open = true;
                for part in applied_in_place(root, schema) {
                    is_open = false;
                    self.add(root, part, hops);
                }
                self.string |= is_open;
                return;
            }
        };
        for name in named {
            match name {
                "integer" => self.integer = true,
                "number" => self.number = true,
                "boolean" => self.boolean = true,
                "string" => self.string = true,
                _ => {}
            }
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
    use schemars::JsonSchema;
    use serde_json::json;

    use super::*;

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Order {
        amount: u32,
        price: f64,
        gift: Option<bool>,
        note: String,
        code: Option<String>,
        lines: Vec<Line>,
    }

    #[derive(JsonSchema)]
    #[allow(dead_code, reason = "only its schema is used")]
    struct Line {
        count: Option<i64>,
    }

    fn coerced(mut value: Value) -> Value {
        coerce(&crate::schema::of::<Order>(), &mut value);
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
