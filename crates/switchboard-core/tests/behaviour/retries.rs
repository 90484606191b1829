//! Retries and time limits of model calls, for any model.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use switchboard_core::callback::BoxError;
use switchboard_core::guardrail::{InputGuardrail, InputVerdict};
use switchboard_core::model::{
    Backoff, ModelEvent, ModelFailure, ModelHandle, ModelTimeout, RawEvent, Replay, RetryAdvice,
    RetryDecision, RetryPolicy, RetrySettings, ServerState, Usage,
};
use switchboard_core::testing::{Recorder, ScriptedModel};
use switchboard_core::{Agent, Item, Model, ModelRequest, ModelResponse, ModelSettings, Runner};

/// A model that fails a number of times, and then answers.
#[derive(Default)]
struct Flaky {
    failures: u32,
    advice: RetryAdvice,
    /// Events before a streamed failure.
    begins_with: Vec<ModelEvent>,
    /// Hangs instead of failing.
    hangs: bool,
    calls: AtomicU32,
}

impl Flaky {
    fn new(failures: u32, advice: RetryAdvice) -> Self {
        Self {
            failures,
            advice,
            ..Self::default()
        }
    }
}

fn answer() -> ModelResponse {
    let usage = Usage {
        requests: 1,
        input_tokens: 10,
        ..Usage::default()
    };
    let mut response = ModelResponse::new([Item::output_message("m", "Hi.")]).usage(usage);
    response.response_id = Some("resp_1".into());
    response
}

impl Model for Flaky {
    async fn respond(&self, _request: ModelRequest) -> Result<ModelResponse, BoxError> {
        if self.calls.fetch_add(1, Ordering::SeqCst) >= self.failures {
            return Ok(answer());
        }
        if self.hangs {
            std::future::pending::<()>().await;
        }
        Err("the line is busy".into())
    }

    fn stream(
        &self,
        request: ModelRequest,
    ) -> impl stream::Stream<Item = Result<ModelEvent, BoxError>> + Send {
        let begun = self.begins_with.clone().into_iter().map(Ok);
        stream::iter(begun).chain(stream::once(async move {
            self.respond(request).await.map(ModelEvent::Completed)
        }))
    }

