//! The state of a conversation: the positions that its record and its view consist of, and its agent.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::handoff::ReceivedPayload;
use crate::run::ways_back::PriorHandoff;

/// The state that an entry of kind `state` holds, as JSON. It is followed by all items that are appended
/// after it, up to the next state.
///
/// A state that only has another agent refers to the last one that lists its positions, so that it costs the
/// same however many there are.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct State {
    /// The position of the state before this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<u64>,
    /// The agent that has the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) agent: Option<Arc<str>>,
    /// The position of the state whose positions, and everything between it and this one, are those of this
    /// one too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) extends: Option<u64>,
    /// The entries of the current branch.
    #[serde(default, skip_serializing_if = "Ranges::is_empty")]
    pub(super) record: Ranges,
    /// The entries that the agent's model is shown.
    #[serde(default, skip_serializing_if = "Ranges::is_empty")]
    pub(super) view: Ranges,
    /// The notes of handoffs among them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) notes: Vec<u64>,
    /// The position of the run that waits for a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) waiting: Option<u64>,
    /// The handoffs that led to the agent, where it may go back.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) way_back: Vec<PriorHandoff>,
    /// The payload that the agent keeps of the handoff by which it got the conversation.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) received: Option<Arc<ReceivedPayload>>,
}

impl State {
    /// The state with everything that follows it up to `end`, as it would be stored next.
    ///
    /// `at` is its own position; the position where the record begins, if nothing is stored yet.
    pub(super) fn extended(&self, at: Option<u64>, first: u64, end: u64) -> Self {
        let mut next = self.clone();
        let start = at.unwrap_or(first);
        next.record.push(start..end);
        next.view.push(start..end);
        next.previous = at;
        next.extends = self.extends.or(at);
        next.waiting = None;
        next
    }

    /// The state as it is stored, if its positions are those of a state before it and what follows that.
    pub(super) fn shortened(&self) -> Self {
        match self.extends {
            None => self.clone(),
            Some(_) => Self {
                previous: self.previous,
                agent: self.agent.clone(),
                extends: self.extends,
                waiting: self.waiting,
                way_back: self.way_back.clone(),
                received: self.received.clone(),
                ..Self::default()
            },
        }
    }

    /// The state with positions of its own.
    #[must_use]
    pub(super) fn listed(mut self) -> Self {
        self.extends = None;
        self
    }

    /// Returns `true` if the state, which is at position `at`, refers only to entries from `first` on and
    /// before it.
    pub(super) fn is_valid(&self, first: u64, at: u64) -> bool {
        let known = first..at;
        let states = self.previous.iter().chain(&self.extends);
        let mut positions = states.chain(&self.notes).chain(&self.waiting);
        positions.all(|position| known.contains(position))
            && self.record.are_within(&known)
            && self.view.are_within(&known)
    }

    /// The state with all positions counted from `first`.
    pub(super) fn shifted(&self, first: u64) -> Self {
        let shift = |position: u64| position.saturating_sub(first);
        let shift_all = |ranges: &Ranges| {
            let ranges = ranges.0.iter();
            Ranges(
                ranges
                    .map(|(start, end)| (shift(*start), shift(*end)))
                    .collect(),
            )
        };
        Self {
            previous: self.previous.map(shift),
            agent: self.agent.clone(),
            extends: self.extends.map(shift),
            record: shift_all(&self.record),
            view: shift_all(&self.view),
            notes: self.notes.iter().copied().map(shift).collect(),
            waiting: self.waiting.map(shift),
            way_back: self.way_back.clone(),
            received: self.received.clone(),
        }
    }
}

/// Positions in ascending or any other order, as ranges.
///
/// A range may contain entries that hold no item; these are skipped when it is read.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Ranges(Vec<(u64, u64)>);

impl Ranges {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds positions at the end. They are merged with the last range if they follow it.
    pub(super) fn push(&mut self, positions: Range<u64>) {
        if positions.is_empty() {
            return;
        }
        match self.0.last_mut() {
            Some((_, end)) if *end == positions.start => *end = positions.end,
            _ => self.0.push((positions.start, positions.end)),
        }
    }

    pub(super) fn iter(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.0.iter().map(|(start, end)| *start..*end)
    }

    /// The positions from `start` on.
    pub(super) fn since(&self, start: u64) -> Self {
        let mut later = Self::default();
        for range in self.iter() {
            later.push(range.start.max(start)..range.end);
        }
        later
    }

    /// The positions before `end`.
    pub(super) fn until(&self, end: u64) -> Self {
        let mut earlier = Self::default();
        for range in self.iter() {
            earlier.push(range.start..range.end.min(end));
        }
        earlier
    }

    /// Returns `true` if all ranges lie within these positions.
    pub(super) fn are_within(&self, positions: &Range<u64>) -> bool {
        self.0
            .iter()
            .all(|(start, end)| positions.start <= *start && start <= end && *end <= positions.end)
    }

    /// Removes one position.
    pub(super) fn remove(&mut self, position: u64) {
        let ranges = std::mem::take(self);
        for range in ranges.iter() {
            if range.contains(&position) {
                self.push(range.start..position);
                self.push(position + 1..range.end);
            } else {
                self.push(range);
            }
        }
    }
}

impl FromIterator<u64> for Ranges {
    fn from_iter<I: IntoIterator<Item = u64>>(positions: I) -> Self {
        let mut ranges = Self::default();
        for position in positions {
            ranges.push(position..position + 1);
        }
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_that_follow_each_other_are_one_range() {
        let ranges: Ranges = [0, 1, 2, 7, 5, 6].into_iter().collect();
        assert_eq!(ranges, Ranges(vec![(0, 3), (7, 8), (5, 7)]));
        let mut without = ranges;
        without.remove(1);
        assert_eq!(without, Ranges(vec![(0, 1), (2, 3), (7, 8), (5, 7)]));
    }

    #[test]
    fn a_state_includes_what_was_appended_after_the_one_before() {
        let first = State::default().extended(None, 0, 3);
        assert_eq!(first.record, Ranges(vec![(0, 3)]));
        // The state itself is at position 3 and holds no item.
        let second = first.extended(Some(3), 0, 6);
        assert_eq!(second.record, Ranges(vec![(0, 6)]));
        assert_eq!(second.previous, Some(3));
    }
}
