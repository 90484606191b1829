//! Input guardrails: before the model, beside it, and with a session.

use std::future::pending;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::Value;
use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::{GuardrailKind, InputGuardrail, InputVerdict};
use switchboard_core::run::{Fallback, HistoryPolicy};
use switchboard_core::testing::ScriptedModel;
use switchboard_core::trace::MemoryTracer;
use switchboard_core::{
    Agent, ErrorKind, Input, Item, MemorySession, Model, ModelRequest, ModelResponse, Runner, tool,
};

use super::{FlakySession, trips_once};
use crate::{described, stored};

fn trips(name: &str) -> InputGuardrail {
    InputGuardrail::new(name, |_ctx, _agent, _input| InputVerdict::trip("too rude"))
}

#[tokio::test]
async fn a_tripwire_before_the_model_prevents_the_request() {
    let agent: Agent = Agent::new("A").input_guardrail(trips("manners"));
    let model = ScriptedModel::new().say("never");
    let error = Runner::new(&agent)
        .model(model.clone())
        .run("x")
        .await
        .unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert_eq!(&*error.guardrail().unwrap().guardrail, "manners");
    assert!(error.to_string().contains("too rude"), "{error}");
    assert_eq!(model.requests().len(), 0);
    assert_eq!(
        error
            .run()
            .unwrap()
            .guardrail_results(GuardrailKind::Input)
            .len(),
        1
    );
}

/// A model that never answers, and records when a call is cancelled.
struct Endless(Arc<AtomicBool>);

struct OnDrop(Arc<AtomicBool>);

impl Drop for OnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

impl Model for Endless {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        let _cancelled = OnDrop(self.0.clone());
        pending().await
    }
}

#[tokio::test]
async fn a_tripwire_beside_the_model_cancels_the_call() {
    let cancelled = Arc::new(AtomicBool::new(false));
    let slow = InputGuardrail::beside_model("slow", |_ctx, _agent, _input| async {
        tokio::task::yield_now().await;
        InputVerdict::Trip(Value::Null)
    });
    let agent: Agent = Agent::new("A").input_guardrail(slow);
    let runner = Runner::new(&agent).model(Endless(cancelled.clone()));
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert!(cancelled.load(Ordering::SeqCst));
}

#[tokio::test]
async fn a_guardrail_beside_the_model_is_waited_for_before_tools_run() {
    let ran = Arc::new(AtomicBool::new(false));
    let noted = ran.clone();
    let slow = InputGuardrail::beside_model("slow", |_ctx, _agent, _input| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        InputVerdict::Trip(Value::Null)
    });
    let agent: Agent =
        Agent::new("A")
            .input_guardrail(slow)
            .tool(tool("t").run(move |_ctx, (): ()| {
                noted.store(true, Ordering::SeqCst);
                "x"
            }));
    let model = ScriptedModel::new().call("t", "{}");
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert!(!ran.load(Ordering::SeqCst));
}

#[tokio::test]
async fn usage_includes_an_answer_that_came_before_the_tripwire() {
    let slow = InputGuardrail::beside_model("slow", |_ctx, _agent, _input| async {
        tokio::time::sleep(Duration::from_millis(10)).await;
        InputVerdict::Trip(Value::Null)
    });
    let agent: Agent = Agent::new("A").input_guardrail(slow);
    let model = ScriptedModel::new().say("Hi.");
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    assert_eq!(error.run().unwrap().usage().requests, 1);
}

/// Replaces `from` by `to`, after yielding to other tasks a number of times.
fn swap(from: &'static str, to: &'static str, yields: usize) -> InputGuardrail {
    InputGuardrail::replacing(from, move |_ctx, _agent, input: Input| async move {
        for _ in 0..yields {
            tokio::task::yield_now().await;
        }
        input.last_words().map(|words| words.replace(from, to))
    })
}

#[tokio::test]
async fn replacing_guardrails_run_in_order_each_on_the_result_of_the_last() {
    let agent: Agent = Agent::new("A")
        .input_guardrail(InputGuardrail::new(
            "sees_the_last",
            |_ctx, _agent, input| {
                InputVerdict::trip_if(input.last_words().as_deref() != Some("three"), Value::Null)
            },
        ))
        .input_guardrail(swap("one", "two", 5))
        .input_guardrail(swap("two", "three", 0));
    let model = ScriptedModel::new().say("ok").say("ok");
    let session = MemorySession::new();
    let runner = Runner::new(&agent).model(model.clone()).session(&session);
    let result = runner.run("one").await.unwrap();
    assert_eq!(described(&model.requests()[0].input), ["user: three"]);
    assert_eq!(
        described(&session.items()),
        ["user: three", "assistant: ok"]
    );
    let found = result.guardrail_results(GuardrailKind::Input);
    let replaced: Vec<_> = found.iter().map(|r| r.replaced_by.clone()).collect();
    assert_eq!(replaced, [Some("two".into()), Some("three".into()), None]);
    // Input guardrails do not replace what is in the session.
    runner.run("two").await.unwrap();
    assert_eq!(
        described(&model.requests()[1].input),
        ["user: three", "assistant: ok", "user: three"]
    );
    assert_eq!(session.items().len(), 4);
}

#[tokio::test]
async fn replacing_the_text_keeps_the_other_parts_of_a_message() {
    let agent: Agent = Agent::new("A").input_guardrail(swap("fool", "friend", 0));
    let said = r#"{"role":"user","content":[{"type":"input_image","image_url":"u"},
        {"type":"input_text","text":"fool","x":1},{"type":"input_text","text":"!"}]}"#;
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent).model(model.clone());
    runner.run(Item::from_json(said).unwrap()).await.unwrap();
    assert_eq!(
        model.requests()[0].input.iter().next().unwrap().as_json(),
        r#"{"role":"user","content":[{"type":"input_image","image_url":"u"},{"type":"input_text","text":"friend!","x":1}]}"#
    );
}

