//! What the model is shown: the conversation so far, with every call answered and nothing twice.
//!
//! Almost always that is simply the input and then what the run made, so it is kept as one
//! shared list that grows by what each turn adds. Only where a call lacks its output or an item
//! comes up twice is the list made anew.

use rustc_hash::{FxHashMap, FxHashSet};

use super::small_map::SmallMap;
use crate::items::{Input, Item, ItemKind, Items, Pairing, RunItem, RunItems};
use crate::seq::Identities;

/// The prepared list, and what tells whether it can be shown as it is.
#[derive(Debug, Clone, Default)]
pub(super) struct ModelInput {
    items: Items,
    noted: Noted,
}

/// What is in the list, by the identity of items.
#[derive(Debug, Clone, Default)]
struct Noted {
    /// Of which it is known what its items are.
    input: Items,
    made: SmallMap<u64, Made, 4>,
    /// How many calls have no output yet.
    open: usize,
    /// Something that only the whole list can settle.
    needs_care: bool,
}

/// What a run has of an item.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Made {
    Itself,
    /// The call that it will be the output of.
    ItsCall,
}

impl ModelInput {
    /// The view of what a conversation starts from, and what was made since.
    pub(super) fn of(input: &Input, made: &RunItems) -> Self {
        match input {
            Input::Items(items) => Self::new(items, made),
            Input::Text(text) => {
                // Words have no identity. With room for a handoff and an answer: most runs add no more.
                let mut items = Vec::with_capacity(4);
                items.push(Item::words_of_user(text));
                let mut view = Self {
                    items: items.into(),
                    noted: Noted::default(),
                };
                view.extend(made);
                view
            }
        }
    }

    /// The view of an input that a run starts from or a handoff leads to.
    fn new(input: &Items, made: &RunItems) -> Self {
        let items = if identities(input).all(|known| known.are_shown) {
            input.clone()
        } else {
            input.iter().map(Item::without_internal_fields).collect()
        };
        let noted = Noted {
            needs_care: !are_distinct(input),
            input: input.clone(),
            ..Noted::default()
        };
        let mut view = Self { items, noted };
        view.extend(made);
        view
    }

    /// Adds what a turn made.
    pub(super) fn extend<'a>(&mut self, made: impl IntoIterator<Item = &'a RunItem>) {
        let noted = &mut self.noted;
        self.items.extend(made.into_iter().map(|made| {
            let item = made.to_input_item();
            noted.add_made(&item);
            item
        }));
    }

    /// The list as it is, where it can be shown so.
    pub(super) fn ready(&self) -> Option<&Items> {
        (!self.noted.needs_care && self.noted.open == 0).then_some(&self.items)
    }
}

impl Noted {
    fn add_made(&mut self, item: &Item) {
        let identity = item.identity();
        if identity != 0 {
            let before = self.made.insert(identity, Made::Itself);
            self.open -= usize::from(before == Some(Made::ItsCall));
            let is_again = before == Some(Made::Itself) || is_in(&self.input, identity);
            self.needs_care |= is_again;
        }
        if item.kind().output_kind().is_none() {
            return;
        }
        match item.output_identity() {
            0 => self.needs_care = true,
            output => {
                if self.made.get(&output).is_none() {
                    self.made.insert(output, Made::ItsCall);
                    self.open += 1;
                }
            }
        }
    }
}

/// By what the items of a list are told apart, stretch by stretch. It is found once, however many runs
/// begin with the list: over 1,000 items that spares each of them 80,000 instructions.
fn identities(items: &Items) -> impl Iterator<Item = &Identities> {
    let find = |items: &[Item]| {
        let found = items.iter().map(Item::identity);
        let mut sorted: Box<[u64]> = found.filter(|identity| *identity != 0).collect();
        sorted.sort_unstable();
        Identities {
            are_distinct: !has_twice(&sorted),
            are_shown: !items.iter().any(Item::has_internal_fields),
            sorted,
        }
    };
    items.chunks().map(move |stretch| stretch.identities(find))
}

/// Whether an item of this identity is in a list.
fn is_in(items: &Items, identity: u64) -> bool {
    identities(items).any(|known| known.sorted.binary_search(&identity).is_ok())
}

