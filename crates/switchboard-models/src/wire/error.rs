//! Why a model could not answer.

use std::borrow::Cow;
use std::fmt;
use std::time::Duration;

use switchboard_core::{BoxError, Usage};

use crate::wire::secret::{Secret, scrubbed};

/// Why a model over the wire could not answer.
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
pub struct ModelError(Box<Inner>);

struct Inner {
    kind: ModelErrorKind,
    message: String,
    server: String,
    status: Option<u16>,
    code: Option<String>,
    request_id: Option<String>,
    retry_after: Option<Duration>,
    rate_limits: RateLimits,
    attempts: u32,
    usage: Option<Usage>,
    should_retry: Option<bool>,
    /// Nothing of the request reached the server.
    is_unsent: bool,
    source: Option<BoxError>,
}

/// What kind of failure it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The client cannot be used as it is set up: a bad address, key, proxy or certificate.
    Configuration,
    /// The conversation holds something that the protocol cannot carry.
    Unsupported,
    /// The server could not be reached, or went away before it answered.
    Connection,
    /// Something took longer than it may.
    Timeout,
    /// The server did not accept the key, or what it may do.
    Authentication,
    /// The server is asked too often, or the account has nothing left.
    RateLimit,
    /// The server did not accept the request.
    Request,
    /// The server failed.
    Server,
    /// The server's answer could not be understood.
    BadAnswer,
    /// The answer broke off half-way.
    Interrupted,
    /// The answer was larger than it may be.
    TooLarge,
    /// The model stopped before it was done: at its token limit, say.
    Incomplete,
    /// The model failed while answering.
    Failed,
}

/// How much of its limits an account had left, as the server said.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RateLimits {
    /// Requests that were left.
    pub remaining_requests: Option<u64>,
    /// Tokens that were left.
    pub remaining_tokens: Option<u64>,
    /// When the requests are full again.
    pub reset_requests: Option<Duration>,
    /// When the tokens are full again.
    pub reset_tokens: Option<Duration>,
}

impl ModelError {
    pub(crate) fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            server: String::new(),
            status: None,
            code: None,
            request_id: None,
            retry_after: None,
            rate_limits: RateLimits::default(),
            attempts: 1,
            usage: None,
            should_retry: None,
            is_unsent: false,
            source: None,
        }))
    }

    /// What kind of failure it was.
    pub fn kind(&self) -> ModelErrorKind {
        self.0.kind
    }

    /// The HTTP status, where the server answered.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }

    /// The server's own code of the failure, such as `context_length_exceeded`.
    pub fn code(&self) -> Option<&str> {
        self.0.code.as_deref()
    }

    /// The server's identifier of the request, for its support.
    pub fn request_id(&self) -> Option<&str> {
        self.0.request_id.as_deref()
    }

    /// How long the server asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.0.retry_after
    }

    /// What was left of the account's limits.
    pub fn rate_limits(&self) -> RateLimits {
        self.0.rate_limits
    }

    /// What the answer that failed has used all the same, where the server said so. The run counts
    /// it.
    pub fn usage(&self) -> Option<Usage> {
        self.0.usage
    }

    /// How often the request was sent.
    pub fn attempts(&self) -> u32 {
        self.0.attempts
    }

    pub(crate) fn used(mut self, usage: Usage) -> Self {
        self.0.usage = Some(usage);
        self
    }

    pub(crate) fn should_retry(&self) -> Option<bool> {
        self.0.should_retry
    }

    /// Whether nothing of the request reached the server.
    pub(crate) fn is_unsent(&self) -> bool {
        self.0.is_unsent
    }

    pub(crate) fn unsent(mut self) -> Self {
        self.0.is_unsent = true;
        self
    }

    /// The error without secrets, wherever the server may have quoted them.
    pub(crate) fn scrubbed(mut self, secrets: &[Secret]) -> Self {
        let inner = &mut *self.0;
        let texts = [Some(&mut inner.message), inner.code.as_mut()];
        for text in texts
            .into_iter()
            .chain([inner.request_id.as_mut()])
            .flatten()
        {
            if let Cow::Owned(clean) = scrubbed(text, secrets) {
                *text = clean;
            }
        }
        // A cause cannot be changed; the message tells of it already.
        let quotes = |source: &BoxError| {
            let told = format!("{source} {source:?}");
            matches!(scrubbed(&told, secrets), Cow::Owned(_))
        };
        inner.source = inner.source.take().filter(|source| !quotes(source));
        self
    }

    pub(crate) fn at(mut self, server: &str) -> Self {
        server.clone_into(&mut self.0.server);
        self
    }

    pub(crate) fn with_status(mut self, status: u16, code: Option<String>) -> Self {
        self.0.status = Some(status);
        self.0.code = code;
        self
    }

    pub(crate) fn with_code(mut self, code: Option<String>) -> Self {
        self.0.code = code;
        self
    }

    pub(crate) fn with_head(mut self, head: &crate::wire::client::Head) -> Self {
        self.0.request_id.clone_from(&head.request_id);
        self.0.retry_after = head.retry_after;
        self.0.rate_limits = head.rate_limits;
        self.0.should_retry = head.should_retry;
        self
    }

    pub(crate) fn after_attempts(mut self, attempts: u32) -> Self {
        self.0.attempts = attempts;
        self
    }

    pub(crate) fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// What to do about it.
    fn advice(&self) -> Option<&'static str> {
        Some(match (self.0.kind, self.0.code.as_deref()) {
            (ModelErrorKind::Authentication, _) => {
                "check the key (OPENAI_API_KEY) and what it may use"
            }
            (
                ModelErrorKind::RateLimit,
                Some("insufficient_quota" | "credit_balance_exhausted"),
            ) => "the account has nothing left; waiting does not help",
            (ModelErrorKind::RateLimit, _) => "wait, or ask less often",
            (ModelErrorKind::Connection, _) => {
                "check the address (OPENAI_BASE_URL), the network and the proxy"
            }
            (_, Some("context_length_exceeded")) => {
                "the conversation is too long for the model; shorten it with a filter"
            }
            (_, Some("model_not_found")) => "check the model's name",
            _ => return None,
        })
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
        if let Some(after) = inner.retry_after {
            write!(f, "; the server asks to wait {} s", after.as_secs_f64())?;
        }
        if inner.attempts > 1 {
            write!(f, "; sent {} times", inner.attempts)?;
        }
        if let Some(id) = &inner.request_id {
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
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}
