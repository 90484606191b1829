//! Reads the output of the program on a thread.

use std::{
    io::{ErrorKind, Read},
    num::NonZeroU16,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc::Sender},
    thread,
    time::{Duration, Instant},
};

use vt100::{Parser, Screen};

use crate::{
    Error, Recording, Size,
    answers::Answers,
    recording::Recorder,
    screenshot::{Cursor, Screenshot},
    text,
};

/// The maximum number of lines in the scrollback.
const SCROLLBACK: usize = 50_000;

/// The screen, which a thread updates, and a way to wait for changes.
pub(crate) struct Output {
    state: Mutex<State>,
    changed: Condvar,
}

/// The state of the screen.
pub(crate) struct State {
    parser: Parser<Answers>,
    recorder: Recorder,
    started: Instant,
    chunks: u64,
    closed: bool,
}

impl Output {
    /// Starts the thread that reads. Answers to queries of the program are sent to `input`.
    pub(crate) fn read(
        reader: Box<dyn Read + Send>,
        size: Size,
        input: Sender<Vec<u8>>,
    ) -> Result<Arc<Self>, Error> {
        let output = Arc::new(Self {
            state: Mutex::new(State::new(size)),
            changed: Condvar::new(),
        });
        let reading = OutputReader(output.clone());
        thread::Builder::new()
            .name("terminal output".to_owned())
            .spawn(move || reading.read_all(reader, &input))
            .map_err(|error| Error::new(format!("cannot start the output thread: {error}")))?;
        Ok(output)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next change, at most this long.
    pub(crate) fn wait_for_change<'a>(
        &self,
        state: MutexGuard<'a, State>,
        limit: Duration,
    ) -> MutexGuard<'a, State> {
        self.changed
            .wait_timeout(state, limit)
            .unwrap_or_else(PoisonError::into_inner)
            .0
    }
}

impl State {
    fn new(size: Size) -> Self {
        let (rows, columns) = cells(size);
        Self {
            parser: Parser::new_with_callbacks(rows, columns, SCROLLBACK, Answers::default()),
            recorder: Recorder::default(),
            started: Instant::now(),
            chunks: 0,
            closed: false,
        }
    }

    pub(crate) fn screen(&self) -> &Screen {
        self.parser.screen()
    }

    /// The text of the screen.
    pub(crate) fn text(&self) -> String {
        text::screen(self.screen())
    }

    /// The text of the scrollback and the screen.
    pub(crate) fn everything(&mut self) -> String {
        text::trimmed(&text::since(self.parser.screen_mut(), 0))
    }

    pub(crate) fn shows(&self, wanted: &str) -> bool {
        text::shows(&text::rows(self.screen()), wanted)
    }

    /// Returns `true` if the program has closed its output.
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// The number of chunks that were read.
    pub(crate) fn chunks(&self) -> u64 {
        self.chunks
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.recorder
            .before_change(self.parser.screen(), self.started.elapsed());
        let (rows, columns) = cells(size);
        self.parser.set_size(rows, columns);
    }

    pub(crate) fn screenshot(&self) -> Screenshot {
        // A program that has ended takes no input.
        let cursor = if self.closed {
            Cursor::Hidden
        } else {
            Cursor::Visible
        };
        Screenshot::of(self.screen(), cursor)
    }

    pub(crate) fn recording(&self) -> Recording {
        self.recorder.recording(self.screenshot())
    }

    /// Processes output of the program, and returns the answers of the terminal.
    fn process(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.recorder
            .before_change(self.parser.screen(), self.started.elapsed());
        self.parser.process(bytes);
        self.chunks += 1;
        self.parser.callbacks_mut().take()
    }
}

/// An incremental search: it does not search again in lines that can no longer change.
pub(crate) struct Search<'a> {
    text: &'a str,
    searched: usize,
    lines_lost: u64,
}

impl<'a> Search<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self {
            text,
            searched: 0,
            lines_lost: 0,
        }
    }

    pub(crate) fn finds(&mut self, state: &mut State) -> bool {
        let lost = state.parser.callbacks().lines_lost();
        let screen = state.parser.screen_mut();
        if lost != self.lines_lost {
            self.searched = 0;
            self.lines_lost = lost;
        }
        // A match may begin in lines that were searched before, at most one line per character.
        let overlap = self.text.chars().count() + 1;
        let first = self
            .searched
            .min(screen.scrollback_len())
            .saturating_sub(overlap);
        self.searched = screen.scrollback_len();
        text::shows(&text::since(screen, first), self.text)
    }
}

/// Reads the output, and marks it as closed when dropped.
struct OutputReader(Arc<Output>);

impl OutputReader {
    fn read_all(self, mut reader: Box<dyn Read + Send>, input: &Sender<Vec<u8>>) {
        let mut bytes = vec![0; 16 * 1024];
        loop {
            let length = match reader.read(&mut bytes) {
                Ok(0) => return,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            let answer = self.0.lock().process(&bytes[..length]);
            self.0.changed.notify_all();
            if !answer.is_empty() {
                // Fails if the program has ended, and then the answer is not needed.
                let _ = input.send(answer);
            }
        }
    }
}

impl Drop for OutputReader {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        self.0.changed.notify_all();
    }
}

fn cells(size: Size) -> (NonZeroU16, NonZeroU16) {
    let at_least_one = |cells| NonZeroU16::new(cells).unwrap_or(NonZeroU16::MIN);
    (at_least_one(size.rows), at_least_one(size.columns))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one_row() -> State {
        State::new(Size {
            columns: 10,
            rows: 1,
        })
    }

    #[test]
    fn a_match_may_begin_in_lines_that_were_already_searched() {
        let (mut state, mut search) = (one_row(), Search::new("one\ntwo"));
        state.process(b"zero\r\none\r\n");
        assert!(!search.finds(&mut state));
        state.process(b"two\r\n");
        assert!(search.finds(&mut state));
    }

    #[test]
    fn lines_after_a_cleared_scrollback_are_searched() {
        let (mut state, mut search) = (one_row(), Search::new("x"));
        state.process("line\r\n".repeat(20).as_bytes());
        assert!(!search.finds(&mut state));
        state.process(b"\x1b[3Jx\r\n");
        state.process("line\r\n".repeat(30).as_bytes());
        assert!(search.finds(&mut state));
    }

    #[test]
    fn lines_are_searched_after_earlier_ones_were_dropped() {
        let (mut state, mut search) = (one_row(), Search::new("x"));
        state.process("line\r\n".repeat(SCROLLBACK).as_bytes());
        assert!(!search.finds(&mut state));
        state.process(format!("x\r\n{}", "line\r\n".repeat(100)).as_bytes());
        assert!(search.finds(&mut state));
    }
}
