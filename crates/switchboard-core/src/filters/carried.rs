//! The one list the next agent sees, for filters that look at it as a whole.
//!
//! A handoff carries three lists over: the history, what the run made before this turn, and what
//! this turn made. The next agent's model sees them as one. Filters that drop or change entries of
//! that list work on [`Carried`]; it puts the pieces back so that the record a session keeps stays
//! whole, and drops the half of a call that would be left alone.

use std::collections::HashSet;

use crate::handoff::HandoffInputData;
use crate::items::{Input, Item, RunItem};

/// What the next agent sees, entry by entry.
pub(super) struct Carried {
    entries: Vec<Entry>,
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
        Self {
            entries: history.chain(before).chain(now).collect(),
            history_was_text: matches!(data.input_history(), Input::Text(_)),
        }
    }

    pub(super) fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Keeps the entries for which `keep` says so, by their place.
    pub(super) fn keep(mut self, keep: impl Fn(usize, &Entry) -> bool) -> Self {
        let mut at = 0;
        self.entries.retain(|entry| {
            at += 1;
            keep(at - 1, entry)
        });
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

    /// Puts items in front of everything.
    pub(super) fn with_front(mut self, items: impl IntoIterator<Item = Item>) -> Self {
        let front = items.into_iter().map(Entry::History);
        self.entries.splice(0..0, front);
        self
    }

    /// The data with this as what the next agent sees. The new items stay as they were: a session
    /// keeps the whole turn.
    pub(super) fn into_data<C>(self, data: HandoffInputData<C>) -> HandoffInputData<C> {
        let (mut history, mut before, mut now) = (Vec::new(), Vec::new(), Vec::new());
        for entry in paired(self.entries) {
            match entry {
                Entry::History(item) => history.push(item),
                Entry::Before(made) => before.push(made),
                Entry::Now(made) => now.push(made),
            }
        }
        let untouched = self.history_was_text
            && matches!((history.as_slice(), data.input_history()), ([item], Input::Text(text))
                if item.text().is_some_and(|said| *said == **text));
        let data = match untouched {
            true => data,
            false => data.with_input_history(history),
        };
        data.with_pre_handoff_items(before).with_input_items(now)
    }
}

/// The entries without calls whose output is gone and outputs whose call is gone.
fn paired(entries: Vec<Entry>) -> Vec<Entry> {
    let mut calls: HashSet<u64> = HashSet::new();
    let mut outputs: HashSet<u64> = HashSet::new();
    for entry in &entries {
        let item = entry.item();
        if item.kind().output_kind().is_some() {
            calls.insert(item.output_identity());
        } else if item.kind().is_output() {
            outputs.insert(item.identity());
        }
    }
    let is_whole = |entry: &Entry| {
        let item = entry.item();
        if item.kind().output_kind().is_some() {
            item.output_identity() == 0 || outputs.contains(&item.output_identity())
        } else if item.kind().is_output() {
            item.identity() == 0 || calls.contains(&item.identity())
        } else {
            true
        }
    };
    entries.into_iter().filter(is_whole).collect()
}
