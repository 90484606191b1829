//! The items a model is shown: the conversation so far, with every call answered and no duplicates.
//!
//! This is nearly always the input followed by the generated items, so it is kept as one shared
//! list that grows with each turn. Only where a call has no output or an item appears twice is the
//! list rebuilt.

use rustc_hash::{FxHashMap, FxHashSet};

use super::Run;
use super::small_map::SmallMap;
use crate::filters::{estimated_tokens, text_tokens};
use crate::items::{Input, Item, ItemKind, Items, Pairing, RunItem, RunItems};
use crate::seq::IdentityIndex;

/// The prepared list, and an index that detects when it must be rebuilt.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelInput {
    items: Items,
    index: ItemIndex,
}

/// The items of the list, by identity.
#[derive(Debug, Clone, Default)]
struct ItemIndex {
    input: Items,
    generated: SmallMap<u64, Seen, 4>,
    /// The number of calls without an output.
    open_calls: usize,
    /// Set once the list must be rebuilt for every request.
    needs_rebuild: bool,
}

/// The kind of item that was seen for an identity.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Seen {
    Item,
    /// The call whose output will have the identity.
    Call,
}

impl Run {
    /// The number of items the current agent's model sees.
    pub(crate) fn shown_items(&self) -> usize {
        let input = match &self.conversation.input {
            Input::Text(_) => 1,
            Input::Items(items) => items.len(),
        };
        input + self.conversation.generated.len()
    }

    /// These items.
    pub(crate) fn conversation_items(&self) -> Vec<Item> {
        let generated = self.conversation.generated.iter();
        let generated = generated.map(|made| made.item().clone());
        let input = self.conversation.input.items();
        input.iter().cloned().chain(generated).collect()
    }

    /// An estimate of the tokens of these items.
    pub(crate) fn shown_tokens(&self) -> usize {
        let input: usize = match &self.conversation.input {
            Input::Text(text) => text_tokens(text),
            Input::Items(items) => items.iter().map(estimated_tokens).sum(),
        };
        let generated = self.conversation.generated.iter();
        input
            + generated
                .map(|made| estimated_tokens(made.item()))
                .sum::<usize>()
    }

    /// The items to show the model: every call has its output, and no item appears twice.
    pub(crate) fn model_input(&mut self) -> Items {
        let conversation = &mut self.conversation;
        let (input, generated) = (&conversation.input, &conversation.generated);
        let prepared = conversation
            .model_input
            .get_or_insert_with(|| ModelInput::new(input, generated));
        match prepared.ready() {
            Some(items) => items.clone(),
            None => rebuilt(&input.items(), generated),
        }
    }

    /// The items that the model is shown in the turn in progress.
    pub(crate) fn turn_input(&self) -> Items {
        let conversation = &self.conversation;
        let prepared = conversation.model_input.as_ref();
        match prepared.and_then(ModelInput::ready) {
            Some(items) => items.clone(),
            None => rebuilt(&conversation.input.items(), &conversation.generated),
        }
    }
}

impl ModelInput {
    /// Prepares the list from the input and the items generated since.
    pub(crate) fn new(input: &Input, generated: &RunItems) -> Self {
        let mut prepared = match input {
            Input::Items(items) => Self::from_items(items),
            Input::Text(text) => Self {
                items: vec![Item::input_message(text)].into(),
                index: ItemIndex::default(),
            },
        };
        prepared.extend(generated);
        prepared
    }

    fn from_items(input: &Items) -> Self {
        let items = if identities(input).all(|chunk| chunk.are_shown) {
            input.clone()
        } else {
            input.iter().map(Item::without_internal_fields).collect()
        };
        let index = ItemIndex {
            needs_rebuild: !are_distinct(input),
            input: input.clone(),
            ..ItemIndex::default()
        };
        Self { items, index }
    }

