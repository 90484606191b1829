//! The words of the user: which they are, and what a guardrail may put in their place.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use switchboard_core::testing::ScriptedModel;
use switchboard_core::{
    Agent, ErrorKind, Input, InputGuardrail, InputVerdict, Item, MemorySession, Runner, Session,
};

use crate::{stored, told};

/// Puts a mark in front of the words.
fn marks(mark: &'static str) -> InputGuardrail {
    InputGuardrail::replacing(mark, move |_ctx, _agent, input: Input| {
        input.last_words().map(|words| format!("{mark} {words}"))
    })
}

#[tokio::test]
async fn words_are_replaced_once_though_a_later_guardrail_trips_and_the_run_is_resumed() {
    for checks_only in [true, false] {
        let asked = AtomicUsize::new(0);
        let trips = move || asked.fetch_add(1, Ordering::SeqCst) == 0;
        let once = if checks_only {
            InputGuardrail::new("once", move |_ctx, _agent, _input| trips())
        } else {
            InputGuardrail::replacing("once", move |_ctx, _agent, _input| {
                if trips() {
                    InputVerdict::trip("no")
                } else {
                    InputVerdict::replace("[y] hi")
                }
            })
        };
        let agent: Agent = Agent::new("A")
            .input_guardrail(marks("[x]"))
            .input_guardrail(once);
        let session = MemorySession::new();
        let model = ScriptedModel::new().say("ok");
        let runner = Runner::new(&agent).model(model.clone()).session(&session);
        let error = runner.run("hi").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InputGuardrail);
        let run = stored(error.run().unwrap());
        assert_eq!(run.input_guardrail_results().len(), 2);
        let result = runner.resume(run).await.unwrap();
        let words = if checks_only {
            "user: [x] hi"
        } else {
            "user: [y] hi"
        };
        assert_eq!(told(&model.requests()[0].input), [words]);
        assert_eq!(told(&session.items()), [words, "assistant: ok"]);
        let found = result.input_guardrail_results();
        let names: Vec<&str> = found.iter().map(|found| &*found.guardrail).collect();
        assert_eq!(names, ["[x]", "once"]);
        assert!(found.iter().all(|found| !found.verdict.tripped));
    }
}

#[tokio::test]
async fn words_that_not_all_guardrails_have_seen_are_not_stored() {
    let trips = InputGuardrail::replacing("no", |_ctx, _agent, _input| InputVerdict::trip("no"));
    let cards = InputGuardrail::replacing("cards", |_ctx, _agent, input: Input| {
        input
            .last_words()
            .map(|words| words.replace("4111", "[CARD]"))
    });
    let agent: Agent = Agent::new("A")
        .input_guardrail(trips)
        .input_guardrail(cards);
    let session = MemorySession::new();
    let runner = Runner::new(&agent).session(&session);
    runner.run("pay with 4111").await.unwrap_err();
    assert!(session.items().is_empty());
}

async fn told_session() -> MemorySession {
    let session = MemorySession::new();
    let items = [Item::user("old"), Item::assistant("answered")];
    session.append(&items).await.unwrap();
    session
}

#[tokio::test]
async fn what_a_session_had_already_is_not_rewritten() {
    let session = told_session().await;
    let always = InputGuardrail::replacing("always", |_ctx, _agent, _input| {
        InputVerdict::replace("new")
    });
    let agent: Agent = Agent::new("A").input_guardrail(always);
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    let error = runner.run(Item::system("note")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    assert!(
        error
            .to_string()
            .contains("nothing that is new in this run is of the user"),
        "{error}"
    );
    assert_eq!(told(&session.items()), ["user: old", "assistant: answered"]);

    let new = vec![Item::user("said"), Item::assistant("Well,")];
    runner.run(new).await.unwrap();
    let expected = [
        "user: old",
        "assistant: answered",
        "user: new",
        "assistant: Well,",
    ];
    assert_eq!(told(&model.requests()[0].input), expected);
    assert_eq!(told(&session.items())[..4], expected);
}

#[tokio::test]
async fn a_guardrail_is_not_shown_an_old_turn_as_the_words_of_now() {
    let session = told_session().await;
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    let agent: Agent = Agent::new("A").input_guardrail(InputGuardrail::new(
        "seen",
        move |_ctx, _agent, input: Input| {
            assert_eq!(input.items().len(), 3, "it is shown all the same");
            counted.fetch_add(input.last_words().map_or(0, |_| 1), Ordering::SeqCst);
            false
        },
    ));
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.run(Item::system("note")).await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 0);
}

#[test]
fn the_last_words_are_those_that_nobody_has_answered() {
    let call = Item::function_call("c", "t", "{}");
    let last = |items: &[Item]| {
        let words = Input::from(items.to_vec());
        words.last_words().map(|words| words.into_owned())
    };
    let hi = Item::user("Hi");
    assert_eq!(last(std::slice::from_ref(&hi)).as_deref(), Some("Hi"));
    let noted = [hi.clone(), Item::developer("note"), Item::system("note")];
    assert_eq!(last(&noted).as_deref(), Some("Hi"));
    assert_eq!(last(&[hi.clone(), Item::assistant("Hello!")]), None);
    assert_eq!(last(&[hi, call]), None);
    assert_eq!(last(&[]), None);
}
