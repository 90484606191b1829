//! The details of a row: what was sent and what came back.

use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Value, json};
use switchboard_core::trace::{HandoffViews, SpanData};
use switchboard_core::{Item, ModelRequest};

use super::diff::diff;
use super::millis;

/// A request to a model that was sent again.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Retry {
    attempt: u32,
    delay_seconds: f64,
    reason: String,
    /// Milliseconds since 1970.
    time: f64,
}

impl Retry {
    pub(super) fn new(attempt: u32, delay_seconds: f64, reason: &str) -> Self {
        Self {
            attempt,
            delay_seconds,
            reason: reason.to_owned(),
            time: millis(SystemTime::now()),
        }
    }
}

/// The details of a span.
pub(super) fn of(data: &SpanData, retries: &[Retry], caused_by: Option<u64>) -> Value {
    match data {
        SpanData::Agent {
            handoffs, tools, ..
        } => json!({"handoffs": handoffs, "tools": tools}),
        SpanData::Generation {
            model,
            input,
            output,
            request,
            ..
        } => {
            let mut details = match request {
                Some(sent) => request_value(sent.request()),
                None => json!({}),
            };
            details["model"] = json!(model);
            let input = input
                .as_ref()
                .map(|items| items.iter().map(item_value).collect());
            details["input"] = input.unwrap_or(Value::Null);
            let output = output
                .as_ref()
                .map(|items| items.iter().map(item_value).collect());
            details["output"] = output.unwrap_or(Value::Null);
            details["retries"] = json!(retries);
            details
        }
        SpanData::Function { input, output, .. } => json!({"arguments": input, "output": output}),
        SpanData::Handoff {
            from,
            to,
            payload,
            carried_items,
            details,
            ..
        } => {
            let mut value = serde_json::to_value(details).unwrap_or_default();
            value["from"] = json!(from);
            value["to"] = json!(to);
            value["payload"] = json!(payload);
            value["carried_items"] = json!(carried_items);
            value["caused_by"] = json!(caused_by);
            let views = details.views.as_deref();
            add_views(&mut value, views);
            value
        }
        SpanData::Guardrail {
            name,
            triggered,
            outcome,
            ..
        } => json!({"name": name, "triggered": triggered, "outcome": outcome}),
        SpanData::Custom { data, .. } => data.clone(),
        _ => json!({}),
    }
}

/// The parts of a request that its span does not have.
fn request_value(request: &ModelRequest) -> Value {
    let tools = request.tools.iter().map(|tool| {
        json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters})
    });
    let handoffs = request.handoffs.iter().map(|handoff| {
        json!({
            "tool": handoff.tool_name,
            "to": handoff.to,
            "description": handoff.tool_description,
            "parameters": handoff.input_json_schema,
        })
    });
    let hosted = request.hosted_tools.iter().map(|tool| json!(tool.name()));
    let mut settings = json!(*request.settings);
    if let Value::Object(fields) = &mut settings {
        fields.retain(|_, value| !value.is_null());
    }
    json!({
        "instructions": request.instructions,
        "settings": settings,
        "tools": tools.collect::<Value>(),
        "hosted_tools": hosted.collect::<Value>(),
        "handoffs": handoffs.collect::<Value>(),
        "output_type": request.output.as_ref().map(|output| output.schema().clone()),
    })
}

/// Adds both sides of a handoff, and what each filter did.
fn add_views(value: &mut Value, views: Option<&HandoffViews>) {
    let list = |items: &[Item]| -> Value { items.iter().map(item_value).collect() };
    let Some(views) = views else {
        for name in ["record", "seen", "diff", "steps"] {
            value[name] = Value::Null;
        }
        return;
    };
    let steps = views.filters.iter().map(|applied| {
        json!({
            "filter": applied.name,
            "before": list(&applied.before),
            "after": list(&applied.after),
            "diff": diff(&applied.before, &applied.after),
        })
    });
    value["record"] = list(&views.record);
    value["seen"] = list(&views.seen);
    value["diff"] = json!(diff(&views.record, &views.seen));
    value["steps"] = steps.collect();
}

fn item_value(item: &Item) -> Value {
    serde_json::from_str(item.as_json()).unwrap_or_default()
}

/// An estimate of the memory that a span keeps. Items of a conversation are shared, and count once.
pub(super) fn estimated_bytes(span: &switchboard_core::trace::Span, counts_input: bool) -> usize {
    let shared = |count: usize| count * size_of::<Item>();
    let bytes = |items: &[Item]| items.iter().map(|item| item.as_json().len()).sum::<usize>();
    let own = match &span.data {
        SpanData::Generation { input, output, .. } => {
            let input = input.as_ref().map_or(0, |items| {
                if counts_input {
                    items.iter().map(|item| item.as_json().len()).sum()
                } else {
                    shared(items.len())
                }
            });
            input + output.as_deref().map_or(0, bytes)
        }
        SpanData::Function { input, output, .. } => {
            input.as_ref().map_or(0, |text| text.len()) + output.as_ref().map_or(0, String::len)
        }
        SpanData::Handoff { details, .. } => details.views.as_ref().map_or(0, |views| {
            let steps = views.filters.iter();
            let steps = steps
                .map(|step| step.before.len() + step.after.len())
                .sum::<usize>();
            shared(views.record.len() + views.seen.len() + steps)
        }),
        _ => 0,
    };
    own + size_of::<switchboard_core::trace::Span>() * 2
}
