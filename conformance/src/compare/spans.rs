//! Compares the span trees of a run, in start order.

use std::ptr;

use serde_json::Value;

use super::data::{data, fields};
use super::difference::{Check, Difference};
use super::unordered::compare_lists;

/// The one span error whose message is compared, together with the agents it names.
const MULTIPLE_HANDOFFS: &str = "Multiple handoffs requested";

/// The span error of a tool whose failure the model is told.
const TOLD_FAILURE: &str = "Error running tool (non-fatal)";

/// The outcome of the run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ending {
    /// The run has a result.
    Finished,
    /// The run has an error, so its last agent may not have called a model.
    Failed,
}

impl Ending {
    /// The ending of an expected run.
    pub(super) fn of(run: &Value) -> Self {
        match run["error"] {
            Value::Null => Self::Finished,
            _ => Self::Failed,
        }
    }
}

/// Compares two lists of span trees.
pub(super) fn spans(expected: &Value, got: &Value, ending: Ending) -> Check {
    let last_agent = match ending {
        Ending::Finished => None,
        Ending::Failed => last_agent_span(expected),
    };
    siblings(expected, got, last_agent)
}

/// The agent span that started last, in a tree of spans or a list of trees.
fn last_agent_span(spans: &Value) -> Option<&Value> {
    let spans = spans.as_array()?;
    spans.iter().rev().find_map(|span| {
        let is_agent = span["type"] == "agent";
        last_agent_span(&span["children"]).or(is_agent.then_some(span))
    })
}

/// Compares the spans under one parent. Consecutive function spans ran concurrently.
fn siblings(expected: &Value, got: &Value, last_of_failed_run: Option<&Value>) -> Check {
    let (Value::Array(expected), Value::Array(got)) = (expected, got) else {
        return data(expected, got);
    };
    compare_lists(expected, got, is_function, |expected, got| {
        span(expected, got, last_of_failed_run)
    })
}

fn is_function(span: &Value) -> bool {
    span["type"] == "function"
}

/// The expected spans without those that may be missing and are: spans of calls that still wait when
/// they end.
pub(super) fn without_missing(expected: &Value, got: &Value) -> Value {
    let (Value::Array(expected), Value::Array(got)) = (expected, got) else {
        return expected.clone();
    };
    let count = |spans: &[Value], name: &Value| {
        let spans = spans.iter().filter(|span| is_function(span));
        spans.filter(|span| span["name"] == *name).count()
    };
    let mut kept: Vec<Value> = Vec::new();
    let mut dropped: Vec<&Value> = Vec::new();
    for span in expected {
        let name = &span["name"];
        let dropped_before = dropped.iter().filter(|it| **it == name).count();
        let is_missing = count(expected, name) - dropped_before > count(got, name);
        if is_missing && span["waited"] == true && is_empty(&span["children"]) {
            dropped.push(name);
            continue;
        }
        let mut span = span.clone();
        if let Some(got) = got.get(kept.len()) {
            span["children"] = without_missing(&span["children"], &got["children"]);
        }
        kept.push(span);
    }
    kept.into()
}

fn span(expected: &Value, got: &Value, last_of_failed_run: Option<&Value>) -> Check {
    if !expected.is_object() || !got.is_object() {
        return data(expected, got);
    }
    let never_called_model = never_called_model(expected, last_of_failed_run);
    let names_agents = expected["error"] == MULTIPLE_HANDOFFS;
    // The recorder's tools turn their failures into outputs themselves, so they have no error.
    let is_told_failure = expected["type"] == "function" && got["error"] == TOLD_FAILURE;
    fields(expected, got, |name, expected, got| match name {
        "children" => siblings(expected, got, last_of_failed_run),
        "error" if is_told_failure && expected.is_null() => Ok(()),
        "error" => span_error(expected, got),
        "requested_agents" if !names_agents => Ok(()),
        "handoffs" | "tools" if never_called_model => Ok(()),
        // Whether the call still waits when its span ends shows in what the run waits for.
        "waited" => Ok(()),
        _ => data(expected, got),
    })
}

/// Returns `true` if the agent of a span may have failed before it called a model. The reference then
/// leaves its handoffs and tools empty, and they are not compared.
fn never_called_model(span: &Value, last_of_failed_run: Option<&Value>) -> bool {
    let is_last = last_of_failed_run.is_some_and(|last| ptr::eq(last, span));
    let failed = is_last || !span["error"].is_null();
    failed && is_empty(&span["handoffs"]) && is_empty(&span["tools"])
}

fn is_empty(list: &Value) -> bool {
    list.as_array().is_none_or(Vec::is_empty)
}

