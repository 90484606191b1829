//! Compares runs in stages: as runs, with the calls and entries of inner runs in groups of their own.

use serde_json::Value;

use super::data::{data, data_with_schemas, pair};
use super::difference::{Check, Difference};
use super::spans::Ending;
use super::{log, overlay, sections, spans};

/// The parts of `expect` in which the reference did otherwise.
const STREAMED: &str = "streamed_differs";
const RESTORED: &str = "restored_differs";

/// Compares the stages of a case with those that were run. `case` has `expect` and `may_differ`.
pub(super) fn stages(case: &Value, has_events: bool, got: &Value) -> Check {
    let (expected, got) = (list(&case["expect"]["stages"]), list(&got["stages"]));
    for index in 0..expected.len().max(got.len()) {
        pair(expected.get(index), got.get(index), |_, got| {
            either_recording(case, index, has_events, got)
        })
        .map_err(|difference| difference.in_element(index).in_field("stages"))?;
    }
    Ok(())
}

/// Compares a stage with every recording of it. If none matches, returns the difference from the plain
/// one.
fn either_recording(case: &Value, index: usize, has_events: bool, got: &Value) -> Check {
    let excluded = excluded_fields(case, index);
    if excluded.contains(&"*") {
        return Ok(());
    }
    let compare = |differs: &[&str]| {
        let mut expected = recording(&case["expect"], index, differs);
        if let Some(fields) = expected.as_object_mut() {
            fields.retain(|name, _| !excluded.contains(&name.as_str()));
            if !has_events {
                fields.shift_remove("stream");
            }
        }
        stage(&expected, got)
    };
    compare(&[]).or_else(|difference| {
        let others: [&[&str]; 3] = [&[STREAMED], &[RESTORED], &[STREAMED, RESTORED]];
        let matches = others.iter().any(|differs| compare(differs).is_ok());
        if matches { Ok(()) } else { Err(difference) }
    })
}

/// A stage as it was recorded, with what these parts of `expect` have instead.
fn recording(expected: &Value, index: usize, differs: &[&str]) -> Value {
    let mut stage = expected["stages"][index].clone();
    for entry in differs.iter().flat_map(|name| list(&expected[name])) {
        if entry["stage"] == index {
            stage = overlay(&stage, entry);
        }
    }
    if let Some(fields) = stage.as_object_mut() {
        fields.shift_remove("stage");
    }
    stage
}

/// The fields that need not match in a stage: those that `may_differ` names for it, or for one before
/// it, which it follows from.
fn excluded_fields(case: &Value, stage: usize) -> Vec<&str> {
    let entries = list(&case["may_differ"]).iter();
    let entries = entries.filter(|entry| (0..=stage).any(|before| entry["stage"] == before));
    let fields = entries.flat_map(|entry| list(&entry["fields"]));
    fields.filter_map(Value::as_str).collect()
}

fn stage(expected: &Value, got: &Value) -> Check {
    let ending = Ending::of(expected);
    sections(expected, got, |name, expected, got| match name {
        "new_items" => data(&without_approvals(expected), &without_approvals(got)),
        "model_calls" => by_group(expected, &without_notes(got), data_with_schemas),
        "log" => by_group(expected, got, log::log),
        "refused_decisions" => data(&types(expected), &types(got)),
        "spans" => spans::spans(&spans::without_missing(expected, got), got, ending),
        _ => data(expected, got),
    })?;
    let log = list(&got["log"]);
    let at_index = log.iter().enumerate();
    check_nesting(log, at_index).map_err(|difference| difference.in_field("log"))?;
    let calls = list(&got["model_calls"]).iter();
    let at_length = calls.filter_map(|call| {
        let length = call["log_length"].as_u64()?;
        Some((usize::try_from(length).ok()?, call))
    });
    check_nesting(log, at_length).map_err(|difference| difference.in_field("model_calls"))
}

/// The types of refused decisions; the words are our own.
fn types(refused: &Value) -> Value {
    let refused = list(refused).iter();
    refused.map(|refused| refused["type"].clone()).collect()
}

/// Items without those that say what waits, for which there are `interruptions`.
fn without_approvals(items: &Value) -> Value {
    let items = list(items).iter();
    let items = items.filter(|item| item["type"] != "tool_approval_item");
    items.cloned().collect()
}

