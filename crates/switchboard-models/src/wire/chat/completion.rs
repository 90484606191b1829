//! A completion and a piece of one, as servers usually write them.

use std::borrow::Cow;

use switchboard_core::__private::{Scanner, detail, keep, object};
use switchboard_core::Usage;

use super::answer::Call;

type Text<'a> = Option<Cow<'a, str>>;

/// A completion, or a chunk of a streamed one. One answer is asked for, so there is one choice.
#[derive(Default)]
pub(super) struct Completion<'a> {
    pub(super) id: Text<'a>,
    choice: Option<Choice<'a>>,
    pub(super) usage: Option<Usage>,
}

#[derive(Default)]
pub(super) struct Choice<'a> {
    index: Option<u64>,
    pub(super) message: Option<Message<'a>>,
    pub(super) delta: Option<Message<'a>>,
    pub(super) finish_reason: Text<'a>,
}

/// What the model said and called, or a piece of it.
#[derive(Default)]
pub(super) struct Message<'a> {
    pub(super) content: Text<'a>,
    pub(super) refusal: Text<'a>,
    pub(super) reasoning_content: Text<'a>,
    pub(super) reasoning: Text<'a>,
    pub(super) tool_calls: Option<Vec<ToolCall<'a>>>,
}

#[derive(Default)]
pub(super) struct ToolCall<'a> {
    pub(super) index: Option<u64>,
    id: Text<'a>,
    function: Option<Function<'a>>,
}

#[derive(Default)]
struct Function<'a> {
    name: Text<'a>,
    arguments: Text<'a>,
}

impl<'a> Completion<'a> {
    /// `None` where it must be read with more care.
    pub(super) fn of(json: &'a str) -> Option<Self> {
        let mut read = Self::default();
        object(json, |scanner, key| match key {
            "id" => keep(&mut read.id, scanner.text()),
            "choices" if read.choice.is_none() => scanner.list(|scanner| {
                let choice = Choice::read(scanner)?;
                keep(&mut read.choice, Some(Some(choice)))
            }),
            "choices" => None,
            "usage" => keep(&mut read.usage, scanner.nullable(usage)),
            "error" => nothing(scanner),
            _ => scanner.ignore(),
        })?;
        Some(read)
    }

    /// The choice that was asked for.
    pub(super) fn choice(self) -> Option<Choice<'a>> {
        self.choice.filter(Choice::is_asked_for)
    }

    /// The words of a chunk that says nothing else, where they stand in it as they are meant.
    pub(super) fn only_words(&self) -> Option<&'a str> {
        let choice = self.choice.as_ref().filter(|choice| choice.is_asked_for());
        let (Some(choice), None) = (choice, &self.usage) else {
            return None;
        };
        match choice {
            Choice {
                delta:
                    Some(Message {
                        content: Some(Cow::Borrowed(words)),
                        refusal: None,
                        reasoning_content: None,
                        reasoning: None,
                        tool_calls: None,
                    }),
                finish_reason: None,
                ..
            } => Some(words),
            _ => None,
        }
    }
}

impl<'a> Choice<'a> {
    fn is_asked_for(&self) -> bool {
        self.index.unwrap_or_default() == 0
    }

    fn read(scanner: &mut Scanner<'a>) -> Option<Self> {
        let mut read = Self::default();
        scanner.object(|scanner, key| match key {
            "index" => keep(&mut read.index, scanner.count()),
            "message" => keep(&mut read.message, scanner.nullable(Message::read)),
            "delta" => keep(&mut read.delta, scanner.nullable(Message::read)),
            "finish_reason" => keep(&mut read.finish_reason, scanner.text()),
            "error" => nothing(scanner),
            _ => scanner.ignore(),
        })?;
        Some(read)
    }
}

impl<'a> Message<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Option<Self> {
        let mut read = Self::default();
        scanner.object(|scanner, key| match key {
            "content" => keep(&mut read.content, scanner.text()),
            "refusal" => keep(&mut read.refusal, scanner.text()),
            "reasoning_content" => keep(&mut read.reasoning_content, scanner.text()),
            "reasoning" => keep(&mut read.reasoning, scanner.text()),
            "tool_calls" => keep(&mut read.tool_calls, scanner.nullable(ToolCall::all)),
            "function_call" => nothing(scanner),
            _ => scanner.ignore(),
        })?;
        Some(read)
    }
}

impl<'a> ToolCall<'a> {
    fn all(scanner: &mut Scanner<'a>) -> Option<Vec<Self>> {
        let mut calls = Vec::new();
        scanner.list(|scanner| {
            let mut call = Self::default();
            scanner.object(|scanner, key| match key {
                "index" => keep(&mut call.index, scanner.count()),
                "id" => keep(&mut call.id, scanner.text()),
                "function" => keep(&mut call.function, scanner.nullable(Function::read)),
                _ => scanner.ignore(),
            })?;
            calls.push(call);
            Some(())
        })?;
        Some(calls)
    }

    pub(super) fn id(&self) -> &str {
        self.id.as_deref().unwrap_or_default()
    }

    pub(super) fn name(&self) -> &str {
        let function = self.function.as_ref();
        let name = function.and_then(|function| function.name.as_deref());
        name.unwrap_or_default()
    }

    pub(super) fn arguments(&self) -> &str {
        let function = self.function.as_ref();
        let arguments = function.and_then(|function| function.arguments.as_deref());
        arguments.unwrap_or_default()
    }

    pub(super) fn into_call(self) -> Call<'a> {
        let function = self.function.unwrap_or_default();
        Call {
            index: None,
            id: self.id.unwrap_or_default(),
            name: function.name.unwrap_or_default(),
            arguments: function.arguments.unwrap_or_default(),
        }
    }
}

impl<'a> Function<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Option<Self> {
        let mut read = Self::default();
        scanner.object(|scanner, key| match key {
            "name" => keep(&mut read.name, scanner.text()),
            "arguments" => keep(&mut read.arguments, scanner.text()),
            _ => scanner.ignore(),
        })?;
        Some(read)
    }
}

/// What an answer cost.
fn usage(scanner: &mut Scanner<'_>) -> Option<Usage> {
    let [mut input, mut cached, mut output, mut reasoning] = [None; 4];
    scanner.object(|scanner, key| match key {
        "prompt_tokens" => keep(&mut input, scanner.count()),
        "completion_tokens" => keep(&mut output, scanner.count()),
        "prompt_tokens_details" => detail(scanner, "cached_tokens", &mut cached),
        "completion_tokens_details" => detail(scanner, "reasoning_tokens", &mut reasoning),
        _ => scanner.ignore(),
    })?;
    Some(Usage {
        requests: 1,
        input_tokens: input.unwrap_or_default(),
        cached_tokens: cached.unwrap_or_default(),
        output_tokens: output.unwrap_or_default(),
        reasoning_tokens: reasoning.unwrap_or_default(),
    })
}

/// A field that is not there in what is usual.
fn nothing(scanner: &mut Scanner<'_>) -> Option<()> {
    scanner.raw()?.is_none().then_some(())
}