/// Whether no two items of a list have the same identity.
fn are_distinct(items: &Items) -> bool {
    let mut stretches = identities(items);
    let Some(mut largest) = stretches.next() else {
        return true;
    };
    let mut are_distinct = largest.are_distinct;
    let mut others: Vec<u64> = Vec::new();
    for known in stretches {
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
    are_distinct && !has_twice(&others) && !others.iter().any(is_in_largest)
}

fn has_twice(sorted: &[u64]) -> bool {
    sorted.windows(2).any(|pair| pair[0] == pair[1])
}

/// The same list made with care: unanswered calls among what the run made are dropped, and of
/// items that come up twice the latest counts.
pub(super) fn with_care(input: &Items, made: &RunItems) -> Items {
    let mut items: Vec<Item> = input.iter().map(Item::without_internal_fields).collect();
    let made: Vec<Item> = made.iter().map(RunItem::to_input_item).collect();
    items.extend(without_orphans(&made, |_| true));
    latest_only(items).into()
}

/// The items without what lacks its other half.
pub(super) fn paired(items: &Items) -> Items {
    let all: Vec<&Item> = items.iter().collect();
    let mut kept = vec![true; all.len()];
    Pairing::of(&all).drop_orphans(&mut kept);
    if !kept.contains(&false) {
        return items.clone();
    }
    let kept = all.into_iter().zip(kept).filter(|(_, kept)| *kept);
    kept.map(|(item, _)| item.clone()).collect()
}

/// What a run with a session starts from: what the session holds, and then the new input; and where
/// in it the new input begins. Where only the latest items were loaded, outputs whose call was not
/// are left out.
pub(super) fn continued(history: &Items, new: &Items, is_cut: bool) -> (Items, usize) {
    let stored = history.len();
    let all: Vec<Item> = history
        .iter()
        .chain(new)
        .map(Item::without_internal_fields)
        .collect();
    let is_new: FxHashSet<usize> = all.iter().skip(stored).map(Item::address).collect();
    let mut kept = without_orphans(&all, |index| index < stored);
    if is_cut {
        let calls = kept.iter().map(Item::output_identity);
        let calls: FxHashSet<u64> = calls.filter(|output| *output != 0).collect();
        let mut from_history = stored.saturating_sub(all.len() - kept.len());
        kept.retain(|item| {
            let is_stored = from_history > 0;
            from_history = from_history.saturating_sub(1);
            let is_lone = item.kind().is_output() && !calls.contains(&item.identity());
            !(is_stored && is_lone && item.identity() != 0)
        });
    }
    let kept = latest_only(kept);
    let old = kept
        .iter()
        .rposition(|item| !is_new.contains(&item.address()));
    // A stored item may be the very one that is given again.
    let least = kept.len().saturating_sub(new.len());
    (kept.into(), old.map_or(0, |last| last + 1).max(least))
}

/// The items without calls that have no output, and without the reasoning that led to them.
/// Only calls at a place that `may_drop` allows are dropped.
pub(super) fn without_orphans(items: &[Item], may_drop: impl Fn(usize) -> bool) -> Vec<Item> {
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

/// The items with each identity once: the latest value, at the earliest place for what others
/// must follow (calls, reasoning) and at the latest place for the rest.
pub(super) fn latest_only(items: Vec<Item>) -> Vec<Item> {
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
    fn what_is_new_is_known_also_where_it_was_said_before() {
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
        let input = vec![Item::user("hi"), Item::function_call("old", "f", "{}")].into();
        let view = ModelInput::new(&input, &made(&items));
        assert_eq!(view.ready(), None);
        let shown = with_care(&input, &made(&items));
        let expected: Items = input.iter().chain(&items[2..]).cloned().collect();
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_repeated_output_counts_once_with_its_latest_value() {
        let call = Item::function_call("c", "f", "{}");
        let first = Item::function_call_output("c", "1");
        let second = Item::function_call_output("c", "2");
        let kept = latest_only(vec![call.clone(), first, Item::user("x"), second.clone()]);
        assert_eq!(kept, [call, Item::user("x"), second]);
    }

    proptest! {
        #[test]
        fn items_are_told_apart_in_stretches_as_in_one(
            items in prop::collection::vec((0u8..12, any::<bool>()), 0..9),
        ) {
            let mut list = Items::new();
            let mut shared = Vec::new();
            let mut seen = FxHashSet::default();
            let mut is_twice = false;
            for (id, is_cut) in items {
                if is_cut {
                    shared.push(list.clone());
                }
                let item = match id {
                    0..10 => reasoning(&format!("r{id}")),
                    _ => Item::user("hi"),
                };
                is_twice |= item.identity() != 0 && !seen.insert(item.identity());
                list.extend([item]);
                prop_assert_eq!(are_distinct(&list), !is_twice);
            }
            for id in 0..10 {
                let identity = reasoning(&format!("r{id}")).identity();
                prop_assert_eq!(is_in(&list, identity), seen.contains(&identity));
            }
        }
    }

    #[test]
    fn what_is_not_for_a_model_is_not_shown_whichever_stretch_it_is_in() {
        let internal =
            Item::from_json(r#"{"role":"user","content":"a","created_by":"b"}"#).unwrap();
        let mut input: Items = vec![Item::user("hi")].into();
        let _shared = input.clone();
        input.extend([internal]);
        let view = ModelInput::new(&input, &RunItems::new());
        let shown: Vec<&str> = view.ready().unwrap().iter().map(Item::as_json).collect();
        let expected = [
            r#"{"role":"user","content":"hi"}"#,
            r#"{"role":"user","content":"a"}"#,
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_view_grows_by_what_is_added_and_stays_ready() {
        let mut view = ModelInput::new(&vec![Item::user("hi")].into(), &RunItems::new());
        view.extend(&made(&[Item::function_call("c", "f", "{}")]));
        assert_eq!(view.ready(), None);
        view.extend(&made(&[Item::function_call_output("c", "1")]));
        assert_eq!(view.ready().map(Items::len), Some(3));
    }
}
