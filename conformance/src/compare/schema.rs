//! Compares JSON schemas in a canonical form.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::data::data;
use super::difference::Check;

/// Compares the canonical forms of two schemas. Paths are paths in that form.
pub(super) fn schema(expected: &Value, got: &Value) -> Check {
    data(&canonical(expected), &canonical(got))
}

type Keywords = Map<String, Value>;

/// Keywords that are ignored. Definitions are inlined where they are referenced.
const IGNORED: [&str; 11] = [
    "title",
    "description",
    "$schema",
    "format",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "$defs",
    "definitions",
];

/// Keywords whose value is a schema, or a list of them, for the same instance.
const IN_PLACE: [&str; 7] = ["anyOf", "oneOf", "allOf", "not", "if", "then", "else"];

/// Keywords whose value is a schema, or a list of them, for a part of the instance.
const FOR_PARTS: [&str; 7] = [
    "items",
    "prefixItems",
    "contains",
    "additionalProperties",
    "propertyNames",
    "unevaluatedItems",
    "unevaluatedProperties",
];

/// Keywords that stay beside the `anyOf` of a nullable type.
const ANNOTATIONS: [&str; 5] = ["default", "examples", "deprecated", "readOnly", "writeOnly"];

/// Returns the canonical form of a schema. Equivalent schemas have the same one.
fn canonical(schema: &Value) -> Value {
    let mut writer = Canonicalizer {
        root: schema,
        depth: 0,
        entered: vec![("#".to_owned(), 0)],
    };
    writer.schema(schema)
}

/// Canonicalizes the schemas inside one root.
struct Canonicalizer<'a> {
    root: &'a Value,
    /// The depth of the current schema inside the described instance.
    depth: usize,
    /// The references being resolved, each with the depth at which it was entered.
    entered: Vec<(String, usize)>,
}

impl Canonicalizer<'_> {
    fn schema(&mut self, schema: &Value) -> Value {
        let Value::Object(keywords) = schema else {
            return schema.clone();
        };
        if let Some(target) = keywords.get("$ref").and_then(Value::as_str) {
            return self.reference(target, keywords);
        }
        let keywords = keywords
            .iter()
            .filter(|(name, _)| !IGNORED.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), self.keyword(name, value)))
            .collect();
        Value::Object(rewrite(keywords))
    }

    /// Resolves a reference and adds the keywords beside it. A recursive reference becomes the number
    /// of levels that it goes up, which does not depend on the names of definitions.
    fn reference(&mut self, target: &str, keywords: &Keywords) -> Value {
        let entered = self.entered.iter().find(|(name, _)| name == target);
        if let Some((_, depth)) = entered {
            return json!({ "$ref": format!("{} levels up", self.depth - depth) });
        }
        let definition = target
            .strip_prefix('#')
            .and_then(|pointer| self.root.pointer(pointer));
        let Some(Value::Object(definition)) = definition else {
            return definition
                .cloned()
                .unwrap_or_else(|| json!({ "$ref": target }));
        };
        let mut merged = definition.clone();
        let beside = keywords.iter().filter(|(name, _)| *name != "$ref");
        merged.extend(beside.map(|(name, value)| (name.clone(), value.clone())));
        self.entered.push((target.to_owned(), self.depth));
        let resolved = self.schema(&Value::Object(merged));
        self.entered.pop();
        resolved
    }

    fn keyword(&mut self, name: &str, value: &Value) -> Value {
        match name {
            "required" => sorted_set(value),
            "properties" | "patternProperties" => self.nested(|inner| inner.by_name(value)),
            "dependentSchemas" => self.by_name(value),
            _ if IN_PLACE.contains(&name) => self.one_or_many(value),
            _ if FOR_PARTS.contains(&name) => self.nested(|inner| inner.one_or_many(value)),
            _ => value.clone(),
        }
    }

    fn nested(&mut self, canonicalize: impl FnOnce(&mut Self) -> Value) -> Value {
        self.depth += 1;
        let result = canonicalize(self);
        self.depth -= 1;
        result
    }

    fn one_or_many(&mut self, value: &Value) -> Value {
        match value {
            Value::Array(schemas) => schemas.iter().map(|schema| self.schema(schema)).collect(),
            schema => self.schema(schema),
        }
    }

    /// Canonicalizes the values of an object whose keys are property names, not keywords.
    fn by_name(&mut self, value: &Value) -> Value {
        let Value::Object(schemas) = value else {
            return value.clone();
        };
        schemas
            .iter()
            .map(|(name, schema)| (name.clone(), self.schema(schema)))
            .collect()
    }
}

/// Rewrites the keywords of one schema whose inner schemas are already canonical.
fn rewrite(mut keywords: Keywords) -> Keywords {
    constant_as_enum(&mut keywords);
    for name in ["anyOf", "oneOf"] {
        constants_as_enum(&mut keywords, name);
    }
    let mut keywords = nullable_as_any_of(keywords);
    drop_type_of_enum(&mut keywords);
    keywords
}

