//! The outputs of a conversation, matched with their calls.

use std::borrow::Cow;
use std::collections::VecDeque;

use rustc_hash::FxHashMap;
use switchboard_core::__private::unquote;
use switchboard_core::Item;
use switchboard_core::items::{ItemKind, Items};

use crate::wire::has_role;

/// The outputs of a conversation that no call has claimed yet. A call claims the first with its
/// identifier.
///
/// Most outputs follow their calls directly. As long as they do, no index is built.
pub(super) struct Outputs<'a> {
    items: &'a Items,
    /// Set if the current call has claimed the next item.
    is_next_claimed: bool,
    /// Built at the first output that does not follow its call.
    index: Option<OutputIndex<'a>>,
}

impl<'a> Outputs<'a> {
    pub(super) fn new(items: &'a Items) -> Self {
        Self {
            items,
            is_next_claimed: false,
            index: None,
        }
    }

    /// Claims the output that follows its call. Returns `false` if another unclaimed one is before it.
    pub(super) fn claim_next(&mut self, output: &'a Item) -> bool {
        match &mut self.index {
            Some(index) => index.claim_if_first(output),
            None => {
                self.is_next_claimed = true;
                true
            }
        }
    }

    /// Claims the output of the call with this identifier, which is the item at `at`.
    pub(super) fn claim(&mut self, id: &str, at: usize) -> Option<&'a Item> {
        self.index_from(at).claim(id)
    }

    /// Returns `true` if every output so far followed its call.
    pub(super) fn are_in_order(&self) -> bool {
        self.index.is_none() && !self.is_next_claimed
    }

    /// Passes the output at `at`.
    pub(super) fn pass(&mut self, at: usize) {
        if !std::mem::take(&mut self.is_next_claimed) {
            self.index_from(at);
        }
    }

    /// The identifiers of outputs that no call has claimed.
    pub(super) fn unclaimed(&self) -> impl Iterator<Item = &str> {
        let outputs = self.index.iter().flat_map(|index| &index.outputs);
        outputs
            .filter(|output| !output.is_claimed)
            .map(|output| &*output.id)
    }

    /// The index, built from item `at` on: all outputs before it are claimed.
    fn index_from(&mut self, at: usize) -> &mut OutputIndex<'a> {
        let items = self.items;
        self.index.get_or_insert_with(|| {
            OutputIndex::new(items.iter().skip(at).filter(|item| is_output(item)))
        })
    }
}

/// Outputs in any order.
struct OutputIndex<'a> {
    outputs: Vec<Output<'a>>,
    /// All before this one are claimed.
    first: usize,
    /// The positions of outputs by identifier, built when a call claims another than the first.
    by_id: Option<FxHashMap<Cow<'a, str>, VecDeque<usize>>>,
}

struct Output<'a> {
    id: Cow<'a, str>,
    item: &'a Item,
    is_claimed: bool,
}

impl<'a> OutputIndex<'a> {
    fn new(outputs: impl Iterator<Item = &'a Item>) -> Self {
        let output = |item| Output {
            id: output_id(item),
            item,
            is_claimed: false,
        };
        Self {
            outputs: outputs.map(output).collect(),
            first: 0,
            by_id: None,
        }
    }

    /// The first unclaimed output.
    fn first(&mut self) -> Option<&mut Output<'a>> {
        let is_claimed = |output: &Output<'_>| output.is_claimed;
        while self.outputs.get(self.first).is_some_and(is_claimed) {
            self.first += 1;
        }
        self.outputs.get_mut(self.first)
    }

    fn claim_if_first(&mut self, output: &Item) -> bool {
        match self.first() {
            Some(first) if std::ptr::eq(first.item, output) => {
                first.is_claimed = true;
                true
            }
            _ => false,
        }
    }

    /// Claims the first unclaimed output with this identifier.
    fn claim(&mut self, id: &str) -> Option<&'a Item> {
        let first = self.first()?;
        let at = if first.id == id {
            self.first
        } else {
            self.position(id)?
        };
        let output = self.outputs.get_mut(at)?;
        output.is_claimed = true;
        Some(output.item)
    }

    fn position(&mut self, id: &str) -> Option<usize> {
        let by_id = self.by_id.get_or_insert_with(|| {
            let mut by_id: FxHashMap<_, VecDeque<usize>> = FxHashMap::default();
            for (at, output) in self.outputs.iter().enumerate() {
                by_id.entry(output.id.clone()).or_default().push_back(at);
            }
            by_id
        });
        let positions = by_id.get_mut(id)?;
        // Outputs that were claimed as the first are still listed.
        std::iter::from_fn(|| positions.pop_front()).find(|at| !self.outputs[*at].is_claimed)
    }
}

/// Returns `true` for the output of a call, also in the form of Chat Completions.
pub(super) fn is_output(item: &Item) -> bool {
    let kind = item.kind();
    let may_lack_id = matches!(
        kind,
        ItemKind::FunctionCallOutput | ItemKind::CustomToolCallOutput
    );
    may_lack_id || is_tool_message(item) || kind.is_output() && item.call_id().is_some()
}

fn is_tool_message(item: &Item) -> bool {
    item.kind() == ItemKind::Message && has_role(item, "tool")
}

/// The identifier of an output's call; empty if it has none.
pub(super) fn output_id(output: &Item) -> Cow<'_, str> {
    let id = output.call_id();
    id.or_else(|| output.field("tool_call_id").and_then(unquote))
        .unwrap_or_default()
}

/// The JSON of an output's content.
pub(super) fn output_json(output: &Item) -> &str {
    let field = if is_tool_message(output) {
        "content"
    } else {
        "output"
    };
    output.field(field).unwrap_or("null")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// In any order of calls (`true`) and outputs.
        #[test]
        fn a_call_claims_the_first_output_with_its_identifier(
            steps in proptest::collection::vec(
                prop_oneof![
                    ("[a-d]?", any::<bool>()).prop_map(|step| vec![step]),
                    "[a-d]?".prop_map(|id| vec![(id.clone(), true), (id, false)]),
                ],
                0..12,
            ),
        ) {
            let steps = steps.concat();
            let item = |(id, is_call): &(String, bool)| {
                if *is_call {
                    Item::function_call(id, "n", "{}")
                } else {
                    Item::function_call_output(id, "o")
                }
            };
            let items: Items = steps.iter().map(item).collect();
            let all: Vec<&Item> = items.iter().collect();
            let mut left: Vec<usize> = (0..steps.len()).filter(|at| !steps[*at].1).collect();
            let mut outputs = Outputs::new(&items);
            for (at, (id, is_call)) in steps.iter().enumerate() {
                if !is_call {
                    outputs.pass(at);
                    continue;
                }
                let first = left.iter().position(|at| steps[*at].0 == *id);
                let first = first.map(|first| all[left.remove(first)]);
                let is_next = steps.get(at + 1) == Some(&(id.clone(), false));
                let claimed = if is_next && outputs.claim_next(all[at + 1]) {
                    Some(all[at + 1])
                } else {
                    outputs.claim(id, at)
                };
                prop_assert_eq!(claimed.map(std::ptr::from_ref), first.map(std::ptr::from_ref));
            }
            let ids: Vec<&str> = left.iter().map(|at| &*steps[*at].0).collect();
            prop_assert_eq!(outputs.unclaimed().collect::<Vec<_>>(), ids);
        }
    }
}
