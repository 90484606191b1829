//! The Responses API: whole and in events.

use fake_provider::{ErrorForm, Quirk, Reply, Usage};
use serde_json::{Value, json};

use crate::http::post;
use crate::{call, message, provider, responses_body};

/// An item of each kind.
fn every_kind() -> Vec<Value> {
    let samples: Value = serde_json::from_str(include_str!("../samples.json")).unwrap();
    let items = samples["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|items| items[0].clone());
    // Not input-only items: user messages and the short form of assistant messages.
    let is_input = |item: &Value| item["content"].is_string() || item["role"] == "user";
    let mut items: Vec<Value> = items.filter(|item| !is_input(item)).collect();
    items.push(json!({"type": "something_new", "id": "n_1", "whatever": {"deep": [1]}}));
    items.push(message("msg_1", "Grüße, 世界! 👋🏽 and more"));
    items.push(json!({"type": "message", "id": "msg_2", "role": "assistant", "status": "completed",
        "content": [
            {"type": "output_text", "text": "cited", "annotations": [
                {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}]},
            {"type": "refusal", "refusal": "I will not."}]}));
    items.push(
        json!({"type": "shell_call", "id": "sh_1", "call_id": "c", "status": "completed",
        "action": {"commands": ["ls -la", "pwd"], "timeout_ms": null}}),
    );
    items.push(
        json!({"type": "mcp_call", "id": "mcp_1", "server_label": "s", "name": "n",
        "arguments": "{\"long\": \"enough\"}", "output": null, "error": "it failed"}),
    );
    items
}

/// Assembles items from events.
#[derive(Default)]
struct Assembled(Vec<Value>);

impl Assembled {
    fn take(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap();
        let Some(index) = event["output_index"].as_u64() else {
            return;
        };
        let index = usize::try_from(index).unwrap();
        if kind == "response.output_item.added" {
            assert_eq!(index, self.0.len());
            self.0.push(event["item"].clone());
        }
        let item = &mut self.0[index];
        let at = |name: &str| usize::try_from(event[name].as_u64().unwrap()).unwrap();
        let delta = event["delta"].as_str().unwrap_or_default();
        match kind {
            "response.content_part.added" => push(&mut item["content"], event["part"].clone()),
            "response.output_text.delta" => {
                append(&mut item["content"][at("content_index")]["text"], delta);
            }
            "response.refusal.delta" => {
                append(&mut item["content"][at("content_index")]["refusal"], delta);
            }
            "response.output_text.annotation.added" => push(
                &mut item["content"][at("content_index")]["annotations"],
                event["annotation"].clone(),
            ),
            "response.reasoning_summary_part.added" => {
                push(&mut item["summary"], event["part"].clone());
            }
            "response.reasoning_summary_text.delta" => {
                append(&mut item["summary"][at("summary_index")]["text"], delta);
            }
            "response.reasoning_text.delta" => {
                let at = at("content_index");
                if item["content"].as_array().unwrap().len() == at {
                    push(
                        &mut item["content"],
                        json!({"type": "reasoning_text", "text": ""}),
                    );
                }
                append(&mut item["content"][at]["text"], delta);
            }
            "response.function_call_arguments.delta" | "response.mcp_call_arguments.delta" => {
                append(&mut item["arguments"], delta);
            }
            "response.custom_tool_call_input.delta" => append(&mut item["input"], delta),
            "response.code_interpreter_call_code.delta" => append(&mut item["code"], delta),
            "response.shell_call_command.added" => {
                push(&mut item["action"]["commands"], event["command"].clone());
            }
            "response.shell_call_command.delta" => {
                append(&mut item["action"]["commands"][at("command_index")], delta);
            }
            "response.output_item.done" => self.done(index, &event["item"]),
            _ => {}
        }
    }

    /// Checks the assembled fields, and takes the others from the whole item.
    fn done(&mut self, index: usize, whole: &Value) {
        for field in ["content", "summary", "arguments", "input", "code", "action"] {
            assert_eq!(self.0[index][field], whole[field], "{field} of {whole}");
        }
        self.0[index] = whole.clone();
    }
}

fn append(text: &mut Value, delta: &str) {
    *text = format!("{}{delta}", text.as_str().unwrap()).into();
}

fn push(list: &mut Value, value: Value) {
    list.as_array_mut().unwrap().push(value);
}

#[test]
fn items_are_sent_whole() {
    let provider = provider();
    let usage = Usage {
        input: 12,
        cached: 4,
        output: 3,
        reasoning: 1,
        ..Usage::default()
    };
    provider.script("k", [Reply::items(every_kind()).usage(usage)]);
    let answer = post(&provider, "responses", "k", &responses_body(false));
    assert_eq!(answer.status, 200);
    assert!(answer.head.contains("content-type: application/json"));
    assert!(answer.head.contains("x-request-id: req_0"));
    let response = answer.json();
    assert_eq!(response["output"], json!(every_kind()));
    assert_eq!(response["status"], "completed");
    assert_eq!(
        response["usage"],
        json!({"input_tokens": 12, "input_tokens_details": {"cached_tokens": 4, "cache_write_tokens": 0},
               "output_tokens": 3, "output_tokens_details": {"reasoning_tokens": 1},
               "total_tokens": 15})
    );
    provider.assert_valid();
}

#[test]
fn the_events_of_items_make_the_same_items() {
    let provider = provider();
    for (pieces, frames) in [(1, 1), (3, 7), (5, 4096)] {
        provider.script(
            "k",
            [Reply::items(every_kind()).pieces(pieces).frames(frames)],
        );
        let answer = post(&provider, "responses", "k", &responses_body(true));
        assert!(answer.complete);
        assert!(answer.chunks.iter().all(|chunk| chunk.len() <= frames));
        let events = answer.events();
        let mut assembled = Assembled::default();
        for (number, event) in events.iter().enumerate() {
            assert_eq!(event["sequence_number"], number, "{event}");
            assembled.take(event);
        }
        assert_eq!(assembled.0, every_kind());
        let last = events.last().unwrap();
        assert_eq!(last["type"], "response.completed");
        assert_eq!(last["response"]["output"], json!(every_kind()));
    }
}

#[test]
fn the_events_of_a_text_and_a_call_are_in_the_official_order() {
    let provider = provider();
    let items = [message("msg_1", "Hello"), call(1, "{}")];
    provider.script("k", [Reply::items(items)]);
    let answer = post(&provider, "responses", "k", &responses_body(true));
    assert!(answer.head.contains("content-type: text/event-stream"));
    let text = answer.text();
    let names: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("event: response."))
        .collect();
    assert_eq!(
        names,
        [
            "created",
            "in_progress",
            "output_item.added",
            "content_part.added",
            "output_text.delta",
            "output_text.done",
            "content_part.done",
            "output_item.done",
            "output_item.added",
            "function_call_arguments.delta",
            "function_call_arguments.done",
            "output_item.done",
            "completed",
        ]
    );
}

