//! Whether what code of the user's left of a conversation can be shown to a model.

use std::collections::HashSet;

use super::HandoffInputData;
use super::history::{HistoryMarkers, flattened};
use crate::items::{Input, Item, ItemKind, Pairing, RunItem, RunItems};

/// What a filter or a mapper was given, to hold against what it left.
pub(crate) struct Given {
    history: Input,
    before: RunItems,
    now: RunItems,
}

/// What is wrong with what was left.
#[derive(Debug)]
pub(crate) enum Unsound {
    /// Something was said, and nothing is left to show.
    Nothing,
    /// The item at this place says neither what it is nor who speaks.
    Nameless(usize),
}

impl Given {
    pub(crate) fn of<C>(data: &HandoffInputData<C>) -> Self {
        Self {
            history: data.input_history().clone(),
            before: data.pre_handoff_items().clone(),
            now: data.new_items().clone(),
        }
    }

    /// Looks at what was left of it. Returns how many calls and outputs the model would be shown
    /// without their other half; they are passed on as given.
    ///
    /// It costs what is left; what was given is looked at only where something seems wrong.
    pub(crate) fn check<C>(
        &self,
        left: &HandoffInputData<C>,
        markers: &HistoryMarkers,
    ) -> Result<usize, Unsound> {
        let history = left.history_items();
        let now = left.input_items().unwrap_or_else(|| left.new_items());
        let made = left.pre_handoff_items().iter().chain(now);
        let items: Vec<&Item> = history.iter().chain(made.map(RunItem::item)).collect();
        // Most filters leave no calls at all; then nothing has another half.
        let is_use = |item: &&Item| item.kind().output_kind().is_some() || item.kind().is_output();
        let ties = items.iter().any(is_use).then(|| Pairing::of(&items));
        let is_half = |at: usize| ties.as_ref().is_some_and(|ties| ties.is_half(at));
        // Calls that the run made and nobody answered are not shown.
        let is_shown = |at: usize| {
            at < history.len() || !is_half(at) || items[at].kind().output_kind().is_none()
        };
        let mut shown = (0..items.len()).filter(|at| is_shown(*at)).peekable();
        if shown.peek().is_none() && !left.is_emptied() && self.says_something() {
            return Err(Unsound::Nothing);
        }
        if let Some(at) = self.first_nameless(&items, markers) {
            return Err(Unsound::Nameless(at));
        }
        let is_left_over = |at: &usize| is_half(*at) && items[*at].kind() != ItemKind::Reasoning;
        Ok(shown.filter(is_left_over).count())
    }

    /// Whether anything was said before this turn.
    fn says_something(&self) -> bool {
        let made = self.before.iter().map(RunItem::item);
        let is_said = |item: &Item| !item.kind().is_tool_use();
        self.history.items().iter().chain(made).any(is_said)
    }

    /// The first item without a name that was not there before: what the user or a provider sent is
    /// passed on, whatever it is.
    fn first_nameless(&self, items: &[&Item], markers: &HistoryMarkers) -> Option<usize> {
        let is_nameless = |item: &Item| item.type_name().is_none() && item.role().is_none();
        let nameless = items.iter().enumerate();
        let mut nameless = nameless.filter(|(_, item)| is_nameless(item)).peekable();
        nameless.peek()?;
        let made = self.before.iter().chain(&self.now);
        let given = flattened(&self.history.items(), markers).into_iter();
        let given = given.chain(made.map(|made| made.item().clone()));
        let given: HashSet<String> = given
            .filter(is_nameless)
            .map(|item| item.to_input().as_json().to_owned())
            .collect();
        let mut added = nameless.filter(|(_, item)| !given.contains(item.to_input().as_json()));
        added.next().map(|(at, _)| at)
    }
}
