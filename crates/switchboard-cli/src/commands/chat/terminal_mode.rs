//! How the terminal was before a line was edited, for when the editing does not come to its end or is
//! interrupted.

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

#[cfg(unix)]
impl Before {
    /// Makes them what an editor of lines needs: keys come one by one, and nothing is done for them.
    pub(super) fn edit(&self) {
        use rustix::termios::{ControlModes, InputModes, LocalModes, OptionalActions};
        let Some(mut modes) = self.0.clone() else {
            return;
        };
        modes.input_modes -= InputModes::BRKINT
            | InputModes::ICRNL
            | InputModes::INPCK
            | InputModes::ISTRIP
            | InputModes::IXON;
        modes.control_modes |= ControlModes::CS8;
        modes.local_modes -=
            LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG;
        // Nothing can be done where the terminal is gone.
        let _ = rustix::termios::tcsetattr(std::io::stdin(), OptionalActions::Drain, &modes);
    }
}

/// Tells when the program goes on that was stopped, as by Ctrl-Z and `fg`.
#[cfg(unix)]
pub(super) struct Resumed(tokio::signal::unix::Signal);

#[cfg(unix)]
impl Resumed {
    /// Begins to listen.
    pub(super) fn listen() -> std::io::Result<Self> {
        let number = rustix::process::Signal::CONT.as_raw();
        let kind = tokio::signal::unix::SignalKind::from_raw(number);
        tokio::signal::unix::signal(kind).map(Self)
    }

    /// The next time.
    pub(super) async fn next(&mut self) {
        if self.0.recv().await.is_none() {
            std::future::pending::<()>().await;
        }
    }
}

/// Programs are not stopped here.
#[cfg(not(unix))]
pub(super) struct Resumed(());

#[cfg(not(unix))]
impl Resumed {
    /// Begins to listen.
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self(()))
    }

    /// The next time.
    pub(super) async fn next(&mut self) {
        std::future::pending().await
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

    /// Makes them what an editor of lines needs.
    pub(super) fn edit(&self) {}
}
