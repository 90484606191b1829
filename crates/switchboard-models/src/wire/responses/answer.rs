//! What comes back as a whole.

use std::borrow::Cow;

use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_core::__private::{Scanner, detail, fill, keep, object};
use switchboard_core::{Item, ModelResponse, Usage};

use super::ResponsesModel;
use crate::wire::client::Head;
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::error_body;
use crate::wire::history::marked;
use crate::wire::lenient::{Object, bad, count, is_error};

/// How a response ended, as far as the server said so beside the response itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Completed,
    Incomplete,
    Failed,
    /// Only the response can tell.
    Unknown,
}

/// Reads a response that came as a whole.
pub(in crate::wire) fn read(
    model: &ResponsesModel,
    body: &[u8],
    head: &Head,
) -> Result<ModelResponse, ModelError> {
    let text = std::str::from_utf8(body).map_err(|error| bad(&error))?;
    if let Some(response) = Response::of(text) {
        return Ok(response.settle(model, head));
    }
    let response = Object::of(text).ok_or_else(|| bad(&"it is no JSON object"))?;
    if response.get("output").is_none() && response.get("status").is_none() {
        return Err(match error_body::said(body) {
            Some((message, code)) => model.client.told(&message, code),
            None => bad(&"it is no response"),
        });
    }
    settle(model, &response, Ended::Unknown, Vec::new(), head)
}

/// What a response is when all went well.
#[derive(Default)]
struct Response<'a> {
    id: Option<Cow<'a, str>>,
    status: Option<Cow<'a, str>>,
    output: Option<Vec<Item>>,
    usage: Option<Counts>,
}

#[derive(Default)]
struct Counts {
    input: Option<u64>,
    cached: Option<u64>,
    output: Option<u64>,
    reasoning: Option<u64>,
}

impl<'a> Response<'a> {
    /// `None` where there is more to be said of it, or it must be read with more care.
    fn of(json: &'a str) -> Option<Self> {
        let mut read = Self::default();
        object(json, |scanner, key| match key {
            b"id" => keep(&mut read.id, scanner.text()),
            b"status" => keep(&mut read.status, scanner.text()),
            b"output" => keep(&mut read.output, items(scanner).map(Some)),
            b"usage" => fill(&mut read.usage, scanner, Counts::read),
            b"error" => scanner.null(),
            _ => scanner.ignore(),
        })?;
        let is_usual = read.status.as_deref() == Some("completed") && read.output.is_some();
        is_usual.then_some(read)
    }

    fn settle(self, model: &ResponsesModel, head: &Head) -> ModelResponse {
        let counts = self.usage.unwrap_or_default();
        let mut answer = ModelResponse::default().usage(Usage {
            requests: 1,
            input_tokens: counts.input.unwrap_or_default(),
            cached_tokens: counts.cached.unwrap_or_default(),
            output_tokens: counts.output.unwrap_or_default(),
            reasoning_tokens: counts.reasoning.unwrap_or_default(),
        });
        let output = self.output.unwrap_or_default().into_iter();
        answer.output = output.map(|item| marked(item, &model.origin)).collect();
        answer.response_id = self.id.map(Into::into);
        answer.request_id = head.request_id.as_deref().map(Into::into);
        answer
    }
}

impl Counts {
    fn read(&mut self, scanner: &mut Scanner<'_>) -> Option<()> {
        scanner.object(|scanner, key| match key {
            b"input_tokens" => keep(&mut self.input, scanner.count()),
            b"output_tokens" => keep(&mut self.output, scanner.count()),
            b"input_tokens_details" => detail(scanner, b"cached_tokens", &mut self.cached),
            b"output_tokens_details" => detail(scanner, b"reasoning_tokens", &mut self.reasoning),
            _ => scanner.ignore(),
        })
    }
}

fn items(scanner: &mut Scanner<'_>) -> Option<Vec<Item>> {
    let mut items = Vec::with_capacity(4);
    scanner.list(|scanner| Item::scan(scanner).map(|item| items.push(item)))?;
    Some(items)
}

/// A response that has ended, as the run takes it. Servers that leave its output out told of its
/// items before.
pub(super) fn settle(
    model: &ResponsesModel,
    response: &Object<'_>,
    ended: Ended,
    told: Vec<Item>,
    head: &Head,
) -> Result<ModelResponse, ModelError> {
    let used = usage(&response.value("usage"));
    match how_it_ended(response, ended) {
        Ended::Failed => {
            let said = error_body::told(&response.value("error"));
            let (message, code) = said.unwrap_or(("the model failed".to_owned(), None));
            return Err(model.client.told(&message, code).used(used));
        }
        Ended::Incomplete => {
            let details = response.value("incomplete_details");
            return Err(incomplete(details["reason"].as_str()).used(used));
        }
        Ended::Unknown => return Err(bad(&"the response does not say that it has ended")),
        Ended::Completed => {}
    }
    let mut output = Vec::new();
    for raw in outputs(response)? {
        output.push(item(model, raw.get())?);
    }
    if output.is_empty() {
        output = told;
    }
    let mut answer = ModelResponse::new(output).usage(used);
    answer.response_id = id(response).map(Into::into);
    answer.request_id = head.request_id.as_deref().map(Into::into);
    Ok(answer)
}

