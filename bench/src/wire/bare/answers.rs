//! Answers as a program without an engine declares them: the fields that it needs, and no others.

#![expect(dead_code, reason = "what is read is thrown away")]

use serde::Deserialize;

/// An answer of the Responses API.
#[derive(Deserialize)]
pub(super) struct Response {
    id: String,
    status: String,
    output: Vec<OutputItem>,
    usage: Usage,
}

/// A message or a call. Not an enum, for which serde would copy all fields first.
#[derive(Deserialize)]
struct OutputItem {
    r#type: String,
    call_id: Option<String>,
    name: Option<String>,
    arguments: Option<String>,
    #[serde(default)]
    content: Vec<Content>,
}

#[derive(Deserialize)]
struct Content {
    text: String,
}

#[derive(Deserialize)]
struct Usage {
    input_tokens: u64,
    output_tokens: u64,
}

/// An answer of the Chat Completions API.
#[derive(Deserialize)]
pub(super) struct Completion {
    id: String,
    choices: Vec<Choice>,
    usage: CompletionUsage,
}

#[derive(Deserialize)]
struct Choice {
    message: Message,
    finish_reason: String,
}

#[derive(Deserialize)]
struct Message {
    content: Option<String>,
    #[serde(default)]
    tool_calls: Vec<ToolCall>,
}

#[derive(Deserialize)]
struct ToolCall {
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    arguments: String,
}

#[derive(Deserialize)]
struct CompletionUsage {
    prompt_tokens: u64,
    completion_tokens: u64,
}
