//! The data of a handoff, as filters see it.

use std::sync::{Arc, Mutex};

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::history_links::HistoryLink;
use crate::context::RunContext;
use crate::filters::AppliedRedaction;
use crate::items::{Input, Item, Items, RunItem, RunItems};
use crate::lock::lock;

/// The conversation as the next agent gets it: filters take it and return a changed one.
///
/// It is immutable; the `with_` methods return a changed copy that shares everything else.
///
/// | part | content |
/// | --- | --- |
/// | [`input_history`](Self::input_history) | the conversation before the run, or what an earlier filter left of it |
/// | [`pre_handoff_items`](Self::pre_handoff_items) | items of the run before this turn |
/// | [`new_items`](Self::new_items) | items of this turn, including the handoff's call and output; the session gets these |
/// | [`input_items`](Self::input_items) | if set: what the next agent gets *instead* of `new_items` |
///
/// ```
/// use switchboard_core::handoff::HandoffInputData;
///
/// fn forget_this_turn(data: HandoffInputData) -> HandoffInputData {
///     data.with_input_items([])
/// }
/// ```
#[must_use]
pub struct HandoffInputData<C = ()> {
    pub(crate) parts: Parts,
    run_context: RunContext<C>,
    payload: Option<Value>,
    /// The agent that hands the conversation over, in a run.
    from: Option<Arc<str>>,
    pub(crate) orphans: Orphans,
    /// Set if a filter of the library left nothing, as configured.
    pub(super) is_emptied: bool,
    /// The number of leading notes that filters of this handoff have added.
    new_notes: usize,
    /// The redactions that filters of this handoff have applied.
    pub(crate) redactions: Vec<AppliedRedaction>,
    /// The log of what each filter does, where a tracer wants it.
    pub(crate) filter_log: Option<FilterLog>,
}

/// What a filter of a handoff did.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct AppliedFilter {
    /// Its name; see [`Filter::named`](crate::filters::Filter::named).
    pub name: Arc<str>,
    /// The items that the next agent would have seen before it.
    pub before: Vec<Item>,
    /// The items that it left.
    pub after: Vec<Item>,
}

/// A log of filters. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct FilterLog(Arc<Mutex<Vec<AppliedFilter>>>);

impl FilterLog {
    pub(crate) fn add(&self, applied: AppliedFilter) {
        lock(&self.0).push(applied);
    }

    pub(crate) fn take(&self) -> Vec<AppliedFilter> {
        std::mem::take(&mut *lock(&self.0))
    }
}

/// The data of a handoff without the context.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Parts {
    pub(crate) input_history: Input,
    pub(crate) pre_handoff_items: RunItems,
    pub(crate) new_items: RunItems,
    pub(crate) input_items: Option<RunItems>,
    /// Links from items of a nested history to run items, so that they are not repeated.
    #[serde(skip)]
    pub(crate) history_links: Vec<HistoryLink>,
    /// The notes of handoffs among the items, the latest first.
    #[serde(skip)]
    pub(crate) notes: Vec<Item>,
    /// The payload that the next agent may get, where a redaction applies.
    #[serde(skip)]
    pub(crate) redacted_payload: Option<Value>,
}

/// Policy of the library's filters for a call or an output without its counterpart.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Orphans {
    Drop,
    Keep,
}

impl<C> HandoffInputData<C> {
    /// Creates the data as a run would; useful for testing a filter.
    pub fn new(
        input_history: impl Into<Input>,
        pre_handoff_items: impl Into<RunItems>,
        new_items: impl Into<RunItems>,
        run_context: RunContext<C>,
    ) -> Self {
        Self {
            parts: Parts {
                input_history: input_history.into(),
                pre_handoff_items: pre_handoff_items.into(),
                new_items: new_items.into(),
                input_items: None,
                history_links: Vec::new(),
                notes: Vec::new(),
                redacted_payload: None,
            },
            run_context,
            payload: None,
            from: None,
            orphans: Orphans::Drop,
            is_emptied: false,
            new_notes: 0,
            redactions: Vec::new(),
            filter_log: None,
        }
    }

    /// The items that the next agent would see, as one list.
    pub(crate) fn visible_items(&self) -> Vec<Item> {
        let parts = &self.parts;
        let new_items = parts.input_items.as_ref().unwrap_or(&parts.new_items);
        let made = parts.pre_handoff_items.iter().chain(new_items);
        let made = made.map(|made| made.item().clone());
        self.history_items().iter().cloned().chain(made).collect()
    }

    /// The conversation before the run, or what an earlier filter left of it.
    pub fn input_history(&self) -> &Input {
        &self.parts.input_history
    }

