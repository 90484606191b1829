//! A completion, or a chunk of a streamed one.

use std::borrow::Cow;

use serde::de::{IgnoredAny, MapAccess};
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_core::__private::unquote;
use switchboard_core::model::Usage;

use crate::wire::lenient::{
    Lenient, ReadParts, count, fields_or_none, list, text, value, value_or_null,
};

/// The JSON of a field; `None` if it is missing or null.
type Json<'a> = Option<&'a RawValue>;

/// A completion, or a chunk of a streamed one.
#[derive(Default)]
pub(super) struct Completion<'a> {
    id: Json<'a>,
    choices: Lenient<Vec<Lenient<Choice<'a>>>>,
    usage: Lenient<UsageFields<'a>>,
    error: Json<'a>,
}

#[derive(Default)]
struct UsageFields<'a> {
    prompt_tokens: Json<'a>,
    prompt_tokens_details: Lenient<PromptDetails<'a>>,
    completion_tokens: Json<'a>,
    completion_tokens_details: Lenient<CompletionDetails<'a>>,
}

#[derive(Default)]
struct PromptDetails<'a> {
    cached_tokens: Json<'a>,
}

#[derive(Default)]
struct CompletionDetails<'a> {
    reasoning_tokens: Json<'a>,
}

#[derive(Default)]
pub(super) struct Choice<'a> {
    index: Json<'a>,
    /// The whole message of a completion.
    pub(super) message: Lenient<Message<'a>>,
    /// The new part of the message of a chunk.
    pub(super) delta: Lenient<Message<'a>>,
    finish_reason: Json<'a>,
    error: Json<'a>,
}

/// A message of the model, or a part of one.
#[derive(Default)]
pub(super) struct Message<'a> {
    content: Json<'a>,
    refusal: Json<'a>,
    reasoning_content: Json<'a>,
    reasoning: Json<'a>,
    tool_calls: Lenient<Vec<Lenient<ToolCall<'a>>>>,
    /// The older form of the protocol, of one call.
    function_call: Lenient<Function<'a>>,
}

#[derive(Default)]
struct ToolCall<'a> {
    index: Json<'a>,
    id: Json<'a>,
    function: Lenient<Function<'a>>,
}

#[derive(Default)]
struct Function<'a> {
    name: Json<'a>,
    arguments: Json<'a>,
}

/// Implements [`ReadParts`] for a struct whose fields are those of an object.
macro_rules! read_fields {
    ($type:ident: $($field:ident),*) => {
        impl<'de> ReadParts<'de> for $type<'de> {
            fn read_field<A: MapAccess<'de>>(&mut self, key: &str, map: &mut A) -> Result<(), A::Error> {
                $(if key == concat!('"', stringify!($field), '"') {
                    self.$field = map.next_value()?;
                    return Ok(());
                })*
                map.next_value::<IgnoredAny>().map(drop)
            }
        }
    };
}

read_fields!(Completion: id, choices, usage, error);
read_fields!(UsageFields: prompt_tokens, prompt_tokens_details, completion_tokens, completion_tokens_details);
read_fields!(PromptDetails: cached_tokens);
read_fields!(CompletionDetails: reasoning_tokens);
read_fields!(Choice: index, message, delta, finish_reason, error);
read_fields!(Message: content, refusal, reasoning_content, reasoning, tool_calls, function_call);
read_fields!(ToolCall: index, id, function);
read_fields!(Function: name, arguments);

/// A tool call of the model.
#[derive(Default)]
pub(super) struct Call<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: Cow<'a, str>,
}

impl<'a> Completion<'a> {
    /// Reads a completion or a chunk; `None` if `json` is not one object.
    pub(super) fn parse(json: &'a str) -> Option<Self> {
        let completion: Lenient<Self> = serde_json::from_str(json).ok()?;
        completion.0
    }

