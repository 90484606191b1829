//! The folder of the user's sessions and line history.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::failure::Failure;

/// Returns the folder, and creates it if it does not exist. Only the user can read it.
pub(crate) fn open() -> Result<PathBuf, Failure> {
    let folder = find()?;
    create(&folder).map_err(|error| Failure::unwritable(&folder, &error))?;
    Ok(folder)
}

/// Returns the folder, which may not exist.
pub(crate) fn find() -> Result<PathBuf, Failure> {
    path(|name| std::env::var(name).ok()).ok_or_else(|| {
        Failure::usage(
            "there is no folder to keep things in: neither SWITCHBOARD_DATA nor HOME is set",
            "set SWITCHBOARD_DATA to a folder",
        )
    })
}

/// The path that the environment names.
fn path(var: impl Fn(&str) -> Option<String>) -> Option<PathBuf> {
    let var = |name: &str| {
        var(name)
            .filter(|value| !value.is_empty())
            .map(PathBuf::from)
    };
    if let Some(folder) = var("SWITCHBOARD_DATA") {
        return Some(folder);
    }
    let parent = if cfg!(windows) {
        var("APPDATA")?
    } else if cfg!(target_os = "macos") {
        var("HOME")?.join("Library/Application Support")
    } else {
        // The XDG specification ignores relative paths.
        match var("XDG_DATA_HOME").filter(|folder| folder.is_absolute()) {
            Some(data) => data,
            None => var("HOME")?.join(".local/share"),
        }
    };
    Some(parent.join("switchboard"))
}

#[cfg(unix)]
fn create(folder: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt as _;
    if folder.is_dir() {
        return Ok(());
    }
    if let Some(parent) = folder.parent() {
        fs::create_dir_all(parent)?;
    }
    fs::DirBuilder::new().mode(0o700).create(folder)
}

#[cfg(not(unix))]
fn create(folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)
}

/// Creates a file that only the user can read, or makes an existing one so.
pub(crate) fn make_private(file: &Path) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
        let opened = options.mode(0o600).open(file)?;
        opened.set_permissions(fs::Permissions::from_mode(0o600))
    }
    #[cfg(not(unix))]
    {
        options.open(file).map(drop)
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn variables_set_the_folder() {
        let path = |vars: &[(&str, &str)]| {
            let vars = vars.to_vec();
            path(move |name| {
                let found = vars.iter().find(|(key, _)| *key == name);
                found.map(|(_, value)| (*value).to_owned())
            })
        };
        let home = ("HOME", "/home/ann");
        assert_eq!(path(&[]), None);
        assert_eq!(
            path(&[home]),
            Some("/home/ann/.local/share/switchboard".into())
        );
        assert_eq!(
            path(&[home, ("XDG_DATA_HOME", "/data")]),
            Some("/data/switchboard".into())
        );
        assert_eq!(
            path(&[home, ("XDG_DATA_HOME", "data")]),
            Some("/home/ann/.local/share/switchboard".into())
        );
        assert_eq!(
            path(&[home, ("SWITCHBOARD_DATA", "mine")]),
            Some("mine".into())
        );
    }
}
