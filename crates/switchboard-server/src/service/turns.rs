//! A conversation as turns: messages, and what agents said and did.

use std::sync::Arc;
use std::time::SystemTime;

use serde_json::Value;
use switchboard_core::Item;
use switchboard_core::conversation::{Entry, EntryContent};

use super::{Caller, Service};
use crate::error::ServiceError;
use crate::recording::{Recording, Tokens, cut};

/// The least number of entries that are read at once.
const MIN_ENTRIES: usize = 256;

/// The longest text of a turn, in characters.
const MAX_TEXT: usize = 200;

/// A page of turns.
#[derive(Debug)]
pub(crate) struct Turns {
    pub(crate) turns: Vec<TurnInfo>,
    /// The position after the last turn, if more follow.
    pub(crate) next: Option<u64>,
}

/// A message, or a turn of an agent.
#[derive(Debug)]
pub(crate) struct TurnInfo {
    pub(crate) is_message: bool,
    /// The positions of its entries.
    pub(crate) positions: std::ops::Range<u64>,
    /// The position before which the conversation can be forked here.
    pub(crate) fork_before: Option<u64>,
    pub(crate) run: Arc<str>,
    pub(crate) turn: u32,
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) time: SystemTime,
    pub(crate) text: String,
    pub(crate) calls: Vec<String>,
    /// The agent that the conversation was handed to.
    pub(crate) handed_to: Option<String>,
    pub(crate) is_refused: bool,
    pub(crate) recording: Option<Arc<str>>,
    pub(crate) tokens: Option<Tokens>,
}

impl TurnInfo {
    fn begin(entry: &Entry, before: Option<&Entry>) -> Self {
        let is_message = entry.agent.is_none();
        // As `Conversation::rewind` decides: a message is stored with the first turn of its run.
        let is_within = before.is_some_and(|before| {
            before.run == entry.run
                && !entry.run.is_empty()
                && (before.turn == entry.turn || entry.turn <= 1)
                && !is_refusal(before)
                && !is_refusal(entry)
        });
        Self {
            is_message,
            positions: entry.position..entry.position,
            fork_before: (!is_within).then_some(entry.position),
            run: entry.run.clone(),
            turn: entry.turn,
            agent: entry.agent.clone(),
            time: entry.time,
            text: String::new(),
            calls: Vec::new(),
            handed_to: None,
            is_refused: is_refusal(entry),
            recording: None,
            tokens: None,
        }
    }

    /// Returns `true` if the entry belongs to the turn.
    fn has(&self, entry: &Entry) -> bool {
        self.run == entry.run
            && self.turn == entry.turn
            && self.is_message == entry.agent.is_none()
            && self.agent == entry.agent
            && !self.is_refused
            && !is_refusal(entry)
            // Each message that was added by itself is one.
            && !(self.is_message && self.run.is_empty())
    }

    fn add(&mut self, entry: &Entry) {
        self.positions.end = entry.position + 1;
        let Some(item) = entry.content.item() else {
            return;
        };
        if let Some(text) = item.text().or_else(|| item.refusal())
            && let Some(text) = cut(&text, MAX_TEXT)
        {
            if !self.text.is_empty() {
                self.text.push('\n');
            }
            self.text.push_str(&text);
        }
        if item.kind().output_kind().is_some()
            && let Some(name) = item.name()
        {
            self.calls.push(name.into_owned());
        }
        if let Some(to) = transferred_to(item) {
            self.handed_to = Some(to);
        }
    }
}

fn is_refusal(entry: &Entry) -> bool {
    matches!(entry.content, EntryContent::Refused(_))
}

/// The agent of a handoff's output, as the engine words it: `{"assistant": "Billing"}`.
fn transferred_to(item: &Item) -> Option<String> {
    let output: Value = serde_json::from_str(&item.output_text()?).ok()?;
    match output.as_object() {
        Some(fields) if fields.len() == 1 => Some(fields.get("assistant")?.as_str()?.to_owned()),
        _ => None,
    }
}

/// Groups entries into turns; `before` is the entry before the first.
fn turns_of<'a>(mut before: Option<&'a Entry>, entries: &'a [Entry]) -> Vec<TurnInfo> {
    let mut turns: Vec<TurnInfo> = Vec::new();
    for entry in entries {
        match turns.last_mut() {
            Some(turn) if turn.has(entry) => turn.add(entry),
            _ => {
                let mut turn = TurnInfo::begin(entry, before);
                turn.add(entry);
                turns.push(turn);
            }
        }
        before = Some(entry);
    }
    turns
}

impl Service {
    /// The turns of a conversation after a position, the oldest first.
    pub(crate) async fn turns(
        &self,
        caller: &Caller,
        id: &str,
        after: Option<u64>,
        limit: usize,
    ) -> Result<Turns, ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let conversation = self.conversation(caller, id)?;
        let head = conversation.head().await.map_err(failed)?;
        let head = head.ok_or_else(|| ServiceError::not_found("there is no such conversation"))?;
        let after = after.unwrap_or(head.first);
        let before = conversation.record_before(after, 1).await.map_err(failed)?;
        let mut count = MIN_ENTRIES.max(limit * 2);
        let mut turns = loop {
            let entries = conversation
                .record_from(after, count)
                .await
                .map_err(failed)?;
            let is_end = entries.len() < count;
            let mut turns = turns_of(before.first(), &entries);
            if !is_end {
                // More of it may follow.
                turns.pop();
            }
            if is_end || turns.len() > limit {
                break turns;
            }
            count *= 2;
        };
        let is_all = turns.len() <= limit;
        turns.truncate(limit);
        let last = turns.last().map(|turn| turn.positions.end);
        let next = last.filter(|_| !is_all);
        let recordings = self.0.recordings.as_ref();
        let recordings = recordings.map(|all| all.of_conversation(&caller.tenant, id));
        let recordings = recordings.unwrap_or_default();
        for turn in &mut turns {
            if let Some(recording) = recordings.iter().find(|known| known.covers(turn.time)) {
                turn.recording = Some(recording.run.clone());
                turn.tokens = turn_tokens(recording, turn);
            }
        }
        Ok(Turns { turns, next })
    }
}

/// The tokens of a turn, from the recording of its run.
fn turn_tokens(recording: &Recording, turn: &TurnInfo) -> Option<Tokens> {
    let rows = recording.rows(0, usize::MAX);
    let mut rows = rows.iter().filter(|row| row.kind == "turn");
    let row = rows
        .find(|row| row.turn == Some(turn.turn) && row.agent.as_deref() == turn.agent.as_deref());
    row.and_then(|row| row.tokens.clone())
}
