//! What happened in a run, as spans.
//!
//! A run makes a span for each agent, turn, model call, tool, handoff and guardrail. They go to a
//! [`Tracer`]: by default to the `tracing` crate, so that any subscriber sees them; to memory with
//! a [`MemoryTracer`]; or wherever an own tracer takes them. What a trace holds never enters a
//! conversation.

mod memory;
mod subscriber;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

pub use memory::MemoryTracer;
use serde::Serialize;
use serde_json::Value;
use subscriber::SubscriberTracer;

use crate::callback::caught;
use crate::guardrail::GuardrailOutcome;
use crate::items::Item;
use crate::model::Usage;

/// Takes the spans of runs.
///
/// Both methods are called from within runs and must not block. One that panics is ignored, with a
/// warning.
pub trait Tracer: Send + Sync + 'static {
    /// A span begins. Some of its data is only known later.
    fn start(&self, span: &Span);

    /// A span has ended, with all its data, which is the tracer's to keep.
    fn end(&self, span: Span);
}

/// Where the spans of a run go.
#[derive(Clone, Default)]
pub enum Tracing {
    /// To the `tracing` crate, where a subscriber wants them; nothing is made where none does.
    #[default]
    Subscriber,
    /// Nowhere.
    Off,
    /// To this tracer.
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

/// One stretch of a run.
///
/// What the engine does by itself, between calls of models, tools and other code, takes microseconds and
/// counts as one moment: a span may begin when the one before it ends.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Span {
    /// The span's number, unique in this process.
    pub id: u64,
    /// The span it is part of.
    pub parent: Option<u64>,
    /// The run it belongs to.
    pub trace: u64,
    /// When it began.
    pub started: SystemTime,
    /// When it ended.
    pub ended: Option<SystemTime>,
    /// What it is.
    pub data: SpanData,
    /// What went wrong in it.
    pub error: Option<Box<SpanError>>,
}

/// What went wrong in a span.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SpanError {
    /// In words.
    pub message: String,
    /// The agents asked for, where there were several handoffs at once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requested_agents: Vec<Arc<str>>,
}

