//! Spans: what they hold, and what they leave out.

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, MemoryTracer, RunConfig, Runner, Span, SpanData, Tracing, handoff, tool,
};

use schemars::JsonSchema;
use serde::Deserialize;

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
