//! Renders a reply as one response object.

use serde_json::{Value, json};

use super::RequestInfo;
use crate::quirk::Quirk;
use crate::reply::Reply;
use crate::reply::content::{Ending, Usage};

/// The creation time of every response.
pub(super) const CREATED: u64 = 1_750_000_000;

/// Renders the response.
pub(super) fn json(
    reply: &Reply,
    items: &[Value],
    end: &Ending,
    request: &RequestInfo<'_>,
) -> Value {
    let mut response = in_progress(request);
    response["status"] = json!(match end {
        Ending::Completed => "completed",
        Ending::Incomplete { .. } => "incomplete",
        Ending::Failed { .. } | Ending::Error { .. } => "failed",
    });
    match end {
        Ending::Completed => {}
        Ending::Incomplete { reason } => response["incomplete_details"] = json!({"reason": reason}),
        Ending::Failed { code, message } | Ending::Error { code, message, .. } => {
            response["error"] = json!({"code": code, "message": message});
        }
    }
    response["output"] = items.into();
    if !reply.has(Quirk::NoUsage) && !matches!(end, Ending::Failed { .. }) {
        response["usage"] = usage(reply.usage);
    }
    response
}

/// The response before its output. Like OpenAI's, it repeats the settings of the request.
pub(super) fn in_progress(request: &RequestInfo<'_>) -> Value {
    let body = request.body;
    let or = |field: &str, otherwise: Value| match &body[field] {
        Value::Null => otherwise,
        value => value.clone(),
    };
    json!({
        "id": request.id(),
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": body["instructions"],
        "max_output_tokens": body["max_output_tokens"],
        "model": request.model(),
        "output": [],
        "parallel_tool_calls": or("parallel_tool_calls", json!(true)),
        "previous_response_id": body["previous_response_id"],
        "reasoning": or("reasoning", json!({"effort": null, "summary": null})),
        "store": or("store", json!(true)),
        "temperature": or("temperature", json!(1.0)),
        "text": or("text", json!({"format": {"type": "text"}})),
        "tool_choice": or("tool_choice", json!("auto")),
        "tools": or("tools", json!([])),
        "top_p": or("top_p", json!(1.0)),
        "truncation": or("truncation", json!("disabled")),
        "usage": null,
        "user": null,
        "metadata": or("metadata", json!({})),
    })
}

fn usage(usage: Usage) -> Value {
    json!({
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    })
}
