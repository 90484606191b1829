//! The events of a streamed answer.

use std::time::Duration;

use fake_provider::{Quirk, Reply};
use futures_util::StreamExt as _;
use serde_json::{Value, json};
use switchboard_core::model::{ModelEvent, ModelHandle, ModelRetry};
use switchboard_models::{ModelError, ModelErrorKind};

use crate::{BOTH, PROVIDER, Protocol, Script, hello, model};

/// All events of a stream but the raw ones; the answer at its end is left out.
async fn events(model: &ModelHandle) -> Vec<ModelEvent> {
    let events: Vec<_> = model.stream(hello()).collect().await;
    let mut events: Vec<ModelEvent> = events.into_iter().map(Result::unwrap).collect();
    events.retain(|event| !matches!(event, ModelEvent::Raw(_)));
    assert!(matches!(events.pop(), Some(ModelEvent::Completed(_))));
    events
}

fn reasoning(item: &str, text: &str) -> ModelEvent {
    ModelEvent::ReasoningDelta {
        item: item.into(),
        text: text.to_owned(),
    }
}

fn arguments(item: &str, call_id: &str, tool: &str, text: &str) -> ModelEvent {
    ModelEvent::ArgumentsDelta {
        item: item.into(),
        call_id: call_id.into(),
        tool: tool.into(),
        text: text.to_owned(),
    }
}

fn items() -> [Value; 4] {
    [
        json!({"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm, hm"}]}),
        json!({"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
               "content": [{"type": "output_text", "text": "Grüße", "annotations": []}]}),
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_a", "name": "lookup",
               "arguments": "{\"x\":1}", "status": "completed"}),
        json!({"type": "function_call", "id": "fc_2", "call_id": "call_b", "name": "find",
               "arguments": "{}", "status": "completed"}),
    ]
}

#[tokio::test]
async fn deltas_name_the_items_of_a_response() {
    let expected = [
        reasoning("rs_1", "Hm, "),
        reasoning("rs_1", "hm"),
        ModelEvent::text_delta("msg_1", "Grüß"),
        ModelEvent::text_delta("msg_1", "e"),
        arguments("fc_1", "call_a", "lookup", "{\"x\""),
        arguments("fc_1", "call_a", "lookup", ":1}"),
        arguments("fc_2", "call_b", "find", "{}"),
    ];
    for quirk in [
        None,
        Some(Quirk::NoEventNames),
        Some(Quirk::NoSequenceNumbers),
        Some(Quirk::UnknownEvents),
        Some(Quirk::EmptyFinalOutput),
    ] {
        let reply = Reply::items(items()).pieces(4);
        let reply = quirk.into_iter().fold(reply, Reply::quirk);
        let script = Script::new([reply]);
        let streamed = events(&script.model(Protocol::Responses)).await;
        assert_eq!(streamed, expected, "{quirk:?}");
    }
}

#[tokio::test]
async fn the_text_of_reasoning_is_streamed_like_its_summary() {
    let item = json!({"type": "reasoning", "id": "rs_1", "summary": [],
        "content": [{"type": "reasoning_text", "text": "Hm, hm"}]});
    let message = items()[1].clone();
    let script = Script::new([Reply::items([item, message]).pieces(4)]);
    let expected = [
        reasoning("rs_1", "Hm, "),
        reasoning("rs_1", "hm"),
        ModelEvent::text_delta("msg_1", "Grüß"),
        ModelEvent::text_delta("msg_1", "e"),
    ];
    let streamed = events(&script.model(Protocol::Responses)).await;
    assert_eq!(streamed, expected);
}

#[tokio::test]
async fn deltas_name_the_items_of_a_completion() {
    let begin = [
        reasoning("reasoning", "Hm, "),
        reasoning("reasoning", "hm"),
        ModelEvent::text_delta("message", "Grüß"),
        ModelEvent::text_delta("message", "e"),
    ];
    let calls = |first: &str, second: &str| {
        vec![
            arguments("call_0", first, "lookup", "{\"x\""),
            arguments("call_0", first, "lookup", ":1}"),
            arguments("call_1", second, "find", "{}"),
        ]
    };
    let whole = vec![
        arguments("call_0", "call_a", "lookup", "{\"x\":1}"),
        arguments("call_1", "call_b", "find", "{}"),
    ];
    let usual = calls("call_a", "call_b");
    for (quirk, calls) in [
        (None, usual.clone()),
        (Some(Quirk::ReasoningField), usual.clone()),
        (Some(Quirk::NullContent), usual.clone()),
        (Some(Quirk::NoToolIndex), usual.clone()),
        (Some(Quirk::ZeroToolIndex), usual),
        (Some(Quirk::NoCallId), calls("", "")),
        (Some(Quirk::WholeCalls), whole.clone()),
        (Some(Quirk::ObjectArguments), whole),
    ] {
        let reply = Reply::items(items()).pieces(4);
        let reply = quirk.into_iter().fold(reply, Reply::quirk);
        let script = Script::new([reply]);
        let streamed = events(&script.model(Protocol::Chat)).await;
        assert_eq!(streamed, [&begin[..], &calls].concat(), "{quirk:?}");
    }
}

