//! The error of a realtime session.

use std::fmt;
use std::sync::Arc;

use switchboard_core::ErrorKind;
use switchboard_core::callback::DynError;

use crate::model::{RealtimeModelError, RealtimeModelErrorKind};

/// The error of a realtime session. Clones share it.
#[derive(Clone)]
pub struct RealtimeError(Arc<Inner>);

struct Inner {
    kind: RealtimeErrorKind,
    message: String,
    source: Option<Source>,
}

enum Source {
    Engine(switchboard_core::Error),
    Model(RealtimeModelError),
}

/// The kinds of errors of a realtime session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RealtimeErrorKind {
    /// An agent, a tool, a guardrail, a handoff or the model's behaviour, as in a run.
    Engine(ErrorKind),
    /// The realtime model or the connection to it.
    Model(RealtimeModelErrorKind),
}

impl RealtimeError {
    pub(crate) fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self(Arc::new(Inner {
            kind: RealtimeErrorKind::Engine(kind),
            message: message.into(),
            source: None,
        }))
    }

    /// The error for a session that has ended.
    pub(crate) fn not_connected() -> Self {
        Self(Arc::new(Inner {
            kind: RealtimeErrorKind::Model(RealtimeModelErrorKind::NotConnected),
            message: "the session is not connected: it was closed, or it has failed".to_owned(),
            source: None,
        }))
    }

    /// The kind of error.
    pub fn kind(&self) -> RealtimeErrorKind {
        self.0.kind
    }

    /// The error of the engine, where it is one.
    pub fn engine_error(&self) -> Option<&switchboard_core::Error> {
        match &self.0.source {
            Some(Source::Engine(error)) => Some(error),
            _ => None,
        }
    }

    /// The error of the model, where it is one.
    pub fn model_error(&self) -> Option<&RealtimeModelError> {
        match &self.0.source {
            Some(Source::Model(error)) => Some(error),
            _ => None,
        }
    }

    /// Returns `true` if the session has no connection, or none any more.
    pub fn is_not_connected(&self) -> bool {
        self.0.kind == RealtimeErrorKind::Model(RealtimeModelErrorKind::NotConnected)
    }

    /// Returns `true` if the model broke a rule.
    pub fn is_model_behavior(&self) -> bool {
        self.0.kind == RealtimeErrorKind::Engine(ErrorKind::ModelBehavior)
    }

    /// Returns `true` if the agents or the session are configured in a way that cannot work.
    pub fn is_configuration(&self) -> bool {
        matches!(
            self.0.kind,
            RealtimeErrorKind::Engine(ErrorKind::Configuration)
                | RealtimeErrorKind::Model(RealtimeModelErrorKind::Configuration)
        )
    }
}

impl From<switchboard_core::Error> for RealtimeError {
    fn from(error: switchboard_core::Error) -> Self {
        Self(Arc::new(Inner {
            kind: RealtimeErrorKind::Engine(error.kind()),
            message: error.to_string(),
            source: Some(Source::Engine(error)),
        }))
    }
}

impl From<RealtimeModelError> for RealtimeError {
    fn from(error: RealtimeModelError) -> Self {
        Self(Arc::new(Inner {
            kind: RealtimeErrorKind::Model(error.kind()),
            message: error.to_string(),
            source: Some(Source::Model(error)),
        }))
    }
}

impl fmt::Display for RealtimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for RealtimeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealtimeError")
            .field("kind", &self.0.kind)
            .field("message", &self.0.message)
            .finish_non_exhaustive()
    }
}

impl std::error::Error for RealtimeError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source: &DynError = match self.0.source.as_ref()? {
            Source::Engine(error) => error,
            Source::Model(error) => error,
        };
        source.source()
    }
}
