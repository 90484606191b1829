//! A response of the Responses API, as one JSON object.

use serde_json::{Value, json};

use super::Asked;
use crate::answer::{End, Usage};
use crate::quirk::Quirk;
use crate::reply::Reply;

/// When every answer was made.
pub(super) const CREATED: u64 = 1_750_000_000;

/// The whole response.
pub(super) fn json(reply: &Reply, items: &[Value], end: &End, asked: &Asked<'_>) -> Value {
    let mut response = begun(asked);
    response["status"] = json!(match end {
        End::Completed => "completed",
        End::Incomplete { .. } => "incomplete",
        End::Failed { .. } | End::Error { .. } => "failed",
    });
    match end {
        End::Completed => {}
        End::Incomplete { reason } => response["incomplete_details"] = json!({"reason": reason}),
        End::Failed { code, message } | End::Error { code, message, .. } => {
            response["error"] = json!({"code": code, "message": message});
        }
    }
    response["output"] = items.into();
    if !reply.has(Quirk::NoUsage) && !matches!(end, End::Failed { .. }) {
        response["usage"] = usage(reply.usage);
    }
    response
}

/// The response as it is when it begins. Like OpenAI's, it repeats what it was asked with.
pub(super) fn begun(asked: &Asked<'_>) -> Value {
    let body = asked.body;
    let or = |field: &str, otherwise: Value| match &body[field] {
        Value::Null => otherwise,
        asked => asked.clone(),
    };
    json!({
        "id": asked.id(),
        "object": "response",
        "created_at": CREATED,
        "status": "in_progress",
        "background": false,
        "error": null,
        "incomplete_details": null,
        "instructions": body["instructions"],
        "max_output_tokens": body["max_output_tokens"],
        "model": asked.model(),
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
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.input + usage.output,
    })
}
