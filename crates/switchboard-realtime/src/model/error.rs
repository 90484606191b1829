//! The error of a realtime model.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;

use switchboard_core::callback::{BoxError, DynError};

/// An error of a realtime model or of the connection to it. Clones share it.
#[derive(Clone)]
pub struct RealtimeModelError(Arc<Inner>);

struct Inner {
    kind: RealtimeModelErrorKind,
    message: String,
    close_code: Option<u16>,
    status: Option<u16>,
    source: Option<BoxError>,
}

/// The kinds of errors of a realtime model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RealtimeModelErrorKind {
    /// The model is configured in a way that cannot work.
    Configuration,
    /// There is no connection.
    NotConnected,
    /// The network or the connection failed.
    Transport,
    /// The server did not answer in time.
    Timeout,
    /// The server sent something that is not JSON.
    Parse,
    /// The server or the application sent JSON of a shape that is not allowed.
    Validation,
    /// Something else, of a model of the application.
    Other,
}

impl RealtimeModelError {
    /// Creates an error.
    pub fn new(kind: RealtimeModelErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind,
            message: message.into(),
            close_code: None,
            status: None,
            source: None,
        }))
    }

    /// Creates an error with a cause.
    pub fn caused_by(
        kind: RealtimeModelErrorKind,
        message: impl Into<String>,
        source: impl Into<BoxError>,
    ) -> Self {
        Self(Arc::new(Inner {
            kind,
            message: message.into(),
            close_code: None,
            status: None,
            source: Some(source.into()),
        }))
    }

    /// The error for a connection that the server closed with a code.
    pub fn closed(code: u16, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind: RealtimeModelErrorKind::Transport,
            message: message.into(),
            close_code: Some(code),
            status: None,
            source: None,
        }))
    }

    /// The error for a connection that the server refused with an HTTP status.
    pub fn refused(status: u16, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind: RealtimeModelErrorKind::Transport,
            message: message.into(),
            close_code: None,
            status: Some(status),
            source: None,
        }))
    }

    /// The kind.
    pub fn kind(&self) -> RealtimeModelErrorKind {
        self.0.kind
    }

    /// The code with which the server closed the connection.
    pub fn close_code(&self) -> Option<u16> {
        self.0.close_code
    }

    /// The HTTP status with which the server refused the connection.
    pub fn status(&self) -> Option<u16> {
        self.0.status
    }
}

impl PartialEq for RealtimeModelError {
    fn eq(&self, other: &Self) -> bool {
        self.0.kind == other.0.kind && self.0.message == other.0.message
    }
}

impl fmt::Display for RealtimeModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for RealtimeModelError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealtimeModelError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .field("close_code", &self.0.close_code)
            .field("status", &self.0.status)
            .field("source", &self.0.source)
            .finish()
    }
}

impl StdError for RealtimeModelError {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        let source: Option<&DynError> = self.0.source.as_deref();
        source.map(|source| source as &(dyn StdError + 'static))
    }
}
