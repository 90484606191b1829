//! Errors of sessions.

use std::fmt;
use std::path::{Path, PathBuf};

use switchboard_core::callback::BoxError;

/// An error in opening, reading or writing sessions.
///
/// The message names the file and the session and says what to do. It never quotes the content of a
/// conversation. If it ended a run, it is the cause of the run's error:
///
/// ```
/// use switchboard_core::Error;
/// use switchboard_sessions::{SessionError, SessionErrorKind};
///
/// fn is_disk_full(error: &Error) -> bool {
///     let cause = error.cause().and_then(|cause| cause.downcast_ref::<SessionError>());
///     cause.is_some_and(|cause| cause.kind() == SessionErrorKind::Full)
/// }
/// ```
pub struct SessionError(Box<Inner>);

struct Inner {
    kind: SessionErrorKind,
    message: String,
    path: PathBuf,
    session: Option<String>,
    position: Option<usize>,
    source: Option<BoxError>,
}

/// The kind of a [`SessionError`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SessionErrorKind {
    /// The path is invalid: its folder is missing, or it is a folder itself.
    Path,
    /// The file or its folder cannot be read or written by this user.
    Permission,
    /// The file does not hold sessions: it is not a database, or belongs to another program.
    ForeignFile,
    /// The file was created by a later version.
    NewerFile,
    /// The disk is full.
    Full,
    /// Others kept the file locked until the timeout.
    Busy,
    /// The file is damaged.
    Damaged,
    /// An item of a session cannot be read; see [`SessionError::position`].
    Item,
    /// The sessions were closed.
    Closed,
    /// SQLite or the system failed in another way.
    Storage,
}

impl SessionError {
    pub(crate) fn new(kind: SessionErrorKind, path: &Path, message: impl Into<String>) -> Self {
        Self(Box::new(Inner {
            kind,
            message: message.into(),
            path: path.to_owned(),
            session: None,
            position: None,
            source: None,
        }))
    }

    /// Converts an I/O error for the file at `path`.
    pub(crate) fn io(error: std::io::Error, path: &Path) -> Self {
        use std::io::ErrorKind;
        let kind = match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                SessionErrorKind::Permission
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => SessionErrorKind::Full,
            ErrorKind::NotFound
            | ErrorKind::NotADirectory
            | ErrorKind::IsADirectory
            | ErrorKind::InvalidInput
            | ErrorKind::InvalidFilename => SessionErrorKind::Path,
            _ => SessionErrorKind::Storage,
        };
        Self::new(kind, path, error.to_string()).caused_by(error)
    }

    /// Converts an SQLite error for the file at `path`.
    pub(crate) fn sqlite(error: sqlx::Error, path: &Path) -> Self {
        use sqlx::Error;
        let (kind, message) = match error {
            Error::Database(error) => {
                let message = error.message().to_owned();
                let kind = kind_from_code(result_code(&*error));
                return Self::new(kind, path, message).caused_by(error);
            }
            Error::Io(error) => return Self::io(error, path),
            Error::PoolTimedOut => (SessionErrorKind::Busy, "too many callers are waiting"),
            Error::PoolClosed => (SessionErrorKind::Closed, "the sessions were closed"),
            _ => (SessionErrorKind::Storage, "SQLite could not be used"),
        };
        Self::new(kind, path, message).caused_by(error)
    }

    pub(crate) fn in_session(mut self, name: &str) -> Self {
        self.0.session = Some(name.to_owned());
        self
    }

    pub(crate) fn at_position(mut self, position: i64) -> Self {
        self.0.position = usize::try_from(position).ok();
        self
    }

    pub(crate) fn caused_by(mut self, source: impl Into<BoxError>) -> Self {
        self.0.source = Some(source.into());
        self
    }

    /// The kind of the error.
    pub fn kind(&self) -> SessionErrorKind {
        self.0.kind
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// The name of the session, if the error concerns one.
    pub fn session(&self) -> Option<&str> {
        self.0.session.as_deref()
    }

    /// The position of the item that could not be read, counted from 0.
    pub fn position(&self) -> Option<usize> {
        self.0.position
    }

    /// The advice at the end of the message.
    fn advice(&self) -> Option<&'static str> {
        Some(match self.0.kind {
            SessionErrorKind::Permission => {
                "give this user the right to read and write the file and its folder"
            }
            SessionErrorKind::ForeignFile => "choose another path; the file was left as it is",
            SessionErrorKind::NewerFile => {
                "use the version of Switchboard that made it, or a later one; the file was left as it is"
            }
            SessionErrorKind::Full => "make room on the disk and try again; nothing was stored",
            SessionErrorKind::Busy => {
                "try again; if that does not help, look for a program that keeps the file locked"
            }
            SessionErrorKind::Damaged => {
                "restore the file from a copy, or save what is left with `sqlite3 FILE .recover`"
            }
            SessionErrorKind::Item => {
                "it is still in the file: repair it with `sqlite3`, or load only the items after it"
            }
            SessionErrorKind::Path | SessionErrorKind::Closed | SessionErrorKind::Storage => {
                return None;
            }
        })
    }
}

/// SQLite's primary result code.
pub(crate) fn result_code(error: &dyn sqlx::error::DatabaseError) -> u8 {
    let code = error.code().and_then(|code| code.parse::<u32>().ok());
    code.map_or(0, |code| code.to_le_bytes()[0])
}

fn kind_from_code(result_code: u8) -> SessionErrorKind {
    match result_code {
        // PERM, READONLY, CANTOPEN: that the file exists was checked before.
        3 | 8 | 14 => SessionErrorKind::Permission,
        // BUSY, LOCKED
        5 | 6 => SessionErrorKind::Busy,
        // CORRUPT
        11 => SessionErrorKind::Damaged,
        // FULL
        13 => SessionErrorKind::Full,
        // NOTADB
        26 => SessionErrorKind::ForeignFile,
        _ => SessionErrorKind::Storage,
    }
}

impl fmt::Display for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sessions in {:?}", self.0.path)?;
        if let Some(session) = &self.0.session {
            write!(f, ", session {session:?}")?;
        }
        if let Some(position) = self.0.position {
            write!(f, ", item {position}")?;
        }
        write!(f, ": {}", self.0.message)?;
        match self.advice() {
            Some(advice) => write!(f, "; {advice}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for SessionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SessionError({:?}: {self})", self.0.kind)
    }
}

impl std::error::Error for SessionError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        let source = self.0.source.as_deref()?;
        Some(source)
    }
}
