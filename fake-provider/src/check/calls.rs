//! Checks that tool calls and outputs of the Responses API are paired.

use rustc_hash::FxHashSet;
use serde_json::Value;

use crate::error::Problem;

/// The types of calls that the client answers, and of their outputs.
const PAIRS: [(&str, &str); 4] = [
    ("function_call", "function_call_output"),
    ("custom_tool_call", "custom_tool_call_output"),
    ("computer_call", "computer_call_output"),
    ("apply_patch_call", "apply_patch_call_output"),
];

fn kind(item: &Value) -> &str {
    item["type"].as_str().unwrap_or_default()
}

/// The identifiers of the calls among `items`.
pub(crate) fn call_ids(items: &[Value]) -> impl Iterator<Item = &str> {
    items
        .iter()
        .filter(|item| PAIRS.iter().any(|(call, _)| *call == kind(item)))
        .filter_map(|call| call["call_id"].as_str())
}

/// The identifiers of the calls that the outputs among `items` answer.
pub(crate) fn output_ids(items: &[Value]) -> impl Iterator<Item = &str> {
    items
        .iter()
        .filter(|item| PAIRS.iter().any(|(_, output)| *output == kind(item)))
        .filter_map(|output| output["call_id"].as_str())
}

/// Checks that every call has one output and every output a call. `open` holds calls of earlier
/// responses.
pub(super) fn check(items: &[Value], open: &[String]) -> Result<(), Problem> {
    let calls = unique(call_ids(items), "tool call")?;
    let outputs = unique(output_ids(items), "tool output")?;
    let is_open = |id: &str| open.iter().any(|open| open == id);
    let is_orphaned = |id: &&str| !calls.contains(id) && !is_open(id);
    if let Some(id) = output_ids(items).find(is_orphaned) {
        return Err(problem(format!(
            "No tool call found for function call output with call_id {id}."
        )));
    }
    let mut all_calls = open.iter().map(String::as_str).chain(call_ids(items));
    match all_calls.find(|id| !outputs.contains(id)) {
        Some(id) => Err(problem(format!(
            "No tool output found for function call {id}."
        ))),
        None => Ok(()),
    }
}

fn unique<'a>(
    ids: impl Iterator<Item = &'a str>,
    what: &str,
) -> Result<FxHashSet<&'a str>, Problem> {
    let mut seen = FxHashSet::default();
    for id in ids {
        if !seen.insert(id) {
            return Err(problem(format!(
                "Duplicate {what} found with call_id {id}."
            )));
        }
    }
    Ok(seen)
}

fn problem(message: String) -> Problem {
    Problem::new(None, "input".to_owned(), message)
}
