//! Errors of durable runs.

use std::fmt;

use switchboard_core::callback::BoxError;

/// An error of a [`DurableRunner`](crate::DurableRunner). The error of a run itself is part of its
/// [`RunRecord`](crate::RunRecord).
#[derive(Debug)]
pub struct DurableError {
    kind: DurableErrorKind,
    message: String,
    source: Option<BoxError>,
}

/// The kinds of errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum DurableErrorKind {
    /// The store could not be read or written.
    Store,
    /// There is no such run.
    NotFound,
    /// The run has ended, or does not wait for this.
    NotWaiting,
    /// Another process has the run.
    Taken,
    /// The journal cannot be read.
    Damaged,
    /// The runner is shutting down.
    Closed,
    /// The run began with a version of the team that this process has not.
    Version,
    /// The run is executed by another engine, or by processes of another team.
    OtherEngine,
    /// The engine's server could not be reached, or refused a request.
    Engine,
    /// The engine does not support this.
    Unsupported,
}

impl DurableError {
    /// Creates an error, for an engine.
    pub fn new(kind: DurableErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Adds the cause. Its text should be part of the message.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.source = Some(source.into());
        self
    }

    pub(crate) fn store(id: &str, error: BoxError) -> Self {
        Self {
            kind: DurableErrorKind::Store,
            message: format!("the journal of run \"{id}\" cannot be used: {error}"),
            source: Some(error),
        }
    }

    pub(crate) fn not_found(id: &str) -> Self {
        Self::new(
            DurableErrorKind::NotFound,
            format!("there is no run \"{id}\""),
        )
    }

    /// The kind of error.
    pub fn kind(&self) -> DurableErrorKind {
        self.kind
    }
}

impl fmt::Display for DurableError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for DurableError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        // The text of the error is part of the message.
        self.source.as_deref()?.source()
    }
}
