//! Stored states from untrusted places: changed in any way they are read or refused, never a panic, and
//! nothing that was not approved runs.

use std::sync::LazyLock;

use proptest::prelude::*;
use serde_json::Value;

use crate::stored_state;

static STATES: LazyLock<Vec<String>> = LazyLock::new(stored_state::states);

/// A change of a JSON value: the value at a random place is removed, doubled, or replaced.
#[derive(Debug, Clone)]
enum Change {
    Remove,
    Double,
    Replace(Value),
}

fn changes() -> impl Strategy<Value = (prop::sample::Index, Change)> {
    let values = prop_oneof![
        Just(Value::Null),
        Just(Value::Bool(true)),
        Just(Value::Bool(false)),
        Just(Value::from(0)),
        Just(Value::from(1)),
        Just(Value::from(7)),
        Just(Value::from(u64::MAX)),
        Just(Value::from("refund")),
        Just(Value::from("model")),
        Just(Value::from(Vec::<Value>::new())),
        Just(serde_json::json!({})),
    ];
    let change = prop_oneof![
        Just(Change::Remove),
        Just(Change::Double),
        values.prop_map(Change::Replace),
    ];
    (any::<prop::sample::Index>(), change)
}

/// The places in a value.
fn places(value: &Value, path: &str, into: &mut Vec<String>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let place = format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"));
                into.push(place.clone());
                places(field, &place, into);
            }
        }
        Value::Array(elements) => {
            for (at, element) in elements.iter().enumerate() {
                let place = format!("{path}/{at}");
                into.push(place.clone());
                places(element, &place, into);
            }
        }
        _ => {}
    }
}

fn apply(state: &mut Value, at: prop::sample::Index, change: Change) {
    let mut all = Vec::new();
    places(state, "", &mut all);
    let place = at.get(&all).clone();
    let (parent, last) = place.rsplit_once('/').unwrap();
    match (state.pointer_mut(parent).unwrap(), change) {
        (Value::Object(fields), Change::Remove) => {
            fields.shift_remove(last);
        }
        (Value::Array(elements), Change::Remove) => {
            elements.remove(last.parse().unwrap());
        }
        (Value::Array(elements), Change::Double) => {
            let at: usize = last.parse().unwrap();
            elements.push(elements[at].clone());
        }
        (_, Change::Remove | Change::Double) => {}
        (_, Change::Replace(value)) => *state.pointer_mut(&place).unwrap() = value,
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..Default::default() })]

    #[test]
    fn a_state_that_was_changed_is_read_or_refused(
        state in any::<prop::sample::Index>(),
        edits in prop::collection::vec(changes(), 1..4),
    ) {
        let mut state: Value = serde_json::from_str(state.get(&STATES).as_str()).unwrap();
        for (at, change) in edits {
            apply(&mut state, at, change);
        }
        stored_state::check(&state.to_string());
    }

    #[test]
    fn a_state_whose_bytes_were_changed_is_read_or_refused(
        state in any::<prop::sample::Index>(),
        edits in prop::collection::vec((any::<prop::sample::Index>(), 0..4_u8, any::<u8>()), 1..6),
    ) {
        let mut bytes = state.get(&STATES).clone().into_bytes();
        for (at, change, byte) in edits {
            let at = at.index(bytes.len());
            match change {
                0 => bytes[at] = byte,
                1 => bytes.truncate(at + 1),
                2 => bytes.insert(at, byte),
                _ => {
                    bytes.remove(at);
                }
            }
            bytes.resize(bytes.len().max(1), b'{');
        }
        stored_state::check(&String::from_utf8_lossy(&bytes));
    }
}

#[test]
fn every_state_of_a_run_passes_the_check_of_states() {
    assert!(STATES.len() > 6, "{}", STATES.len());
    for state in &*STATES {
        stored_state::check(state);
    }
}

#[test]
fn a_resumed_call_whose_arguments_are_not_accepted_any_more_ends() {
    let states = stored_state::states();
    let invalid = states.iter().filter_map(|state| {
        let state = state.replacen(r#""arguments":"{\"input\":\"x\"}""#, r#""arguments":1"#, 1);
        (state.contains("inner_runs") && state.contains(r#""arguments":1"#)).then_some(state)
    });
    let invalid: Vec<_> = invalid.collect();
    assert!(!invalid.is_empty());
    for state in invalid {
        stored_state::check(&state);
    }
}