/// Calls without the runner's note of when they were made.
fn without_notes(calls: &Value) -> Value {
    let calls = list(calls).iter().cloned().map(|mut call| {
        if let Some(fields) = call.as_object_mut() {
            fields.shift_remove("log_length");
        }
        call
    });
    calls.collect()
}

/// Compares two lists group by group: the entries outside of agent tools, then those inside of each
/// call.
fn by_group(expected: &Value, got: &Value, compare: impl Fn(&Value, &Value) -> Check) -> Check {
    let mut groups: Vec<&Value> = vec![&Value::Null];
    for entry in list(expected).iter().chain(list(got)) {
        if !groups.contains(&&entry["in"]) {
            groups.push(&entry["in"]);
        }
    }
    for group in groups {
        let of_group = |entries: &Value| -> Value {
            let entries = list(entries).iter();
            entries
                .filter(|entry| entry["in"] == *group)
                .cloned()
                .collect()
        };
        compare(&of_group(expected), &of_group(got)).map_err(|difference| match group {
            Value::Null => difference,
            group => difference.in_field(&format!("(in {})", group.as_str().unwrap_or_default())),
        })?;
    }
    Ok(())
}

/// Checks that what is inside of a call comes after its `tool_start` and before its `tool_end`, where
/// these are in the log. The entries have positions in the log: that of the entry that follows them.
fn check_nesting<'a>(log: &[Value], entries: impl Iterator<Item = (usize, &'a Value)>) -> Check {
    let hook = |hook: &str, call_id: &Value| {
        let is_hook = |entry: &Value| entry["run_hook"] == hook && entry["call_id"] == *call_id;
        log.iter().position(is_hook)
    };
    for (number, (position, entry)) in entries.enumerate() {
        let call_id = &entry["in"];
        let is_early = hook("tool_start", call_id).is_some_and(|start| position <= start);
        let is_late = hook("tool_end", call_id).is_some_and(|end| position > end);
        if !call_id.is_null() && (is_early || is_late) {
            let expected = format!("an entry between the start and the end of the call {call_id}");
            let difference = Difference::described(expected, entry.to_string());
            return Err(difference.in_element(number));
        }
    }
    Ok(())
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hook(name: &str, call_id: &str) -> Value {
        json!({"run_hook": name, "agent": "A", "tool": "ask", "call_id": call_id})
    }

    /// A stage as the runner serializes it, in which `ask` is called twice at once.
    fn got() -> Value {
        let inside = |call: &str| json!({"agent_hook": "start", "of": "B", "in": call});
        let model_call = |call: &str, log_length: usize| {
            json!({"system": "s", "input": [call], "tools": [], "in": call, "of": "B",
                   "log_length": log_length})
        };
        json!({"stages": [{
            "final_output": "Done.",
            "new_items": [{"type": "tool_call_item"}],
            "input_list": [1],
            "model_calls": [model_call("a1", 2), model_call("a2", 4)],
            "log": [
                hook("tool_start", "a1"), hook("tool_start", "a2"), inside("a1"), inside("a2"),
                hook("tool_end", "a1"), hook("tool_end", "a2"),
            ],
            "spans": [],
            "stream": ["agent_updated:A"],
        }]})
    }

    /// The recording of the same stage, with the groups in another order.
    fn case() -> Value {
        let mut stage = got()["stages"][0].clone();
        for entries in ["model_calls", "log"] {
            for entry in stage[entries].as_array_mut().unwrap() {
                let fields = entry.as_object_mut().unwrap();
                fields.shift_remove("log_length");
                fields.shift_remove("call_id");
            }
        }
        stage["model_calls"].as_array_mut().unwrap().reverse();
        stage["log"].as_array_mut().unwrap().swap(2, 3);
        json!({"expect": {"stages": [stage]}})
    }

    fn with(mut value: Value, pointer: &str, new: Value) -> Value {
        *value.pointer_mut(pointer).unwrap() = new;
        value
    }

    fn path_of(case: &Value, got: &Value) -> Option<String> {
        stages(case, true, got).err().map(|it| it.path)
    }

    #[test]
    fn calls_and_entries_of_inner_runs_are_compared_within_their_call() {
        assert_eq!(stages(&case(), true, &got()), Ok(()));
        for (pointer, path) in [
            (
                "/stages/0/model_calls/1/input/0",
                "stages[0].model_calls(in a2)[0].input[0]",
            ),
            ("/stages/0/log/2/of", "stages[0].log(in a1)[0].of"),
            ("/stages/0/log/0/tool", "stages[0].log[1].tool"),
            ("/stages/0/final_output", "stages[0].final_output"),
        ] {
            let changed = with(got(), pointer, json!("changed"));
            assert_eq!(path_of(&case(), &changed).as_deref(), Some(path));
        }
        let elsewhere = with(got(), "/stages/0/log/2/in", json!("a2"));
        assert_eq!(
            path_of(&case(), &elsewhere).as_deref(),
            Some("stages[0].log(in a2)[1]")
        );
    }

    #[test]
    fn what_is_inside_of_a_call_lies_between_its_start_and_its_end() {
        let mut late = got();
        late["stages"][0]["log"].as_array_mut().unwrap().swap(2, 4);
        assert_eq!(path_of(&case(), &late).as_deref(), Some("stages[0].log[4]"));

        let mut early = got();
        early["stages"][0]["log"].as_array_mut().unwrap().swap(1, 3);
        assert_eq!(
            path_of(&case(), &early).as_deref(),
            Some("stages[0].log[1]")
        );

        for log_length in [0, 6] {
            let pointer = "/stages/0/model_calls/0/log_length";
            let outside = with(got(), pointer, json!(log_length));
            assert_eq!(
                path_of(&case(), &outside).as_deref(),
                Some("stages[0].model_calls[0]")
            );
        }
    }

    #[test]
    fn a_missing_or_additional_stage_is_a_difference() {
        let none = json!({"stages": []});
        let mut two = got();
        two["stages"].as_array_mut().unwrap().push(json!({}));

        assert_eq!(path_of(&case(), &none).as_deref(), Some("stages[0]"));
        assert_eq!(path_of(&case(), &two).as_deref(), Some("stages[1]"));
    }

    #[test]
    fn a_stage_may_match_any_recording() {
        let got = with(got(), "/stages/0/input_list/0", json!(2));
        let got = with(got, "/stages/0/stream/0", json!("other"));
        let mut case = case();
        assert!(stages(&case, true, &got).is_err());

        case["expect"][STREAMED] = json!([{"stage": 0, "stream": ["other"]}]);
        assert!(stages(&case, true, &got).is_err());
        case["expect"][RESTORED] = json!([{"stage": 0, "input_list": [2]}]);
        assert_eq!(stages(&case, true, &got), Ok(()));
        case["expect"][RESTORED] = json!([{"stage": 1, "input_list": [2]}]);
        assert!(stages(&case, true, &got).is_err());
    }

    #[test]
    fn events_are_compared_in_streamed_runs_only() {
        let got = with(got(), "/stages/0/stream", json!([]));

        assert_eq!(stages(&case(), false, &got), Ok(()));
        assert!(stages(&case(), true, &got).is_err());
    }

    #[test]
    fn fields_that_may_differ_are_not_compared_from_their_stage_on() {
        let two_stages = |last: &str| {
            let mut run = got();
            let mut second = run["stages"][0].clone();
            second["final_output"] = json!(last);
            run["stages"].as_array_mut().unwrap().push(second);
            run
        };
        let got = two_stages("Other.");
        for (stage, fields, passes) in [
            (0, json!(["final_output"]), true),
            (1, json!(["final_output"]), true),
            (1, json!(["*"]), true),
            (1, json!(["log"]), false),
            (2, json!(["final_output"]), false),
        ] {
            let mut case = json!({"expect": two_stages("Done.")});
            case["may_differ"] = json!([{"stage": stage, "fields": fields, "why": "it may"}]);
            for stage in case["expect"]["stages"].as_array_mut().unwrap() {
                stage.as_object_mut().unwrap().shift_remove("model_calls");
            }
            assert_eq!(stages(&case, true, &got).is_ok(), passes, "{case}");
        }
    }

    #[test]
    fn approval_items_do_not_count() {
        let mut case = case();
        let items = &mut case["expect"]["stages"][0]["new_items"];
        let items = items.as_array_mut().unwrap();
        items.push(json!({"type": "tool_approval_item", "agent": "A"}));

        assert_eq!(stages(&case, true, &got()), Ok(()));
    }
}
