//! A program in a pseudo-terminal.

use std::{
    ffi::OsStr,
    io::Write,
    path::Path,
    process::{Child, ExitStatus},
    sync::{
        Arc,
        mpsc::{self, Receiver, Sender},
    },
    thread,
    time::{Duration, Instant},
};

use portable_pty::{CommandBuilder, MasterPty, PtySize, native_pty_system};
use rustix::process::{Pid, kill_process, kill_process_group};

use crate::{
    Error, Key, Recording, draw,
    key::CursorKeys,
    output::{Output, Search, State},
};

/// A program in a pseudo-terminal, and its screen.
///
/// Dropping it kills the program.
pub struct Terminal {
    output: Arc<Output>,
    input: Sender<Vec<u8>>,
    master: Box<dyn MasterPty + Send>,
    child: Child,
    program: String,
    ended: Option<ExitStatus>,
    timeout: Duration,
}

/// The size of a screen in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// Characters in a row.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

/// A signal to send to the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Signal {
    /// SIGINT.
    Interrupt,
    /// SIGTERM.
    Terminate,
    /// SIGHUP.
    HangUp,
}

/// The default timeout: long, since a busy machine is not a failure.
const TIMEOUT: Duration = Duration::from_secs(60);
/// The interval of checks whether the program has ended.
const POLL_INTERVAL: Duration = Duration::from_millis(5);
/// The time without output after which the output of an ended program is considered complete, if
/// another process still holds the terminal open.
const QUIET: Duration = Duration::from_secs(2);

impl Terminal {
    /// Runs a program in the current folder.
    ///
    /// Its environment is this process's `PATH`, `TERM=xterm-256color`, `SHELL=/bin/sh`, and `env`. Set `HOME` if
    /// the program reads it.
    pub fn start<'a>(
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = &'a str>,
        size: Size,
        env: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Error> {
        Self::start_in(Path::new("."), program, args, size, env)
    }

    /// Runs a program in the given folder.
    pub fn start_in<'a>(
        folder: impl AsRef<Path>,
        program: impl AsRef<OsStr>,
        args: impl IntoIterator<Item = &'a str>,
        size: Size,
        env: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<Self, Error> {
        let program = program.as_ref();
        let name = program.to_string_lossy().into_owned();
        let failed = |reason: String| Error::new(format!("cannot start `{name}`: {reason}"));

        // Absolute, since the program itself would be looked up relative to it.
        let folder = std::path::absolute(folder).map_err(|error| failed(error.to_string()))?;
        if !folder.is_dir() {
            return Err(failed(format!("{} is not a folder", folder.display())));
        }
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(folder);
        command.env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.env("TERM", "xterm-256color");
        // Otherwise it would be set to the shell of the current user.
        command.env("SHELL", "/bin/sh");
        for (name, value) in env {
            command.env(name, value);
        }

        let pair = native_pty_system()
            .openpty(in_cells(size))
            .map_err(|error| failed(format!("{error:#}")))?;
        let reader = pair
            .master
            .try_clone_reader()
            .map_err(|error| failed(format!("{error:#}")))?;
        let writer = pair
            .master
            .take_writer()
            .map_err(|error| failed(format!("{error:#}")))?;
        let child: Box<dyn portable_pty::Child> = pair
            .slave
            .spawn_command(command)
            .map_err(|error| failed(format!("{error:#}")))?;
        // If this process held that side open, it would never see the end of the output.
        drop(pair.slave);
        let child = child
            .downcast::<Child>()
            .map_err(|_| failed("it is not a process of this system".to_owned()))?;

        let (input, typed) = mpsc::channel();
        write_all(writer, typed)?;
        Ok(Self {
            output: Output::read(reader, size, input.clone())?,
            input,
            master: pair.master,
            child: *child,
            program: name,
            ended: None,
            timeout: TIMEOUT,
        })
    }

    /// Sets the timeout of all waits. The default is a minute.
    #[must_use]
    pub fn with_timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Types text. It is ignored if the program has ended.
    pub fn type_text(&mut self, text: &str) {
        self.send(text.as_bytes().to_vec());
    }

    /// Presses a key.
    pub fn press(&mut self, key: Key) {
        let cursor_keys = if self.output.lock().screen().application_cursor() {
            CursorKeys::Application
        } else {
            CursorKeys::Normal
        };
        self.send(key.bytes(cursor_keys));
    }

    /// Resizes the terminal and sends SIGWINCH to the program.
    pub fn resize(&mut self, size: Size) -> Result<(), Error> {
        // One lock for both, so that output for the new size is processed at the new size.
        let mut state = self.output.lock();
        state.resize(size);
        self.master
            .resize(in_cells(size))
            .map_err(|error| Error::new(format!("cannot resize the terminal: {error:#}")))
    }

    /// The text of the screen, without trailing spaces and trailing empty rows.
    #[must_use]
    pub fn screen(&self) -> String {
        self.output.lock().text()
    }

    /// The text of the scrollback (at most 50,000 lines) and the screen. Wrapped lines are joined.
    #[must_use]
    pub fn everything(&self) -> String {
        self.output.lock().everything()
    }

    /// Waits until this text is on the screen or in the scrollback, as in [`everything`](Self::everything).
    /// Spaces at the end of a line may be included: `"> "` waits for a prompt.
    pub fn wait_for(&mut self, text: &str) -> Result<(), Error> {
        let mut search = Search::new(text);
        self.wait(
            || format!("{text:?} to appear"),
            |state| search.finds(state),
        )
    }

