//! Links between items of a nested history and items of the run.
//!
//! A message that nesting keeps outside the summaries is in the history that the next agent sees
//! and among the items of the run; a conversation that continues with both must not contain it
//! twice. Later filters, handoffs and mappers may drop, move or copy the message, and these
//! functions update the links accordingly.

use std::cell::OnceCell;
use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::summary::PREAMBLE;
use crate::items::{Input, Item, Items, RunItem, RunItems};

/// A run item, and the item of the history that represents it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct HistoryLink {
    pub(crate) input_item: Item,
    pub(crate) run_item: RunItem,
}

/// Returns the links that are still valid after filters have changed the nested history.
pub(crate) fn after_filters(links: &[HistoryLink], history: &Input) -> Vec<HistoryLink> {
    let Input::Items(history) = history else {
        return Vec::new();
    };
    if links.is_empty() {
        return Vec::new();
    }
    let digests: Vec<String> = links
        .iter()
        .map(|link| digest_of(&link.input_item))
        .collect();
    let linked = counts(&digests);
    let history = HistoryIndex::new(history, &digests);
    find_links(links, &digests, history, |history, _, digest| {
        history.count_free(digest) == 1 || history.count(digest) == linked[digest]
    })
}

/// Returns the links after a handoff: those from before that are still valid, and those that the
/// handoff's own nesting added.
pub(crate) fn after_handoff(
    links: &[HistoryLink],
    before: &Input,
    after: &Input,
    added: Vec<HistoryLink>,
    record: &RunItems,
) -> Vec<HistoryLink> {
    let mut kept = after_rewrite(links, before, after);
    if added.is_empty() {
        return kept;
    }
    let recorded: HashMap<usize, &RunItem> = record.iter().map(|made| (made.key(), made)).collect();
    for link in added {
        let is_recorded = recorded
            .get(&link.run_item.key())
            .is_some_and(|made| made.item() == link.run_item.item());
        let is_known = || kept.iter().any(|kept| kept.run_item.ptr_eq(&link.run_item));
        if is_recorded && !is_known() {
            kept.push(link);
        }
    }
    kept
}

/// Returns the links that are still valid after a handoff has rewritten the history.
fn after_rewrite(links: &[HistoryLink], before: &Input, after: &Input) -> Vec<HistoryLink> {
    let (Input::Items(before), Input::Items(after)) = (before, after) else {
        return Vec::new();
    };
    if links.is_empty() {
        return Vec::new();
    }
    let digests: Vec<String> = links
        .iter()
        .map(|link| digest_of(&link.input_item))
        .collect();
    let before = HistoryIndex::new(before, &digests);
    let after = HistoryIndex::new(after, &digests);
    let linked = links.iter().zip(&digests);
    let linked = linked.filter(|(link, _)| before.contains(&link.input_item));
    let linked = counts(linked.map(|(_, digest)| digest));
    find_links(links, &digests, after, |after, link, digest| {
        let count = after.count(digest);
        before.contains(&link.input_item)
            && before.count(digest) == count
            && (count == 1 || count == linked[digest])
    })
}

/// Returns the items of the record that the history does not contain already. Each item of the
/// history represents at most one run item.
pub(crate) fn unlinked<'a>(
    record: &'a RunItems,
    links: &[HistoryLink],
    history: &Items,
) -> Vec<&'a RunItem> {
    if links.is_empty() {
        return record.iter().collect();
    }
    let mut history = HistoryIndex::new(history, &[]);
    let linked: HashMap<usize, &RunItem> = links
        .iter()
        .filter(|link| history.take_same(&link.input_item).is_some())
        .map(|link| (link.run_item.key(), &link.run_item))
        .collect();
    let is_linked = |made: &RunItem| {
        let linked = linked.get(&made.key());
        linked.is_some_and(|linked| linked.item() == made.item())
    };
    record.iter().filter(|made| !is_linked(made)).collect()
}

/// Finds the item of each link in the history: the same item, or an equal one where `accepts_copy`
/// returns `true`. Each item is used once.
fn find_links(
    links: &[HistoryLink],
    digests: &[String],
    mut history: HistoryIndex<'_>,
    accepts_copy: impl Fn(&HistoryIndex<'_>, &HistoryLink, &str) -> bool,
) -> Vec<HistoryLink> {
    let mut found = Vec::new();
    for (link, digest) in links.iter().zip(digests) {
        let mut item = history.take_same(&link.input_item);
        if item.is_none() && accepts_copy(&history, link, digest) {
            item = history.take_equal(digest);
        }
        found.extend(item.map(|input_item| HistoryLink {
            input_item,
            run_item: link.run_item.clone(),
        }));
    }
    found
}

/// The items of a history, each of which can be taken once.
struct HistoryIndex<'a> {
    items: Vec<&'a Item>,
    is_free: Vec<bool>,
    by_address: HashMap<usize, Vec<usize>>,
    /// Computed when it is first needed: most histories contain the same items and no copies.
    by_digest: OnceCell<HashMap<String, Vec<usize>>>,
    /// Set if a digest that is looked up can be that of a summary. If not, summaries, which can
    /// hold the whole conversation, are not digested.
    includes_summaries: bool,
}

