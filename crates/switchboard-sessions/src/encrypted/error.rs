//! Errors of encrypted stores and sealed runs.

use std::fmt;

use switchboard_core::callback::BoxError;

/// An error of an [`EncryptedStore`](super::EncryptedStore) or a [`RunSeal`](crate::RunSeal). Errors of the
/// store within are returned as they are.
///
/// The message names the conversation, the position and the key, and says what to do. It never quotes a
/// key or the content of a conversation. If it ended a run, it is the cause of the run's error:
///
/// ```
/// use switchboard_core::Error;
/// use switchboard_sessions::{EncryptionError, EncryptionErrorKind};
///
/// fn is_key_missing(error: &Error) -> bool {
///     let cause = error.cause().and_then(|cause| cause.downcast_ref::<EncryptionError>());
///     cause.is_some_and(|cause| cause.kind() == EncryptionErrorKind::MissingKey)
/// }
/// ```
pub struct EncryptionError(Box<Inner>);

struct Inner {
    kind: EncryptionErrorKind,
    message: String,
    source: Option<BoxError>,
}

/// The kind of an [`EncryptionError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EncryptionErrorKind {
    /// The text is no key.
    InvalidKey,
    /// The conversation or the run is encrypted or signed with a key that is not among the keys.
    MissingKey,
    /// The conversation or the run cannot be opened with the key of that name.
    WrongKey,
    /// The conversation was stored without encryption, or the run is not sealed.
    NotEncrypted,
    /// The conversation was changed by something that does not have the key: entries were changed,
    /// exchanged, moved, removed or copied from elsewhere, or the head was. Or the run was changed, or is of
    /// another place.
    Tampered,
    /// The conversation or the run was encrypted or signed by a later version.
    NewerVersion,
    /// Encrypted conversations cannot be searched.
    NoSearch,
    /// Others changed the conversation at each attempt to rotate its key.
    Busy,
    /// The system gives no random numbers, or a text is too long for the cipher.
    Cipher,
    /// The sealed run is longer than the limit. It was not opened.
    TooLarge,
    /// The run was opened, and cannot be read: it was stored by another version, for example. The source is a
    /// [`StateError`](switchboard_core::run::StateError).
    InvalidRun,
}

