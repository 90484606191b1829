//! The file of `--trace`: each span of a run as a line of JSON.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, BufWriter, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use serde_json::Value;
use switchboard_core::Span;

use crate::failure::Failure;

/// A first line longer than this is not looked at to its end, and not taken for a span.
const LONGEST_SPAN: u64 = 64 << 20;

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
    /// A new file, in place of an older one of spans. Anything else that is there stays: it was
    /// hardly meant, and cannot be had again.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        if holds_something_else(path) {
            return Err(Failure::usage(
                format!("{} is there already and is no trace", path.display()),
                "name another file with --trace, or delete this one",
            ));
        }
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

/// Whether a file has something in it that is not a span.
fn holds_something_else(path: &Path) -> bool {
    // What cannot be looked at cannot be written to either, which is told there; a device or a pipe
    // has nothing to lose.
    if !path.is_file() {
        return false;
    }
    let Ok(file) = File::open(path) else {
        return false;
    };
    let mut first = Vec::new();
    let read = BufReader::new(file.take(LONGEST_SPAN)).read_until(b'\n', &mut first);
    match read {
        Ok(0) | Err(_) => false,
        Ok(_) => match serde_json::from_slice::<Value>(&first) {
            Ok(line) => line.get("trace").is_none() || line.get("data").is_none(),
            Err(_) => true,
        },
    }
}
