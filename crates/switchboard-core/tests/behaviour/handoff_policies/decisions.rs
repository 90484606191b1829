//! Callbacks and guardrails that redirect a handoff or ask a person.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use switchboard_core::approval::Decision;
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict};
use switchboard_core::handoff::HandoffDecision;
use switchboard_core::run::{HandoffOutcome, RunStatus};
use switchboard_core::stream::HandoffStatus;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::{HandoffDecider, MemoryTracer, SpanData};
use switchboard_core::{Agent, ErrorKind, Item, Runner, handoff};

use crate::approvals::{Ran, decide_all};
use crate::{described, stored};

#[derive(Deserialize, JsonSchema)]
struct Note {
    text: String,
}

fn transfer() -> Item {
    Item::function_call("c1", "transfer_to_boss", r#"{"text":"from the model"}"#)
}

#[tokio::test]
async fn a_redirect_asks_the_condition_the_guardrails_and_the_callback_of_the_other_handoff() {
    let events = Ran::default();
    let (guarded, called) = (events.clone(), events.clone());
    let (boss, deputy): (Agent, Agent) = (Agent::new("Boss"), Agent::new("Deputy"));
    let clerk = Agent::new("Clerk")
        .handoff(handoff(&boss).on_handoff(|_ctx| {
            HandoffDecision::redirect_with("Deputy", json!({"text": "from the callback"}))
        }))
        .handoff(
            handoff(&deputy)
                .payload::<Note>()
                .on_handoff(move |ctx, note| {
                    called.add(format!("{} {}", ctx.to().name(), note.text));
                })
                .guardrail(HandoffGuardrail::new("g", move |_request| {
                    guarded.add("guardrail");
                    HandoffVerdict::Allow
                })),
        );
    let model = ScriptedModel::new().reply([transfer()]).say("Yes?");
    let runner = Runner::new(&clerk).model(model.clone());

    let result = runner.run("Help").await.unwrap();

    assert_eq!(result.last_agent().name(), "Deputy");
    assert_eq!(events.take(), ["guardrail", "Deputy from the callback"]);
    let shown = described(&model.requests()[1].input);
    assert_eq!(shown[2], r#"output of c1: {"assistant": "Deputy"}"#);
    let record = &result.handoffs()[0];
    assert_eq!(
        (&*record.to, record.redirected_from.as_deref()),
        ("Deputy", Some("Boss"))
    );
    assert_eq!(record.payload, json!({"text": "from the callback"}));
}

#[tokio::test]
async fn a_guardrail_redirects_to_an_agent_without_a_handoff_of_its_own() {
    let deputy: Agent = Agent::new("Deputy");
    let boss = Agent::new("Boss").handoff(&deputy);
    let guardrail = HandoffGuardrail::new("g", |_request| HandoffVerdict::redirect("Deputy"));
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).guardrail(guardrail));
    let model = ScriptedModel::new().reply([transfer()]).say("Yes?");
    let result = Runner::new(&clerk).model(model).run("Help").await.unwrap();
    assert_eq!(result.last_agent().name(), "Deputy");
}

