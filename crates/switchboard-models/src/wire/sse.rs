//! Server-sent events.

use std::collections::VecDeque;
use std::sync::Arc;

use memchr::{memchr, memchr2};

/// One server-sent event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Event {
    /// The data of an event.
    Data(Arc<str>),
    /// The value of a field `error`, which old versions of llama.cpp send when they fail.
    Error(Arc<str>),
}

/// Splits a stream of bytes into events, independent of chunk boundaries.
///
/// Accepts lines that end with LF, CR or CRLF, a byte order mark, comments, unknown fields, data over
/// several lines, and a stream that ends without an empty line.
#[derive(Debug, Default)]
pub(crate) struct Splitter {
    /// The beginning of a line whose end has not come yet.
    line: Vec<u8>,
    /// The data of the current event; a line break follows each of its lines.
    data: Vec<u8>,
    error: Option<Vec<u8>>,
    /// Set if the last byte was a CR: an LF after it belongs to the same line end.
    after_cr: bool,
    /// Set once a line has ended; a byte order mark is only at the start.
    has_begun: bool,
}

impl Splitter {
    /// Reads more bytes and appends complete events to `events`.
    pub(crate) fn push(&mut self, mut bytes: &[u8], events: &mut VecDeque<Event>) {
        if !bytes.is_empty() && std::mem::take(&mut self.after_cr) {
            bytes = bytes.strip_prefix(b"\n").unwrap_or(bytes);
        }
        while let Some(end) = memchr2(b'\n', b'\r', bytes) {
            let (part, rest) = bytes.split_at(end);
            let event = if self.line.is_empty() {
                self.end_line(part)
            } else {
                self.line.extend_from_slice(part);
                self.end_buffered_line()
            };
            events.extend(event);
            bytes = match rest {
                [b'\r', b'\n', rest @ ..] => rest,
                [b'\r'] => {
                    self.after_cr = true;
                    &[]
                }
                rest => &rest[1..],
            };
        }
        self.line.extend_from_slice(bytes);
    }

    /// Ends the stream; an unfinished event counts.
    pub(crate) fn finish(&mut self) -> Option<Event> {
        self.end_buffered_line().or_else(|| self.dispatch())
    }

    fn end_buffered_line(&mut self) -> Option<Event> {
        let line = std::mem::take(&mut self.line);
        self.end_line(&line)
    }

    fn end_line(&mut self, mut line: &[u8]) -> Option<Event> {
        if !std::mem::replace(&mut self.has_begun, true) {
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
            // Some proxies send empty events to keep a connection open.
            None if data.is_empty() => None,
            None => Some(Event::Data(text(data))),
        };
        self.data.clear();
        event
    }
}

fn text(bytes: &[u8]) -> Arc<str> {
    // `from_utf8` validates valid text several times faster than `from_utf8_lossy`.
    match std::str::from_utf8(bytes) {
        Ok(text) => text.into(),
        Err(_) => String::from_utf8_lossy(bytes).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::fuzzing::{self, split};
    use proptest::prelude::*;

    fn data(text: &str) -> Event {
        Event::Data(text.into())
    }

    #[test]
    fn variants_of_the_format_are_accepted() {
        let sent = "\u{feff}data:1\r\n\r\n: ping\nevent: x\ndata: 2\ndata: 3\n\nid: 7\rdata: é\r\r\
                    data\n\nevent: alone\n\ndata: last";
        let expected = [data("1"), data("2\n3"), data("é"), data("last")];
        assert_eq!(split(&[sent.as_bytes()]), expected);
        assert_eq!(
            split(&[b"error: {\"code\":400}\n\n"]),
            [Event::Error("{\"code\":400}".into())]
        );
    }

    #[test]
    fn a_crlf_across_two_chunks_ends_one_line() {
        let parts: [&[u8]; 4] = [b"data: a\r", b"\n", b"", b"\ndata: b\n\n"];
        assert_eq!(split(&parts), [data("a"), data("b")]);
    }

    proptest! {
        #[test]
        fn chunk_boundaries_do_not_matter(
            text in "(data: ?|data: a\n\n|: |event:|error: |\r\n|\n|\r|é|[a-c]|\u{feff}){0,60}",
            cuts in proptest::collection::vec(0u16..200, 0..20),
        ) {
            fuzzing::sse(text.as_bytes(), &cuts);
        }

        #[test]
        fn any_bytes_are_split_byte_by_byte_as_at_once(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(split(&single), split(&[&bytes]));
        }
    }
}
