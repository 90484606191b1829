//! Entry points for `cargo fuzz`; see `fuzz/README.md`.

use std::collections::VecDeque;
use std::sync::LazyLock;

use super::client::ResponseHeaders;
use super::sse::{Event, Splitter, TooLong};
use super::{ChatModel, Client, Endpoint, ResponsesModel, chat, responses};

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

fn split(parts: &[&[u8]]) -> Result<VecDeque<Event>, TooLong> {
    let mut splitter = Splitter::new(1 << 20);
    let mut events = VecDeque::new();
    for part in parts {
        splitter.push(part, &mut events)?;
    }
    events.extend(splitter.finish());
    Ok(events)
}

static CLIENT: LazyLock<Option<Client>> =
    LazyLock::new(|| Endpoint::at("http://localhost:1/v1").connect().ok());

/// Reads any bytes as an answer.
pub fn responses(bytes: &[u8]) {
    if let Some(client) = &*CLIENT {
        let _ = responses::read(
            &ResponsesModel::new(client, "m"),
            bytes,
            &ResponseHeaders::default(),
        );
    }
}

/// Reads any bytes as an answer.
pub fn chat(bytes: &[u8]) {
    if let Some(client) = &*CLIENT {
        let _ = chat::read(
            &ChatModel::new(client, "m"),
            bytes,
            &ResponseHeaders::default(),
        );
    }
}

/// Reads any bytes as the value of a response header.
pub fn head(bytes: &[u8]) {
    super::client::parse_as_any_header(bytes);
}
