//! What a handoff carries over, as filters see it.

use std::fmt;

use serde_json::Value;

use super::owned::Owned;
use crate::context::RunContext;
use crate::items::{Input, Items, RunItem, RunItems};

/// What a handoff would carry over to the next agent: filters take one and return one.
///
/// It never changes; the `with_` methods make a changed copy that shares everything else.
///
/// | part | what it holds |
/// | --- | --- |
/// | [`input_history`](Self::input_history) | the conversation before the run, or what an earlier filter made of it |
/// | [`pre_handoff_items`](Self::pre_handoff_items) | what the run made before this turn |
/// | [`new_items`](Self::new_items) | what this turn made, the handoff's call and output among it; a session keeps these |
/// | [`input_items`](Self::input_items) | if set: what the next agent sees *instead* of `new_items` |
///
/// ```
/// use switchboard_core::HandoffInputData;
///
/// fn forget_this_turn(data: HandoffInputData) -> HandoffInputData {
///     data.with_input_items([])
/// }
/// ```
pub struct HandoffInputData<C = ()> {
    input_history: Input,
    pre_handoff_items: RunItems,
    new_items: RunItems,
    input_items: Option<RunItems>,
    run_context: RunContext<C>,
    payload: Option<Value>,
    /// Which items of the history stand for run items, so that they are not repeated.
    owned: Vec<Owned>,
    halves: Halves,
    /// Whether a filter of the library left nothing, as it was told to.
    is_emptied: bool,
}

/// What the library's filters do with an item whose other half is gone.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) enum Halves {
    #[default]
    Fall,
    Stay,
}

impl<C> HandoffInputData<C> {
    /// Data of a handoff, as a run would make it; useful for testing a filter.
    pub fn new(
        input_history: impl Into<Input>,
        pre_handoff_items: impl Into<RunItems>,
        new_items: impl Into<RunItems>,
        run_context: RunContext<C>,
    ) -> Self {
        Self {
            input_history: input_history.into(),
            pre_handoff_items: pre_handoff_items.into(),
            new_items: new_items.into(),
            input_items: None,
            run_context,
            payload: None,
            owned: Vec::new(),
            halves: Halves::default(),
            is_emptied: false,
        }
    }

    /// The conversation before the run, or what an earlier filter made of it.
    pub fn input_history(&self) -> &Input {
        &self.input_history
    }

    /// What the run made before this turn.
    pub fn pre_handoff_items(&self) -> &RunItems {
        &self.pre_handoff_items
    }

    /// What this turn made, the handoff's call and output among it.
    pub fn new_items(&self) -> &RunItems {
        &self.new_items
    }

    /// What the next agent sees instead of the new items.
    pub fn input_items(&self) -> Option<&RunItems> {
        self.input_items.as_ref()
    }

    /// The run's context.
    pub fn run_context(&self) -> &RunContext<C> {
        &self.run_context
    }

    /// What the model sent along, where the handoff takes a payload.
    pub fn payload(&self) -> Option<&Value> {
        self.payload.as_ref()
    }

    /// The same with a payload; useful for testing a filter.
    #[must_use]
    pub fn with_payload(mut self, payload: Option<Value>) -> Self {
        self.payload = payload;
        self
    }

    /// The same with another history.
    #[must_use]
    pub fn with_input_history(mut self, history: impl Into<Input>) -> Self {
        self.input_history = history.into();
        self
    }

    /// The same with other items from before this turn.
    #[must_use]
    pub fn with_pre_handoff_items(mut self, items: impl IntoIterator<Item = RunItem>) -> Self {
        self.pre_handoff_items = items.into_iter().collect();
        self
    }

    /// The same with other items of this turn. A session keeps what is given here.
    #[must_use]
    pub fn with_new_items(mut self, items: impl IntoIterator<Item = RunItem>) -> Self {
        self.new_items = items.into_iter().collect();
        self
    }

    /// The same, with the next agent seeing these instead of the new items. A session keeps the
    /// new items all the same.
    #[must_use]
    pub fn with_input_items(mut self, items: impl IntoIterator<Item = RunItem>) -> Self {
        self.input_items = Some(items.into_iter().collect());
        self
    }

    /// The history as items.
    pub fn history_items(&self) -> Items {
        self.input_history.items()
    }

    pub(crate) fn halves(&self) -> Halves {
        self.halves
    }

    pub(crate) fn with_halves(mut self, halves: Halves) -> Self {
        self.halves = halves;
        self
    }

    pub(crate) fn is_emptied(&self) -> bool {
        self.is_emptied
    }

    /// The same, as a filter of the library left it.
    pub(crate) fn left_by_library(mut self, was_empty: bool) -> Self {
        self.is_emptied |= !was_empty && self.shows_nothing();
        self
    }

    /// Whether the next agent would see nothing.
    pub(crate) fn shows_nothing(&self) -> bool {
        let now = self.input_items.as_ref().unwrap_or(&self.new_items);
        let history = matches!(&self.input_history, Input::Items(items) if items.is_empty());
        history && self.pre_handoff_items.is_empty() && now.is_empty()
    }

    pub(crate) fn nested(mut self, history: Items, owned: Vec<Owned>) -> Self {
        self.input_history = Input::Items(history);
        self.pre_handoff_items = RunItems::new();
        self.input_items = Some(RunItems::new());
        self.owned = owned;
        self
    }

    pub(crate) fn into_parts(self) -> Parts {
        Parts {
            input_history: self.input_history,
            pre_handoff_items: self.pre_handoff_items,
            new_items: self.new_items,
            input_items: self.input_items,
            owned: self.owned,
        }
    }
}

/// What a handoff carries over, free of the context.
#[derive(Debug)]
pub(crate) struct Parts {
    pub(crate) input_history: Input,
    pub(crate) pre_handoff_items: RunItems,
    pub(crate) new_items: RunItems,
    pub(crate) input_items: Option<RunItems>,
    pub(crate) owned: Vec<Owned>,
}

impl<C> Clone for HandoffInputData<C> {
    fn clone(&self) -> Self {
        Self {
            input_history: self.input_history.clone(),
            pre_handoff_items: self.pre_handoff_items.clone(),
            new_items: self.new_items.clone(),
            input_items: self.input_items.clone(),
            run_context: self.run_context.clone(),
            payload: self.payload.clone(),
            owned: self.owned.clone(),
            halves: self.halves,
            is_emptied: self.is_emptied,
        }
    }
}

impl<C> fmt::Debug for HandoffInputData<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandoffInputData")
            .field("input_history", &self.input_history)
            .field("pre_handoff_items", &self.pre_handoff_items)
            .field("new_items", &self.new_items)
            .field("input_items", &self.input_items)
            .finish_non_exhaustive()
    }
}
