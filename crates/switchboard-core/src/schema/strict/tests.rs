//! Tests of the strict conversion.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::strict;

/// Asserts the strict form of a schema, the order of keys included.
#[track_caller]
fn assert_strict(schema: Value, expected: Value) {
    let converted = strict(schema).map(|value| value.to_string());
    assert_eq!(converted, Ok(expected.to_string()));
}

/// Asserts that a schema is rejected at a path, for a reason that contains `reason`.
#[track_caller]
fn assert_rejected(schema: Value, path: &str, reason: &str) {
    let error = strict(schema).unwrap_err();
    assert_eq!(error.path(), path);
    assert!(error.reason().contains(reason), "{error}");
}

/// Asserts that a hostile schema is rejected without long work.
#[track_caller]
fn assert_rejected_quickly(schema: Value, reason: &str) {
    let start = Instant::now();
    let error = strict(schema).unwrap_err();
    assert!(error.reason().contains(reason), "{error}");
    let elapsed = start.elapsed();
    assert!(elapsed < Duration::from_secs(10), "{elapsed:?}");
}

#[test]
fn an_empty_schema_becomes_an_object_without_properties() {
    let expected =
        json!({"additionalProperties": false, "type": "object", "properties": {}, "required": []});
    assert_strict(json!({}), expected);
}

#[test]
fn every_object_is_closed_and_requires_all_its_properties() {
    assert_strict(
        json!({
            "properties": {"a": {"type": ["object", "null"]}, "b": {"items": {"properties": {}}}},
            "required": ["b"],
        }),
        json!({
            "properties": {
                "a": {"type": ["object", "null"], "additionalProperties": false},
                "b": {"items": {
                    "properties": {},
                    "type": "object",
                    "additionalProperties": false,
                    "required": [],
                }},
            },
            "required": ["a", "b"],
            "type": "object",
            "additionalProperties": false,
        }),
    );
}

#[test]
fn one_of_joins_any_of_and_a_null_default_is_removed() {
    assert_strict(
        json!({"items": {"oneOf": [{"type": "null"}], "anyOf": [{"const": 1}], "default": null}}),
        json!({"items": {"anyOf": [{"const": 1}, {"type": "null"}]}}),
    );
}

#[test]
fn a_lone_ref_stays_and_one_with_a_description_is_inlined() {
    assert_strict(
        json!({
            "properties": {"a": {"$ref": "#/$defs/A"}, "b": {"$ref": "#/$defs/A", "title": "b"}},
            "$defs": {"A": {"title": "A", "type": "object"}},
        }),
        json!({
            "properties": {
                "a": {"$ref": "#/$defs/A"},
                "b": {"title": "b", "type": "object", "additionalProperties": false},
            },
            "$defs": {"A": {"title": "A", "type": "object", "additionalProperties": false}},
            "type": "object",
            "additionalProperties": false,
            "required": ["a", "b"],
        }),
    );
}

#[test]
fn a_ref_is_decoded_as_a_uri_and_then_as_a_pointer() {
    assert_strict(
        json!({
            "items": {"$ref": "#/$defs/%C3%A9~1%7E01%zz", "title": "t"},
            "$defs": {"é/~1%zz": {"type": "string"}},
        }),
        json!({
            "items": {"title": "t", "type": "string"},
            "$defs": {"é/~1%zz": {"type": "string"}},
        }),
    );
}

#[test]
fn subschemas_shared_by_an_inlined_ref_are_strict_in_both_places() {
    assert_strict(
        json!({
            "items": {"$ref": "#/not", "title": "t"},
            "not": {"items": {"type": "object"}},
        }),
        json!({
            "items": {"title": "t", "items": {"type": "object", "additionalProperties": false}},
            "not": {"items": {"type": "object", "additionalProperties": false}},
        }),
    );
}

#[test]
fn the_only_entry_of_all_of_is_merged_and_annotations_around_it_win() {
    assert_strict(
        json!({
            "items": {"allOf": [{"$ref": "#/$defs/B", "title": "entry"}], "minimum": 1.0},
            "$defs": {
                "A": {"type": "integer", "minimum": 1, "description": "A"},
                "B": {"$ref": "#/$defs/A"},
            },
        }),
        json!({
            "items": {"type": "integer", "minimum": 1, "description": "A", "title": "entry"},
            "$defs": {
                "A": {"type": "integer", "minimum": 1, "description": "A"},
                "B": {"$ref": "#/$defs/A"},
            },
        }),
    );
}

#[test]
fn an_all_of_that_disagrees_with_the_schema_around_it_is_rejected() {
    let numbers = json!({"items": {"allOf": [{"minimum": 1}], "minimum": 2, "title": "t"}});
    assert_rejected(numbers, "/items", "`minimum`");
    let closed = json!({"additionalProperties": false, "allOf": [{"properties": {"a": {}}}]});
    assert_rejected(closed, "", "`properties`");
}

#[test]
fn an_open_object_is_rejected_with_its_path() {
    let open = json!({"properties": {"a/b": {"additionalProperties": {}}}});
    assert_rejected(open, "/properties/a~1b", "`additionalProperties`");
    let error = strict(json!({"anyOf": [{"type": "object", "additionalProperties": true}]}));
    let message = error.map_err(|error| error.to_string()).unwrap_err();
    assert!(
        message.starts_with("the JSON schema has no strict form: at `#/anyOf/0`: "),
        "{message}"
    );
}

