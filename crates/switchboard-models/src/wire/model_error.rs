//! Errors of models over HTTP.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use switchboard_core::callback::BoxError;
use switchboard_core::model::Usage;

use crate::wire::client::ResponseHeaders;
use crate::wire::error_causes;
use crate::wire::secret::{Secret, scrub};

/// The error of a model over HTTP.
///
/// It is the cause of the run's error:
///
/// ```
/// use switchboard_core::Error;
/// use switchboard_models::ModelError;
///
/// fn wait_for(error: &Error) -> Option<std::time::Duration> {
///     error.cause()?.downcast_ref::<ModelError>()?.retry_after()
/// }
/// ```
pub struct ModelError(Box<Details>);

/// The details of an error.
pub(crate) struct Details {
    pub(crate) kind: ModelErrorKind,
    pub(crate) message: String,
    pub(crate) server: String,
    pub(crate) status: Option<u16>,
    pub(crate) code: Option<String>,
    /// The environment variable that the request's key is from.
    pub(crate) key_variable: Option<String>,
    pub(crate) headers: ResponseHeaders,
    /// The number of times that the endpoint sent the request.
    pub(crate) attempts: u32,
    /// The number of times that the run had sent it before.
    pub(crate) earlier_attempts: u32,
    pub(crate) usage: Option<Usage>,
    /// Set if no part of the request reached the server.
    pub(crate) is_unsent: bool,
    pub(crate) source: Option<BoxError>,
}

/// The kind of a [`ModelError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The client's settings are invalid: a bad address, key, header, proxy or certificate.
    Configuration,
    /// The conversation holds something that the protocol has no form for.
    Unsupported,
    /// The server could not be reached, or closed the connection before it answered.
    Connection,
    /// A timeout expired.
    Timeout,
    /// The server did not accept the key or its permissions.
    Authentication,
    /// Too many requests, or the account's quota is used up.
    RateLimit,
    /// The server rejected the request.
    Request,
    /// The server redirects to another address. Redirects are not followed, as the key would go there too.
    Redirect,
    /// The server had an internal error.
    Server,
    /// The server's answer could not be parsed.
    BadAnswer,
    /// The server answered with a web page: the address is not that of a model, or a proxy is in the way.
    WebPage,
    /// The server does not know the path of the request, or answered with a text that is no answer of a model.
    WrongAddress,
    /// The connection broke before the answer was complete.
    Interrupted,
    /// The answer was larger than [`Endpoint::max_response_bytes`](crate::Endpoint::max_response_bytes).
    TooLarge,
    /// The model stopped early: at its token limit or at a content filter.
    Incomplete,
    /// The model failed while it answered.
    Failed,
}

/// The remaining rate limits of an account, as the server reported them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// The remaining number of requests.
    pub remaining_requests: Option<u64>,
    /// The remaining number of tokens.
    pub remaining_tokens: Option<u64>,
    /// The time until the limit of requests is reset.
    pub reset_requests: Option<Duration>,
    /// The time until the limit of tokens is reset.
    pub reset_tokens: Option<Duration>,
}

