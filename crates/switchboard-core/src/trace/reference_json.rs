//! Traces and spans in the reference's JSON.

use std::time::SystemTime;

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::rfc3339::utc;
use super::{Span, SpanData, TraceInfo, TraceRecord};
use crate::model::Usage;

/// The entries of a trace's metadata that the reference repeats in each span.
const REPEATED_METADATA: [&str; 1] = ["agent_harness_id"];

impl TraceInfo {
    /// The trace in the reference's JSON: `{"object": "trace", "id": ..., "workflow_name": ...}`.
    pub fn to_reference_json(&self) -> Value {
        let metadata = (!self.metadata.is_empty()).then_some(&self.metadata);
        json!({
            "object": "trace",
            "id": self.id,
            "workflow_name": self.name,
            "group_id": self.group,
            "metadata": metadata,
        })
    }
}

impl Span {
    /// The span in the reference's JSON: `{"object": "trace.span", "id": ..., "span_data": ...}`.
    pub fn to_reference_json(&self) -> Value {
        let error = self.error.as_ref();
        let error = error.map(|error| json!({"message": error.message, "data": error.data}));
        let mut json = json!({
            "object": "trace.span",
            "id": self.id,
            "trace_id": self.trace.id,
            "parent_id": self.parent,
            "started_at": iso_time(self.started),
            "ended_at": self.ended.map(iso_time),
            "span_data": span_data(&self.data),
            "error": error,
        });
        let repeated = REPEATED_METADATA.iter().filter_map(|name| {
            let value = self.trace.metadata.get(*name)?;
            Some(((*name).to_owned(), value.clone()))
        });
        let metadata: Map<String, Value> = repeated.collect();
        if !metadata.is_empty() {
            json["metadata"] = metadata.into();
        }
        json
    }
}

impl TraceRecord {
    /// The trace or span in the reference's JSON.
    pub fn to_reference_json(&self) -> Value {
        match self {
            Self::Trace(trace) => trace.to_reference_json(),
            Self::Span(span) => span.to_reference_json(),
        }
    }
}

fn span_data(data: &SpanData) -> Value {
    match data {
        SpanData::Task { name, usage } => {
            let mut data = json!({"sdk_span_type": "task", "name": name});
            if *usage != Usage::default() {
                data["usage"] = turn_usage(usage);
                data["usage"]["requests"] = usage.requests.into();
                data["usage"]["total_tokens"] = usage.total_tokens().into();
            }
            json!({"type": "custom", "name": "task", "data": data})
        }
        SpanData::Turn { turn, agent, usage } => {
            let mut data = json!({"sdk_span_type": "turn", "turn": turn, "agent_name": agent});
            if *usage != Usage::default() {
                data["usage"] = turn_usage(usage);
            }
            json!({"type": "custom", "name": "turn", "data": data})
        }
        SpanData::Agent {
            name,
            handoffs,
            tools,
            output_type,
        } => json!({
            "type": "agent",
            "name": name,
            "handoffs": handoffs,
            "tools": tools,
            "output_type": output_type,
        }),
        SpanData::Generation {
            model,
            input,
            output,
            usage,
            ..
        } => json!({
            "type": "generation",
            "input": items(input),
            "output": items(output),
            "model": model,
            "model_config": null,
            "usage": model_usage(usage),
        }),
        SpanData::Function {
            name,
            input,
            output,
        } => json!({
            "type": "function",
            "name": name,
            "input": input,
            "output": output,
            "mcp_data": null,
        }),
        SpanData::Handoff { from, to, .. } => {
            json!({"type": "handoff", "from_agent": from, "to_agent": to})
        }
        SpanData::Guardrail {
            name, triggered, ..
        } => json!({"type": "guardrail", "name": name, "triggered": triggered}),
        SpanData::Custom { name, data } => json!({"type": "custom", "name": name, "data": data}),
    }
}

/// Items as JSON. An item may be nested too deeply for a `Value`.
fn items(items: &impl Serialize) -> Value {
    serde_json::to_value(items).unwrap_or_default()
}

fn turn_usage(usage: &Usage) -> Value {
    json!({
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "cached_input_tokens": usage.cached_tokens,
        "cache_write_input_tokens": usage.cache_write_tokens,
    })
}

fn model_usage(usage: &Usage) -> Value {
    json!({
        "requests": usage.requests,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "total_tokens": usage.total_tokens(),
        "input_tokens_details": {
            "cached_tokens": usage.cached_tokens,
            "cache_write_tokens": usage.cache_write_tokens,
        },
        "output_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    })
}

/// A time as Python writes it: `2026-11-16T09:05:06.000250+00:00`.
fn iso_time(time: SystemTime) -> String {
    format!("{}+00:00", utc(time))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, UNIX_EPOCH};

    #[test]
    fn times_are_written_as_python_writes_them() {
        let at =
            |seconds, micros: u32| iso_time(UNIX_EPOCH + Duration::new(seconds, micros * 1000));
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000000+00:00");
        assert_eq!(at(951_782_399, 999_999), "2000-02-28T23:59:59.999999+00:00");
        assert_eq!(at(951_782_400, 0), "2000-02-29T00:00:00.000000+00:00");
        assert_eq!(at(1_735_689_599, 1), "2024-12-31T23:59:59.000001+00:00");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000000+00:00");
    }
}
