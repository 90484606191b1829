//! Reading stored runs from places that are not trusted: within limits, with errors of kinds.

use super::{Run, snapshot};

/// Limits on a stored run that is read; see [`Run::from_json_within`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
#[must_use]
pub struct StateLimits {
    /// The length of the JSON in bytes.
    pub bytes: usize,
}

impl StateLimits {
    /// Sets the length of the JSON in bytes.
    pub const fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }
}

/// 64 MiB.
impl Default for StateLimits {
    fn default() -> Self {
        Self { bytes: 64 << 20 }
    }
}

/// The error for JSON that is not read as a run. It does not quote the JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StateError {
    kind: StateErrorKind,
    message: String,
}

/// The kind of a [`StateError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StateErrorKind {
    /// It is longer than the limit. It was not parsed.
    TooLarge,
    /// It was stored in a version that this program does not read.
    OtherVersion,
    /// It is no stored run, or one that was changed: parts of it contradict each other.
    Invalid,
}

impl StateError {
    pub(super) fn other_version(message: String) -> Self {
        let kind = StateErrorKind::OtherVersion;
        Self { kind, message }
    }

    pub(super) fn invalid(message: impl Into<String>) -> Self {
        Self {
            kind: StateErrorKind::Invalid,
            message: message.into(),
        }
    }

    /// The kind of error.
    pub fn kind(&self) -> StateErrorKind {
        self.kind
    }
}

impl_error!(StateError, |error| "{}", error.message);

impl Run {
    /// Reads a stored run, as serde writes it, from a place that is not trusted: JSON that is longer than the
    /// default of [`StateLimits`] is refused before it is parsed. A run that is read has been checked for
    /// parts that contradict each other; that nobody has changed it, only a signature proves
    /// (`RunSeal` in `switchboard-sessions`).
    ///
    /// ```
    /// use switchboard_core::run::{StateErrorKind, StateLimits};
    /// use switchboard_core::{Agent, Run, Runner};
    ///
    /// let agent: Agent = Agent::new("Greeter");
    /// let stored = serde_json::to_string(&Runner::new(&agent).begin("Hi")).unwrap();
    ///
    /// assert_eq!(Run::from_json(&stored)?.agent(), "Greeter");
    /// let error = Run::from_json_within(&stored, StateLimits::default().bytes(100)).unwrap_err();
    /// assert_eq!(error.kind(), StateErrorKind::TooLarge);
    /// # Ok::<(), switchboard_core::run::StateError>(())
    /// ```
    ///
    /// # Errors
    /// An error if the JSON is too long, of another version, or no run.
    pub fn from_json(json: &str) -> Result<Self, StateError> {
        Self::from_json_within(json, StateLimits::default())
    }

    /// Like [`Run::from_json`], with limits of its own.
    ///
    /// # Errors
    /// An error if the JSON is too long, of another version, or no run.
    pub fn from_json_within(json: &str, limits: StateLimits) -> Result<Self, StateError> {
        if json.len() > limits.bytes {
            return Err(StateError {
                kind: StateErrorKind::TooLarge,
                message: format!(
                    "the stored run has {} bytes, and the limit is {}; if it is one of yours, raise \
                     the limit with StateLimits::bytes",
                    json.len(),
                    limits.bytes
                ),
            });
        }
        snapshot::read(json)
    }
}
