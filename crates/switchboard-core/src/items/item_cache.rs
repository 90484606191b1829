//! Data computed once for an item and kept with it.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

/// A search for text to remove from items, as the key under which an empty result is cached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// For these built-in sorts of text and nothing else, a bit for each. A result for several sorts
    /// holds for each of them.
    Sorts(u8),
    /// For patterns of its own, by a number that no other search has.
    Numbered(u32),
    /// Nothing is cached.
    Unknown,
}

impl Search {
    /// A search with a number of its own. Once the numbers are used up, nothing is cached.
    pub(crate) fn numbered() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        Self::after(&LAST)
    }

    fn after(last: &AtomicU32) -> Self {
        let next = |last: u32| last.checked_add(1);
        match last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(last) => Self::Numbered(last + 1),
            Err(_) => Self::Unknown,
        }
    }
}

/// The searches that find nothing in an item: all built-in sorts, and the last two numbers, so that two
/// searches in one team do not evict each other.
///
/// An entry holds for as long as the item lives, so threads may insert at the same time. An entry that
/// is lost is only searched for again.
#[derive(Debug, Default)]
pub(super) struct CleanSearches {
    sorts: AtomicU8,
    /// 0 if there is none.
    numbers: [AtomicU32; 2],
}

impl CleanSearches {
    pub(super) fn contains(&self, search: Search) -> bool {
        match search {
            Search::Sorts(sorts) => sorts & !self.sorts.load(Ordering::Relaxed) == 0,
            Search::Numbered(number) => {
                let mut numbers = self.numbers.iter();
                numbers.any(|known| known.load(Ordering::Relaxed) == number)
            }
            Search::Unknown => false,
        }
    }

    pub(super) fn insert(&self, search: Search) {
        match search {
            Search::Sorts(sorts) => {
                self.sorts.fetch_or(sorts, Ordering::Relaxed);
            }
            Search::Numbered(number) => {
                let [last, before] = &self.numbers;
                before.store(last.swap(number, Ordering::Relaxed), Ordering::Relaxed);
            }
            Search::Unknown => {}
        }
    }
}

/// Metadata of a summary, a message of records between two marker lines. It lets the next summary copy
/// the records.
#[derive(Debug)]
pub(crate) struct Summary {
    /// The lines before and after the records.
    pub(crate) between: [Cow<'static, str>; 2],
    /// The number of records.
    pub(crate) records: usize,
    /// The range of the item's JSON from the first line up to the last.
    pub(crate) place: Range<usize>,
    /// The ranges that are left out of a copy, in order.
    pub(crate) gaps: Vec<Range<usize>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_for_several_sorts_holds_for_each() {
        let clean = CleanSearches::default();
        let search = |sorts: &[u8]| {
            let bits = sorts.iter().map(|sort| 1 << sort);
            Search::Sorts(bits.fold(0, |all, bit: u8| all | bit))
        };
        assert!(clean.contains(search(&[])) && !clean.contains(search(&[0])));
        clean.insert(search(&[0, 3]));
        assert!(clean.contains(search(&[3])) && !clean.contains(search(&[3, 1])));
        clean.insert(Search::Numbered(7));
        clean.insert(search(&[1]));
        assert!(clean.contains(search(&[0, 1, 3])) && clean.contains(Search::Numbered(7)));
        assert!(!clean.contains(search(&[2])));
    }

    #[test]
    fn the_last_two_numbers_are_kept() {
        let clean = CleanSearches::default();
        let most = u32::MAX;
        let contains = |number| clean.contains(Search::Numbered(number));
        clean.insert(Search::Numbered(1));
        clean.insert(Search::Numbered(most));
        assert!(contains(1) && contains(most) && !contains(2));
        clean.insert(Search::Numbered(2));
        assert!(!contains(1) && contains(most) && contains(2));
        clean.insert(Search::Unknown);
        assert!(!clean.contains(Search::Unknown) && !clean.contains(Search::Sorts(15)));
    }

    #[test]
    fn concurrent_inserts_stay_true() {
        let clean = CleanSearches::default();
        let inserted = [
            Search::Sorts(1),
            Search::Sorts(4),
            Search::Numbered(1),
            Search::Numbered(1 << 29),
        ];
        let others = [
            Search::Sorts(2),
            Search::Sorts(5 | 8),
            Search::Numbered(2),
            Search::Numbered((1 << 29) | 1),
        ];
        std::thread::scope(|scope| {
            for search in inserted {
                let clean = &clean;
                scope.spawn(move || {
                    for _ in 0..2000 {
                        clean.insert(search);
                        assert!(!others.iter().any(|other| clean.contains(*other)));
                    }
                });
            }
        });
    }

    #[test]
    fn numbers_run_out_and_are_not_reused() {
        let last = AtomicU32::new(u32::MAX - 1);
        let most = u32::MAX;
        assert_eq!(Search::after(&last), Search::Numbered(most));
        assert_eq!(Search::after(&last), Search::Unknown);
        assert_eq!(Search::after(&last), Search::Unknown);
        assert_ne!(Search::numbered(), Search::numbered());
    }
}
