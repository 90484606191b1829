//! The trace that the driver of a run writes into: where its spans go, and those that are open.

use std::collections::VecDeque;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::{Arc, LazyLock, Mutex};
use std::time::SystemTime;

use rustc_hash::FxHashSet;
use serde_json::Value;
use tracing::Instrument as _;
use tracing::instrument::Instrumented;

use super::subscriber_tracer::SubscriberTracer;
use super::{Span, SpanData, SpanError, SpanId, TraceInfo, TraceSettings, Tracer, Tracing};
use crate::callback::catch_panic_sync;
use crate::environment::environment;
use crate::lock::lock;
use crate::model::Usage;

/// A trace, or none if nobody listens; clones share it.
#[derive(Clone, Default)]
pub(crate) struct TraceHandle(Option<Arc<Live>>);

struct Live {
    sink: Sink,
    info: Arc<TraceInfo>,
}

enum Sink {
    Subscriber(SubscriberTracer),
    Tracer(Arc<dyn Tracer>),
}

impl Sink {
    fn of(tracing: &Tracing) -> Option<Self> {
        if environment().disables_tracing {
            return None;
        }
        match tracing {
            Tracing::Off => None,
            Tracing::To(tracer) => Some(Self::Tracer(tracer.clone())),
            Tracing::Subscriber => SubscriberTracer::if_enabled().map(Self::Subscriber),
        }
    }

    fn tracer(&self) -> &dyn Tracer {
        match self {
            Self::Subscriber(tracer) => tracer,
            Self::Tracer(tracer) => &**tracer,
        }
    }
}

impl TraceHandle {
    /// The trace under these settings; `stored` is the one that a resumed run had.
    pub(crate) fn new(
        tracing: &Tracing,
        settings: &TraceSettings,
        stored: Option<&Arc<TraceInfo>>,
    ) -> Self {
        Self(Sink::of(tracing).map(|sink| {
            let info = settings.resolve(stored.map(|stored| &**stored));
            // A run that goes on in its trace shares its description.
            let info = match stored {
                Some(stored) if **stored == info => stored.clone(),
                _ => Arc::new(info),
            };
            Arc::new(Live { sink, info })
        }))
    }

    pub(crate) fn info(&self) -> Option<&Arc<TraceInfo>> {
        self.0.as_ref().map(|live| &live.info)
    }

    /// Tells the tracers that the trace begins.
    pub(crate) fn start(&self) {
        if let Some(live) = &self.0 {
            lock(&STARTED).add(&live.info);
            ignore_panic(|| live.sink.tracer().trace_start(&live.info));
        }
    }

    /// Tells the tracers that the trace has ended.
    pub(crate) fn end(&self) {
        if let Some(live) = &self.0 {
            ignore_panic(|| live.sink.tracer().trace_end(&live.info));
        }
    }

    /// The place of runs under a span of this trace.
    pub(crate) fn parent(&self, span: Option<SpanId>) -> TraceParent {
        TraceParent {
            trace: Some(self.clone()),
            span,
        }
    }

    /// Begins a span; `data` is only called if spans are made.
    pub(crate) fn span(&self, parent: Option<SpanId>, data: impl FnOnce() -> SpanData) -> OpenSpan {
        let Some(live) = &self.0 else {
            return OpenSpan::default();
        };
        let span = Span {
            id: SpanId::next(),
            parent,
            trace: live.info.clone(),
            started: SystemTime::now(),
            ended: None,
            data: data(),
            error: None,
        };
        ignore_panic(|| live.sink.tracer().start(&span));
        OpenSpan(Some(Box::new(Open {
            live: live.clone(),
            span,
            used_before: Usage::default(),
        })))
    }

    /// Runs user code within the `tracing` span that stands for `span`.
    pub(crate) fn within<F: Future>(&self, span: Option<SpanId>, future: F) -> Instrumented<F> {
        let sink = self.0.as_ref().map(|live| &live.sink);
        let entered = match (sink, span) {
            (Some(Sink::Subscriber(tracer)), Some(id)) => tracer.tracing_span(id),
            _ => tracing::Span::none(),
        };
        future.instrument(entered)
    }
}

/// A place in a trace: under its root, or under one of its spans. Made of a
/// [`Trace`](super::Trace) or a [`CustomSpan`](super::CustomSpan), for
/// [`Runner::within_trace`](crate::Runner::within_trace).
#[derive(Clone, Default)]
pub struct TraceParent {
    trace: Option<TraceHandle>,
    span: Option<SpanId>,
}