    /// Adds the items of a turn.
    pub(crate) fn extend<'a>(&mut self, generated: impl IntoIterator<Item = &'a RunItem>) {
        let index = &mut self.index;
        self.items.extend(generated.into_iter().map(|made| {
            let item = made.to_input_item();
            index.add(&item);
            item
        }));
    }

    /// The list, unless it must be rebuilt.
    pub(crate) fn ready(&self) -> Option<&Items> {
        (!self.index.needs_rebuild && self.index.open_calls == 0).then_some(&self.items)
    }
}

impl ItemIndex {
    fn add(&mut self, item: &Item) {
        let identity = item.identity();
        if identity != 0 {
            let before = self.generated.insert(identity, Seen::Item);
            self.open_calls -= usize::from(before == Some(Seen::Call));
            self.needs_rebuild |= before == Some(Seen::Item) || contains(&self.input, identity);
        }
        if item.kind().output_kind().is_none() {
            return;
        }
        match item.output_identity() {
            0 => self.needs_rebuild = true,
            output => {
                if self.generated.get(&output).is_none() {
                    self.generated.insert(output, Seen::Call);
                    self.open_calls += 1;
                }
            }
        }
    }
}

/// The identities of the items, chunk by chunk. They are computed once per chunk, however many runs
/// share it, so that a run does not cost more with a longer history.
fn identities(items: &Items) -> impl Iterator<Item = &IdentityIndex> {
    let find = |items: &[Item]| {
        let found = items.iter().map(Item::identity);
        let mut sorted: Box<[u64]> = found.filter(|identity| *identity != 0).collect();
        sorted.sort_unstable();
        IdentityIndex {
            are_distinct: !has_duplicates(&sorted),
            are_shown: !items.iter().any(Item::has_internal_fields),
            sorted,
        }
    };
    items.chunks().map(move |chunk| chunk.identities(find))
}

/// Returns `true` if an item of the list has this identity.
fn contains(items: &Items, identity: u64) -> bool {
    identities(items).any(|chunk| chunk.sorted.binary_search(&identity).is_ok())
}

/// Returns `true` if no two items of the list have the same identity.
fn are_distinct(items: &Items) -> bool {
    let mut chunks = identities(items);
    let Some(mut largest) = chunks.next() else {
        return true;
    };
    let mut are_distinct = largest.are_distinct;
    let mut others: Vec<u64> = Vec::new();
    for known in chunks {
        are_distinct &= known.are_distinct;
        let is_larger = known.sorted.len() > largest.sorted.len();
        let smaller = if is_larger {
            std::mem::replace(&mut largest, known)
        } else {
            known
        };
        others.extend(&smaller.sorted);
    }
    others.sort_unstable();
    let is_in_largest = |identity: &u64| largest.sorted.binary_search(identity).is_ok();
    are_distinct && !has_duplicates(&others) && !others.iter().any(is_in_largest)
}

