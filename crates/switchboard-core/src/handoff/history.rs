//! Nested history: the conversation so far as a summary in front of the next agent.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use super::HandoffInputData;
use super::owned::Owned;
use super::summary;
use crate::items::{Item, ItemKind, Items, RunItem};

/// The lines around a nested history. They belong to a run, not to the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryMarkers {
    /// The line before the records.
    pub start: Cow<'static, str>,
    /// The line after them.
    pub end: Cow<'static, str>,
}

impl Default for HistoryMarkers {
    fn default() -> Self {
        Self {
            start: "<CONVERSATION HISTORY>".into(),
            end: "</CONVERSATION HISTORY>".into(),
        }
    }
}

/// Makes the history the next agent sees out of the whole transcript.
#[derive(Clone)]
pub struct HistoryMapper(Arc<dyn Fn(Vec<Item>) -> Vec<Item> + Send + Sync>);

impl HistoryMapper {
    /// A mapper.
    pub fn new(map: impl Fn(Vec<Item>) -> Vec<Item> + Send + Sync + 'static) -> Self {
        Self(Arc::new(map))
    }

    fn map(&self, transcript: Vec<Item>) -> Vec<Item> {
        (self.0)(transcript)
    }
}

impl fmt::Debug for HistoryMapper {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("HistoryMapper")
    }
}

/// One assistant message that summarises a transcript: what a mapper can fall back on.
pub fn default_history_mapper(transcript: &[Item], markers: &HistoryMarkers) -> Vec<Item> {
    vec![summary::write(transcript, markers)]
}

/// Puts the conversation so far into summaries for the next agent.
///
/// Messages of the current turn stay as they are, between summaries of what came before and
/// after; calls, outputs and reasoning are in the summaries only. A summary that is already in
/// the history is opened again, so nesting twice does not nest twice. With a mapper, what it
/// returns for the whole transcript is the history.
///
/// The new items stay as they are for the session; the next agent sees the history alone.
/// A summary hides nothing: arguments and outputs of tools are in it. Filter before, or filter
/// the result, where something must not be passed on.
pub fn nest_handoff_history<C>(
    data: HandoffInputData<C>,
    mapper: Option<&HistoryMapper>,
    markers: &HistoryMarkers,
) -> HandoffInputData<C> {
    let mut transcript = flattened(&data.history_items(), markers);
    if let Some(mapper) = mapper {
        let made = data.pre_handoff_items().iter().chain(data.new_items());
        transcript.extend(made.map(RunItem::to_input_item));
        let history = mapper.map(transcript).into();
        return data.nested(history, Vec::new());
    }
    let before = data.pre_handoff_items().iter();
    let before = before.map(|made| (made, stays_from_before(made.item())));
    let now = data.new_items().iter();
    let now = now.map(|made| (made, stays_from_now(made.item())));

    let mut ordered = Ordered {
        history: Vec::new(),
        owned: Vec::new(),
        pending: transcript,
        markers,
    };
    for (made, stays) in before.chain(now) {
        if stays {
            ordered.keep(made);
        } else {
            ordered.pending.push(made.to_input_item());
        }
    }
    let (history, owned) = ordered.finish();
    data.nested(history, owned)
}

/// Summaries and kept messages in the order of the conversation.
struct Ordered<'a> {
    history: Vec<Item>,
    owned: Vec<Owned>,
    pending: Vec<Item>,
    markers: &'a HistoryMarkers,
}

impl Ordered<'_> {
    fn keep(&mut self, made: &RunItem) {
        self.summarise();
        let item = made.to_input_item();
        self.owned.push(Owned {
            input_item: item.clone(),
            run_item: made.clone(),
        });
        self.history.push(item);
    }

    fn summarise(&mut self) {
        if !self.pending.is_empty() || self.history.is_empty() {
            self.history
                .push(summary::write(&self.pending, self.markers));
            self.pending.clear();
        }
    }

    fn finish(mut self) -> (Items, Vec<Owned>) {
        self.summarise();
        (self.history.into(), self.owned)
    }
}

/// The history with earlier summaries opened.
pub(super) fn flattened(history: &Items, markers: &HistoryMarkers) -> Vec<Item> {
    let mut flat = Vec::with_capacity(history.len());
    for item in history {
        match summary::read(item, markers) {
            Some(items) => flat.extend(items),
            None => flat.push(item.without_internal_fields()),
        }
    }
    flat
}

/// Whether an item of an earlier turn stays outside the summary.
fn stays_from_before(item: &Item) -> bool {
    !belongs_to_program(item)
        && item.role().is_none_or(|role| role != "assistant")
        && !is_only_for_summary(item)
}

/// Whether an item of this turn stays outside the summary.
fn stays_from_now(item: &Item) -> bool {
    !belongs_to_program(item)
        && (item.role().is_some_and(|role| !role.is_empty()) || !is_only_for_summary(item))
}

fn is_only_for_summary(item: &Item) -> bool {
    matches!(
        item.kind(),
        ItemKind::FunctionCall | ItemKind::FunctionCallOutput | ItemKind::Reasoning
    )
}

fn belongs_to_program(item: &Item) -> bool {
    if matches!(item.kind(), ItemKind::Program | ItemKind::ProgramOutput) {
        return true;
    }
    // Only calls and their outputs have a caller; looking for one in every item would cost.
    item.kind() != ItemKind::Message
        && item
            .field("caller")
            .and_then(|caller| serde_json::from_str::<serde_json::Value>(caller).ok())
            .is_some_and(|caller| caller["type"] == "program")
}