#[tokio::test]
async fn redirects_that_lead_nowhere_are_errors_that_say_so() {
    let (boss, deputy): (Agent, Agent) = (Agent::new("Boss"), Agent::new("Deputy"));
    let around = Agent::new("Clerk")
        .handoff(handoff(&boss).on_handoff(|_ctx| HandoffDecision::redirect("Deputy")))
        .handoff(handoff(&deputy).on_handoff(|_ctx| HandoffDecision::redirect("Boss")));
    let nowhere = Agent::new("Clerk")
        .handoff(handoff(&boss).on_handoff(|_ctx| HandoffDecision::redirect("Nobody")));
    let typed = Agent::new("Clerk")
        .handoff(
            handoff(&boss).on_handoff(|_ctx| HandoffDecision::redirect_with("Deputy", json!({}))),
        )
        .handoff(
            handoff(&deputy)
                .payload::<Note>()
                .on_handoff(|_ctx, _note| ()),
        );
    for (clerk, problem) in [
        (around, "redirected more than 8 times"),
        (
            nowhere,
            "redirected to \"Nobody\", which \"Clerk\" does not lead to",
        ),
        (typed, "redirect_with"),
    ] {
        let model = ScriptedModel::new().reply([transfer()]);
        let error = Runner::new(&clerk)
            .model(model)
            .run("Help")
            .await
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Configuration);
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[tokio::test]
async fn a_redirect_whose_condition_does_not_hold_is_told_to_the_model() {
    let (boss, deputy): (Agent, Agent) = (Agent::new("Boss"), Agent::new("Deputy"));
    let clerk = Agent::new("Clerk")
        .handoff(handoff(&boss).on_handoff(|_ctx| HandoffDecision::redirect("Deputy")))
        .handoff(handoff(&deputy).enabled(false));
    let model = ScriptedModel::new().reply([transfer()]).say("I stay.");
    let result = Runner::new(&clerk).model(model).run("Help").await.unwrap();
    assert_eq!(result.last_agent().name(), "Clerk");
    assert!(matches!(
        result.handoffs()[0].outcome,
        HandoffOutcome::Failed(_)
    ));
}

#[tokio::test]
async fn a_callback_or_a_guardrail_asks_a_person() {
    for in_callback in [true, false] {
        let called = Ran::default();
        let noted = called.clone();
        let boss: Agent = Agent::new("Boss");
        let edge = handoff(&boss)
            .on_handoff(move |ctx| {
                if in_callback && !ctx.is_approved() {
                    return HandoffDecision::AskApproval;
                }
                noted.add("callback");
                HandoffDecision::Proceed
            })
            .guardrail(HandoffGuardrail::new("g", move |_request| {
                if in_callback {
                    HandoffVerdict::Allow
                } else {
                    HandoffVerdict::AskApproval
                }
            }));
        let clerk = Agent::new("Clerk").handoff(edge);
        let model = ScriptedModel::new().reply([transfer()]).say("Yes?");
        let runner = Runner::new(&clerk).model(model);
        let result = runner.run("Help").await.unwrap();
        assert_eq!(result.status(), RunStatus::Interrupted);
        assert_eq!(called.take(), [""; 0]);
        let mut run = stored(result.run());
        decide_all(&mut run, &Decision::approve());
        let result = runner.resume(run).await.unwrap();
        assert_eq!(result.last_agent().name(), "Boss");
        assert_eq!(called.take(), ["callback"]);
    }
}

#[tokio::test]
async fn spans_say_who_decided_and_why() {
    let (boss, deputy): (Agent, Agent) = (Agent::new("Boss"), Agent::new("Deputy"));
    let clerk = Agent::new("Clerk")
        .handoff(handoff(&boss).on_handoff(|_ctx| HandoffDecision::redirect("Deputy")))
        .handoff(
            handoff(&deputy).guardrail(HandoffGuardrail::new("g", |request| {
                let is_first = request.data.pre_handoff_items().is_empty();
                HandoffVerdict::refuse_if(is_first, "Not yet.")
            })),
        );
    let again = Item::function_call("c2", "transfer_to_boss", "{}");
    let model = ScriptedModel::new()
        .reply([transfer()])
        .reply([again])
        .say("Yes?");
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&clerk).model(model).tracer(tracer.clone());
    runner.run("Help").await.unwrap();
    let spans = tracer.spans();
    let handoffs: Vec<_> = spans
        .iter()
        .filter_map(|span| match &span.data {
            SpanData::Handoff { details, .. } => Some((
                details.outcome,
                details.decided_by,
                details.reason.as_deref(),
                details.redirected_from.as_deref(),
                details.of_items,
            )),
            _ => None,
        })
        .collect();
    assert_eq!(
        handoffs,
        [
            (
                Some(HandoffStatus::Refused),
                Some(HandoffDecider::Guardrail),
                Some("Not yet."),
                None,
                None,
            ),
            (
                Some(HandoffStatus::Taken),
                Some(HandoffDecider::Callback),
                None,
                Some("Boss"),
                Some(5),
            ),
        ]
    );
}
