//! Which items of a nested history stand for which items of the run.
//!
//! A message that nesting keeps outside the summary is in two places: in the history the next
//! agent sees, and in the record of the run. Who continues the conversation from both must not
//! find it twice. Later filters, handoffs and mappers may drop, move or copy it; these functions
//! follow it through.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use serde_json::{Value, json};

use super::summary::PREAMBLE;
use crate::items::{Input, Item, Items, RunItem, RunItems};

/// A run item, and the item of the history that stands for it.
#[derive(Debug, Clone)]
pub(crate) struct Owned {
    pub(crate) input_item: Item,
    pub(crate) run_item: RunItem,
}

/// What is still owned after filters have had the nested history.
pub(crate) fn after_filters(declared: &[Owned], history: &Input) -> Vec<Owned> {
    let Input::Items(history) = history else {
        return Vec::new();
    };
    if declared.is_empty() {
        return Vec::new();
    }
    let mut places = Places::new(history);
    let mut digests = Digests::default();
    let declared_counts = digests.count(declared.iter().map(|owned| &owned.input_item));
    let mut found = Vec::new();
    let mut used_by_digest: HashMap<String, usize> = HashMap::new();
    for owned in declared {
        let digest = digests.of(&owned.input_item);
        let mut place = places.take_same(&owned.input_item);
        if place.is_none() {
            let present = places.count_equal(&digest, &mut digests);
            let used = used_by_digest.get(&digest).copied().unwrap_or_default();
            let all_equal_are_owned = declared_counts.get(&digest) == Some(&present);
            if present.saturating_sub(used) == 1 || all_equal_are_owned {
                place = places.take_equal(&digest, &mut digests);
            }
        }
        if let Some(input_item) = place {
            *used_by_digest.entry(digest).or_default() += 1;
            found.push(Owned {
                input_item,
                run_item: owned.run_item.clone(),
            });
        }
    }
    found
}

/// What was owned before a handoff and still is after it rewrote the history.
fn after_rewrite(owned: &[Owned], before: &Input, after: &Input) -> Vec<Owned> {
    let (Input::Items(before), Input::Items(after)) = (before, after) else {
        return Vec::new();
    };
    if owned.is_empty() {
        return Vec::new();
    }
    let mut places = Places::new(after);
    let mut earlier = Places::new(before);
    let mut digests = Digests::default();
    let was_there: Vec<bool> = owned
        .iter()
        .map(|owned| earlier.has_same(&owned.input_item))
        .collect();
    let recoverable = owned.iter().zip(&was_there);
    let recoverable = recoverable.filter(|(_, was_there)| **was_there);
    let recoverable = digests.count(recoverable.map(|(owned, _)| &owned.input_item));
    let mut used_by_digest: HashMap<String, usize> = HashMap::new();
    let mut kept = Vec::new();
    for (owned, was_there) in owned.iter().zip(was_there) {
        let digest = digests.of(&owned.input_item);
        let mut place = places.take_same(&owned.input_item);
        if place.is_none() && was_there {
            let count_before = earlier.count_equal(&digest, &mut digests);
            let count_after = places.count_equal(&digest, &mut digests);
            let owned_equal = recoverable.get(&digest).copied().unwrap_or_default();
            let used = used_by_digest.get(&digest).copied().unwrap_or_default();
            let all_equal_are_owned = count_before == count_after && count_after == owned_equal;
            let only_one = count_before == 1 && count_after == 1;
            if count_after > used && (only_one || all_equal_are_owned) {
                place = places.take_equal(&digest, &mut digests);
            }
        }
        if let Some(input_item) = place {
            *used_by_digest.entry(digest).or_default() += 1;
            kept.push(Owned {
                input_item,
                run_item: owned.run_item.clone(),
            });
        }
    }
    kept
}

/// The ownership after a handoff: what survived, and what the handoff's own nesting added.
pub(crate) fn after_handoff(
    owned: &[Owned],
    before: &Input,
    after: &Input,
    added: Vec<Owned>,
    record: &RunItems,
) -> Vec<Owned> {
    let mut kept = after_rewrite(owned, before, after);
    if added.is_empty() {
        return kept;
    }
    let recorded: HashMap<usize, &RunItem> = record.iter().map(|made| (made.key(), made)).collect();
    let added = added.into_iter().filter(|owned| {
        let recorded = recorded.get(&owned.run_item.key());
        recorded.is_some_and(|made| made.item() == owned.run_item.item())
    });
    for owned in added {
        if !kept
            .iter()
            .any(|kept| kept.run_item.ptr_eq(&owned.run_item))
        {
            kept.push(owned);
        }
    }
    kept
}

/// The record without what the history already carries. Each item of the history stands for one
/// run item at most.
pub(crate) fn not_owned<'a>(
    record: &'a RunItems,
    owned: &[Owned],
    history: &Items,
) -> Vec<&'a RunItem> {
    if owned.is_empty() {
        return record.iter().collect();
    }
    let mut places = Places::new(history);
    let held: HashMap<usize, &RunItem> = owned
        .iter()
        .filter(|owned| places.take_same(&owned.input_item).is_some())
        .map(|owned| (owned.run_item.key(), &owned.run_item))
        .collect();
    let is_held = |made: &RunItem| {
        let held = held.get(&made.key());
        held.is_some_and(|held| held.item() == made.item())
    };
    record.iter().filter(|made| !is_held(made)).collect()
}

/// The items of a history by where they are, each to be taken once.
struct Places {
    items: Vec<Item>,
    free: Vec<bool>,
    by_address: HashMap<usize, Vec<usize>>,
    equal: Option<HashMap<String, Vec<usize>>>,
}

