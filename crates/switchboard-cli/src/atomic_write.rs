//! Writes files completely or not at all, so that a full disk does not destroy existing files.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Writes files, replacing existing ones. If one cannot be written, none is replaced. All are written
/// under temporary names and then renamed one by one. A link stays one: the file that it leads to is replaced.
/// What is no plain file, as a device or a pipe, is written to and never replaced.
pub(crate) fn write(files: &[(PathBuf, &[u8])]) -> Result<(), Failure> {
    let is_special =
        |path: &Path| fs::metadata(path).is_ok_and(|found| !found.is_file() && !found.is_dir());
    for (path, bytes) in files.iter().filter(|(path, _)| is_special(path)) {
        write_special(path, bytes).map_err(|error| Failure::unwritable(path, &error))?;
    }
    let plain = files.iter().filter(|(path, _)| !is_special(path));
    let files: Vec<(PathBuf, &[u8])> = plain
        .map(|(path, bytes)| {
            let target = fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            (target, *bytes)
        })
        .collect();
    let temporary: Vec<PathBuf> = files.iter().map(|(path, _)| temporary_path(path)).collect();
    let written = files
        .iter()
        .zip(&temporary)
        .try_for_each(|((path, bytes), part)| {
            fs::write(part, bytes).map_err(|error| Failure::unwritable(path, &error))
        });
    let renamed = written.and_then(|()| {
        files
            .iter()
            .zip(&temporary)
            .try_for_each(|((path, _), part)| {
                fs::rename(part, path).map_err(|error| Failure::unwritable(path, &error))
            })
    });
    if renamed.is_err() {
        for part in &temporary {
            // It may not exist.
            let _ = fs::remove_file(part);
        }
    }
    renamed
}

/// Writes to a device or a pipe. A pipe must have a reader: waiting for one could not be interrupted.
#[cfg(unix)]
fn write_special(path: &Path, bytes: &[u8]) -> io::Result<()> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

    let nonblocking = OFlags::NONBLOCK;
    let flags = i32::try_from(nonblocking.bits()).unwrap_or_default();
    let mut options = fs::OpenOptions::new();
    let opened = options.write(true).custom_flags(flags).open(path);
    let mut file = opened.map_err(|error| match rustix::io::Errno::from_io_error(&error) {
        Some(rustix::io::Errno::NXIO) => {
            io::Error::new(io::ErrorKind::NotConnected, "nothing reads from this pipe")
        }
        _ => error,
    })?;
    // A reader that is slow is waited for.
    fcntl_setfl(&file, fcntl_getfl(&file)? - nonblocking)?;
    file.write_all(bytes)
}

#[cfg(not(unix))]
fn write_special(path: &Path, bytes: &[u8]) -> io::Result<()> {
    fs::write(path, bytes)
}

/// The temporary path of a file: in the same folder, so that it can be renamed.
fn temporary_path(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Returns `true` if the path exists, or might exist.
pub(crate) fn exists(path: &Path) -> bool {
    match path.symlink_metadata() {
        Ok(_) => true,
        Err(error) => !matches!(
            error.kind(),
            io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn if_one_file_cannot_be_written_none_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("first"), "as before").unwrap();
        let failed = write(&[(at("first"), b"new"), (at("nowhere/second"), b"new")]);
        assert!(failed.is_err());
        assert_eq!(fs::read(at("first")).unwrap(), b"as before");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
        write(&[(at("first"), b"new"), (at("second"), b"also")]).unwrap();
        assert_eq!(fs::read(at("first")).unwrap(), b"new");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[cfg(unix)]
    #[test]
    fn links_pipes_and_devices_are_not_replaced() {
        use std::os::unix::fs::FileTypeExt as _;

        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("file"), "as before").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        write(&[(at("link"), b"new")]).unwrap();
        assert!(at("link").is_symlink());
        assert_eq!(fs::read(at("file")).unwrap(), b"new");

        let pipe = at("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status();
        assert!(made.unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        // Until it reads, nothing is written.
        let is_written = (0..10_000).any(|_| match write(&[(pipe.clone(), b"new")]) {
            Ok(()) => true,
            Err(Failure::Message { message, .. }) if message.contains("nothing reads") => {
                std::thread::sleep(std::time::Duration::from_millis(1));
                false
            }
            Err(other) => panic!("{other:?}"),
        });
        assert!(is_written, "nothing has read from the pipe");
        assert_eq!(reader.join().unwrap(), b"new");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
    }
}
