//! What comes back.

use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::{Item, ModelResponse, Usage};

use super::ChatModel;
use crate::wire::client::Head;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::history::PLACEHOLDER_ID;
use crate::wire::refused;

/// What stands in place of an answer that the provider keeps to itself.
const WITHHELD: &str = "The provider's content filter withheld the answer.";

/// A completion, as far as we look at it. What servers send in place of a field is their own.
#[derive(Deserialize)]
struct Completion {
    #[serde(default)]
    id: Value,
    #[serde(default)]
    choices: Option<Vec<Value>>,
    #[serde(default)]
    usage: Value,
}

/// What a model said and called, however it came.
#[derive(Default)]
pub(super) struct Said {
    pub(super) id: String,
    pub(super) reasoning: String,
    pub(super) text: String,
    pub(super) refusal: String,
    pub(super) calls: Vec<Call>,
    pub(super) finish: Option<String>,
    pub(super) usage: Value,
}

/// A tool the model called.
#[derive(Default)]
pub(super) struct Call {
    pub(super) index: Option<u64>,
    pub(super) id: String,
    pub(super) name: String,
    pub(super) arguments: String,
}

/// Reads a completion that came as a whole.
pub(in crate::wire) fn read(
    model: &ChatModel,
    body: &[u8],
    head: &Head,
) -> Result<ModelResponse, ModelError> {
    let completion: Completion = serde_json::from_slice(body).map_err(|error| bad(&error))?;
    let Some(choice) = completion.choices.as_deref().and_then(<[Value]>::first) else {
        return Err(match refused::said(body) {
            Some((message, code)) => model.client.told(&message, code),
            None => bad(&"it holds no choices"),
        });
    };
    let mut said = Said {
        id: text(&completion.id).to_owned(),
        finish: choice["finish_reason"].as_str().map(str::to_owned),
        usage: completion.usage,
        ..Said::default()
    };
    let message = &choice["message"];
    said.add(message);
    for call in message["tool_calls"].as_array().into_iter().flatten() {
        let function = &call["function"];
        said.calls.push(Call {
            index: None,
            id: text(&call["id"]).to_owned(),
            name: text(&function["name"]).to_owned(),
            arguments: arguments(&function["arguments"]),
        });
    }
    said.settle(model, head)
}

impl Said {
    /// Takes the words of a message or of a piece of one.
    pub(super) fn add(&mut self, message: &Value) {
        match &message["content"] {
            Value::String(content) => self.text.push_str(content),
            // Some servers answer in parts.
            Value::Array(parts) => {
                for part in parts {
                    self.text.push_str(text(&part["text"]));
                }
            }
            _ => {}
        }
        self.refusal.push_str(text(&message["refusal"]));
        let reasoning = match &message["reasoning_content"] {
            Value::String(reasoning) => reasoning,
            _ => text(&message["reasoning"]),
        };
        self.reasoning.push_str(reasoning);
    }

    /// The answer as the run takes it.
    pub(super) fn settle(
        mut self,
        model: &ChatModel,
        head: &Head,
    ) -> Result<ModelResponse, ModelError> {
        let is_empty = self.text.is_empty() && self.refusal.is_empty() && self.calls.is_empty();
        match self.finish.as_deref() {
            Some("content_filter") if is_empty => WITHHELD.clone_into(&mut self.refusal),
            // Arguments that were cut must not be taken for what the model meant.
            Some("length") if is_empty || !self.calls.is_empty() => {
                let message = "the answer reached the most tokens it may have; allow more with \
                               max_tokens";
                let error = ModelError::new(ModelErrorKind::Incomplete, message);
                return Err(error.with_code(Some("length".to_owned())));
            }
            Some("error") => return Err(model.client.told("the model failed", None)),
            _ => {}
        }
        self.name_calls()?;
        let mut answer = ModelResponse::new(self.items(model)?).usage(usage(&self.usage));
        answer.request_id = head.request_id.as_deref().map(Into::into);
        Ok(answer)
    }

    /// Gives identifiers to calls whose server gave none, or one to several.
    fn name_calls(&mut self) -> Result<(), ModelError> {
        let mut seen: Vec<String> = Vec::new();
        for call in &mut self.calls {
            if call.name.is_empty() {
                return Err(bad(&"a call names no tool"));
            }
            if call.id.is_empty() || seen.contains(&call.id) {
                call.id = format!("call_{:016x}", fastrand::u64(..));
            }
            seen.push(call.id.clone());
        }
        Ok(())
    }

    fn items(&self, model: &ChatModel) -> Result<Vec<Item>, ModelError> {
        let origin = json!({"model": &*model.name, "response_id": self.id});
        let mut items = Vec::new();
        if !self.reasoning.is_empty() {
            items.push(json!({
                "type": "reasoning",
                "id": PLACEHOLDER_ID,
                "summary": [{"type": "summary_text", "text": self.reasoning}],
                "provider_data": origin,
            }));
        }
        let mut content = Vec::new();
        if !self.text.is_empty() {
            content.push(json!({"type": "output_text", "text": self.text, "annotations": []}));
        }
        if !self.refusal.is_empty() {
            content.push(json!({"type": "refusal", "refusal": self.refusal}));
        }
        if !content.is_empty() {
            let status = match self.finish.as_deref() {
                Some("length") => "incomplete",
                _ => "completed",
            };
            items.push(json!({
                "type": "message",
                "id": PLACEHOLDER_ID,
                "role": "assistant",
                "status": status,
                "content": content,
                "provider_data": origin,
            }));
        }
        for call in &self.calls {
            items.push(json!({
                "type": "function_call",
                "id": PLACEHOLDER_ID,
                "call_id": call.id,
                "name": call.name,
                "arguments": call.arguments,
                "provider_data": origin,
            }));
        }
        let items = items.iter().map(Item::from_value);
        items.collect::<Result<_, _>>().map_err(|error| bad(&error))
    }
}

/// Arguments are a text of JSON; some servers send the JSON itself.
pub(super) fn arguments(arguments: &Value) -> String {
    match arguments {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn usage(told: &Value) -> Usage {
    let count = |path: &str| {
        told.pointer(path)
            .and_then(Value::as_u64)
            .unwrap_or_default()
    };
    Usage {
        requests: 1,
        input_tokens: count("/prompt_tokens"),
        cached_tokens: count("/prompt_tokens_details/cached_tokens"),
        output_tokens: count("/completion_tokens"),
        reasoning_tokens: count("/completion_tokens_details/reasoning_tokens"),
    }
}

pub(super) fn bad(error: &dyn std::fmt::Display) -> ModelError {
    let message = format!("the answer cannot be read: {error}");
    ModelError::new(ModelErrorKind::BadAnswer, message)
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
        let cut = message(r#"{"content":"par"}"#, "length").unwrap();
        assert_eq!(cut.output[0].field("status"), Some("\"incomplete\""));
        let calls = r#"{"tool_calls":[{"id":"1","function":{"name":"a","arguments":"{\"x\":"}}]}"#;
        let error = message(calls, "length").unwrap_err();
        assert_eq!(error.kind(), ModelErrorKind::Incomplete);
        let withheld = message(r#"{"content":null}"#, "content_filter").unwrap();
        assert_eq!(withheld.output[0].refusal().as_deref(), Some(WITHHELD));
        let nameless = r#"{"tool_calls":[{"id":"1","function":{}}]}"#;
        assert_eq!(
            message(nameless, "stop").unwrap_err().kind(),
            ModelErrorKind::BadAnswer
        );
    }

    proptest! {
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