    /// Waits until this text is not on the screen. The scrollback is ignored.
    pub fn wait_gone(&mut self, text: &str) -> Result<(), Error> {
        self.wait(
            || format!("{text:?} to go away"),
            |state| !state.shows(text),
        )
    }

    /// Waits until a condition on the screen holds. `what` completes the sentence "waited for ...".
    ///
    /// ```
    /// # use terminal::{Size, Terminal};
    /// # fn main() -> Result<(), terminal::Error> {
    /// # let size = Size { columns: 40, rows: 5 };
    /// let mut terminal = Terminal::start("sh", ["-c", "echo '> '; echo '> '"], size, [])?;
    /// terminal.wait_until("a second prompt", |screen| screen.matches('>').count() == 2)?;
    /// # Ok(())
    /// # }
    /// ```
    pub fn wait_until(
        &mut self,
        what: &str,
        mut condition: impl FnMut(&str) -> bool,
    ) -> Result<(), Error> {
        self.wait(|| what.to_owned(), |state| condition(&state.text()))
    }

    /// Waits until nothing has been written for this long, or until the timeout.
    ///
    /// For screenshots. A test should wait for the expected text instead.
    pub fn settle(&mut self, quiet: Duration) {
        let until = Instant::now() + self.timeout;
        let mut state = self.output.lock();
        let mut quiet_since = Instant::now();
        while !state.closed() && Instant::now() < until {
            let left = quiet.saturating_sub(quiet_since.elapsed());
            if left.is_zero() {
                return;
            }
            let before = state.chunks();
            state = self.output.wait_for_change(state, left);
            if state.chunks() != before {
                quiet_since = Instant::now();
            }
        }
    }

    /// Waits until the program has ended and all of its output is on the screen.
    pub fn wait_exit(&mut self) -> Result<ExitStatus, Error> {
        let until = Instant::now() + self.timeout;
        let status = loop {
            if let Some(status) = self.poll()? {
                break status;
            }
            if Instant::now() >= until {
                let message = format!("`{}` still runs after {:?}", self.program, self.timeout);
                return Err(Error::with_screen(message, self.screen()));
            }
            thread::sleep(POLL_INTERVAL);
        };
        // Its children may hold the terminal open.
        if !self.output.lock().closed() {
            self.settle(QUIET);
        }
        Ok(status)
    }

    /// Sends a signal directly to the program. [`Key::CtrlC`] goes through the terminal.
    pub fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        if let Some(status) = self.poll()? {
            let message = format!(
                "`{}` has ended ({status}): cannot send a signal",
                self.program
            );
            return Err(Error::with_screen(message, self.screen()));
        }
        let number = match signal {
            Signal::Interrupt => rustix::process::Signal::INT,
            Signal::Terminate => rustix::process::Signal::TERM,
            Signal::HangUp => rustix::process::Signal::HUP,
        };
        kill_process(Pid::from_child(&self.child), number)
            .map_err(|error| Error::new(format!("cannot signal `{}`: {error}", self.program)))
    }

    /// Draws the screen as SVG, with this window title.
    #[must_use]
    pub fn svg(&self, title: &str) -> String {
        draw::still(self.output.lock().screenshot(), title)
    }

    /// The recording of the screen since the start.
    #[must_use]
    pub fn recording(&self) -> Recording {
        self.output.lock().recording()
    }

    fn send(&self, bytes: Vec<u8>) {
        // Fails if the program has ended. A wait for its output returns an error then.
        let _ = self.input.send(bytes);
    }

    fn poll(&mut self) -> Result<Option<ExitStatus>, Error> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait().map_err(|error| {
                Error::new(format!("cannot wait for `{}`: {error}", self.program))
            })?;
        }
        Ok(self.ended)
    }

    fn wait(
        &self,
        what: impl Fn() -> String,
        mut condition: impl FnMut(&mut State) -> bool,
    ) -> Result<(), Error> {
        let until = Instant::now() + self.timeout;
        let mut state = self.output.lock();
        while !condition(&mut state) {
            let left = until.saturating_duration_since(Instant::now());
            let why = if state.closed() {
                format!("`{}` closed its terminal", self.program)
            } else if left.is_zero() {
                format!("not within {:?}", self.timeout)
            } else {
                state = self.output.wait_for_change(state, left);
                continue;
            };
            let message = format!("waited for {}: {why}", what());
            return Err(Error::with_screen(message, state.text()));
        }
        Ok(())
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if self.ended.is_some() {
            return;
        }
        // The program leads its own process group. An error means that it has already ended.
        let _ = kill_process_group(Pid::from_child(&self.child), rustix::process::Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Writes what is typed on a thread, since writing blocks while the program does not read.
fn write_all(mut writer: Box<dyn Write + Send>, typed: Receiver<Vec<u8>>) -> Result<(), Error> {
    thread::Builder::new()
        .name("terminal input".to_owned())
        .spawn(move || {
            for bytes in typed {
                if writer.write_all(&bytes).is_err() {
                    return;
                }
            }
        })
        .map(|_| ())
        .map_err(|error| Error::new(format!("cannot start the input thread: {error}")))
}

fn in_cells(size: Size) -> PtySize {
    PtySize {
        rows: size.rows.max(1),
        cols: size.columns.max(1),
        pixel_width: 0,
        pixel_height: 0,
    }
}
