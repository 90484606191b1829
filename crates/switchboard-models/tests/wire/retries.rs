//! Retries that the settings of an agent or a run ask for.

use std::time::Duration;

use fake_provider::Reply;
use serde_json::json;
use switchboard_core::model::{Backoff, RetryPolicy, RetrySettings};
use switchboard_core::{Agent, ModelSettings, Runner};
use switchboard_models::ModelError;

use crate::{BOTH, Protocol, Script, ask, hello, model};

fn unavailable(status: u16) -> Reply {
    Reply::status(status, json!({"error": {"message": "No."}}))
}

fn quick(max_retries: u32) -> RetrySettings {
    RetrySettings::new(max_retries).backoff(Backoff {
        initial_delay: Some(Duration::from_millis(1)),
        ..Backoff::default()
    })
}

fn helper(retry: RetrySettings) -> Agent {
    Agent::new("Helper").model_settings(ModelSettings {
        retry: Some(retry),
        ..ModelSettings::default()
    })
}

#[tokio::test]
async fn retries_of_an_agent_replace_those_of_the_endpoint_and_are_counted() {
    for protocol in BOTH {
        for streamed in [false, true] {
            let agent = helper(quick(2));
            let script = Script::new([unavailable(503), unavailable(500), Reply::text("Hi.")]);
            let model = model(&script.endpoint().retries(5), protocol);
            let runner = Runner::new(&agent).model(model);
            let result = if streamed {
                runner.stream("x").finish().await.unwrap()
            } else {
                runner.run("x").await.unwrap()
            };
            assert_eq!(result.final_text(), "Hi.");
            assert_eq!(result.usage().requests, 3, "{protocol:?} {streamed}");
        }
    }
}

#[tokio::test]
async fn the_error_after_retries_of_an_agent_has_all_attempts() {
    for protocol in BOTH {
        for streamed in [false, true] {
            let agent = helper(quick(2));
            let script = Script::new([unavailable(503), unavailable(503), unavailable(503)]);
            let model = model(&script.endpoint().retries(5), protocol);
            let runner = Runner::new(&agent).model(model);
            let result = if streamed {
                runner.stream("x").finish().await
            } else {
                runner.run("x").await
            };
            let error = result.unwrap_err();
            let cause = error.cause().unwrap().downcast_ref::<ModelError>().unwrap();
            assert_eq!((cause.status(), cause.attempts()), (Some(503), 3));
            let message =
                format!("agent \"Helper\": the model could not answer in 3 attempts: {cause}");
            assert_eq!(error.to_string(), message);
            assert_eq!(error.run().unwrap().usage().requests, 3);
        }
    }
}

#[tokio::test]
async fn the_policy_of_an_agent_decides_alone() {
    let rate_limits = RetryPolicy::http_status([429]);
    let agent = helper(quick(3).policy(rate_limits));
    for (status, requests) in [(429, 2), (503, 1)] {
        let script = Script::new([unavailable(status), Reply::text("Hi.")]);
        let model = model(&script.endpoint().retries(5), Protocol::Responses);
        let result = Runner::new(&agent).model(model).run("x").await;
        assert_eq!(script.requests().len(), requests, "{status}");
        assert_eq!(result.is_ok(), requests == 2);
    }
}

#[tokio::test]
async fn an_agent_can_forbid_retries() {
    let script = Script::new([unavailable(503), Reply::text("Hi.")]);
    let model = model(&script.endpoint().retries(5), Protocol::Responses);
    let agent = helper(0.into());
    let error = Runner::new(&agent).model(model).run("x").await.unwrap_err();
    let error = error.cause().unwrap().downcast_ref::<ModelError>().unwrap();
    assert_eq!(error.status(), Some(503));
    assert_eq!(script.requests().len(), 1);
}

#[tokio::test]
async fn a_conversation_at_the_server_is_repeated_only_if_it_was_not_processed() {
    for (status, requests) in [(429, 2), (500, 1)] {
        let agent = helper(quick(3).policy(RetryPolicy::http_status([429, 500])));
        let script = Script::new([unavailable(status), Reply::text("Hi.")]);
        let model = model(&script.endpoint(), Protocol::Responses);
        let runner = Runner::new(&agent).model(model).conversation("conv_1");
        let _ = runner.run("x").await;
        assert_eq!(script.requests().len(), requests, "{status}");
    }
}

#[tokio::test]
async fn an_endpoint_can_have_a_policy() {
    let rate_limits = RetryPolicy::http_status([429]);
    for (status, requests) in [(429, 2), (503, 1)] {
        let script = Script::new([unavailable(status), Reply::text("Hi.")]);
        let endpoint = script
            .endpoint()
            .retries(quick(3).policy(rate_limits.clone()));
        let model = model(&endpoint, Protocol::Chat);
        let _ = ask(&model, hello(), false).await;
        assert_eq!(script.requests().len(), requests, "{status}");
    }
}
