//! Input guardrails that replace the text of the user, and which text that is.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use switchboard_core::guardrail::{GuardrailKind, InputGuardrail, InputVerdict};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::{Agent, ErrorKind, Input, Item, MemorySession, Runner, Session};

use crate::{described, stored};

/// A guardrail that puts a mark in front of the user's text.
fn marks(mark: &'static str) -> InputGuardrail {
    InputGuardrail::replacing(mark, move |_ctx, _agent, input: Input| {
        input.last_words().map(|text| format!("{mark} {text}"))
    })
}

#[tokio::test]
async fn text_is_replaced_once_if_a_later_guardrail_trips_and_the_run_is_resumed() {
    for checks_only in [true, false] {
        let calls = AtomicUsize::new(0);
        let trips = move || calls.fetch_add(1, Ordering::SeqCst) == 0;
        let once = if checks_only {
            InputGuardrail::new("once", move |_ctx, _agent, _input| {
                InputVerdict::trip_if(trips(), Value::Null)
            })
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
        assert_eq!(run.guardrail_results(GuardrailKind::Input).len(), 2);
        let result = runner.resume(run).await.unwrap();
        let text = if checks_only {
            "user: [x] hi"
        } else {
            "user: [y] hi"
        };
        assert_eq!(described(&model.requests()[0].input), [text]);
        assert_eq!(described(&session.items()), [text, "assistant: ok"]);
        let results = result.guardrail_results(GuardrailKind::Input);
        let names: Vec<&str> = results.iter().map(|result| &*result.guardrail).collect();
        assert_eq!(names, ["[x]", "once"]);
        assert!(results.iter().all(|result| !result.tripped()));
    }
}

#[tokio::test]
async fn text_that_not_all_guardrails_have_checked_is_not_stored() {
    let trips = InputGuardrail::replacing("no", |_ctx, _agent, _input| InputVerdict::trip("no"));
    let cards = InputGuardrail::replacing("cards", |_ctx, _agent, input: Input| {
        let text = input.last_words();
        text.map(|text| text.replace("4111", "[CARD]"))
    });
    let agent: Agent = Agent::new("A")
        .input_guardrail(trips)
        .input_guardrail(cards);
    let session = MemorySession::new();
    let runner = Runner::new(&agent).session(&session);
    runner.run("pay with 4111").await.unwrap_err();
    assert!(session.items().is_empty());
}

async fn session_with_a_turn() -> MemorySession {
    let session = MemorySession::new();
    let items = [Item::user("old"), Item::assistant("answered")];
    session.append(&items).await.unwrap();
    session
}

#[tokio::test]
async fn items_already_in_a_session_are_not_replaced() {
    let session = session_with_a_turn().await;
    let always = InputGuardrail::replacing("always", |_ctx, _agent, _input| {
        InputVerdict::replace("new")
    });
    let agent: Agent = Agent::new("A").input_guardrail(always);
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    let error = runner.run(Item::system("note")).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    let reason = "no new message in this run is the user's";
    assert!(error.to_string().contains(reason), "{error}");
    assert_eq!(
        described(&session.items()),
        ["user: old", "assistant: answered"]
    );

    let new = vec![Item::user("said"), Item::assistant("Well,")];
    runner.run(new).await.unwrap();
    let expected = [
        "user: old",
        "assistant: answered",
        "user: new",
        "assistant: Well,",
    ];
    assert_eq!(described(&model.requests()[0].input), expected);
    assert_eq!(described(&session.items())[..4], expected);
}

#[tokio::test]
async fn the_text_of_an_old_turn_is_not_the_current_input() {
    let session = session_with_a_turn().await;
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    let agent: Agent = Agent::new("A").input_guardrail(InputGuardrail::new(
        "seen",
        move |_ctx, _agent, input: Input| {
            assert_eq!(input.items().len(), 3, "the guardrail gets the whole input");
            counted.fetch_add(input.last_words().map_or(0, |_| 1), Ordering::SeqCst);
        },
    ));
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent).model(model).session(&session);
    runner.run(Item::system("note")).await.unwrap();
    assert_eq!(seen.load(Ordering::SeqCst), 0);
}

#[test]
fn the_last_words_are_the_unanswered_text_of_the_user() {
    let call = Item::function_call("c", "t", "{}");
    let last = |items: &[Item]| {
        let input = Input::from(items.to_vec());
        input.last_words().map(|text| text.into_owned())
    };
    let hi = Item::user("Hi");
    assert_eq!(last(std::slice::from_ref(&hi)).as_deref(), Some("Hi"));
    let noted = [hi.clone(), Item::developer("note"), Item::system("note")];
    assert_eq!(last(&noted).as_deref(), Some("Hi"));
    assert_eq!(last(&[hi.clone(), Item::assistant("Hello!")]), None);
    assert_eq!(last(&[hi, call]), None);
    assert_eq!(last(&[]), None);
}