#[test]
fn a_root_that_is_not_one_object_is_rejected() {
    assert_rejected(json!({"oneOf": [{"type": "object"}]}), "", "union");
    assert_rejected(json!({"type": ["object", "null"]}), "", "`type`");
    assert_rejected(json!(true), "", "JSON object");
    assert_strict(
        json!({"type": ["object"]}),
        json!({"type": "object", "additionalProperties": false}),
    );
}

#[test]
fn a_schema_that_is_no_object_is_rejected_except_for_items() {
    assert_rejected(json!({"anyOf": [{}, true]}), "/anyOf/1", "JSON object");
    assert_rejected(json!({"allOf": [true]}), "/allOf/0", "JSON object");
    assert_strict(json!({"items": true}), json!({"items": true}));
}

#[test]
fn a_ref_that_cannot_be_inlined_is_rejected() {
    let with_title = |reference: Value| json!({"items": {"$ref": reference, "title": "t"}});
    assert_rejected(with_title(json!("#/$defs/A")), "/items", "`$defs`");
    assert_rejected(with_title(json!("other.json")), "/items", "`other.json`");
    assert_rejected(with_title(json!("#/%ff")), "/items", "`#/%ff`");
    assert_rejected(with_title(json!(1)), "/items", "string");
    assert_strict(with_title(json!("")), with_title(json!("")));
    assert_rejected(
        json!({"items": {"$ref": "#/a", "type": "string"}}),
        "/items",
        "`type`",
    );
}

#[test]
fn a_ref_does_not_cross_into_a_schema_with_its_own_id() {
    let into = json!({"items": {"$ref": "#/not", "title": "t"}, "not": {"$id": "n"}});
    assert_rejected(into, "/items", "`$id`");
    let within =
        json!({"items": {"$id": "i", "allOf": [{"$ref": "#/$defs/A"}]}, "$defs": {"A": {}}});
    assert_rejected(within, "/items/allOf/0", "`$id`");
}

#[test]
fn a_ref_to_itself_is_dropped_and_a_circle_is_rejected() {
    assert_strict(
        json!({"items": {"$ref": "#/items", "title": "t"}}),
        json!({"items": {"title": "t"}}),
    );
    let endless = json!({"items": {"items": {"$ref": "#/items", "title": "t"}}});
    let error = strict(endless).unwrap_err();
    assert!(error.reason().contains("without end"), "{error}");
    let chain = json!({"allOf": [{"$ref": "#/not"}], "not": {"$ref": "#/not"}});
    assert_rejected(chain, "/allOf/0", "circle");
    let hidden = json!({
        "items": {"$ref": "#/not/if", "title": "t"},
        "not": {"if": {"items": {"$ref": "#/not", "title": "t"}}},
    });
    assert_rejected(hidden, "", "contain itself");
}

#[test]
fn a_hundred_levels_are_accepted_and_more_are_rejected() {
    let nested = |levels: usize| {
        let list = (2..levels).fold(json!([]), |inner, _| Value::Array(vec![inner]));
        Value::Object([("const".to_owned(), list)].into_iter().collect())
    };
    assert_strict(nested(100), nested(100));
    let error = strict(nested(101)).unwrap_err();
    assert_eq!(error.path(), format!("/const{}", "/0".repeat(99)));
    assert!(strict(nested(1_000_000)).is_err());
}

#[test]
fn a_hundred_thousand_subschemas_are_accepted_and_more_are_rejected() {
    let wide = |count: usize| json!({"allOf": vec![json!({}); count]});
    assert_strict(wide(99_999), wide(99_999));
    assert_rejected(wide(100_000), "/allOf/99999", "too large");
}

#[test]
fn a_schema_that_doubles_with_every_ref_is_rejected_quickly() {
    let link = |level: usize| json!({"$ref": format!("#/definitions/{level}"), "title": "t"});
    let level = |level: usize| json!({"properties": {"l": link(level + 1), "r": link(level + 1)}});
    let mut definitions: serde_json::Map<_, _> =
        (0..40).map(|at| (at.to_string(), level(at))).collect();
    definitions.insert("40".to_owned(), json!({}));
    assert_rejected_quickly(json!({"definitions": definitions}), "too large");
}

#[test]
fn a_large_schema_that_many_refs_share_is_rejected_quickly() {
    let fan_out = |target: Value| {
        let links = vec![json!({"$ref": "#/not", "title": "t"}); 5_000];
        json!({"allOf": links, "not": target})
    };
    let long = "x".repeat(1_000_000);
    let keys = (0..10_000).map(|key| (key.to_string(), json!(1)));
    assert_rejected_quickly(fan_out(json!({"enum": vec![1; 100_000]})), "too large");
    assert_rejected_quickly(fan_out(json!({"const": long})), "too large");
    assert_rejected_quickly(fan_out(json!({"properties": {long: {}}})), "too large");
    assert_rejected_quickly(fan_out(Value::Object(keys.collect())), "too large");
}
