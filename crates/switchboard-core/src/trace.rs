//! Tracing: the spans of a run.
//!
//! A run makes a span for each agent, turn, model call, tool, handoff and guardrail. They go to a
//! [`Tracer`]: by default to the `tracing` crate, nested under the caller's current span and entered
//! while user code runs; to memory with a [`MemoryTracer`]; or to a tracer of your own. The content
//! of a trace never enters a conversation.

mod memory;
mod subscriber;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

pub use memory::MemoryTracer;
use serde::Serialize;
use serde_json::Value;
use subscriber::SubscriberTracer;
use tracing::Instrument as _;
use tracing::instrument::Instrumented;

use crate::callback::catch_panic_sync;
use crate::guardrail::GuardrailOutcome;
use crate::items::Item;
use crate::model::Usage;

/// Receives the spans of runs.
///
/// Both methods are called during runs and must not block. A panic in one is logged and ignored.
pub trait Tracer: Send + Sync + 'static {
    /// Called when a span begins. Some of its data is only known later.
    fn start(&self, span: &Span);

    /// Called when a span has ended, with all its data.
    fn end(&self, span: Span);
}

/// The destination of spans.
#[derive(Clone, Default)]
pub enum Tracing {
    /// The `tracing` crate; no spans are made if no subscriber is interested.
    #[default]
    Subscriber,
    /// No spans are made.
    Off,
    /// This tracer.
    To(Arc<dyn Tracer>),
}

impl fmt::Debug for Tracing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Subscriber => "Subscriber",
            Self::Off => "Off",
            Self::To(_) => "To(..)",
        })
    }
}

/// A part of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Span {
    /// The span's number, unique in this process.
    pub id: u64,
    /// The span it belongs to.
    pub parent: Option<u64>,
    /// The run it belongs to.
    pub trace: u64,
    /// The time it began.
    pub started: SystemTime,
    /// The time it ended.
    pub ended: Option<SystemTime>,
    /// The details.
    pub data: SpanData,
    /// The error in it.
    pub error: Option<Box<SpanError>>,
}

/// An error in a span.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct SpanError {
    /// The message, which quotes nothing of a conversation.
    pub message: String,
    /// The details, or null: the guardrail that tripped, the limit of turns, the tool and its error,
    /// the agents that were asked for (`requested_agents`) where the model asked for several handoffs.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

/// Stands in for an error whose text may quote a conversation, where sensitive data is excluded.
pub(crate) const REDACTED: &str = "redacted";

/// The details of a span.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpanData {
    /// The time during which an agent has the conversation.
    #[non_exhaustive]
    Agent {
        /// The agent's name.
        name: Arc<str>,
        /// The agents it can hand off to.
        handoffs: Arc<[Arc<str>]>,
        /// Its tools.
        tools: Arc<[Arc<str>]>,
        /// The type of its output.
        output_type: Cow<'static, str>,
    },
    /// One model call and what follows from it.
    #[non_exhaustive]
    Turn {
        /// The number of the turn.
        turn: u32,
        /// The agent.
        agent: Arc<str>,
    },
    /// A model call.
    #[non_exhaustive]
    Generation {
        /// The model's name.
        model: Arc<str>,
        /// The number of input items.
        input_items: usize,
        /// The usage of the call.
        usage: Usage,
        /// Its response, unless sensitive data is excluded.
        output: Option<Vec<Item>>,
    },
    /// A tool call.
    #[non_exhaustive]
    Function {
        /// The tool's name.
        name: Arc<str>,
        /// Its arguments, unless sensitive data is excluded.
        input: Option<Arc<str>>,
        /// Its output, unless sensitive data is excluded.
        output: Option<String>,
    },
    /// A handoff.
    #[non_exhaustive]
    Handoff {
        /// The agent that had the conversation.
        from: Arc<str>,
        /// The agent that gets it; `None` if the handoff failed before that was known.
        to: Option<Arc<str>>,
        /// The payload, unless sensitive data is excluded.
        payload: Option<Value>,
        /// The number of items the next agent gets.
        carried_items: Option<usize>,
    },
    /// A guardrail.
    #[non_exhaustive]
    Guardrail {
        /// Its name.
        name: Arc<str>,
        /// Set if it tripped.
        triggered: bool,
        /// The outcome.
        outcome: GuardrailOutcome,
    },
}

