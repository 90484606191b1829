//! Errors in the forms of A2A's bindings.

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use crate::error::{ServiceError, ServiceErrorKind};

/// The media type of A2A objects over HTTP.
pub(super) const MEDIA_TYPE: &str = "application/a2a+json";

/// An error of an operation.
#[derive(Debug)]
pub(super) struct A2aError {
    kind: A2aErrorKind,
    message: String,
    /// The field of the request that is wrong.
    field: Option<&'static str>,
    retry_after: Option<u64>,
}

/// The kinds of errors: those of A2A, those of JSON-RPC, and those of the service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum A2aErrorKind {
    TaskNotFound,
    TaskNotCancelable,
    PushNotificationNotSupported,
    UnsupportedOperation,
    ContentTypeNotSupported,
    /// The same, for the content type of the request itself.
    MediaTypeNotSupported,
    VersionNotSupported,
    /// The body is not JSON.
    Parse,
    /// The body is no request.
    InvalidRequest,
    MethodNotFound,
    InvalidParams,
    Service(ServiceErrorKind),
}

impl A2aErrorKind {
    /// The code in JSON-RPC.
    const fn code(self) -> i32 {
        match self {
            Self::TaskNotFound => -32001,
            Self::TaskNotCancelable => -32002,
            Self::PushNotificationNotSupported => -32003,
            Self::UnsupportedOperation => -32004,
            Self::ContentTypeNotSupported | Self::MediaTypeNotSupported => -32005,
            Self::VersionNotSupported => -32009,
            Self::Parse => -32700,
            Self::InvalidRequest => -32600,
            Self::MethodNotFound => -32601,
            Self::InvalidParams => -32602,
            Self::Service(kind) => match kind.status() {
                500.. => -32603,
                _ => -32600,
            },
        }
    }

    /// The status of HTTP.
    const fn status(self) -> u16 {
        match self {
            Self::TaskNotFound | Self::MethodNotFound => 404,
            Self::MediaTypeNotSupported => 415,
            Self::Service(kind) => kind.status(),
            _ => 400,
        }
    }

    /// The name in `google.rpc.ErrorInfo`, for errors that A2A defines.
    const fn reason(self) -> Option<&'static str> {
        Some(match self {
            Self::TaskNotFound => "TASK_NOT_FOUND",
            Self::TaskNotCancelable => "TASK_NOT_CANCELABLE",
            Self::PushNotificationNotSupported => "PUSH_NOTIFICATION_NOT_SUPPORTED",
            Self::UnsupportedOperation => "UNSUPPORTED_OPERATION",
            Self::ContentTypeNotSupported | Self::MediaTypeNotSupported => {
                "CONTENT_TYPE_NOT_SUPPORTED"
            }
            Self::VersionNotSupported => "VERSION_NOT_SUPPORTED",
            _ => return None,
        })
    }

    /// The status in `google.rpc.Status`.
    const fn rpc_status(self) -> &'static str {
        match self {
            Self::TaskNotFound | Self::MethodNotFound => "NOT_FOUND",
            Self::ContentTypeNotSupported
            | Self::MediaTypeNotSupported
            | Self::Parse
            | Self::InvalidRequest
            | Self::InvalidParams => "INVALID_ARGUMENT",
            Self::TaskNotCancelable
            | Self::PushNotificationNotSupported
            | Self::UnsupportedOperation
            | Self::VersionNotSupported => "FAILED_PRECONDITION",
            Self::Service(kind) => match kind.status() {
                401 => "UNAUTHENTICATED",
                403 => "PERMISSION_DENIED",
                404 => "NOT_FOUND",
                409 => "ABORTED",
                429 => "RESOURCE_EXHAUSTED",
                503 => "UNAVAILABLE",
                504 => "DEADLINE_EXCEEDED",
                500.. => "INTERNAL",
                _ => "INVALID_ARGUMENT",
            },
        }
    }
}

impl A2aError {
    pub(super) fn new(kind: A2aErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            field: None,
            retry_after: None,
        }
    }

    /// The error for a field of the parameters.
    pub(super) fn invalid(field: &'static str, message: impl Into<String>) -> Self {
        let mut error = Self::new(A2aErrorKind::InvalidParams, message);
        error.field = Some(field);
        error
    }

    pub(super) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(A2aErrorKind::UnsupportedOperation, message)
    }

    /// The same error for a task that does not exist and for another tenant's.
    pub(super) fn no_task() -> Self {
        let message = "there is no such task, or its time has passed";
        Self::new(A2aErrorKind::TaskNotFound, message)
    }

    fn details(&self) -> Vec<Value> {
        let mut details = Vec::new();
        if let Some(reason) = self.kind.reason() {
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.ErrorInfo",
                "reason": reason, "domain": "a2a-protocol.org",
            }));
        }
        if let Some(field) = self.field {
            details.push(json!({
                "@type": "type.googleapis.com/google.rpc.BadRequest",
                "fieldViolations": [{"field": field, "description": self.message}],
            }));
        }
        details
    }

    /// The error object of JSON-RPC.
    pub(super) fn to_json_rpc(&self) -> Value {
        let mut error = json!({"code": self.kind.code(), "message": self.message});
        let details = self.details();
        if !details.is_empty() {
            error["data"] = details.into();
        }
        error
    }

    /// The status of HTTP for an error that concerns the connection and not the call, such as a limit.
    pub(super) fn transport_status(&self) -> Option<StatusCode> {
        match self.kind {
            A2aErrorKind::Service(kind) if !matches!(kind.status(), 400 | 404 | 409) => {
                StatusCode::from_u16(kind.status()).ok()
            }
            _ => None,
        }
    }

    pub(super) fn add_headers(&self, response: &mut Response) {
        if let Some(seconds) = self.retry_after {
            let headers = response.headers_mut();
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
    }
}

impl From<ServiceError> for A2aError {
    fn from(error: ServiceError) -> Self {
        Self::from(&error)
    }
}

impl From<&ServiceError> for A2aError {
    fn from(error: &ServiceError) -> Self {
        let kind = match error.kind() {
            ServiceErrorKind::InvalidRequest => A2aErrorKind::InvalidParams,
            ServiceErrorKind::Conflict => A2aErrorKind::UnsupportedOperation,
            ServiceErrorKind::UnsupportedMediaType => A2aErrorKind::MediaTypeNotSupported,
            kind => A2aErrorKind::Service(kind),
        };
        let mut converted = Self::new(kind, error.message());
        converted.retry_after = error.retry_after_seconds();
        converted
    }
}

/// The form of the binding HTTP+JSON.
impl IntoResponse for A2aError {
    fn into_response(self) -> Response {
        let status = self.kind.status();
        let body = json!({"error": {
            "code": status, "status": self.kind.rpc_status(), "message": self.message,
            "details": self.details(),
        }});
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let mut response = (status, axum::Json(body)).into_response();
        self.add_headers(&mut response);
        response
    }
}
