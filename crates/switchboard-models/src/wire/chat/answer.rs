//! What comes back.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde_json::Value;
use switchboard_core::__private::{Building, quote_into};
use switchboard_core::{Item, ModelResponse, Usage};

use super::ChatModel;
use super::completion::{Completion, ToolCall};
use crate::wire::BROKE_OFF;
use crate::wire::client::Head;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::error_body;
use crate::wire::history::PLACEHOLDER_ID;
use crate::wire::lenient::{Object, bad, count, is_error, value};

/// About what an item takes beside what was said and where it comes from.
const AROUND: usize = 208;

/// What stands in place of an answer that the provider keeps to itself.
const WITHHELD: &str = "The provider's content filter withheld the answer.";

/// What a model said and called, however it came. What was read as a whole is borrowed.
#[derive(Default)]
pub(super) struct Said<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) reasoning: Cow<'a, str>,
    pub(super) text: Cow<'a, str>,
    pub(super) refusal: Cow<'a, str>,
    pub(super) calls: Vec<Call<'a>>,
    pub(super) finish: Option<Cow<'a, str>>,
    pub(super) usage: Option<Usage>,
}

/// A tool the model called.
#[derive(Default)]
pub(super) struct Call<'a> {
    pub(super) index: Option<u64>,
    pub(super) id: Cow<'a, str>,
    pub(super) name: Cow<'a, str>,
    pub(super) arguments: Cow<'a, str>,
}

/// Reads a completion that came as a whole.
pub(in crate::wire) fn read(
    model: &ChatModel,
    body: &[u8],
    head: &Head,
) -> Result<ModelResponse, ModelError> {
    let text = std::str::from_utf8(body).map_err(|error| bad(&error))?;
    if let Some(said) = Completion::of(text).and_then(Said::of) {
        return said.settle(model, head);
    }
    let completion = Object::of(text).ok_or_else(|| bad(&"it is no JSON object"))?;
    let error = completion.value("error");
    if is_error(&error) {
        return Err(failure(model, &error));
    }
    let choices = completion.list("choices").unwrap_or_default();
    let Some(choice) = choices.first() else {
        return Err(match error_body::said(body) {
            Some((message, code)) => model.client.told(&message, code),
            None => bad(&"it holds no choices"),
        });
    };
    let choice = value(choice.get()).ok_or_else(|| bad(&"its choice cannot be read"))?;
    failed(model, &choice)?;
    let message = &choice["message"];
    if !message.is_object() {
        return Err(bad(&"its choice holds no message"));
    }
    let mut said = Said {
        id: completion.text("id").unwrap_or_default().into(),
        finish: choice["finish_reason"].as_str().map(Cow::Borrowed),
        usage: completion.get("usage").map(used),
        ..Said::default()
    };
    said.add(message);
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        said.calls.push(Call::of(&call["function"], &call["id"]));
    }
    // How the protocol did it before there were several calls.
    if said.calls.is_empty() && message["function_call"].is_object() {
        let call = Call::of(&message["function_call"], &Value::Null);
        said.calls.push(call);
    }
    said.settle(model, head)
}

/// The error of a choice or of a chunk that tells of one.
pub(super) fn failed(model: &ChatModel, said: &Value) -> Result<(), ModelError> {
    if is_error(&said["error"]) {
        Err(failure(model, said))
    } else {
        Ok(())
    }
}

/// What a server said of a failure.
pub(super) fn failure(model: &ChatModel, said: &Value) -> ModelError {
    let said = error_body::told(said);
    let (message, code) = said.unwrap_or(("the model failed".to_owned(), None));
    model.client.told(&message, code)
}

impl<'a> Call<'a> {
    fn of(function: &'a Value, id: &'a Value) -> Self {
        Self {
            index: None,
            id: text(id).into(),
            name: text(&function["name"]).into(),
            arguments: arguments(&function["arguments"]),
        }
    }

    /// Whether its arguments are there and end too early.
    fn is_cut(&self) -> bool {
        let is_json = serde_json::from_str::<IgnoredAny>(&self.arguments).is_ok();
        !self.arguments.is_empty() && !is_json
    }
}

