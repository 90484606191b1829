//! Answers of servers that deviate from the protocol.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use fake_provider::Reply;
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_core::callback::BoxError;
use switchboard_core::model::ModelEvent;
use switchboard_core::{Agent, Item, ModelResponse, Runner};
use switchboard_models::{Endpoint, ModelError, ModelErrorKind};

use crate::{Protocol, Script, ask, hello, model, text_of};

const EVENTS: &str = "text/event-stream";

/// Streams these events as an answer.
async fn streamed(protocol: Protocol, events: &[&str]) -> Result<ModelResponse, BoxError> {
    let bytes: String = events.iter().map(|e| format!("data: {e}\n\n")).collect();
    let script = Script::new([Reply::raw(bytes, EVENTS)]);
    ask(&script.model(protocol), hello(), true).await
}

async fn kind(protocol: Protocol, events: &[&str]) -> ModelErrorKind {
    let error = streamed(protocol, events).await.unwrap_err();
    error.downcast::<ModelError>().unwrap().kind()
}

const ITEM: &str = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"par"}]}}"#;
const DONE: &str = r#"{"type":"response.completed","response":{"id":"r","status":"completed"}}"#;

#[tokio::test]
async fn the_last_event_decides_the_outcome_of_a_response() {
    for (last, expected) in [
        (
            r#"{"type":"response.incomplete","response":{"incomplete_details":{"reason":"max_output_tokens"}}}"#,
            ModelErrorKind::Incomplete,
        ),
        (
            r#"{"type":"response.incomplete"}"#,
            ModelErrorKind::Incomplete,
        ),
        (
            r#"{"type":"response.failed","response":{"error":{"message":"boom"}}}"#,
            ModelErrorKind::Failed,
        ),
        (r#"{"type":"response.failed"}"#, ModelErrorKind::Failed),
        (
            r#"{"type":"response.failed","response":{"status":"completed"}}"#,
            ModelErrorKind::Failed,
        ),
        (
            r#"{"type":"response.completed","response":{"error":{"message":"boom"}}}"#,
            ModelErrorKind::Failed,
        ),
        (r#"{"error":{"message":"boom"}}"#, ModelErrorKind::Failed),
        (r#"{"type":"response.comp"#, ModelErrorKind::BadAnswer),
    ] {
        assert_eq!(
            kind(Protocol::Responses, &[ITEM, last, DONE]).await,
            expected,
            "{last}"
        );
    }
}

#[tokio::test]
async fn odd_events_do_not_end_a_response() {
    for odd in [
        r#"{"type":"response.new_thing","error":{"message":"a tool failed"}}"#,
        r#"{"type":"response.new_thing","output_index":-1,"item":7,"response":[]}"#,
        r#"{"type":"response.output_text.delta","delta":"\ud83d"}"#,
        r#"{"type":"response.output_text.delta","delta":7,"delta":null}"#,
        r#"{"type":7}"#,
        "ping",
        "1",
        "[]",
        // The last of two items at one index counts.
        r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"message","content":"x"}}"#,
    ] {
        let answer = streamed(Protocol::Responses, &[odd, ITEM, DONE]).await;
        let answer = answer.unwrap_or_else(|error| panic!("{odd}: {error}"));
        assert_eq!(text_of(&answer), "par", "{odd}");
        assert_eq!(answer.output.len(), 1, "{odd}");
    }
    for odd in [
        "ping",
        "1",
        r#"{"error":false}"#,
        r#"{"error":null,"choices":null}"#,
    ] {
        let last = r#"{"choices":[{"delta":{"content":"par"},"finish_reason":"stop"}]}"#;
        let answer = streamed(Protocol::Chat, &[odd, last, "[DONE]"]).await;
        assert_eq!(text_of(&answer.unwrap()), "par", "{odd}");
    }
}

#[tokio::test]
async fn a_lone_surrogate_is_replaced_in_text_and_kept_in_the_raw_event() {
    let responses = r#"{"type":"response.output_text.delta","delta":"a\ud83d"}"#;
    let chat = r#"{"choices":[{"delta":{"content":"a\ud83d"},"finish_reason":"stop"}]}"#;
    for (protocol, event) in [(Protocol::Responses, responses), (Protocol::Chat, chat)] {
        let bytes = format!("data: {event}\n\ndata: {DONE}\n\ndata: [DONE]\n\n");
        let script = Script::new([Reply::raw(bytes, EVENTS)]);
        let events: Vec<_> = script.model(protocol).stream(hello()).collect().await;
        let mut events = events.into_iter().map(Result::unwrap);
        assert!(
            matches!(events.next(), Some(ModelEvent::TextDelta { text, .. }) if text == "a\u{fffd}")
        );
        assert!(matches!(events.next(), Some(ModelEvent::Raw(raw)) if raw.as_json() == event));
    }
}

#[tokio::test]
async fn an_incomplete_answer_is_an_error_in_both_protocols() {
    let cut = |finish: &str, message: Value| json!({"choices": [{"finish_reason": finish, "message": message}]});
    let response = |reason: &str| {
        json!({"id": "r", "status": "incomplete", "incomplete_details": {"reason": reason},
               "output": [{"type": "message", "role": "assistant", "content": "par"}]})
    };
    for (protocol, body) in [
        (Protocol::Chat, cut("length", json!({"content": "par"}))),
        (
            Protocol::Chat,
            cut("content_filter", json!({"content": "par"})),
        ),
        (Protocol::Responses, response("max_output_tokens")),
        (Protocol::Responses, response("content_filter")),
    ] {
        let script = Script::new([Reply::raw(body.to_string(), "application/json")]);
        let agent: Agent = Agent::new("A").model(script.model(protocol));
        let error = Runner::new(&agent).run("Hi").await.unwrap_err();
        let cause = error.cause().unwrap().downcast_ref::<ModelError>().unwrap();
        assert_eq!(cause.kind(), ModelErrorKind::Incomplete, "{body}");
    }
    let text = r#"{"choices":[{"delta":{"content":"par"}}]}"#;
    for finish in ["length", "content_filter"] {
        let last = format!(r#"{{"choices":[{{"delta":{{}},"finish_reason":"{finish}"}}]}}"#);
        let kind = kind(Protocol::Chat, &[text, &last, "[DONE]"]).await;
        assert_eq!(kind, ModelErrorKind::Incomplete, "{finish}");
    }
    // Incomplete arguments without a finish reason.
    let half = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"t","arguments":"{\"x"}}]}}]}"#;
    assert_eq!(
        kind(Protocol::Chat, &[half, "[DONE]"]).await,
        ModelErrorKind::Interrupted
    );
}

