//! Checks requests to the Responses API.

use rustc_hash::FxHashSet;
use serde_json::Value;

use super::{Protocol, calls, fields, list, schema, strict, tools};
use crate::error::Problem;
use crate::route::Route;
use crate::rules::Rules;

pub(super) fn check(
    body: &Value,
    rules: Rules,
    open: Result<Vec<String>, Problem>,
) -> Result<(), Problem> {
    check_dependent_fields(body)?;
    schema::check(Route::Model(Protocol::Responses), body)?;
    let input = list(body, "input");
    calls::check(input, &open?)?;
    if rules.item_ids {
        check_ids(input, body)?;
    }
    if rules.reasoning_followed {
        check_reasoning(input)?;
    }
    let offered = list(body, "tools");
    let named = offered.iter().filter(|tool| is_named(tool));
    tools::check_unique(named.filter_map(|tool| tool["name"].as_str()))?;
    tools::check_choice(&body["tool_choice"], |kind, choice| {
        let mut tools = offered.iter();
        tools.any(|tool| tool["type"] == kind && tool["name"] == choice["name"])
    })?;
    if !rules.strict_schemas {
        return Ok(());
    }
    for (index, tool) in offered.iter().enumerate() {
        if tool["type"] == "function" && tool["strict"] == true {
            let name = tool["name"].as_str().unwrap_or_default();
            let param = format!("tools[{index}].parameters");
            strict::function(name, &tool["parameters"], param)?;
        }
    }
    let format = &body["text"]["format"];
    if format["strict"] == true {
        strict::output(format, "text.format.schema")
    } else {
        Ok(())
    }
}

/// Checks fields that depend on others. The schema rejects them too, but with a worse message.
fn check_dependent_fields(body: &Value) -> Result<(), Problem> {
    let has = |field: &str| !body[field].is_null();
    let history = ["input", "prompt", "previous_response_id", "conversation"];
    if !body.is_object() {
        return Ok(());
    }
    if !has("model") && !has("prompt") {
        return Err(fields::missing("model"));
    }
    if !history.into_iter().any(has) {
        return Err(fields::missing("input"));
    }
    if has("previous_response_id") && has("conversation") {
        let message = "Mutually exclusive parameters: 'previous_response_id' and 'conversation'.";
        let param = "previous_response_id".to_owned();
        return Err(Problem::new(
            "mutually_exclusive_parameters",
            param,
            message,
        ));
    }
    fields::requires(body, "stream_options", "stream", body["stream"] == true)
}

fn is_named(tool: &Value) -> bool {
    tool["type"] == "function" || tool["type"] == "custom"
}

/// Checks that identifiers have OpenAI's format and are unique.
fn check_ids(input: &[Value], body: &Value) -> Result<(), Problem> {
    let mut seen = FxHashSet::default();
    for (index, item) in input.iter().enumerate() {
        let (Some(id), kind) = (
            item["id"].as_str(),
            item["type"].as_str().unwrap_or_default(),
        ) else {
            continue;
        };
        let prefix = match kind {
            "message" => "msg",
            "reasoning" => "rs",
            "function_call" => "fc",
            "item_reference" | "" => continue,
            _ => "",
        };
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
        if !id.starts_with(prefix) || id.len() > 64 || !id.bytes().all(is_word) {
            let param = format!("input[{index}].id");
            let message = format!(
                "Invalid '{param}': '{id}'. Expected an ID that begins with '{prefix}' and contains \
                 letters, numbers, underscores, or dashes, 64 at most."
            );
            return Err(Problem::new("invalid_value", param, message));
        }
        if !seen.insert(id) {
            let message = format!("Duplicate item found with id {id}.");
            return Err(Problem::new(None, "input".to_owned(), message));
        }
        let is_unavailable = body["store"] == false && item["encrypted_content"].is_null();
        if kind == "reasoning" && is_unavailable {
            let message = format!(
                "Item with id '{id}' not found. Items are not persisted when `store` is set to false."
            );
            return Err(Problem::new(None, "input".to_owned(), message).status(404));
        }
    }
    Ok(())
}

/// Checks that reasoning is followed by the output that it belongs to.
fn check_reasoning(input: &[Value]) -> Result<(), Problem> {
    for (index, item) in input.iter().enumerate() {
        let next = input.get(index + 1).unwrap_or(&Value::Null);
        let kind = next["type"].as_str().unwrap_or_default();
        let follows = match kind {
            "message" => next["role"] == "assistant",
            "reasoning" => true,
            kind => kind.ends_with("_call"),
        };
        if item["type"] == "reasoning" && !follows {
            let id = item["id"].as_str().unwrap_or("(no id)");
            let message = format!(
                "Item '{id}' of type 'reasoning' was provided without its required following item."
            );
            return Err(Problem::new(None, "input".to_owned(), message));
        }
    }
    Ok(())
}
