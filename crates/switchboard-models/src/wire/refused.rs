//! What a server says when it does not answer. Every server has its own way to say it.

use serde_json::Value;

use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::secret::{Secret, scrubbed};

/// How much of a refusal that is no JSON is quoted.
const QUOTED: usize = 300;

/// The error for an answer of this status.
pub(crate) fn by(status: u16, body: &[u8], secrets: &[Secret]) -> ModelError {
    let (message, code) = said(body).unwrap_or_else(|| {
        let text = String::from_utf8_lossy(body);
        let text = text.trim();
        let quoted: String = text.chars().take(QUOTED).collect();
        match quoted.is_empty() {
            true => ("the server did not say why".to_owned(), None),
            false => (quoted, None),
        }
    });
    let kind = match status {
        401 | 403 => ModelErrorKind::Authentication,
        429 => ModelErrorKind::RateLimit,
        500.. => ModelErrorKind::Server,
        _ => ModelErrorKind::Request,
    };
    ModelError::new(kind, scrubbed(&message, secrets)).with_status(status, code)
}

/// The message and the code of a refusal.
pub(crate) fn said(body: &[u8]) -> Option<(String, Option<String>)> {
    told(&serde_json::from_slice(body).ok()?)
}

/// The same of JSON: `error` as an object or a text, or the fields at the top.
pub(crate) fn told(body: &Value) -> Option<(String, Option<String>)> {
    let error = match &body["error"] {
        Value::Null | Value::Bool(false) => body,
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
}
