//! Opens and creates the file.

use std::fs::{self, OpenOptions};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, ffi};

use super::schema::{FileHeader, check_readable, ensure_tables};
use super::statements::primary_code;
use super::{Durability, SqliteOptions};
use crate::error::{StoreError, StoreErrorKind};
use crate::open::Access;

/// The file, and the settings of connections to it.
#[derive(Debug, Clone)]
pub(super) struct Opener {
    /// The path as it was given, for messages.
    pub(super) path: Arc<Path>,
    /// The absolute path. SQLite would read one that begins with `file:` as a URI.
    file: PathBuf,
    timeout: Duration,
    durability: Durability,
    access: Access,
    mode: Mode,
}

/// The way in which SQLite opens the file.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Mode {
    ReadWrite,
    /// With the write-ahead log of another process, which has the file open.
    ReadOnly,
    /// Without locks and a write-ahead log: nothing can change the file.
    Immutable,
}

impl Opener {
    pub(super) fn new(path: &Path, options: &SqliteOptions) -> Result<Self, StoreError> {
        Ok(Self {
            path: path.into(),
            file: absolute(path)?,
            timeout: options.busy_timeout,
            durability: options.durability,
            access: options.access,
            mode: Mode::ReadWrite,
        })
    }

    /// Opens the file for writing, and creates it if there is none and it may be created. A file that is to be read
    /// and cannot be written is opened for reading.
    pub(super) fn open(&mut self) -> Result<Connection, StoreError> {
        let state = match self.access {
            Access::Create => find_or_create(&self.path, &self.file)?,
            Access::Existing | Access::Read => find(&self.path, &self.file)?,
        };
        if state == FileState::NonEmpty {
            check_existing(&self.path, &self.file)?;
        }
        match self.open_for_writing() {
            Err(error)
                if self.access == Access::Read && error.kind() == StoreErrorKind::Permission =>
            {
                self.open_for_reading()
            }
            opened => opened,
        }
    }

    fn open_for_writing(&self) -> Result<Connection, StoreError> {
        let connect = self.connect();
        let mut connection = connect.map_err(|error| StoreError::sqlite(error, &self.path))?;
        ensure_tables(&self.path, &mut connection)?;
        self.ensure_wal(&connection)?;
        Ok(connection)
    }

    /// Opens a file that cannot be written. Without a write-ahead log, everything is in the file itself.
    fn open_for_reading(&mut self) -> Result<Connection, StoreError> {
        // SQLite keeps the log beside the file that a link leads to.
        let target = fs::canonicalize(&self.file);
        let target = target.map_err(|error| StoreError::io(error, &self.path))?;
        let log = with_suffix(&target, "-wal");
        let has_log = match fs::metadata(&log) {
            Ok(log) => log.len() > 0,
            // A log that may not be looked for may be there.
            Err(error) => error.kind() != ErrorKind::NotFound,
        };
        self.mode = if has_log {
            Mode::ReadOnly
        } else {
            Mode::Immutable
        };
        let connected = self.connect().and_then(|connection| {
            let header = FileHeader::read(&connection)?;
            Ok((connection, header))
        });
        let (connection, header) = connected.map_err(|error| {
            let error = StoreError::sqlite(error, &self.path);
            if has_log && error.kind() == StoreErrorKind::Permission {
                let message = format!(
                    "its latest changes are in {}, which can be read only where files can be written; copy \
                     both files to a folder of your own",
                    log.display()
                );
                return StoreError::new(StoreErrorKind::Storage, &*self.path, message);
            }
            error
        })?;
        header.check(&self.path)?;
        check_readable(&self.path, &connection, header)?;
        Ok(connection)
    }

    /// Connects to a file that was opened before.
    pub(super) fn connect(&self) -> Result<Connection, rusqlite::Error> {
        // Each connection stays in one thread.
        let flags = OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let read_only = flags | OpenFlags::SQLITE_OPEN_READ_ONLY;
        let connection = match self.mode {
            Mode::ReadWrite => {
                let flags = flags | OpenFlags::SQLITE_OPEN_READ_WRITE;
                Connection::open_with_flags(&self.file, flags)?
            }
            Mode::ReadOnly => Connection::open_with_flags(&self.file, read_only)?,
            Mode::Immutable => {
                let flags = read_only | OpenFlags::SQLITE_OPEN_URI;
                Connection::open_with_flags(immutable_uri(&self.file), flags)?
            }
        };
        connection.busy_timeout(self.timeout)?;
        let synchronous = match self.durability {
            Durability::Full => "FULL",
            Durability::Normal => "NORMAL",
        };
        connection.pragma_update(None, "synchronous", synchronous)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        // Deleted conversations are overwritten.
        connection.pragma_update(None, "secure_delete", true)?;
        // The file may be from an untrusted source.
        connection.pragma_update(None, "trusted_schema", false)?;
        // Statements keep their plans. Otherwise those of lists are planned again whenever a parameter has another value.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.set_prepared_statement_cache_capacity(32);
        Ok(connection)
    }

    /// Connects for reading only.
    pub(super) fn connect_reader(&self) -> Result<Connection, rusqlite::Error> {
        let connection = self.connect()?;
        connection.pragma_update(None, "query_only", true)?;
        Ok(connection)
    }