    pub(super) fn id(&self) -> Cow<'a, str> {
        string(self.id)
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        let usage = self.usage.0.as_ref()?;
        let count = |tokens: Json<'_>| count(tokens.map(RawValue::get));
        let prompt = usage.prompt_tokens_details.0.as_ref();
        let completion = usage.completion_tokens_details.0.as_ref();
        Some(Usage {
            requests: 1,
            input_tokens: count(usage.prompt_tokens),
            cached_tokens: count(prompt.and_then(|details| details.cached_tokens)),
            output_tokens: count(usage.completion_tokens),
            reasoning_tokens: count(completion.and_then(|details| details.reasoning_tokens)),
        })
    }

    /// The `error` field; null if there is none.
    pub(super) fn error(&self) -> Value {
        value_or_null(self.error.map(RawValue::get))
    }

    /// Takes the choices.
    pub(super) fn take_choices(&mut self) -> impl Iterator<Item = Choice<'a>> {
        let choices = self.choices.0.take().unwrap_or_default().into_iter();
        choices.map(|choice| choice.0.unwrap_or_default())
    }

    /// The text of a chunk that holds nothing else, if it needs no unescaping.
    pub(super) fn only_text(&self) -> Option<&'a str> {
        let ([Lenient(Some(choice))], None, None) =
            (self.choices.0.as_deref()?, &self.usage.0, self.error)
        else {
            return None;
        };
        match (&choice.delta.0, choice.finish_reason, choice.error) {
            (Some(delta), None, None) if choice.index() == 0 => delta.only_text(),
            _ => None,
        }
    }
}

impl<'a> Choice<'a> {
    pub(super) fn index(&self) -> u64 {
        number(self.index).unwrap_or_default()
    }

    pub(super) fn finish_reason(&self) -> Option<Cow<'a, str>> {
        unquote(self.finish_reason?.get())
    }

    /// The `error` field; null if there is none.
    pub(super) fn error(&self) -> Value {
        value_or_null(self.error.map(RawValue::get))
    }
}

impl<'a> Message<'a> {
    /// The text. Some servers send it in parts.
    pub(super) fn text(&self) -> Cow<'a, str> {
        let content = self.content.map(RawValue::get);
        if let Some(text) = content.and_then(unquote) {
            return text;
        }
        let parts = content.and_then(list).unwrap_or_default().into_iter();
        let texts = parts.map(|part| {
            let [part] = fields_or_none(Some(part), &["text"]);
            text(part)
        });
        texts.fold(Cow::default(), |text, more| text + more)
    }

    pub(super) fn refusal(&self) -> Cow<'a, str> {
        string(self.refusal)
    }

    pub(super) fn reasoning(&self) -> Cow<'a, str> {
        let reasoning = self.reasoning_content.and_then(|json| unquote(json.get()));
        reasoning.unwrap_or_else(|| string(self.reasoning))
    }

    /// Takes the calls.
    pub(super) fn take_calls(&mut self) -> Vec<Call<'a>> {
        let calls = self.tool_calls.0.take().unwrap_or_default();
        if calls.is_empty() {
            let function = self.function_call.0.take();
            return function
                .map(|function| function.into_call(Some(0), None))
                .into_iter()
                .collect();
        }
        let calls = calls.into_iter().map(|call| call.0.unwrap_or_default());
        calls
            .map(|call| {
                call.function
                    .0
                    .unwrap_or_default()
                    .into_call(number(call.index), call.id)
            })
            .collect()
    }

    fn only_text(&self) -> Option<&'a str> {
        let others = [self.refusal, self.reasoning_content, self.reasoning];
        let has_calls = self.tool_calls.0.is_some() || self.function_call.0.is_some();
        match unquote(self.content?.get())? {
            Cow::Borrowed(text) if !has_calls && others.iter().all(Option::is_none) => Some(text),
            _ => None,
        }
    }
}

impl<'a> Function<'a> {
    fn into_call(self, index: Option<u64>, id: Json<'a>) -> Call<'a> {
        Call {
            index,
            id: string(id),
            name: string(self.name),
            arguments: self
                .arguments
                .map(RawValue::get)
                .map(arguments)
                .unwrap_or_default(),
        }
    }
}

fn string(json: Json<'_>) -> Cow<'_, str> {
    text(json.map(RawValue::get))
}

fn number(json: Json<'_>) -> Option<u64> {
    json?.get().parse().ok()
}

/// The arguments of a call, which are a string of JSON. Some servers send the JSON itself.
fn arguments(json: &str) -> Cow<'_, str> {
    unquote(json).unwrap_or_else(|| match value(json) {
        Some(value) => value.to_string().into(),
        None => json.into(),
    })
}
