//! Calls and their outputs among items of the Responses API.

use rustc_hash::FxHashSet;
use serde_json::Value;

use crate::error::Problem;

/// Calls that the client answers, and what answers them.
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
    let calls = items.iter();
    let calls = calls.filter(|item| PAIRS.iter().any(|(call, _)| *call == kind(item)));
    calls.filter_map(|call| call["call_id"].as_str())
}

/// The identifiers of the calls that the outputs among `items` answer.
pub(crate) fn output_ids(items: &[Value]) -> impl Iterator<Item = &str> {
    let outputs = items.iter();
    let outputs = outputs.filter(|item| PAIRS.iter().any(|(_, output)| *output == kind(item)));
    outputs.filter_map(|output| output["call_id"].as_str())
}

/// Every call has one output and every output a call. `open` are calls of earlier responses.
pub(super) fn check(items: &[Value], open: &[String]) -> Result<(), Problem> {
    let calls = unique(call_ids(items), "tool call")?;
    let outputs = unique(output_ids(items), "tool output")?;
    let is_open = |id: &str| open.iter().any(|open| open == id);
    let lone = |id: &&str| !calls.contains(id) && !is_open(id);
    if let Some(id) = output_ids(items).find(lone) {
        return Err(wrong(format!(
            "No tool call found for function call output with call_id {id}."
        )));
    }
    let all = open.iter().map(String::as_str).chain(call_ids(items));
    match all.into_iter().find(|id| !outputs.contains(id)) {
        Some(id) => Err(wrong(format!(
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
            return Err(wrong(format!("Duplicate {what} found with call_id {id}.")));
        }
    }
    Ok(seen)
}

fn wrong(message: String) -> Problem {
    Problem::new(None, "input".to_owned(), message)
}