#[tokio::test]
async fn a_session_gets_the_replaced_input_if_a_guardrail_trips_and_nothing_if_one_fails() {
    let session = MemorySession::new();
    let tripping: Agent = Agent::new("A")
        .input_guardrail(InputGuardrail::new("never", |_ctx, _agent, _input| {
            InputVerdict::Trip(Value::Null)
        }))
        .input_guardrail(swap("4111", "[CARD]", 0));
    let runner = Runner::new(&tripping)
        .session(&session)
        .history(HistoryPolicy::Reference);
    let error = runner.run("pay with 4111").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert_eq!(described(&session.items()), ["user: pay with [CARD]"]);

    let session = MemorySession::new();
    let is_up = Arc::new(AtomicBool::new(false));
    let up = is_up.clone();
    let failing: Agent = Agent::new("A")
        .input_guardrail(swap("4111", "[CARD]", 0))
        .input_guardrail(InputGuardrail::replacing(
            "down",
            move |_ctx, _agent, _input| {
                if up.load(Ordering::SeqCst) {
                    Ok(InputVerdict::Allow)
                } else {
                    Err("the service is down")
                }
            },
        ));
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&failing).model(model).session(&session);
    let error = runner.run("pay with 4111").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::UserCode);
    assert!(
        session.items().is_empty(),
        "unchecked input must not be stored"
    );
    is_up.store(true, Ordering::SeqCst);
    runner.resume(error.into_run().unwrap()).await.unwrap();
    assert_eq!(
        described(&session.items()),
        ["user: pay with [CARD]", "assistant: ok"]
    );
}

/// A model whose first call fails.
struct FailsOnce(AtomicUsize);

impl Model for FailsOnce {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        match self.0.fetch_add(1, Ordering::SeqCst) {
            0 => Err("no route to host".into()),
            _ => Ok(ModelResponse::new([Item::output_message("m", "ok")])),
        }
    }
}

#[tokio::test]
async fn input_that_passed_is_not_checked_again_when_the_model_fails() {
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    let longer = InputGuardrail::replacing("longer", move |_ctx, _agent, input: Input| {
        counted.fetch_add(1, Ordering::SeqCst);
        input.last_words().map(|words| format!("{words}!"))
    });
    let agent: Agent = Agent::new("A").input_guardrail(longer);
    let runner = Runner::new(&agent).model(FailsOnce(AtomicUsize::new(0)));
    let error = runner.run("x").await.unwrap_err();
    let run = stored(&error.into_run().unwrap());
    let result = runner.resume(run).await.unwrap();
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert_eq!(described(&result.to_input_list())[0], "user: x!");
    assert_eq!(result.guardrail_results(GuardrailKind::Input).len(), 1);
}

#[tokio::test]
async fn a_tripped_input_guardrail_is_reported_even_if_the_session_fails() {
    let trips = trips_once();
    let agent: Agent = Agent::new("A").input_guardrail(InputGuardrail::new(
        "once",
        move |_ctx, _agent, _input: Input| InputVerdict::trip_if(trips(), Value::Null),
    ));
    let session = FlakySession::new(0);
    let model = ScriptedModel::new().say("ok");
    let runner = Runner::new(&agent).model(model).session(&session);
    let error = runner.run("x").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InputGuardrail);
    assert_eq!(&*error.guardrail().unwrap().guardrail, "once");
    let run = error.into_run().unwrap();
    assert_eq!(run.guardrail_results(GuardrailKind::Input).len(), 1);
    assert!(session.stored.items().is_empty());
    let result = runner.resume(stored(&run)).await.unwrap();
    assert_eq!(
        described(&session.stored.items()),
        ["user: x", "assistant: ok"]
    );
    let tripped = result.guardrail_results(GuardrailKind::Input).iter();
    let tripped: Vec<bool> = tripped.map(|found| found.tripped()).collect();
    assert_eq!(tripped, [false], "it passed the second time");
}

#[tokio::test]
async fn a_recovered_run_without_turns_stores_the_replaced_input() {
    let agent: Agent = Agent::new("A").input_guardrail(InputGuardrail::replacing(
        "cards",
        |_ctx, _agent, input: Input| {
            input
                .last_words()
                .map(|words| words.replace("4111", "[CARD]"))
        },
    ));
    let session = MemorySession::new();
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new())
        .max_turns(0)
        .recover(|_ctx, _failure| Some(Fallback::from("Sorry.")))
        .session(&session);
    runner.run("pay with 4111").await.unwrap();
    assert_eq!(
        described(&session.items()),
        ["user: pay with [CARD]", "assistant: Sorry."]
    );
}

#[tokio::test]
async fn a_trip_is_marked_in_the_turn_and_leaves_the_agent_without_an_error() {
    let guardrail = InputGuardrail::new("no", |_ctx, _agent, _input| InputVerdict::trip("no"));
    let agent: Agent = Agent::new("A").input_guardrail(guardrail);
    let tracer = MemoryTracer::new();
    let runner = Runner::new(&agent)
        .model(ScriptedModel::new())
        .tracer(tracer.clone());
    runner.run("x").await.unwrap_err();
    let spans = tracer.spans();
    let errors = spans.iter().filter_map(|span| {
        let error = span.error.as_ref()?;
        Some((span.data.kind(), error.message.as_str()))
    });
    let errors: Vec<(&str, &str)> = errors.collect();
    assert_eq!(errors, [("turn", "Guardrail tripwire triggered")]);
}
