//! Spans in memory.

use std::sync::{Arc, Mutex};

use super::{Span, TraceInfo, Tracer, TracerKey};
use crate::lock::lock;

/// A tracer that keeps spans in memory, in the order they began. Clones share them.
///
/// ```
/// use switchboard_core::trace::MemoryTracer;
///
/// let tracer = MemoryTracer::new();
/// // Runner::new(&agent).tracer(tracer.clone()) ...
/// for span in tracer.spans() {
///     println!("{} {:?}", span.data.kind(), span.error);
/// }
/// ```
#[derive(Debug, Clone)]
pub struct MemoryTracer {
    recorded: Arc<Mutex<Recorded>>,
    identity: TracerKey,
}

#[derive(Debug, Default)]
struct Recorded {
    traces: Vec<TraceInfo>,
    spans: Vec<Span>,
}

impl MemoryTracer {
    /// Creates an empty tracer.
    pub fn new() -> Self {
        Self {
            recorded: Arc::default(),
            identity: TracerKey::generate(),
        }
    }

    /// The traces that have begun so far.
    pub fn traces(&self) -> Vec<TraceInfo> {
        lock(&self.recorded).traces.clone()
    }

    /// The spans so far.
    pub fn spans(&self) -> Vec<Span> {
        lock(&self.recorded).spans.clone()
    }

    /// Takes the spans so far, and forgets the traces.
    pub fn take(&self) -> Vec<Span> {
        std::mem::take(&mut *lock(&self.recorded)).spans
    }
}

impl Default for MemoryTracer {
    fn default() -> Self {
        Self::new()
    }
}

impl Tracer for MemoryTracer {
    fn identity(&self) -> Option<TracerKey> {
        Some(self.identity)
    }

    fn trace_start(&self, trace: &TraceInfo) {
        lock(&self.recorded).traces.push(trace.clone());
    }

    fn start(&self, span: &Span) {
        let spans = &mut lock(&self.recorded).spans;
        if spans.is_empty() {
            // A run with one handoff makes eight.
            spans.reserve(8);
        }
        match spans.last() {
            // Another thread was faster.
            Some(last) if last.id > span.id => {
                let at = spans.partition_point(|known| known.id < span.id);
                spans.insert(at, span.clone());
            }
            // Not `push`: this makes the clone in its place.
            _ => spans.extend_from_slice(std::slice::from_ref(span)),
        }
    }

    fn end(&self, span: Span) {
        let spans = &mut lock(&self.recorded).spans;
        // One that began before the recorder was emptied is not there.
        if let Ok(at) = spans.binary_search_by_key(&span.id, |known| known.id) {
            spans[at] = span;
        }
    }
}
