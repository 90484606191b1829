//! What comes back as a whole.

use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_core::{Item, ModelResponse, Usage};

use super::ResponsesModel;
use crate::wire::client::Head;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::history::marked;
use crate::wire::refused;

/// A response, as far as we look at it.
#[derive(Deserialize)]
pub(super) struct Response<'a> {
    #[serde(default)]
    id: Option<Box<str>>,
    #[serde(default)]
    status: Option<Box<str>>,
    #[serde(borrow, default)]
    output: Option<Vec<&'a RawValue>>,
    #[serde(default)]
    usage: Option<Tokens>,
    #[serde(default)]
    error: Option<Value>,
    #[serde(default)]
    incomplete_details: Option<Value>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Tokens {
    input_tokens: Option<u64>,
    output_tokens: Option<u64>,
    input_tokens_details: Option<InputDetails>,
    output_tokens_details: Option<OutputDetails>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct InputDetails {
    cached_tokens: Option<u64>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OutputDetails {
    reasoning_tokens: Option<u64>,
}

/// Reads a response that came as a whole.
pub(in crate::wire) fn read(
    model: &ResponsesModel,
    body: &[u8],
    head: &Head,
) -> Result<ModelResponse, ModelError> {
    let text = std::str::from_utf8(body).map_err(|error| bad(&error))?;
    let response: Response<'_> = serde_json::from_str(text).map_err(|error| bad(&error))?;
    if response.output.is_none() && response.status.is_none() {
        return Err(match refused::said(body) {
            Some((message, code)) => model.client.told(&message, code),
            None => bad(&"it is no response"),
        });
    }
    settle(model, response, Vec::new(), head)
}

/// A response that has ended, as the run takes it. Servers that leave its output out told of its
/// items before.
pub(super) fn settle(
    model: &ResponsesModel,
    response: Response<'_>,
    told: Vec<Item>,
    head: &Head,
) -> Result<ModelResponse, ModelError> {
    let usage = response.usage.unwrap_or_default();
    match response.status.as_deref() {
        Some("failed" | "cancelled") => {
            let error = response.error.unwrap_or_default();
            let said = refused::told(&error);
            let (message, code) = said.unwrap_or(("the model failed".to_owned(), None));
            return Err(model.client.told(&message, code));
        }
        Some("incomplete") => {
            let reason = response.incomplete_details.unwrap_or_default();
            return Err(incomplete(reason["reason"].as_str()));
        }
        Some("queued" | "in_progress") => {
            return Err(bad(&"the response is still under way"));
        }
        _ => {}
    }
    let mut output = Vec::new();
    for raw in response.output.unwrap_or_default() {
        output.push(item(model, raw)?);
    }
    if output.is_empty() {
        output = told;
    }
    let mut answer = ModelResponse::new(output).usage(Usage {
        requests: 1,
        input_tokens: usage.input_tokens.unwrap_or_default(),
        cached_tokens: (usage.input_tokens_details)
            .and_then(|details| details.cached_tokens)
            .unwrap_or_default(),
        output_tokens: usage.output_tokens.unwrap_or_default(),
        reasoning_tokens: (usage.output_tokens_details)
            .and_then(|details| details.reasoning_tokens)
            .unwrap_or_default(),
    });
    answer.response_id = response.id.map(Into::into);
    answer.request_id = head.request_id.as_deref().map(Into::into);
    Ok(answer)
}

pub(super) fn item(model: &ResponsesModel, raw: &RawValue) -> Result<Item, ModelError> {
    let item = Item::from_json(raw.get()).map_err(|error| bad(&error))?;
    Ok(marked(item, &model.origin))
}

pub(super) fn bad(error: &dyn std::fmt::Display) -> ModelError {
    let message = format!("the answer cannot be read: {error}");
    ModelError::new(ModelErrorKind::BadAnswer, message)
}

/// The model stopped before it was done.
pub(super) fn incomplete(reason: Option<&str>) -> ModelError {
    let (message, code) = match reason {
        Some("max_output_tokens" | "max_tokens") => (
            "the answer reached the most tokens it may have; allow more with max_tokens".to_owned(),
            "max_output_tokens",
        ),
        Some("content_filter") => (
            "the provider's content filter stopped the answer".to_owned(),
            "content_filter",
        ),
        Some(other) => (format!("the answer is not complete: {other}"), other),
        None => ("the answer is not complete".to_owned(), "incomplete"),
    };
    ModelError::new(ModelErrorKind::Incomplete, message).with_code(Some(code.to_owned()))
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use super::*;
    use crate::Endpoint;
    use proptest::prelude::*;

    fn model() -> &'static ResponsesModel {
        static MODEL: LazyLock<ResponsesModel> = LazyLock::new(|| {
            let client = Endpoint::at("http://localhost:1/v1").connect().unwrap();
            ResponsesModel::new(&client, "m")
        });
        &MODEL
    }

    fn kind(body: &str) -> Result<usize, ModelErrorKind> {
        let read = read(model(), body.as_bytes(), &Head::default());
        read.map(|answer| answer.output.len())
            .map_err(|error| error.kind())
    }

    #[test]
    fn only_a_response_that_has_ended_is_an_answer() {
        assert_eq!(kind(r#"{"output":[{"type":"new_thing","x":1}]}"#), Ok(1));
        assert_eq!(kind(r#"{"status":"completed","output":null}"#), Ok(0));
        for (body, expected) in [
            (
                r#"{"status":"failed","error":{"message":"m"}}"#,
                ModelErrorKind::Failed,
            ),
            (r#"{"status":"incomplete"}"#, ModelErrorKind::Incomplete),
            (
                r#"{"status":"in_progress","output":[]}"#,
                ModelErrorKind::BadAnswer,
            ),
            (r#"{"error":{"message":"m"}}"#, ModelErrorKind::Failed),
            (r#"{"output":[7]}"#, ModelErrorKind::BadAnswer),
            ("{}", ModelErrorKind::BadAnswer),
            ("[]", ModelErrorKind::BadAnswer),
            ("\u{feff}", ModelErrorKind::BadAnswer),
        ] {
            assert_eq!(kind(body), Err(expected), "{body}");
        }
    }

    #[test]
    fn all_that_an_answer_costs_is_counted() {
        let body = r#"{"id":"r","output":[],"usage":{"input_tokens":9,"output_tokens":5,
            "input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":3}}}"#;
        let answer = read(model(), body.as_bytes(), &Head::default()).unwrap();
        let usage = answer.usage;
        assert_eq!((usage.input_tokens, usage.cached_tokens), (9, 4));
        assert_eq!((usage.output_tokens, usage.reasoning_tokens), (5, 3));
        assert_eq!(answer.response_id.as_deref(), Some("r"));
    }

    proptest! {
        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(model(), &bytes, &Head::default());
        }

        #[test]
        fn any_json_is_an_answer_or_an_error(
            body in "\\{(\"(id|status|output|usage|error|type|item)\":(\"x\"|null|1|\\[\\]|\\{\\}|\\[\\{\\}\\]|true),){0,5}\"z\":0\\}"
        ) {
            let _ = read(model(), body.as_bytes(), &Head::default());
        }
    }
}
