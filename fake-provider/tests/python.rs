//! The official Python client reads what the fake provider sends.
//!
//! `./test` installs the Python package and runs this; without it the test is ignored.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use fake_provider::{FakeProvider, Reply, Usage};
use serde_json::{Value, json};

/// Runs the client with this key and returns what it read.
fn run_client(provider: &FakeProvider, key: &str) -> Value {
    let python = std::env::var("SWITCHBOARD_PYTHON").unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/python/read.py");
    let mut child = Command::new(python)
        .arg(script)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let task = json!({"url": provider.url(), "key": key});
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(task.to_string().as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Output items of each kind, as the client's types serialize them.
fn items() -> Value {
    json!([
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "Hm, hm"}],
         "content": [{"type": "reasoning_text", "text": "Let me see"}], "encrypted_content": "e"},
        {"id": "ws_1", "type": "web_search_call", "status": "completed",
         "action": {"type": "search", "query": "q"}},
        {"id": "fs_1", "type": "file_search_call", "status": "completed", "queries": ["q"]},
        {"id": "ci_1", "type": "code_interpreter_call", "status": "completed", "code": "print(1)",
         "container_id": "c", "outputs": [{"type": "logs", "logs": "1"}]},
        {"id": "ig_1", "type": "image_generation_call", "status": "completed", "result": "aGk="},
        {"id": "mcpl_1", "type": "mcp_list_tools", "server_label": "s",
         "tools": [{"name": "n", "input_schema": {}}]},
        {"id": "mcp_1", "type": "mcp_call", "server_label": "s", "name": "n", "arguments": "{\"a\":1}",
         "output": "x"},
        {"id": "sh_1", "type": "shell_call", "call_id": "c1", "status": "completed",
         "action": {"commands": ["ls -la"], "timeout_ms": 5, "max_output_length": 5},
         "environment": null},
        {"id": "so_1", "type": "shell_call_output", "call_id": "c1", "status": "completed",
         "max_output_length": 5,
         "output": [{"stdout": "a\nb", "stderr": "!", "outcome": {"type": "exit", "exit_code": 0}}]},
        {"id": "ct_1", "type": "custom_tool_call", "call_id": "c2", "name": "n", "input": "free text"},
        {"id": "msg_1", "type": "message", "role": "assistant", "status": "completed", "content": [
            {"type": "output_text", "text": "Grüße, 世界! 👋🏽", "logprobs": [], "annotations": [
                {"type": "url_citation", "url": "u", "title": "t", "start_index": 0, "end_index": 1}]},
            {"type": "refusal", "refusal": "But not that."}]},
        {"id": "fc_1", "type": "function_call", "call_id": "call_1", "name": "look",
         "arguments": "{\"a\": \"é\"}", "status": "completed"},
    ])
}

fn script_twice(provider: &FakeProvider, key: &str, items: &Value) {
    let usage = Usage {
        input: 12,
        cached: 4,
        output: 3,
        reasoning: 1,
        ..Usage::default()
    };
    let items = items.as_array().unwrap();
    let reply = Reply::items(items.clone()).usage(usage).frames(11);
    provider.script(key, [reply.clone(), reply]);
}

#[test]
#[ignore = "needs the Python package openai; ./test installs it and sets SWITCHBOARD_PYTHON"]
fn the_official_client_reads_both_protocols_whole_and_streamed() {
    let provider = FakeProvider::on_thread().unwrap();
    script_twice(&provider, "responses", &items());
    let read = run_client(&provider, "responses");
    assert_eq!(read["plain"], items());
    assert_eq!(read["streamed"], items());
    assert_eq!(read["usage"], json!([[12, 4, 3, 1], [12, 4, 3, 1]]));

    let carried = json!([
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm, hm"}]},
        {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed",
         "content": [{"type": "output_text", "text": "Grüße, 世界! 👋🏽", "annotations": []}]},
        {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look",
         "arguments": "{\"a\": \"é\"}"},
        {"type": "function_call", "id": "fc_2", "call_id": "call_2", "name": "go", "arguments": "{}"},
    ]);
    script_twice(&provider, "chat", &carried);
    let read = run_client(&provider, "chat");
    let message = json!({
        "content": "Grüße, 世界! 👋🏽", "reasoning": "Hm, hm", "finish_reason": "tool_calls",
        "calls": [["call_1", "look", "{\"a\": \"é\"}"], ["call_2", "go", "{}"]],
    });
    assert_eq!(read["plain"], message);
    assert_eq!(read["streamed"], message);
    assert_eq!(read["usage"], json!([[12, 4, 3, 1], [12, 4, 3, 1]]));
    provider.assert_valid();
}
