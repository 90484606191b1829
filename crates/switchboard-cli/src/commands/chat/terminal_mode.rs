//! The mode of the terminal around line editing.

#[cfg(not(unix))]
pub(super) use other::{ResumeSignal, SavedMode};
#[cfg(unix)]
pub(super) use unix::{ResumeSignal, SavedMode};

#[cfg(unix)]
mod unix {
    use std::io::{self, Write as _, stdin, stdout};

    use rustix::termios::{
        ControlModes, InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr,
    };

    /// The mode that the terminal had before lines were edited.
    pub(in super::super) struct SavedMode(Option<Termios>);

    impl SavedMode {
        /// Saves the current mode.
        pub(in super::super) fn save() -> Self {
            Self(tcgetattr(stdin()).ok())
        }

        /// Restores the mode, and moves to a new line.
        pub(in super::super) fn restore(&self) {
            let Some(mode) = &self.0 else { return };
            // These fail only if the terminal is gone. The sequence ends bracketed paste.
            let _ = tcsetattr(stdin(), OptionalActions::Now, mode);
            let _ = stdout().write_all(b"\x1b[?2004l\r\n");
            let _ = stdout().flush();
        }

        /// Sets the raw mode of a line editor.
        pub(in super::super) fn set_raw(&self) {
            let Some(mut mode) = self.0.clone() else {
                return;
            };
            mode.input_modes -= InputModes::BRKINT
                | InputModes::ICRNL
                | InputModes::INPCK
                | InputModes::ISTRIP
                | InputModes::IXON;
            mode.control_modes |= ControlModes::CS8;
            mode.local_modes -=
                LocalModes::ECHO | LocalModes::ICANON | LocalModes::IEXTEN | LocalModes::ISIG;
            // It fails only if the terminal is gone.
            let _ = tcsetattr(stdin(), OptionalActions::Drain, &mode);
        }
    }

    /// A listener for the signal that resumes a suspended program (Ctrl-Z, then `fg`).
    pub(in super::super) struct ResumeSignal(tokio::signal::unix::Signal);

    impl ResumeSignal {
        /// Installs the listener.
        pub(in super::super) fn listen() -> io::Result<Self> {
            let number = rustix::process::Signal::CONT.as_raw();
            let kind = tokio::signal::unix::SignalKind::from_raw(number);
            tokio::signal::unix::signal(kind).map(Self)
        }

        /// Waits for the next signal.
        pub(in super::super) async fn next(&mut self) {
            if self.0.recv().await.is_none() {
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(not(unix))]
mod other {
    use std::io;

    /// Does nothing: consoles restore their mode when the program ends.
    pub(in super::super) struct SavedMode(());

    impl SavedMode {
        pub(in super::super) fn save() -> Self {
            Self(())
        }

        pub(in super::super) fn restore(&self) {}

        pub(in super::super) fn set_raw(&self) {}
    }

    /// Never signals: programs are not suspended.
    pub(in super::super) struct ResumeSignal(());

    impl ResumeSignal {
        pub(in super::super) fn listen() -> io::Result<Self> {
            Ok(Self(()))
        }

        pub(in super::super) async fn next(&mut self) {
            std::future::pending().await
        }
    }
}