#[tokio::test]
async fn an_error_of_a_choice_is_an_error_of_the_answer() {
    let text = r#"{"choices":[{"delta":{"content":"par"}}]}"#;
    for finish in ["stop", "error"] {
        let last = format!(
            r#"{{"choices":[{{"delta":{{}},"finish_reason":"{finish}","error":{{"message":"died","code":502}}}}]}}"#
        );
        let error = streamed(Protocol::Chat, &[text, &last, "[DONE]"]).await;
        let error = error.unwrap_err().downcast::<ModelError>().unwrap();
        assert_eq!(error.kind(), ModelErrorKind::Server);
        assert!(error.to_string().contains("died"), "{error}");
    }
}

#[tokio::test]
async fn a_call_in_the_older_form_is_read() {
    let events = [
        r#"{"choices":[{"delta":{"function_call":{"name":"t","arguments":""}}}]}"#,
        r#"{"choices":[{"delta":{"function_call":{"arguments":"{\"x\":1}"}},"finish_reason":"function_call"}]}"#,
        "[DONE]",
    ];
    let answer = streamed(Protocol::Chat, &events).await.unwrap();
    let calls: Vec<&Item> = answer.output.iter().collect();
    assert_eq!(calls.len(), 1);
    assert_eq!(calls[0].arguments().as_deref(), Some(r#"{"x":1}"#));
}

#[tokio::test]
async fn a_complete_answer_does_not_wait_for_the_end_of_the_stream() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    // A server that sends the finish reason and then only keep-alive comments.
    std::thread::spawn(move || {
        let (mut peer, _) = listener.accept().unwrap();
        let _ = peer.read(&mut [0; 1 << 16]);
        let last = r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#;
        let head = format!("HTTP/1.1 200 OK\r\ncontent-type: {EVENTS}\r\n\r\ndata: {last}\n\n");
        let mut more = head.into_bytes();
        while peer.write_all(&more).is_ok() {
            more = b": ping\n\n".to_vec();
            std::thread::sleep(Duration::from_millis(100));
        }
    });
    let model = model(&Endpoint::at(url).retries(0), Protocol::Chat);
    let answer = tokio::time::timeout(Duration::from_secs(60), ask(&model, hello(), true)).await;
    assert_eq!(text_of(&answer.unwrap().unwrap()), "a");
}

#[tokio::test]
async fn a_byte_order_mark_before_a_plain_answer_is_skipped() {
    for (protocol, body) in [
        (
            Protocol::Responses,
            r#"{"id":"r","status":"completed","output":[{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"Hi.","annotations":[]}]}]}"#,
        ),
        (
            Protocol::Chat,
            r#"{"id":"c","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":"Hi."}}]}"#,
        ),
    ] {
        let script = Script::new([Reply::raw(format!("\u{feff}{body}"), "application/json")]);
        let answer = ask(&script.model(protocol), hello(), false).await.unwrap();
        assert_eq!(text_of(&answer), "Hi.");
    }
}
