//! What happened in a run, as spans.
//!
//! A run makes a span for each agent, turn, model call, tool, handoff and guardrail. They go to a
//! [`Tracer`]: by default to the `tracing` crate, so that any subscriber sees them; to memory with
//! a [`MemoryTracer`]; or wherever an own tracer takes them. What a trace holds never enters a
//! conversation.

use std::borrow::Cow;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use rustc_hash::FxHashMap;
use serde::Serialize;
use serde_json::Value;

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

/// Keeps spans in memory, in the order they began. Clones are the same recorder.
///
/// ```
/// use switchboard_core::MemoryTracer;
///
/// let tracer = MemoryTracer::new();
/// // Runner::new(&agent).tracer(tracer.clone()) ...
/// for span in tracer.spans() {
///     println!("{} {:?}", span.data.kind(), span.error);
/// }
/// ```
#[derive(Debug, Clone, Default)]
pub struct MemoryTracer(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    spans: Vec<Span>,
    open: FxHashMap<u64, usize>,
}

impl MemoryTracer {
    /// An empty recorder.
    pub fn new() -> Self {
        Self::default()
    }

    /// What was recorded so far.
    pub fn spans(&self) -> Vec<Span> {
        self.with(|recorded| recorded.spans.clone())
    }

    /// What was recorded so far, leaving the recorder empty.
    pub fn take(&self) -> Vec<Span> {
        self.with(|recorded| {
            recorded.open.clear();
            std::mem::take(&mut recorded.spans)
        })
    }

    fn with<T>(&self, use_it: impl FnOnce(&mut Recorded) -> T) -> T {
        // Nothing panics while the lock is held.
        use_it(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tracer for MemoryTracer {
    fn start(&self, span: &Span) {
        self.with(|recorded| {
            if recorded.spans.is_empty() {
                // A run with one handoff makes seven.
                recorded.spans.reserve(8);
            }
            recorded.open.insert(span.id, recorded.spans.len());
            recorded.spans.push(span.clone());
        });
    }

    fn end(&self, span: Span) {
        self.with(|recorded| {
            let at = recorded.open.remove(&span.id);
            if let Some(place) = at.and_then(|at| recorded.spans.get_mut(at)) {
                *place = span;
            }
        });
    }
}

/// Passes spans on to the `tracing` crate.
#[derive(Debug)]
struct SubscriberTracer {
    /// What the application was doing when the run began; the run's spans are part of it.
    outer: tracing::Span,
    open: Mutex<FxHashMap<u64, tracing::Span>>,
}

impl SubscriberTracer {
    fn with<T>(&self, use_it: impl FnOnce(&mut FxHashMap<u64, tracing::Span>) -> T) -> T {
        use_it(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Tracer for SubscriberTracer {
    fn start(&self, span: &Span) {
        let parent = span
            .parent
            .and_then(|id| self.with(|open| open.get(&id).cloned()));
        let parent = parent.unwrap_or_else(|| self.outer.clone());
        let parent = parent.id();
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
            SpanData::Handoff { from_agent, .. } => open!(
                "handoff",
                from = &**from_agent,
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
        self.with(|open| open.insert(span.id, opened));
    }

    fn end(&self, span: Span) {
        let Some(opened) = self.with(|open| open.remove(&span.id)) else {
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
                to_agent,
                payload,
                carried_items,
                ..
            } => {
                opened.record("to", to_agent.as_deref());
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

static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// A run's way to its tracer.
#[derive(Clone)]
pub(crate) struct Trace {
    tracer: Option<Arc<dyn Tracer>>,
    id: u64,
}

impl Trace {
    pub(crate) fn new(tracing: &Tracing) -> Self {
        let tracer: Option<Arc<dyn Tracer>> = match tracing {
            Tracing::Off => None,
            Tracing::To(tracer) => Some(tracer.clone()),
            Tracing::Subscriber => {
                tracing::span_enabled!(target: "switchboard", tracing::Level::INFO).then(|| {
                    Arc::new(SubscriberTracer {
                        outer: tracing::Span::current(),
                        open: Mutex::default(),
                    }) as Arc<dyn Tracer>
                })
            }
        };
        let id = match &tracer {
            Some(_) => NEXT_ID.fetch_add(1, Ordering::Relaxed),
            None => 0,
        };
        Self { tracer, id }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.tracer.is_some()
    }

    /// Begins a span; `data` is only made where somebody wants it.
    pub(crate) fn span(&self, parent: Option<u64>, data: impl FnOnce() -> SpanData) -> OpenSpan {
        self.span_from(None, parent, data)
    }

    /// Begins a span at a time that is known, or now.
    pub(crate) fn span_from(
        &self,
        began: Option<SystemTime>,
        parent: Option<u64>,
        data: impl FnOnce() -> SpanData,
    ) -> OpenSpan {
        let Some(tracer) = &self.tracer else {
            return OpenSpan(None);
        };
        let open = Box::new(Open {
            tracer: tracer.clone(),
            span: Span {
                id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
                parent,
                trace: self.id,
                started: began.unwrap_or_else(SystemTime::now),
                ended: None,
                data: data(),
                error: None,
            },
        });
        ignoring_panics(|| tracer.start(&open.span));
        OpenSpan(Some(open))
    }
}

/// A span that ends when this is dropped, also when a run is cancelled.
#[derive(Default)]
pub(crate) struct OpenSpan(Option<Box<Open>>);

struct Open {
    tracer: Arc<dyn Tracer>,
    span: Span,
}

impl OpenSpan {
    pub(crate) fn id(&self) -> Option<u64> {
        self.0.as_ref().map(|open| open.span.id)
    }

    pub(crate) fn started(&self) -> Option<SystemTime> {
        self.0.as_ref().map(|open| open.span.started)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    pub(crate) fn update(&mut self, change: impl FnOnce(&mut SpanData)) {
        if let Some(open) = &mut self.0 {
            change(&mut open.span.data);
        }
    }

    /// Ends two spans at once, the inner one first.
    pub(crate) fn end_both(inner: &mut Self, outer: &mut Self) {
        if inner.is_open() || outer.is_open() {
            let now = SystemTime::now();
            inner.end(now);
            outer.end(now);
        }
    }

    fn end(&mut self, now: SystemTime) {
        if let Some(mut open) = self.0.take() {
            open.span.ended = Some(now);
            ignoring_panics(|| {
                let Open { tracer, span } = *open;
                tracer.end(span);
            });
        }
    }

    pub(crate) fn fail(&mut self, message: &str, requested_agents: Vec<Arc<str>>) {
        if let Some(open) = &mut self.0 {
            open.span.error = Some(Box::new(SpanError {
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