impl<'a> Said<'a> {
    /// What a usual completion says; `None` where it holds no message.
    fn of(mut completion: Completion<'a>) -> Option<Self> {
        let (id, usage) = (completion.id.take(), completion.usage);
        let choice = completion.choice()?;
        let message = choice.message?;
        let reasoning = message.reasoning_content.or(message.reasoning);
        let calls = message.tool_calls.unwrap_or_default().into_iter();
        Some(Self {
            id: id.unwrap_or_default(),
            reasoning: reasoning.unwrap_or_default(),
            text: message.content.unwrap_or_default(),
            refusal: message.refusal.unwrap_or_default(),
            calls: calls.map(ToolCall::into_call).collect(),
            finish: choice.finish_reason,
            usage,
        })
    }

    /// Takes the words of a message or of a piece of one.
    pub(super) fn add(&mut self, message: &Value) {
        match &message["content"] {
            Value::String(content) => add(&mut self.text, content),
            // Some servers answer in parts.
            Value::Array(parts) => {
                for part in parts {
                    add(&mut self.text, text(&part["text"]));
                }
            }
            _ => {}
        }
        add(&mut self.refusal, text(&message["refusal"]));
        let reasoning = match &message["reasoning_content"] {
            Value::String(reasoning) => reasoning,
            _ => text(&message["reasoning"]),
        };
        add(&mut self.reasoning, reasoning);
    }

    /// The answer as the run takes it.
    pub(super) fn settle(
        mut self,
        model: &ChatModel,
        head: &Head,
    ) -> Result<ModelResponse, ModelError> {
        let has_begun = !self.text.is_empty() || !self.calls.is_empty();
        match self.finish.as_deref() {
            Some("content_filter") if has_begun => {
                let message = "the provider's content filter stopped the answer";
                return Err(incomplete(message, "content_filter").used(self.used()));
            }
            Some("content_filter") if self.refusal.is_empty() => {
                self.refusal = WITHHELD.into();
            }
            // What was cut must not be taken for what the model meant.
            Some("length" | "max_tokens") => {
                let message = "the answer reached the most tokens it may have; allow more with \
                               max_tokens";
                return Err(incomplete(message, "length").used(self.used()));
            }
            Some("error") => return Err(model.client.told("the model failed", None)),
            None if self.calls.iter().any(Call::is_cut) => {
                return Err(ModelError::new(ModelErrorKind::Interrupted, BROKE_OFF));
            }
            _ => {}
        }
        self.name_calls()?;
        let mut answer = ModelResponse::new(self.items(model)).usage(self.used());
        answer.request_id = head.request_id.as_deref().map(Into::into);
        Ok(answer)
    }

    fn used(&self) -> Usage {
        self.usage.unwrap_or_else(|| usage(&Value::Null))
    }

    /// Gives identifiers to calls whose server gave none, or one to several.
    fn name_calls(&mut self) -> Result<(), ModelError> {
        for at in 0..self.calls.len() {
            let (before, rest) = self.calls.split_at_mut(at);
            let call = &mut rest[0];
            if call.name.is_empty() {
                return Err(bad(&"a call names no tool"));
            }
            if call.id.is_empty() || before.iter().any(|before| before.id == call.id) {
                call.id = format!("call_{:016x}", fastrand::u64(..)).into();
            }
        }
        Ok(())
    }

