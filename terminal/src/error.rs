//! What went wrong, and what the screen showed then.

use std::fmt;

/// What went wrong, with the screen at that time where there was one.
///
/// `Debug` writes the same as `Display`: a test that unwraps shows the screen as it was.
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

    /// What the screen showed, as from [`Terminal::screen`](crate::Terminal::screen).
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
