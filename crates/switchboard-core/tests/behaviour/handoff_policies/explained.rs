//! Spans that tell why a handoff went as it did.

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_core::approval::Decision;
use switchboard_core::filters::{self, estimated_tokens};
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict};
use switchboard_core::run::{HandoffPolicy, LoopLimits, SeveralHandoffs};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{HandoffDecider, HandoffDetails, MemoryTracer, Span, SpanData};
use switchboard_core::{Agent, Item, Runner, Step, handoff, tool};

use crate::stored;
use crate::stored_runs::assert_fits_schema;

#[derive(Deserialize, JsonSchema)]
struct Escalation {
    #[serde(rename = "level")]
    _level: u32,
}

fn details(span: &Span) -> Option<&HandoffDetails> {
    match &span.data {
        SpanData::Handoff { details, .. } => Some(details),
        _ => None,
    }
}

/// The handoff spans of a run with an agent that looks and hands off.
async fn spans(
    change: impl Fn(Runner) -> Runner,
    edge: impl Fn(&Agent) -> switchboard_core::Handoff,
    calls: &[Item],
) -> (Vec<Span>, ScriptedModel) {
    let (b, c): (Agent, Agent) = (Agent::new("B"), Agent::new("C"));
    let a = Agent::new("A")
        .tool(tool("look").run(|_ctx, (): ()| "found"))
        .handoff(edge(&b))
        .handoff(&c);
    let tracer = MemoryTracer::new();
    let model = ScriptedModel::new()
        .call("look", "{}")
        .reply(calls.to_vec())
        .say("Hi.");
    let runner = change(Runner::new(&a).model(model.clone()).tracer(tracer.clone()));
    let _ = runner.run("x").await;
    (tracer.spans(), model)
}

fn call(arguments: &str) -> Vec<Item> {
    vec![Item::function_call("c1", "transfer_to_b", arguments)]
}

#[tokio::test]
async fn they_have_the_hash_of_the_payload_the_tokens_and_the_model_call_that_asked() {
    let edge = |b: &Agent| {
        handoff(b)
            .payload::<Escalation>()
            .on_handoff(|_ctx, _escalation| ())
            .filter(filters::keep_last(1))
            .build()
    };
    let mut hashes = Vec::new();
    for (arguments, is_sensitive) in [
        (r#"{"level": 1}"#, false),
        (r#"{ "level":1 }"#, false),
        (r#"{"level": 2}"#, false),
        (r#"{"level": 2}"#, true),
    ] {
        let change = |runner: Runner| runner.trace_sensitive_data(is_sensitive);
        let (spans, model) = spans(change, edge, &call(arguments)).await;
        let span = spans.iter().find(|span| details(span).is_some()).unwrap();
        let made = details(span).unwrap();
        hashes.push(made.payload_hash.clone());
        let shown = model.requests_of("B")[0].input.clone();
        let tokens: usize = shown.iter().map(estimated_tokens).sum();
        assert_eq!(made.carried_tokens, Some(tokens));
        // The second model call, in the turn that the handoff lies under.
        let cause = spans.iter().find(|span| Some(span.id) == made.caused_by);
        let cause = cause.unwrap();
        assert_eq!(cause.data.kind(), "generation");
        assert_eq!(cause.parent, span.parent);
    }
    assert_eq!(hashes[0], hashes[1]);
    assert_ne!(hashes[0], hashes[2]);
    assert!(hashes[0].is_some() && hashes[3].is_none(), "{hashes:?}");
}

#[tokio::test]
async fn they_name_the_policy_that_fired() {
    let plain = |b: &Agent| handoff(b).build();
    let refused = |b: &Agent| {
        handoff(b)
            .guardrail(HandoffGuardrail::new("office hours", |_request| {
                HandoffVerdict::refuse("closed")
            }))
            .build()
    };
    let strict = |b: &Agent| {
        handoff(b)
            .payload::<Escalation>()
            .on_handoff(|_ctx, _escalation| ())
            .build()
    };
    let none = |runner: Runner| runner;
    let limited = |runner: Runner| {
        let limits = LoopLimits::none().handoffs(0);
        runner.handoff_policy(HandoffPolicy::production().loops(limits))
    };
    let choosing = |runner: Runner| {
        let policy = HandoffPolicy::production().several(SeveralHandoffs::AskToChoose);
        runner.handoff_policy(policy)
    };
    let mut two = call("{}");
    two.push(Item::function_call("c2", "transfer_to_c", "{}"));
    type Edge = fn(&Agent) -> switchboard_core::Handoff;
    type Change = fn(Runner) -> Runner;
    let cases: [(Change, Edge, Vec<Item>, HandoffDecider, &str); 4] = [
        (
            none,
            refused,
            call("{}"),
            HandoffDecider::Guardrail,
            "office hours",
        ),
        (
            limited,
            plain,
            call("{}"),
            HandoffDecider::LoopLimit,
            "loops.handoffs",
        ),
        (
            choosing,
            plain,
            two,
            HandoffDecider::SeveralHandoffs,
            "several.ask_to_choose",
        ),
        (none, strict, call("{}"), HandoffDecider::Failure, "retries"),
    ];
    for (change, edge, calls, decider, policy) in cases {
        let (spans, _) = spans(change, edge, &calls).await;
        let made = spans.iter().find_map(details).unwrap();
        assert_eq!(made.decided_by, Some(decider));
        assert_eq!(made.policy.as_deref(), Some(policy));
    }
}

#[tokio::test]
async fn a_run_that_waited_and_was_restored_names_the_model_call_that_asked() {
    let b: Agent = Agent::new("B");
    let a = Agent::new("A").handoff(handoff(&b).needs_approval());
    let tracer = MemoryTracer::new();
    let model = ScriptedModel::new().call("transfer_to_b", "{}").say("Hi.");
    let runner = Runner::new(&a).model(model).tracer(tracer.clone());
    let mut run = runner.begin("x");
    while !matches!(run.step(), Step::Done(_)) {
        for waiting in run.interruptions() {
            run.decide(&waiting, Decision::approve()).unwrap();
        }
        runner.step(&mut run).await.unwrap();
        assert_fits_schema(&run);
        run = stored(&run);
    }
    let spans = tracer.spans();
    let generation = spans.iter().find(|span| span.data.kind() == "generation");
    let causes: Vec<_> = spans.iter().filter_map(details).collect();
    assert_eq!(causes.len(), 2, "one that waits, and one that goes on");
    for made in causes {
        assert_eq!(made.caused_by, Some(generation.unwrap().id));
    }
}
