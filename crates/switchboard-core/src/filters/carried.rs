//! The one list the next agent sees, for filters that look at it as a whole.
//!
//! A handoff carries three lists over: the history, what the run made before this turn, and what
//! this turn made. The next agent's model sees them as one. Filters that drop or change entries of
//! that list work on [`Carried`]; it puts the pieces back so that the record a session keeps stays
//! whole, and drops what would be left without its other half ([`Pairing`]).

use crate::handoff::{Halves, HandoffInputData};
use crate::items::{Input, Item, Pairing, RunItem};

/// What the next agent sees, entry by entry.
pub(super) struct Carried {
    entries: Vec<Entry>,
    kept: Vec<bool>,
    ties: Pairing,
    front: Vec<Item>,
    history_was_text: bool,
}

pub(super) enum Entry {
    History(Item),
    Before(RunItem),
    Now(RunItem),
}

impl Entry {
    pub(super) fn item(&self) -> &Item {
        match self {
            Self::History(item) => item,
            Self::Before(made) | Self::Now(made) => made.item(),
        }
    }

    fn with_item(self, item: Item) -> Self {
        match self {
            Self::History(_) => Self::History(item),
            Self::Before(made) => Self::Before(made.with_item(item)),
            Self::Now(made) => Self::Now(made.with_item(item)),
        }
    }
}

impl Carried {
    pub(super) fn of<C>(data: &HandoffInputData<C>) -> Self {
        let now = data.input_items().unwrap_or_else(|| data.new_items());
        let history = data.history_items();
        let history = history.iter().cloned().map(Entry::History);
        let before = data.pre_handoff_items().iter().cloned().map(Entry::Before);
        let now = now.iter().cloned().map(Entry::Now);
        let entries: Vec<Entry> = history.chain(before).chain(now).collect();
        let ties = match data.halves() {
            Halves::Fall => Pairing::of(&entries.iter().map(Entry::item).collect::<Vec<_>>()),
            Halves::Stay => Pairing::none(entries.len()),
        };
        Self {
            kept: vec![true; entries.len()],
            entries,
            ties,
            front: Vec::new(),
            history_was_text: matches!(data.input_history(), Input::Text(_)),
        }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// What belongs together among the entries.
    pub(super) fn ties(&self) -> &Pairing {
        &self.ties
    }

    /// Keeps the entries for which `keep` says so, by their place.
    pub(super) fn keep(mut self, keep: impl Fn(usize, &Entry) -> bool) -> Self {
        for (at, entry) in self.entries.iter().enumerate() {
            self.kept[at] &= keep(at, entry);
        }
        self
    }

    /// Replaces the item of every entry for which there is another.
    pub(super) fn replace(mut self, replacement: impl Fn(&Item) -> Option<Item>) -> Self {
        let entries = self.entries.into_iter();
        self.entries = entries
            .map(|entry| match replacement(entry.item()) {
                Some(item) => entry.with_item(item),
                None => entry,
            })
            .collect();
        self
    }

    /// Puts an item in front of everything.
    pub(super) fn with_front(mut self, item: Item) -> Self {
        self.front.insert(0, item);
        self
    }

    /// The data with this as what the next agent sees. The new items stay as they were: a session
    /// keeps the whole turn.
    pub(super) fn into_data<C>(mut self, data: HandoffInputData<C>) -> HandoffInputData<C> {
        let was_empty = data.shows_nothing();
        self.ties.drop_orphans(&mut self.kept);
        let (mut history, mut before, mut now) = (self.front, Vec::new(), Vec::new());
        let kept = self.entries.into_iter().zip(self.kept);
        for (entry, _) in kept.filter(|(_, kept)| *kept) {
            match entry {
                Entry::History(item) => history.push(item),
                Entry::Before(made) => before.push(made),
                Entry::Now(made) => now.push(made),
            }
        }
        let untouched = self.history_was_text
            && matches!((history.as_slice(), data.input_history()), ([item], Input::Text(text))
                if item.text().is_some_and(|said| *said == **text));
        let data = if untouched {
            data
        } else {
            data.with_input_history(history)
        };
        let data = data.with_pre_handoff_items(before).with_input_items(now);
        data.left_by_library(was_empty)
    }
}