impl TraceParent {
    /// The trace, unless the place is outside of all, and the span.
    pub(crate) fn trace(&self) -> Option<(TraceHandle, Option<SpanId>)> {
        Some((self.trace.clone()?, self.span))
    }
}

impl_debug!(TraceParent);

/// Ends a trace when it is dropped, also when a run is cancelled.
#[derive(Default)]
pub(crate) struct TraceEnd(pub(crate) TraceHandle);

impl Drop for TraceEnd {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// A span that ends when this is dropped, also when a run is cancelled.
#[derive(Default)]
pub(crate) struct OpenSpan(Option<Box<Open>>);

struct Open {
    live: Arc<Live>,
    span: Span,
    /// The usage of the run when the span began.
    used_before: Usage,
}

impl OpenSpan {
    pub(crate) fn id(&self) -> Option<SpanId> {
        self.0.as_ref().map(|open| open.span.id)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn update(&mut self, change: impl FnOnce(&mut SpanData)) {
        if let Some(open) = &mut self.0 {
            change(&mut open.span.data);
        }
    }

    /// Counts the usage of the span from that of the run.
    pub(crate) fn count_usage_from(&mut self, run: Usage) {
        if let Some(open) = &mut self.0 {
            open.used_before = run;
        }
    }

    /// Sets the usage of the span from that of the run.
    pub(crate) fn set_usage(&mut self, run: Usage) {
        if let Some(open) = &mut self.0
            && let SpanData::Task { usage, .. } | SpanData::Turn { usage, .. } = &mut open.span.data
        {
            *usage = run.since(open.used_before);
        }
    }

    pub(crate) fn fail(&mut self, message: &str) {
        self.fail_with(message, || Value::Null);
    }

    /// Sets the error of the span; `data` is only called if spans are made.
    pub(crate) fn fail_with(&mut self, message: &str, data: impl FnOnce() -> Value) {
        if let Some(open) = &mut self.0 {
            open.span.error = Some(Box::new(SpanError {
                message: message.to_owned(),
                data: data(),
            }));
        }
    }

    pub(crate) fn end(&mut self) {
        if let Some(open) = self.0.take() {
            let Open { live, mut span, .. } = *open;
            span.ended = Some(SystemTime::now());
            ignore_panic(|| live.sink.tracer().end(span));
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        self.end();
    }
}

/// A panic of a tracer must not end the run.
pub(super) fn ignore_panic(code: impl FnOnce()) {
    if let Err(error) = catch_panic_sync(code) {
        tracing::warn!(%error, "a tracer panicked; the run continues");
    }
}

/// The traces that began in this process, so that a resumed run does not begin its trace again.
static STARTED: LazyLock<Mutex<RecentTraces>> = LazyLock::new(Mutex::default);

/// The number of traces to remember.
const MAX_RECENT: usize = 4096;

/// Hashes of the latest traces.
#[derive(Default)]
struct RecentTraces {
    state: RandomState,
    known: FxHashSet<u64>,
    order: VecDeque<u64>,
}

impl RecentTraces {
    fn add(&mut self, trace: &TraceInfo) {
        let hash = self.state.hash_one(&trace.id);
        if !self.known.insert(hash) {
            return;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_RECENT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }

    fn has(&self, trace: &TraceInfo) -> bool {
        self.known.contains(&self.state.hash_one(&trace.id))
    }
}

/// Returns `true` if the trace began in this process.
pub(crate) fn has_started(trace: &TraceInfo) -> bool {
    lock(&STARTED).has(trace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_traces_that_are_remembered_are_bounded() {
        let mut recent = RecentTraces::default();
        let trace = |n: usize| {
            TraceSettings::default().resolve(Some(&TraceInfo {
                id: format!("trace_{n}").into(),
                name: "".into(),
                group: None,
                metadata: serde_json::Map::new(),
            }))
        };
        for n in 0..=MAX_RECENT {
            recent.add(&trace(n));
        }
        assert_eq!(
            (recent.known.len(), recent.order.len()),
            (MAX_RECENT, MAX_RECENT)
        );
        assert!(!recent.has(&trace(0)) && recent.has(&trace(1)) && recent.has(&trace(MAX_RECENT)));
    }
}
