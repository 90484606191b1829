//! Checks requests to Chat Completions.

use std::borrow::Cow;

use serde_json::Value;

use super::{Protocol, fields, list, schema, strict, tools};
use crate::error::Problem;
use crate::route::Route;
use crate::rules::Rules;

pub(super) fn check(body: &Value, rules: Rules) -> Result<(), Problem> {
    check_dependent_fields(body)?;
    let plain = if rules.compatible {
        Cow::Owned(without_extensions(body))
    } else {
        Cow::Borrowed(body)
    };
    schema::check(Route::Model(Protocol::Chat), &plain)?;
    check_tool_messages(list(body, "messages"))?;
    let offered = list(body, "tools");
    tools::check_unique(offered.iter().filter_map(|tool| name(tool).as_str()))?;
    tools::check_choice(&body["tool_choice"], |kind, choice| {
        let mut tools = offered.iter();
        tools.any(|tool| tool["type"] == kind && name(tool) == name(choice))
    })?;
    if !rules.strict_schemas {
        return Ok(());
    }
    for (index, tool) in offered.iter().enumerate() {
        let function = &tool["function"];
        if function["strict"] == true {
            let name = function["name"].as_str().unwrap_or_default();
            let param = format!("tools[{index}].function.parameters");
            strict::function(name, &function["parameters"], param)?;
        }
    }
    let format = &body["response_format"]["json_schema"];
    if format["strict"] == true {
        strict::output(format, "response_format")
    } else {
        Ok(())
    }
}

/// Checks fields that depend on others. The schema rejects them too, but with a worse message.
fn check_dependent_fields(body: &Value) -> Result<(), Problem> {
    let has_tools = !list(body, "tools").is_empty() || !list(body, "functions").is_empty();
    let is_free = body["tool_choice"] == "none" || body["tool_choice"] == "auto";
    fields::requires(body, "stream_options", "stream", body["stream"] == true)?;
    fields::requires(body, "top_logprobs", "logprobs", body["logprobs"] == true)?;
    fields::requires(body, "parallel_tool_calls", "tools", has_tools)?;
    fields::requires(body, "tool_choice", "tools", has_tools || is_free)
}

/// The name of a tool or of a tool choice.
fn name(tool: &Value) -> &Value {
    match tool["type"].as_str() {
        Some("custom") => &tool["custom"]["name"],
        _ => &tool["function"]["name"],
    }
}

/// Checks that each call is answered by one of the tool messages directly after it.
fn check_tool_messages(messages: &[Value]) -> Result<(), Problem> {
    let mut open: Vec<&str> = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            let Some(at) = open.iter().position(|open| *open == id) else {
                return Err(orphaned_output(index, id));
            };
            open.remove(at);
            continue;
        }
        check_no_open_calls(&open, index)?;
        open = list(message, "tool_calls")
            .iter()
            .filter_map(|call| call["id"].as_str())
            .collect();
        let is_repeated = |at: usize| open[..at].contains(&open[at]);
        if let Some(at) = (0..open.len()).find(|at| is_repeated(*at)) {
            let param = format!("messages[{index}].tool_calls");
            let message = format!("Duplicate value for 'tool_call_id' of '{}'.", open[at]);
            return Err(Problem::new("invalid_value", param, message));
        }
    }
    check_no_open_calls(&open, messages.len())
}

fn orphaned_output(index: usize, id: &str) -> Problem {
    let message = format!(
        "Invalid parameter: messages with role 'tool' must be a response to a preceeding message \
         with 'tool_calls'. None of them waits for '{id}'."
    );
    Problem::new(None, format!("messages[{index}].role"), message)
}

fn check_no_open_calls(open: &[&str], index: usize) -> Result<(), Problem> {
    if open.is_empty() {
        return Ok(());
    }
    let message = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    Err(Problem::new(
        None,
        format!("messages[{index}].role"),
        message,
    ))
}

/// Removes the fields that only compatible servers accept.
fn without_extensions(body: &Value) -> Value {
    let mut body = body.clone();
    for message in body["messages"].as_array_mut().into_iter().flatten() {
        let Value::Object(message) = message else {
            continue;
        };
        for field in [
            "reasoning_content",
            "reasoning",
            "reasoning_details",
            "thinking_blocks",
        ] {
            message.shift_remove(field);
        }
        let calls = message.get_mut("tool_calls").and_then(Value::as_array_mut);
        for call in calls.into_iter().flatten().filter_map(Value::as_object_mut) {
            call.shift_remove("extra_content");
        }
    }
    body
}
