//! The filters of the library, on what the next agent's model sees and what the session keeps.

use switchboard_core::filters::{self, Filter, IntoFilter, Redaction};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, BoxError, ErrorKind, HandoffInputData, Item, Items, MemorySession, ModelResponse, Run,
    RunContext, Runner, Team, Usage, handoff, tool,
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

/// What a filter leaves of a history.
async fn left_of(history: &[Item], filter: Filter) -> Vec<Item> {
    let ctx = RunContext::new(());
    let data = HandoffInputData::new(history.to_vec(), vec![], vec![], ctx);
    let filtered = filter.apply(data).await.unwrap();
    filtered.history_items().iter().cloned().collect()
}

fn reasoning(id: &str) -> Item {
    let json = format!(r#"{{"type":"reasoning","id":"{id}","summary":[]}}"#);
    Item::from_json(json).unwrap()
}

#[tokio::test]
async fn reasoning_stays_with_the_item_it_led_to_or_falls_with_it() {
    let history = [
        reasoning("r1"),
        Item::function_call("c", "f", "{}"),
        Item::function_call_output("c", "1"),
        reasoning("r2"),
        Item::assistant("done"),
        Item::user("thanks"),
    ];
    for (filter, expected) in [
        (filters::keep_last(2), &history[3..]),
        (filters::keep_last(5), &history[..]),
        (filters::keep_last(4), &history[3..]),
        (filters::keep_first_and_last(1, 1), &history[5..]),
        (filters::token_budget_by(2, |_| 1), &history[5..]),
        (filters::token_budget_by(3, |_| 1), &history[3..]),
        (filters::token_budget_by(5, |_| 1), &history[3..]),
    ] {
        assert_eq!(left_of(&history, filter).await, expected);
    }
}

#[tokio::test]
async fn a_call_is_shown_with_its_first_output_and_nothing_is_shown_twice() {
    let call = Item::function_call("c", "f", "{}");
    let output = |text| Item::function_call_output("c", text);
    let history = [
        output("0"),
        call.clone(),
        call.clone(),
        output("1"),
        output("2"),
    ];
    let left = left_of(&history, filters::keep_last(9)).await;
    assert_eq!(left, [call, output("1")]);
}

#[tokio::test]
async fn halves_stay_where_the_user_says_so() {
    let everything = carried(|data: HandoffInputData| data).await.0;
    let exact = filters::keep_last(3).allow_orphans();
    assert_eq!(carried(exact).await.0, everything[6..]);
    let exact = filters::keep_first_and_last(3, 2).allow_orphans();
    let expected = [&everything[..3], &everything[7..]].concat();
    assert_eq!(carried(exact).await.0, expected);
    // It holds for the whole chain, also where a part of it waits, and for nothing after it.
    let chain = || {
        let wait = |data: HandoffInputData| async move { data };
        filters::keep_last(4)
            .then(wait)
            .then(filters::keep_last(3))
            .allow_orphans()
    };
    assert_eq!(carried(chain()).await.0, everything[6..]);
    let paired_after = chain().then(filters::drop_reasoning());
    assert_eq!(carried(paired_after).await.0, everything[7..]);
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
    let reasoning = reasoning("r");
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
async fn notes_of_several_handoffs_stand_with_the_latest_first_and_none_twice() {
    let note = |text: &'static str| filters::note(move |_: &HandoffInputData| text);
    let team = Team::new()
        .agent(Agent::new("A").handoff(handoff("B").filter(note("from A"))))
        .agent(
            Agent::new("B")
                .handoff(handoff("A").filter(note("from B")))
                .handoff(handoff("C").filter(note("from A"))),
        )
        .agent(Agent::new("C"))
        .build()
        .unwrap();
    let model = ScriptedModel::new()
        .call("transfer_to_b", "{}")
        .call("transfer_to_a", "{}")
        .call("transfer_to_b", "{}")
        .call("transfer_to_c", "{}")
        .say("ok");
    let runner = Runner::new(&team["A"]).model(model.clone());
    runner.run("x").await.unwrap();
    let notes = |request: usize| {
        let seen = told(&model.requests()[request].input);
        let notes = seen
            .into_iter()
            .take_while(|said| said.starts_with("developer"));
        notes.collect::<Vec<_>>()
    };
    assert_eq!(notes(1), ["developer: from A"]);
    assert_eq!(notes(2), ["developer: from B", "developer: from A"]);
    assert_eq!(notes(3), ["developer: from A", "developer: from B"]);
    assert_eq!(notes(4), ["developer: from A", "developer: from B"]);
}

#[tokio::test]
async fn a_note_is_there_once_after_a_handoff_that_was_resumed() {
    let session = MemorySession::new();
    let boss: Agent = Agent::new("Boss");
    let runner = |is_down: bool, model: &ScriptedModel| {
        let look_up = move |data: HandoffInputData| {
            if is_down {
                Err(BoxError::from("down"))
            } else {
                Ok(data)
            }
        };
        let filter = filters::note(|_: &HandoffInputData| "noted").then(look_up);
        let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(filter));
        Runner::new(&clerk).model(model.clone()).session(&session)
    };
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("ok");
    let error = runner(true, &model).run("x").await.unwrap_err();
    let stored = serde_json::to_string(error.run().unwrap()).unwrap();
    let run: Run = serde_json::from_str(&stored).unwrap();
    runner(false, &model).resume(run).await.unwrap();
    let seen = told(&model.requests()[1].input);
    assert_eq!(seen[..2], ["developer: noted", "user: x"]);
    assert_eq!(seen.len(), 4);
    let stored = told(&session.items());
    assert!(
        !stored.contains(&"developer: noted".to_owned()),
        "{stored:?}"
    );
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
async fn a_summary_takes_no_call_apart() {
    let everything = carried(|data: HandoffInputData| data).await.0;
    for (keep_last, kept) in [(1, 7), (3, 5), (6, 2)] {
        let writer = ScriptedModel::new().say("Short.");
        let (seen, _) = carried(filters::summarize(writer.clone(), keep_last)).await;
        assert_eq!(seen[1..], everything[kept..]);
        let asked = writer.requests()[0].input.last().unwrap().clone();
        assert_eq!(asked.text().unwrap().contains("lookup"), kept > 2);
    }
    // A wide pair, one inside it, and reasoning before both.
    let history = [
        Item::user("x"),
        reasoning("r"),
        Item::function_call("c1", "f", "{}"),
        Item::function_call("c2", "f", "{}"),
        Item::function_call_output("c1", "1"),
        Item::function_call_output("c2", "2"),
    ];
    let writer = ScriptedModel::new().say("Short.");
    let left = left_of(&history, filters::summarize(writer, 1)).await;
    assert_eq!(left[1..], history[1..]);
}

#[tokio::test]
async fn what_a_summary_uses_counts_in_the_run() {
    let used = Usage {
        requests: 1,
        input_tokens: 100,
        output_tokens: 20,
        ..Usage::default()
    };
    let writer = || {
        let said = ModelResponse::new([Item::assistant("Short.")]).usage(used);
        ScriptedModel::new().respond_with(said)
    };
    let boss: Agent = Agent::new("Boss");
    let filter = filters::summarize(writer(), 0);
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(filter));
    let model = ScriptedModel::new()
        .call("transfer_to_boss", "{}")
        .say("ok");
    let result = Runner::new(&clerk).model(model).run("x").await.unwrap();
    let both_models = Usage {
        requests: 3,
        ..used
    };
    assert_eq!(*result.usage(), both_models);

    // Also where the handoff then fails.
    let fail = |_: HandoffInputData| Err::<HandoffInputData, _>("down");
    let filter = filters::summarize(writer(), 0).then(fail);
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(filter));
    let model = ScriptedModel::new().call("transfer_to_boss", "{}");
    let error = Runner::new(&clerk).model(model).run("x").await.unwrap_err();
    assert_eq!(error.run().unwrap().usage().total_tokens(), 120);
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
