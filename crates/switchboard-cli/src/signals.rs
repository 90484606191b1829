//! Signals that interrupt or terminate the program.

use std::io;

use crate::failure::Exit;

/// A signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Ctrl-C.
    Interrupt,
    /// `kill`, or a terminal that was closed.
    Terminate,
}

impl Signal {
    /// The exit code of a program that ends because of it.
    pub(crate) const fn exit(self) -> Exit {
        match self {
            Self::Interrupt => Exit::Interrupted,
            Self::Terminate => Exit::Terminated,
        }
    }
}

/// A listener for signals. While one exists, signals do not end the program.
#[cfg(unix)]
pub(crate) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    /// Installs the listener.
    pub(crate) fn listen() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.terminate.recv() => Signal::Terminate,
            _ = self.hangup.recv() => Signal::Terminate,
        }
    }
}

/// A listener for signals. While one exists, signals do not end the program.
#[cfg(not(unix))]
pub(crate) struct Signals(());

#[cfg(not(unix))]
impl Signals {
    /// Installs the listener.
    pub(crate) fn listen() -> io::Result<Self> {
        Ok(Self(()))
    }

    /// Waits for the next signal.
    pub(crate) async fn next(&mut self) -> Signal {
        match tokio::signal::ctrl_c().await {
            Ok(()) => Signal::Interrupt,
            // There are no signals to wait for.
            Err(_) => std::future::pending().await,
        }
    }
}
