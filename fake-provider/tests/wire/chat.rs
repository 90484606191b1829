//! Chat Completions: whole and in chunks.

use fake_provider::{ErrorForm, Quirk, Reply, Usage};
use serde_json::{Value, json};

use crate::http::{Response, post};
use crate::{call, chat_body, message, provider};

const TEXT: &str = "Grüße, 世界! 👋🏽";

/// All kinds of items that Chat can carry in one reply.
fn everything() -> Vec<Value> {
    let mut text = message("msg_1", TEXT);
    let refusal = json!({"type": "refusal", "refusal": "But not that."});
    text["content"].as_array_mut().unwrap().push(refusal);
    vec![
        json!({"type": "reasoning", "id": "rs_1",
               "summary": [{"type": "summary_text", "text": "Hm, hm"}]}),
        text,
        call(1, "{\"a\": \"é\"}"),
        call(2, "{}"),
    ]
}

/// The message with everything.
fn whole_message() -> Value {
    json!({"role": "assistant", "content": TEXT, "refusal": "But not that.",
           "reasoning_content": "Hm, hm", "tool_calls": [
        {"id": "call_1", "type": "function",
         "function": {"name": "tool_1", "arguments": "{\"a\": \"é\"}"}},
        {"id": "call_2", "type": "function", "function": {"name": "tool_2", "arguments": "{}"}},
    ]})
}

/// Assembles chunks by their indexes.
fn assembled(chunks: &[Value]) -> Value {
    let mut message = json!({});
    for chunk in chunks {
        for (field, value) in chunk["choices"][0]["delta"]
            .as_object()
            .into_iter()
            .flatten()
        {
            match (field.as_str(), value) {
                ("tool_calls", calls) => {
                    for call in calls.as_array().unwrap() {
                        add_call(&mut message, call);
                    }
                }
                ("role", role) => message["role"] = role.clone(),
                (field, Value::String(text)) => append(&mut message[field], text),
                _ => {}
            }
        }
    }
    message
}

fn add_call(message: &mut Value, call: &Value) {
    if message.get("tool_calls").is_none() {
        message["tool_calls"] = json!([]);
    }
    let index = usize::try_from(call["index"].as_u64().unwrap()).unwrap();
    let calls = message["tool_calls"].as_array_mut().unwrap();
    if calls.len() == index {
        let mut first = call.clone();
        first.as_object_mut().unwrap().shift_remove("index");
        calls.push(first);
        return;
    }
    let more = call["function"]["arguments"].as_str().unwrap();
    append(&mut calls[index]["function"]["arguments"], more);
}

fn append(text: &mut Value, more: &str) {
    *text = format!("{}{more}", text.as_str().unwrap_or_default()).into();
}

fn ask(reply: Reply, streamed: bool) -> Response {
    let provider = provider();
    provider.script("k", [reply]);
    let answer = post(&provider, "chat/completions", "k", &chat_body(streamed));
    provider.assert_valid();
    answer
}

fn deltas(reply: Reply) -> Vec<Value> {
    let chunks = ask(reply, true).events();
    let deltas = chunks
        .iter()
        .map(|chunk| chunk["choices"][0]["delta"].clone());
    deltas.collect()
}

#[test]
fn a_message_is_sent_whole() {
    let usage = Usage {
        input: 12,
        cached: 4,
        output: 3,
        reasoning: 1,
        ..Usage::default()
    };
    let completion = ask(Reply::items(everything()).usage(usage), false).json();
    let choice = &completion["choices"][0];
    assert_eq!(choice["finish_reason"], "tool_calls");
    let mut message = choice["message"].clone();
    message.as_object_mut().unwrap().shift_remove("annotations");
    assert_eq!(message, whole_message());
    assert_eq!(completion["usage"]["total_tokens"], 15);
    assert_eq!(
        completion["usage"]["prompt_tokens_details"]["cached_tokens"],
        4
    );
}

#[test]
fn the_chunks_of_a_message_make_the_same_message() {
    for (pieces, frames) in [(1, 1), (3, 7), (5, 4096)] {
        let reply = Reply::items(everything()).pieces(pieces).frames(frames);
        let answer = ask(reply, true);
        assert!(answer.text().ends_with("data: [DONE]\n\n"));
        let chunks = answer.events();
        assert_eq!(assembled(&chunks), whole_message());
        assert_eq!(
            chunks.last().unwrap()["choices"][0]["finish_reason"],
            "tool_calls"
        );
        assert!(chunks.iter().all(|chunk| chunk.get("usage").is_none()));
    }
}

#[test]
fn usage_is_in_the_last_chunk_if_requested() {
    let provider = provider();
    provider.script("k", [Reply::text("Hi")]);
    let mut body = chat_body(true);
    body["stream_options"] = json!({"include_usage": true});
    let chunks = post(&provider, "chat/completions", "k", &body).events();
    let (last, others) = chunks.split_last().unwrap();
    assert_eq!(last["choices"], json!([]));
    assert_eq!(last["usage"]["total_tokens"], 0);
    assert!(others.iter().all(|chunk| chunk["usage"].is_null()));
}

