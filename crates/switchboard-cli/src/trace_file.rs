//! The file of `--trace`: each span of a run as a line of JSON.

use std::fs::File;
use std::io::{
    self, BufRead as _, BufReader, BufWriter, Read as _, Seek as _, SeekFrom, Write as _,
};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::Value;
use switchboard_core::trace::{Span, Tracer};

use crate::failure::{Exit, Failure};

/// The number of bytes of an existing file that are read to see if it holds spans.
const MAX_FIRST_LINE: u64 = 64 << 20;

/// A file of spans; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct TraceFile {
    path: PathBuf,
    writer: Arc<Mutex<SpanWriter>>,
}

#[derive(Debug)]
struct SpanWriter {
    file: BufWriter<File>,
    /// The first error. It does not fail the run.
    error: Option<io::Error>,
}

impl TraceFile {
    /// Opens the file, to append to an older trace. A file of anything else is not touched.
    pub(crate) fn create(path: &Path) -> Result<Self, Failure> {
        if exists_and_is_no_trace(path) {
            return Err(Failure::usage(
                format!("{} is there already and is no trace", path.display()),
                "name another file with --trace, or delete this one",
            ));
        }
        let file = File::options().append(true).create(true).open(path);
        let mut file = file.map_err(|error| Failure::unwritable(path, &error))?;
        if ends_within_line(path) {
            // The program that wrote it was killed.
            file.write_all(b"\n")
                .map_err(|error| Failure::unwritable(path, &error))?;
        }
        let file = BufWriter::new(file);
        Ok(Self {
            path: path.to_owned(),
            writer: Arc::new(Mutex::new(SpanWriter { file, error: None })),
        })
    }

    /// Flushes the file after a command with this exit code.
    fn flush(&self, exit: Exit) -> Result<(), Failure> {
        let mut writer = self.lock();
        let flushed = writer.file.flush();
        match writer.error.take().or(flushed.err()) {
            Some(error) => Err(Failure::unwritable(&self.path, &error).after(exit)),
            None => Ok(()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, SpanWriter> {
        // Nothing panics while the lock is held.
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tracer for TraceFile {
    fn start(&self, _span: &Span) {}

    fn end(&self, span: Span) {
        let mut writer = self.lock();
        if writer.error.is_none() {
            writer.error = writer.write(&span).err();
        }
    }
}

impl SpanWriter {
    fn write(&mut self, span: &Span) -> io::Result<()> {
        serde_json::to_writer(&mut self.file, span)?;
        self.file.write_all(b"\n")
    }
}

/// Flushes the trace of a command, and returns the command's result. An error of writing the trace fails a command
/// that went well.
pub(crate) fn finish(
    trace: Option<TraceFile>,
    result: Result<Exit, Failure>,
) -> Result<Exit, Failure> {
    let Some(trace) = trace else {
        return result;
    };
    let exit = result.as_ref().map_or_else(Failure::exit, |exit| *exit);
    let flushed = trace.flush(exit);
    result.and_then(|exit| flushed.map(|()| exit))
}

/// Returns `true` if the last line of the file has no end.
fn ends_within_line(path: &Path) -> bool {
    let mut last = [0];
    let read = File::open(path).and_then(|mut file| {
        file.seek(SeekFrom::End(-1))?;
        file.read_exact(&mut last)
    });
    // An empty file, or a device, has no last byte.
    path.is_file() && read.is_ok() && last != *b"\n"
}

/// Returns `true` if the first line of the file is not a span.
fn exists_and_is_no_trace(path: &Path) -> bool {
    // A device or a pipe has no content to lose.
    if !path.is_file() {
        return false;
    }
    // A file that cannot be read fails when it is created.
    let Ok(file) = File::open(path) else {
        return false;
    };
    let mut first = Vec::new();
    match BufReader::new(file.take(MAX_FIRST_LINE)).read_until(b'\n', &mut first) {
        Ok(0) | Err(_) => false,
        Ok(_) => match serde_json::from_slice::<Value>(&first) {
            Ok(line) => line.get("trace").is_none() || line.get("data").is_none(),
            Err(_) => true,
        },
    }
}
