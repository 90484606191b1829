//! Turning a response of the API into a model's response.

use std::sync::Arc;

use serde::de::SeqAccess;
use switchboard_core::__private::unquote;
use switchboard_core::model::Usage;
use switchboard_core::{Item, ModelResponse};

use super::input_sanitizer::mark_origin;
use crate::wire::lenient_json::{
    Part, TokenDetails, bad, field, is_error, json_object, parse, text, usage, value_or_null,
};
use crate::wire::model_error::ModelError;
use crate::wire::server_errors::{self, incomplete};

/// The outcome of a response, as far as the event that carries it says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    Completed,
    Incomplete,
    Failed,
    /// The response itself must say.
    Unknown,
}

json_object! {
    /// The fields of a response.
    struct ResponseFields {
        id, status, output: Output<'a>, usage: UsageFields<'a>, error, incomplete_details,
    }
}

json_object! {
    struct UsageFields {
        input_tokens, input_tokens_details: TokenDetails<'a>,
        output_tokens, output_tokens_details: TokenDetails<'a>,
    }
}

/// The output of a response.
pub(super) enum Output<'a> {
    /// The JSON of the items.
    Items(Vec<Option<&'a str>>),
    NotAList,
}

impl<'a> Part<'a> for Output<'a> {
    fn from_list<A: SeqAccess<'a>>(list: A) -> Result<Option<Self>, A::Error> {
        Ok(Part::from_list(list)?.map(Self::Items))
    }

    fn from_other() -> Option<Self> {
        Some(Self::NotAList)
    }
}

impl<'a> ResponseFields<'a> {
    /// The JSON of the items.
    fn items(&self) -> Result<impl ExactSizeIterator<Item = &'a str>, ModelError> {
        let items = match &self.output {
            Some(Output::Items(items)) => &**items,
            Some(Output::NotAList) => return Err(bad(&"its output is not a list")),
            None => &[],
        };
        Ok(items.iter().map(|item| item.unwrap_or("null")))
    }

    /// The outcome of the response. A failure counts wherever it is reported; then the event counts,
    /// then the status. A response without a status has ended. One with an unknown status has ended if
    /// it holds items and none of them is in progress.
    fn outcome(&self, ended: Ended) -> Ended {
        let status = text(self.status);
        let has_failed = matches!(&*status, "failed" | "cancelled");
        if has_failed || ended == Ended::Failed || is_error(&value_or_null(self.error)) {
            return Ended::Failed;
        }
        match &*status {
            "incomplete" => Ended::Incomplete,
            _ if ended != Ended::Unknown => ended,
            "" | "completed" => Ended::Completed,
            "queued" | "in_progress" => Ended::Unknown,
            _ if self.has_ended_items() => Ended::Completed,
            _ => Ended::Unknown,
        }
    }

    /// Returns `true` if the response holds items and none of them is in progress.
    fn has_ended_items(&self) -> bool {
        let items = self.items().ok();
        items.is_some_and(|mut items| items.len() > 0 && items.all(has_ended))
    }

    fn usage(&self) -> Usage {
        let fields = self.usage.as_ref();
        let input = fields.and_then(|fields| fields.input_tokens_details.as_ref());
        let output = fields.and_then(|fields| fields.output_tokens_details.as_ref());
        usage(
            (fields.and_then(|fields| fields.input_tokens), input),
            (fields.and_then(|fields| fields.output_tokens), output),
        )
    }
}

/// Reads a response that was not streamed.
pub(in crate::wire) fn read(origin: &str, body: &str) -> Result<ModelResponse, ModelError> {
    let response: ResponseFields<'_> =
        parse(body).ok_or_else(|| bad(&"it is not a JSON object"))?;
    if response.output.is_none() && response.status.is_none() {
        return Err(server_errors::from_body(body).unwrap_or_else(|| bad(&"it is not a response")));
    }
    settle(origin, &response, Ended::Unknown, Vec::new())
}