impl<'a> HistoryIndex<'a> {
    /// `digests` are those that are looked up later.
    fn new(history: &'a Items, digests: &[String]) -> Self {
        let items: Vec<&Item> = history.iter().collect();
        let mut by_address: HashMap<usize, Vec<usize>> = HashMap::new();
        for (index, item) in items.iter().enumerate() {
            by_address.entry(item.address()).or_default().push(index);
        }
        Self {
            is_free: vec![true; items.len()],
            items,
            by_address,
            by_digest: OnceCell::new(),
            includes_summaries: digests.iter().any(|digest| digest.contains(PREAMBLE)),
        }
    }

    fn contains(&self, item: &Item) -> bool {
        self.by_address.contains_key(&item.address())
    }

    fn count(&self, digest: &str) -> usize {
        self.equal(digest).len()
    }

    fn count_free(&self, digest: &str) -> usize {
        let free = self
            .equal(digest)
            .iter()
            .filter(|index| self.is_free[**index]);
        free.count()
    }

    fn take_same(&mut self, item: &Item) -> Option<Item> {
        let mut same = self.by_address.get(&item.address())?.iter();
        let index = *same.find(|index| self.is_free[**index])?;
        Some(self.take(index))
    }

    fn take_equal(&mut self, digest: &str) -> Option<Item> {
        let mut equal = self.equal(digest).iter();
        let index = *equal.find(|index| self.is_free[**index])?;
        Some(self.take(index))
    }

    fn take(&mut self, index: usize) -> Item {
        self.is_free[index] = false;
        self.items[index].clone()
    }

    /// Returns the indexes of the items that have this digest.
    fn equal(&self, digest: &str) -> &[usize] {
        let by_digest = self.by_digest.get_or_init(|| {
            let mut by_digest: HashMap<String, Vec<usize>> = HashMap::new();
            for (index, item) in self.items.iter().enumerate() {
                if item.summary().is_none() || self.includes_summaries {
                    by_digest.entry(digest_of(item)).or_default().push(index);
                }
            }
            by_digest
        });
        by_digest.get(digest).map_or(&[], Vec::as_slice)
    }
}

fn counts<'a>(digests: impl IntoIterator<Item = &'a String>) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    for digest in digests {
        *counts.entry(digest.as_str()).or_default() += 1;
    }
    counts
}

/// Returns the same text for items that say the same: JSON with sorted keys, in which all forms of
/// an assistant's message are one.
fn digest_of(item: &Item) -> String {
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

    fn link(text: &str) -> HistoryLink {
        let input_item = Item::assistant(text);
        let run_item = RunItem::new(RunItemKind::MessageOutput, "A", input_item.clone());
        HistoryLink {
            input_item,
            run_item,
        }
    }

    #[test]
    fn an_item_that_a_filter_moved_is_still_linked() {
        let kept = link("kept");
        let dropped = link("dropped");
        let history = vec![Item::user("x"), kept.input_item.clone()].into();
        let left = after_filters(&[dropped, kept.clone()], &Input::Items(history));
        assert_eq!(left.len(), 1);
        assert!(left[0].run_item.ptr_eq(&kept.run_item));
    }

    #[test]
    fn a_copy_is_linked_only_if_it_is_unambiguous() {
        let one = link("same");
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
    fn a_message_with_the_text_of_a_summary_is_linked_like_others() {
        let markers = crate::handoff::HistoryMarkers::default();
        let summary = crate::handoff::default_history_mapper(&[Item::user("Hi")], &markers);
        assert!(summary[0].summary().is_some());
        let one = link(&summary[0].text().unwrap());
        let other = link("Hi");
        let history = Input::Items(summary.into());
        let left = after_filters(&[one.clone(), other], &history);
        assert_eq!(left.len(), 1);
        assert!(left[0].run_item.ptr_eq(&one.run_item));
    }

    #[test]
    fn a_link_ends_when_the_history_no_longer_has_the_item() {
        let one = link("said");
        let before = Input::Items(vec![one.input_item.clone()].into());
        let after = Input::Items(vec![Item::assistant("a summary")].into());
        let record = vec![one.run_item.clone()].into();
        assert_eq!(
            after_handoff(&[one], &before, &after, Vec::new(), &record).len(),
            0
        );
    }
}
