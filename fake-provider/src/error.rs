//! Problems of requests, in OpenAI's format.

use std::fmt;

use serde_json::{Value, json};

/// A problem of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Problem {
    /// The HTTP status of the response.
    pub status: u16,
    /// The error code, like `missing_required_parameter`.
    pub code: Option<&'static str>,
    /// The path in the body, like `input[1].id`.
    pub param: Option<String>,
    /// The description.
    pub message: String,
}

impl Problem {
    pub(crate) fn new(
        code: impl Into<Option<&'static str>>,
        param: impl Into<Option<String>>,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status: 400,
            code: code.into(),
            param: param.into(),
            message: message.into(),
        }
    }

    pub(crate) fn status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// The body of the response.
    pub(crate) fn body(&self) -> Value {
        error_body(
            "invalid_request_error",
            self.code,
            self.param.as_deref(),
            &self.message,
        )
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.param {
            Some(param) => write!(f, "{param}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// An error body in OpenAI's format.
pub(crate) fn error_body(
    kind: &str,
    code: Option<&str>,
    param: Option<&str>,
    message: &str,
) -> Value {
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}
