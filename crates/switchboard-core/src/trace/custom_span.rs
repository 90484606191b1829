//! Traces and spans that the application makes itself.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::trace_handle::{OpenSpan, TraceEnd, TraceHandle, TraceParent};
use super::{SpanData, SpanId, TraceId, TraceInfo, TraceSettings, Tracer, Tracing};

/// One trace around several runs. It ends when it is dropped.
///
/// ```
/// use serde_json::json;
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::trace::{MemoryTracer, Trace};
/// use switchboard_core::{Agent, Runner};
///
/// # futures_util::FutureExt::now_or_never(async {
/// let writer: Agent = Agent::new("Writer");
/// let critic: Agent = Agent::new("Critic");
/// let model = ScriptedModel::new().say("Roses are red.").say("Too short.");
/// let tracer = MemoryTracer::new();
///
/// let trace = Trace::builder("Poem").group("chat_7").tracer(tracer.clone()).start();
/// let poem = Runner::new(&writer).model(&model).within_trace(&trace).run("Write").await?;
/// let mut span = trace.custom_span("count", json!({"words": 3}));
/// let review = Runner::new(&critic).model(&model).within_trace(&span);
/// review.run(poem.final_text().into_owned()).await?;
/// span.set_data(json!({"words": 3, "reviews": 1}));
/// span.end();
/// trace.end();
///
/// let [trace] = &tracer.traces()[..] else { panic!("one trace") };
/// assert_eq!((&*trace.name, trace.group.as_deref()), ("Poem", Some("chat_7")));
/// assert!(tracer.spans().iter().all(|span| span.trace.id == trace.id));
/// # Ok::<(), switchboard_core::Error>(())
/// # }).unwrap().unwrap();
/// ```
#[must_use = "a trace ends when it is dropped"]
pub struct Trace(TraceEnd);

impl Trace {
    /// Describes a trace; the name is that of the workflow.
    pub fn builder(name: impl Into<Arc<str>>) -> TraceBuilder {
        TraceBuilder {
            settings: TraceSettings {
                workflow_name: Some(name.into()),
                ..TraceSettings::default()
            },
            tracing: Tracing::default(),
        }
    }

    /// The description of the trace, or `None` if nobody listens to it.
    pub fn info(&self) -> Option<&TraceInfo> {
        self.0.0.info().map(|info| &**info)
    }

    /// Begins a span at the root of the trace.
    pub fn custom_span(&self, name: impl Into<Arc<str>>, data: impl Into<Value>) -> CustomSpan {
        CustomSpan::under(&self.into(), name, data)
    }

    /// Ends the trace. Spans that are still open end later.
    pub fn end(self) {}
}

impl From<&Trace> for TraceParent {
    fn from(trace: &Trace) -> Self {
        trace.0.0.parent(None)
    }
}

impl fmt::Debug for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Trace").field(&self.info()).finish()
    }
}

/// Describes a [`Trace`].
#[derive(Debug, Clone)]
#[must_use]
pub struct TraceBuilder {
    settings: TraceSettings,
    tracing: Tracing,
}

impl TraceBuilder {
    /// Sets the group of traces it belongs to, such as those of one chat.
    pub fn group(mut self, group: impl Into<Arc<str>>) -> Self {
        self.settings.group = Some(group.into());
        self
    }

    /// Sets the identifier, instead of a new one.
    pub fn id(mut self, id: impl Into<TraceId>) -> Self {
        self.settings.id = Some(id.into());
        self
    }

    /// Adds an entry to the metadata.
    pub fn metadata(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.settings.metadata.insert(name.into(), value.into());
        self
    }

    /// Adds a tracer that receives the trace and its spans, instead of the `tracing` crate.
    pub fn tracer(mut self, tracer: impl Tracer) -> Self {
        self.tracing.add(tracer);
        self
    }

    /// Sets the destination of the trace and its spans, instead of all tracers so far.
    pub fn tracing(mut self, tracing: Tracing) -> Self {
        self.tracing = tracing;
        self
    }

    /// Starts the trace.
    pub fn start(self) -> Trace {
        let handle = TraceHandle::new(&self.tracing, &self.settings, None);
        handle.begin(None);
        Trace(TraceEnd(handle))
    }
}

/// A span with data of the application. It ends when it is dropped.
///
/// It is made by [`Trace::custom_span`], [`CustomSpan::custom_span`] and
/// [`ToolContext::custom_span`](crate::ToolContext::custom_span). Its data goes to the tracers as it
/// is, also where sensitive data is left out of other spans.
#[must_use = "a span ends when it is dropped"]
pub struct CustomSpan {
    trace: TraceHandle,
    span: OpenSpan,
}

impl CustomSpan {
    pub(crate) fn under(
        parent: &TraceParent,
        name: impl Into<Arc<str>>,
        data: impl Into<Value>,
    ) -> Self {
        let (trace, under) = parent.trace().unwrap_or_default();
        let span = trace.span(under, || SpanData::Custom {
            name: name.into(),
            data: data.into(),
        });
        Self { trace, span }
    }

    /// The identifier, or `None` if nobody listens.
    pub fn id(&self) -> Option<SpanId> {
        self.span.id()
    }

    /// Begins a span under this one.
    pub fn custom_span(&self, name: impl Into<Arc<str>>, data: impl Into<Value>) -> Self {
        Self::under(&self.into(), name, data)
    }

    /// Replaces the data.
    pub fn set_data(&mut self, new: impl Into<Value>) {
        self.span.update(|span| {
            if let SpanData::Custom { data, .. } = span {
                *data = new.into();
            }
        });
    }

    /// Sets the error of the span, with its details or `Value::Null`.
    pub fn fail(&mut self, message: &str, details: impl Into<Value>) {
        self.span.fail_with(message, || details.into());
    }

    /// Ends the span.
    pub fn end(self) {}
}

impl From<&CustomSpan> for TraceParent {
    fn from(span: &CustomSpan) -> Self {
        span.trace.parent(span.id())
    }
}

impl fmt::Debug for CustomSpan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("CustomSpan").field(&self.id()).finish()
    }
}
