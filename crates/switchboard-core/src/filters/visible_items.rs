//! The items that the next agent sees, as one list.
//!
//! A handoff carries three lists over: the history, the items that the run made before this turn,
//! and the items of this turn. The next agent's model sees them as one. Filters that drop or change
//! items of it work on [`VisibleItems`], which drops orphans ([`Pairing`]) and leaves the items that
//! a session stores untouched.

use super::Filter;
use crate::handoff::{HandoffInputData, Orphans};
use crate::items::{Input, Item, Pairing, RunItem};

/// The items that the next agent sees.
pub(super) struct VisibleItems {
    entries: Vec<Entry>,
    kept: Vec<bool>,
    pairing: Pairing,
    prepended: Option<Item>,
}

/// Creates a filter from a function that changes the visible items.
pub(super) fn filter<C: 'static>(
    change: impl Fn(VisibleItems) -> VisibleItems + Send + Sync + 'static,
) -> Filter<C> {
    Filter::new(move |data: HandoffInputData<C>| change(VisibleItems::of(&data)).into_data(data))
}

/// An item and the list that it is from.
enum Entry {
    History(Item),
    PreHandoff(RunItem),
    New(RunItem),
}

impl Entry {
    fn item(&self) -> &Item {
        match self {
            Self::History(item) => item,
            Self::PreHandoff(run_item) | Self::New(run_item) => run_item.item(),
        }
    }

    fn with_item(self, item: Item) -> Self {
        match self {
            Self::History(_) => Self::History(item),
            Self::PreHandoff(run_item) => Self::PreHandoff(run_item.with_item(item)),
            Self::New(run_item) => Self::New(run_item.with_item(item)),
        }
    }
}

impl VisibleItems {
    pub(super) fn of<C>(data: &HandoffInputData<C>) -> Self {
        let history = data.history_items();
        let pre_handoff = data.pre_handoff_items().iter().cloned();
        let new = data.input_items().unwrap_or_else(|| data.new_items());
        let entries: Vec<Entry> = (history.iter().cloned().map(Entry::History))
            .chain(pre_handoff.map(Entry::PreHandoff))
            .chain(new.iter().cloned().map(Entry::New))
            .collect();
        let pairing = match data.orphans {
            Orphans::Drop => Pairing::of(&entries.iter().map(Entry::item).collect::<Vec<_>>()),
            Orphans::Keep => Pairing::none(entries.len()),
        };
        Self {
            kept: vec![true; entries.len()],
            entries,
            pairing,
            prepended: None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = &Item> + ExactSizeIterator {
        self.entries.iter().map(Entry::item)
    }

    pub(super) fn pairing(&self) -> &Pairing {
        &self.pairing
    }

    /// Drops the items for which `keep` returns `false`. It gets their index.
    pub(super) fn keep(mut self, keep: impl Fn(usize, &Item) -> bool) -> Self {
        for (index, entry) in self.entries.iter().enumerate() {
            self.kept[index] &= keep(index, entry.item());
        }
        self
    }

    /// Replaces the items for which `replacement` returns another.
    pub(super) fn replace(mut self, mut replacement: impl FnMut(&Item) -> Option<Item>) -> Self {
        let replace = |entry: Entry| match replacement(entry.item()) {
            Some(item) => entry.with_item(item),
            None => entry,
        };
        self.entries = self.entries.into_iter().map(replace).collect();
        self
    }

    /// Puts an item in front of the others.
    pub(super) fn prepend(mut self, item: Item) -> Self {
        self.prepended = Some(item);
        self
    }

    /// Returns `data` with these as the items that the next agent sees. Its new items, which a
    /// session stores, do not change.
    pub(super) fn into_data<C>(mut self, data: HandoffInputData<C>) -> HandoffInputData<C> {
        let was_empty = data.shows_nothing();
        self.pairing.drop_orphans(&mut self.kept);
        let mut history = Vec::from_iter(self.prepended);
        let (mut pre_handoff, mut new) = (Vec::new(), Vec::new());
        let kept = self.entries.into_iter().zip(self.kept);
        for (entry, _) in kept.filter(|(_, is_kept)| *is_kept) {
            match entry {
                Entry::History(item) => history.push(item),
                Entry::PreHandoff(run_item) => pre_handoff.push(run_item),
                Entry::New(run_item) => new.push(run_item),
            }
        }
        // A history that was text stays text unless it changed.
        let is_unchanged = matches!((&*history, data.input_history()), ([item], Input::Text(text))
            if item.text().is_some_and(|item_text| *item_text == **text));
        let data = if is_unchanged {
            data
        } else {
            data.with_input_history(history)
        };
        data.with_pre_handoff_items(pre_handoff)
            .with_input_items(new)
            .left_by_library(was_empty)
    }
}
