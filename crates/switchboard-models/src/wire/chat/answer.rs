//! Turning a completion into a model's response.

use std::borrow::Cow;

use serde::Serialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};
use switchboard_core::__private::unquote;
use switchboard_core::items::ItemBuilder;
use switchboard_core::model::Usage;
use switchboard_core::{Item, ModelResponse};

use super::completion_fields::{Call, Completion};
use crate::wire::PLACEHOLDER_ID;
use crate::wire::lenient_json::{bad, parse, text};
use crate::wire::model_error::ModelError;
use crate::wire::server_errors::{self, broke_off, check_error, incomplete};

/// The refusal that stands in for an answer withheld by the provider.
const WITHHELD: &str = "The provider's content filter withheld the answer.";

/// A model's reply, whole or collected from chunks.
#[derive(Default)]
pub(super) struct Reply<'a> {
    pub(super) id: Cow<'a, str>,
    pub(super) reasoning: Cow<'a, str>,
    pub(super) text: Cow<'a, str>,
    pub(super) refusal: Cow<'a, str>,
    pub(super) calls: Vec<Call<'a>>,
    pub(super) finish_reason: Option<Cow<'a, str>>,
    pub(super) usage: Usage,
}

/// Reads a completion that was not streamed.
pub(in crate::wire) fn read(model: &str, body: &str) -> Result<ModelResponse, ModelError> {
    let completion: Completion<'_> = parse(body).ok_or_else(|| bad(&"it is not a JSON object"))?;
    check_error(completion.error)?;
    let (id, usage) = (text(completion.id), completion.usage());
    let Some(choice) = completion.into_choices().next() else {
        return Err(server_errors::from_body(body).unwrap_or_else(|| bad(&"it has no choices")));
    };
    check_error(choice.error)?;
    let Some(message) = choice.message else {
        return Err(bad(&"its choice has no message"));
    };
    let reply = Reply {
        id,
        reasoning: message.reasoning(),
        text: message.text(),
        refusal: text(message.refusal),
        calls: message.into_calls(),
        finish_reason: choice.finish_reason.and_then(unquote),
        usage: usage.unwrap_or_default(),
    };
    reply.into_response(model)
}

impl Reply<'_> {
    /// The reply as the run takes it, or an error if it is incomplete.
    pub(super) fn into_response(mut self, model: &str) -> Result<ModelResponse, ModelError> {
        let usage = Usage {
            requests: 1,
            ..self.usage
        };
        let has_begun = !self.text.is_empty() || !self.calls.is_empty();
        match self.finish_reason.as_deref() {
            Some("content_filter") if has_begun => {
                return Err(
                    incomplete(Some("content_filter")).with(|error| error.usage = Some(usage))
                );
            }
            Some("content_filter") if self.refusal.is_empty() => {
                self.refusal = WITHHELD.into();
            }
            Some("length" | "max_tokens") => {
                return Err(incomplete(Some("length")).with(|error| error.usage = Some(usage)));
            }
            Some("error") => return Err(server_errors::failure(&Value::Null)),
            None if self.calls.iter().any(has_incomplete_arguments) => return Err(broke_off()),
            _ => {}
        }
        self.complete_calls()?;
        Ok(ModelResponse::new(self.items(model)).usage(usage))
    }

    /// Generates identifiers for calls that have none, or that of an earlier call.
    fn complete_calls(&mut self) -> Result<(), ModelError> {
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

    fn items(&self, model: &str) -> Vec<Item> {
        let provider_data = ProviderData {
            model,
            response_id: &self.id,
        };
        let begin = |kind: &str, length: usize| {
            let builder = Item::builder().reserve(length + 256);
            builder.string("type", kind).string("id", PLACEHOLDER_ID)
        };
        let finish = |builder: ItemBuilder| builder.value("provider_data", &provider_data).build();
        let mut items = Vec::new();
        if !self.reasoning.is_empty() {
            let summary = json!([{"type": "summary_text", "text": self.reasoning}]);
            let item = begin("reasoning", self.reasoning.len()).value("summary", &summary);
            items.push(finish(item));
        }
        if !self.text.is_empty() || !self.refusal.is_empty() {
            let item = begin("message", self.text.len() + self.refusal.len())
                .string("role", "assistant")
                .string("status", "completed");
            items.push(finish(if self.refusal.is_empty() {
                item.output_text(&self.text)
            } else {
                item.value("content", &self.refusal_content())
            }));
        }
        for call in &self.calls {
            let item = begin("function_call", call.arguments.len())
                .string("call_id", &call.id)
                .string("name", &call.name)
                .string("arguments", &call.arguments);
            items.push(finish(item));
        }
        items
    }

    /// The content of a message with a refusal, after the text that came before it.
    fn refusal_content(&self) -> Value {
        let refusal = json!({"type": "refusal", "refusal": self.refusal});
        if self.text.is_empty() {
            return json!([refusal]);
        }
        json!([{"type": "output_text", "text": self.text, "annotations": []}, refusal])
    }
}

/// The origin of an item.
#[derive(Serialize)]
struct ProviderData<'a> {
    model: &'a str,
    response_id: &'a str,
}

fn has_incomplete_arguments(call: &Call<'_>) -> bool {
    let is_json = serde_json::from_str::<IgnoredAny>(&call.arguments).is_ok();
    !call.arguments.is_empty() && !is_json
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelErrorKind;
    use crate::wire::fuzzing;
    use proptest::prelude::*;

    fn answer(choice: &str) -> Result<ModelResponse, ModelError> {
        let body = format!(r#"{{"id":"c","choices":[{choice}]}}"#);
        read("m", &body)
    }

    #[test]
    fn missing_and_repeated_call_identifiers_are_generated() {
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
    fn incomplete_answers_are_errors_of_their_kind() {
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
    fn a_completion_without_a_message_is_an_error() {
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
        let body = r#"{"choices":[{"message":{"content":"a"}}],"error":{"message":"died"}}"#;
        let error = read("m", body).unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::Failed);
    }

    #[test]
    fn odd_fields_do_not_discard_an_answer() {
        let body = r#"{"id":7,"choices":[],"usage":{"prompt_tokens":5.0,"completion_tokens":-1},
            "choices":[{"error":false,"finish_reason":"function_call","message":{
                "content":"\ud83d","function_call":{"name":"a","arguments":"{}"}}}]}"#;
        let answer = read("m", body).unwrap();
        assert_eq!(answer.output[0].text().as_deref(), Some("\u{fffd}"));
        assert_eq!(answer.output[1].name().as_deref(), Some("a"));
        let usage = answer.usage;
        assert_eq!((usage.input_tokens, usage.output_tokens), (5, 0));
    }

    proptest! {
        /// The position and repetition of other fields do not matter.
        #[test]
        fn a_repeated_field_does_not_change_an_answer(
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
                read("m", &body).map_err(|error| error.to_string())
            };
            prop_assert_eq!(read(body("")), read(body(r#""id":0,"#)));
        }

        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            fuzzing::chat(&bytes);
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
