//! The published schema.

use std::path::Path;
use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::{Value, json};
use switchboard_teamfile::TeamFile;

#[test]
fn the_published_schema_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/team.schema.json");
    let generated = format!("{:#}\n", TeamFile::schema());
    let published = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        published, generated,
        "docs/team.schema.json must be what `switchboard schema` prints"
    );
}

#[test]
fn every_field_has_a_description() {
    let mut open = vec![TeamFile::schema()];
    let mut fields = 0;
    while let Some(schema) = open.pop() {
        match schema {
            Value::Object(map) => {
                if let Some(Value::Object(properties)) = map.get("properties") {
                    for (name, property) in properties {
                        let is_variant =
                            map.get("required") == Some(&json!([name])) && properties.len() == 1;
                        let described = property.get("description").or(map.get("description"));
                        assert!(
                            described.is_some() || is_variant,
                            "{name} has no description"
                        );
                        fields += 1;
                    }
                }
                open.extend(map.values());
            }
            Value::Array(items) => open.extend(items),
            _ => {}
        }
    }
    assert!(fields > 60, "{fields}");
}

/// A complete JSON Schema validator.
static VALIDATOR: LazyLock<jsonschema::Validator> =
    LazyLock::new(|| jsonschema::validator_for(TeamFile::schema()).unwrap());

/// A valid file, to be changed at random.
fn sample() -> Value {
    json!({
        "start": "A",
        "settings": { "temperature": 0.5, "max_tokens": 5 },
        "context": { "x": 1 },
        "agents": {
            "A": {
                "instructions": "Go.",
                "knowledge": [{ "title": "t", "text": "x" }],
                "tools": ["t", "u"],
                "after_tools": { "stop_at": ["t"] },
                "handoffs": ["B", { "to": "B", "tool_name": "b", "filters": ["redact_pii", { "keep_last": 3 },
                    { "keep_first_and_last": { "first": 1, "last": 2 } }], "when": "x == 1",
                    "rules": [{ "when": "x == 2", "refuse": "No." }], "budget": { "turns": 2, "cost": 0.5 } }],
                "budget": { "tokens": 500, "seconds": 1.5 },
            },
            "B": { "description": "B.", "after_tools": "stop_on_first_tool", "instructions": "x" },
        },
        "tools": { "t": { "description": "d", "http": { "url": "http://localhost/", "method": "POST",
            "headers": { "a": "b", "c": { "env": "X" } } }, "timeout_seconds": 1.5,
            "parameters": { "properties": { "p": { "type": "string" } } } },
            "u": { "description": "d", "command": { "run": ["date"], "env": ["X"] } } },
        "guardrails": { "g": { "deny": ["x"], "max_length": 5, "then": "redact" } },
        "models": { "m": { "name": "n", "api": "chat" } },
        "commands": { "allow": ["date"] },
        "run": { "max_turns": 3, "filters": ["nest_history", { "summarize": { "model": "m", "keep_last": 1 } },
            { "redact": { "patterns": { "a": "b" } } }, { "redact_pii": { "only": ["card", "email"], "without": ["email"],
                "placeholders": { "card": "[C]" } } }], "session_limit": 5,
            "policy": "reference", "retries": { "per_run": 3, "per_edge": 1 }, "several_handoffs": "choose",
            "loops": { "handoffs": 2, "per_edge": "unlimited", "ping_pong": 3, "ping_pong_window": 6, "at_limit": { "redirect": "B" } },
            "announced_handoffs": { "phrases": ["x"] }, "approval_guardrails": "both",
            "resume_checks": "when_reached", "budget": { "turns": 3 }, "at_budget": { "finish": "x" },
            "estimate_input": true },
        "prices": { "offline": { "input": 1, "cached": 0.5, "output": 2 } },
    })
}

/// Collects the JSON pointers of all values.
fn pointers(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_owned());
    let below: Vec<(String, &Value)> = match value {
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| (name.clone(), value))
            .collect(),
        Value::Array(items) => {
            let items = items.iter().enumerate();
            items.map(|(at, value)| (at.to_string(), value)).collect()
        }
        _ => Vec::new(),
    };
    for (name, value) in below {
        pointers(value, &format!("{at}/{name}"), found);
    }
}

fn other_values() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(json!(null)),
        Just(json!(true)),
        Just(json!(0)),
        Just(json!(-1)),
        Just(json!(1.5)),
        Just(json!(3.0)),
        Just(json!(5_000_000_000_u64)),
        Just(json!("stop")),
        Just(json!("x")),
        Just(json!([])),
        Just(json!(["x", 1])),
        Just(json!({})),
        Just(json!({ "file": "f" })),
        Just(json!({ "to": "B" })),
        Just(json!({ "nothing": 1 })),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn our_validation_agrees_with_a_json_schema_validator(at: prop::sample::Index, with in other_values(), name in "[a-z]{1,3}") {
        let mut file = sample();
        let mut all = Vec::new();
        pointers(&file, "", &mut all);
        let pointer: &String = at.get(&all);
        let value = file.pointer_mut(pointer).unwrap();
        match value {
            // Sometimes an unknown field.
            Value::Object(fields) if name.len() == 1 => { fields.insert(name, with); }
            value => *value = with,
        }
        let is_valid = VALIDATOR.is_valid(&file);
        let text = format!("{file:#}");
        let read = TeamFile::parse(&text, "team.json");
        // The codes of schema violations.
        let codes = ["unknown-field", "missing-field", "wrong-type", "unknown-choice", "out-of-range"];
        let found = match &read {
            Ok(_) => false,
            Err(problems) => {
                prop_assert!(problems.iter().all(|problem| problem.code != "form"), "{}", problems);
                problems.iter().any(|problem| codes.contains(&problem.code))
            }
        };
        prop_assert_eq!(found, !is_valid, "{}\n{:?}", text, read);
    }
}
