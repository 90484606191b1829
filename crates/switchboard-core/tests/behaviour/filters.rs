//! The filters of the library: what the next agent's model sees, and what the session stores.

pub(crate) mod invalid_output;
mod redacted_handoffs;

use switchboard_core::callback::BoxError;
use switchboard_core::filters::{self, Filter, IntoFilter, Pii, Redaction};
use switchboard_core::handoff::HandoffInputData;
use switchboard_core::items::Items;
use switchboard_core::model::Usage;
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, ErrorKind, Item, MemorySession, ModelResponse, Run, RunContext, Runner, handoff, tool,
};

use crate::described;

fn history() -> Vec<Item> {
    vec![
        Item::user("one"),
        Item::assistant("two"),
        Item::function_call("old", "lookup", r#"{"mail":"ann@example.com"}"#),
        Item::function_call_output("old", "ann@example.com, 4111 1111 1111 1111"),
        Item::user("five"),
    ]
}

/// Runs a turn with a tool and a handoff. Returns what the next agent's model sees, and what the
/// session stores.
async fn run_handoff<M>(filter: impl IntoFilter<(), M>) -> (Vec<String>, Items) {
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
    (described(&model.requests()[2].input), session.items())
}

#[tokio::test]
async fn the_last_items_are_kept_without_orphaned_calls() {
    let everything = run_handoff(|data: HandoffInputData| data).await.0;
    assert_eq!(everything.len(), 9);
    let (seen, stored) = run_handoff(filters::keep_last(4)).await;
    assert_eq!(seen, everything[5..]);
    assert_eq!(stored.len(), 10, "the session stores everything");
    // The cut is between the call of `t` and its output.
    assert_eq!(run_handoff(filters::keep_last(3)).await.0, everything[7..]);
    assert_eq!(run_handoff(filters::keep_last(0)).await.0, [""; 0]);
    assert_eq!(run_handoff(filters::keep_last(99)).await.0, everything);
}

#[tokio::test]
async fn the_first_and_the_last_items_are_kept() {
    let everything = run_handoff(|data: HandoffInputData| data).await.0;
    let (seen, _) = run_handoff(filters::keep_first_and_last(1, 2)).await;
    assert_eq!(seen, [&everything[..1], &everything[7..]].concat());
    let (seen, _) = run_handoff(filters::keep_first_and_last(3, 2)).await;
    assert_eq!(
        seen,
        [&everything[..2], &everything[7..]].concat(),
        "an orphaned call is dropped"
    );
    let (seen, _) = run_handoff(filters::keep_first_and_last(5, 6)).await;
    assert_eq!(seen, everything);
}

/// Applies a filter to a history.
async fn filter_history(history: &[Item], filter: Filter) -> Vec<Item> {
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
async fn reasoning_is_kept_or_dropped_with_the_item_it_led_to() {
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
        assert_eq!(filter_history(&history, filter).await, expected);
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
    let left = filter_history(&history, filters::keep_last(9)).await;
    assert_eq!(left, [call, output("1")]);
}

#[tokio::test]
async fn orphans_stay_if_they_are_allowed() {
    let everything = run_handoff(|data: HandoffInputData| data).await.0;
    let exact = filters::keep_last(3).allow_orphans();
    assert_eq!(run_handoff(exact).await.0, everything[6..]);
    let exact = filters::keep_first_and_last(3, 2).allow_orphans();
    let expected = [&everything[..3], &everything[7..]].concat();
    assert_eq!(run_handoff(exact).await.0, expected);
    // It holds for the whole chain, async filters included, and for nothing after it.
    let chain = || {
        let wait = |data: HandoffInputData| async move { data };
        filters::keep_last(4)
            .then(wait)
            .then(filters::keep_last(3))
            .allow_orphans()
    };
    assert_eq!(run_handoff(chain()).await.0, everything[6..]);
    let paired_after = chain().then(filters::drop_reasoning());
    assert_eq!(run_handoff(paired_after).await.0, everything[7..]);
}

#[tokio::test]
async fn a_budget_keeps_the_items_that_fit() {
    let everything = run_handoff(|data: HandoffInputData| data).await.0;
    let one_each: Filter = filters::token_budget_by(4, |_item| 1);
    assert_eq!(run_handoff(one_each).await.0, everything[5..]);
    assert_eq!(
        run_handoff(filters::token_budget(100_000)).await.0,
        everything
    );
    assert_eq!(run_handoff(filters::token_budget(0)).await.0, [""; 0]);
    assert_eq!(filters::estimated_tokens(&Item::user("账单")), 9);
}

#[tokio::test]
async fn reasoning_can_be_dropped() {
    let reasoning = reasoning("r");
    let boss: Agent = Agent::new("Boss");
    let clerk = Agent::new("Clerk").handoff(handoff(&boss).filter(filters::drop_reasoning()));
    let call = Item::function_call("c", "transfer_to_boss", "{}");
    let model = ScriptedModel::new()
        .reply([reasoning.clone(), call])
        .say("ok");
    let runner = Runner::new(&clerk).model(model.clone());
    let result = runner.run("x").await.unwrap();
    assert_eq!(model.requests()[1].input.len(), 3);
    let mut items = result.new_items().iter();
    assert!(items.any(|run_item| *run_item.item() == reasoning));
}

#[tokio::test]
async fn redaction_applies_to_the_next_agents_view_and_not_to_the_session() {
    let (seen, stored) = run_handoff(filters::redact_pii()).await;
    let seen = seen.join("\n");
    assert!(seen.contains("[EMAIL], [CARD]"), "{seen}");
    let has_address = |item: &&Item| item.as_json().contains("ann@example.com");
    assert_eq!(stored.iter().filter(has_address).count(), 2);

    // Summaries of the conversation are redacted too.
    let nested = filters::nest_history().then(Redaction::new().only([Pii::Email, Pii::Card]));
    let (seen, _) = run_handoff(nested).await;
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
    let (seen, _) = run_handoff(filters::keep_last(2).then(note)).await;
    assert_eq!(seen[0], "developer: 0 items before.");
    assert_eq!(seen.len(), 3);
}

#[tokio::test]
async fn a_resumed_handoff_adds_its_note_once() {
    let session = MemorySession::new();
    let boss: Agent = Agent::new("Boss");
    let runner = |is_down: bool, model: &ScriptedModel| {
        let look_up = move |data: HandoffInputData| {
            let problem = is_down.then_some(BoxError::from("down"));
            problem.map_or(Ok(data), Err)
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
    let seen = described(&model.requests()[1].input);
    assert_eq!(seen[..2], ["developer: noted", "user: x"]);
    assert_eq!(seen.len(), 4);
    let stored = described(&session.items());
    assert!(
        !stored.contains(&"developer: noted".to_owned()),
        "{stored:?}"
    );
}

#[tokio::test]
async fn a_filter_can_depend_on_the_data() {
    let long = |data: &HandoffInputData| data.history_items().len() > 3;
    let short = |data: &HandoffInputData| data.history_items().len() < 3;
    let (seen, _) = run_handoff(filters::when(long, filters::keep_last(2))).await;
    assert_eq!(seen.len(), 2);
    let (seen, _) = run_handoff(filters::when(short, filters::keep_last(2))).await;
    assert_eq!(seen.len(), 9);
}

#[tokio::test]
async fn a_model_summarizes_the_older_items() {
    let writer = ScriptedModel::new().say("Ann wants a refund.");
    let (seen, _) = run_handoff(filters::summarize(writer.clone(), 2)).await;
    assert_eq!(
        seen[0],
        "assistant: Summary of the conversation so far: Ann wants a refund."
    );
    assert_eq!(seen.len(), 3);
    let request = writer.requests().remove(0);
    let transcript = request.input.last().unwrap().text().unwrap().into_owned();
    assert!(transcript.contains("1. user: one"), "{transcript}");

    let unused = ScriptedModel::new();
    let (seen, _) = run_handoff(filters::summarize(unused.clone(), 99)).await;
    assert_eq!(seen.len(), 9);
    assert_eq!(unused.requests().len(), 0);
}

#[tokio::test]
async fn a_summary_does_not_separate_calls_from_outputs() {
    let everything = run_handoff(|data: HandoffInputData| data).await.0;
    for (keep_last, kept) in [(1, 7), (3, 5), (6, 2)] {
        let writer = ScriptedModel::new().say("Short.");
        let (seen, _) = run_handoff(filters::summarize(writer.clone(), keep_last)).await;
        assert_eq!(seen[1..], everything[kept..]);
        let transcript = writer.requests()[0].input.last().unwrap().clone();
        assert_eq!(transcript.text().unwrap().contains("lookup"), kept > 2);
    }
    // Two interleaved pairs, and reasoning before both.
    let history = [
        Item::user("x"),
        reasoning("r"),
        Item::function_call("c1", "f", "{}"),
        Item::function_call("c2", "f", "{}"),
        Item::function_call_output("c1", "1"),
        Item::function_call_output("c2", "2"),
    ];
    let writer = ScriptedModel::new().say("Short.");
    let left = filter_history(&history, filters::summarize(writer, 1)).await;
    assert_eq!(left[1..], history[1..]);
}

#[tokio::test]
async fn the_usage_of_a_summary_counts_in_the_run() {
    let used = Usage {
        requests: 1,
        input_tokens: 100,
        output_tokens: 20,
        ..Usage::default()
    };
    let writer = || {
        let response = ModelResponse::new([Item::assistant("Short.")]).usage(used);
        ScriptedModel::new().respond_with(response)
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

    // It counts even if the handoff fails afterwards.
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