    fn retry_advice(
        &self,
        _error: &(dyn Error + Send + Sync + 'static),
        _request: &ModelRequest,
    ) -> RetryAdvice {
        self.advice.clone()
    }
}

fn status(status: u16) -> RetryAdvice {
    RetryAdvice {
        status: Some(status),
        suggested: Some(true),
        ..RetryAdvice::default()
    }
}

fn quick(max_retries: u32) -> RetrySettings {
    RetrySettings::new(max_retries).backoff(Backoff {
        initial_delay: Some(Duration::from_millis(1)),
        ..Backoff::default()
    })
}

fn with_retry(retry: RetrySettings) -> ModelSettings {
    ModelSettings {
        retry: Some(retry),
        ..ModelSettings::default()
    }
}

#[tokio::test]
async fn failed_attempts_are_retried_and_counted_as_requests() {
    for streamed in [false, true] {
        let agent: Agent = Agent::new("A")
            .model(Flaky::new(2, status(503)))
            .model_settings(with_retry(quick(2)));
        let runner = Runner::new(&agent);
        let result = if streamed {
            runner.stream("x").finish().await.unwrap()
        } else {
            runner.run("x").await.unwrap()
        };
        assert_eq!(result.final_text(), "Hi.");
        assert_eq!(result.usage().requests, 3, "{streamed}");
        assert_eq!(result.usage().input_tokens, 10);
    }
}

#[tokio::test]
async fn attempts_that_all_failed_are_counted_as_requests_of_one_entry() {
    for streamed in [false, true] {
        let agent: Agent = Agent::new("A")
            .model(Flaky::new(9, status(503)))
            .model_settings(with_retry(quick(2)));
        let runner = Runner::new(&agent);
        let error = if streamed {
            runner.stream("x").finish().await.unwrap_err()
        } else {
            runner.run("x").await.unwrap_err()
        };
        assert_eq!(
            error.to_string(),
            "agent \"A\": the model could not answer in 3 attempts: the line is busy"
        );
        let run = error.run().unwrap();
        let usage = Usage {
            requests: 3,
            ..Usage::default()
        };
        assert_eq!(*run.usage(), usage, "{streamed}");
        let [entry] = run.request_usage() else {
            panic!("{:?}", run.request_usage());
        };
        assert_eq!((entry.agent.as_deref(), entry.usage), (Some("A"), usage));
    }
}

#[tokio::test]
async fn attempts_of_a_call_that_is_cancelled_while_it_is_retried_are_counted() {
    let agent: Agent = Agent::new("A")
        .model(Flaky::new(1, status(503)))
        .model_settings(with_retry(RetrySettings::new(1).backoff(Backoff {
            initial_delay: Some(Duration::from_secs(60)),
            ..Backoff::default()
        })));
    let trips = InputGuardrail::beside_model("late", |_ctx, _agent, _input| async {
        tokio::time::sleep(Duration::from_millis(30)).await;
        InputVerdict::trip("no")
    });
    let runner = Runner::new(&agent).input_guardrail(trips);
    let error = runner.run("x").await.unwrap_err();
    assert!(error.is_guardrail(), "{error}");
    assert_eq!(error.run().unwrap().usage().requests, 1);
}

#[tokio::test]
async fn the_limit_of_the_run_overrides_that_of_the_agent_and_keeps_its_policy() {
    let policy = RetryPolicy::http_status([503]);
    for (advised, max_retries, is_ok) in [
        (503, 2, true),
        (503, 1, false),
        (503, 0, false),
        (500, 2, false),
    ] {
        let agent: Agent = Agent::new("A")
            .model(Flaky::new(2, status(advised)))
            .model_settings(with_retry(quick(9).policy(policy.clone())));
        let runner = Runner::new(&agent).model_settings(with_retry(max_retries.into()));
        let result = runner.run("x").await;
        assert_eq!(result.is_ok(), is_ok, "{advised} {max_retries}");
    }
}

#[tokio::test]
async fn a_model_without_retries_in_its_settings_is_asked_once() {
    let agent: Agent = Agent::new("A").model(Flaky::new(1, status(503)));
    let error = Runner::new(&agent).run("x").await.unwrap_err();
    assert!(error.to_string().contains("the line is busy"), "{error}");
}

#[tokio::test]
async fn retries_are_events_of_the_stream() {
    let agent: Agent = Agent::new("A")
        .model(Recorder::new(Flaky::new(1, status(503))))
        .model_settings(with_retry(quick(1)));
    let mut stream = Runner::new(&agent).stream("x");
    let mut retries = Vec::new();
    while let Some(event) = stream.next().await {
        let event = serde_json::to_value(event).unwrap();
        if event["type"] == "model_retry" {
            retries.push((event["attempt"].clone(), event["reason"].clone()));
        }
    }
    assert_eq!(retries, [(2.into(), "the line is busy".into())]);
}

#[tokio::test]
async fn an_answer_that_has_begun_is_not_asked_for_again() {
    let raw = |kind: &str| {
        let json = format!(r#"{{"type": "{kind}"}}"#);
        ModelEvent::Raw(RawEvent::from_json(json).unwrap())
    };
    for (begins_with, is_retried) in [
        (vec![], true),
        (
            vec![raw("response.created"), raw("response.in_progress")],
            true,
        ),
        (vec![ModelEvent::text_delta("m", "H")], false),
        (vec![raw("response.output_item.added")], false),
    ] {
        let flaky = Flaky {
            begins_with: begins_with.clone(),
            ..Flaky::new(1, status(503))
        };
        let agent: Agent = Agent::new("A")
            .model(flaky)
            .model_settings(with_retry(quick(3)));
        let result = Runner::new(&agent).stream("x").finish().await;
        assert_eq!(result.is_ok(), is_retried, "{begins_with:?}");
    }
}

#[tokio::test]
async fn a_conversation_that_the_provider_keeps_is_continued_only_once() {
    let approving = RetryPolicy::any([
        RetryPolicy::provider_suggested(),
        RetryPolicy::new(|_: &ModelFailure<'_>| RetryDecision::retry().approve_unsafe_replay()),
    ]);
    let simple = RetryPolicy::http_status([500]);
    for (replay, policy, is_ok) in [
        (Replay::Unknown, &simple, false),
        (Replay::Unknown, &approving, false),
        (Replay::Unsafe, &simple, false),
        (Replay::Unsafe, &approving, true),
        (Replay::Safe, &simple, true),
    ] {
        let advice = RetryAdvice {
            replay,
            suggested: Some(replay == Replay::Safe).filter(|_| replay != Replay::Unknown),
            ..status(500)
        };
        let agent: Agent = Agent::new("A")
            .model(Flaky::new(1, advice))
            .model_settings(with_retry(quick(1).policy(policy.clone())));
        let runner = Runner::new(&agent).conversation("conv_1");
        let result = runner.run("x").await;
        assert_eq!(result.is_ok(), is_ok, "{replay:?} {policy:?}");
    }
}

#[tokio::test]
async fn a_request_that_follows_a_response_may_be_repeated() {
    let agent: Agent = Agent::new("A")
        .model(Flaky::new(1, status(500)))
        .model_settings(with_retry(quick(1)));
    let runner = Runner::new(&agent).previous_response("resp_0");
    assert_eq!(runner.run("x").await.unwrap().final_text(), "Hi.");
}

#[tokio::test]
async fn a_model_that_takes_too_long_is_cancelled() {
    let limit = Duration::from_millis(20);
    for streamed in [false, true] {
        let hanging = || Flaky {
            hangs: true,
            ..Flaky::new(1, RetryAdvice::default())
        };
        let settings = ModelSettings {
            timeout: Some(limit),
            ..ModelSettings::default()
        };
        let agent: Agent = Agent::new("A").model_settings(settings);
        let ask = async |model: Flaky, settings: ModelSettings| {
            let runner = Runner::new(&agent).model(model).model_settings(settings);
            if streamed {
                runner.stream("x").finish().await
            } else {
                runner.run("x").await
            }
        };
        let error = ask(hanging(), ModelSettings::default()).await.unwrap_err();
        let timeout = error.cause().unwrap().downcast_ref::<ModelTimeout>();
        assert_eq!(timeout.map(ModelTimeout::limit), Some(limit), "{error}");

        let retry = quick(1).policy(RetryPolicy::network_error());
        let result = ask(hanging(), with_retry(retry)).await.unwrap();
        assert_eq!(result.usage().requests, 2);
    }
}

fn decision(policy: &RetryPolicy, advice: RetryAdvice) -> RetryDecision {
    let error: BoxError = "failed".into();
    policy.decide(&ModelFailure::new(&*error, advice))
}

#[test]
fn the_advice_of_a_provider_against_a_retry_overrules_other_policies() {
    let any = |policies: &[RetryPolicy]| RetryPolicy::any(policies.to_vec());
    let all = |policies: &[RetryPolicy]| RetryPolicy::all(policies.to_vec());
    let suggested = RetryPolicy::provider_suggested();
    let always = RetryPolicy::new(|_: &ModelFailure<'_>| true);
    let approving =
        RetryPolicy::new(|_: &ModelFailure<'_>| RetryDecision::retry().approve_unsafe_replay());
    let advised = |suggested, replay| RetryAdvice {
        suggested,
        replay,
        ..RetryAdvice::default()
    };
    let against = advised(Some(false), Replay::Unknown);
    let against_unsafe = advised(Some(false), Replay::Unsafe);
    let silent = advised(None, Replay::Unknown);
    let two = [suggested.clone(), always.clone()];
    let approved = [suggested.clone(), approving];
    for (policy, advice, retries) in [
        (any(&two), &against, false),
        (any(&two), &silent, true),
        (all(&two), &silent, false),
        (all(&two), &against, false),
        (any(&two), &against_unsafe, false),
        (any(&approved), &against_unsafe, true),
        (all(&approved), &against_unsafe, true),
        (any(&approved), &against, false),
        (any(&[]), &silent, false),
        (all(&[]), &silent, false),
        (RetryPolicy::never(), &silent, false),
    ] {
        let decision = decision(&policy, advice.clone());
        assert_eq!(decision.is_retry(), retries, "{policy:?} {advice:?}");
    }
}

#[test]
fn the_pause_is_the_policys_or_the_providers_or_that_of_the_backoff() {
    let error: BoxError = "failed".into();
    let settings = RetrySettings::default().backoff(Backoff {
        initial_delay: Some(Duration::from_secs(1)),
        max_delay: Some(Duration::from_secs(3)),
        multiplier: Some(10.0),
        jitter: Some(false),
    });
    let with_policy = settings
        .clone()
        .policy(RetryPolicy::new(|_: &ModelFailure<'_>| {
            RetryDecision::retry().after(Duration::from_secs(90))
        }));
    let seconds = Duration::from_secs;
    for (settings, asked, attempt, delay) in [
        (&settings, None, 1, Some(seconds(1))),
        (&settings, None, 2, Some(seconds(3))),
        (&settings, None, 3, None),
        (&settings, Some(seconds(60)), 1, Some(seconds(60))),
        (&settings, Some(seconds(61)), 1, None),
        (&with_policy, Some(seconds(61)), 1, Some(seconds(90))),
    ] {
        let advice = RetryAdvice {
            retry_after: asked,
            ..status(503)
        };
        let mut failure = ModelFailure::new(&*error, advice);
        failure.attempt = attempt;
        assert_eq!(settings.delay(&failure), delay, "{asked:?} {attempt}");
    }
}

#[test]
fn connection_errors_of_any_model_are_recognised() {
    let model = ModelHandle::new(switchboard_core::testing::ScriptedModel::new());
    let request = ModelRequest::new(vec![Item::user("x")]);
    for (kind, is_network_error, is_timeout) in [
        (io::ErrorKind::ConnectionReset, true, false),
        (io::ErrorKind::TimedOut, true, true),
        (io::ErrorKind::NotFound, false, false),
    ] {
        let advice = model.retry_advice(&io::Error::from(kind), &request);
        let facts = (advice.is_network_error, advice.is_timeout);
        assert_eq!(facts, (is_network_error, is_timeout), "{kind}");
    }
}

#[test]
fn settings_of_retries_are_stored_without_their_policy() {
    let settings = ModelSettings {
        retry: Some(quick(3).policy(RetryPolicy::never())),
        timeout: Some(Duration::from_millis(1500)),
        ..ModelSettings::default()
    };
    let stored = serde_json::to_value(&settings).unwrap();
    assert_eq!(stored["timeout"], 1.5);
    assert_eq!(stored["retry"]["backoff"]["initial_delay"], 0.001);
    let read: ModelSettings = serde_json::from_value(stored).unwrap();
    assert_eq!(read.retry, Some(quick(3)));
    assert_eq!(read.timeout, settings.timeout);
    assert_eq!(
        serde_json::from_str::<ModelSettings>("{}").unwrap(),
        ModelSettings::default()
    );
    serde_json::from_str::<ModelSettings>(r#"{"timeout": -1}"#).unwrap_err();
}

#[test]
fn the_fingerprint_of_a_request_ignores_its_retries() {
    let mut request = ModelRequest::new(vec![Item::user("x")]);
    let fingerprint = request.fingerprint();
    request.settings = std::sync::Arc::new(ModelSettings {
        timeout: Some(Duration::from_secs(1)),
        ..with_retry(quick(3))
    });
    assert_eq!(request.fingerprint(), fingerprint);
    request.server = Some(ServerState::Conversation("c".into()));
    assert_ne!(request.fingerprint(), fingerprint);
}

#[tokio::test]
async fn a_slow_reader_of_a_stream_is_not_the_fault_of_the_model() {
    let settings = ModelSettings {
        timeout: Some(Duration::from_millis(100)),
        ..ModelSettings::default()
    };
    let agent: Agent = Agent::new("A").model_settings(settings);
    let model = ScriptedModel::new().say("one two three four five six");
    let mut stream = Runner::new(&agent).model(model).stream("x");
    while stream.next().await.is_some() {
        tokio::time::sleep(Duration::from_millis(30)).await;
    }
    assert!(stream.finish().await.is_ok());
}