fn has_duplicates(sorted: &[u64]) -> bool {
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// The list rebuilt: unanswered calls among the generated items are dropped, and of duplicates the
/// latest is kept.
pub(crate) fn rebuilt(input: &Items, generated: &RunItems) -> Items {
    let mut items: Vec<Item> = input.iter().map(Item::without_internal_fields).collect();
    let generated: Vec<Item> = generated.iter().map(RunItem::to_input_item).collect();
    items.extend(without_unanswered(&generated, |_| true));
    deduplicated(items).into()
}

/// The items without calls that have no output, and outputs that have no call.
pub(crate) fn without_orphans(items: &Items) -> Items {
    let all: Vec<&Item> = items.iter().collect();
    let paired = Pairing::of(&all).paired();
    if !paired.contains(&false) {
        return items.clone();
    }
    let kept = items.iter().zip(paired).filter(|(_, is_paired)| *is_paired);
    kept.map(|(item, _)| item.clone()).collect()
}

/// The input of a run with a session: the history, then the new items; and the index at which the
/// new items begin. If the history is truncated, outputs whose call was not loaded are dropped.
pub(crate) fn continued(history: &Items, new: &Items, is_truncated: bool) -> (Items, usize) {
    let stored = history.len();
    let all: Vec<Item> = history
        .iter()
        .chain(new)
        .map(Item::without_internal_fields)
        .collect();
    let is_new: FxHashSet<usize> = all.iter().skip(stored).map(Item::address).collect();
    let mut kept = without_unanswered(&all, |index| index < stored);
    if is_truncated {
        let calls = kept.iter().map(Item::output_identity);
        let calls: FxHashSet<u64> = calls.filter(|output| *output != 0).collect();
        let mut from_history = stored.saturating_sub(all.len() - kept.len());
        kept.retain(|item| {
            let is_stored = from_history > 0;
            from_history = from_history.saturating_sub(1);
            let is_orphan = item.kind().is_output() && !calls.contains(&item.identity());
            !(is_stored && is_orphan && item.identity() != 0)
        });
    }
    let kept = deduplicated(kept);
    let old = kept
        .iter()
        .rposition(|item| !is_new.contains(&item.address()));
    // A stored item may be given again as new input.
    let least = kept.len().saturating_sub(new.len());
    (kept.into(), old.map_or(0, |last| last + 1).max(least))
}

/// The items without unanswered calls and the reasoning that led to them. Only calls at indexes
/// that `may_drop` accepts are dropped.
fn without_unanswered(items: &[Item], may_drop: impl Fn(usize) -> bool) -> Vec<Item> {
    let answered: FxHashSet<u64> = items
        .iter()
        .filter(|item| item.kind().is_output())
        .map(Item::identity)
        .collect();
    let mut anonymous_outputs = 0_usize;
    let mut dropped = vec![false; items.len()];
    // From the back, so that an anonymous search finds the output that follows it.
    for (index, item) in items.iter().enumerate().rev() {
        let kind = item.kind();
        if kind == ItemKind::ToolSearchOutput && item.call_id().is_none() {
            anonymous_outputs += 1;
        }
        if kind.output_kind().is_none() || !may_drop(index) {
            continue;
        }
        let output = item.output_identity();
        if output == 0 && kind == ItemKind::ToolSearchCall && anonymous_outputs > 0 {
            anonymous_outputs -= 1;
            continue;
        }
        dropped[index] = output == 0 || !answered.contains(&output);
    }
    if !dropped.contains(&true) {
        return items.to_vec();
    }
    // Reasoning belongs to the next item that is not reasoning, and goes with it.
    let mut next_is_dropped = false;
    for (index, item) in items.iter().enumerate().rev() {
        if item.kind() == ItemKind::Reasoning {
            dropped[index] |= next_is_dropped;
        } else {
            next_is_dropped = dropped[index];
        }
    }
    let kept = items.iter().zip(dropped).filter(|(_, dropped)| !dropped);
    kept.map(|(item, _)| item.clone()).collect()
}

/// The items with each identity once: the latest value, at the first position for items that others
/// must follow (calls, reasoning) and at the last position for the rest.
pub(crate) fn deduplicated(items: Vec<Item>) -> Vec<Item> {
    let mut latest: FxHashMap<u64, (usize, usize)> = FxHashMap::default();
    let mut repeated = false;
    for (index, item) in items.iter().enumerate() {
        let identity = item.identity();
        if identity == 0 {
            continue;
        }
        let kind = item.kind();
        let stays_first = kind.output_kind().is_some()
            || matches!(kind, ItemKind::McpApprovalRequest | ItemKind::Reasoning);
        latest
            .entry(identity)
            .and_modify(|(place, value)| {
                repeated = true;
                *value = index;
                if !stays_first {
                    *place = index;
                }
            })
            .or_insert((index, index));
    }
    if !repeated {
        return items;
    }
    let kept =
        items
            .iter()
            .enumerate()
            .filter_map(|(index, item)| match latest.get(&item.identity()) {
                Some((place, value)) if *place == index => Some(items[*value].clone()),
                Some(_) => None,
                None => Some(item.clone()),
            });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::items::RunItemKind;

    fn reasoning(id: &str) -> Item {
        Item::from_json(format!(
            r#"{{"type":"reasoning","id":"{id}","summary":[]}}"#
        ))
        .unwrap()
    }

    #[test]
    fn new_input_is_found_also_where_it_repeats_the_history() {
        let again = Item::user("Again");
        let history: Items = vec![Item::user("First"), again.clone()].into();
        let (all, stored) = continued(&history, &vec![again].into(), false);
        assert_eq!((all.len(), stored), (3, 2));
    }

    fn made(items: &[Item]) -> RunItems {
        let made = items.iter();
        made.map(|item| RunItem::new(RunItemKind::Other, "A", item.clone()))
            .collect()
    }

    #[test]
    fn a_call_without_output_is_not_shown_nor_its_reasoning() {
        let items = [
            reasoning("r1"),
            Item::function_call("c1", "f", "{}"),
            reasoning("r2"),
            Item::function_call("c2", "f", "{}"),
            Item::function_call_output("c2", "done"),
        ];
        let input: Items = vec![Item::user("hi"), Item::function_call("old", "f", "{}")].into();
        let prepared = ModelInput::new(&Input::Items(input.clone()), &made(&items));
        assert_eq!(prepared.ready(), None);
        let shown = rebuilt(&input, &made(&items));
        let expected: Items = input.iter().chain(&items[2..]).cloned().collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_repeated_output_counts_once_with_its_latest_value() {
        let call = Item::function_call("c", "f", "{}");
        let first = Item::function_call_output("c", "1");
        let second = Item::function_call_output("c", "2");
        let kept = deduplicated(vec![call.clone(), first, Item::user("x"), second.clone()]);
        assert_eq!(kept, [call, Item::user("x"), second]);
    }

    proptest! {
        #[test]
        fn duplicates_are_found_across_chunks(
            items in prop::collection::vec((0u8..12, any::<bool>()), 0..9),
        ) {
            let mut list = Items::new();
            let mut shared = Vec::new();
            let mut seen = FxHashSet::default();
            let mut has_duplicate = false;
            for (id, is_cut) in items {
                if is_cut {
                    shared.push(list.clone());
                }
                let item = match id {
                    0..10 => reasoning(&format!("r{id}")),
                    _ => Item::user("hi"),
                };
                has_duplicate |= item.identity() != 0 && !seen.insert(item.identity());
                list.extend([item]);
                prop_assert_eq!(are_distinct(&list), !has_duplicate);
            }
            for id in 0..10 {
                let identity = reasoning(&format!("r{id}")).identity();
                prop_assert_eq!(contains(&list, identity), seen.contains(&identity));
            }
        }
    }

    #[test]
    fn what_is_not_for_a_model_is_not_shown_whichever_stretch_it_contains() {
        let internal =
            Item::from_json(r#"{"role":"user","content":"a","created_by":"b"}"#).unwrap();
        let mut input: Items = vec![Item::user("hi")].into();
        let _shared = input.clone();
        input.extend([internal]);
        let prepared = ModelInput::from_items(&input);
        let shown: Vec<&str> = prepared
            .ready()
            .unwrap()
            .iter()
            .map(Item::as_json)
            .collect();
        let expected = [
            r#"{"role":"user","content":"hi"}"#,
            r#"{"role":"user","content":"a"}"#,
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn the_list_grows_with_each_turn_and_stays_ready() {
        let mut prepared = ModelInput::from_items(&vec![Item::user("hi")].into());
        prepared.extend(&made(&[Item::function_call("c", "f", "{}")]));
        assert_eq!(prepared.ready(), None);
        prepared.extend(&made(&[Item::function_call_output("c", "1")]));
        assert_eq!(prepared.ready().map(Items::len), Some(3));
    }
}
