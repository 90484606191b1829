//! What a server says when it does not answer. Every server has its own way to say it.

use serde_json::{Value, json};
use switchboard_core::__private::{keep, object};

use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::secret::{Secret, scrubbed};
use crate::wire::sse::Event;

/// How much of a refusal that is no JSON is quoted.
const QUOTED: usize = 300;

/// The error for an answer of this status.
pub(crate) fn by(status: u16, body: &[u8], secrets: &[Secret]) -> ModelError {
    let (message, code) = said(body).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        // Half a secret would not be known for one.
        let text = scrubbed(text.trim(), secrets);
        let quoted: String = text.chars().take(QUOTED).collect();
        if quoted.is_empty() {
            ("the server did not say why".to_owned(), None)
        } else {
            (quoted, None)
        }
    });
    ModelError::new(kind_of_status(status), message).with_status(status, code)
}

/// What kind of failure a code means, where there is no status to go by.
pub(crate) fn kind(code: Option<&str>) -> ModelErrorKind {
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

/// The message and the code of an event that tells of a failure and of nothing else.
pub(crate) fn in_event(event: &Event) -> Option<(String, Option<String>)> {
    let (said, is_error) = match event {
        Event::Data(data) if is_usual(data) => return None,
        Event::Data(data) => (serde_json::from_str(data).ok()?, false),
        Event::Error(said) => (
            serde_json::from_str(said).unwrap_or_else(|_| json!(&**said)),
            true,
        ),
    };
    let failure = match said["type"].as_str() {
        Some("error" | "response.error") => &said,
        Some("response.failed") => &said["response"],
        Some(_) => return None,
        None if is_error || !is_nothing(&said["error"]) => &said,
        None => return None,
    };
    Some(told(failure).unwrap_or(("the model failed".to_owned(), None)))
}

/// Whether an event says what it is and that it is no failure, or tells of no error. The first event
/// of an answer may hold all that was asked for; it need not become a tree to know that.
fn is_usual(data: &str) -> bool {
    let (mut kind, mut error) = (None, None);
    let read = object(data, |scanner, key| match key {
        b"type" => keep(&mut kind, scanner.text()),
        b"error" => keep(&mut error, scanner.raw()),
        _ => scanner.ignore(),
    });
    let is_failure = |kind: &str| matches!(kind, "error" | "response.error" | "response.failed");
    read.is_some() && kind.map_or(error.is_none(), |kind| !is_failure(&kind))
}

fn is_nothing(error: &Value) -> bool {
    matches!(error, Value::Null | Value::Bool(false))
}

/// The message and the code of a refusal.
pub(crate) fn said(body: &[u8]) -> Option<(String, Option<String>)> {
    told(&serde_json::from_slice(body).ok()?)
}

/// The same of JSON: `error` as an object or a text, or the fields at the top.
pub(crate) fn told(body: &Value) -> Option<(String, Option<String>)> {
    let error = match &body["error"] {
        error if is_nothing(error) => body,
        error => error,
    };
    let message = match error {
        Value::String(text) => Some(text.clone()),
        error => ["message", "detail"]
            .iter()
            .find_map(|field| match &error[*field] {
                Value::Null => None,
                Value::String(text) => Some(text.clone()),
                other => Some(other.to_string()),
            }),
    };
    let code = match &error["code"] {
        Value::String(code) => Some(code.clone()),
        Value::Number(code) => Some(code.to_string()),
        _ => error["type"].as_str().map(str::to_owned),
    };
    Some((message?, code))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_refuse_is_understood() {
        let read = |body: &str| {
            let error = by(400, body.as_bytes(), &[]);
            (error.to_string(), error.code().map(str::to_owned))
        };
        for (body, message, code) in [
            (
                r#"{"error":{"message":"No.","type":"t","code":"c"}}"#,
                "No.",
                Some("c"),
            ),
            (
                r#"{"error":{"message":"No.","type":"t","code":null}}"#,
                "No.",
                Some("t"),
            ),
            (r#"{"error":"No."}"#, "No.", None),
            (
                r#"{"error":{"message":"No.","code":502}}"#,
                "No.",
                Some("502"),
            ),
            (
                r#"{"object":"error","message":"No.","code":400}"#,
                "No.",
                Some("400"),
            ),
            (r#"{"detail":[{"msg":"No."}]}"#, r#"[{"msg":"No."}]"#, None),
            ("<html>No.</html>", "<html>No.</html>", None),
            ("", "the server did not say why", None),
        ] {
            let (told, found) = read(body);
            assert!(told.contains(message), "{body}: {told}");
            assert_eq!(found.as_deref(), code, "{body}");
        }
        let long = read(&"x".repeat(10_000)).0;
        assert!(long.len() < 1000);
    }

    #[test]
    fn a_secret_is_not_cut_in_two() {
        let body = format!("{}topsecretkey", "x".repeat(QUOTED - 8));
        let told = by(400, body.as_bytes(), &[Secret::new("topsecretkey")]).to_string();
        assert!(told.contains('x') && !told.contains("topsecr"), "{told}");
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
            assert_eq!(kind(Some(code)), expected, "{code}");
        }
        assert_eq!(kind(None), ModelErrorKind::Failed);
    }

    #[test]
    fn an_event_of_a_failure_is_told_from_others() {
        let code = |data: &str| in_event(&Event::Data(data.into())).map(|(_, code)| code);
        for (data, expected) in [
            (
                r#"{"type":"error","error":{"code":"server_is_overloaded","message":"m"}}"#,
                "server_is_overloaded",
            ),
            (
                r#"{"type":"error","code":"rate_limit_exceeded","message":"m"}"#,
                "rate_limit_exceeded",
            ),
            (
                r#"{"type":"response.failed","response":{"error":{"code":"c","message":"m"}}}"#,
                "c",
            ),
            (r#"{"error":{"code":429,"message":"m"}}"#, "429"),
        ] {
            assert_eq!(code(data), Some(Some(expected.to_owned())), "{data}");
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
        let said = in_event(&Event::Error("broke".into()));
        assert_eq!(said, Some(("broke".to_owned(), None)));
    }
}
