//! Errors, with the screen at that time.

use std::fmt;

/// An error, with the contents of the screen at that time if there was one.
///
/// `Debug` prints the same as `Display`, so that a test that unwraps shows the screen.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    message: String,
    screen: Option<String>,
}

impl Error {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            screen: None,
        }
    }

    pub(crate) fn with_screen(message: impl Into<String>, screen: String) -> Self {
        Self {
            message: message.into(),
            screen: Some(screen),
        }
    }

    /// The contents of the screen, as from [`Terminal::screen`](crate::Terminal::screen).
    #[must_use]
    pub fn screen(&self) -> Option<&str> {
        self.screen.as_deref()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match self.screen.as_deref() {
            None => Ok(()),
            Some("") => f.write_str("; the screen is empty"),
            Some(screen) => {
                f.write_str("; the screen shows:")?;
                screen.lines().try_for_each(|line| write!(f, "\n| {line}"))
            }
        }
    }
}

impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}