#[test]
fn quirks_change_the_chunks() {
    let calls = || Reply::items([call(1, "{\"a\":1}"), call(2, "{}")]);
    let with = |quirk: Quirk| deltas(calls().quirk(quirk));
    let of_calls = |deltas: &[Value]| -> Vec<Value> {
        let calls = deltas.iter().map(|delta| delta["tool_calls"][0].clone());
        calls.filter(|call| !call.is_null()).collect()
    };
    let first = |quirk: Quirk| of_calls(&with(quirk))[0].clone();
    assert_eq!(first(Quirk::NoToolIndex).get("index"), None);
    assert_eq!(first(Quirk::NoCallId).get("id"), None);
    let zero = of_calls(&with(Quirk::ZeroToolIndex));
    assert!(zero.iter().all(|call| call["index"] == 0));
    let whole = of_calls(&with(Quirk::WholeCalls));
    assert_eq!(whole.len(), 2);
    assert_eq!(whole[0]["function"]["arguments"], "{\"a\":1}");
    let objects = of_calls(&with(Quirk::ObjectArguments));
    assert_eq!(objects[0]["function"]["arguments"], json!({"a": 1}));
    assert!(
        with(Quirk::NullContent)
            .iter()
            .all(|delta| delta["content"].is_null())
    );
    assert!(
        with(Quirk::NoRole)
            .iter()
            .all(|delta| delta.get("role").is_none())
    );
    let reasons = |quirk: Quirk| -> Vec<Value> {
        let chunks = ask(calls().quirk(quirk), true).events();
        let reasons = chunks
            .iter()
            .map(|chunk| chunk["choices"][0]["finish_reason"].clone());
        reasons.collect()
    };
    assert_eq!(reasons(Quirk::FinishStop).last().unwrap(), "stop");
    assert!(reasons(Quirk::NoFinish).iter().all(Value::is_null));
    let chunks = ask(calls().quirk(Quirk::FinishWithLast), true).events();
    let last = &chunks.last().unwrap()["choices"][0];
    assert_eq!(last["finish_reason"], "tool_calls");
    assert!(last["delta"]["tool_calls"].is_array());
    assert!(
        !ask(calls().quirk(Quirk::NoDone), true)
            .text()
            .contains("[DONE]")
    );
    let thought = Reply::items(everything()).quirk(Quirk::ReasoningField);
    assert_eq!(
        assembled(&ask(thought, true).events())["reasoning"],
        "Hm, hm"
    );
}

#[test]
fn replies_end_as_the_script_says() {
    let first = || [message("msg_1", "So far")];
    let reason = |reply: Reply| {
        let chunks = ask(reply.after(first()), true).events();
        chunks.last().unwrap()["choices"][0]["finish_reason"].clone()
    };
    assert_eq!(reason(Reply::incomplete("max_output_tokens")), "length");
    assert_eq!(
        reason(Reply::incomplete("content_filter")),
        "content_filter"
    );
    for reply in [
        Reply::failed("server_error", "Broken"),
        Reply::error_event(ErrorForm::Nested, "server_error", "Broken"),
    ] {
        let streamed = ask(reply.clone().after(first()), true);
        assert_eq!(
            streamed.events().last().unwrap()["error"]["message"],
            "Broken"
        );
        let plain = ask(reply, false);
        assert_eq!(
            (plain.status, &plain.json()["error"]["code"]),
            (500, &json!("server_error"))
        );
    }
}

#[test]
fn items_that_chat_cannot_carry_are_a_problem() {
    let reasoning = |summary: Value| json!({"type": "reasoning", "id": "rs_1", "summary": summary});
    let part = json!({"type": "summary_text", "text": "Hm"});
    let problems = [
        (
            vec![json!({"type": "web_search_call", "id": "ws_1"})],
            "Chat cannot carry an item of type \"web_search_call\"",
        ),
        (
            vec![message("msg_1", "a"), message("msg_2", "b")],
            "Chat cannot carry two items of type \"message\" in one answer",
        ),
        (
            vec![call(1, "{}"), message("msg_1", "a")],
            "Chat cannot say that an item of type \"message\" came after the others",
        ),
        (
            vec![message("msg_1", "")],
            "Chat cannot carry an empty text",
        ),
        (
            vec![reasoning(json!([]))],
            "Chat cannot carry reasoning without a text",
        ),
        (
            vec![reasoning(json!([part, part]))],
            "Chat cannot carry reasoning of several texts",
        ),
    ];
    for (items, problem) in problems {
        let reply = Reply::items(items);
        assert_eq!(reply.chat_problem().as_deref(), Some(problem));
        let answer = ask(reply, false);
        assert_eq!(
            (answer.status, &answer.json()["error"]["message"]),
            (501, &json!(problem))
        );
    }
    assert_eq!(Reply::items(everything()).chat_problem(), None);
    assert_eq!(Reply::status(500, json!({})).chat_problem(), None);
}
