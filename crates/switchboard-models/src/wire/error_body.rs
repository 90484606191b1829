//! Errors that servers report in response bodies and stream events.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::{Value, json};

use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::lenient::is_error;
use crate::wire::secret::{Secret, scrub};
use crate::wire::sse::Event;

/// The number of characters quoted of a body that is not JSON.
const MAX_QUOTE: usize = 300;

/// The error for a non-2xx response.
pub(crate) fn from_status(status: u16, body: &[u8], secrets: &[Secret]) -> ModelError {
    let parsed = serde_json::from_slice(body).ok();
    let (message, code) = parsed
        .as_ref()
        .and_then(message_and_code)
        .unwrap_or_else(|| {
            let text = String::from_utf8_lossy(body);
            // Scrubbed before it is cut: half a secret would not be found.
            let quote: String = scrub(text.trim(), secrets)
                .chars()
                .take(MAX_QUOTE)
                .collect();
            if quote.is_empty() {
                ("the server did not say why".to_owned(), None)
            } else {
                (quote, None)
            }
        });
    ModelError::new(kind_of_status(status), message)
        .with_status(status)
        .with_code(code)
}

/// The error that a JSON body reports.
pub(crate) fn from_body(body: &[u8]) -> Option<ModelError> {
    let (message, code) = message_and_code(&serde_json::from_slice(body).ok()?)?;
    Some(ModelError::new(kind_of_code(code.as_deref()), message).with_code(code))
}

/// The error of a failure that the server reports within an answer.
pub(crate) fn failure(reported: &Value) -> ModelError {
    let (message, code) =
        message_and_code(reported).unwrap_or(("the model failed".to_owned(), None));
    ModelError::new(kind_of_code(code.as_deref()), message).with_code(code)
}

/// The error of an event that reports a failure and nothing else.
pub(crate) fn from_event(event: &Event) -> Option<ModelError> {
    let (reported, is_error_field) = match event {
        Event::Data(data) if is_no_failure(data) => return None,
        Event::Data(data) => (serde_json::from_str(data).ok()?, false),
        Event::Error(error) => {
            let reported = serde_json::from_str(error).unwrap_or_else(|_| json!(&**error));
            (reported, true)
        }
    };
    match reported["type"].as_str() {
        Some("error" | "response.error") => Some(failure(&reported)),
        Some("response.failed") => Some(failure(&reported["response"])),
        None if is_error_field || is_error(&reported["error"]) => Some(failure(&reported)),
        _ => None,
    }
}

/// Returns `true` if the event's type is not that of a failure, or it has neither type nor error.
/// Saves parsing the rest of the first event, which may echo the whole request.
fn is_no_failure(data: &str) -> bool {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow, default, rename = "type")]
        kind: Cow<'a, str>,
        error: Option<IgnoredAny>,
    }
    serde_json::from_str(data).is_ok_and(|fields: Fields<'_>| match &*fields.kind {
        "" => fields.error.is_none(),
        kind => !matches!(kind, "error" | "response.error" | "response.failed"),
    })
}

/// The error kind of a code in an answer whose status was 200.
fn kind_of_code(code: Option<&str>) -> ModelErrorKind {
    let code = code.unwrap_or_default();
    match code.parse() {
        Ok(408) => return ModelErrorKind::Timeout,
        Ok(status @ 400..600) => return kind_of_status(status),
        _ => {}
    }
    match code {
        "rate_limit_exceeded"
        | "rate_limit_error"
        | "rate_limit"
        | "too_many_requests"
        | "insufficient_quota"
        | "credit_balance_exhausted" => ModelErrorKind::RateLimit,
        "server_error"
        | "internal_error"
        | "internal_server_error"
        | "api_error"
        | "server_is_overloaded"
        | "overloaded"
        | "overloaded_error"
        | "engine_overloaded"
        | "slow_down"
        | "service_unavailable" => ModelErrorKind::Server,
        "invalid_api_key" | "authentication_error" | "permission_error" => {
            ModelErrorKind::Authentication
        }
        "invalid_request_error"
        | "invalid_prompt"
        | "context_length_exceeded"
        | "model_not_found"
        | "conversation_locked" => ModelErrorKind::Request,
        _ => ModelErrorKind::Failed,
    }
}

fn kind_of_status(status: u16) -> ModelErrorKind {
    match status {
        401 | 403 => ModelErrorKind::Authentication,
        429 => ModelErrorKind::RateLimit,
        500.. => ModelErrorKind::Server,
        _ => ModelErrorKind::Request,
    }
}