/// Converts a response that has ended. `streamed` are the items of earlier events, for servers that
/// leave the output out of the last one.
pub(super) fn settle(
    origin: &str,
    response: &ResponseFields<'_>,
    ended: Ended,
    streamed: Vec<Item>,
) -> Result<ModelResponse, ModelError> {
    let usage = response.usage();
    match response.outcome(ended) {
        Ended::Failed => {
            let error = value_or_null(response.error);
            return Err(server_errors::failure(&error).with(|error| error.usage = Some(usage)));
        }
        Ended::Incomplete => {
            let details = response.incomplete_details;
            let reason = details.and_then(|details| unquote(field(details, "reason")?));
            return Err(incomplete(reason.as_deref()).with(|error| error.usage = Some(usage)));
        }
        Ended::Unknown => return Err(bad(&"the response does not say that it has ended")),
        Ended::Completed => {}
    }
    let items = response.items()?.map(|json| item(origin, json));
    let mut output: Vec<Item> = items.collect::<Result<_, _>>()?;
    if output.is_empty() {
        output = streamed;
    }
    let mut answer = ModelResponse::new(output).usage(usage);
    answer.response_id = response.id.and_then(identifier);
    Ok(answer)
}

/// An identifier, which some servers send as a number.
fn identifier(json: &str) -> Option<Arc<str>> {
    if json.starts_with(['"', '-']) || json.starts_with(|first: char| first.is_ascii_digit()) {
        return Some(unquote(json).unwrap_or(json.into()).into());
    }
    None
}

fn has_ended(item: &str) -> bool {
    !matches!(&*text(field(item, "status")), "in_progress" | "incomplete")
}

pub(super) fn item(origin: &str, json: &str) -> Result<Item, ModelError> {
    let item = Item::from_json(json).map_err(|error| bad(&error))?;
    Ok(mark_origin(item, origin))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ModelErrorKind;
    use crate::wire::fuzzing;
    use proptest::prelude::*;

    const ORIGIN: &str = "http://localhost:1/m";

    fn kind(body: &str) -> Result<usize, ModelErrorKind> {
        let read = read(ORIGIN, body);
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
            (
                r#"{"status":"completed","output":{}}"#,
                ModelErrorKind::BadAnswer,
            ),
            (
                r#"{"status":"completed","output":[null]}"#,
                ModelErrorKind::BadAnswer,
            ),
            (r#"{"output":[7]}"#, ModelErrorKind::BadAnswer),
            ("{}", ModelErrorKind::BadAnswer),
            ("[]", ModelErrorKind::BadAnswer),
            ("\u{feff}", ModelErrorKind::BadAnswer),
        ] {
            assert_eq!(kind(body), Err(expected), "{body}");
        }
    }

    #[test]
    fn the_usage_of_an_answer_is_read() {
        let body = r#"{"id":"r","output":[],"usage":{"input_tokens":9,"output_tokens":5,
            "input_tokens_details":{"cached_tokens":4},"output_tokens_details":{"reasoning_tokens":3}}}"#;
        let answer = read(ORIGIN, body).unwrap();
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
            let answer = read(ORIGIN, &body).unwrap();
            assert_eq!(
                answer.output[0].as_json(),
                r#"{"type":"a","x":"\ud800"}"#,
                "{fields}"
            );
            assert_eq!(answer.usage.input_tokens, input_tokens, "{fields}");
        }
        let answer = read(ORIGIN, r#"{"id":7,"output":[]}"#).unwrap();
        assert_eq!(answer.response_id.as_deref(), Some("7"));
    }

    proptest! {
        /// The position and repetition of other fields do not matter.
        #[test]
        fn a_repeated_field_does_not_change_an_answer(
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
                read(ORIGIN, &body).map_err(|error| error.to_string())
            };
            prop_assert_eq!(read(body("")), read(body(r#""id":0,"#)));
        }

        #[test]
        fn any_bytes_are_an_answer_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            fuzzing::responses(&bytes);
        }

        #[test]
        fn any_json_is_an_answer_or_an_error(
            body in "\\{(\"(id|status|output|usage|error|type|item)\":(\"x\"|null|1|\\[\\]|\\{\\}|\\[\\{\\}\\]|true),){0,5}\"z\":0\\}"
        ) {
            let _ = read(ORIGIN, &body);
        }
    }
}
