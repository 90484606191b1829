//! Handoffs that fail are told to the model, within a budget.

use std::sync::atomic::{AtomicBool, Ordering};

use schemars::JsonSchema;
use serde::Deserialize;
use switchboard_core::run::{HandoffOutcome, HandoffPolicy, HandoffRetries};
use switchboard_core::stream::HandoffStatus;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::tool::ToolFailure;
use switchboard_core::{Agent, ErrorKind, EventKind, Item, Runner, handoff, tool};

use crate::described;

#[derive(Deserialize, JsonSchema)]
struct Escalation {
    #[expect(dead_code, reason = "only its schema counts")]
    level: u8,
}

fn clerk() -> Agent {
    let boss: Agent = Agent::new("Boss");
    let edge = handoff(&boss)
        .payload::<Escalation>()
        .on_handoff(|_ctx, _payload| ());
    Agent::new("Clerk").handoff(edge)
}

fn transfer(id: &str, arguments: &str) -> Item {
    Item::function_call(id, "transfer_to_boss", arguments)
}

#[tokio::test]
async fn a_model_corrects_a_payload_that_it_was_told_of() {
    let model = ScriptedModel::new()
        .reply([transfer("c1", r#"{"level":"high"}"#)])
        .reply([transfer("c2", r#"{"level":3}"#)])
        .say("Yes?");
    let clerk = clerk();
    let runner = Runner::new(&clerk).model(model.clone());
    let mut stream = runner.stream("Help");
    let mut statuses = Vec::new();
    while let Some(event) = stream.next().await {
        if let EventKind::Handoff(handoff) = event.kind {
            statuses.push(handoff.status);
        }
    }
    let result = stream.finish().await.unwrap();

    assert_eq!(result.last_agent().name(), "Boss");
    assert_eq!(statuses, [HandoffStatus::Failed, HandoffStatus::Taken]);
    let told = described(&model.requests()[1].input);
    assert_eq!(
        told[2],
        "output of c1: The handoff was not made: its arguments are invalid: at /level: expected \
         integer, got string. Correct them and call transfer_to_boss again."
    );
    let outcomes: Vec<_> = result
        .handoffs()
        .iter()
        .map(|record| &record.outcome)
        .collect();
    assert!(matches!(
        outcomes[..],
        [HandoffOutcome::Failed(_), HandoffOutcome::Taken]
    ));
}

#[tokio::test]
async fn the_run_ends_with_the_error_once_the_budget_is_used_up() {
    for (retries, requests) in [
        (None, 1),
        (Some(HandoffRetries::new(5, 2)), 3),
        (Some(HandoffRetries::new(1, 2)), 2),
        (Some(HandoffRetries::new(0, 2)), 1),
    ] {
        let model = (0..6).fold(ScriptedModel::new(), |model, number| {
            model.reply([transfer(&format!("c{number}"), "{}")])
        });
        let clerk = clerk();
        let policy = HandoffPolicy::production().retries(retries);
        let runner = Runner::new(&clerk)
            .model(model.clone())
            .handoff_policy(policy);
        let error = runner.run("Help").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ModelBehavior);
        assert!(error.to_string().contains("payload"), "{error}");
        assert_eq!(model.requests().len(), requests, "{retries:?}");
    }
}

#[tokio::test]
async fn a_failing_callback_is_told_without_its_private_error() {
    for (explained, told) in [
        (
            false,
            "output of c1: The handoff to Boss could not be made because of an error. Try again, or \
             go on without it.",
        ),
        (true, "output of c1: The boss is on holiday."),
    ] {
        let boss: Agent = Agent::new("Boss");
        let edge = handoff(&boss).on_handoff(move |_ctx| {
            let error: Result<(), switchboard_core::callback::BoxError> = Err(if explained {
                ToolFailure::new("The boss is on holiday.").into()
            } else {
                "password hunter2 is wrong".into()
            });
            error
        });
        let clerk = Agent::new("Clerk").handoff(edge);
        let model = ScriptedModel::new()
            .reply([transfer("c1", "{}")])
            .say("I do it myself.");
        let runner = Runner::new(&clerk).model(model.clone());
        let result = runner.run("Help").await.unwrap();
        assert_eq!(result.last_agent().name(), "Clerk");
        assert_eq!(described(&model.requests()[1].input)[2], told);
    }
}

#[tokio::test]
async fn a_condition_that_turned_false_is_told() {
    static IS_OPEN: AtomicBool = AtomicBool::new(true);
    let boss: Agent = Agent::new("Boss");
    let close = tool("close").run(|_ctx, (): ()| {
        IS_OPEN.store(false, Ordering::SeqCst);
        "closed"
    });
    let edge = handoff(&boss).enabled_if(|_ctx, _agent| IS_OPEN.load(Ordering::SeqCst));
    let clerk = Agent::new("Clerk").tool(close).handoff(edge);
    let close = Item::function_call("c1", "close", "{}");
    let model = ScriptedModel::new()
        .reply([close, transfer("c2", "{}")])
        .say("I stay.");
    let result = Runner::new(&clerk)
        .model(model.clone())
        .run("Help")
        .await
        .unwrap();
    assert_eq!(result.last_agent().name(), "Clerk");
    let shown = described(&model.requests()[1].input);
    assert_eq!(
        shown[4],
        "output of c2: The handoff to Boss is not possible any more. Go on without it."
    );
}

#[tokio::test]
async fn a_handoff_that_does_not_exist_or_is_disabled_is_told() {
    let boss: Agent = Agent::new("Boss");
    let edge = handoff(&boss).tool_name("ask_boss").enabled(false);
    let clerk = Agent::new("Clerk").handoff(edge);
    let model = ScriptedModel::new()
        .reply([Item::function_call("c1", "transfer_to_moon", "{}")])
        .reply([Item::function_call("c2", "ask_boss", "{}")])
        .say("I stay.");
    let result = Runner::new(&clerk)
        .model(model.clone())
        .run("Help")
        .await
        .unwrap();
    assert_eq!(result.final_text(), "I stay.");
    let shown = described(&model.requests()[2].input);
    assert_eq!(shown[2], "output of c1: Tool 'transfer_to_moon' not found.");
    assert_eq!(shown[4], "output of c2: Tool 'ask_boss' not found.");
    assert_eq!(result.handoffs().len(), 2);

    let other = ScriptedModel::new().reply([Item::function_call("c1", "fly", "{}")]);
    let error = Runner::new(&clerk)
        .model(other)
        .run("Help")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ModelBehavior);
}
