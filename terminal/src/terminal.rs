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

/// A program that runs in a pseudo-terminal, and the screen that it writes to.
///
/// When it is dropped the program is killed.
pub struct Terminal {
    output: Arc<Output>,
    input: Sender<Vec<u8>>,
    master: Box<dyn MasterPty + Send>,
    child: Child,
    program: String,
    ended: Option<ExitStatus>,
    limit: Duration,
}

/// How many characters a screen is wide and high.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Size {
    /// Characters in a row.
    pub columns: u16,
    /// Rows.
    pub rows: u16,
}

/// A signal that can be sent to the program, past its terminal.
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

/// How long to wait for what must come: long, since a busy machine is no failure.
const LIMIT: Duration = Duration::from_secs(60);
/// How often a program is asked whether it has ended.
const PAUSE: Duration = Duration::from_millis(5);
/// How long the output of a program that has ended must have been silent to be thought complete,
/// where another process still holds the terminal open.
const SILENCE: Duration = Duration::from_secs(2);

impl Terminal {
    /// Runs a program in the current folder.
    ///
    /// Its environment is `PATH` as it is here, `TERM=xterm-256color`, `SHELL=/bin/sh`, and what is given. Give it
    /// a `HOME` of its own if it reads one.
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

        // Made absolute, since the program itself would be looked for relative to it.
        let folder = std::path::absolute(folder).map_err(|error| failed(error.to_string()))?;
        if !folder.is_dir() {
            return Err(failed(format!("{} is no folder", folder.display())));
        }
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(folder);
        command.env_clear();
        if let Some(path) = std::env::var_os("PATH") {
            command.env("PATH", path);
        }
        command.env("TERM", "xterm-256color");
        // Set in any case, by default to the shell of whoever runs the tests.
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
        // Only the program may hold its side, or the end of its output would never be seen.
        drop(pair.slave);
        let child = child
            .downcast::<Child>()
            .map_err(|_| failed("it is no process of this system".to_owned()))?;

        let (input, typed) = mpsc::channel();
        write_all(writer, typed)?;
        Ok(Self {
            output: Output::read(reader, size, input.clone())?,
            input,
            master: pair.master,
            child: *child,
            program: name,
            ended: None,
            limit: LIMIT,
        })
    }

    /// Waits at most this long from now on, instead of a minute.
    #[must_use]
    pub fn with_limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Types text. A program that has ended does not get it, which is no error.
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

    /// Makes the terminal larger or smaller; the program is told (SIGWINCH).
    pub fn resize(&mut self, size: Size) -> Result<(), Error> {
        // One lock around both: what the program writes for the new size meets the new size.
        let mut state = self.output.lock();
        state.resize(size);
        self.master
            .resize(in_cells(size))
            .map_err(|error| Error::new(format!("cannot resize the terminal: {error:#}")))
    }

    /// What the screen shows: rows without spaces at their end, and without empty ones at the end.
    #[must_use]
    pub fn screen(&self) -> String {
        self.output.lock().text()
    }

    /// What has scrolled out of the screen (the last 50,000 lines of it) and what it shows. Lines that
    /// were too long for a row are whole again.
    #[must_use]
    pub fn everything(&self) -> String {
        self.output.lock().everything()
    }

    /// Waits until this text is on the screen or has scrolled out of it, as in [`everything`](Self::everything).
    /// Spaces at the end of a line count if they were written: `"> "` waits for a prompt.
    pub fn wait_for(&mut self, text: &str) -> Result<(), Error> {
        let mut search = Search::new(text);
        self.wait(
            || format!("{text:?} to appear"),
            |state| search.finds(state),
        )
    }

    /// Waits until this text is nowhere on the screen; what has scrolled out of it does not matter.
    pub fn wait_gone(&mut self, text: &str) -> Result<(), Error> {
        self.wait(
            || format!("{text:?} to go away"),
            |state| !state.shows(text),
        )
    }

    /// Waits until the screen is as told. `what` completes the sentence "waited for …".
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
        mut is_so: impl FnMut(&str) -> bool,
    ) -> Result<(), Error> {
        self.wait(|| what.to_owned(), |state| is_so(&state.text()))
    }

    /// Waits until nothing has been written for this long, or the limit is reached.
    ///
    /// For pictures. A test waits for what it expects instead.
    pub fn settle(&mut self, quiet: Duration) {
        let until = Instant::now() + self.limit;
        let mut state = self.output.lock();
        let mut quiet_since = Instant::now();
        while !state.closed() && Instant::now() < until {
            let left = quiet.saturating_sub(quiet_since.elapsed());
            if left.is_zero() {
                return;
            }
            let before = state.chunks();
            state = self.output.next(state, left);
            if state.chunks() != before {
                quiet_since = Instant::now();
            }
        }
    }

    /// Waits until the program has ended and all it wrote is on the screen.
    pub fn wait_exit(&mut self) -> Result<ExitStatus, Error> {
        let until = Instant::now() + self.limit;
        let status = loop {
            if let Some(status) = self.poll()? {
                break status;
            }
            if Instant::now() >= until {
                let message = format!("`{}` still runs after {:?}", self.program, self.limit);
                return Err(Error::with_screen(message, self.screen()));
            }
            thread::sleep(PAUSE);
        };
        // Its children may hold the terminal open: then silence has to do.
        if !self.output.lock().closed() {
            self.settle(SILENCE);
        }
        Ok(status)
    }

    /// Sends a signal to the program, past its terminal; [`Key::CtrlC`] goes through it.
    pub fn signal(&mut self, signal: Signal) -> Result<(), Error> {
        if let Some(status) = self.poll()? {
            let message = format!("`{}` has ended ({status}): no signal", self.program);
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

    /// A picture of the screen as it is, with the title of its window.
    #[must_use]
    pub fn svg(&self, title: &str) -> String {
        draw::still(self.output.lock().picture(), title)
    }

    /// All that the screen has shown since the start.
    #[must_use]
    pub fn recording(&self) -> Recording {
        self.output.lock().recording()
    }

    fn send(&self, bytes: Vec<u8>) {
        // Fails where the program is gone; whoever waits for its answer is told so.
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
        mut is_so: impl FnMut(&mut State) -> bool,
    ) -> Result<(), Error> {
        let until = Instant::now() + self.limit;
        let mut state = self.output.lock();
        while !is_so(&mut state) {
            let left = until.saturating_duration_since(Instant::now());
            let why = if state.closed() {
                format!("`{}` closed its terminal", self.program)
            } else if left.is_zero() {
                format!("nothing of it within {:?}", self.limit)
            } else {
                state = self.output.next(state, left);
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
        // The program leads a group of its own. Errors mean that it is gone already.
        let _ = kill_process_group(Pid::from_child(&self.child), rustix::process::Signal::KILL);
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Passes on what is typed, on a thread: a program that does not read blocks who writes to it.
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
        .map_err(|error| Error::new(format!("no thread to type: {error}")))
}

fn in_cells(size: Size) -> PtySize {
    PtySize {
        rows: size.rows.max(1),
        cols: size.columns.max(1),
        pixel_width: 0,
        pixel_height: 0,
    }
}