impl ModelError {
    pub(crate) fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Details {
            kind,
            message: message.into(),
            server: String::new(),
            status: None,
            code: None,
            key_variable: None,
            headers: ResponseHeaders::default(),
            attempts: 1,
            earlier_attempts: 0,
            usage: None,
            is_unsent: false,
            source: None,
        }))
    }

    /// The error for invalid settings.
    pub(crate) fn configuration(message: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Configuration, message)
    }

    /// The error for something that the protocol has no form for.
    pub(crate) fn unsupported(message: impl Into<String>) -> Self {
        Self::new(ModelErrorKind::Unsupported, message)
    }

    /// The kind of the error.
    pub fn kind(&self) -> ModelErrorKind {
        self.0.kind
    }

    /// The HTTP status of a response other than 2xx.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The server's error code, such as `context_length_exceeded`.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The server's identifier of the request, for support.
    pub fn request_id(&self) -> Option<&str> {
        self.0.headers.request_id.as_deref()
    }

    /// The time that the server asks to wait before a retry.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.headers.retry_after
    }

    /// The remaining rate limits.
    pub fn rate_limits(&self) -> RateLimits {
        self.0.headers.rate_limits
    }

    /// The usage of a failed answer, if the server reported it. The run's usage includes it.
    pub fn usage(&self) -> Option<Usage> {
        self.0.usage
    }

    /// The number of times that the request was sent, by the run and the endpoint.
    pub fn attempts(&self) -> u32 {
        self.0.earlier_attempts.saturating_add(self.0.attempts)
    }

    /// Returns `true` if the account's quota is used up, so that waiting does not help. Servers say it with a
    /// status of 402, a code, or a message; a message of a 5xx does not count.
    pub fn is_out_of_quota(&self) -> bool {
        self.kind() == ModelErrorKind::RateLimit
            && error_causes::is_spent_quota(self.status(), self.code(), &self.0.message)
    }

    /// Returns `true` if the conversation is too long for the model, or the request for the server.
    pub fn is_too_long(&self) -> bool {
        error_causes::is_too_long(self.status(), self.code(), &self.0.message)
    }

    /// The environment variable that the key of the request is from, if it is from one.
    pub fn key_variable(&self) -> Option<&str> {
        self.0.key_variable.as_deref()
    }

    /// Changes the details.
    pub(crate) fn with(mut self, change: impl FnOnce(&mut Details)) -> Self {
        change(&mut self.0);
        self
    }

    pub(crate) fn with_headers(self, headers: ResponseHeaders) -> Self {
        self.with(|error| error.headers = headers)
    }

    pub(crate) fn should_retry(&self) -> Option<bool> {
        self.0.headers.should_retry
    }

    /// Returns `true` if no part of the request reached the server.
    pub(crate) fn is_unsent(&self) -> bool {
        self.0.is_unsent
    }

    /// Removes secrets that the server may have quoted.
    pub(crate) fn scrubbed(mut self, secrets: &[Secret]) -> Self {
        let inner = &mut *self.0;
        let texts = [&mut inner.code, &mut inner.headers.request_id];
        let shown = [&mut inner.message, &mut inner.server];
        for text in texts.into_iter().flatten().chain(shown) {
            if let Cow::Owned(scrubbed) = scrub(text, secrets) {
                *text = scrubbed;
            }
        }
        // A source cannot be changed; the message quotes it already.
        inner.source.take_if(|source| {
            let shown = format!("{source} {source:?}");
            matches!(scrub(&shown, secrets), Cow::Owned(_))
        });
        self
    }

    /// Advice on how to fix the problem.
    fn advice(&self) -> Option<Cow<'static, str>> {
        use ModelErrorKind::{
            Authentication, Connection, RateLimit, Redirect, WebPage, WrongAddress,
        };
        Some(Cow::Borrowed(match self.0.kind {
            Authentication => match self.key_variable() {
                Some(name) => {
                    return Some(format!("check the key in {name} and its permissions").into());
                }
                None => "check the key and its permissions",
            },
            RateLimit if self.is_out_of_quota() => {
                "the account's quota is used up; waiting does not help"
            }
            RateLimit => "wait, or send fewer requests",
            Connection => "check the address, the network and the proxy",
            Redirect => "if that server is the right one, use that address instead",
            WebPage | WrongAddress => "check the address and its path, which often ends in /v1",
            _ if self.is_too_long() => "the conversation is too long for the model; shorten it",
            _ if self.code() == Some("model_not_found") => "check the model's name",
            _ => return None,
        }))
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let inner = &self.0;
        if !inner.server.is_empty() {
            write!(f, "{}: ", inner.server)?;
        }
        if let Some(status) = inner.status {
            write!(f, "status {status}")?;
            if let Some(code) = &inner.code {
                write!(f, " ({code})")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&inner.message)?;
        if let (None, Some(code)) = (inner.status, &inner.code) {
            write!(f, " ({code})")?;
        }
        if let Some(after) = inner.headers.retry_after {
            write!(f, "; the server asks to wait {} s", after.as_secs_f64())?;
        }
        if inner.attempts > 1 {
            write!(f, "; sent {} times", inner.attempts)?;
        }
        if let Some(id) = &inner.headers.request_id {
            write!(f, "; request id {id}")?;
        }
        match self.advice() {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for ModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ModelError({:?}: {self})", self.0.kind)
    }
}

impl std::error::Error for ModelError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.0.source.as_deref().map(|source| source as _)
    }
}
