//! Programs that speak and listen, as child processes.

use std::ffi::OsStr;
use std::io;
use std::process::Stdio;

use switchboard_core::callback::BoxError;
use tokio::process::Command;

/// The variables that a program gets. Others, such as keys, are none of its business.
const VARIABLES: [&str; 12] = [
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "TEMP",
    "TMP",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "PYTHONPATH",
    "SystemRoot",
    "VIRTUAL_ENV",
];

/// A command whose process is ended when its handle is dropped.
pub(super) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    command.env_clear();
    for name in VARIABLES {
        if let Some(value) = std::env::var_os(name) {
            command.env(name, value);
        }
    }
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// The error for a program that cannot be started.
pub(super) fn start_error(name: &str, advice: &str, error: &io::Error) -> BoxError {
    if error.kind() == io::ErrorKind::NotFound {
        format!("{name} is not installed: {advice}").into()
    } else {
        format!("{name} cannot be started: {error}; {advice}").into()
    }
}

/// The last line of a program's errors, shortened.
pub(super) fn last_line(stderr: &[u8]) -> String {
    let text = String::from_utf8_lossy(stderr);
    let line = text.lines().rev().find(|line| !line.trim().is_empty());
    line.unwrap_or_default().trim().chars().take(300).collect()
}
