//! Checks of any input, for property tests and `cargo fuzz`; see `fuzz/README.md`.

use std::collections::VecDeque;

use http::header::{HeaderMap, HeaderName, HeaderValue};

use super::client::ResponseHeaders;
use super::sse::{Event, Splitter};
use super::{chat, responses};

/// Checks that the events do not depend on how the bytes are split.
pub fn sse(bytes: &[u8], cuts: &[u16]) {
    let mut cuts: Vec<usize> = cuts
        .iter()
        .map(|cut| usize::from(*cut) % (bytes.len() + 1))
        .collect();
    cuts.sort_unstable();
    let mut parts = Vec::new();
    let mut from = 0;
    for cut in cuts.into_iter().chain([bytes.len()]) {
        parts.push(&bytes[from..cut]);
        from = cut;
    }
    assert_eq!(split(&parts), split(&[bytes]));
}

pub(super) fn split(parts: &[&[u8]]) -> VecDeque<Event> {
    let mut splitter = Splitter::default();
    let mut events = VecDeque::new();
    for part in parts {
        splitter.push(part, &mut events);
    }
    events.extend(splitter.finish());
    events
}

/// Reads any text as an answer.
pub fn responses(bytes: &[u8]) {
    let _ = responses::read("http://localhost:1/m", &String::from_utf8_lossy(bytes));
}

/// Reads any text as an answer.
pub fn chat(bytes: &[u8]) {
    let _ = chat::read("m", &String::from_utf8_lossy(bytes));
}

/// Reads any bytes as the value of each response header that is used.
pub fn head(bytes: &[u8]) {
    let Ok(value) = HeaderValue::from_bytes(bytes) else {
        return;
    };
    for name in [
        "retry-after-ms",
        "retry-after",
        "x-request-id",
        "x-ratelimit-remaining-requests",
        "x-ratelimit-reset-requests",
        "x-should-retry",
    ] {
        let name = HeaderName::from_static(name);
        ResponseHeaders::parse(&HeaderMap::from_iter([(name, value.clone())]));
    }
}
