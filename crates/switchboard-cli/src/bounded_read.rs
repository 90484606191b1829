//! Reads files, pipes and lines up to a size, so that one without an end does not fill the memory.

use std::fs::{self, File};
use std::io::{self, BufRead, Read};
use std::path::Path;

/// The largest number of bytes of a text.
const MAX_TEXT: u64 = 1 << 30;
/// The largest number of bytes of a line.
const MAX_LINE: u64 = 64 << 20;

/// Reads a file as text.
pub(crate) fn file(path: &Path) -> io::Result<String> {
    text(File::open(path)?)
}

/// Returns `true` for a file of `/proc` or `/sys`. They look like plain files of no size, and some have no end or make
/// their reader wait.
pub(crate) fn is_of_system(path: &Path) -> bool {
    let is_plain = fs::metadata(path).is_ok_and(|found| found.is_file());
    let path = fs::canonicalize(path);
    let folders = ["/proc", "/sys"];
    is_plain && path.is_ok_and(|path| folders.iter().any(|folder| path.starts_with(folder)))
}

/// Reads everything as text.
pub(crate) fn text(source: impl Read) -> io::Result<String> {
    let mut bytes = Vec::new();
    if source.take(MAX_TEXT + 1).read_to_end(&mut bytes)? as u64 > MAX_TEXT {
        return Err(too_large("it is larger than 1 GiB"));
    }
    utf8(bytes)
}

/// Reads bytes to the end of a line. Returns their number, which is 0 at the end.
pub(crate) fn line_bytes(mut source: impl BufRead, bytes: &mut Vec<u8>) -> io::Result<usize> {
    let read = source
        .by_ref()
        .take(MAX_LINE + 1)
        .read_until(b'\n', bytes)?;
    if read as u64 > MAX_LINE {
        return Err(too_large("a line is longer than 64 MiB"));
    }
    Ok(read)
}

/// Reads a line as text, without its end; `None` at the end.
pub(crate) fn line(source: impl BufRead) -> io::Result<Option<String>> {
    let mut bytes = Vec::new();
    if line_bytes(source, &mut bytes)? == 0 {
        return Ok(None);
    }
    if bytes.ends_with(b"\n") {
        bytes.pop();
        if bytes.ends_with(b"\r") {
            bytes.pop();
        }
    }
    utf8(bytes).map(Some)
}

fn utf8(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

fn too_large(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}
