//! Checks the result of a filter or history mapper before a model sees it.

use std::collections::HashSet;

use super::nested_history::{HistoryMarkers, expand_summaries};
use super::{HandoffInputData, Parts};
use crate::items::{Item, ItemKind, Pairing, RunItem};

/// The data that a filter or mapper was given.
pub(crate) struct FilterInput(Parts);

/// The reason why the result of a filter or mapper cannot be used.
#[derive(Debug)]
pub(crate) enum InvalidResult {
    /// There was a conversation, and nothing of it is left.
    Empty,
    /// The item at this index has neither a type nor a role.
    UntypedItem(usize),
}

impl FilterInput {
    pub(crate) fn of<C>(data: &HandoffInputData<C>) -> Self {
        Self(data.parts.clone())
    }

    /// Checks the result for this input. Returns the number of orphaned calls and outputs that the
    /// model would see.
    pub(crate) fn check<C>(
        &self,
        result: &HandoffInputData<C>,
        markers: &HistoryMarkers,
    ) -> Result<usize, InvalidResult> {
        let history = result.history_items();
        let new_items = result.input_items().unwrap_or_else(|| result.new_items());
        let made = result.pre_handoff_items().iter().chain(new_items);
        let items: Vec<&Item> = history.iter().chain(made.map(RunItem::item)).collect();
        // Most filters leave no calls at all; then there is nothing to pair.
        let is_paired =
            |item: &&Item| item.kind().output_kind().is_some() || item.kind().is_output();
        let pairing = items.iter().any(is_paired).then(|| Pairing::of(&items));
        let is_orphan = |index: usize| {
            pairing
                .as_ref()
                .is_some_and(|pairing| pairing.is_orphaned(index))
        };
        // The run does not show a model its own calls that were not answered.
        let is_shown = |index: &usize| {
            *index < history.len()
                || !is_orphan(*index)
                || items[*index].kind().output_kind().is_none()
        };
        let mut shown = (0..items.len()).filter(is_shown).peekable();
        if shown.peek().is_none() && !result.is_emptied && self.has_conversation() {
            return Err(InvalidResult::Empty);
        }
        if let Some(index) = self.first_untyped_item(&items, markers) {
            return Err(InvalidResult::UntypedItem(index));
        }
        let orphans =
            shown.filter(|index| is_orphan(*index) && items[*index].kind() != ItemKind::Reasoning);
        Ok(orphans.count())
    }

    /// Returns `true` if there was anything but tool use before this turn.
    fn has_conversation(&self) -> bool {
        let made = self.0.pre_handoff_items.iter().map(RunItem::item);
        let is_tool_use = |item: &Item| item.kind().is_tool_use();
        !self
            .0
            .input_history
            .items()
            .iter()
            .chain(made)
            .all(is_tool_use)
    }

    /// Returns the index of the first untyped item that was not in the input: items that the user or
    /// a provider sent are passed on, whatever they are.
    fn first_untyped_item(&self, items: &[&Item], markers: &HistoryMarkers) -> Option<usize> {
        let is_untyped = |item: &Item| item.type_name().is_none() && item.role().is_none();
        let mut untyped = (0..items.len())
            .filter(|index| is_untyped(items[*index]))
            .peekable();
        untyped.peek()?;
        let made = self.0.pre_handoff_items.iter().chain(&self.0.new_items);
        let given: HashSet<String> = expand_summaries(&self.0.input_history.items(), markers)
            .into_iter()
            .chain(made.map(|made| made.item().clone()))
            .filter(is_untyped)
            .map(|item| item.to_input().as_json().to_owned())
            .collect();
        untyped.find(|index| !given.contains(items[*index].to_input().as_json()))
    }
}
