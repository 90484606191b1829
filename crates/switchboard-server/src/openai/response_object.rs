//! Response objects.

use serde_json::{Map, Value, json};
use switchboard_core::Item;

use super::now;
use crate::client_tools::ClientTool;

/// The items of a request, each with an identifier.
pub(super) fn input_values(key: &str, items: &[Item]) -> Vec<Value> {
    let key: String = key.trim_start_matches("resp_").chars().take(16).collect();
    let items = items.iter().enumerate().filter_map(|(at, item)| {
        let mut value = item.to_value()?;
        value["id"] = format!("msg_in{key}{at:04x}").into();
        if value.get("type").is_none() {
            value["type"] = "message".into();
        }
        if let Some(text) = value["content"].as_str() {
            let kind = if value["role"] == "assistant" {
                "output_text"
            } else {
                "input_text"
            };
            value["content"] = json!([{"type": kind, "text": text}]);
        }
        Some(value)
    });
    items.collect()
}

/// A response that has not begun, with every field that the Open Responses specification asks for.
pub(super) fn new_response(
    id: &str,
    body: &Map<String, Value>,
    model: &str,
    tools: &[ClientTool],
    is_stored: bool,
    conversation: &str,
) -> Value {
    let given = |name: &str, default: Value| match body.get(name) {
        None | Some(Value::Null) => default,
        Some(value) => value.clone(),
    };
    let tools = tools.iter().map(|tool| {
        json!({"type": "function", "name": &*tool.name, "description": &*tool.description,
               "parameters": &*tool.parameters, "strict": false})
    });
    json!({
        "id": id,
        "object": "response",
        "created_at": now(),
        "completed_at": null,
        "status": "in_progress",
        "incomplete_details": null,
        "model": model,
        "previous_response_id": given("previous_response_id", Value::Null),
        "conversation": {"id": conversation},
        "instructions": given("instructions", Value::Null),
        "output": [],
        "error": null,
        "tools": tools.collect::<Vec<_>>(),
        "tool_choice": given("tool_choice", "auto".into()),
        "truncation": "disabled",
        "parallel_tool_calls": given("parallel_tool_calls", true.into()),
        "text": {"format": {"type": "text"}},
        "top_p": given("top_p", 1.0.into()),
        "presence_penalty": given("presence_penalty", 0.0.into()),
        "frequency_penalty": given("frequency_penalty", 0.0.into()),
        "top_logprobs": 0,
        "temperature": given("temperature", 1.0.into()),
        "reasoning": given("reasoning", Value::Null),
        "usage": null,
        "max_output_tokens": given("max_output_tokens", Value::Null),
        "max_tool_calls": null,
        "store": is_stored,
        "background": false,
        "service_tier": "default",
        "metadata": given("metadata", json!({})),
        "safety_identifier": given("safety_identifier", Value::Null),
        "prompt_cache_key": given("prompt_cache_key", Value::Null),
        "switchboard": {"conversation": conversation, "agent": null, "handoffs": [], "waiting": []},
    })
}
