//! Heads and entries as Redis stores them.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_core::conversation::{Entry, EntryContent, Head, Revision, from_millis, to_millis};

/// The first line of a stored entry, as JSON. The content follows it as it is.
#[derive(Serialize, Deserialize)]
struct Line<'a> {
    run: Arc<str>,
    turn: u32,
    commit: u32,
    agent: Option<Arc<str>>,
    /// Milliseconds since 1970.
    time: i64,
    #[serde(borrow)]
    kind: std::borrow::Cow<'a, str>,
}

/// The stored form of an entry.
pub(super) fn encode(entry: &Entry) -> Result<Vec<u8>, serde_json::Error> {
    let line = Line {
        run: entry.run.clone(),
        turn: entry.turn,
        commit: entry.commit,
        agent: entry.agent.clone(),
        time: to_millis(entry.time),
        kind: entry.content.kind().into(),
    };
    let content = entry.content.as_json();
    let mut stored = Vec::with_capacity(content.len() + 128);
    serde_json::to_writer(&mut stored, &line)?;
    stored.push(b'\n');
    stored.extend(content.as_bytes());
    Ok(stored)
}

/// The entry of a stored form; an error says what is wrong with it.
pub(super) fn decode(stored: &[u8], position: u64) -> Result<Entry, String> {
    let stored = std::str::from_utf8(stored).map_err(|error| error.to_string())?;
    let (line, content) = stored.split_once('\n').ok_or("it has no first line")?;
    let line: Line<'_> = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let content = EntryContent::from_stored(&line.kind, content);
    Ok(Entry::new(content.map_err(|error| error.to_string())?)
        .at(position)
        .made_in(line.run, line.turn, line.commit)
        .made_by(line.agent)
        .committed_at(from_millis(line.time)))
}

/// The head of a conversation; `None` if there is none.
pub(super) fn head(id: &str, fields: &HashMap<String, String>) -> Option<Head> {
    let number = |name: &str| fields.get(name)?.parse::<u64>().ok();
    let time = |name: &str| Some(from_millis(fields.get(name)?.parse().ok()?));
    let text = |name: &str| fields.get(name).map(|text| Arc::from(text.as_str()));
    let revision = Revision::new(number("epoch")?, number("next")?);
    let mut head = Head::new(id, revision, time("created")?);
    head.first = number("first")?;
    head.state = number("state");
    head.agent = text("agent");
    head.details = text("details");
    head.changed = time("changed")?;
    head.expires = time("expires");
    Some(head)
}
