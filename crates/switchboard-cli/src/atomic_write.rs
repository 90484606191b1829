//! Files that are written wholly or not at all, so that a full disk costs nobody what was there.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Writes files, in place of those that are there; none of them where one cannot be written. They are put
/// in their places one by one, once all are written.
pub(crate) fn write(files: &[(PathBuf, &[u8])]) -> Result<(), Failure> {
    let parts: Vec<PathBuf> = files.iter().map(|(path, _)| part_of(path)).collect();
    let written = files
        .iter()
        .zip(&parts)
        .try_for_each(|((path, bytes), part)| {
            fs::write(part, bytes).map_err(|error| Failure::unwritable(path, &error))
        });
    let placed = written.and_then(|()| {
        files.iter().zip(&parts).try_for_each(|((path, _), part)| {
            fs::rename(part, path).map_err(|error| Failure::unwritable(path, &error))
        })
    });
    if placed.is_err() {
        for part in &parts {
            // Those that were never made or are in their place are not there.
            let _ = fs::remove_file(part);
        }
    }
    placed
}

/// Where a file grows until it is whole: beside its place, as only there it can be moved from.
fn part_of(path: &Path) -> PathBuf {
    let mut name = path.file_name().map(OsString::from).unwrap_or_default();
    name.push(format!(".{}.part", std::process::id()));
    path.with_file_name(name)
}

/// Whether something is at this place, also where it cannot be looked at.
pub(crate) fn is_there(path: &Path) -> bool {
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
    fn where_one_file_cannot_be_written_none_is() {
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
}
