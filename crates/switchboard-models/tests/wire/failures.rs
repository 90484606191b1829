//! Unexpected responses, and requests that cannot be sent.

use std::time::Duration;

use fake_provider::{ErrorForm, Reply};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_core::model::ModelEvent;
use switchboard_core::{Agent, ModelRequest, ModelSettings, Runner};
use switchboard_models::{Endpoint, ModelError, ModelErrorKind};

use crate::{BOTH, Protocol, Script, ask, failure, hello, model, text_of};

fn request_with(settings: ModelSettings) -> ModelRequest {
    let mut request = hello();
    request.settings = settings.into();
    request
}

/// The body of an answer that is not streamed.
fn whole(protocol: Protocol, text: &str) -> Value {
    match protocol {
        Protocol::Responses => json!({"id": "resp_1", "status": "completed", "output": [
            {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
             "content": [{"type": "output_text", "text": text, "annotations": []}]}]}),
        Protocol::Chat => json!({"id": "c", "choices": [
            {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}]}),
    }
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_is_read_without_a_retry() {
    for protocol in BOTH {
        for text in ["Hi.".to_owned(), "x".repeat(100_000)] {
            let body = whole(protocol, &text).to_string();
            let script = Script::new([Reply::raw(body, "application/json")]);
            let model = model(&script.endpoint().retries(2), protocol);
            let events: Vec<_> = model.stream(hello()).collect().await;
            let events: Vec<ModelEvent> = events.into_iter().map(Result::unwrap).collect();
            let [
                ModelEvent::TextDelta { text: delta, .. },
                ModelEvent::Completed(answer),
            ] = &events[..]
            else {
                panic!("{events:?}");
            };
            assert_eq!((delta, text_of(answer)), (&text, text.clone()));
            assert_eq!(script.requests().len(), 1, "{protocol:?}");
        }
        let body = whole(protocol, &"x".repeat(10_000)).to_string();
        let script = Script::new([Reply::raw(body, "application/json")]);
        let small = script.endpoint().max_response_bytes(5_000);
        let error = failure(&model(&small, protocol), true).await;
        assert_eq!(error.kind(), ModelErrorKind::TooLarge, "{error}");
        assert!(error.to_string().contains("5000"), "{error}");

        let script = Script::new([Reply::raw("<html>Welcome</html>", "text/html")]);
        let error = failure(&script.model(protocol), true).await;
        assert_eq!(error.kind(), ModelErrorKind::WebPage, "{error}");
        assert!(error.to_string().contains("text/html"), "{error}");
        assert_eq!(script.requests().len(), 1, "{protocol:?}");
    }
}

#[tokio::test]
async fn a_stream_is_recognised_by_its_content_not_its_type() {
    let events = "\n: hello\ndata: {\"choices\":[{\"delta\":{\"content\":\"Hi.\"},\
                  \"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
    let script = Script::new([Reply::raw(events, "application/json")]);
    let answer = ask(&script.model(Protocol::Chat), hello(), true).await;
    assert_eq!(text_of(&answer.unwrap()), "Hi.");
}

#[tokio::test]
async fn a_failure_in_a_successful_response_is_an_error() {
    let busy = |code: Value| {
        let body = json!({"error": {"message": "slow down", "code": code}});
        Reply::raw(body.to_string(), "application/json").header("retry-after-ms", "1")
    };
    for protocol in BOTH {
        for streamed in [false, true] {
            for code in [json!(429), json!("server_is_overloaded")] {
                let script = Script::new([busy(code), Reply::text("Hi.")]);
                let model_with_retries = model(&script.endpoint().retries(1), protocol);
                let answer = ask(&model_with_retries, hello(), streamed).await.unwrap();
                assert_eq!(text_of(&answer), "Hi.");
            }
            let script = Script::new([busy(json!("insufficient_quota")), Reply::text("Hi.")]);
            let model_with_retries = model(&script.endpoint().retries(2), protocol);
            let error = failure(&model_with_retries, streamed).await;
            assert_eq!(error.kind(), ModelErrorKind::RateLimit);
            let shown = error.to_string();
            assert!(shown.contains("slow down (insufficient_quota)"), "{shown}");
            assert_eq!(script.requests().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_status_within_an_answer_says_whether_a_quota_is_spent() {
    let quoting = "messages[2]: \"insufficient funds\" is no valid content of a message";
    for protocol in BOTH {
        for streamed in [false, true] {
            for (code, message, kind, is_spent) in [
                (402, "Payment required", ModelErrorKind::RateLimit, true),
                (400, quoting, ModelErrorKind::Request, false),
            ] {
                let body = json!({"error": {"message": message, "code": code}});
                let reply = Reply::raw(body.to_string(), "application/json");
                let script = Script::new([reply, Reply::text("Hi.")]);
                let model_with_retries = model(&script.endpoint().retries(2), protocol);
                let error = failure(&model_with_retries, streamed).await;
                let found = (error.kind(), error.is_out_of_quota());
                assert_eq!(found, (kind, is_spent), "{protocol:?}: {error}");
                assert_eq!(script.requests().len(), 1, "{protocol:?}: {error}");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_whose_first_event_is_a_failure_is_retried() {
    let event = |code: &str| {
        let event = json!({"type": "error", "error": {"code": code, "message": "busy"}});
        let events = format!("event: error\ndata: {event}\n\n");
        Reply::raw(events, "text/event-stream").header("retry-after-ms", "1")
    };
    for protocol in BOTH {
        for code in ["server_is_overloaded", "rate_limit_exceeded"] {
            let script = Script::new([event(code), Reply::text("Hi.")]);
            let model_with_retries = model(&script.endpoint().retries(2), protocol);
            let answer = ask(&model_with_retries, hello(), true).await.unwrap();
            assert_eq!(text_of(&answer), "Hi.");
        }
        for code in ["insufficient_quota", "invalid_prompt"] {
            let script = Script::new([event(code), Reply::text("Hi.")]);
            let model_with_retries = model(&script.endpoint().retries(2), protocol);
            let error = failure(&model_with_retries, true).await;
            assert_eq!(error.code(), Some(code));
            assert_eq!(script.requests().len(), 1);
        }
        // After other events it is not retried.
        let message = json!({"type": "message", "id": "msg_1", "role": "assistant",
            "status": "completed", "content": [{"type": "output_text", "text": "Well", "annotations": []}]});
        let late = Reply::error_event(ErrorForm::Nested, "server_error", "busy").after([message]);
        let script = Script::new([late, Reply::text("Hi.")]);
        let model_with_retries = model(&script.endpoint().retries(2), protocol);
        failure(&model_with_retries, true).await;
        assert_eq!(script.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_long_or_slow_error_body_is_quoted_in_part() {
    let long = format!("Too much. {}", "x".repeat(100_000));
    let script = Script::new([Reply::status(400, json!(long))]);
    let error = failure(&script.model(Protocol::Chat), false).await;
    assert!(error.to_string().contains("Too much."), "{error}");

    let stalled = Reply::status(400, json!({"error": {"message": "No."}})).hang_after(20);
    let script = Script::new([stalled]);
    let model = script.model(Protocol::Chat);
    let failed = tokio::time::timeout(Duration::from_secs(30), failure(&model, false));
    let error = failed.await.expect("the wait is bounded");
    assert_eq!(error.status(), Some(400), "{error}");
}

#[tokio::test]
async fn a_redirect_is_an_error_that_names_its_target() {
    let moved = Reply::status(307, json!({})).header("location", "https://elsewhere.example/x?k=1");
    let script = Script::new([moved]);
    let error = failure(&script.model(Protocol::Chat), false).await;
    assert_eq!(error.kind(), ModelErrorKind::Redirect);
    let shown = error.to_string();
    assert!(shown.contains("https://elsewhere.example/x,"), "{shown}");
    assert!(!shown.contains("k=1"), "{shown}");
}

#[tokio::test]
async fn headers_of_the_connection_cannot_be_set() {
    for name in ["Content-Length", "host", "transfer-encoding", "proxy-x"] {
        let mut settings = ModelSettings::default();
        settings
            .extra_headers
            .insert(name.to_owned(), "5".to_owned());
        let script = Script::new([]);
        let model_with_retries = model(&script.endpoint().retries(2), Protocol::Chat);
        let error = ask(&model_with_retries, request_with(settings), false)
            .await
            .unwrap_err();
        let error = error.downcast::<ModelError>().unwrap();
        assert_eq!(error.kind(), ModelErrorKind::Configuration, "{error}");
        assert!(script.requests().is_empty());
    }
}

#[tokio::test]
async fn settings_that_would_break_the_body_are_left_out() {
    for protocol in BOTH {
        for streamed in [false, true] {
            let script = Script::new([Reply::text("Hi.")]);
            let endpoint = script.endpoint().body_field("stream", !streamed);
            let settings = ModelSettings {
                temperature: Some(f64::NAN),
                top_p: Some(f64::INFINITY),
                ..ModelSettings::default()
            };
            let request = request_with(settings);
            let answer = ask(&model(&endpoint, protocol), request, streamed).await;
            assert_eq!(text_of(&answer.unwrap()), "Hi.");
            let body = &script.bodies()[0];
            assert_eq!(body["stream"].as_bool(), streamed.then_some(true));
            assert!(body.get("temperature").is_none() && body.get("top_p").is_none());
        }
    }
}

#[tokio::test]
async fn an_address_may_end_with_the_path_of_a_request() {
    let script = Script::new([Reply::text("Hi.")]);
    let address = format!("{}/chat/completions", crate::PROVIDER.url());
    let endpoint = Endpoint::at(address).key(&script.key).retries(0);
    ask(&model(&endpoint, Protocol::Responses), hello(), false)
        .await
        .unwrap();
}

/// The environment's proxy is read when a client is made, so this runs in a process of its own.
#[tokio::test]
async fn an_unsupported_proxy_of_the_environment_is_an_error_without_retries() {
    const INSIDE: &str = "SWITCHBOARD_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        for scheme in ["http", "https"] {
            let far = Endpoint::at(format!("{scheme}://provider.invalid/v1")).retries(2);
            let error = failure(&model(&far, Protocol::Chat), false).await;
            println!("{:?} after {}: {error}", error.kind(), error.attempts());
        }
        return;
    }
    let name = "failures::an_unsupported_proxy_of_the_environment_is_an_error_without_retries";
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture"])
        .env(INSIDE, "1")
        .env("ALL_PROXY", "socks5://user:hunter2@127.0.0.1:1")
        .env_remove("HTTP_PROXY")
        .env_remove("http_proxy")
        .env_remove("HTTPS_PROXY")
        .env_remove("https_proxy")
        .env_remove("all_proxy")
        .env_remove("NO_PROXY")
        .env_remove("no_proxy")
        .output()
        .unwrap();
    let shown = String::from_utf8_lossy(&output.stdout);
    assert_eq!(shown.matches("Configuration after 1").count(), 2, "{shown}");
    assert!(
        shown.contains("ALL_PROXY") && !shown.contains("hunter2"),
        "{shown}"
    );
}

#[tokio::test]
async fn the_usage_of_an_incomplete_answer_is_counted() {
    let cost = fake_provider::Usage {
        input: 7,
        output: 9,
        ..Default::default()
    };
    for protocol in BOTH {
        for streamed in [false, true] {
            let script = Script::new([Reply::incomplete("max_output_tokens")
                .after([
                    json!({"type": "message", "id": "msg_1", "role": "assistant",
                    "status": "incomplete", "content": [
                        {"type": "output_text", "text": "par", "annotations": []}]}),
                ])
                .usage(cost)]);
            let agent: Agent = Agent::new("A");
            let runner = Runner::new(&agent).model(script.model(protocol));
            let error = if streamed {
                runner.stream("Hi").finish().await.unwrap_err()
            } else {
                runner.run("Hi").await.unwrap_err()
            };
            let used = *error.run().unwrap().usage();
            assert_eq!(
                (used.input_tokens, used.output_tokens),
                (7, 9),
                "{protocol:?} {streamed}"
            );
            assert_eq!(used.requests, 1);
        }
    }
}
