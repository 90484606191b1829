//! A completion and a piece of one, as servers usually write them.

use std::borrow::Cow;

use switchboard_core::__private::{Scanner, detail, fill, keep, object};
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
            b"id" => keep(&mut read.id, scanner.text()),
            b"choices" if read.choice.is_none() => scanner.list(|scanner| match &mut read.choice {
                Some(_) => None,
                none => none.insert(Choice::default()).read(scanner),
            }),
            b"choices" => None,
            b"usage" => keep(&mut read.usage, scanner.nullable(usage)),
            b"error" => scanner.null(),
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

    fn read(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        scanner.object(|scanner, key| match key {
            b"index" => keep(&mut self.index, scanner.count()),
            b"message" => fill(&mut self.message, scanner, Message::read),
            b"delta" => fill(&mut self.delta, scanner, Message::read),
            b"finish_reason" => keep(&mut self.finish_reason, scanner.text()),
            b"error" => scanner.null(),
            _ => scanner.ignore(),
        })
    }
}

impl<'a> Message<'a> {
    fn read(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        scanner.object(|scanner, key| match key {
            b"content" => keep(&mut self.content, scanner.text()),
            b"refusal" => keep(&mut self.refusal, scanner.text()),
            b"reasoning_content" => keep(&mut self.reasoning_content, scanner.text()),
            b"reasoning" => keep(&mut self.reasoning, scanner.text()),
            b"tool_calls" => fill(&mut self.tool_calls, scanner, ToolCall::all),
            b"function_call" => scanner.null(),
            _ => scanner.ignore(),
        })
    }
}

impl<'a> ToolCall<'a> {
    fn all(calls: &mut Vec<Self>, scanner: &mut Scanner<'a>) -> Option<()> {
        scanner.list(|scanner| {
            let mut call = Self::default();
            scanner.object(|scanner, key| match key {
                b"index" => keep(&mut call.index, scanner.count()),
                b"id" => keep(&mut call.id, scanner.text()),
                b"function" => fill(&mut call.function, scanner, Function::read),
                _ => scanner.ignore(),
            })?;
            calls.push(call);
            Some(())
        })
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
    fn read(&mut self, scanner: &mut Scanner<'a>) -> Option<()> {
        scanner.object(|scanner, key| match key {
            b"name" => keep(&mut self.name, scanner.text()),
            b"arguments" => keep(&mut self.arguments, scanner.text()),
            _ => scanner.ignore(),
        })
    }
}

/// What an answer cost.
fn usage(scanner: &mut Scanner<'_>) -> Option<Usage> {
    let [mut input, mut cached, mut output, mut reasoning] = [None; 4];
    scanner.object(|scanner, key| match key {
        b"prompt_tokens" => keep(&mut input, scanner.count()),
        b"completion_tokens" => keep(&mut output, scanner.count()),
        b"prompt_tokens_details" => detail(scanner, b"cached_tokens", &mut cached),
        b"completion_tokens_details" => detail(scanner, b"reasoning_tokens", &mut reasoning),
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