/// How a response ended: a failure is one whoever tells of it; else what the event said counts,
/// then the status. A response without a status has ended; one whose status nobody knows has
/// where it holds items and none of them is under way.
fn how_it_ended(response: &Object<'_>, ended: Ended) -> Ended {
    let status = response.text("status").unwrap_or_default();
    let has_failed = matches!(&*status, "failed" | "cancelled");
    if has_failed || ended == Ended::Failed || is_error(&response.value("error")) {
        return Ended::Failed;
    }
    match &*status {
        "incomplete" => Ended::Incomplete,
        _ if ended != Ended::Unknown => ended,
        "" | "completed" => Ended::Completed,
        "queued" | "in_progress" => Ended::Unknown,
        _ => match outputs(response) {
            Ok(items) if !items.is_empty() && items.iter().all(has_ended) => Ended::Completed,
            _ => Ended::Unknown,
        },
    }
}

fn has_ended(item: &&RawValue) -> bool {
    let status = Object::of(item.get()).and_then(|item| item.text("status"));
    !matches!(status.as_deref(), Some("in_progress" | "incomplete"))
}

fn outputs<'a>(response: &Object<'a>) -> Result<Vec<&'a RawValue>, ModelError> {
    match response.get("output") {
        None => Ok(Vec::new()),
        Some(_) => {
            let items = response.list("output");
            items.ok_or_else(|| bad(&"its output is no list"))
        }
    }
}

fn id(response: &Object<'_>) -> Option<String> {
    match response.value("id") {
        Value::String(id) => Some(id),
        Value::Number(id) => Some(id.to_string()),
        _ => None,
    }
}

fn usage(told: &Value) -> Usage {
    let counted = |path: &str| told.pointer(path).map(count).unwrap_or_default();
    Usage {
        requests: 1,
        input_tokens: counted("/input_tokens"),
        cached_tokens: counted("/input_tokens_details/cached_tokens"),
        output_tokens: counted("/output_tokens"),
        reasoning_tokens: counted("/output_tokens_details/reasoning_tokens"),
    }
}

pub(super) fn item(model: &ResponsesModel, json: &str) -> Result<Item, ModelError> {
    let item = Item::from_json(json).map_err(|error| bad(&error))?;
    Ok(marked(item, &model.origin))
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
        let done = r#"{"status":"done","output":[{"type":"message","status":"completed"}]}"#;
        assert_eq!(kind(done), Ok(1));
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
            (
                r#"{"status":"completed","output":[],"error":{"message":"m"}}"#,
                ModelErrorKind::Failed,
            ),
            (
                r#"{"status":"cancelled","output":[]}"#,
                ModelErrorKind::Failed,
            ),
            (
                r#"{"status":"weird","output":[]}"#,
                ModelErrorKind::BadAnswer,
            ),
            (
                r#"{"status":"weird","output":[{"type":"message","status":"in_progress"}]}"#,
                ModelErrorKind::BadAnswer,
            ),
            (r#"{"output":{}}"#, ModelErrorKind::BadAnswer),
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

    #[test]
    fn odd_fields_do_not_discard_an_answer() {
        for (fields, input_tokens) in [
            (r#""usage":{"input_tokens":-1}"#, 0),
            (r#""usage":{"input_tokens":5.0}"#, 5),
            (r#""usage":{"input_tokens":"5"}"#, 5),
            (r#""usage":{"input_tokens":5,"input_tokens_details":[]}"#, 5),
            (r#""usage":"x""#, 0),
            (r#""id":7"#, 0),
            (r#""output":[],"status":null,"error":null"#, 0),
        ] {
            let body = format!(
                r#"{{"output":[{{"type":"a","x":"\ud800"}}],{fields},"output":[{{"type":"a","x":"\ud800"}}]}}"#
            );
            let answer = read(model(), body.as_bytes(), &Head::default()).unwrap();
            assert_eq!(
                answer.output[0].as_json(),
                r#"{"type":"a","x":"\ud800"}"#,
                "{fields}"
            );
            assert_eq!(answer.usage.input_tokens, input_tokens, "{fields}");
        }
        let answer = read(model(), br#"{"id":7,"output":[]}"#, &Head::default()).unwrap();
        assert_eq!(answer.response_id.as_deref(), Some("7"));
    }

    proptest! {
        /// A field that is there twice is not usual; the rest of the answer is the same.
        #[test]
        fn usual_answers_mean_what_they_mean_to_the_lenient_reader(
            id in "(\"r\\\\u00e9\"|\"r\"|null|7)",
            error in "(null|false|\\{\"message\":\"m\"\\})",
            status in "(completed|failed|incomplete|queued)",
            items in proptest::collection::vec("\\{\"type\":\"(message|reasoning)\",\"id\":\"[a-z]\"\\}|7", 0..3),
            counts in proptest::collection::vec("(0|7|7\\.0|\"7\"|null|-1)", 4),
        ) {
            let body = |first: &str| format!(
                r#"{{{first}"id":{id},"error":{error},"status":"{status}","output":[{}],"usage":{{
                "input_tokens":{},"input_tokens_details":{{"cached_tokens":{}}},
                "output_tokens":{},"output_tokens_details":{{"reasoning_tokens":{}}}}}}}"#,
                items.join(","), counts[0], counts[1], counts[2], counts[3],
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
        fn any_json_is_an_answer_or_an_error(
            body in "\\{(\"(id|status|output|usage|error|type|item)\":(\"x\"|null|1|\\[\\]|\\{\\}|\\[\\{\\}\\]|true),){0,5}\"z\":0\\}"
        ) {
            let _ = read(model(), body.as_bytes(), &Head::default());
        }
    }
}
