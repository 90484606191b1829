//! The outputs of a conversation, each found by the call it answers.

use std::borrow::Cow;
use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use switchboard_core::Item;

/// Outputs in the order of the conversation. A call takes the first that has its identifier.
#[derive(Default)]
pub(super) struct Outputs<'a> {
    all: Vec<Output<'a>>,
    /// All before this one are taken.
    next: usize,
    /// Where outputs are, by identifier. Calls are mostly answered in their order; then nobody
    /// needs it.
    places: Option<FxHashMap<Cow<'a, str>, VecDeque<usize>>>,
}

struct Output<'a> {
    id: Cow<'a, str>,
    item: &'a Item,
    is_taken: bool,
}

impl<'a> Outputs<'a> {
    /// Adds one. All are there before the first is taken.
    pub(super) fn add(&mut self, id: Cow<'a, str>, item: &'a Item) {
        self.all.push(Output {
            id,
            item,
            is_taken: false,
        });
    }

    /// Takes the first output of this identifier that is left.
    pub(super) fn take(&mut self, id: &str) -> Option<&'a Item> {
        while self
            .all
            .get(self.next)
            .is_some_and(|output| output.is_taken)
        {
            self.next += 1;
        }
        let next = self.all.get(self.next)?;
        let place = match next.id == id {
            true => self.next,
            false => self.place(id)?,
        };
        let output = self.all.get_mut(place)?;
        output.is_taken = true;
        Some(output.item)
    }

    /// The identifiers of outputs that no call has taken.
    pub(super) fn left(&self) -> impl Iterator<Item = &str> {
        let left = self.all.iter().filter(|output| !output.is_taken);
        left.map(|output| &*output.id)
    }

    fn place(&mut self, id: &str) -> Option<usize> {
        let places = self.places.get_or_insert_with(|| {
            let mut places: FxHashMap<_, VecDeque<usize>> = FxHashMap::default();
            for (place, output) in self.all.iter().enumerate() {
                places
                    .entry(output.id.clone())
                    .or_default()
                    .push_back(place);
            }
            places
        });
        let places = places.get_mut(id)?;
        // Some may have been taken in passing.
        while let Some(place) = places.pop_front() {
            if !self.all[place].is_taken {
                return Some(place);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_call_takes_the_first_output_of_its_identifier(
            outputs in proptest::collection::vec("[a-d]?", 0..12),
            calls in proptest::collection::vec("[a-e]?", 0..12),
        ) {
            let items: Vec<Item> = (0..outputs.len())
                .map(|at| Item::function_call_output(&outputs[at], &at.to_string()))
                .collect();
            let mut all = Outputs::default();
            for (id, item) in outputs.iter().zip(&items) {
                all.add(id.into(), item);
            }
            let mut left: Vec<usize> = (0..outputs.len()).collect();
            for id in &calls {
                let first = left.iter().position(|at| outputs[*at] == *id);
                let first = first.map(|first| &items[left.remove(first)]);
                prop_assert_eq!(all.take(id), first);
            }
            let ids: Vec<&str> = left.iter().map(|at| &*outputs[*at]).collect();
            prop_assert_eq!(all.left().collect::<Vec<_>>(), ids);
        }
    }
}
