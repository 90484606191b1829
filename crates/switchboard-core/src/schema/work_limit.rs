//! Bounding the work of checking JSON against a schema.
//!
//! A validator applies every branch of `anyOf`, `oneOf` and `allOf`, so a small schema of nested
//! references can ask for more steps than a machine can take. The number of steps is counted here
//! before the validator runs: once per pair of a subschema and a value, however often the validator
//! would visit the pair.

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::references::resolve;
use crate::error::excerpt;

/// The limit of subschemas that are applied in one check.
const MAX_STEPS: u64 = 1_000_000;

/// The limit of subschemas inside each other that are applied to one value.
const MAX_DEPTH: usize = 512;

/// Keywords whose list of schemas applies to the same value.
const IN_PLACE_LISTS: [&str; 3] = ["allOf", "anyOf", "oneOf"];

/// Keywords whose schema applies to the same value.
const IN_PLACE: [&str; 4] = ["not", "if", "then", "else"];

/// Fails if checking `value` against `schema` would take too many steps.
pub(super) fn check_work(schema: &Value, value: &Value) -> Result<(), String> {
    Counter::new(schema).count(schema, Some(value)).map(drop)
}

/// Fails if checking any single value against a part of `schema` would take too many steps.
pub(super) fn check_schema_work(schema: &Value) -> Result<(), String> {
    let mut counter = Counter::new(schema);
    let mut parts = vec![schema];
    while let Some(part) = parts.pop() {
        if part.is_object() {
            counter.count(part, None)?;
        }
        match part {
            Value::Object(fields) => parts.extend(fields.values()),
            Value::Array(items) => parts.extend(items),
            _ => {}
        }
    }
    Ok(())
}

/// Counts the steps of a check. Without a value, only those on the value itself are counted.
struct Counter<'a> {
    root: &'a Value,
    /// Counts by the addresses of schema and value; `None` while one is in progress.
    counted: FxHashMap<(usize, usize), Option<u64>>,
    depth: usize,
}

impl<'a> Counter<'a> {
    fn new(root: &'a Value) -> Self {
        Self {
            root,
            counted: FxHashMap::default(),
            depth: 0,
        }
    }

    fn count(&mut self, schema: &'a Value, value: Option<&'a Value>) -> Result<u64, String> {
        let Value::Object(keywords) = schema else {
            return Ok(1);
        };
        let address = |value: &Value| std::ptr::from_ref(value).addr();
        let pair = (address(schema), value.map_or(0, address));
        match self.counted.insert(pair, None) {
            None => {}
            Some(Some(steps)) => {
                self.counted.insert(pair, Some(steps));
                return Ok(steps);
            }
            Some(None) => return Err("it refers to itself without end".to_owned()),
        }
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err(format!("it nests more than {MAX_DEPTH} schemas"));
        }
        let mut steps = 1_u64;
        for (keyword, applied) in keywords {
            steps += self.count_keyword(keyword, applied, value)?;
            // It looks again at everything that was applied to the value itself.
            if keyword.starts_with("unevaluated") {
                steps += match value {
                    Some(_) => self.count(schema, None)?,
                    None => steps,
                };
            }
            if steps > MAX_STEPS {
                return Err(too_many_steps());
            }
        }
        self.depth -= 1;
        self.counted.insert(pair, Some(steps));
        Ok(steps)
    }

    fn count_keyword(
        &mut self,
        keyword: &str,
        applied: &'a Value,
        value: Option<&'a Value>,
    ) -> Result<u64, String> {
        let is_in_place = |keyword: &str| IN_PLACE.contains(&keyword);
        match (keyword, applied, value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference), _) => {
                match resolve(self.root, reference) {
                    Some(target) => self.count(target, value),
                    None => Err(format!(
                        "its reference \"{}\" leads nowhere within it",
                        excerpt(reference)
                    )),
                }
            }
            (keyword, Value::Array(schemas), _) if IN_PLACE_LISTS.contains(&keyword) => {
                self.sum(schemas.iter().map(|schema| (schema, value)))
            }
            (keyword, schema, _) if is_in_place(keyword) => self.count(schema, value),
            ("dependentSchemas" | "dependencies", Value::Object(schemas), _) => {
                self.sum(schemas.values().map(|schema| (schema, value)))
            }
            ("properties", Value::Object(schemas), Some(Value::Object(fields))) => {
                let present = schemas
                    .iter()
                    .filter_map(|(name, schema)| Some((schema, Some(fields.get(name)?))));
                self.sum(present)
            }
            ("patternProperties", Value::Object(schemas), Some(Value::Object(fields))) => {
                let pairs = schemas.values().flat_map(|schema| {
                    let fields = fields.values();
                    fields.map(move |field| (schema, Some(field)))
                });
                self.sum(pairs)
            }
            (
                "additionalProperties" | "unevaluatedProperties",
                schema,
                Some(Value::Object(fields)),
            ) => self.sum(fields.values().map(|field| (schema, Some(field)))),
            ("propertyNames", schema, Some(Value::Object(fields))) => {
                let each = self.count(schema, None)?;
                Ok(each.saturating_mul(fields.len() as u64))
            }
            ("prefixItems" | "items", Value::Array(schemas), Some(Value::Array(items))) => {
                let items = items.iter().map(Some);
                self.sum(schemas.iter().zip(items))
            }
            (
                "items" | "contains" | "additionalItems" | "unevaluatedItems",
                schema,
                Some(Value::Array(items)),
            ) => self.sum(items.iter().map(|item| (schema, Some(item)))),
            _ => Ok(0),
        }
    }

    fn sum(
        &mut self,
        pairs: impl Iterator<Item = (&'a Value, Option<&'a Value>)>,
    ) -> Result<u64, String> {
        let mut total = 0_u64;
        for (schema, value) in pairs {
            total = total.saturating_add(self.count(schema, value)?);
            if total > MAX_STEPS {
                return Err(too_many_steps());
            }
        }
        Ok(total)
    }
}

