//! Nested history: the conversation so far as a summary for the next agent.

pub(crate) mod history_links;
mod python_text;
mod summary;

use std::borrow::Cow;
use std::sync::Arc;

use serde_json::Value;

use super::HandoffInputData;
use crate::items::{Item, ItemKind, RunItem, RunItems};
use history_links::HistoryLink;
use summary::PreviousSummary;
pub(crate) use summary::transcript;

/// The lines around a nested history. They are settings of a run, not of the process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryMarkers {
    /// The line before the records.
    pub start: Cow<'static, str>,
    /// The line after the records.
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

/// A function that makes the history for the next agent from the whole transcript.
#[derive(Clone)]
pub struct HistoryMapper(Arc<dyn Fn(Vec<Item>) -> Vec<Item> + Send + Sync>);

impl HistoryMapper {
    /// Creates a mapper from a function.
    pub fn new(map: impl Fn(Vec<Item>) -> Vec<Item> + Send + Sync + 'static) -> Self {
        Self(Arc::new(map))
    }
}

impl_debug!(HistoryMapper);

/// Returns one assistant message that summarises a transcript. A mapper can fall back on it.
pub fn default_history_mapper(transcript: &[Item], markers: &HistoryMarkers) -> Vec<Item> {
    vec![summary::write(transcript, markers)]
}

/// Replaces the conversation so far by summaries for the next agent.
///
/// Messages of the current turn are kept as they are, between summaries of the items before and
/// after them; calls, outputs and reasoning are in the summaries only. A summary that is already
/// in the history is expanded first, so that summaries do not contain summaries. With a mapper,
/// the history is what it returns for the whole transcript.
///
/// The session still gets the new items as they are; the next agent sees only the history.
/// A summary hides nothing: it contains the arguments and outputs of tools. Use a filter, before or
/// after, to remove what must not be passed on.
pub fn nest_handoff_history<C>(
    data: HandoffInputData<C>,
    mapper: Option<&HistoryMapper>,
    markers: &HistoryMarkers,
) -> HandoffInputData<C> {
    let history = data.history_items();
    if let Some(mapper) = mapper {
        let mut transcript = expand_summaries(&history, markers);
        let made = data.pre_handoff_items().iter().chain(of_turn(&data));
        transcript.extend(made.map(RunItem::to_input_item));
        return data.nested((mapper.0)(transcript).into(), Vec::new());
    }
    let first = history.iter().next();
    let previous = first.and_then(|first| PreviousSummary::of(first, markers));
    let mut nested = NestedHistory {
        items: Vec::new(),
        links: Vec::new(),
        pending: expand_summaries(
            history.iter().skip(usize::from(previous.is_some())),
            markers,
        ),
        previous,
        markers,
    };
    for made in data.pre_handoff_items() {
        nested.add(made, is_kept_from_earlier_turn(made.item()));
    }
    for made in of_turn(&data) {
        nested.add(made, is_kept_from_current_turn(made.item()));
    }
    nested.summarise_pending();
    let (items, links) = (nested.items.into(), nested.links);
    data.nested(items, links)
}

/// The items of this turn as an earlier filter left them.
fn of_turn<C>(data: &HandoffInputData<C>) -> &RunItems {
    data.input_items().unwrap_or_else(|| data.new_items())
}

/// A nested history under construction: summaries and kept messages in the order of the
/// conversation.
struct NestedHistory<'a> {
    items: Vec<Item>,
    links: Vec<HistoryLink>,
    /// The summary that the first one continues. Only its records keep their numbers.
    previous: Option<PreviousSummary<'a>>,
    /// The items of the next summary.
    pending: Vec<Item>,
    markers: &'a HistoryMarkers,
}

impl NestedHistory<'_> {
    fn add(&mut self, made: &RunItem, is_kept: bool) {
        let input_item = made.to_input_item();
        if !is_kept {
            self.pending.push(input_item);
            return;
        }
        self.summarise_pending();
        self.items.push(input_item.clone());
        self.links.push(HistoryLink {
            input_item,
            run_item: made.clone(),
        });
    }

    fn summarise_pending(&mut self) {
        let previous = self.previous.take();
        if previous.is_some() || !self.pending.is_empty() || self.items.is_empty() {
            let summary = summary::write_after(previous.as_ref(), &self.pending, self.markers);
            self.items.push(summary);
            self.pending.clear();
        }
    }
}

/// Returns the history with the items of earlier summaries in place of the summaries.
pub(super) fn expand_summaries<'a>(
    history: impl IntoIterator<Item = &'a Item>,
    markers: &HistoryMarkers,
) -> Vec<Item> {
    let history = history.into_iter();
    let mut items = Vec::with_capacity(history.size_hint().0);
    for item in history {
        match summary::read(item, markers) {
            Some(read) => items.extend(read),
            None => items.push(item.without_internal_fields()),
        }
    }
    items
}

/// Returns `true` if an item of an earlier turn is kept outside the summaries.
fn is_kept_from_earlier_turn(item: &Item) -> bool {
    !belongs_to_program(item)
        && item.role().is_none_or(|role| role != "assistant")
        && !is_summarised(item)
}

/// Returns `true` if an item of the current turn is kept outside the summaries.
fn is_kept_from_current_turn(item: &Item) -> bool {
    !belongs_to_program(item)
        && (item.role().is_some_and(|role| !role.is_empty()) || !is_summarised(item))
}

fn is_summarised(item: &Item) -> bool {
    matches!(
        item.kind(),
        ItemKind::FunctionCall | ItemKind::FunctionCallOutput | ItemKind::Reasoning
    )
}

fn belongs_to_program(item: &Item) -> bool {
    match item.kind() {
        ItemKind::Program | ItemKind::ProgramOutput => true,
        // Only calls and their outputs have a caller; messages need not be searched for one.
        ItemKind::Message => false,
        _ => item
            .field("caller")
            .and_then(|caller| serde_json::from_str::<Value>(caller).ok())
            .is_some_and(|caller| caller["type"] == "program"),
    }
}

#[cfg(test)]
mod tests;