impl Places {
    fn new(history: &Items) -> Self {
        let items: Vec<Item> = history.iter().cloned().collect();
        let mut by_address: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            by_address.entry(item.address()).or_default().push(index);
        }
        Self {
            free: vec![true; items.len()],
            items,
            by_address,
            equal: None,
        }
    }

    fn has_same(&self, item: &Item) -> bool {
        self.by_address.contains_key(&item.address())
    }

    fn take_same(&mut self, item: &Item) -> Option<Item> {
        let indexes = self.by_address.get(&item.address())?;
        let index = *indexes.iter().find(|index| self.free[**index])?;
        Some(self.take(index))
    }

    fn take_equal(&mut self, digest: &str, digests: &mut Digests) -> Option<Item> {
        let indexes = self.equal(digests).get(digest)?.clone();
        let index = indexes.into_iter().find(|index| self.free[*index])?;
        Some(self.take(index))
    }

    fn count_equal(&mut self, digest: &str, digests: &mut Digests) -> usize {
        self.equal(digests).get(digest).map_or(0, Vec::len)
    }

    fn take(&mut self, index: usize) -> Item {
        self.free[index] = false;
        self.items[index].clone()
    }

    /// Indexes by digest. Digests cost, and are only needed once something was copied.
    fn equal(&mut self, digests: &mut Digests) -> &HashMap<String, Vec<usize>> {
        self.equal.get_or_insert_with(|| {
            let mut equal: HashMap<String, Vec<usize>> = HashMap::new();
            for (index, item) in self.items.iter().enumerate() {
                // A summary may hold the whole conversation, and digests of all that is looked for
                // are known by now: it need not be read where none of them can be its own.
                if item.summary().is_none() || digests.are_of_summaries {
                    equal.entry(digests.of(item)).or_default().push(index);
                }
            }
            equal
        })
    }
}

/// What makes two items say the same, computed once per item.
#[derive(Default)]
struct Digests {
    by_address: HashMap<usize, String>,
    /// Whether one of them may be the digest of a summary.
    are_of_summaries: bool,
}

impl Digests {
    fn of(&mut self, item: &Item) -> String {
        match self.by_address.entry(item.address()) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => {
                let digest = new.insert(digest(item));
                self.are_of_summaries |= digest.contains(PREAMBLE);
                digest.clone()
            }
        }
    }

    fn count<'a>(&mut self, items: impl Iterator<Item = &'a Item>) -> HashMap<String, usize> {
        let mut counts = HashMap::new();
        for item in items {
            *counts.entry(self.of(item)).or_default() += 1;
        }
        counts
    }
}

/// The item with its keys in order, and the ways to write an assistant's message made one.
fn digest(item: &Item) -> String {
    let item = item.without_internal_fields();
    let Some(Value::Object(mut fields)) = item.to_value() else {
        return item.as_json().to_owned();
    };
    if fields.get("role").is_some_and(|role| role == "assistant") {
        if let Some(text) = fields.get("content").and_then(Value::as_str) {
            let parts = json!([{"type": "output_text", "text": text}]);
            fields.insert("content".to_owned(), parts);
        }
        let status = fields.get("status").and_then(Value::as_str);
        if status.is_none_or(|status| status == "completed") {
            fields.shift_remove("status");
        }
    }
    let mut value = Value::Object(fields);
    value.sort_all_objects();
    value.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::items::RunItemKind;

    fn owned(text: &str) -> Owned {
        let item = Item::assistant(text);
        let run_item = RunItem::new(RunItemKind::MessageOutput, "A", item.clone());
        Owned {
            input_item: item,
            run_item,
        }
    }

    #[test]
    fn an_item_that_a_filter_moved_is_still_owned() {
        let kept = owned("kept");
        let dropped = owned("dropped");
        let history = vec![Item::user("x"), kept.input_item.clone()].into();
        let left = after_filters(&[dropped, kept.clone()], &Input::Items(history));
        assert_eq!(left.len(), 1);
        assert!(left[0].run_item.ptr_eq(&kept.run_item));
    }

    #[test]
    fn a_copy_is_owned_only_where_it_cannot_be_mistaken() {
        let one = owned("same");
        let copy = Item::from_json(
            r#"{"content":[{"type":"output_text","text":"same"}],"role":"assistant"}"#,
        )
        .unwrap();
        let alone = Input::Items(vec![copy.clone()].into());
        assert_eq!(after_filters(std::slice::from_ref(&one), &alone).len(), 1);
        let twice = Input::Items(vec![copy.clone(), copy].into());
        assert_eq!(after_filters(&[one], &twice).len(), 0);
    }

    #[test]
    fn a_message_with_the_words_of_a_summary_is_owned_like_others() {
        let markers = crate::handoff::HistoryMarkers::default();
        let summary = crate::handoff::default_history_mapper(&[Item::user("Hi")], &markers);
        assert!(summary[0].summary().is_some());
        let one = owned(&summary[0].text().unwrap());
        let other = owned("Hi");
        let history = Input::Items(summary.into());
        let left = after_filters(&[one.clone(), other], &history);
        assert_eq!(left.len(), 1);
        assert!(left[0].run_item.ptr_eq(&one.run_item));
    }

    #[test]
    fn ownership_ends_when_the_history_no_longer_has_the_item() {
        let one = owned("said");
        let before = Input::Items(vec![one.input_item.clone()].into());
        let after = Input::Items(vec![Item::assistant("a summary")].into());
        let record = vec![one.run_item.clone()].into();
        assert_eq!(
            after_handoff(&[one], &before, &after, Vec::new(), &record).len(),
            0
        );
    }
}