/// The names of `required`, sorted and without duplicates.
fn sorted_set(value: &Value) -> Value {
    let Value::Array(names) = value else {
        return value.clone();
    };
    let texts: Option<BTreeSet<&str>> = names.iter().map(Value::as_str).collect();
    texts.map_or_else(|| value.clone(), |texts| texts.into_iter().collect())
}

/// Rewrites `const: x` as `enum: [x]`.
fn constant_as_enum(keywords: &mut Keywords) {
    if keywords.contains_key("enum") {
        return;
    }
    if let Some(value) = keywords.shift_remove("const") {
        keywords.insert("enum".to_owned(), json!([value]));
    }
}

/// Merges the constants among the alternatives into one enum, moves the null alternative to the end,
/// and replaces a single enum alternative by the enum.
fn constants_as_enum(keywords: &mut Keywords, name: &str) {
    let Some(Value::Array(alternatives)) = keywords.shift_remove(name) else {
        return;
    };
    let (nulls, others): (Vec<_>, Vec<_>) = alternatives.into_iter().partition(is_null_type);
    let mut merged = merge_constants(others);
    merged.extend(nulls);
    match merged.as_slice() {
        [only] if !keywords.contains_key("enum") && constants_of(only).is_some() => {
            keywords.insert("enum".to_owned(), only["enum"].clone());
        }
        _ => {
            keywords.insert(name.to_owned(), Value::Array(merged));
        }
    }
}

/// Merges the alternatives that are constants into one enum, at the position of the first of them.
fn merge_constants(alternatives: Vec<Value>) -> Vec<Value> {
    let mut constants = Vec::new();
    let mut first = None;
    let mut others = Vec::new();
    for alternative in alternatives {
        match constants_of(&alternative) {
            Some(values) => {
                constants.extend(values.iter().cloned());
                first.get_or_insert(others.len());
            }
            None => others.push(alternative),
        }
    }
    if let Some(first) = first {
        others.insert(first, json!({ "enum": constants }));
    }
    others
}

/// The values of a canonical schema that is an enum and nothing else.
fn constants_of(schema: &Value) -> Option<&Vec<Value>> {
    let keywords = schema.as_object()?;
    let values = keywords.get("enum")?.as_array()?;
    (keywords.len() == 1).then_some(values)
}

fn is_null_type(schema: &Value) -> bool {
    *schema == json!({"type": "null"})
}

/// Rewrites `type: [T, "null"]` as `anyOf: [{type: T, ...}, {type: "null"}]`.
fn nullable_as_any_of(mut keywords: Keywords) -> Keywords {
    let Some(type_name) = nullable_type(&keywords) else {
        return keywords;
    };
    keywords.insert("type".to_owned(), type_name);
    if let Some(Value::Array(values)) = keywords.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    let (mut outside, mut inside): (Keywords, Keywords) = keywords
        .into_iter()
        .partition(|(name, _)| ANNOTATIONS.contains(&name.as_str()));
    drop_type_of_enum(&mut inside);
    outside.insert("anyOf".to_owned(), json!([inside, {"type": "null"}]));
    outside
}

/// The `T` of `type: [T, "null"]`, unless there is already an `anyOf`.
fn nullable_type(keywords: &Keywords) -> Option<Value> {
    if keywords.contains_key("anyOf") {
        return None;
    }
    match keywords.get("type")?.as_array()?.as_slice() {
        [one, null] | [null, one] if null == "null" => Some(one.clone()),
        _ => None,
    }
}

/// Removes a type beside an enum whose values are all of that type.
fn drop_type_of_enum(keywords: &mut Keywords) {
    let (Some(Value::String(type_name)), Some(Value::Array(values))) =
        (keywords.get("type"), keywords.get("enum"))
    else {
        return;
    };
    if values.iter().all(|value| is_of_type(value, type_name)) {
        keywords.shift_remove("type");
    }
}

