//! The mode of the terminal around line editing.

#[cfg(not(unix))]
pub(crate) use other::ResumeSignal;
#[cfg(not(unix))]
pub(super) use other::SavedMode;
#[cfg(unix)]
pub(crate) use unix::ResumeSignal;
#[cfg(unix)]
pub(super) use unix::SavedMode;

#[cfg(unix)]
mod unix {
    use std::io::{self, Write as _, stdin, stdout};

    use rustix::termios::{
        ControlModes, InputModes, LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr,
    };

    /// The mode that the terminal had before lines were edited.
    pub(in crate::line_reader) struct SavedMode(Option<Termios>);

    impl SavedMode {
        /// Saves the current mode.
        pub(in crate::line_reader) fn save() -> Self {
            Self(tcgetattr(stdin()).ok())
        }

        /// Restores the mode, and moves to a new line.
        pub(in crate::line_reader) fn restore(&self) {
            let Some(mode) = &self.0 else { return };
            // These fail only if the terminal is gone. The sequence ends bracketed paste.
            let _ = tcsetattr(stdin(), OptionalActions::Now, mode);
            let _ = stdout().write_all(b"\x1b[?2004l\r\n");
            let _ = stdout().flush();
        }

        /// Sets the raw mode of a line editor.
        pub(in crate::line_reader) fn set_raw(&self) {
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
    pub(crate) struct ResumeSignal(tokio::signal::unix::Signal);

    impl ResumeSignal {
        /// Installs the listener.
        pub(crate) fn listen() -> io::Result<Self> {
            let number = rustix::process::Signal::CONT.as_raw();
            let kind = tokio::signal::unix::SignalKind::from_raw(number);
            tokio::signal::unix::signal(kind).map(Self)
        }

        /// Waits for the next signal.
        pub(crate) async fn next(&mut self) {
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
    pub(in crate::line_reader) struct SavedMode(());

    impl SavedMode {
        pub(in crate::line_reader) fn save() -> Self {
            Self(())
        }

        pub(in crate::line_reader) fn restore(&self) {}

        pub(in crate::line_reader) fn set_raw(&self) {}
    }

    /// Never signals: programs are not suspended.
    pub(crate) struct ResumeSignal(());

    impl ResumeSignal {
        pub(crate) fn listen() -> io::Result<Self> {
            Ok(Self(()))
        }

        pub(crate) async fn next(&mut self) {
            std::future::pending().await
        }
    }
}
