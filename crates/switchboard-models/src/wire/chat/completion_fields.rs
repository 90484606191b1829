//! A completion, or a chunk of a streamed one.

use std::borrow::Cow;

use switchboard_core::__private::unquote;
use switchboard_core::model::Usage;

use crate::wire::lenient_json::{TokenDetails, field, json_object, list, text, usage, value};

json_object! {
    /// A completion, or a chunk of a streamed one.
    struct Completion { id, choices: Vec<Option<Choice<'a>>>, usage: UsageFields<'a>, error }
}

json_object! {
    /// A choice: `message` is the whole message of a completion, and `delta` the new part of the message
    /// of a chunk.
    struct Choice { index, message: Message<'a>, delta: Message<'a>, finish_reason, error }
}

json_object! {
    /// A message of the model, or a part of one.
    struct Message {
        content, refusal, reasoning_content, reasoning,
        tool_calls: Vec<Option<ToolCall<'a>>>, function_call: Function<'a>,
    }
}

json_object! {
    struct ToolCall { index, id, function: Function<'a> }
}

json_object! {
    struct Function { name, arguments }
}

json_object! {
    struct UsageFields {
        prompt_tokens, prompt_tokens_details: TokenDetails<'a>,
        completion_tokens, completion_tokens_details: TokenDetails<'a>,
    }
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
        let fields = self.usage.as_ref()?;
        let input = fields.prompt_tokens_details.as_ref();
        let output = fields.completion_tokens_details.as_ref();
        Some(usage(
            (fields.prompt_tokens, input),
            (fields.completion_tokens, output),
        ))
    }

    pub(super) fn into_choices(self) -> impl ExactSizeIterator<Item = Choice<'a>> {
        let choices = self.choices.unwrap_or_default().into_iter();
        choices.map(Option::unwrap_or_default)
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

    pub(super) fn into_calls(self) -> Vec<Call<'a>> {
        let calls = self.tool_calls.unwrap_or_default();
        if !calls.is_empty() {
            let calls = calls.into_iter().map(Option::unwrap_or_default);
            return calls.map(Call::from).collect();
        }
        // The older form of the protocol, of one call.
        let call = self.function_call.map(|function| ToolCall {
            index: Some("0"),
            id: None,
            function: Some(function),
        });
        call.map(Call::from).into_iter().collect()
    }

    /// The text of a message that holds nothing else, if it needs no unescaping.
    pub(super) fn only_text(&self) -> Option<&'a str> {
        let others = [self.refusal, self.reasoning_content, self.reasoning];
        let has_calls = self.tool_calls.is_some() || self.function_call.is_some();
        match unquote(self.content?)? {
            Cow::Borrowed(text) if others == [None; 3] && !has_calls => Some(text),
            _ => None,
        }
    }
}

impl<'a> From<ToolCall<'a>> for Call<'a> {
    fn from(call: ToolCall<'a>) -> Self {
        let function = call.function.unwrap_or_default();
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
