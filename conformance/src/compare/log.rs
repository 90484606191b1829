//! Compares logs: in order, except for the tools of one response, which run concurrently.

use serde_json::Value;

use super::data::{data, fields};
use super::difference::{Check, Difference};
use super::unordered::{compare_lists, run_at};

/// Compares two logs. Consecutive entries of tools are compared as a set, and the stages of each tool
/// must be in order.
pub(super) fn log(expected: &Value, got: &Value) -> Check {
    let (Value::Array(expected), Value::Array(got)) = (expected, got) else {
        return data(expected, got);
    };
    compare_lists(expected, got, is_tool_entry, entry)?;
    let mut index = 0;
    while index < got.len() {
        let run = run_at(got, index, is_tool_entry);
        check_tool_order(run, index)?;
        index += run.len().max(1);
    }
    Ok(())
}

/// Compares two entries. The call ids of hooks are the runner's own.
fn entry(expected: &Value, got: &Value) -> Check {
    if !expected.is_object() || !got.is_object() {
        return data(expected, got);
    }
    let is_hook = expected["run_hook"].is_string();
    fields(expected, got, |name, expected, got| match name {
        "call_id" if is_hook => Ok(()),
        _ => data(expected, got),
    })
}

/// A stage of a tool call.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    ApprovalCondition,
    InputGuardrail,
    RunHookStart,
    AgentHookStart,
    Call,
    InputBuilder,
    OutputExtractor,
    Failure,
    OutputGuardrail,
    RunHookEnd,
    AgentHookEnd,
}

/// Pairs of stages of which the first comes before the second.
const ORDER: [(Stage, Stage); 16] = [
    (Stage::ApprovalCondition, Stage::RunHookStart),
    (Stage::InputGuardrail, Stage::RunHookStart),
    (Stage::RunHookStart, Stage::InputBuilder),
    (Stage::RunHookStart, Stage::OutputExtractor),
    (Stage::RunHookStart, Stage::Failure),
    (Stage::RunHookStart, Stage::OutputGuardrail),
    (Stage::InputBuilder, Stage::RunHookEnd),
    (Stage::OutputExtractor, Stage::RunHookEnd),
    (Stage::Failure, Stage::RunHookEnd),
    (Stage::OutputGuardrail, Stage::RunHookEnd),
    (Stage::RunHookStart, Stage::Call),
    (Stage::AgentHookStart, Stage::Call),
    (Stage::Call, Stage::RunHookEnd),
    (Stage::Call, Stage::AgentHookEnd),
    (Stage::RunHookStart, Stage::RunHookEnd),
    (Stage::AgentHookStart, Stage::AgentHookEnd),
];

fn is_tool_entry(entry: &Value) -> bool {
    tool_stage(entry).is_some()
}

/// The tool of an entry, and the stage it logs.
fn tool_stage(entry: &Value) -> Option<(&str, Stage)> {
    let others = [
        ("needs_approval", "needs_approval", Stage::ApprovalCondition),
        ("tool_input_guardrail", "of", Stage::InputGuardrail),
        ("tool_output_guardrail", "of", Stage::OutputGuardrail),
        ("input_builder", "input_builder", Stage::InputBuilder),
        (
            "output_extractor",
            "output_extractor",
            Stage::OutputExtractor,
        ),
        ("failure", "failure", Stage::Failure),
        (
            "tool_error_formatter",
            "tool_error_formatter",
            Stage::Failure,
        ),
    ];
    for (key, tool, stage) in others {
        if entry[key].is_string() {
            return Some((entry[tool].as_str()?, stage));
        }
    }
    let tool = entry["tool"].as_str()?;
    let stage = match (entry["run_hook"].as_str(), entry["agent_hook"].as_str()) {
        (None, None) => Stage::Call,
        (Some("tool_start"), None) => Stage::RunHookStart,
        (Some("tool_end"), None) => Stage::RunHookEnd,
        (None, Some("tool_start")) => Stage::AgentHookStart,
        (None, Some("tool_end")) => Stage::AgentHookEnd,
        _ => return None,
    };
    Some((tool, stage))
}