fn too_many_steps() -> String {
    format!(
        "checking it takes more than {MAX_STEPS} steps; use fewer alternatives inside each other \
         (anyOf, oneOf, allOf)"
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Levels that each choose among ten references to the next.
    fn ladder(levels: usize, next: impl Fn(Value) -> Value) -> Value {
        let mut definitions = serde_json::Map::new();
        for level in 0..levels {
            let reference = next(json!({"$ref": format!("#/$defs/level{}", level + 1)}));
            let choices = vec![reference; 10];
            definitions.insert(format!("level{level}"), json!({"anyOf": choices}));
        }
        definitions.insert(format!("level{levels}"), json!({"type": "integer"}));
        json!({"$ref": "#/$defs/level0", "$defs": definitions})
    }

    #[test]
    fn nested_alternatives_on_one_value_are_refused_with_the_schema() {
        assert!(check_schema_work(&ladder(3, |next| next)).is_ok());
        let error = check_schema_work(&ladder(12, |next| next)).unwrap_err();
        assert!(error.contains("1000000 steps"), "{error}");
    }

    #[test]
    fn alternatives_at_each_level_of_a_value_are_refused_with_the_value() {
        let schema = ladder(12, |next| json!({"properties": {"next": next}}));
        assert_eq!(check_schema_work(&schema), Ok(()));
        let mut value = json!(1);
        assert_eq!(check_work(&schema, &value), Ok(()));
        for _ in 0..12 {
            value = json!({"next": value});
        }
        assert!(check_work(&schema, &value).is_err());
    }

    #[test]
    fn references_are_found_or_refused() {
        let encoded = ladder(12, |next| {
            let reference = next["$ref"].as_str().unwrap().replace('$', "%24");
            json!({"$ref": reference})
        });
        assert!(check_schema_work(&encoded).unwrap_err().contains("steps"));
        let elsewhere = json!({"$ref": "urn:elsewhere"});
        assert!(
            check_schema_work(&elsewhere)
                .unwrap_err()
                .contains("leads nowhere")
        );
    }

    #[test]
    fn closed_recursive_types_cost_what_their_values_are_long() {
        let schema = json!({
            "$ref": "#/$defs/list",
            "$defs": {"list": {"type": "object", "unevaluatedProperties": false,
                "properties": {"next": {"$ref": "#/$defs/list"}}}}
        });
        let mut list = json!({});
        for _ in 0..60 {
            list = json!({"next": list});
        }
        assert_eq!(check_work(&schema, &list), Ok(()));
    }

    #[test]
    fn a_recursive_type_is_checked_as_deep_as_its_value() {
        let schema = json!({
            "$ref": "#/$defs/tree",
            "$defs": {"tree": {"type": "object", "properties": {
                "children": {"type": "array", "items": {"$ref": "#/$defs/tree"}}}}}
        });
        let mut tree = json!({"children": []});
        for _ in 0..60 {
            tree = json!({"children": [tree]});
        }
        assert_eq!(check_schema_work(&schema), Ok(()));
        assert_eq!(check_work(&schema, &tree), Ok(()));
        let endless = json!({"anyOf": [{"$ref": "#"}]});
        assert!(check_schema_work(&endless).is_err());
        assert!(check_work(&endless, &json!({})).is_err());
    }
}
