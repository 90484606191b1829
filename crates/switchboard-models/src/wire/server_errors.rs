//! Errors that servers report in response bodies and stream events.

use serde_json::Value;
use switchboard_core::__private::unquote;

use crate::wire::error_causes;
use crate::wire::lenient_json::{fields, is_error, plain_text, value, value_or_null};
use crate::wire::model_error::{ModelError, ModelErrorKind};
use crate::wire::secret::{Secret, scrub};
use crate::wire::sse::Event;

/// The number of characters quoted of a body that is not JSON.
const MAX_QUOTE: usize = 300;

/// The number of characters quoted of the title of a web page.
const MAX_TITLE: usize = 100;

/// The number of bytes in which a web page says that it is one.
const MAX_PAGE_START: usize = 1024;

/// The error for a non-2xx response.
pub(crate) fn from_status(status: u16, body: &[u8], secrets: &[Secret]) -> ModelError {
    let error = if is_web_page(body) {
        ModelError::new(kind_of_web_page(status), web_page(body, secrets))
    } else {
        let parsed = serde_json::from_slice(body).ok();
        let (message, code) = parsed
            .as_ref()
            .and_then(message_and_code)
            .unwrap_or_else(|| (quote(body, secrets), None));
        let is_unknown_path = if parsed.is_some() {
            error_causes::is_unknown_path(status, &message, true)
        } else {
            error_causes::is_unknown_path(status, &String::from_utf8_lossy(body), false)
        };
        let kind = if error_causes::is_spent_quota(Some(status), code.as_deref(), &message) {
            ModelErrorKind::RateLimit
        } else if is_unknown_path {
            ModelErrorKind::WrongAddress
        } else {
            kind_of_status(status)
        };
        ModelError::new(kind, message).with(|error| error.code = code)
    };
    error.with(|error| error.status = Some(status))
}

/// The error for a body of status 200 that is neither an answer nor a stream of events.
pub(crate) fn not_an_answer(body: &[u8], secrets: &[Secret]) -> ModelError {
    let text = quote(body, secrets);
    let message = format!("the server answered 200 with a text, not as a model: {text}");
    ModelError::new(ModelErrorKind::WrongAddress, message)
}

/// Returns `true` if a body is a page of HTML.
fn is_web_page(body: &[u8]) -> bool {
    let start = &body[..body.len().min(MAX_PAGE_START)];
    let start = String::from_utf8_lossy(start).to_ascii_lowercase();
    let start = start.trim_start_matches('\u{feff}').trim_start();
    let tags = ["<!doctype html", "<html", "<head", "<body", "<title"];
    start.starts_with('<') && tags.iter().any(|tag| has_tag(start, tag))
}

/// Returns `true` if a text has the beginning of a tag, which is not that of a longer name: `<head` in `<header>`.
fn has_tag(text: &str, tag: &str) -> bool {
    text.match_indices(tag).any(|(at, _)| {
        let next = text[at + tag.len()..].chars().next();
        next.is_none_or(|next| next.is_whitespace() || matches!(next, '>' | '/'))
    })
}

/// The message for a page of HTML, with its title.
fn web_page(body: &[u8], secrets: &[Secret]) -> String {
    let message = "the server answered with a web page";
    match title(&String::from_utf8_lossy(body)) {
        Some(title) => {
            // Scrubbed before it is cut, as in `quote`.
            let title = scrub(&title, secrets);
            let title: String = title.chars().take(MAX_TITLE).collect();
            format!("{message} (\"{title}\"), not as a model")
        }
        None => format!("{message}, not as a model"),
    }
}

