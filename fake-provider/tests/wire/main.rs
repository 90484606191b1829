//! The server over a socket.

#![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod audio;
mod chat;
mod faults;
mod http;
mod open_calls;
mod prepared;
mod responses;

use fake_provider::FakeProvider;
use serde_json::{Value, json};

fn provider() -> FakeProvider {
    FakeProvider::on_thread().unwrap()
}

/// A minimal body.
fn responses_body(streamed: bool) -> Value {
    json!({"model": "gpt-test", "input": "Hi", "stream": streamed})
}

fn chat_body(streamed: bool) -> Value {
    json!({"model": "gpt-test", "messages": [{"role": "user", "content": "Hi"}], "stream": streamed})
}

fn message(id: &str, text: &str) -> Value {
    json!({"type": "message", "id": id, "role": "assistant", "status": "completed",
           "content": [{"type": "output_text", "text": text, "annotations": []}]})
}

fn call(number: u32, arguments: &str) -> Value {
    json!({"type": "function_call", "id": format!("fc_{number}"), "name": format!("tool_{number}"),
           "call_id": format!("call_{number}"), "arguments": arguments})
}