    /// Enables the write-ahead log, which lets readers and the writer work concurrently. The setting is
    /// stored in the file.
    fn ensure_wal(&self, connection: &Connection) -> Result<(), StoreError> {
        let deadline = Instant::now() + self.timeout;
        loop {
            let mode: Result<String, _> =
                connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0));
            match mode.map_err(|error| StoreError::sqlite(error, &self.path)) {
                Ok(mode) if mode == "wal" => return Ok(()),
                Ok(_) => {
                    let message =
                        "this file system has no shared memory for SQLite; use a local disk";
                    let kind = StoreErrorKind::Storage;
                    return Err(StoreError::new(kind, &*self.path, message));
                }
                // SQLite's busy timeout does not apply here: another process may be doing the same.
                Err(error) if error.kind() == StoreErrorKind::Busy && Instant::now() < deadline => {
                    thread::sleep(Duration::from_millis(10));
                }
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns the absolute path.
pub(crate) fn absolute(path: &Path) -> Result<PathBuf, StoreError> {
    let refused = |why| Err(StoreError::new(StoreErrorKind::Address, path, why));
    if path.as_os_str().is_empty() {
        return refused("the path is empty; name a file, as in sqlite:conversations.db");
    }
    if path == Path::new(":memory:") {
        return refused("this is not a file; for conversations in memory use `MemoryStore`");
    }
    let file = std::path::absolute(path).map_err(|error| StoreError::io(error, path))?;
    match file.to_str() {
        Some(text) if !text.contains('\0') => Ok(file),
        _ => refused("the path must be UTF-8 without NUL for SQLite; choose another"),
    }
}

#[derive(PartialEq)]
pub(crate) enum FileState {
    Empty,
    NonEmpty,
}

/// Held while a file is looked for or created. Closing a file that this process has open through SQLite would drop
/// SQLite's locks on it (POSIX locks belong to the process). So a new file must be closed before anything else in this
/// process opens it, and an existing file is not opened here at all.
static CREATING: Mutex<()> = Mutex::new(());

/// Looks for a file that must exist and have something in it.
fn find(path: &Path, file: &Path) -> Result<FileState, StoreError> {
    let _creating = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    let refused = |why| Err(StoreError::new(StoreErrorKind::Address, path, why));
    match state(path, file)? {
        None => refused("there is no such file; check the path"),
        Some(FileState::Empty) => refused("this file is empty, and so no store; check the path"),
        Some(FileState::NonEmpty) => Ok(FileState::NonEmpty),
    }
}

/// Looks for a file. Returns `None` if there is none.
fn state(path: &Path, file: &Path) -> Result<Option<FileState>, StoreError> {
    let refused = |why| Err(StoreError::new(StoreErrorKind::Address, path, why));
    match fs::metadata(file) {
        Ok(metadata) if metadata.is_dir() => refused("this is a folder; name a file in it"),
        Ok(metadata) if !metadata.is_file() => {
            refused("this is not a regular file; choose another path")
        }
        Ok(metadata) if metadata.len() > 0 => Ok(Some(FileState::NonEmpty)),
        Ok(_) => Ok(Some(FileState::Empty)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(error, path)),
    }
}

/// The path of a file beside another one.
fn with_suffix(file: &Path, suffix: &str) -> PathBuf {
    let mut path = file.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// Looks for the file, and creates an empty one if there is none.
pub(crate) fn find_or_create(path: &Path, file: &Path) -> Result<FileState, StoreError> {
    let _creating = CREATING.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(state) = state(path, file)? {
        return Ok(state);
    }
    if !file.parent().is_some_and(Path::is_dir) {
        let message = "its folder does not exist; create it first";
        return Err(StoreError::new(StoreErrorKind::Address, path, message));
    }
    match create_for_owner().open(file) {
        Ok(_) => Ok(FileState::Empty),
        // Another process was faster.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(FileState::Empty),
        Err(error) => Err(StoreError::io(error, path)),
    }
}

/// Options to create a file that only its owner can read. SQLite gives the files beside it the same
/// permissions.
fn create_for_owner() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// Checks the header of an existing file without changing anything: it takes no lock, replays no
/// journal, and creates no file beside it.
fn check_existing(path: &Path, file: &Path) -> Result<(), StoreError> {
    let failed = |error| StoreError::sqlite(error, path);
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(immutable_uri(file), flags).map_err(failed)?;
    let header = FileHeader::read(&connection);
    connection.close().map_err(|(_, error)| failed(error))?;
    match header {
        Ok(header) => header.check(path),
        // Without a lock, a file that is being written looks corrupt. Opening it finds out.
        Err(error) if primary_code(&error) == ffi::SQLITE_CORRUPT => Ok(()),
        Err(error) => Err(failed(error)),
    }
}

fn immutable_uri(file: &Path) -> String {
    const KEPT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'/');
    let file = file.to_string_lossy();
    // On Windows, the path of a URI is `/C:/folder/file`.
    let file = if cfg!(windows) {
        format!("/{}", file.replace('\\', "/"))
    } else {
        file.into_owned()
    };
    format!("file://{}?immutable=1", utf8_percent_encode(&file, KEPT))
}
