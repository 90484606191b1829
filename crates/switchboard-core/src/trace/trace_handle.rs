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
use super::{
    Span, SpanData, SpanError, SpanId, TraceInfo, TraceSettings, Tracer, TracerKey, Tracers,
    Tracing,
};
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
    /// The tracers that were told of its end before the run was resumed.
    told_of_end: Mutex<Vec<TracerKey>>,
}

enum Sink {
    Subscriber(SubscriberTracer),
    Tracers(Tracers),
}

impl Sink {
    fn of(tracing: &Tracing) -> Option<Self> {
        if environment().disables_tracing {
            return None;
        }
        match tracing {
            Tracing::Off => None,
            Tracing::To(tracers) => Some(Self::Tracers(tracers.clone())),
            Tracing::Subscriber => SubscriberTracer::if_enabled().map(Self::Subscriber),
        }
    }

    fn tracer(&self) -> &dyn Tracer {
        match self {
            Self::Subscriber(tracer) => tracer,
            Self::Tracers(tracers) => tracers,
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
            Arc::new(Live {
                sink,
                info,
                told_of_end: Mutex::default(),
            })
        }))
    }

    pub(crate) fn info(&self) -> Option<&Arc<TraceInfo>> {
        self.0.as_ref().map(|live| &live.info)
    }

    /// Returns `true` if a tracer wants the details of spans.
    pub(crate) fn wants_details(&self) -> bool {
        let live = self.0.as_ref();
        live.is_some_and(|live| live.sink.tracer().wants_details())
    }

    /// Tells the tracers that the trace begins. A trace that a resumed run goes on in begins for
    /// those that do not know it. Returns `true` if it began for any.
    pub(crate) fn begin(&self, resumed: Option<ResumedTrace>) -> bool {
        let Some(live) = &self.0 else {
            return false;
        };
        // Subscribers of the `tracing` crate are told of spans only.
        let Sink::Tracers(tracers) = &live.sink else {
            return resumed.is_none();
        };
        let mut has_begun = false;
        for member in &*tracers.members() {
            let is_new = lock(&STARTED).add(&live.info, member.identity);
            match resumed {
                Some(trace) if !is_new => {
                    if trace.is_ended {
                        lock(&live.told_of_end).push(member.identity);
                    }
                }
                _ => {
                    has_begun = true;
                    ignore_panic(|| member.tracer.trace_start(&live.info));
                }
            }
        }
        has_begun
    }

    /// Tells the tracers that the trace has ended, unless they were told before.
    pub(crate) fn end(&self) {
        let Some(live) = &self.0 else { return };
        let Sink::Tracers(tracers) = &live.sink else {
            return;
        };
        for member in &*tracers.members() {
            if !lock(&live.told_of_end).contains(&member.identity) {
                ignore_panic(|| member.tracer.trace_end(&live.info));
            }
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

/// A trace that a resumed run goes on in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ResumedTrace {
    /// Set if the tracers of before were told of its end, or somebody else tells them.
    pub(crate) is_ended: bool,
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

/// The traces that began in this process and the tracers that were told, so that a resumed run does
/// not begin its trace again.
static STARTED: LazyLock<Mutex<RecentTraces>> = LazyLock::new(Mutex::default);

/// The number of traces and tracers to remember.
const MAX_RECENT: usize = 4096;

/// Hashes of the latest traces, each with a tracer.
#[derive(Default)]
struct RecentTraces {
    state: RandomState,
    known: FxHashSet<u64>,
    order: VecDeque<u64>,
}

impl RecentTraces {
    /// Returns `true` if it was not known.
    fn add(&mut self, trace: &TraceInfo, tracer: TracerKey) -> bool {
        let hash = self.state.hash_one((&trace.id, tracer));
        if !self.known.insert(hash) {
            return false;
        }
        self.order.push_back(hash);
        if self.order.len() > MAX_RECENT
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_traces_that_are_remembered_are_bounded() {
        let mut recent = RecentTraces::default();
        let tracer = TracerKey::generate();
        let trace = |n: usize| TraceInfo {
            id: format!("trace_{n}").into(),
            name: "".into(),
            group: None,
            metadata: serde_json::Map::new(),
        };
        for n in 0..=MAX_RECENT {
            assert!(recent.add(&trace(n), tracer));
        }
        assert_eq!(
            (recent.known.len(), recent.order.len()),
            (MAX_RECENT, MAX_RECENT)
        );
        assert!(!recent.add(&trace(MAX_RECENT), tracer) && !recent.add(&trace(1), tracer));
        assert!(recent.add(&trace(0), tracer));
    }
}