/// The title of a page of HTML, in one line.
fn title(page: &str) -> Option<String> {
    let lower = page.to_ascii_lowercase();
    let start = lower.find("<title")?;
    let start = start + lower[start..].find('>')? + 1;
    let end = start + lower[start..].find("</title")?;
    let words: Vec<&str> = page[start..end].split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// The kind of error for a page of HTML. A gateway whose model fails sends one as well.
fn kind_of_web_page(status: u16) -> ModelErrorKind {
    match status {
        401 | 402 | 408 | 413 | 429 | 500.. => kind_of_status(status),
        _ => ModelErrorKind::WebPage,
    }
}

/// The start of a body that is not JSON.
fn quote(body: &[u8], secrets: &[Secret]) -> String {
    let text = String::from_utf8_lossy(body);
    match text.trim() {
        "" => "the server did not say why".to_owned(),
        // Scrubbed before it is cut: half a secret would not be found.
        text => scrub(text, secrets).chars().take(MAX_QUOTE).collect(),
    }
}

/// The error that a JSON body reports.
pub(crate) fn from_body(body: &str) -> Option<ModelError> {
    let reported = serde_json::from_str(body).ok()?;
    message_and_code(&reported).map(failed)
}

/// The error of a failure that the server reports within an answer.
pub(crate) fn failure(reported: &Value) -> ModelError {
    failed(message_and_code(reported).unwrap_or(("the model failed".to_owned(), None)))
}

fn failed((message, code): (String, Option<String>)) -> ModelError {
    let kind = match kind_of_code(code.as_deref()) {
        kind @ (ModelErrorKind::Server | ModelErrorKind::Timeout) => kind,
        _ if error_causes::is_spent_quota(None, code.as_deref(), &message) => {
            ModelErrorKind::RateLimit
        }
        kind => kind,
    };
    ModelError::new(kind, message).with(|error| error.code = code)
}

/// Fails if the `error` field of an answer or of a part of one reports an error.
pub(crate) fn check_error(error: Option<&str>) -> Result<(), ModelError> {
    let error = value_or_null(error);
    if is_error(&error) {
        return Err(failure(&error));
    }
    Ok(())
}

/// The error for an answer that the model did not complete.
pub(crate) fn incomplete(reason: Option<&str>) -> ModelError {
    let message = match reason {
        Some("max_output_tokens" | "max_tokens" | "length") => {
            "the answer reached the most tokens it may have; allow more with max_tokens".to_owned()
        }
        Some("content_filter") => "the provider's content filter stopped the answer".to_owned(),
        Some(other) => format!("the answer is not complete: {other}"),
        None => "the answer is not complete".to_owned(),
    };
    let code = match reason {
        Some("max_tokens") => "max_output_tokens",
        reason => reason.unwrap_or("incomplete"),
    };
    ModelError::new(ModelErrorKind::Incomplete, message)
        .with(|error| error.code = Some(code.to_owned()))
}

/// The error for a stream that ended before its answer did.
pub(crate) fn broke_off() -> ModelError {
    let message = "the answer broke off before its end";
    ModelError::new(ModelErrorKind::Interrupted, message)
}

/// The error of a failure that the whole data of an event reports.
pub(crate) fn from_data(data: &str) -> ModelError {
    failure(&value(data).unwrap_or_else(|| data.into()))
}

/// The error of an event that reports a failure and nothing else. Values are parsed only of a failure:
/// the first event may echo the whole request.
pub(crate) fn from_event(event: &Event) -> Option<ModelError> {
    let (data, is_error_field) = match event {
        Event::Data(data) => (data, false),
        Event::Error(data) => (data, true),
    };
    let Some([kind, response, error]) = fields(data, &["type", "response", "error"]) else {
        return is_error_field.then(|| from_data(data));
    };
    match kind.and_then(unquote).as_deref() {
        Some("error" | "response.error") => Some(from_data(data)),
        Some("response.failed") => Some(failure(&value_or_null(response))),
        None if is_error_field || is_error(&value_or_null(error)) => Some(from_data(data)),
        _ => None,
    }
}

/// The error kind of a code in an answer whose status was 200.
fn kind_of_code(code: Option<&str>) -> ModelErrorKind {
    if let Some(status) = error_causes::status_of_code(code) {
        return kind_of_status(status);
    }
    match code.unwrap_or_default() {
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
        408 => ModelErrorKind::Timeout,
        402 | 429 => ModelErrorKind::RateLimit,
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
    let mut fields = [&error["message"], &error["detail"]].into_iter();
    let message = match error {
        Value::String(_) => error,
        _ => fields.find(|field| !field.is_null())?,
    };
    let code = match &error["code"] {
        code @ (Value::String(_) | Value::Number(_)) => Some(plain_text(code)),
        _ => error["type"].as_str().map(str::to_owned),
    };
    Some((plain_text(message), code))
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
            ("No.", "No.", ""),
            (
                "<!doctype HTML><Title>\n No. </title>",
                "a web page (\"No.\"), not as a model",
                "",
            ),
            ("<html>No.</html>", "a web page, not as a model", ""),
            ("<Error>No.</Error>", "<Error>No.</Error>", ""),
            (
                "<Error><Header>No.</Header></Error>",
                "<Error><Header>No.</Header></Error>",
                "",
            ),
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
