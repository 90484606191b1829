//! Tracing: the spans of a run.
//!
//! A run makes a span for itself, and for each agent, turn, model call, tool, handoff and guardrail.
//! They go to a [`Tracer`]: by default to the `tracing` crate, nested under the caller's current span
//! and entered while user code runs; to memory with a [`MemoryTracer`]; in batches to a
//! [`TraceExporter`] with a [`BatchTracer`]; or to a tracer of your own. The content of a trace never
//! enters a conversation.
//!
//! The spans of a run are one trace, described by a [`TraceInfo`]. A resumed run goes on in its
//! trace, a run inside a tool is part of the trace around it, and with a [`Trace`] an application puts
//! several runs and spans of its own into one.
//!
//! Two variables of the environment have the meaning they have for the reference. They are read once:
//!
//! | variable | effect |
//! | --- | --- |
//! | `OPENAI_AGENTS_DISABLE_TRACING` | with `1` or `true`, no spans are made, whatever the settings |
//! | `OPENAI_AGENTS_TRACE_INCLUDE_SENSITIVE_DATA` | with anything but `1`, `true`, `yes` or `on`, spans have no arguments, outputs and messages, unless a setting asks for them |

mod batch_tracer;
mod custom_span;
mod id;
mod json_exporter;
mod last_span;
mod memory_tracer;
mod reference_json;
mod rfc3339;
mod subscriber_tracer;
pub(crate) mod trace_handle;
mod trace_info;
mod tracers;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

use self::subscriber_tracer::SubscriberTracer;
pub use batch_tracer::{BatchSettings, BatchTracer, ExportTimeout, TraceExporter, TraceRecord};
pub use custom_span::{CustomSpan, Trace, TraceBuilder};
pub use id::{InvalidSpanId, SpanId, TraceId};
pub use json_exporter::JsonExporter;
pub(crate) use last_span::LastSpan;
pub use memory_tracer::MemoryTracer;
pub use rfc3339::rfc3339;
use serde::{Deserialize, Serialize, Serializer};
use serde_json::Value;
pub use trace_handle::TraceParent;
pub use trace_info::{TraceInfo, TraceSettings};
pub use tracers::{TracerKey, Tracers};

use crate::guardrail::GuardrailOutcome;
use crate::handoff::AppliedFilter;
use crate::items::{Item, Items};
use crate::model::{ModelRequest, Usage};
use crate::run::HandoffTrigger;
use crate::stream::HandoffStatus;

/// Receives the spans of runs.
///
/// Its methods are called during runs and must not block. A panic in one is logged and ignored.
pub trait Tracer: Send + Sync + 'static {
    /// An identity that clones of this tracer share, if they are one tracer: the same
    /// [`TracerKey`] in each of them. Where there is none, a tracer is another one each time that it
    /// is added, to a runner, a trace or [`Tracers`].
    fn identity(&self) -> Option<TracerKey> {
        None
    }

    /// Returns `true` if spans are to have details that cost memory: the request of a model call
    /// ([`SentRequest`]), and both sides of a handoff ([`HandoffViews`]). No tracer of this library asks for them.
    /// Where sensitive data is excluded they are left out all the same.
    fn wants_details(&self) -> bool {
        false
    }

    /// Called when a trace begins, before its spans. A resumed run goes on in its trace, which begins
    /// only for the tracers that were not called at its start: others than before, or those of
    /// another process.
    fn trace_start(&self, trace: &TraceInfo) {
        let _ = trace;
    }

    /// Called when a trace has ended, after its spans; once, also where the run is resumed later with
    /// this tracer.
    fn trace_end(&self, trace: &TraceInfo) {
        let _ = trace;
    }

    /// Called when a span begins. Some of its data is only known later.
    fn start(&self, span: &Span);

    /// Called when a span has ended, with all its data.
    fn end(&self, span: Span);
}

/// The destination of spans.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Tracing {
    /// The `tracing` crate; no spans are made if no subscriber is interested.
    #[default]
    Subscriber,
    /// No spans are made.
    Off,
    /// These tracers.
    To(Tracers),
}

impl Tracing {
    /// This tracer.
    pub fn to(tracer: impl Tracer) -> Self {
        Self::To(Tracers::new().with(tracer))
    }

    /// Adds a tracer to those there are; it takes the place of the `tracing` crate.
    pub(crate) fn add(&mut self, tracer: impl Tracer) {
        *self = match self {
            Self::Subscriber | Self::Off => Self::to(tracer),
            Self::To(others) => Self::To(others.with(tracer)),
        };
    }

    /// Returns the destination with one more tracer beside those there are. The `tracing` crate still gets the
    /// spans if it did before, but code does not run within them.
    #[must_use]
    pub fn and(&self, tracer: impl Tracer) -> Self {
        let tracers = match self {
            Self::Off => Tracers::new(),
            Self::Subscriber => match SubscriberTracer::if_enabled() {
                Some(subscriber) => Tracers::new().with(subscriber),
                None => Tracers::new(),
            },
            Self::To(others) => others.clone(),
        };
        Self::To(tracers.with(tracer))
    }
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
    /// The identifier.
    pub id: SpanId,
    /// The span it belongs to.
    pub parent: Option<SpanId>,
    /// The trace it belongs to; serialised as its identifier.
    #[serde(serialize_with = "serialize_id")]
    pub trace: Arc<TraceInfo>,
    /// The time it began; serialised as RFC 3339.
    #[serde(serialize_with = "rfc3339::serialize")]
    pub started: SystemTime,
    /// The time it ended.
    #[serde(serialize_with = "rfc3339::serialize_option")]
    pub ended: Option<SystemTime>,
    /// The details.
    pub data: SpanData,
    /// The error in it.
    pub error: Option<Box<SpanError>>,
}