#[tokio::test]
async fn a_refusal_has_no_deltas() {
    for protocol in BOTH {
        let script = Script::new([Reply::refusal("I would rather not.").pieces(4)]);
        assert_eq!(events(&script.model(protocol)).await, [], "{protocol:?}");
    }
}

#[tokio::test]
async fn an_answer_that_is_not_streamed_has_one_delta_for_each_item() {
    let response = json!({"id": "resp_1", "status": "completed", "output": items()});
    let script = Script::new([Reply::raw(response.to_string(), "application/json")]);
    let expected = [
        reasoning("rs_1", "Hm, hm"),
        ModelEvent::text_delta("msg_1", "Grüße"),
        arguments("fc_1", "call_a", "lookup", "{\"x\":1}"),
        arguments("fc_2", "call_b", "find", "{}"),
    ];
    let streamed = events(&script.model(Protocol::Responses)).await;
    assert_eq!(streamed, expected);

    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    let completion = json!({"id": "c", "choices": [{"index": 0, "finish_reason": "tool_calls",
        "message": {"role": "assistant", "content": "Grüße", "reasoning_content": "Hm, hm",
            "tool_calls": [call("call_a", "lookup", "{\"x\":1}"), call("call_b", "find", "{}")]}}]});
    let script = Script::new([Reply::raw(completion.to_string(), "application/json")]);
    let expected = [
        reasoning("reasoning", "Hm, hm"),
        ModelEvent::text_delta("message", "Grüße"),
        arguments("call_0", "call_a", "lookup", "{\"x\":1}"),
        arguments("call_1", "call_b", "find", "{}"),
    ];
    assert_eq!(events(&script.model(Protocol::Chat)).await, expected);
}

fn unavailable() -> Reply {
    let body = json!({"error": {"message": "No.", "code": "overloaded"}});
    Reply::status(503, body)
        .header("retry-after-ms", "2")
        .header("x-request-id", "r")
}

fn retry(protocol: Protocol, attempt: u32, reason: &str) -> ModelEvent {
    let path = match protocol {
        Protocol::Responses => "responses",
        Protocol::Chat => "chat/completions",
    };
    let url = PROVIDER.url();
    let reason = format!("{url}/{path}: {reason}; the server asks to wait 0.002 s; request id r");
    ModelEvent::Retry(ModelRetry::new(attempt, Duration::from_millis(2), reason))
}

#[tokio::test]
async fn retries_are_events_of_the_stream() {
    let failed_event = format!(
        "data: {}\n\n",
        json!({"type": "error", "error": {"code": "server_error", "message": "Busy."}})
    );
    let failed_event = Reply::raw(failed_event, "text/event-stream")
        .header("retry-after-ms", "2")
        .header("x-request-id", "r");
    for protocol in BOTH {
        let item = match protocol {
            Protocol::Responses => "msg_1",
            Protocol::Chat => "message",
        };
        let script = Script::new([
            unavailable(),
            failed_event.clone(),
            Reply::items([items()[1].clone()]),
        ]);
        let patient = model(&script.endpoint().retries(2), protocol);
        let expected = [
            retry(protocol, 2, "status 503 (overloaded): No."),
            retry(protocol, 3, "Busy. (server_error)"),
            ModelEvent::text_delta(item, "Grüße"),
        ];
        assert_eq!(events(&patient).await, expected, "{protocol:?}");
        assert_eq!(script.requests().len(), 3);
    }
}

#[tokio::test]
async fn the_error_after_the_last_retry_ends_the_stream() {
    for protocol in BOTH {
        let script = Script::new([unavailable(), unavailable()]);
        let patient = model(&script.endpoint().retries(1), protocol);
        let mut events: Vec<_> = patient.stream(hello()).collect().await;
        let error = events.pop().unwrap().unwrap_err();
        let error = error.downcast::<ModelError>().unwrap();
        assert_eq!(
            (error.kind(), error.attempts()),
            (ModelErrorKind::Server, 2)
        );
        let events: Vec<ModelEvent> = events.into_iter().map(Result::unwrap).collect();
        assert_eq!(events, [retry(protocol, 2, "status 503 (overloaded): No.")]);
    }
}

#[tokio::test]
async fn a_retry_is_yielded_before_its_delay() {
    for protocol in BOTH {
        let script = Script::new([unavailable().header("retry-after-ms", "60000")]);
        let patient = model(&script.endpoint().retries(1), protocol);
        let mut stream = patient.stream(hello());
        let next = tokio::time::timeout(Duration::from_secs(30), stream.next());
        let Some(Ok(ModelEvent::Retry(retry))) = next.await.expect("the delay is not awaited")
        else {
            panic!("no retry");
        };
        assert_eq!((retry.attempt, retry.delay), (2, Duration::from_secs(60)));
        assert_eq!(script.requests().len(), 1);
    }
}
