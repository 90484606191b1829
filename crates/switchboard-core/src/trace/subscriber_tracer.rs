//! Spans for subscribers of the `tracing` crate.

use std::sync::Mutex;

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::{Span, SpanData, SpanId, Tracer};
use crate::lock::lock;

/// Forwards spans to the `tracing` crate.
#[derive(Debug)]
pub(super) struct SubscriberTracer {
    /// The caller's span when the run began.
    outer: tracing::Span,
    open: Mutex<FxHashMap<SpanId, tracing::Span>>,
}

impl SubscriberTracer {
    /// Returns `None` if no subscriber is interested.
    pub(super) fn if_enabled() -> Option<Self> {
        let is_enabled = tracing::span_enabled!(target: "switchboard", tracing::Level::INFO);
        is_enabled.then(|| Self {
            outer: tracing::Span::current(),
            open: Mutex::default(),
        })
    }

    /// The `tracing` span that stands for a span.
    pub(super) fn tracing_span(&self, id: SpanId) -> tracing::Span {
        lock(&self.open)
            .get(&id)
            .cloned()
            .unwrap_or_else(tracing::Span::none)
    }
}

impl Tracer for SubscriberTracer {
    fn start(&self, span: &Span) {
        let parent = span
            .parent
            .and_then(|id| lock(&self.open).get(&id).cloned());
        let parent = parent.unwrap_or_else(|| self.outer.clone()).id();
        let empty = tracing::field::Empty;
        // Opens a span with fields that are known, and others that are recorded later.
        macro_rules! open {
            ($name:literal, $($field:ident $(= $value:expr)?),*; $($later:ident),*) => {
                tracing::info_span!(
                    target: "switchboard", parent: parent, $name,
                    $($field $(= $value)?,)* $($later = empty,)* error = empty, error_data = empty
                )
            };
        }
        let opened = match &span.data {
            SpanData::Task { name, .. } => {
                open!("task", name = &**name, trace = span.trace.id.as_str(); input_tokens, output_tokens)
            }
            SpanData::Agent { name, .. } => open!("agent", name = &**name; tools, handoffs),
            SpanData::Turn { turn, agent, .. } => {
                open!("turn", turn, agent = &**agent; input_tokens, output_tokens)
            }
            SpanData::Generation {
                model, input_items, ..
            } => open!("generation", model = &**model, input_items; input_tokens, output_tokens),
            SpanData::Function { name, input, .. } => {
                open!("function", name = &**name, input = input.as_deref(); output)
            }
            SpanData::Handoff { from, .. } => {
                open!("handoff", from = &**from; to, payload, carried_items, outcome, reason)
            }
            SpanData::Guardrail { name, .. } => {
                open!("guardrail", name = &**name; triggered, outcome)
            }
            SpanData::Custom { name, .. } => open!("custom", name = &**name; data),
        };
        lock(&self.open).insert(span.id, opened);
    }

    fn end(&self, span: Span) {
        let Some(opened) = lock(&self.open).remove(&span.id) else {
            return;
        };
        match &span.data {
            SpanData::Agent {
                tools, handoffs, ..
            } => {
                opened.record("tools", tools.join(", "));
                opened.record("handoffs", handoffs.join(", "));
            }
            SpanData::Task { usage, .. }
            | SpanData::Turn { usage, .. }
            | SpanData::Generation { usage, .. } => {
                opened.record("input_tokens", usage.input_tokens);
                opened.record("output_tokens", usage.output_tokens);
            }
            SpanData::Function { output, .. } => {
                opened.record("output", output.as_deref());
            }
            SpanData::Handoff {
                to,
                payload,
                carried_items,
                details,
                ..
            } => {
                let outcome = details.outcome.map(|outcome| format!("{outcome:?}"));
                opened.record("outcome", outcome);
                opened.record("reason", details.reason.as_deref());
                opened.record("to", to.as_deref());
                opened.record("payload", payload.as_ref().map(Value::to_string));
                opened.record("carried_items", carried_items);
            }
            SpanData::Guardrail {
                triggered, outcome, ..
            } => {
                opened.record("triggered", triggered);
                opened.record("outcome", outcome.as_str());
            }
            SpanData::Custom { data, .. } => {
                opened.record("data", data.to_string());
            }
        }
        if let Some(error) = &span.error {
            opened.record("error", error.message.as_str());
            if !error.data.is_null() {
                opened.record("error_data", error.data.to_string());
            }
        }
    }
}