fn serialize_id<S: Serializer>(trace: &TraceInfo, serializer: S) -> Result<S::Ok, S::Error> {
    trace.id.serialize(serializer)
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
    /// A run in this process, from its start to its end or from where it is resumed. A run that is
    /// taken step by step has one for each step.
    #[non_exhaustive]
    Task {
        /// The name of the workflow.
        name: Arc<str>,
        /// The usage of the run, with that of runs inside its tools.
        usage: Usage,
    },
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
        /// The usage of the turn, with that of runs inside its tools.
        usage: Usage,
    },
    /// A model call.
    #[non_exhaustive]
    Generation {
        /// The model's name.
        model: Arc<str>,
        /// The number of input items.
        input_items: usize,
        /// Its input, unless sensitive data is excluded.
        input: Option<Items>,
        /// The usage of the call.
        usage: Usage,
        /// Its response, unless sensitive data is excluded.
        output: Option<Vec<Item>>,
        /// The request, where a tracer [wants details](Tracer::wants_details).
        #[serde(skip)]
        request: Option<SentRequest>,
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
        /// The decision, and what it was made of.
        details: Box<HandoffDetails>,
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
    /// A part of the application's own code; see [`CustomSpan`].
    #[non_exhaustive]
    Custom {
        /// Its name.
        name: Arc<str>,
        /// The details that the application sets.
        data: Value,
    },
}

/// The request of a model call. Clones share it.
#[derive(Debug, Clone)]
pub struct SentRequest(Arc<ModelRequest>);

impl SentRequest {
    pub(crate) fn new(request: &ModelRequest) -> Self {
        Self(Arc::new(request.clone()))
    }

    /// The request.
    pub fn request(&self) -> &ModelRequest {
        &self.0
    }
}

/// Two are equal if they are the request of one call.
impl PartialEq for SentRequest {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

/// Both sides of a handoff: the conversation as it is, and as the next agent sees it.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct HandoffViews {
    /// The items of the conversation.
    pub record: Vec<Item>,
    /// The items that the next agent sees, or would see.
    pub seen: Vec<Item>,
    /// What each filter did, in their order.
    pub filters: Vec<AppliedFilter>,
}

/// The decision on a handoff, and what it was made of.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[non_exhaustive]
pub struct HandoffDetails {
    /// The number of items the next agent would get without a filter; those that it does not get were
    /// removed.
    pub of_items: Option<usize>,
    /// The outcome; `None` if the run failed, or waits for a decision.
    pub outcome: Option<HandoffStatus>,
    /// The part that decided against the handoff, led it elsewhere, or asked for it in place of the model.
    pub decided_by: Option<HandoffDecider>,
    /// The reason that the model was given, unless sensitive data is excluded.
    pub reason: Option<String>,
    /// The agent that was asked for, where the handoff was redirected.
    pub redirected_from: Option<Arc<str>>,
    /// The cause of the handoff.
    pub trigger: HandoffTrigger,
    /// The span of the model call that asked for it; that of the turn, where a condition took it after one.
    pub caused_by: Option<SpanId>,
    /// The policy that decided, by name: that of a guardrail, or of a setting such as `loops.ping_pong`.
    pub policy: Option<Arc<str>>,
    /// A hash of the payload, where sensitive data is excluded: equal payloads have equal hashes. It is not
    /// made to resist attackers who can guess payloads.
    pub payload_hash: Option<String>,
    /// The number of tokens that the next agent gets, by the estimate of
    /// [`filters::estimated_tokens`](crate::filters::estimated_tokens).
    pub carried_tokens: Option<usize>,
    /// Both sides of the handoff, where a tracer [wants details](Tracer::wants_details).
    #[serde(skip)]
    pub views: Option<Box<HandoffViews>>,
}

/// The part of a team or a policy that decided against a handoff as the model asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum HandoffDecider {
    /// A condition that takes the handoff without the model.
    Condition,
    /// A guardrail.
    Guardrail,
    /// The callback of the handoff.
    Callback,
    /// A person.
    Approval,
    /// A limit of [`LoopLimits`](crate::run::LoopLimits).
    LoopLimit,
    /// The policy for [several handoffs](crate::run::SeveralHandoffs) in one response.
    SeveralHandoffs,
    /// The payload or the condition of the handoff, or its callback failed.
    Failure,
}

impl SpanData {
    /// `task`, `agent`, `turn`, `generation`, `function`, `handoff`, `guardrail` or `custom`.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Task { .. } => "task",
            Self::Agent { .. } => "agent",
            Self::Turn { .. } => "turn",
            Self::Generation { .. } => "generation",
            Self::Function { .. } => "function",
            Self::Handoff { .. } => "handoff",
            Self::Guardrail { .. } => "guardrail",
            Self::Custom { .. } => "custom",
        }
    }
}
