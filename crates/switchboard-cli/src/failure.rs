//! The failures of commands, and the exit codes of the program.

use std::fmt;
use std::io;
use std::path::Path;

use switchboard_teamfile::Problems;

use crate::screen::style::{BAD, BOLD, Look};
use crate::screen::wrap::wrapped;
use crate::translate::translate;

/// The exit code. `--help` and `docs/program.md` list them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// All went well.
    Ok,
    /// The work failed: a check, a test, a run, a worker.
    Failed,
    /// The command line or a file cannot be used as it is.
    Usage,
    /// A guardrail stopped the run.
    Guardrail,
    /// The model could not be reached, or its provider refused.
    Model,
    /// Calls wait for a decision.
    Waiting,
    /// The run took longer than `--timeout`.
    TimedOut,
    /// Interrupted, as by Ctrl-C.
    Interrupted,
    /// Asked to end, as by `kill`.
    Terminated,
}

impl Exit {
    /// Returns this exit code, or else another one if this one is success.
    pub(crate) fn or(self, other: Self) -> Self {
        match self {
            Self::Ok => other,
            failed => failed,
        }
    }

    /// Returns the number.
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Failed => 1,
            Self::Usage => 2,
            Self::Guardrail => 3,
            Self::Model => 4,
            Self::Waiting => 5,
            // As of timeout(1).
            Self::TimedOut => 124,
            Self::Interrupted => 130,
            Self::Terminated => 143,
        }
    }
}

/// The failure of a command.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The reader of the output has closed it. The exit code is 0 and nothing is printed.
    BrokenPipe,
    /// Problems of a team file.
    Problems(Problems),
    /// Any other failure.
    Message {
        /// The exit code.
        exit: Exit,
        /// The problem.
        message: String,
        /// Advice.
        help: Option<String>,
    },
}

impl Failure {
    /// Creates a failure with [`Exit::Usage`].
    pub(crate) fn usage(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self::Message {
            exit: Exit::Usage,
            message: message.into(),
            help: Some(help.into()),
        }
    }

    /// Creates the failure for a file that cannot be read.
    pub(crate) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let path = path.display();
        let message = match error.kind() {
            io::ErrorKind::InvalidData => format!("{path} is not text in UTF-8"),
            _ => format!("cannot read {path}: {}", without_number(error)),
        };
        let help = match error.kind() {
            io::ErrorKind::InvalidData => "save it as UTF-8",
            io::ErrorKind::FileTooLarge => "split it, or name another file",
            io::ErrorKind::IsADirectory => "name a file in this folder",
            io::ErrorKind::NotFound => "check the name; the path counts from the folder you are in",
            io::ErrorKind::PermissionDenied => "let yourself read it, as with chmod",
            _ => "check that it is a file that can be read",
        };
        Self::usage(message, help)
    }

    /// Creates the failure for a file that cannot be written.
    pub(crate) fn unwritable(path: &Path, error: &io::Error) -> Self {
        let message = format!("cannot write {}: {}", path.display(), without_number(error));
        let help = match error.kind() {
            io::ErrorKind::NotFound => "make its folder first, or name another",
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                "name a place that you may write to"
            }
            io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
                "a file is where a folder should be: name another folder"
            }
            io::ErrorKind::IsADirectory => "a folder has this name: name a file",
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                "make room on the disk, or name another place"
            }
            io::ErrorKind::NotConnected => "start the program that reads it first, or name a file",
            _ => "check that the folder exists, is yours, and has room",
        };
        Self::usage(message, help)
    }

    /// The failure of writing what a command leaves behind, after the command has ended with this exit code. Only the
    /// code of success is replaced.
    pub(crate) fn after(mut self, ended: Exit) -> Self {
        if let Self::Message { exit, .. } = &mut self {
            *exit = match ended {
                Exit::Ok => Exit::Failed,
                ended => ended,
            };
        }
        self
    }

    /// The text for a person, in the language and the width of `look`.
    pub(crate) fn drawn(&self, look: Look) -> String {
        let text = match self {
            Self::BrokenPipe => String::new(),
            Self::Problems(problems) => look.problems(problems),
            Self::Message { message, help, .. } => {
                let error = look.paint(BAD, look.language.error());
                let message = translate(message, look.language);
                let message = wrapped(&message, look.width, 7, 7);
                let help = help.as_ref().map(|help| {
                    let label = look.paint(BOLD, look.language.help());
                    let help = translate(help, look.language);
                    let help = wrapped(&help, look.width, 8, 8);
                    format!("\n  {label} {help}")
                });
                format!("{error} {message}{}", help.unwrap_or_default())
            }
        };
        text.trim_end().to_owned()
    }

    /// The exit code.
    pub(crate) fn exit(&self) -> Exit {
        match self {
            Self::BrokenPipe => Exit::Ok,
            Self::Problems(_) => Exit::Usage,
            Self::Message { exit, .. } => *exit,
        }
    }
}

/// The error's text without the number of the operating system.
fn without_number(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// Converts an error of writing to the terminal or a pipe; for files use [`Failure::unwritable`].
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::BrokenPipe,
            _ => Self::Message {
                exit: Exit::Failed,
                message: format!(
                    "the output could not be written: {}",
                    without_number(&error)
                ),
                help: Some("check the disk or the program that reads it".to_owned()),
            },
        }
    }
}

impl From<Problems> for Failure {
    fn from(problems: Problems) -> Self {
        Self::Problems(problems)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BrokenPipe => Ok(()),
            Self::Problems(problems) => problems.fmt(f),
            Self::Message { message, help, .. } => {
                write!(f, "error: {message}")?;
                match help {
                    Some(help) => write!(f, "\n  help: {help}"),
                    None => Ok(()),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_pipe_is_not_an_error() {
        let failure = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert_eq!(
            (failure.exit(), failure.to_string()),
            (Exit::Ok, String::new())
        );
    }

    #[test]
    fn a_missing_file_is_named_with_advice() {
        let error = io::Error::from_raw_os_error(2);
        let failure = Failure::unreadable(Path::new("team.toml"), &error);
        assert_eq!(failure.exit(), Exit::Usage);
        assert_eq!(
            failure.to_string(),
            "error: cannot read team.toml: No such file or directory\n  \
             help: check the name; the path counts from the folder you are in"
        );
    }
}