    /// Items of the run before this turn.
    pub fn pre_handoff_items(&self) -> &RunItems {
        &self.parts.pre_handoff_items
    }

    /// Items of this turn, including the handoff's call and output.
    pub fn new_items(&self) -> &RunItems {
        &self.parts.new_items
    }

    /// The items that the next agent gets instead of the new items.
    pub fn input_items(&self) -> Option<&RunItems> {
        self.parts.input_items.as_ref()
    }

    /// The run's context.
    pub fn run_context(&self) -> &RunContext<C> {
        &self.run_context
    }

    /// The payload, where the handoff takes one. After a redaction it is without what that hides.
    pub fn payload(&self) -> Option<&Value> {
        self.payload.as_ref()
    }

    /// Sets the payload; useful for testing a filter.
    pub fn with_payload(mut self, payload: Option<Value>) -> Self {
        self.payload = payload;
        self
    }

    /// Sets the agent that hands the conversation over.
    pub(crate) fn with_from(mut self, agent: &Arc<str>) -> Self {
        self.from = Some(agent.clone());
        self
    }

    /// The agent that hands the conversation over; `None` outside of a run.
    pub(crate) fn from(&self) -> Option<&str> {
        self.from.as_deref()
    }

    /// Replaces the history.
    pub fn with_input_history(self, history: impl Into<Input>) -> Self {
        self.with(|parts| parts.input_history = history.into())
    }

    /// Replaces the items from before this turn.
    pub fn with_pre_handoff_items(self, items: impl IntoIterator<Item = RunItem>) -> Self {
        self.with(|parts| parts.pre_handoff_items = items.into_iter().collect())
    }

    /// Replaces the items of this turn, which the session gets.
    pub fn with_new_items(self, items: impl IntoIterator<Item = RunItem>) -> Self {
        self.with(|parts| parts.new_items = items.into_iter().collect())
    }

    /// Sets what the next agent gets instead of the new items. The session gets the new items all
    /// the same.
    pub fn with_input_items(self, items: impl IntoIterator<Item = RunItem>) -> Self {
        self.with(|parts| parts.input_items = Some(items.into_iter().collect()))
    }

    /// The history as items.
    pub fn history_items(&self) -> Items {
        self.parts.input_history.items()
    }

    fn with(mut self, change: impl FnOnce(&mut Parts)) -> Self {
        change(&mut self.parts);
        self
    }

    /// Sets the notes of earlier handoffs.
    pub(crate) fn with_notes(self, notes: &[Item]) -> Self {
        self.with(|parts| parts.notes = notes.to_vec())
    }

    /// The notes of earlier handoffs.
    pub(crate) fn earlier_notes(&self) -> &[Item] {
        &self.parts.notes[self.new_notes..]
    }

    /// Records a note that takes the place of those of earlier handoffs.
    pub(crate) fn add_note(mut self, note: Item) -> Self {
        self.parts.notes.truncate(self.new_notes);
        self.parts.notes.insert(0, note);
        self.new_notes += 1;
        self
    }

    pub(crate) fn with_orphans(mut self, orphans: Orphans) -> Self {
        self.orphans = orphans;
        self
    }

    /// Marks data that a filter of the library left empty.
    pub(crate) fn left_by_library(mut self, was_empty: bool) -> Self {
        self.is_emptied |= !was_empty && self.shows_nothing();
        self
    }

    /// Returns `true` if the next agent would see nothing.
    pub(crate) fn shows_nothing(&self) -> bool {
        let now = self
            .parts
            .input_items
            .as_ref()
            .unwrap_or(&self.parts.new_items);
        let history = matches!(&self.parts.input_history, Input::Items(items) if items.is_empty());
        history && self.parts.pre_handoff_items.is_empty() && now.is_empty()
    }

    pub(crate) fn nested(mut self, history: Items, history_links: Vec<HistoryLink>) -> Self {
        self.parts.input_history = Input::Items(history);
        self.parts.pre_handoff_items = RunItems::new();
        self.parts.input_items = Some(RunItems::new());
        self.parts.history_links = history_links;
        self
    }

    pub(crate) fn into_parts(self) -> Parts {
        self.parts
    }
}

impl_clone! { struct HandoffInputData<C> { parts, run_context, payload, from, orphans, is_emptied, new_notes, redactions, filter_log } }

impl_debug! {
    HandoffInputData<C> {
        input_history: parts.input_history,
        pre_handoff_items: parts.pre_handoff_items,
        new_items: parts.new_items,
        input_items: parts.input_items,
    }
}

impl<C> Serialize for HandoffInputData<C> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.parts.serialize(serializer)
    }
}
