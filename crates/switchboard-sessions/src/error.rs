//! Errors of stores.

use std::fmt;
use std::path::Path;

use switchboard_core::callback::BoxError;

/// An error in opening, reading or writing a store of conversations.
///
/// The message names the store and the conversation and says what to do. It never quotes the content of
/// a conversation, nor the password of an address. If it ended a run, it is the cause of the run's error:
///
/// ```
/// use switchboard_core::Error;
/// use switchboard_sessions::{StoreError, StoreErrorKind};
///
/// fn is_disk_full(error: &Error) -> bool {
///     let cause = error.cause().and_then(|cause| cause.downcast_ref::<StoreError>());
///     cause.is_some_and(|cause| cause.kind() == StoreErrorKind::Full)
/// }
/// ```
pub struct StoreError(Box<Inner>);

struct Inner {
    kind: StoreErrorKind,
    message: String,
    place: Place,
    conversation: Option<String>,
    position: Option<u64>,
    source: Option<BoxError>,
}

/// The kind of a [`StoreError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum StoreErrorKind {
    /// The path or the address is invalid: its folder is missing, it is a folder itself, or its scheme
    /// is unknown.
    Address,
    /// The crate was built without the feature that the address needs.
    Feature,
    /// The server does not answer.
    Unreachable,
    /// The connection was lost during a commit, and it is not known if the commit was stored.
    UnknownOutcome,
    /// The store cannot hold a conversation of that name.
    Name,
    /// This user cannot read or write the store.
    Permission,
    /// The file or database does not hold conversations: it belongs to another program.
    Foreign,
    /// The file or database was created by a later version.
    Newer,
    /// The disk is full.
    Full,
    /// Others kept the store locked until the timeout.
    Busy,
    /// The stored data is damaged.
    Damaged,
    /// An entry of a conversation cannot be read; see [`StoreError::position`].
    Entry,
    /// There is a conversation of that name.
    Exists,
    /// The store was closed.
    Closed,
    /// The store or the system failed in another way.
    Storage,
}

/// The store that an error is about.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// The path of a file, as text.
    File(String),
    /// The address of a server, without a password.
    Server(String),
}

impl From<&Path> for Place {
    fn from(path: &Path) -> Self {
        Self::File(path.to_string_lossy().into_owned())
    }
}

impl StoreError {
    pub(crate) fn new(
        kind: StoreErrorKind,
        place: impl Into<Place>,
        message: impl Into<String>,
    ) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            place: place.into(),
            conversation: None,
            position: None,
            source: None,
        }))
    }

    /// Converts an I/O error of the file at `path`.
    #[cfg(feature = "sqlite")]
    pub(crate) fn io(error: std::io::Error, path: &Path) -> Self {
        use std::io::ErrorKind;
        let kind = match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                StoreErrorKind::Permission
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => StoreErrorKind::Full,
            ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename => StoreErrorKind::Address,
            _ => StoreErrorKind::Storage,
        };
        Self::new(kind, path, error.to_string()).caused_by(error)
    }

    pub(crate) fn in_conversation(mut self, name: &str) -> Self {
        self.0.conversation = Some(name.to_owned());
        self
    }

    pub(crate) fn at_position(mut self, position: u64) -> Self {
        self.0.position = Some(position);
        self
    }

    pub(crate) fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> StoreErrorKind {
        self.0.kind
    }

    /// The path of the file, or the address of the server without a password.
    pub fn place(&self) -> &str {
        match &self.0.place {
            Place::File(path) => path,
            Place::Server(address) => address,
        }
    }

    /// The name of the conversation, if the error concerns one.
    pub fn conversation(&self) -> Option<&str> {
        self.0.conversation.as_deref()
    }

    /// The position of the entry that could not be read.
    pub fn position(&self) -> Option<u64> {
        self.0.position
    }

    /// The advice at the end of the message.
    fn advice(&self) -> Option<&'static str> {
        use StoreErrorKind as Kind;
        let is_file = matches!(self.0.place, Place::File(_));
        Some(match self.0.kind {
            Kind::Unreachable => "check the address and that the server runs, and try again",
            Kind::UnknownOutcome => {
                "load the conversation to see if it was stored, and try again if it was not"
            }
            Kind::Permission if is_file => {
                "give this user the right to read and write the file and its folder"
            }
            Kind::Permission => "check the user, the password and the user's rights",
            Kind::Foreign if is_file => "choose another path; the file was left as it is",
            Kind::Foreign => "choose another database; this one was left as it is",
            Kind::Newer if is_file => {
                "use the version of Switchboard that made it, or a later one; the file was left as it is"
            }
            Kind::Newer => {
                "use the version of Switchboard that made it, or a later one; nothing was changed"
            }
            Kind::Full if is_file => "make room on the disk and try again; nothing was stored",
            Kind::Full => "make room on the server and try again; nothing was stored",
            Kind::Busy if is_file => {
                "try again; if that does not help, look for a program that keeps the file locked"
            }
            Kind::Busy => {
                "try again; if that does not help, look for a client that keeps it locked"
            }
            Kind::Damaged if is_file => {
                "restore the file from a copy, or save what is left with `sqlite3 FILE .recover`"
            }
            Kind::Damaged => "restore the database from a copy",
            Kind::Entry if is_file => {
                "it is still in the file: repair it with `sqlite3`, or load only the entries after it"
            }
            Kind::Entry => "it is still stored: repair it, or load only the entries after it",
            Kind::Exists => "choose another name, or delete it first",
            Kind::Address | Kind::Feature | Kind::Name | Kind::Closed | Kind::Storage => {
                return None;
            }
        })
    }
}

impl fmt::Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.place {
            Place::File(path) => write!(f, "conversations in {path:?}")?,
            Place::Server(address) => write!(f, "conversations at {address}")?,
        }
        if let Some(conversation) = &self.0.conversation {
            write!(f, ", conversation {conversation:?}")?;
        }
        if let Some(position) = self.0.position {
            write!(f, ", entry {position}")?;
        }
        write!(f, ": {}", self.0.message)?;
        match self.advice() {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StoreError({:?}: {self})", self.0.kind)
    }
}

impl std::error::Error for StoreError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}
