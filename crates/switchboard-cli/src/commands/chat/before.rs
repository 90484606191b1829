//! How the terminal was before a line was edited, for when the editing does not come to its end.

/// The modes of a terminal.
#[cfg(unix)]
pub(super) struct Before(Option<rustix::termios::Termios>);

#[cfg(unix)]
impl Before {
    /// As they are now.
    pub(super) fn now() -> Self {
        Self(rustix::termios::tcgetattr(std::io::stdin()).ok())
    }

    /// Makes them what they were, and leaves the line that was typed.
    pub(super) fn restore(&self) {
        use std::io::Write as _;
        let Some(modes) = &self.0 else { return };
        // Nothing can be done where the terminal is gone. The sequence ends bracketed paste.
        let _ = rustix::termios::tcsetattr(
            std::io::stdin(),
            rustix::termios::OptionalActions::Now,
            modes,
        );
        let mut out = std::io::stdout();
        let _ = out.write_all(b"\x1b[?2004l\r\n").and_then(|()| out.flush());
    }
}

/// The modes of a terminal; consoles get theirs back when the program ends.
#[cfg(not(unix))]
pub(super) struct Before(());

#[cfg(not(unix))]
impl Before {
    /// As they are now.
    pub(super) fn now() -> Self {
        Self(())
    }

    /// Makes them what they were.
    pub(super) fn restore(&self) {}
}
