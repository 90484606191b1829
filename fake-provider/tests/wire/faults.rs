//! Failures of the server, the connection and the client.

use std::io::Read as _;
use std::time::{Duration, Instant};

use fake_provider::{FakeProvider, Quirk, Reply};
use serde_json::json;

use crate::http::{parse, post, send};
use crate::{chat_body, provider, responses_body};

/// Waits until a condition that another thread causes holds.
fn wait_until(what: &str, holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(10), "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

fn closed_early(provider: &FakeProvider) -> bool {
    provider.requests()[0].closed_early
}

#[test]
fn a_status_has_its_headers_and_its_body() {
    let provider = provider();
    let body = json!({"error": {"message": "Slow down", "code": "rate_limit_exceeded"}});
    provider.script(
        "k",
        [Reply::status(429, body.clone()).header("Retry-After", "7")],
    );
    let answer = post(&provider, "responses", "k", &responses_body(true));
    assert_eq!((answer.status, answer.json()), (429, body));
    assert!(answer.head.contains("retry-after: 7"));
}

#[test]
fn raw_bytes_are_sent_unchanged() {
    let provider = provider();
    provider.script("k", [Reply::raw("<html>", "text/html")]);
    let answer = post(&provider, "responses", "k", &responses_body(true));
    assert_eq!((answer.status, answer.text().as_str()), (200, "<html>"));
    assert!(answer.head.contains("content-type: text/html"));
}

#[test]
fn a_body_is_cut_where_the_script_says() {
    let provider = provider();
    for streamed in [false, true] {
        let whole = {
            provider.script("k", [Reply::text("Hello")]);
            post(&provider, "responses", "k", &responses_body(streamed)).text()
        };
        provider.script("k", [Reply::text("Hello").cut_after(100)]);
        let cut = post(&provider, "responses", "k", &responses_body(streamed));
        assert!(!cut.complete);
        // The number of the response differs.
        assert_eq!(cut.text()[60..], whole[60..100]);
        provider.script("k", [Reply::text("Hello").end_after(100)]);
        let ended = post(&provider, "responses", "k", &responses_body(streamed));
        assert!(ended.complete);
        assert_eq!(ended.text().len(), 100);
    }
    assert!(!closed_early(&provider));
}

#[test]
fn a_connection_can_close_without_a_response() {
    let provider = provider();
    provider.script("k", [Reply::disconnect()]);
    assert_eq!(
        post(&provider, "responses", "k", &responses_body(false)).status,
        0
    );
}

#[test]
fn a_client_that_disconnects_is_recorded() {
    for reply in [
        Reply::hang(),
        Reply::text("Hello").hang_after(30),
        Reply::text("Hello").delay(Duration::from_secs(60)),
        Reply::text("Hello").pace(Duration::from_secs(60)),
        Reply::endless(),
    ] {
        let provider = provider();
        provider.script("k", [reply]);
        let stream = send(
            &provider,
            "responses",
            "k",
            &responses_body(true).to_string(),
        );
        wait_until("the request comes", || {
            provider.requests().len() == 1 && provider.replies_left("k") == 0
        });
        std::thread::sleep(Duration::from_millis(20));
        assert!(!closed_early(&provider));
        drop(stream);
        wait_until("the disconnect is recorded", || closed_early(&provider));
    }
}

#[test]
fn a_hanging_reply_sends_its_headers() {
    let provider = provider();
    provider.script("k", [Reply::hang(), Reply::hang()]);
    for streamed in [false, true] {
        let mut stream = send(
            &provider,
            "responses",
            "k",
            &responses_body(streamed).to_string(),
        );
        let mut head = [0; 15];
        stream.read_exact(&mut head).unwrap();
        assert_eq!(&head, b"HTTP/1.1 200 OK");
    }
}

#[test]
fn endless_replies_do_not_end() {
    let provider = provider();
    provider.script("k", [Reply::endless(), Reply::endless_line()]);
    provider.script("k", [Reply::endless(), Reply::endless_line()]);
    for (path, body) in [
        ("responses", responses_body(true)),
        ("chat/completions", chat_body(true)),
    ] {
        for events in [true, false] {
            let mut stream = send(&provider, path, "k", &body.to_string());
            let mut bytes = vec![0; 100_000];
            stream.read_exact(&mut bytes).unwrap();
            let text = String::from_utf8_lossy(&bytes);
            assert_eq!(text.matches("and on ").count() > 100, events);
        }
    }
}

#[test]
fn each_key_has_its_own_script_which_ends() {
    let provider = provider();
    provider.script("a", [Reply::text("A")]);
    provider.script("b", [Reply::text("B")]);
    let text = |key: &str| {
        let answer = post(&provider, "responses", key, &responses_body(false)).json();
        answer["output"][0]["content"][0]["text"].clone()
    };
    assert_eq!((text("b"), text("a")), (json!("B"), json!("A")));
    let over = post(&provider, "responses", "a", &responses_body(false));
    assert_eq!(
        (over.status, &over.json()["error"]["code"]),
        (404, &json!("script_over"))
    );
    let unknown = post(&provider, "responses", "c", &responses_body(false));
    assert_eq!(
        (unknown.status, &unknown.json()["error"]["code"]),
        (401, &json!("invalid_api_key"))
    );
    assert_eq!(provider.requests_of("a").len(), 2);
    assert_eq!(
        provider.requests_of("a")[0].header("authorization"),
        Some("Bearer a")
    );
    provider.assert_valid();
}

#[test]
fn a_bad_request_is_rejected_and_recorded_and_uses_no_reply() {
    let provider = provider();
    provider.script("k", [Reply::text("Hello")]);
    let mut body = responses_body(true);
    body["temprature"] = json!(1);
    let answer = post(&provider, "responses", "k", &body);
    let error = json!({"message": "Unknown parameter: 'temprature'.", "param": "temprature",
                       "type": "invalid_request_error", "code": "unknown_parameter"});
    assert_eq!(
        (answer.status, answer.json()),
        (400, json!({"error": error}))
    );
    let violation = provider.violations_of("k")[0].to_string();
    assert_eq!(
        violation,
        "/v1/responses with the key \"k\": temprature: Unknown parameter: 'temprature'."
    );
    assert_eq!(provider.replies_left("k"), 1);
    let asserted = std::thread::spawn(move || provider.assert_valid()).join();
    assert!(asserted.is_err());
}

#[test]
fn a_body_that_is_not_json_is_rejected() {
    let provider = provider();
    provider.script("k", [Reply::text("Hello")]);
    let mut bytes = Vec::new();
    send(&provider, "responses", "k", "{")
        .read_to_end(&mut bytes)
        .unwrap();
    assert_eq!(parse(&bytes).status, 400);
    assert_eq!(provider.requests()[0].body, "{");
    assert_eq!(provider.violations().len(), 1);
}

#[test]
fn other_paths_are_not_found() {
    let provider = provider();
    assert_eq!(post(&provider, "models", "k", &json!({})).status, 404);
}

#[test]
fn bytes_are_split_within_characters() {
    let provider = provider();
    provider.script("k", [Reply::text("世界").frames(1).quirk(Quirk::NoUsage)]);
    let answer = post(&provider, "chat/completions", "k", &chat_body(true));
    assert!(answer.chunks.iter().all(|chunk| chunk.len() == 1));
    assert!(answer.text().contains("世界"));
}

#[tokio::test]
async fn a_provider_runs_within_a_runtime_and_stops_with_its_handle() {
    let provider = FakeProvider::start().await.unwrap();
    provider.script("k", [Reply::text("Hello")]);
    let (answer, provider) = tokio::task::spawn_blocking(move || {
        (
            post(&provider, "responses", "k", &responses_body(false)),
            provider,
        )
    })
    .await
    .unwrap();
    assert_eq!(answer.status, 200);
    let url = provider.url();
    let address = url
        .strip_prefix("http://")
        .unwrap()
        .strip_suffix("/v1")
        .unwrap();
    drop(provider);
    let start = Instant::now();
    while tokio::net::TcpStream::connect(address).await.is_ok() {
        assert!(start.elapsed() < Duration::from_secs(10));
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
