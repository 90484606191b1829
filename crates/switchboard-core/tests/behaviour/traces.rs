//! Spans: what they hold, and what they leave out.

use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{MemoryTracer, Span, SpanData, SpanId, TraceId, Tracing};
use switchboard_core::{Agent, RunConfig, Runner, handoff, tool};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tracing_core::span::Current;

#[derive(Deserialize, JsonSchema)]
#[expect(dead_code, reason = "read by serde and schemars only")]
struct Reason {
    reason: String,
}

async fn spans(trace_sensitive_data: bool) -> Vec<Span> {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A")
        .tool(tool("t").run(|_ctx, _: Reason| "the secret output"))
        .handoff(handoff(&b).payload::<Reason>());
    let model = ScriptedModel::new()
        .calls([
            ("t", r#"{"reason": "secret argument"}"#),
            ("transfer_to_b", r#"{"reason": "secret payload"}"#),
        ])
        .say("secret answer");
    let tracer = MemoryTracer::new();
    let config = RunConfig {
        tracing: Tracing::to(tracer.clone()),
        trace_sensitive_data,
        ..RunConfig::default()
    };
    Runner::new(&a)
        .replace_config(config)
        .model(model)
        .run("x")
        .await
        .unwrap();
    tracer.spans()
}

#[tokio::test]
async fn spans_form_a_tree_of_agents_turns_and_calls() {
    let spans = spans(true).await;
    let parent_kind = |span: &Span| {
        let parent = spans.iter().find(|other| Some(other.id) == span.parent);
        parent.map_or("none", |parent| parent.data.kind())
    };
    let tree: Vec<(&str, &str)> = spans
        .iter()
        .map(|s| (s.data.kind(), parent_kind(s)))
        .collect();
    assert_eq!(
        tree,
        [
            ("task", "none"),
            ("agent", "task"),
            ("turn", "agent"),
            ("generation", "turn"),
            ("function", "turn"),
            ("handoff", "turn"),
            ("agent", "task"),
            ("turn", "agent"),
            ("generation", "turn"),
        ]
    );
    assert!(
        spans
            .iter()
            .all(|span| span.ended.is_some() && span.error.is_none())
    );
    let SpanData::Handoff {
        from,
        to,
        payload,
        carried_items,
        ..
    } = &spans[5].data
    else {
        panic!("{:?}", spans[5]);
    };
    assert_eq!((&**from, to.as_deref()), ("A", Some("B")));
    assert_eq!(payload.as_ref().unwrap()["reason"], "secret payload");
    assert_eq!(*carried_items, Some(5));
}

#[tokio::test]
async fn sensitive_data_can_be_left_out() {
    let with = serde_json::to_string(&spans(true).await).unwrap();
    assert_eq!(with.matches("secret").count(), 9, "{with}");
    let without = serde_json::to_string(&spans(false).await).unwrap();
    assert_eq!(without.matches("secret").count(), 0, "{without}");
}

#[tokio::test]
async fn failures_are_marked_in_the_span_they_happened_in() {
    let a: Agent = Agent::new("A");
    let tracer = MemoryTracer::new();
    let model = ScriptedModel::new().fail("overloaded");
    let runner = Runner::new(&a).model(model).tracer(tracer.clone());
    runner.run("x").await.unwrap_err();
    let errors: Vec<(&str, Option<String>)> = tracer
        .spans()
        .iter()
        .map(|span| {
            (
                span.data.kind(),
                span.error.as_ref().map(|e| e.message.clone()),
            )
        })
        .collect();
    assert_eq!(
        errors,
        [
            ("task", None),
            ("agent", Some("Error in agent run".to_owned())),
            ("turn", None),
            ("generation", Some("the model failed".to_owned())),
        ]
    );
}

/// A subscriber that records each span with its parent, and the spans that are entered.
#[derive(Clone, Default)]
struct Listing(
    std::sync::Arc<std::sync::Mutex<Vec<Listed>>>,
    std::sync::Arc<std::sync::Mutex<Vec<u64>>>,
);

type Listed = (
    &'static str,
    Option<u64>,
    &'static tracing::Metadata<'static>,
);

impl tracing::Subscriber for Listing {
    fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
        metadata.is_span()
    }

    fn new_span(&self, span: &tracing::span::Attributes<'_>) -> tracing::span::Id {
        let parent = span.parent().map(tracing::span::Id::into_u64);
        let mut listed = self.0.lock().unwrap();
        listed.push((span.metadata().name(), parent, span.metadata()));
        tracing::span::Id::from_u64(listed.len() as u64)
    }

    fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
    fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
    fn event(&self, _: &tracing::Event<'_>) {}

    fn enter(&self, id: &tracing::span::Id) {
        self.1.lock().unwrap().push(id.into_u64());
    }

    fn exit(&self, id: &tracing::span::Id) {
        assert_eq!(self.1.lock().unwrap().pop(), Some(id.into_u64()));
    }

    fn current_span(&self) -> Current {
        let spans = self.0.lock().unwrap();
        match self.1.lock().unwrap().last() {
            Some(id) => {
                let (_, _, metadata) = spans[usize::try_from(*id).unwrap() - 1];
                Current::new(tracing::span::Id::from_u64(*id), metadata)
            }
            None => Current::none(),
        }
    }
}

#[test]
fn without_a_tracer_spans_go_to_the_subscriber_below_the_applications_own() {
    let listing = Listing::default();
    tracing::subscriber::with_default(listing.clone(), || {
        let _application = tracing::info_span!("application").entered();
        let b: Agent = Agent::new("B");
        let a = Agent::new("A").handoff(&b);
        let model = ScriptedModel::new().call("transfer_to_b", "{}").say("ok");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(Runner::new(&a).model(model).run("x"))
            .unwrap();
    });
    let spans = listing.0.lock().unwrap().clone();
    let named: Vec<(&str, &str)> = spans
        .iter()
        .map(|(name, parent, _)| {
            let parent = parent.map_or("none", |id| spans[usize::try_from(id).unwrap() - 1].0);
            (*name, parent)
        })
        .collect();
    assert_eq!(
        named,
        [
            ("application", "none"),
            ("task", "application"),
            ("agent", "task"),
            ("turn", "agent"),
            ("generation", "turn"),
            ("handoff", "turn"),
            ("agent", "task"),
            ("turn", "agent"),
            ("generation", "turn"),
        ]
    );
}

#[test]
fn user_code_runs_within_the_span_of_its_step() {
    let entered = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let record = {
        let entered = entered.clone();
        move |what: &'static str| {
            let span = tracing::Span::current();
            let name = span.metadata().map_or("none", tracing::Metadata::name);
            entered.lock().unwrap().push((what, name));
        }
    };
    let (in_tool, in_callback, in_condition) = (record.clone(), record.clone(), record);
    tracing::subscriber::with_default(Listing::default(), || {
        let b: Agent = Agent::new("B");
        let to_b = handoff(&b)
            .on_handoff(move |_ctx| in_callback("callback"))
            .enabled_if(move |_ctx, _agent| {
                in_condition("condition");
                true
            });
        let lookup = tool("t").run(move |_ctx, (): ()| {
            let in_tool = in_tool.clone();
            async move {
                tokio::task::yield_now().await;
                in_tool("tool");
                "1"
            }
        });
        let a = Agent::new("A").tool(lookup).handoff(to_b);
        let model = ScriptedModel::new()
            .calls([("t", "{}"), ("transfer_to_b", "{}")])
            .say("ok");
        let runtime = tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap();
        runtime
            .block_on(Runner::new(&a).model(model).run("x"))
            .unwrap();
    });
    assert_eq!(
        *entered.lock().unwrap(),
        [
            ("condition", "turn"),
            ("tool", "function"),
            ("condition", "handoff"),
            ("callback", "handoff"),
        ]
    );
}

#[tokio::test]
async fn identifiers_are_read_back_from_text_and_json() {
    let agent: Agent = Agent::new("A");
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&agent).model(ScriptedModel::new().say("ok"));
    runner.tracer(tracer.clone()).run("x").await.unwrap();
    for span in tracer.spans() {
        assert_eq!(span.id.to_string().parse(), Ok(span.id));
        let json = json!({"span": span.id, "trace": span.trace.id});
        assert_eq!(
            serde_json::from_value(json["span"].clone()).ok(),
            Some(span.id)
        );
        let trace: TraceId = serde_json::from_value(json["trace"].clone()).unwrap();
        assert_eq!(trace, span.trace.id);
        assert_eq!(span.trace.id.as_str().parse(), Ok(trace));
    }
    for invalid in [
        "",
        "span_",
        "trace_0123456789abcdef01234567",
        "span_0123456789abcdef0123456",
        "span_0123456789abcdef012345678",
        "span_+123456789abcdef01234567",
        "span_0123456789abcdef0123456é",
        "span_000000000000000000000001",
    ] {
        let error = invalid.parse::<SpanId>().unwrap_err().to_string();
        assert_eq!(
            error,
            "a span identifier is \"span_\" and 24 hexadecimal digits, the first 8 of which are not \
             all zero"
        );
        let in_json = serde_json::from_value::<SpanId>(json!(invalid)).unwrap_err();
        assert_eq!(in_json.to_string(), error);
    }
}
