//! Spans for subscribers of the `tracing` crate.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;
use serde_json::Value;

use super::{Span, SpanData, Tracer};

/// Forwards spans to the `tracing` crate.
#[derive(Debug)]
pub(super) struct SubscriberTracer {
    /// The caller's span when the run began.
    outer: tracing::Span,
    open: Mutex<FxHashMap<u64, tracing::Span>>,
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

    fn open(&self) -> MutexGuard<'_, FxHashMap<u64, tracing::Span>> {
        // Nothing panics while the lock is held.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The `tracing` span that stands for a span.
    pub(super) fn tracing_span(&self, id: u64) -> tracing::Span {
        self.open()
            .get(&id)
            .cloned()
            .unwrap_or_else(tracing::Span::none)
    }
}

impl Tracer for SubscriberTracer {
    fn start(&self, span: &Span) {
        let parent = span.parent.and_then(|id| self.open().get(&id).cloned());
        let parent = parent.unwrap_or_else(|| self.outer.clone()).id();
        macro_rules! open {
            ($name:literal, $($field:tt)*) => {
                tracing::info_span!(target: "switchboard", parent: parent, $name, $($field)*)
            };
        }
        let empty = tracing::field::Empty;
        let opened = match &span.data {
            SpanData::Agent { name, .. } => {
                open!(
                    "agent",
                    name = &**name,
                    tools = empty,
                    handoffs = empty,
                    error = empty
                )
            }
            SpanData::Turn { turn, agent } => open!("turn", turn, agent = &**agent, error = empty),
            SpanData::Generation {
                model, input_items, ..
            } => open!(
                "generation",
                model = &**model,
                input_items,
                input_tokens = empty,
                output_tokens = empty,
                error = empty
            ),
            SpanData::Function { name, input, .. } => open!(
                "function",
                name = &**name,
                input = input.as_deref(),
                output = empty,
                failed = empty,
                error = empty
            ),
            SpanData::Handoff { from, .. } => open!(
                "handoff",
                from = &**from,
                to = empty,
                payload = empty,
                carried_items = empty,
                requested = empty,
                error = empty
            ),
            SpanData::Guardrail { name, .. } => {
                open!(
                    "guardrail",
                    name = &**name,
                    triggered = empty,
                    outcome = empty,
                    error = empty
                )
            }
        };
        self.open().insert(span.id, opened);
    }

    fn end(&self, span: Span) {
        let Some(opened) = self.open().remove(&span.id) else {
            return;
        };
        match &span.data {
            SpanData::Agent {
                tools, handoffs, ..
            } => {
                opened.record("tools", tools.join(", "));
                opened.record("handoffs", handoffs.join(", "));
            }
            SpanData::Turn { .. } => {}
            SpanData::Generation { usage, .. } => {
                opened.record("input_tokens", usage.input_tokens);
                opened.record("output_tokens", usage.output_tokens);
            }
            SpanData::Function { output, failed, .. } => {
                opened.record("output", output.as_deref());
                opened.record("failed", failed);
            }
            SpanData::Handoff {
                to,
                payload,
                carried_items,
                ..
            } => {
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
        }
        if let Some(error) = &span.error {
            opened.record("error", error.message.as_str());
            if !error.requested_agents.is_empty() {
                opened.record("requested", error.requested_agents.join(", "));
            }
        }
    }
}
