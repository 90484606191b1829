//! Handoffs that wait, and handoffs beside calls that wait.

use serde_json::{Value, json};
use switchboard_core::approval::{Decision, InterruptionKind};
use switchboard_core::guardrail::{HandoffGuardrail, HandoffVerdict};
use switchboard_core::handoff::{HandoffDecision, HandoffInputData};
use switchboard_core::run::{HandoffOutcome, RunStatus};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, Item, Runner, filters, handoff};

use super::{Ran, desk, resume_after};
use crate::{described, stored};

fn transfer(id: &str) -> Item {
    Item::function_call(id, "transfer_to_boss", r#"{"reason":"money"}"#)
}

#[tokio::test]
async fn a_handoff_that_is_approved_calls_back_once_and_takes_place() {
    let events = Ran::default();
    let (asked, called) = (events.clone(), events.clone());
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(
        handoff(&boss)
            .payload_schema(json!({"type": "object"}))
            .on_handoff(move |_ctx, payload| called.add(format!("callback {payload}")))
            .guardrail(HandoffGuardrail::new("guard", move |_request| {
                asked.add("guardrail");
                HandoffVerdict::Allow
            }))
            .needs_approval_if(|ctx, payload| {
                ctx.to().name() == "Boss" && payload["reason"] == "money"
            }),
    );
    let model = ScriptedModel::new().reply([transfer("h1")]).say("Granted.");
    let runner = Runner::new(&clerk).model(model.clone());

    let result = runner.run("Money!").await.unwrap();

    let waiting = result.interruptions();
    assert_eq!(waiting.len(), 1);
    assert_eq!(
        waiting[0].kind,
        InterruptionKind::Handoff { to: "Boss".into() }
    );
    assert_eq!(&*waiting[0].arguments, r#"{"reason":"money"}"#);
    assert_eq!(result.last_agent().name(), "Clerk");
    assert_eq!(events.take(), ["guardrail"]);

    let mut run = stored(result.run());
    run.decide(&waiting[0], Decision::approve()).unwrap();
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(result.last_agent().name(), "Boss");
    assert_eq!(events.take(), [r#"callback {"reason":"money"}"#]);
    assert_eq!(
        described(&model.requests()[1].input),
        [
            "user: Money!",
            "call transfer_to_boss",
            r#"output of h1: {"assistant": "Boss"}"#,
        ]
    );
}

#[tokio::test]
async fn a_handoff_that_is_rejected_leaves_the_conversation_where_it_is() {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).needs_approval());
    let model = ScriptedModel::new()
        .reply([transfer("h1")])
        .reply([transfer("h2")])
        .say("I cannot.");
    let runner = Runner::new(&clerk).model(model.clone());
    let result = runner.run("Money!").await.unwrap();
    let never = Decision::reject().message("Not today.").always();
    let result = resume_after(&runner, result, never).await;

    assert_eq!(result.final_text(), "I cannot.");
    assert_eq!(result.last_agent().name(), "Clerk");
    let outcomes: Vec<_> = result
        .handoffs()
        .iter()
        .map(|record| record.outcome.clone())
        .collect();
    let refused = HandoffOutcome::Refused("Not today.".to_owned());
    assert_eq!(outcomes, [refused.clone(), refused]);
    let shown = described(&model.requests()[2].input);
    assert_eq!(shown[2], "output of h1: Not today.");
    assert_eq!(shown[4], "output of h2: Not today.");
}

#[tokio::test]
async fn a_filter_is_given_what_was_made_before_and_after_the_wait() {
    let (ran, seen) = (Ran::default(), Ran::default());
    let noted = seen.clone();
    let boss: Agent = Agent::new("Boss");
    let clerk = desk(&ran).handoff(handoff(&boss).filter(move |data: HandoffInputData| {
        let items = data.new_items().iter();
        noted.add(
            items
                .map(|made| made.kind().as_str())
                .collect::<Vec<_>>()
                .join(" "),
        );
        data
    }));
    let calls = [
        Item::function_call("c1", "refund", "{}"),
        Item::function_call("c2", "lookup", "{}"),
        transfer("h1"),
    ];
    let model = ScriptedModel::new().reply(calls).say("Done.");
    let runner = Runner::new(&clerk).model(model.clone());
    let result = runner.run("Money!").await.unwrap();
    assert_eq!(result.status(), RunStatus::Interrupted);
    assert_eq!(seen.take(), [""; 0]);
    let result = resume_after(&runner, result, Decision::approve()).await;
    assert_eq!(
        seen.take(),
        [
            "tool_call_item tool_call_item handoff_call_item tool_call_output_item \
          tool_call_output_item handoff_output_item"
        ]
    );
    let shown = described(&model.requests()[1].input);
    assert_eq!(shown.len(), 7);
    assert_eq!(result.new_items().len(), 7);
}

#[tokio::test]
async fn a_wait_changes_nothing_in_a_nested_history() {
    let history = |needs_approval: bool| async move {
        let ran = Ran::default();
        let boss: Agent = Agent::new("Boss");
        let clerk = if needs_approval {
            desk(&ran)
        } else {
            let free = switchboard_core::tool("refund").run(|_ctx, (): ()| "refunded");
            Agent::new("Desk").tool(free)
        };
        let clerk = clerk.handoff(&boss);
        let calls = [
            Item::output_message("m1", "One moment."),
            Item::function_call("c1", "refund", "{}"),
            transfer("h1"),
        ];
        let model = ScriptedModel::new().reply(calls).say("Done.");
        let runner = Runner::new(&clerk)
            .model(model.clone())
            .nest_handoff_history(true);
        let mut result = runner.run("Money!").await.unwrap();
        if needs_approval {
            result = resume_after(&runner, result, Decision::approve()).await;
        }
        let input = described(&model.requests()[1].input);
        (input, described(&result.to_input_list()))
    };
    assert_eq!(history(true).await, history(false).await);
}

#[tokio::test]
async fn outputs_that_a_filter_takes_out_are_not_in_the_record() {
    let ran = Ran::default();
    let boss: Agent = Agent::new("Boss");
    let clerk = desk(&ran).handoff(handoff(&boss).filter(filters::remove_all_tools()));
    let calls = [Item::function_call("c1", "refund", "{}"), transfer("h1")];
    let model = ScriptedModel::new().reply(calls).say("Done.");
    let runner = Runner::new(&clerk).model(model.clone());
    let result = runner.run("Money!").await.unwrap();
    let result = resume_after(&runner, result, Decision::approve()).await;
    assert_eq!(described(&model.requests()[1].input), ["user: Money!"]);
    assert_eq!(
        described(&result.to_input_list()),
        ["user: Money!", "assistant: Done."]
    );
    assert_eq!(ran.take(), ["refund {}"]);
}

#[tokio::test]
async fn a_person_and_the_condition_see_the_payload_that_a_redirect_gives() {
    let ran = Ran::default();
    let called = ran.clone();
    let schema = json!({"type": "object", "properties": {"amount": {"type": "number"}}});
    let asked = ran.clone();
    let boss: Agent = Agent::new("Boss");
    let to_boss = handoff(&boss)
        .payload_schema(schema.clone())
        .needs_approval_if(move |_ctx, payload| {
            asked.add(format!("condition {payload}"));
            payload["amount"].as_u64() > Some(1_000)
        })
        .on_handoff(move |_ctx, payload: Value| called.add(format!("callback {payload}")));
    let clerk: Agent = Agent::new("Clerk");
    let to_clerk = handoff(&clerk)
        .payload_schema(schema)
        .on_handoff(|_ctx, _payload: Value| {
            HandoffDecision::redirect_with("Boss", json!({"amount": 5_000}))
        });
    let desk = Agent::new("Desk").handoff(to_clerk).handoff(to_boss);
    let model = ScriptedModel::new()
        .reply([Item::function_call(
            "c1",
            "transfer_to_clerk",
            r#"{"amount":1}"#,
        )])
        .say("Hello.");
    let runner = Runner::new(&desk).model(model);
    let result = runner.run("Hi").await.unwrap();
    let waiting = &result.interruptions()[0];
    assert_eq!(&*waiting.arguments, r#"{"amount":5000}"#);
    assert_eq!(
        waiting.kind,
        InterruptionKind::Handoff { to: "Boss".into() }
    );
    let mut run = stored(result.run());
    // A decision on what the model wrote is a decision on something else.
    let mut other = waiting.clone();
    other.arguments = r#"{"amount":1}"#.into();
    assert!(run.decide(&other, Decision::approve()).is_err());
    run.decide(waiting, Decision::approve()).unwrap();
    let result = runner.resume(run).await.unwrap();
    assert_eq!(result.last_agent().name(), "Boss");
    assert_eq!(
        ran.take(),
        [
            r#"condition {"amount":5000}"#,
            r#"callback {"amount":5000}"#
        ]
    );
}