/// The message and the code of an error: `error` as an object or a string, or top-level fields.
fn message_and_code(body: &Value) -> Option<(String, Option<String>)> {
    let error = match &body["error"] {
        Value::Null | Value::Bool(false) => body,
        error => error,
    };
    let message = match error {
        Value::String(text) => text.clone(),
        _ => {
            let fields = [&error["message"], &error["detail"]];
            match fields.into_iter().find(|field| !field.is_null())? {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            }
        }
    };
    let code = match &error["code"] {
        Value::String(code) => Some(code.clone()),
        Value::Number(code) => Some(code.to_string()),
        _ => error["type"].as_str().map(str::to_owned),
    };
    Some((message, code))
}
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_error_format_is_parsed() {
        for (body, message, code) in [
            (
                r#"{"error":{"message":"No.","type":"t","code":"c"}}"#,
                "No.",
                "c",
            ),
            (
                r#"{"error":{"message":"No.","type":"t","code":null}}"#,
                "No.",
                "t",
            ),
            (r#"{"error":"No."}"#, "No.", ""),
            (r#"{"error":{"message":"No.","code":502}}"#, "No.", "502"),
            (r#"{"object":"error","message":"No.","code":7}"#, "No.", "7"),
            (r#"{"detail":[{"msg":"No."}]}"#, r#"[{"msg":"No."}]"#, ""),
            ("<html>No.</html>", "<html>No.</html>", ""),
            ("", "the server did not say why", ""),
        ] {
            let error = from_status(400, body.as_bytes(), &[]);
            assert!(error.to_string().contains(message), "{body}: {error}");
            assert_eq!(error.code().unwrap_or_default(), code, "{body}");
        }
        let long = from_status(400, "x".repeat(10_000).as_bytes(), &[]);
        assert!(long.to_string().len() < 1000);
    }

    #[test]
    fn a_secret_is_not_cut_in_two() {
        let body = format!("{}topsecretkey", "x".repeat(MAX_QUOTE - 8));
        let shown = from_status(400, body.as_bytes(), &[Secret::new("topsecretkey")]).to_string();
        assert!(shown.contains('x') && !shown.contains("topsecr"), "{shown}");
    }

    #[test]
    fn a_code_says_what_kind_of_failure_it_is() {
        for (code, expected) in [
            ("429", ModelErrorKind::RateLimit),
            ("rate_limit_exceeded", ModelErrorKind::RateLimit),
            ("insufficient_quota", ModelErrorKind::RateLimit),
            ("502", ModelErrorKind::Server),
            ("server_is_overloaded", ModelErrorKind::Server),
            ("server_error", ModelErrorKind::Server),
            ("401", ModelErrorKind::Authentication),
            ("408", ModelErrorKind::Timeout),
            ("404", ModelErrorKind::Request),
            ("200", ModelErrorKind::Failed),
            ("image_parse_error", ModelErrorKind::Failed),
        ] {
            assert_eq!(kind_of_code(Some(code)), expected, "{code}");
        }
        assert_eq!(kind_of_code(None), ModelErrorKind::Failed);
    }

    #[test]
    fn an_event_that_reports_a_failure_is_an_error() {
        let code = |data: &str| {
            let error = from_event(&Event::Data(data.into()))?;
            error.code().map(str::to_owned)
        };
        for (data, expected) in [
            (
                r#"{"type":"error","error":{"code":"c","message":"m"}}"#,
                "c",
            ),
            (r#"{"type":"error","code":"c","message":"m"}"#, "c"),
            (
                r#"{"type":"response.failed","response":{"error":{"code":"c","message":"m"}}}"#,
                "c",
            ),
            (r#"{"error":{"code":429,"message":"m"}}"#, "429"),
        ] {
            assert_eq!(code(data), Some(expected.to_owned()), "{data}");
        }
        for data in [
            "[DONE]",
            r#"{"type":"response.created","response":{"error":null}}"#,
            r#"{"type":"new","error":{"message":"m"}}"#,
            r#"{"error":null,"choices":[]}"#,
            "7",
        ] {
            assert_eq!(code(data), None, "{data}");
        }
        let error = from_event(&Event::Error("broke".into())).unwrap();
        assert_eq!(
            (error.to_string(), error.code()),
            ("broke".to_owned(), None)
        );
    }
}