/// What a span is.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum SpanData {
    /// An agent has the conversation.
    Agent {
        /// Its name.
        name: Arc<str>,
        /// The agents it can hand off to.
        handoffs: Arc<[Arc<str>]>,
        /// Its tools.
        tools: Arc<[Arc<str>]>,
        /// The form of its answer.
        output_type: Cow<'static, str>,
    },
    /// One model call and what follows from it.
    Turn {
        /// Which turn of the run.
        turn: u32,
        /// Whose.
        agent: Arc<str>,
    },
    /// A model answers.
    Generation {
        /// The model's name.
        model: Arc<str>,
        /// How many items it was given.
        input_items: usize,
        /// What it cost.
        usage: Usage,
        /// What it answered, unless sensitive data is left out.
        output: Option<Vec<Item>>,
    },
    /// A tool runs.
    Function {
        /// The tool's name.
        name: Arc<str>,
        /// Its arguments, unless sensitive data is left out.
        input: Option<Arc<str>>,
        /// What it returned, unless sensitive data is left out.
        output: Option<String>,
        /// Whether it failed and the model was told so.
        failed: bool,
    },
    /// The conversation passes to another agent.
    Handoff {
        /// Who had it.
        from_agent: Arc<str>,
        /// Who gets it; absent where it never came to that.
        to_agent: Option<Arc<str>>,
        /// What the model sent along, unless sensitive data is left out.
        payload: Option<Value>,
        /// How many items the next agent sees.
        carried_items: Option<usize>,
    },
    /// A guardrail checks.
    Guardrail {
        /// Its name.
        name: Arc<str>,
        /// Whether it tripped.
        triggered: bool,
        /// What came of it.
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

/// The bits of nanoseconds.
const NANOS: u64 = (1 << 30) - 1;

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A run's way to its tracer.
pub(crate) struct Trace {
    tracer: Option<Arc<dyn Tracer>>,
    id: u64,
    /// What the clock said last: seconds since 1970, and below them 30 bits of nanoseconds; 0 where
    /// time may have passed since.
    moment: AtomicU64,
}

impl Trace {
    pub(crate) fn new(tracing: &Tracing) -> Self {
        let tracer: Option<Arc<dyn Tracer>> = match tracing {
            Tracing::Off => None,
            Tracing::To(tracer) => Some(tracer.clone()),
            Tracing::Subscriber => {
                let tracer = SubscriberTracer::if_wanted();
                tracer.map(|tracer| Arc::new(tracer) as Arc<dyn Tracer>)
            }
        };
        let id = match &tracer {
            Some(_) => NEXT_ID.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        Self {
            tracer,
            id,
            moment: AtomicU64::new(0),
        }
    }

    /// To be called before anybody else has the floor: a model, a session, who listens, code of users.
    pub(crate) fn time_passes(&self) {
        self.moment.store(0, Ordering::Relaxed);
    }

    /// What time it is. What the engine does by itself is one moment, a few microseconds long: a run
    /// with one handoff looks at the clock three times and not ten, at 30 ns each.
    fn now(&self) -> SystemTime {
        let known = self.moment.load(Ordering::Relaxed);
        if known != 0 {
            let nanos = (known & NANOS) as u32;
            return SystemTime::UNIX_EPOCH + Duration::new(known >> 30, nanos);
        }
        let now = SystemTime::now();
        let since = now.duration_since(SystemTime::UNIX_EPOCH);
        // Before 1970 and after 2514 it is looked up each time.
        let moment = match since {
            Ok(since) if since.as_secs() < 1 << 34 => {
                since.as_secs() << 30 | u64::from(since.subsec_nanos())
            }
            _ => 0,
        };
        self.moment.store(moment, Ordering::Relaxed);
        now
    }

    /// Begins a span; `data` is only made where somebody wants it.
    pub(crate) fn span(&self, parent: Option<u64>, data: impl FnOnce() -> SpanData) -> OpenSpan {
        let mut span = OpenSpan::default();
        self.begin(&mut span, parent, data);
        span
    }

    /// Begins a span where another one was, which is over.
    pub(crate) fn begin(
        &self,
        place: &mut OpenSpan,
        parent: Option<u64>,
        data: impl FnOnce() -> SpanData,
    ) {
        let Some(tracer) = &self.tracer else {
            return;
        };
        self.end([place]);
        let open = place.0.get_or_insert_with(|| {
            let tracer = tracer.clone();
            Box::new(Open { tracer, span: None })
        });
        let span = open.span.insert(Span {
            id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
            parent,
            trace: self.id,
            started: self.now(),
            ended: None,
            data: data(),
            error: None,
        });
        ignoring_panics(|| tracer.start(span));
    }

    /// Ends spans that are open, in this order.
    pub(crate) fn end<const N: usize>(&self, spans: [&mut OpenSpan; N]) {
        if spans.iter().any(|span| span.is_open()) {
            let now = self.now();
            for span in spans {
                span.end(now);
            }
        }
    }
}

/// A span that ends when this is dropped, also when a run is cancelled. The next one can begin in the
/// same place.
#[derive(Default)]
pub(crate) struct OpenSpan(Option<Box<Open>>);

struct Open {
    tracer: Arc<dyn Tracer>,
    /// None once it has ended.
    span: Option<Span>,
}

impl OpenSpan {
    fn span(&self) -> Option<&Span> {
        self.0.as_ref()?.span.as_ref()
    }

    fn span_mut(&mut self) -> Option<&mut Span> {
        self.0.as_mut()?.span.as_mut()
    }

    pub(crate) fn id(&self) -> Option<u64> {
        self.span().map(|span| span.id)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.span().is_some()
    }

    pub(crate) fn update(&mut self, change: impl FnOnce(&mut SpanData)) {
        if let Some(span) = self.span_mut() {
            change(&mut span.data);
        }
    }

    fn end(&mut self, now: SystemTime) {
        if let Some(span) = self.span_mut() {
            span.ended = Some(now);
            // Taken out in there, since a closure that held it would be copied on the way.
            ignoring_panics(|| {
                if let Some(open) = &mut self.0
                    && let Some(span) = open.span.take()
                {
                    open.tracer.end(span);
                }
            });
        }
    }

    pub(crate) fn fail(&mut self, message: &str, requested_agents: Vec<Arc<str>>) {
        if let Some(span) = self.span_mut() {
            span.error = Some(Box::new(SpanError {
                message: message.to_owned(),
                requested_agents,
            }));
        }
    }
}

impl Drop for OpenSpan {
    fn drop(&mut self) {
        if self.is_open() {
            self.end(SystemTime::now());
        }
    }
}

/// A run does not fail because who watches it does.
fn ignoring_panics(told: impl FnOnce()) {
    if let Err(error) = caught(told) {
        tracing::warn!(%error, "a tracer failed; the run goes on");
    }
}
