//! The filters of the library, on what the next agent's model sees and what the session keeps.

use switchboard_core::filters::{self, Filter, IntoFilter, Redaction};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, ErrorKind, HandoffInputData, Item, Items, MemorySession, Runner, handoff, tool,
};

use crate::told;

/// A conversation with a tool call in it.
fn history() -> Vec<Item> {
    vec![
        Item::user("one"),
        Item::assistant("two"),
        Item::function_call("old", "lookup", r#"{"mail":"ann@example.com"}"#),
        Item::function_call_output("old", "ann@example.com, 4111 1111 1111 1111"),
        Item::user("five"),
    ]
}

/// What the next agent's model sees and what the session keeps, after a turn with a tool and a
/// handoff.
async fn carried<M>(filter: impl IntoFilter<(), M>) -> (Vec<String>, Items) {
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk")
        .tool(tool("t").run(|_ctx, (): ()| "1"))
        .handoff(handoff(&boss).filter(filter));
    let model = ScriptedModel::new()
        .call("t", "{}")
        .call("transfer_to_boss", "{}")
        .say("ok");
    let session = MemorySession::new();
    let runner = Runner::new(&clerk).model(model.clone()).session(&session);
    runner.run(history()).await.unwrap();
    (told(&model.requests()[2].input), session.items())
}

#[tokio::test]
async fn the_last_items_are_kept_and_no_half_of_a_call() {
    let everything = carried(|data: HandoffInputData| data).await.0;
    assert_eq!(everything.len(), 9);
    let (seen, stored) = carried(filters::keep_last(4)).await;
    assert_eq!(seen, everything[5..]);
    assert_eq!(stored.len(), 10, "the record stays whole");
    // The cut goes through the call of `t` and its output.
    assert_eq!(carried(filters::keep_last(3)).await.0, everything[7..]);
    assert_eq!(carried(filters::keep_last(0)).await.0, [""; 0]);
    assert_eq!(carried(filters::keep_last(99)).await.0, everything);
}

#[tokio::test]
async fn the_first_and_the_last_items_are_kept() {
    let everything = carried(|data: HandoffInputData| data).await.0;
    let (seen, _) = carried(filters::keep_first_and_last(1, 2)).await;
    assert_eq!(seen, [&everything[..1], &everything[7..]].concat());
    let (seen, _) = carried(filters::keep_first_and_last(3, 2)).await;
    assert_eq!(
        seen,
        [&everything[..2], &everything[7..]].concat(),
        "a lone call falls away"
    );
    assert_eq!(
        carried(filters::keep_first_and_last(5, 6)).await.0,
        everything
    );
}

#[tokio::test]
async fn a_budget_keeps_what_fits() {
    let everything = carried(|data: HandoffInputData| data).await.0;
    let one_each: Filter = filters::token_budget_by(4, |_item| 1);
    assert_eq!(carried(one_each).await.0, everything[5..]);
    assert_eq!(carried(filters::token_budget(100_000)).await.0, everything);
    assert_eq!(carried(filters::token_budget(0)).await.0, [""; 0]);
    assert_eq!(filters::estimated_tokens(&Item::user("账单")), 9);
}

#[tokio::test]
async fn reasoning_can_be_left_behind() {
    let reasoning = Item::from_json(r#"{"type":"reasoning","id":"r","summary":[]}"#).unwrap();
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(filters::drop_reasoning()));
    let call = Item::function_call("c", "transfer_to_boss", "{}");
    let model = ScriptedModel::new()
        .reply([reasoning.clone(), call])
        .say("ok");
    let result = Runner::new(&clerk)
        .model(model.clone())
        .run("x")
        .await
        .unwrap();
    assert_eq!(model.requests()[1].input.len(), 3);
    assert!(
        result
            .new_items()
            .iter()
            .any(|made| *made.item() == reasoning)
    );
}

#[tokio::test]
async fn redaction_reaches_everything_the_next_agent_sees_and_nothing_the_session_keeps() {
    let (seen, stored) = carried(filters::redact_pii()).await;
    let seen = seen.join("\n");
    assert!(seen.contains("[EMAIL], [CARD]"), "{seen}");
    let kept = stored
        .iter()
        .filter(|item| item.as_json().contains("ann@example.com"));
    assert_eq!(kept.count(), 2);

    // Also inside a summary of the conversation.
    let nested = filters::nest_history().then(Redaction::new().emails().card_numbers());
    let (seen, _) = carried(nested).await;
    let seen = seen.join("\n");
    assert!(
        seen.contains("CONVERSATION HISTORY") && seen.contains("[EMAIL]"),
        "{seen}"
    );
    assert!(
        !seen.contains("example.com") && !seen.contains("4111"),
        "{seen}"
    );
}

#[tokio::test]
async fn a_note_goes_in_front() {
    let note = filters::note(|data: &HandoffInputData| {
        format!("{} items before.", data.history_items().len())
    });
    let (seen, _) = carried(filters::keep_last(2).then(note)).await;
    assert_eq!(seen[0], "developer: 0 items before.");
    assert_eq!(seen.len(), 3);
}

#[tokio::test]
async fn a_filter_can_depend_on_the_data() {
    let long = |data: &HandoffInputData| data.history_items().len() > 3;
    let short = |data: &HandoffInputData| data.history_items().len() < 3;
    assert_eq!(
        carried(filters::when(long, filters::keep_last(2)))
            .await
            .0
            .len(),
        2
    );
    assert_eq!(
        carried(filters::when(short, filters::keep_last(2)))
            .await
            .0
            .len(),
        9
    );
}

#[tokio::test]
async fn a_model_writes_the_summary_of_what_is_older() {
    let writer = ScriptedModel::new().say("Ann wants a refund.");
    let (seen, _) = carried(filters::summarize(writer.clone(), 2)).await;
    assert_eq!(
        seen[0],
        "assistant: Summary of the conversation so far: Ann wants a refund."
    );
    assert_eq!(seen.len(), 3);
    let asked = &writer.requests()[0];
    assert!(
        asked
            .input
            .last()
            .unwrap()
            .text()
            .unwrap()
            .contains("1. user: one")
    );

    let unasked = ScriptedModel::new();
    assert_eq!(
        carried(filters::summarize(unasked.clone(), 99))
            .await
            .0
            .len(),
        9
    );
    assert_eq!(unasked.requests().len(), 0);
}

#[tokio::test]
async fn a_summary_that_fails_leaves_the_run_before_the_handoff() {
    let boss: Agent = Agent::new("Boss");
    let broken = filters::summarize(ScriptedModel::new().fail("overloaded"), 0);
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(broken));
    let model = ScriptedModel::new().call("transfer_to_boss", "{}");
    let error = Runner::new(&clerk).model(model).run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    assert!(error.to_string().contains("overloaded"), "{error}");
    assert_eq!(error.run().unwrap().agent(), "Clerk");
}