/// Checks that the stages of each tool are in order. A tool may be called several times concurrently,
/// so the counts are compared: at no entry may a later stage outnumber an earlier one. A stage that
/// occurs less often than a later one in the whole run was not recorded and is not checked.
fn check_tool_order(run: &[Value], first_index: usize) -> Check {
    for (offset, entry) in run.iter().enumerate() {
        let Some((tool, stage)) = tool_stage(entry) else {
            continue;
        };
        let so_far = &run[..=offset];
        let too_early = ORDER
            .iter()
            .filter(|(_, after)| *after == stage)
            .filter(|(before, after)| count(run, tool, *before) >= count(run, tool, *after))
            .find(|(before, after)| count(so_far, tool, *before) < count(so_far, tool, *after));
        if let Some((before, _)) = too_early {
            let expected = format!("{before:?} of {tool} before its {stage:?}");
            return Err(
                Difference::described(expected, entry.to_string()).in_element(first_index + offset)
            );
        }
    }
    Ok(())
}

fn count(entries: &[Value], tool: &str, stage: Stage) -> usize {
    entries
        .iter()
        .filter(|entry| tool_stage(entry) == Some((tool, stage)))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn hook(name: &str, tool: &str) -> Value {
        json!({"run_hook": name, "agent": "A", "tool": tool})
    }

    fn call(tool: &str) -> Value {
        json!({"tool": tool, "arguments": "{\"x\": 1}"})
    }

    fn llm_end() -> Value {
        json!({"run_hook": "llm_end", "agent": "A"})
    }

    fn handoff() -> Value {
        json!({"run_hook": "handoff", "from": "A", "to": "B"})
    }

    /// The log of the reference for two tools that run concurrently.
    fn concurrent_tools() -> Value {
        json!([
            llm_end(),
            hook("tool_start", "a"),
            hook("tool_start", "b"),
            call("a"),
            call("b"),
            hook("tool_end", "a"),
            hook("tool_end", "b"),
            handoff(),
        ])
    }

    #[test]
    fn tools_of_one_response_may_run_one_after_another() {
        let got = json!([
            llm_end(),
            hook("tool_start", "b"), {"tool": "b", "arguments": "{\"x\":1}"}, hook("tool_end", "b"),
            hook("tool_start", "a"), call("a"), hook("tool_end", "a"),
            handoff(),
        ]);

        assert_eq!(log(&concurrent_tools(), &got), Ok(()));
    }

    #[test]
    fn a_tool_called_before_its_start_differs() {
        let got = json!([
            llm_end(),
            hook("tool_start", "a"),
            call("b"),
            hook("tool_start", "b"),
            call("a"),
            hook("tool_end", "a"),
            hook("tool_end", "b"),
            handoff(),
        ]);

        let difference = log(&concurrent_tools(), &got).unwrap_err();

        assert_eq!(difference.path, "[2]");
        assert_eq!(difference.expected, "RunHookStart of b before its Call");
    }

    #[test]
    fn a_tool_that_ends_before_its_call_differs() {
        let got = json!([
            llm_end(),
            hook("tool_start", "a"),
            hook("tool_end", "a"),
            call("a"),
            hook("tool_start", "b"),
            call("b"),
            hook("tool_end", "b"),
            handoff(),
        ]);

        assert_eq!(log(&concurrent_tools(), &got).unwrap_err().path, "[2]");
    }

    #[test]
    fn the_order_of_two_concurrent_calls_is_checked_by_count() {
        let expected = json!([
            hook("tool_start", "a"),
            hook("tool_start", "a"),
            call("a"),
            call("a"),
            hook("tool_end", "a"),
            hook("tool_end", "a"),
        ]);
        let one_by_one = json!([
            hook("tool_start", "a"),
            call("a"),
            hook("tool_end", "a"),
            hook("tool_start", "a"),
            call("a"),
            hook("tool_end", "a"),
        ]);
        let called_early = json!([
            hook("tool_start", "a"),
            call("a"),
            call("a"),
            hook("tool_start", "a"),
            hook("tool_end", "a"),
            hook("tool_end", "a"),
        ]);

        assert_eq!(log(&expected, &one_by_one), Ok(()));
        assert_eq!(log(&expected, &called_early).unwrap_err().path, "[2]");
    }

    #[test]
    fn the_order_of_agent_hooks_is_checked() {
        let start = json!({"agent_hook": "tool_start", "of": "A", "tool": "a"});
        let end = json!({"agent_hook": "tool_end", "of": "A", "tool": "a"});
        let expected = json!([start, call("a"), end]);

        assert_eq!(log(&expected, &expected), Ok(()));
        assert!(log(&expected, &json!([call("a"), start, end])).is_err());
    }

    #[test]
    fn a_tool_after_the_handoff_differs() {
        let expected = json!([
            hook("tool_start", "a"),
            call("a"),
            hook("tool_end", "a"),
            handoff()
        ]);
        let got = json!([
            hook("tool_start", "a"),
            call("a"),
            handoff(),
            hook("tool_end", "a")
        ]);

        assert_eq!(log(&expected, &got).unwrap_err().path, "[2]");
    }

    #[test]
    fn tools_of_two_responses_do_not_mix() {
        let expected = json!([call("a"), llm_end(), call("b")]);
        let got = json!([call("b"), llm_end(), call("a")]);

        assert_eq!(log(&expected, &got).unwrap_err().path, "[0].tool");
    }

    #[test]
    fn other_entries_are_compared_in_order() {
        let expected = json!([llm_end(), handoff(), {"on_handoff": "A"}]);
        let got = json!([llm_end(), {"on_handoff": "A"}, handoff()]);

        assert_eq!(log(&expected, &got).unwrap_err().path, "[1].run_hook");
    }
    #[test]
    fn what_belongs_to_a_tool_is_ordered_around_its_start_and_end() {
        let guardrail = |kind: &str| json!({kind: "limit", "of": "a"});
        let (start, end) = (hook("tool_start", "a"), hook("tool_end", "a"));
        let condition = json!({"needs_approval": "a", "call_id": "c1"});
        for before in [condition, guardrail("tool_input_guardrail")] {
            let expected = json!([before, start, call("a"), end]);
            let other = json!([start, before, call("a"), end]);
            assert_eq!(log(&expected, &expected), Ok(()));
            assert_eq!(log(&expected, &other).unwrap_err().path, "[0]");
        }
        for inside in [
            guardrail("tool_output_guardrail"),
            json!({"input_builder": "a", "params": {}}),
            json!({"output_extractor": "a"}),
            json!({"failure": "a", "error": "RuntimeError"}),
            json!({"tool_error_formatter": "a", "call_id": "c1"}),
        ] {
            let expected = json!([start, inside, end]);
            assert_eq!(log(&expected, &expected), Ok(()));
            assert_eq!(
                log(&expected, &json!([inside, start, end]))
                    .unwrap_err()
                    .path,
                "[0]"
            );
            assert_eq!(
                log(&expected, &json!([start, end, inside]))
                    .unwrap_err()
                    .path,
                "[1]"
            );
        }
    }

    #[test]
    fn the_call_ids_of_hooks_are_not_compared() {
        let with_id = |mut entry: Value| {
            entry["call_id"] = json!("c1");
            entry
        };
        let start = hook("tool_start", "a");
        let condition = json!({"needs_approval": "a"});

        assert_eq!(
            log(&json!([start]), &json!([with_id(start.clone())])),
            Ok(())
        );
        assert!(log(&json!([condition]), &json!([with_id(condition.clone())])).is_err());
    }
}
