//! Spans: what they hold, and what they leave out.

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, MemoryTracer, RunConfig, Runner, Span, SpanData, Tracing, handoff, tool,
};

use schemars::JsonSchema;
use serde::Deserialize;
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
        tracing: Tracing::To(std::sync::Arc::new(tracer.clone())),
        trace_sensitive_data,
        ..RunConfig::default()
    };
    Runner::new(&a)
        .config(config)
        .model(model)
        .run("x")
        .await
        .unwrap();
    tracer.spans()
}

#[tokio::test]
async fn spans_form_a_tree_that_says_who_did_what() {
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
            ("agent", "none"),
            ("turn", "agent"),
            ("generation", "turn"),
            ("function", "turn"),
            ("handoff", "turn"),
            ("agent", "none"),
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
        from_agent,
        to_agent,
        payload,
        carried_items,
    } = &spans[4].data
    else {
        panic!("{:?}", spans[4]);
    };
    assert_eq!((&**from_agent, to_agent.as_deref()), ("A", Some("B")));
    assert_eq!(payload.as_ref().unwrap()["reason"], "secret payload");
    assert_eq!(*carried_items, Some(5));
}

#[tokio::test]
async fn sensitive_data_can_be_left_out() {
    let with = serde_json::to_string(&spans(true).await).unwrap();
    assert_eq!(with.matches("secret").count(), 6, "{with}");
    let without = serde_json::to_string(&spans(false).await).unwrap();
    assert_eq!(without.matches("secret").count(), 0, "{without}");
}

#[tokio::test]
async fn what_failed_is_marked_where_it_failed() {
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
            ("agent", Some("Error in agent run".to_owned())),
            ("turn", None),
            ("generation", Some("the model failed".to_owned())),
        ]
    );
}

/// A subscriber that writes down each span with the name of its parent.
#[derive(Clone, Default)]
struct Listing(std::sync::Arc<std::sync::Mutex<Vec<Listed>>>);

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
    fn enter(&self, _: &tracing::span::Id) {}
    fn exit(&self, _: &tracing::span::Id) {}

    fn current_span(&self) -> Current {
        let spans = self.0.lock().unwrap();
        // The first span made is the application's, and it is current throughout.
        match spans.first() {
            Some((_, _, metadata)) => Current::new(tracing::span::Id::from_u64(1), metadata),
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
            ("agent", "application"),
            ("turn", "agent"),
            ("generation", "turn"),
            ("handoff", "turn"),
            ("agent", "application"),
            ("turn", "agent"),
            ("generation", "turn"),
        ]
    );
}
