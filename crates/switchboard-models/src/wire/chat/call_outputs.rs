//! The outputs of a conversation, matched with their calls.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::{iter, ptr};

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

    /// Claims the output that follows its call. Returns `false` if its call gets an earlier one.
    pub(super) fn claim_next(&mut self, output: &'a Item) -> bool {
        let Some(index) = &mut self.index else {
            self.is_next_claimed = true;
            return true;
        };
        match index.get_mut(&output_id(output)) {
            Some(outputs) if outputs.front().is_some_and(|first| ptr::eq(*first, output)) => {
                outputs.pop_front();
                true
            }
            _ => false,
        }
    }

    /// Claims the output of the call with this identifier, which is the item at `at`.
    pub(super) fn claim(&mut self, id: &str, at: usize) -> Option<&'a Item> {
        self.index_from(at).get_mut(id)?.pop_front()
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

    /// The identifiers of outputs that no call has claimed, in any order.
    pub(super) fn unclaimed(&self) -> impl Iterator<Item = &str> {
        let outputs = self.index.iter().flatten();
        outputs.flat_map(|(id, outputs)| iter::repeat_n(&**id, outputs.len()))
    }

    /// The index, built from item `at` on: all outputs before it are claimed.
    fn index_from(&mut self, at: usize) -> &mut OutputIndex<'a> {
        let items = self.items;
        self.index.get_or_insert_with(|| {
            let mut index = OutputIndex::default();
            for output in items.iter().skip(at).filter(|item| is_output(item)) {
                index
                    .entry(output_id(output))
                    .or_default()
                    .push_back(output);
            }
            index
        })
    }
}

/// The unclaimed outputs by the identifiers of their calls, in the order of the conversation.
type OutputIndex<'a> = FxHashMap<Cow<'a, str>, VecDeque<&'a Item>>;

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
            let mut ids: Vec<&str> = left.iter().map(|at| &*steps[*at].0).collect();
            let mut unclaimed: Vec<&str> = outputs.unclaimed().collect();
            ids.sort_unstable();
            unclaimed.sort_unstable();
            prop_assert_eq!(unclaimed, ids);
        }
    }
}
