//! The outputs of a conversation, each found by the call it answers.

use std::borrow::Cow;
use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use switchboard_core::{Item, ItemKind, Items};

use crate::wire::lenient::text;

/// Outputs in the order of the conversation. A call takes the first that has its identifier.
///
/// Most calls are answered by the item right after them. As long as it is so, every output that has
/// come is taken, and nobody needs to know what else will come.
pub(super) struct Outputs<'a> {
    items: &'a Items,
    /// The call before took the item that comes now.
    is_next_taken: bool,
    /// Those that came or will come, from the first on that does not answer the item before it.
    rest: Option<Rest<'a>>,
}

impl<'a> Outputs<'a> {
    pub(super) fn of(items: &'a Items) -> Self {
        Self {
            items,
            is_next_taken: false,
            rest: None,
        }
    }

    /// Takes the output right after a call, which has its identifier, where no other is left before
    /// it; whether it was taken.
    pub(super) fn take_next(&mut self, output: &'a Item) -> bool {
        match &mut self.rest {
            Some(rest) => rest.take_if_first(output),
            None => {
                self.is_next_taken = true;
                true
            }
        }
    }

    /// Takes the output of the call of this identifier that stands at `place`.
    pub(super) fn take(&mut self, id: &str, place: usize) -> Option<&'a Item> {
        if self.rest.is_none() {
            self.look_from(place);
        }
        self.rest.as_mut()?.take(id)
    }

    /// Whether every output so far was taken by the call before it.
    pub(super) fn are_in_order(&self) -> bool {
        self.rest.is_none() && !self.is_next_taken
    }

    /// Goes past the output at `place`.
    pub(super) fn pass(&mut self, place: usize) {
        let is_taken = std::mem::take(&mut self.is_next_taken);
        if !is_taken && self.rest.is_none() {
            self.look_from(place);
        }
    }

    /// The identifiers of outputs that no call has taken.
    pub(super) fn left(&self) -> impl Iterator<Item = &str> {
        self.rest.iter().flat_map(Rest::left)
    }

    /// All outputs before `place` are taken.
    fn look_from(&mut self, place: usize) {
        let outputs = self.items.iter().skip(place).filter(|item| is_output(item));
        self.rest = Some(Rest::of(outputs));
    }
}

/// Outputs that may stand anywhere.
struct Rest<'a> {
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

impl<'a> Rest<'a> {
    fn of(outputs: impl Iterator<Item = &'a Item>) -> Self {
        let output = |item| Output {
            id: output_id(item),
            item,
            is_taken: false,
        };
        Self {
            all: outputs.map(output).collect(),
            next: 0,
            places: None,
        }
    }

    /// The first output that is left.
    fn first(&mut self) -> Option<&mut Output<'a>> {
        let is_taken = |output: &Output<'_>| output.is_taken;
        while self.all.get(self.next).is_some_and(is_taken) {
            self.next += 1;
        }
        self.all.get_mut(self.next)
    }

    fn take_if_first(&mut self, output: &Item) -> bool {
        match self.first() {
            Some(first) if std::ptr::eq(first.item, output) => {
                first.is_taken = true;
                true
            }
            _ => false,
        }
    }

    /// Takes the first output of this identifier that is left.
    fn take(&mut self, id: &str) -> Option<&'a Item> {
        let next = self.first()?;
        let place = if next.id == id {
            self.next
        } else {
            self.place(id)?
        };
        let output = self.all.get_mut(place)?;
        output.is_taken = true;
        Some(output.item)
    }

    fn left(&self) -> impl Iterator<Item = &str> {
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

/// Whether an item answers a call. Some people write it as Chat Completions does.
pub(super) fn is_output(item: &Item) -> bool {
    let kind = item.kind();
    let may_lack_id = matches!(
        kind,
        ItemKind::FunctionCallOutput | ItemKind::CustomToolCallOutput
    );
    may_lack_id || is_tools(item) || kind.is_output() && item.call_id().is_some()
}

fn is_tools(item: &Item) -> bool {
    item.kind() == ItemKind::Message && item.is_of_tool()
}

/// The identifier of the call that an output answers; empty where it has none.
pub(super) fn output_id(output: &Item) -> Cow<'_, str> {
    output.call_id().unwrap_or_else(|| {
        let id = output.field("tool_call_id").and_then(text);
        id.unwrap_or_default().into()
    })
}

/// What an output says, in JSON.
pub(super) fn output_json(output: &Item) -> &str {
    let json = if is_tools(output) {
        output.content_json()
    } else {
        output.output_json()
    };
    json.unwrap_or("null")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In any order of calls (`true`) and outputs.
        #[test]
        fn a_call_takes_the_first_output_of_its_identifier(
            steps in proptest::collection::vec(
                prop_oneof![
                    ("[a-d]?", any::<bool>()).prop_map(|step| vec![step]),
                    "[a-d]?".prop_map(|id| vec![(id.clone(), true), (id, false)]),
                ],
                0..12,
            ),
        ) {
            let steps = steps.concat();
            let item = |(id, is_call): &(String, bool)| if *is_call { Item::function_call(id, "n", "{}") } else { Item::function_call_output(id, "o") };
            let items: Items = steps.iter().map(item).collect();
            let all: Vec<&Item> = items.iter().collect();
            let mut left: Vec<usize> = (0..steps.len()).filter(|at| !steps[*at].1).collect();
            let mut outputs = Outputs::of(&items);
            for (at, (id, is_call)) in steps.iter().enumerate() {
                if !is_call {
                    outputs.pass(at);
                    continue;
                }
                let first = left.iter().position(|at| steps[*at].0 == *id);
                let first = first.map(|first| all[left.remove(first)]);
                let is_next = steps.get(at + 1) == Some(&(id.clone(), false));
                let taken = if is_next && outputs.take_next(all[at + 1]) { Some(all[at + 1]) } else { outputs.take(id, at) };
                prop_assert_eq!(taken.map(std::ptr::from_ref), first.map(std::ptr::from_ref));
            }
            let ids: Vec<&str> = left.iter().map(|at| &*steps[*at].0).collect();
            prop_assert_eq!(outputs.left().collect::<Vec<_>>(), ids);
        }
    }
}
