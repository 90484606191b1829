//! Reading entries by the ranges of a state.

use std::ops::Range;

use super::entry::{Entry, EntryContent, Head};
use super::view::{Ranges, State};
use super::{Conversation, ConversationError};
use crate::callback::BoxError;

/// Ranges with at most this many entries between them are read at once.
const MAX_GAP: u64 = 64;

/// The least number of entries that is read at once.
const MIN_READ: u64 = 64;

impl Conversation {
    /// The latest state before `end`, and its position. `head.state` is the latest of all.
    ///
    /// Everything that reads the conversation begins with this.
    pub(super) async fn state_at(
        &self,
        head: &Head,
        end: u64,
    ) -> Result<(State, Option<u64>), BoxError> {
        if head.is_encrypted() {
            return Err(ConversationError::encrypted(self.name()).into());
        }
        let mut next = head.state;
        while let Some(at) = next {
            let state = self.read_state(at).await?;
            if at < end {
                return Ok((state, Some(at)));
            }
            // A chain that does not lead back would never end.
            next = state.previous.filter(|previous| *previous < at);
        }
        let mut state = State::default();
        if head.state.is_none() {
            // Conversations of stores that had no states may have an agent.
            state.agent.clone_from(&head.agent);
        }
        Ok((state, None))
    }

    /// Reads a state, with the positions of the one that it refers to.
    async fn read_state(&self, at: u64) -> Result<State, BoxError> {
        let state = self.read_stored_state(at).await?;
        let Some(base) = state.extends.filter(|base| *base < at) else {
            return Ok(state.listed());
        };
        let listed = self.read_stored_state(base).await?.listed();
        let mut whole = listed.extended(Some(base), base, at);
        whole.previous = state.previous;
        whole.agent = state.agent;
        whole.waiting = state.waiting;
        whole.way_back = state.way_back;
        whole.received = state.received;
        Ok(whole)
    }

    async fn read_stored_state(&self, at: u64) -> Result<State, BoxError> {
        let entries = self.store().read_dyn(self.name(), at..at + 1).await?;
        match entries.first().map(|entry| &entry.content) {
            Some(EntryContent::State(json)) => serde_json::from_str(json).map_err(|error| {
                let problem = format!("the state at position {at} is invalid ({error})");
                ConversationError::damaged(self.name(), problem).into()
            }),
            _ => {
                // It may have been cleared or deleted since its head was read.
                if self.head().await?.is_none_or(|head| head.first > at) {
                    return Ok(State::default());
                }
                let problem = format!("there is no state at position {at}");
                Err(ConversationError::damaged(self.name(), problem).into())
            }
        }
    }

    /// The entries of the ranges that are wanted, in their order; with a limit, the last ones.
    pub(super) async fn read_ranges(
        &self,
        ranges: &Ranges,
        limit: Option<usize>,
        is_wanted: impl Fn(&EntryContent) -> bool,
    ) -> Result<Vec<Entry>, BoxError> {
        let limit = limit.unwrap_or(usize::MAX);
        let mut found: Vec<Entry> = Vec::new();
        let mut left: Vec<Range<u64>> = ranges.iter().collect();
        while found.len() < limit
            && let Some(last) = left.pop()
        {
            // Only as much of the last range as is wanted, and more of it in the next round.
            let missing = u64::try_from(limit - found.len()).unwrap_or(u64::MAX);
            let start = last
                .end
                .saturating_sub(missing.max(MIN_READ))
                .max(last.start);
            if start > last.start {
                left.push(last.start..start);
            }
            let end = last.end;
            let mut group = Vec::new();
            group.push(start..end);
            let (mut lowest, mut highest) = (start, last.end);
            while start == last.start
                && let Some(before) = left.last()
                && before.end <= lowest
                && lowest - before.end <= MAX_GAP
                && highest - before.start <= missing.max(MIN_READ)
            {
                lowest = before.start;
                highest = highest.max(before.end);
                group.extend(left.pop());
            }
            let entries = self.entries(lowest..highest).await?;
            let index = |position| entries.partition_point(|entry| entry.position < position);
            for range in group {
                let within = &entries[index(range.start)..index(range.end)];
                let wanted = within
                    .iter()
                    .rev()
                    .filter(|entry| is_wanted(&entry.content));
                found.extend(wanted.take(limit - found.len()).cloned());
            }
        }
        found.reverse();
        Ok(found)
    }
}