impl SpanData {
    /// `agent`, `turn`, `generation`, `function`, `handoff` or `guardrail`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Agent { .. } => "agent",
            Self::Turn { .. } => "turn",
            Self::Generation { .. } => "generation",
            Self::Function { .. } => "function",
            Self::Handoff { .. } => "handoff",
            Self::Guardrail { .. } => "guardrail",
        }
    }
}

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// The trace of a run; clones share it.
#[derive(Clone)]
pub(crate) struct Trace {
    sink: Option<Sink>,
    id: u64,
}

/// The span of a run that another run lies under.
#[derive(Clone, Default)]
pub(crate) struct TraceParent {
    trace: Option<Trace>,
    span: Option<u64>,
}

impl TraceParent {
    /// The trace of a run under this span, and the span.
    pub(crate) fn trace(&self) -> Option<(Trace, Option<u64>)> {
        Some((self.trace.clone()?, self.span))
    }
}

#[derive(Clone)]
enum Sink {
    Subscriber(Arc<SubscriberTracer>),
    Tracer(Arc<dyn Tracer>),
}

impl Sink {
    fn tracer(&self) -> &dyn Tracer {
        match self {
            Self::Subscriber(tracer) => &**tracer,
            Self::Tracer(tracer) => &**tracer,
        }
    }
}

impl Trace {
    pub(crate) fn new(tracing: &Tracing) -> Self {
        let sink = match tracing {
            Tracing::Off => None,
            Tracing::To(tracer) => Some(Sink::Tracer(tracer.clone())),
            Tracing::Subscriber => {
                SubscriberTracer::if_enabled().map(|tracer| Sink::Subscriber(Arc::new(tracer)))
            }
        };
        let id = sink
            .as_ref()
            .map_or(0, |_| NEXT_ID.fetch_add(1, Ordering::Relaxed));
        Self { sink, id }
    }

    /// The place of runs under a span of this trace.
    pub(crate) fn parent(&self, span: Option<u64>) -> TraceParent {
        TraceParent {
            trace: Some(self.clone()),
            span,
        }
    }

    /// Begins a span; `data` is only called if spans are made.
    pub(crate) fn span(&self, parent: Option<u64>, data: impl FnOnce() -> SpanData) -> OpenSpan {
        let Some(sink) = &self.sink else {
            return OpenSpan::default();
        };
        let span = Span {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            parent,
            trace: self.id,
            started: SystemTime::now(),
            ended: None,
            data: data(),
            error: None,
        };
        ignore_panic(|| sink.tracer().start(&span));
        OpenSpan(Some(Box::new((sink.clone(), span))))
    }

    /// Runs user code within the `tracing` span that stands for `span`.
    pub(crate) fn within<F: Future>(&self, span: Option<u64>, future: F) -> Instrumented<F> {
        let entered = match (&self.sink, span) {
            (Some(Sink::Subscriber(tracer)), Some(id)) => tracer.tracing_span(id),
            _ => tracing::Span::none(),
        };
        future.instrument(entered)
    }
}

/// A span that ends when this is dropped, also when a run is cancelled.
#[derive(Default)]
pub(crate) struct OpenSpan(Option<Box<(Sink, Span)>>);

impl OpenSpan {
    pub(crate) fn id(&self) -> Option<u64> {
        self.0.as_ref().map(|open| open.1.id)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn update(&mut self, change: impl FnOnce(&mut SpanData)) {
        if let Some(open) = &mut self.0 {
            change(&mut open.1.data);
        }
    }

    pub(crate) fn fail(&mut self, message: &str) {
        self.fail_with(message, || Value::Null);
    }

    /// Sets the error of the span; `data` is only called if spans are made.
    pub(crate) fn fail_with(&mut self, message: &str, data: impl FnOnce() -> Value) {
        if let Some(open) = &mut self.0 {
            open.1.error = Some(Box::new(SpanError {
                message: message.to_owned(),
                data: data(),
            }));
        }
    }

    pub(crate) fn end(&mut self) {
        if let Some(open) = self.0.take() {
            let (sink, mut span) = *open;
            span.ended = Some(SystemTime::now());
            ignore_panic(|| sink.tracer().end(span));
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        self.end();
    }
}

/// A panic of a tracer must not end the run.
fn ignore_panic(code: impl FnOnce()) {
    if let Err(error) = catch_panic_sync(code) {
        tracing::warn!(%error, "a tracer panicked; the run continues");
    }
}