impl EncryptionError {
    fn new(kind: EncryptionErrorKind, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            source: None,
        }))
    }

    /// The kind of error.
    pub fn kind(&self) -> EncryptionErrorKind {
        self.0.kind
    }

    pub(super) fn invalid_key() -> Self {
        Self::new(
            EncryptionErrorKind::InvalidKey,
            "a key is 32 random bytes in base64 (44 characters), as `openssl rand -base64 32` prints \
             them, and this text is something else",
        )
    }

    pub(super) fn missing_key(conversation: &str, key: &str) -> Self {
        Self::new(
            EncryptionErrorKind::MissingKey,
            format!(
                "the conversation {conversation:?} is encrypted with the key {key:?}, which is not \
                 among the keys; add it with Keys::and_older({key:?}, ..). It can be removed again \
                 after EncryptedStore::rotate_all"
            ),
        )
    }

    pub(super) fn wrong_key(conversation: &str, key: &str) -> Self {
        Self::new(
            EncryptionErrorKind::WrongKey,
            format!(
                "the conversation {conversation:?} cannot be decrypted with the key {key:?}: it was \
                 encrypted with another key of that name, or its head was changed or copied from \
                 another conversation. Check that {key:?} is the same key as when the conversation \
                 was stored; otherwise restore the conversation from a copy"
            ),
        )
    }

    pub(super) fn not_encrypted(conversation: &str) -> Self {
        Self::new(
            EncryptionErrorKind::NotEncrypted,
            format!(
                "the conversation {conversation:?} was stored without encryption; to go on with it, \
                 set EncryptedStore::allow_plain, which encrypts what is added, or export it without \
                 encryption, delete it and import it with encryption"
            ),
        )
    }

    pub(super) fn tampered_entry(conversation: &str, position: u64, problem: &str) -> Self {
        Self::new(
            EncryptionErrorKind::Tampered,
            format!(
                "the entry at position {position} of the conversation {conversation:?} {problem}: the \
                 store was changed by something else than Switchboard. Restore the conversation \
                 from a copy, and find out who can write to the store"
            ),
        )
    }

    pub(super) fn tampered_head(conversation: &str, problem: &str) -> Self {
        Self::new(
            EncryptionErrorKind::Tampered,
            format!(
                "the head of the conversation {conversation:?} {problem}: the store was changed by \
                 something else than Switchboard. Restore the conversation from a copy, and find \
                 out who can write to the store"
            ),
        )
    }

    pub(super) fn newer_version(conversation: &str, version: u32, known: u32) -> Self {
        Self::new(
            EncryptionErrorKind::NewerVersion,
            format!(
                "the conversation {conversation:?} is encrypted in version {version}, and this \
                 program reads version {known}; use the version of Switchboard that stored it, or \
                 a later one"
            ),
        )
    }

    pub(super) fn no_search() -> Self {
        Self::new(
            EncryptionErrorKind::NoSearch,
            "the conversations cannot be searched, because their entries are encrypted; read the \
             ones in question",
        )
    }

    pub(super) fn busy(conversation: &str) -> Self {
        Self::new(
            EncryptionErrorKind::Busy,
            format!(
                "the key of the conversation {conversation:?} was not rotated, because others changed \
                 the conversation at each attempt; try again"
            ),
        )
    }

    pub(crate) fn not_sealed() -> Self {
        Self::new(
            EncryptionErrorKind::NotEncrypted,
            "the text is no sealed run; if it is a run that was stored as it is, and the place it was \
             stored in is trusted, read it with Run::from_json",
        )
    }

    pub(crate) fn sealed_run_too_large(length: usize, limit: usize) -> Self {
        Self::new(
            EncryptionErrorKind::TooLarge,
            format!(
                "the sealed run has {length} bytes, and the limit is {limit}; if it is one of yours, \
                 raise the limit with RunSeal::limits"
            ),
        )
    }

    pub(crate) fn newer_sealed_run(version: u32, known: u32) -> Self {
        Self::new(
            EncryptionErrorKind::NewerVersion,
            format!(
                "the run is sealed in version {version}, and this program reads version {known}; use \
                 the version of Switchboard that sealed it, or a later one"
            ),
        )
    }

    pub(crate) fn missing_run_key(key: &str) -> Self {
        Self::new(
            EncryptionErrorKind::MissingKey,
            format!(
                "the run is sealed with the key {:?}, which is not among the keys; add it with \
                 Keys::and_older",
                excerpt(key)
            ),
        )
    }

    pub(crate) fn wrong_run_key(key: &str) -> Self {
        Self::new(
            EncryptionErrorKind::WrongKey,
            format!(
                "the run cannot be opened with the key {key:?}: it was sealed with another key of that \
                 name, or the part of the text that tells the key was changed"
            ),
        )
    }

    pub(crate) fn tampered_run() -> Self {
        Self::new(
            EncryptionErrorKind::Tampered,
            "the sealed run was changed since it was sealed, or it was sealed for another place; it \
             must not be resumed",
        )
    }

    pub(crate) fn invalid_run(error: impl Into<BoxError>) -> Self {
        let error = error.into();
        let mut invalid = Self::new(
            EncryptionErrorKind::InvalidRun,
            format!("the sealed run was opened, and cannot be read: {error}"),
        );
        invalid.0.source = Some(error);
        invalid
    }

    pub(super) fn no_randomness(error: impl Into<BoxError>) -> Self {
        let mut no_randomness = Self::new(
            EncryptionErrorKind::Cipher,
            "the system gives no random numbers, so nothing can be encrypted; nothing was stored",
        );
        no_randomness.0.source = Some(error.into());
        no_randomness
    }

    pub(super) fn too_long() -> Self {
        Self::new(
            EncryptionErrorKind::Cipher,
            "an entry is too long to be encrypted; nothing was stored",
        )
    }
}

/// The start of a name that somebody else chose.
fn excerpt(name: &str) -> String {
    name.chars().take(100).collect()
}

impl fmt::Display for EncryptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.message)
    }
}

impl fmt::Debug for EncryptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EncryptionError({:?}: {self})", self.0.kind)
    }
}

impl std::error::Error for EncryptionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}