fn span_error(expected: &Value, got: &Value) -> Check {
    let same = if expected == MULTIPLE_HANDOFFS {
        got == MULTIPLE_HANDOFFS
    } else {
        expected.is_null() == got.is_null()
    };
    if same {
        return Ok(());
    }
    Err(Difference::of_values(expected, got))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn agent(name: &str, children: Value) -> Value {
        json!({"type": "agent", "name": name, "handoffs": [], "tools": [], "children": children})
    }

    fn function(name: &str) -> Value {
        json!({"type": "function", "name": name, "children": []})
    }

    fn handoff(error: Value, requested: Value) -> Value {
        json!({"type": "handoff", "from_agent": "A", "to_agent": "B", "error": error,
               "requested_agents": requested, "children": []})
    }

    fn with(mut span: Value, field: &str, value: Value) -> Value {
        span[field] = value;
        span
    }

    fn path_of(expected: &Value, got: &Value, ending: Ending) -> Option<String> {
        let difference = spans(expected, got, ending).err()?;
        Some(difference.path)
    }

    #[test]
    fn consecutive_functions_match_in_any_order() {
        let none = || handoff(json!(null), json!(null));
        let expected = json!([agent("A", json!([function("a"), function("b"), none()]))]);
        let swapped = json!([agent("A", json!([function("b"), function("a"), none()]))]);
        let moved = json!([agent("A", json!([function("a"), none(), function("b")]))]);

        assert_eq!(path_of(&expected, &swapped, Ending::Finished), None);
        assert_eq!(
            path_of(&expected, &moved, Ending::Finished).as_deref(),
            Some("[0].children[1]")
        );
    }

    #[test]
    fn agents_match_in_order() {
        let expected = json!([agent("A", json!([])), agent("B", json!([]))]);
        let got = json!([agent("B", json!([])), agent("A", json!([]))]);

        assert_eq!(
            path_of(&expected, &got, Ending::Finished).as_deref(),
            Some("[0].name")
        );
    }

    #[test]
    fn the_message_of_other_errors_is_not_compared() {
        let expected = json!([with(
            agent("A", json!([])),
            "error",
            json!("Max turns exceeded")
        )]);
        let reworded = json!([with(agent("A", json!([])), "error", json!("Turns used up"))]);
        let without = json!([agent("A", json!([]))]);

        assert_eq!(path_of(&expected, &reworded, Ending::Failed), None);
        assert_eq!(
            path_of(&expected, &without, Ending::Failed).as_deref(),
            Some("[0].error")
        );
        assert_eq!(
            path_of(&without, &expected, Ending::Failed).as_deref(),
            Some("[0].error")
        );
    }

    #[test]
    fn the_agents_of_multiple_handoffs_are_compared() {
        let expected = json!([handoff(json!(MULTIPLE_HANDOFFS), json!(["B", "C"]))]);
        let reworded = json!([handoff(json!("Too many"), json!(["B", "C"]))]);
        let other_agents = json!([handoff(json!(MULTIPLE_HANDOFFS), json!(["C", "B"]))]);

        assert_eq!(path_of(&expected, &expected, Ending::Finished), None);
        assert_eq!(
            path_of(&expected, &reworded, Ending::Finished).as_deref(),
            Some("[0].error")
        );
        assert_eq!(
            path_of(&expected, &other_agents, Ending::Finished).as_deref(),
            Some("[0].requested_agents[0]")
        );
    }

    #[test]
    fn tools_of_an_agent_that_never_called_a_model_are_not_compared() {
        let first = agent("A", json!([]));
        let last = agent("B", json!([]));
        let expected = json!([first, last]);
        let last_has_tools = json!([first, with(last.clone(), "tools", json!(["t"]))]);
        let first_has_tools = json!([with(first.clone(), "tools", json!(["t"])), last]);

        assert_eq!(path_of(&expected, &last_has_tools, Ending::Failed), None);
        assert_eq!(
            path_of(&expected, &last_has_tools, Ending::Finished).as_deref(),
            Some("[1].tools[0]")
        );
        assert_eq!(
            path_of(&expected, &first_has_tools, Ending::Failed).as_deref(),
            Some("[0].tools[0]")
        );
    }

    #[test]
    fn tools_of_a_failed_agent_that_called_a_model_are_compared() {
        let expected = json!([with(agent("A", json!([])), "tools", json!(["t"]))]);
        let got = json!([agent("A", json!([]))]);

        assert_eq!(
            path_of(&expected, &got, Ending::Failed).as_deref(),
            Some("[0].tools[0]")
        );
    }
    #[test]
    fn spans_of_calls_that_wait_may_be_missing() {
        let waiting = with(function("f"), "waited", json!(true));
        let expected = json!([agent(
            "A",
            json!([waiting, function("g"), waiting, function("f")])
        )]);
        let compare = |got: Value| {
            let got = json!([agent("A", got)]);
            spans(&without_missing(&expected, &got), &got, Ending::Finished).is_ok()
        };

        assert!(compare(json!([function("g"), function("f")])));
        assert!(compare(json!([
            function("f"),
            function("g"),
            function("f")
        ])));
        assert!(compare(json!([
            function("f"),
            function("g"),
            function("f"),
            function("f")
        ])));
        assert!(!compare(json!([function("f")])));
        assert!(!compare(json!([function("g")])));
    }

    #[test]
    fn a_span_that_waits_and_has_children_may_not_be_missing() {
        let waiting = with(function("f"), "waited", json!(true));
        let waiting = with(waiting, "children", json!([agent("B", json!([]))]));
        let expected = json!([agent("A", json!([waiting]))]);
        let got = json!([agent("A", json!([]))]);

        let expected = without_missing(&expected, &got);
        assert!(spans(&expected, &got, Ending::Finished).is_err());
    }
}