fn is_of_type(value: &Value, type_name: &str) -> bool {
    match type_name {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.is_i64() || value.is_u64(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(left: Value, right: Value) {
        assert_eq!(schema(&left, &right), Ok(()));
        assert_eq!(schema(&right, &left), Ok(()));
    }

    fn path_of(expected: Value, got: Value) -> Option<String> {
        schema(&expected, &got)
            .err()
            .map(|difference| difference.path)
    }

    #[test]
    fn annotations_and_bounds_on_numbers_are_ignored() {
        same(
            json!({"type": "object", "properties": {"n": {"type": "integer"}}}),
            json!({"$schema": "s", "title": "T", "description": "d", "type": "object",
                   "properties": {"n": {"type": "integer", "format": "int64", "minimum": 0,
                                        "maximum": 9, "exclusiveMinimum": -1,
                                        "exclusiveMaximum": 10, "multipleOf": 1}}}),
        );
    }

    #[test]
    fn a_property_called_title_is_compared() {
        let expected = json!({"properties": {"title": {"type": "string", "title": "Title"}}});

        same(
            expected.clone(),
            json!({"properties": {"title": {"type": "string"}}}),
        );
        assert_eq!(
            path_of(expected, json!({"properties": {}})).as_deref(),
            Some("properties.title")
        );
    }

    #[test]
    fn other_bounds_are_compared() {
        assert_eq!(
            path_of(json!({"minLength": 1}), json!({})).as_deref(),
            Some("minLength")
        );
    }

    #[test]
    fn required_is_a_set() {
        same(
            json!({"required": ["a", "b"]}),
            json!({"required": ["b", "a", "b"]}),
        );
        assert!(path_of(json!({"required": ["a", "b"]}), json!({"required": ["a"]})).is_some());
    }

    #[test]
    fn a_nullable_type_is_any_of_the_type_and_null() {
        let any_of = || json!({"anyOf": [{"type": "string"}, {"type": "null"}], "default": "x"});

        same(
            any_of(),
            json!({"type": ["string", "null"], "default": "x"}),
        );
        same(
            any_of(),
            json!({"type": ["null", "string"], "default": "x"}),
        );
        assert!(path_of(any_of(), json!({"type": "string", "default": "x"})).is_some());
    }

    #[test]
    fn a_nullable_object_keeps_its_keywords_in_the_alternative() {
        same(
            json!({"anyOf": [{"type": "object", "required": ["a"]}, {"type": "null"}]}),
            json!({"type": ["object", "null"], "required": ["a"]}),
        );
    }

    #[test]
    fn a_nullable_enum_may_list_null() {
        same(
            json!({"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]}),
            json!({"type": ["string", "null"], "enum": ["a", "b", null]}),
        );
    }

    #[test]
    fn an_enum_of_one_value_is_a_constant() {
        same(
            json!({"enum": ["a"], "type": "string"}),
            json!({"const": "a"}),
        );
        assert!(path_of(json!({"enum": ["a"]}), json!({"const": "b"})).is_some());
    }

    #[test]
    fn an_enum_may_be_written_as_constants() {
        let written_out = |keyword: &str| {
            json!({keyword: [{"type": "string", "const": "a", "description": "first"},
                             {"type": "string", "enum": ["b", "c"]}]})
        };

        same(
            json!({"enum": ["a", "b", "c"], "type": "string"}),
            written_out("oneOf"),
        );
        same(json!({"enum": ["a", "b", "c"]}), written_out("anyOf"));
        same(
            json!({"enum": ["a", "b"]}),
            json!({"type": "string", "oneOf": [{"const": "a"}, {"const": "b"}]}),
        );
        assert!(path_of(json!({"enum": ["a", "b"]}), written_out("oneOf")).is_some());
    }

    #[test]
    fn constants_beside_null_are_a_nullable_enum() {
        same(
            json!({"anyOf": [{"enum": ["a", "b"]}, {"type": "null"}]}),
            json!({"anyOf": [{"const": "a"}, {"type": "null"}, {"const": "b"}]}),
        );
    }

    #[test]
    fn a_type_that_does_not_fit_its_enum_is_compared() {
        assert!(
            path_of(
                json!({"enum": [1, 2]}),
                json!({"enum": [1, 2], "type": "string"})
            )
            .is_some()
        );
    }

    #[test]
    fn a_reference_equals_its_definition() {
        let line = || json!({"type": "object", "properties": {"sku": {"type": "string"}}});

        same(
            json!({"type": "array", "items": {"$ref": "#/$defs/Line"}, "$defs": {"Line": line()}}),
            json!({"type": "array", "items": line()}),
        );
        same(
            json!({"$ref": "#/definitions/Line", "definitions": {"Line": line()}}),
            line(),
        );
        assert_eq!(
            path_of(
                json!({"items": {"$ref": "#/$defs/Line"}, "$defs": {"Line": line()}}),
                json!({"items": {"type": "object", "properties": {"sku": {"type": "integer"}}}}),
            )
            .as_deref(),
            Some("items.properties.sku.type")
        );
    }

    #[test]
    fn keywords_beside_a_reference_are_merged_into_it() {
        same(
            json!({"properties": {"a": {"$ref": "#/$defs/A", "description": "d", "default": 1}},
                   "$defs": {"A": {"type": "integer"}}}),
            json!({"properties": {"a": {"type": "integer", "default": 1}}}),
        );
    }

    #[test]
    fn a_reference_without_a_definition_is_kept() {
        same(json!({"$ref": "#/$defs/A"}), json!({"$ref": "#/$defs/A"}));
        assert!(path_of(json!({"$ref": "#/$defs/A"}), json!({})).is_some());
    }

    #[test]
    fn recursive_schemas_match_whatever_their_names() {
        let named = |name: &str, leaf: &str| {
            let here = format!("#/$defs/{name}");
            json!({"$ref": here, "$defs": {name: {
                "properties": {"next": {"anyOf": [{"$ref": here}, {"type": "null"}]},
                               "value": {"type": leaf}}}}})
        };
        let rooted = json!({
            "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]},
                           "value": {"type": "string"}}});

        same(named("Node", "string"), named("Knot", "string"));
        same(named("Node", "string"), rooted.clone());
        assert_eq!(
            path_of(named("Node", "integer"), rooted).as_deref(),
            Some("properties.value.type")
        );
        same(json!({"$ref": "#"}), json!({"$ref": "#"}));
    }
}
