//! A completion, or a chunk of a streamed one.

use std::borrow::Cow;

use switchboard_core::__private::unquote;
use switchboard_core::model::Usage;

use crate::wire::lenient_json::{field, json_object, list, text, usage, value};

/// The fields of a usage.
const USAGE: [&str; 4] = [
    "prompt_tokens",
    "prompt_tokens_details",
    "completion_tokens",
    "completion_tokens_details",
];

json_object! {
    /// A completion, or a chunk of a streamed one.
    struct Completion { id, choices, usage, error }
}

json_object! {
    /// A choice: `message` is the whole message of a completion, and `delta` the new part of the message
    /// of a chunk.
    struct Choice { index, message, delta, finish_reason, error }
}

json_object! {
    /// A message of the model, or a part of one.
    struct Message { content, refusal, reasoning_content, reasoning, tool_calls, function_call }
}

json_object! {
    struct ToolCall { index, id, function }
}

json_object! {
    struct Function { name, arguments }
}

/// A tool call of the model.
#[derive(Default)]
pub(super) struct Call<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: Cow<'a, str>,
}

impl<'a> Completion<'a> {
    pub(super) fn usage(&self) -> Option<Usage> {
        usage(self.usage, &USAGE)
    }

    pub(super) fn choices(&self) -> Vec<Choice<'a>> {
        let choices = self.choices.and_then(list).unwrap_or_default().into_iter();
        choices
            .map(|choice| Choice::parse(choice).unwrap_or_default())
            .collect()
    }
}

impl Choice<'_> {
    pub(super) fn index(&self) -> u64 {
        number(self.index).unwrap_or_default()
    }
}

impl<'a> Message<'a> {
    /// The text. Some servers send it in parts.
    pub(super) fn text(&self) -> Cow<'a, str> {
        if let Some(text) = self.content.and_then(unquote) {
            return text;
        }
        let parts = self.content.and_then(list).unwrap_or_default().into_iter();
        parts
            .map(|part| text(field(part, "text")))
            .fold(Cow::default(), |text, more| text + more)
    }

    pub(super) fn reasoning(&self) -> Cow<'a, str> {
        let reasoning = self.reasoning_content.and_then(unquote);
        reasoning.unwrap_or_else(|| text(self.reasoning))
    }

    pub(super) fn calls(&self) -> Vec<Call<'a>> {
        let calls = self.tool_calls.and_then(list).unwrap_or_default();
        if !calls.is_empty() {
            let calls = calls.into_iter().map(ToolCall::parse);
            return calls.map(|call| call.unwrap_or_default().into()).collect();
        }
        // The older form of the protocol, of one call.
        let function = self.function_call.filter(|json| json.starts_with('{'));
        let call = function.map(|function| ToolCall {
            index: Some("0"),
            id: None,
            function: Some(function),
        });
        call.map(Call::from).into_iter().collect()
    }

    /// The text of a message that holds nothing else, if it needs no unescaping.
    pub(super) fn only_text(&self) -> Option<&'a str> {
        let others = [
            self.refusal,
            self.reasoning_content,
            self.reasoning,
            self.tool_calls,
            self.function_call,
        ];
        match unquote(self.content?)? {
            Cow::Borrowed(text) if others == [None; 5] => Some(text),
            _ => None,
        }
    }
}

impl<'a> From<ToolCall<'a>> for Call<'a> {
    fn from(call: ToolCall<'a>) -> Self {
        let function = call.function.and_then(Function::parse).unwrap_or_default();
        Self {
            index: number(call.index),
            id: text(call.id),
            name: text(function.name),
            arguments: function.arguments.map(arguments).unwrap_or_default(),
        }
    }
}

fn number(json: Option<&str>) -> Option<u64> {
    json?.parse().ok()
}

/// The arguments of a call, which are a string of JSON. Some servers send the JSON itself.
fn arguments(json: &str) -> Cow<'_, str> {
    unquote(json).unwrap_or_else(|| match value(json) {
        Some(value) => value.to_string().into(),
        None => json.into(),
    })
}
