//! The file of `--trace`: each span of a run as a line of JSON.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use switchboard_core::Span;

use crate::failure::Failure;

/// A file of spans.
#[derive(Debug)]
pub(crate) struct TraceFile {
    path: PathBuf,
    file: Mutex<Writing>,
}

#[derive(Debug)]
struct Writing {
    file: BufWriter<File>,
    /// What went wrong first; a run does not fail for it.
    error: Option<io::Error>,
}

impl TraceFile {
    /// A new file, in place of one that was there.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        let file = File::create(path).map_err(|error| Failure::unwritable(path, &error))?;
        let file = BufWriter::new(file);
        Ok(Self {
            path: path.to_owned(),
            file: Mutex::new(Writing { file, error: None }),
        })
    }

    /// Adds a span.
    pub(crate) fn write(&self, span: &Span) {
        self.with(|file| {
            serde_json::to_writer(&mut *file, span)?;
            file.write_all(b"\n")
        });
    }

    /// Sees to it that all is in the file.
    pub(crate) fn finish(&self) -> Result<(), Failure> {
        self.with(io::Write::flush);
        let mut writing = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        match writing.error.take() {
            Some(error) => Err(Failure::unwritable(&self.path, &error)),
            None => Ok(()),
        }
    }

    fn with(&self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) {
        // Nothing panics while the lock is held.
        let mut writing = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        if writing.error.is_none() {
            writing.error = write(&mut writing.file).err();
        }
    }
}
