//! What a program has written, as read by a thread of its own.

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
    picture::{Cursor, Picture},
    recording::Recorder,
    text,
};

/// How many lines that have scrolled out of the screen are kept.
const SCROLLBACK: usize = 50_000;

/// The screen that a thread keeps up to date, and a way to wait for it to change.
pub(crate) struct Output {
    state: Mutex<State>,
    changed: Condvar,
}

/// Where the screen stands.
pub(crate) struct State {
    parser: Parser<Answers>,
    recorder: Recorder,
    started: Instant,
    chunks: u64,
    closed: bool,
}

impl Output {
    /// Starts to read. What the program asks of its terminal is answered through `input`.
    pub(crate) fn read(
        reader: Box<dyn Read + Send>,
        size: Size,
        input: Sender<Vec<u8>>,
    ) -> Result<Arc<Self>, Error> {
        let output = Arc::new(Self {
            state: Mutex::new(State::new(size)),
            changed: Condvar::new(),
        });
        let closing = Closing(output.clone());
        thread::Builder::new()
            .name("terminal output".to_owned())
            .spawn(move || closing.read_all(reader, &input))
            .map_err(|error| Error::new(format!("no thread to read the output: {error}")))?;
        Ok(output)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the next change, at most this long.
    pub(crate) fn next<'a>(
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

    pub(crate) fn text(&self) -> String {
        text::screen(self.screen())
    }

    pub(crate) fn everything(&mut self) -> String {
        text::trimmed(&text::since(self.parser.screen_mut(), 0))
    }

    pub(crate) fn shows(&self, wanted: &str) -> bool {
        text::shows(&text::rows(self.screen()), wanted)
    }

    /// Whether nothing more can come.
    pub(crate) fn closed(&self) -> bool {
        self.closed
    }

    /// How often something has come.
    pub(crate) fn chunks(&self) -> u64 {
        self.chunks
    }

    pub(crate) fn resize(&mut self, size: Size) {
        self.recorder
            .about_to_change(self.parser.screen(), self.started.elapsed());
        let (rows, columns) = cells(size);
        self.parser.set_size(rows, columns);
    }

    pub(crate) fn picture(&self) -> Picture {
        // A program that has ended has no place where one could type.
        let cursor = if self.closed {
            Cursor::Gone
        } else {
            Cursor::AsShown
        };
        Picture::of(self.screen(), cursor)
    }

    pub(crate) fn recording(&self) -> Recording {
        self.recorder.recording(self.picture())
    }

    /// Takes what the program wrote, and returns what the terminal answers.
    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        self.recorder
            .about_to_change(self.parser.screen(), self.started.elapsed());
        self.parser.process(bytes);
        self.chunks += 1;
        self.parser.callbacks_mut().take()
    }
}

/// A search that does not look twice at lines that cannot change any more: a program may write
/// a lot while somebody waits.
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
        // A match may have begun in lines that were searched before, at most one line per character.
        let overlap = self.text.chars().count() + 1;
        let first = self
            .searched
            .min(screen.scrollback_len())
            .saturating_sub(overlap);
        self.searched = screen.scrollback_len();
        text::shows(&text::since(screen, first), self.text)
    }
}

/// Says that nothing more comes when reading ends, however it ends.
struct Closing(Arc<Output>);

impl Closing {
    fn read_all(self, mut reader: Box<dyn Read + Send>, input: &Sender<Vec<u8>>) {
        let mut bytes = vec![0; 16 * 1024];
        loop {
            let length = match reader.read(&mut bytes) {
                Ok(0) => return,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return,
            };
            let answer = self.0.lock().take(&bytes[..length]);
            self.0.changed.notify_all();
            if !answer.is_empty() {
                // Fails where the program is gone: then nobody waits for the answer.
                let _ = input.send(answer);
            }
        }
    }
}

impl Drop for Closing {
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
    fn a_match_may_begin_in_lines_that_were_searched_before() {
        let (mut state, mut search) = (one_row(), Search::new("one\ntwo"));
        state.take(b"zero\r\none\r\n");
        assert!(!search.finds(&mut state));
        state.take(b"two\r\n");
        assert!(search.finds(&mut state));
    }

    #[test]
    fn lines_that_came_after_the_scrollback_was_cleared_are_searched() {
        let (mut state, mut search) = (one_row(), Search::new("x"));
        state.take("line\r\n".repeat(20).as_bytes());
        assert!(!search.finds(&mut state));
        state.take(b"\x1b[3Jx\r\n");
        state.take("line\r\n".repeat(30).as_bytes());
        assert!(search.finds(&mut state));
    }

    #[test]
    fn lines_are_searched_after_those_before_them_were_dropped() {
        let (mut state, mut search) = (one_row(), Search::new("x"));
        state.take("line\r\n".repeat(SCROLLBACK).as_bytes());
        assert!(!search.finds(&mut state));
        state.take(format!("x\r\n{}", "line\r\n".repeat(100)).as_bytes());
        assert!(search.finds(&mut state));
    }
}
