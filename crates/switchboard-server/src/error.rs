//! The errors of the service.

use std::fmt;
use std::time::Duration;

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{ConversationError, ConversationErrorKind};

/// An error of the service, which every protocol tells in its own form.
#[derive(Debug)]
pub struct ServiceError {
    kind: ServiceErrorKind,
    message: String,
    retry_after: Option<Duration>,
}

/// The kind of a [`ServiceError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ServiceErrorKind {
    /// The request cannot be understood (400).
    InvalidRequest,
    /// The request has no valid key (401).
    Unauthorized,
    /// The request is from a page or a name that the service does not serve (403).
    Forbidden,
    /// There is nothing of that name, or it is another tenant's (404).
    NotFound,
    /// The method is not allowed for this path (405).
    MethodNotAllowed,
    /// The request does not fit the state of the conversation (409).
    Conflict,
    /// The request is larger than allowed (413).
    TooLarge,
    /// The body is not JSON (415).
    UnsupportedMediaType,
    /// The idempotency key was sent with another request before (422).
    IdempotencyKeyReused,
    /// The key has reached one of its limits (429).
    RateLimited,
    /// The head of the request is larger than allowed (431).
    HeadTooLarge,
    /// The service failed (500).
    Internal,
    /// The service is full, or is shutting down (503).
    Unavailable,
    /// The request took longer than allowed (504).
    TimedOut,
}

impl ServiceErrorKind {
    /// The status of HTTP.
    pub const fn status(self) -> u16 {
        match self {
            Self::InvalidRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::UnsupportedMediaType => 415,
            Self::IdempotencyKeyReused => 422,
            Self::RateLimited => 429,
            Self::HeadTooLarge => 431,
            Self::Internal => 500,
            Self::Unavailable => 503,
            Self::TimedOut => 504,
        }
    }

    /// The name, as the service's own API and its metrics tell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InvalidRequest => "invalid_request",
            Self::Unauthorized => "unauthorized",
            Self::Forbidden => "forbidden",
            Self::NotFound => "not_found",
            Self::MethodNotAllowed => "method_not_allowed",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
            Self::UnsupportedMediaType => "unsupported_media_type",
            Self::IdempotencyKeyReused => "idempotency_key_reused",
            Self::RateLimited => "rate_limited",
            Self::HeadTooLarge => "head_too_large",
            Self::Internal => "internal",
            Self::Unavailable => "unavailable",
            Self::TimedOut => "timed_out",
        }
    }
}

impl ServiceError {
    /// Creates an error.
    pub fn new(kind: ServiceErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    pub(crate) fn invalid(message: impl Into<String>) -> Self {
        Self::new(ServiceErrorKind::InvalidRequest, message)
    }

    pub(crate) fn not_found(message: impl Into<String>) -> Self {
        Self::new(ServiceErrorKind::NotFound, message)
    }

    /// The error of a task that has panicked.
    pub(crate) fn panicked() -> Self {
        let message = "the service has panicked; its log has the reason";
        Self::new(ServiceErrorKind::Internal, message)
    }

    /// Sets the time after which the request can be tried again.
    #[must_use]
    pub fn retry_after(mut self, time: Duration) -> Self {
        self.retry_after = Some(time);
        self
    }

    /// The kind of error.
    pub fn kind(&self) -> ServiceErrorKind {
        self.kind
    }

    /// The message.
    pub fn message(&self) -> &str {
        &self.message
    }

    /// The whole seconds of the `Retry-After` header.
    pub fn retry_after_seconds(&self) -> Option<u64> {
        let time = self.retry_after?;
        let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
        Some(seconds.max(1))
    }

    /// The error of a store. Its message goes to the log, since it may name files and servers.
    pub(crate) fn of_store(error: &BoxError) -> Self {
        if let Some(error) = error.downcast_ref::<ConversationError>() {
            let kind = match error.kind() {
                ConversationErrorKind::NotFound => ServiceErrorKind::NotFound,
                ConversationErrorKind::Damaged | ConversationErrorKind::Encrypted => {
                    ServiceErrorKind::Internal
                }
                _ => ServiceErrorKind::Conflict,
            };
            let message = match error.kind() {
                ConversationErrorKind::NotFound => "there is no such conversation",
                ConversationErrorKind::NoSuchPosition => "the conversation has no such position",
                ConversationErrorKind::WithinTurn => {
                    "the position lies within a turn; use that of a user's message"
                }
                ConversationErrorKind::Exists => "there is a conversation of that name",
                ConversationErrorKind::Damaged | ConversationErrorKind::Encrypted => {
                    "the conversation cannot be read"
                }
                _ => "the conversation was changed meanwhile; try again",
            };
            return Self::new(kind, message);
        }
        tracing::error!(error = %error, "the store of conversations failed");
        Self::new(
            ServiceErrorKind::Unavailable,
            "the store of conversations failed; try again later",
        )
        .retry_after(Duration::from_secs(5))
    }
}

impl fmt::Display for ServiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ServiceError {}