    fn items(&self, model: &ChatModel) -> Vec<Item> {
        let mut items = Vec::new();
        if !self.reasoning.is_empty() {
            items.push(
                self.item(model, "reasoning", self.reasoning.len(), |fields| {
                    fields.json("summary", |raw| {
                        raw.push_str(r#"[{"type":"summary_text","text":"#);
                        quote_into(raw, &self.reasoning);
                        raw.push_str("}]");
                    });
                }),
            );
        }
        if !self.text.is_empty() || !self.refusal.is_empty() {
            let size = self.text.len() + self.refusal.len();
            items.push(self.item(model, "message", size, |fields| {
                fields.text("role", "assistant");
                fields.text("status", "completed");
                if self.refusal.is_empty() {
                    fields.output_text(&self.text)
                } else {
                    fields.json("content", |raw| self.write_refusal(raw))
                }
            }));
        }
        for call in &self.calls {
            let size = call.id.len() + call.name.len() + call.arguments.len();
            items.push(self.item(model, "function_call", size, |fields| {
                fields.text("call_id", &call.id);
                fields.text("name", &call.name);
                fields.text("arguments", &call.arguments);
            }));
        }
        items
    }

    /// An item of the answer, which says where it comes from.
    fn item(
        &self,
        model: &ChatModel,
        kind: &str,
        size: usize,
        write: impl FnOnce(&mut Building),
    ) -> Item {
        let size = size + self.id.len() + model.name.len() + AROUND;
        Item::of_fields(size, |fields| {
            fields.text("type", kind);
            fields.text("id", PLACEHOLDER_ID);
            write(fields);
            fields.json("provider_data", |raw| {
                raw.push_str(r#"{"model":"#);
                quote_into(raw, &model.name);
                raw.push_str(r#","response_id":"#);
                quote_into(raw, &self.id);
                raw.push('}');
            });
        })
    }

    /// The content of a message that refuses, whatever was said before.
    fn write_refusal(&self, raw: &mut String) {
        raw.push('[');
        if !self.text.is_empty() {
            raw.push_str(r#"{"type":"output_text","text":"#);
            quote_into(raw, &self.text);
            raw.push_str(r#","annotations":[]},"#);
        }
        raw.push_str(r#"{"type":"refusal","refusal":"#);
        quote_into(raw, &self.refusal);
        raw.push_str("}]");
    }
}

/// Adds to what is said so far.
pub(super) fn add(said: &mut Cow<'_, str>, more: &str) {
    if !more.is_empty() {
        said.to_mut().push_str(more);
    }
}

/// Arguments are a text of JSON; some servers send the JSON itself.
pub(super) fn arguments(arguments: &Value) -> Cow<'_, str> {
    match arguments {
        Value::Null => "".into(),
        Value::String(text) => text.into(),
        other => other.to_string().into(),
    }
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What an answer cost, as it is written.
fn used(json: &str) -> Usage {
    usage(&value(json).unwrap_or_default())
}

pub(super) fn usage(told: &Value) -> Usage {
    let count = |path: &str| told.pointer(path).map(count).unwrap_or_default();
    Usage {
        requests: 1,
        input_tokens: count("/prompt_tokens"),
        cached_tokens: count("/prompt_tokens_details/cached_tokens"),
        output_tokens: count("/completion_tokens"),
        reasoning_tokens: count("/completion_tokens_details/reasoning_tokens"),
    }
}

/// The model stopped before it was done.
fn incomplete(message: &str, code: &str) -> ModelError {
    ModelError::new(ModelErrorKind::Incomplete, message).with_code(Some(code.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::Endpoint;
    use proptest::prelude::*;

    fn model() -> &'static ChatModel {
        static MODEL: LazyLock<ChatModel> = LazyLock::new(|| {
            let client = Endpoint::at("http://localhost:1/v1").connect().unwrap();
            ChatModel::new(&client, "m")
        });
        &MODEL
    }

    fn answer(choice: &str) -> Result<ModelResponse, ModelError> {
        let body = format!(r#"{{"id":"c","choices":[{choice}]}}"#);
        read(model(), body.as_bytes(), &Head::default())
    }

    #[test]
    fn what_servers_leave_out_is_made_up_for() {
        let answer = answer(
            r#"{"finish_reason":"stop","message":{"content":null,"reasoning_content":"hm",
                "tool_calls":[{"function":{"name":"a","arguments":{"x":1}}},
                {"id":"i","function":{"name":"b","arguments":""}},
                {"id":"i","function":{"name":"c"}}]}}"#,
        )
        .unwrap();
        let calls: Vec<&Item> = answer.output.iter().skip(1).collect();
        assert_eq!(calls[0].arguments().as_deref(), Some(r#"{"x":1}"#));
        let ids: std::collections::HashSet<_> = calls.iter().map(|call| call.call_id()).collect();
        assert_eq!(ids.len(), 3, "every call has an identifier of its own");
        assert_eq!(answer.output[0].kind().as_str(), "reasoning");
    }

    #[test]
    fn answers_that_were_cut_are_told_apart() {
        let message = |content: &str, finish: &str| {
            answer(&format!(
                r#"{{"finish_reason":"{finish}","message":{content}}}"#
            ))
        };
        let kind = |content: &str, finish: &str| message(content, finish).map_err(|e| e.kind());
        let calls = r#"{"tool_calls":[{"id":"1","function":{"name":"a","arguments":"{\"x\":"}}]}"#;
        for content in [r#"{"content":"par"}"#, r#"{"content":null}"#, calls] {
            let cut = kind(content, "length").unwrap_err();
            assert_eq!(cut, ModelErrorKind::Incomplete, "{content}");
        }
        for content in [r#"{"content":"par"}"#, calls] {
            let stopped = kind(content, "content_filter").unwrap_err();
            assert_eq!(stopped, ModelErrorKind::Incomplete, "{content}");
        }
        let withheld = message(r#"{"content":null}"#, "content_filter").unwrap();
        assert_eq!(withheld.output[0].refusal().as_deref(), Some(WITHHELD));
        let cut = answer(&format!(r#"{{"message":{calls}}}"#)).unwrap_err();
        assert_eq!(cut.kind(), ModelErrorKind::Interrupted);
        let nameless = r#"{"tool_calls":[{"id":"1","function":{}}]}"#;
        assert_eq!(
            message(nameless, "stop").unwrap_err().kind(),
            ModelErrorKind::BadAnswer
        );
    }

    #[test]
    fn what_is_no_answer_is_not_taken_for_one() {
        for (choice, expected) in [
            ("null", ModelErrorKind::BadAnswer),
            (r#"{"finish_reason":"stop"}"#, ModelErrorKind::BadAnswer),
            (
                r#"{"finish_reason":"stop","error":{"message":"died"},"message":{"content":""}}"#,
                ModelErrorKind::Failed,
            ),
        ] {
            let error = answer(choice).unwrap_err();
            assert_eq!(error.kind(), expected, "{choice}: {error}");
        }
        let body = br#"{"choices":[{"message":{"content":"a"}}],"error":{"message":"died"}}"#;
        let error = read(model(), body, &Head::default()).unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::Failed);
    }

    #[test]
    fn odd_fields_do_not_discard_an_answer() {
        let body = r#"{"id":7,"choices":[],"usage":{"prompt_tokens":5.0,"completion_tokens":-1},
            "choices":[{"error":false,"finish_reason":"function_call","message":{
                "content":"\ud83d","function_call":{"name":"a","arguments":"{}"}}}]}"#;
        let answer = read(model(), body.as_bytes(), &Head::default()).unwrap();
        assert_eq!(answer.output[0].text().as_deref(), Some("\u{fffd}"));
        assert_eq!(answer.output[1].name().as_deref(), Some("a"));
        let usage = answer.usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (5, 0));
    }

    proptest! {
        /// A field that is there twice is not usual; the rest of the answer is the same.
        #[test]
        fn usual_answers_mean_what_they_mean_to_the_lenient_reader(
            index in "(0|1|null|\"0\")",
            content in "(null|\"\"|\"a\\\\n\\\\u00e9\"|\"\\\\ud800\"|\\[\\{\"text\":\"x\"\\}\\]|7)",
            more in "(|\"refusal\":\"no\",|\"reasoning\":\"hm\",|\"reasoning_content\":\"hm\",\"reasoning\":7,)",
            calls in "(null|\\[\\]|7|\\[(\\{\"id\":\"i\",\"function\":\\{\"name\":\"(n|)\",\"arguments\":(null|\\{\\}|\"\\{\\}\")\\}\\})\\])",
            finish in "(null|\"stop\"|\"length\"|\"content_filter\"|\"\")",
            error in "(null|false|\\{\"message\":\"m\"\\})",
            counts in proptest::collection::vec("(0|7|7\\.0|\"7\"|null)", 2),
        ) {
            let body = |first: &str| format!(
                r#"{{{first}"id":"c","error":{error},"choices":[{{"index":{index},"message":{{{more}
                "content":{content},"tool_calls":{calls}}},"finish_reason":{finish}}}],"usage":{{
                "prompt_tokens":{},"prompt_tokens_details":{{"cached_tokens":{}}}}}}}"#,
                counts[0], counts[1],
            );
            let read = |body: String| {
                read(model(), body.as_bytes(), &Head::default()).map_err(|error| error.to_string())
            };
            prop_assert_eq!(read(body("")), read(body(r#""id":0,"#)));
        }

        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(model(), &bytes, &Head::default());
        }

        #[test]
        fn any_message_is_an_answer_or_an_error(
            message in "\\{(\"(content|refusal|tool_calls|reasoning|function|id)\":(\"x\"|null|1|\\[\\]|\\{\\}|\\[\\{\\}\\]|true),){0,5}\"z\":0\\}",
            finish in "(stop|length|content_filter|error|)",
        ) {
            let _ = answer(&format!(r#"{{"finish_reason":"{finish}","message":{message}}}"#));
        }
    }
}