#[test]
fn replies_end_as_the_script_says() {
    let provider = provider();
    let first = || [message("msg_1", "So far")];
    let script = || {
        [
            Reply::failed("server_error", "Broken").after(first()),
            Reply::incomplete("max_output_tokens").after(first()),
            Reply::error_event(ErrorForm::Nested, "too_many", "Slow down").after(first()),
            Reply::error_event(ErrorForm::Flat, "too_many", "Slow down"),
        ]
    };
    provider.script("k", script());
    let last = || {
        let events = post(&provider, "responses", "k", &responses_body(true)).events();
        events.last().unwrap().clone()
    };
    let failed = last();
    assert_eq!(failed["type"], "response.failed");
    let error = json!({"code": "server_error", "message": "Broken"});
    assert_eq!(failed["response"]["error"], error);
    let incomplete = last();
    assert_eq!(incomplete["type"], "response.incomplete");
    let details = json!({"reason": "max_output_tokens"});
    assert_eq!(incomplete["response"]["incomplete_details"], details);
    assert_eq!(last()["error"]["code"], "too_many");
    assert_eq!(last()["code"], "too_many");

    provider.script("k", script());
    let mut statuses = Vec::new();
    for _ in script() {
        let answer = post(&provider, "responses", "k", &responses_body(false));
        statuses.push(json!([answer.status, answer.json()["status"]]));
    }
    assert_eq!(
        json!(statuses),
        json!([
            [200, "failed"],
            [200, "incomplete"],
            [500, null],
            [500, null]
        ])
    );
}

#[test]
fn quirks_change_the_stream() {
    let provider = provider();
    let text = |quirk: Quirk| {
        provider.script("k", [Reply::text("Hello").quirk(quirk)]);
        post(&provider, "responses", "k", &responses_body(true)).text()
    };
    let lines_end = text(Quirk::CrLf);
    assert_eq!(
        lines_end.matches('\n').count(),
        lines_end.matches("\r\n").count()
    );
    assert!(text(Quirk::Comments).starts_with(": PROCESSING\n\n:\n\nevent: response.created\n"));
    assert!(text(Quirk::NoSpace).starts_with("event:response.created\ndata:{"));
    assert!(text(Quirk::ByteOrderMark).starts_with("\u{feff}event: "));
    assert!(text(Quirk::NoLastBlank).ends_with('}'));
    assert!(text(Quirk::NoEventNames).starts_with("data: {"));
    assert!(!text(Quirk::NoSequenceNumbers).contains("sequence_number"));
    assert!(text(Quirk::Done).ends_with("data: [DONE]\n\n"));
    assert!(text(Quirk::UnknownEvents).contains("event: keepalive\n"));
    let empty = text(Quirk::EmptyFinalOutput);
    let last = empty
        .lines()
        .rev()
        .find_map(|line| line.strip_prefix("data: "))
        .unwrap();
    let last: Value = serde_json::from_str(last).unwrap();
    assert_eq!(last["response"]["output"], json!([]));
}
