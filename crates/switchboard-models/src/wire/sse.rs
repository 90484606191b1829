//! Events out of a stream of bytes, however the bytes are cut.

use std::collections::VecDeque;
use std::sync::Arc;

use memchr::{memchr, memchr2};

/// One event of a server-sent stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The data of an event.
    Data(Arc<str>),
    /// What an old llama.cpp says in a field of its own when it fails.
    Error(Arc<str>),
}

/// An event that is larger than it may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TooLong;

/// Splits bytes into events. Any way to cut the bytes gives the same events.
///
/// It takes what servers send: lines that end with LF, CR or CRLF, a byte order mark, comments,
/// fields it does not know, data over several lines, and an end without an empty line.
///
/// An event costs one allocation, which is what the run tells of it in the end.
#[derive(Debug)]
pub(crate) struct Splitter {
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The data of the event under way, each of its lines with a line break behind it.
    data: Vec<u8>,
    error: Option<Vec<u8>>,
    /// The last byte was a CR: an LF after it ends no other line.
    after_cr: bool,
    at_start: bool,
    limit: usize,
}

impl Splitter {
    /// Events of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            line: Vec::new(),
            data: Vec::new(),
            error: None,
            after_cr: false,
            at_start: true,
            limit,
        }
    }

    /// Takes more bytes. Complete events are put into `events`.
    pub(crate) fn push(
        &mut self,
        mut bytes: &[u8],
        events: &mut VecDeque<Event>,
    ) -> Result<(), TooLong> {
        if !bytes.is_empty() && std::mem::take(&mut self.after_cr) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (part, rest) = bytes.split_at(end);
            self.make_sure_it_fits(part)?;
            // Mostly an event is one line and is there as a whole.
            if let [b'\n', b'\n', rest @ ..] = rest
                && self.is_between_events()
                && let Some(data) = part.strip_prefix(b"data:")
            {
                self.at_start = false;
                if let data @ [_, ..] = data.strip_prefix(b" ").unwrap_or(data) {
                    events.push_back(Event::Data(text(data)));
                }
                bytes = rest;
                continue;
            }
            let event = if self.line.is_empty() {
                self.end_of_line(part)
            } else {
                self.line.extend_from_slice(part);
                self.end_of_held_line()
            };
            if let Some(event) = event {
                events.push_back(event);
            }
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                [_, rest @ ..] => rest,
                [] => &[],
            };
        }
        self.make_sure_it_fits(bytes)?;
        self.line.extend_from_slice(bytes);
        Ok(())
    }

    /// The stream has ended: what there is of an event counts.
    pub(crate) fn finish(&mut self) -> Option<Event> {
        let last = self.end_of_held_line();
        last.or_else(|| self.dispatch())
    }

    fn is_between_events(&self) -> bool {
        self.line.is_empty() && self.data.is_empty() && self.error.is_none()
    }

    fn make_sure_it_fits(&self, part: &[u8]) -> Result<(), TooLong> {
        let held = self.line.len() + self.data.len().saturating_sub(1);
        if held + part.len() > self.limit {
            Err(TooLong)
        } else {
            Ok(())
        }
    }

    fn end_of_held_line(&mut self) -> Option<Event> {
        let mut line = std::mem::take(&mut self.line);
        let event = self.end_of_line(&line);
        line.clear();
        self.line = line;
        event
    }

    fn end_of_line(&mut self, mut line: &[u8]) -> Option<Event> {
        if std::mem::take(&mut self.at_start) {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return self.dispatch();
        }
        let (field, value) = match memchr(b':', line) {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &[][..]),
        };
        let value = value.strip_prefix(b" ").unwrap_or(value);
        match field {
            b"data" => {
                self.data.extend_from_slice(value);
                self.data.push(b'\n');
            }
            b"error" => self.error = Some(value.to_vec()),
            _ => {}
        }
        None
    }

    fn dispatch(&mut self) -> Option<Event> {
        let data = self.data.strip_suffix(b"\n").unwrap_or_default();
        let event = match self.error.take() {
            Some(error) => Some(Event::Error(text(&error))),
            // Some proxies keep a connection alive with empty events.
            None if data.is_empty() => None,
            None => Some(Event::Data(text(data))),
        };
        self.data.clear();
        event
    }
}

fn text(bytes: &[u8]) -> Arc<str> {
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Event>, TooLong> {
        let mut splitter = Splitter::new(1 << 16);
        let mut events = VecDeque::new();
        for part in parts {
            splitter.push(part, &mut events)?;
        }
        events.extend(splitter.finish());
        Ok(events.into())
    }

    fn data(text: &str) -> Event {
        Event::Data(text.into())
    }

    #[test]
    fn takes_what_servers_send() {
        let sent = "\u{feff}data:1\r\n\r\n: ping\nevent: x\ndata: 2\ndata: 3\n\nid: 7\rdata: é\r\r\
                    data\n\nevent: alone\n\ndata: last";
        let expected = [data("1"), data("2\n3"), data("é"), data("last")];
        assert_eq!(split([sent.as_bytes()]).unwrap(), expected);
        assert_eq!(
            split([&b"error: {\"code\":400}\n\n"[..]]).unwrap(),
            [Event::Error("{\"code\":400}".into())]
        );
    }

    #[test]
    fn a_cut_between_the_two_ends_of_a_line_ends_one_line() {
        let parts: [&[u8]; 4] = [b"data: a\r", b"\n", b"", b"\ndata: b\n\n"];
        assert_eq!(split(parts).unwrap(), [data("a"), data("b")]);
    }

    #[test]
    fn an_endless_line_and_an_endless_event_are_refused() {
        let mut splitter = Splitter::new(100);
        let mut events = VecDeque::new();
        assert_eq!(splitter.push(&[b'x'; 101], &mut events), Err(TooLong));
        let mut splitter = Splitter::new(100);
        let line = b"data: 0123456789\n".repeat(20);
        assert_eq!(splitter.push(&line, &mut events), Err(TooLong));
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_same_events(
            text in "(data: ?|data: a\n\n|: |event:|error: |\r\n|\n|\r|é|[a-c]|\u{feff}){0,60}",
            cuts in proptest::collection::vec(0usize..200, 0..20),
        ) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut % (bytes.len() + 1)).collect();
            cuts.sort_unstable();
            let mut parts = Vec::new();
            let mut from = 0;
            for cut in cuts.into_iter().chain([bytes.len()]) {
                parts.push(&bytes[from..cut]);
                from = cut;
            }
            prop_assert_eq!(split(parts), split([bytes]));
        }

        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(split(single), split([&bytes[..]]));
        }
    }
}
