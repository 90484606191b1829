//! What is found out about an item once, and kept with it for whoever asks again.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// What models over the wire ask of every item with every request. Not part of the public API.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The Responses API takes the item as it stands, whatever stands around it.
    SentAsItIs,
    /// Its JSON holds no half of a character.
    IsSound,
    /// What Chat Completions needs of it can be taken as it stands.
    IsUsual,
}

impl Fact {
    /// Two bits for each: whether it is known, and whether it holds.
    const fn bits(self) -> (u64, u64) {
        match self {
            Self::SentAsItIs => (1, 2),
            Self::IsSound => (4, 8),
            Self::IsUsual => (16, 32),
        }
    }
}

/// Eight bytes, which the allocator had given to an item already. They spare a request two looks at
/// each item: with them and the places of fields, a run over HTTP with 1,000 items of 500 bytes went from
/// 8.9 to 0.6 million instructions.
///
/// Clones of an item share them. Two threads may find out the same thing at the same time; it stays
/// the same.
#[derive(Debug, Default)]
pub(super) struct Notes(AtomicU64);

/// Below the place of the only text there are two bits for each fact.
const FACTS: u32 = 6;

/// The bits of the start and of the end of the only text; none as long as nobody looked.
const PLACE: u32 = 29;

/// There is no text, or more than one, or it is too far out.
const NOT_ONE: u64 = u64::MAX >> FACTS;

impl Notes {
    #[inline]
    pub(super) fn fact(&self, fact: Fact, find: impl FnOnce() -> bool) -> bool {
        let (known, holds) = fact.bits();
        let noted = self.0.load(Ordering::Relaxed);
        if noted & known != 0 {
            return noted & holds != 0;
        }
        let found = find();
        let bits = if found { known | holds } else { known };
        self.0.fetch_or(bits, Ordering::Relaxed);
        found
    }

    /// The start and the end of the only text, which `find` looks for.
    pub(super) fn only_text(
        &self,
        find: impl FnOnce() -> Option<(u32, u32)>,
    ) -> Option<(u32, u32)> {
        let packed = match self.0.load(Ordering::Relaxed) >> FACTS {
            0 => {
                let found = find().filter(|(_, end)| end >> PLACE == 0);
                let packed = match found {
                    Some((start, end)) => u64::from(start) << PLACE | u64::from(end),
                    None => NOT_ONE,
                };
                self.0.fetch_or(packed << FACTS, Ordering::Relaxed);
                packed
            }
            packed => packed,
        };
        let half = |bits: u64| u32::try_from(bits & ((1 << PLACE) - 1)).ok();
        match packed {
            NOT_ONE => None,
            packed => Some((half(packed >> PLACE)?, half(packed)?)),
        }
    }
}

/// Who looks for something to take out of items, as far as an item can keep that nothing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Search {
    /// For these known sorts and nothing else, a bit for each. Nothing found of some sorts means
    /// nothing of each of them, whoever looked.
    Sorts(u8),
    /// For what only it knows. It goes by a number of its own.
    Numbered(u32),
    /// Nothing is kept.
    Unknown,
}

impl Search {
    /// How many known sorts there can be.
    const SORTS: u32 = 4;

    /// The bits of a number.
    const BITS: u32 = 30;

    /// A search that nobody else does. After a billion of them there are no numbers left, and then
    /// nothing is kept.
    pub(crate) fn numbered() -> Self {
        static LAST: AtomicU32 = AtomicU32::new(0);
        Self::after(&LAST)
    }

    fn after(last: &AtomicU32) -> Self {
        let next = |last: u32| (last + 1 < 1 << Self::BITS).then_some(last + 1);
        match last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next) {
            Ok(last) => Self::Numbered(last + 1),
            Err(_) => Self::Unknown,
        }
    }

    /// This search, also for one more of the known sorts.
    #[must_use]
    pub(crate) fn and_sort(self, sort: u8) -> Self {
        match self {
            Self::Sorts(sorts) => Self::Sorts(sorts | 1 << sort),
            Self::Numbered(_) | Self::Unknown => Self::numbered(),
        }
    }
}

/// The searches that found nothing in an item: a bit for each known sort, and the last two numbers,
/// so that two searches in one team do not push each other out.
///
/// All of it stays true for as long as the item lives, so any mixture of what two threads write is
/// true as well, and what gets lost between them is only looked for again.
#[derive(Debug, Default)]
pub(super) struct Clean(AtomicU64);

impl Clean {
    pub(super) fn is_of(&self, search: Search) -> bool {
        let noted = self.0.load(Ordering::Relaxed);
        match search {
            Search::Sorts(sorts) => u64::from(sorts) & !noted & ALL_SORTS == 0,
            Search::Numbered(number) => {
                let number = u64::from(number);
                number == last(noted) || number == last_but_one(noted)
            }
            Search::Unknown => false,
        }
    }

    pub(super) fn note(&self, search: Search) {
        match search {
            Search::Sorts(sorts) => {
                self.0
                    .fetch_or(u64::from(sorts) & ALL_SORTS, Ordering::Relaxed);
            }
            Search::Numbered(number) => {
                let noted = self.0.load(Ordering::Relaxed);
                let numbers = last(noted) << Search::BITS | u64::from(number);
                let noted = noted & ALL_SORTS | numbers << Search::SORTS;
                self.0.store(noted, Ordering::Relaxed);
            }
            Search::Unknown => {}
        }
    }
}

const ALL_SORTS: u64 = (1 << Search::SORTS) - 1;

/// The number noted last; 0, which nobody has, where there is none.
fn last(noted: u64) -> u64 {
    noted >> Search::SORTS & ((1 << Search::BITS) - 1)
}

fn last_but_one(noted: u64) -> u64 {
    noted >> (Search::SORTS + Search::BITS)
}

/// What who wrote a summary knows of it: a message of records between two lines. The next one can
/// begin with a copy of its records.
#[derive(Debug)]
pub(crate) struct Summary {
    /// The lines before and after the records.
    pub(crate) between: [Cow<'static, str>; 2],
    pub(crate) records: usize,
    /// Where in the item's JSON everything stands that comes before the line after them.
    pub(crate) place: Range<usize>,
    /// What is left out when it is copied, in order.
    pub(crate) gaps: Vec<Range<usize>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_of_some_sorts_is_nothing_of_each() {
        let clean = Clean::default();
        let search = |sorts: &[u8]| {
            let none = Search::Sorts(0);
            sorts
                .iter()
                .fold(none, |search, sort| search.and_sort(*sort))
        };
        assert!(clean.is_of(search(&[])) && !clean.is_of(search(&[0])));
        clean.note(search(&[0, 3]));
        assert!(clean.is_of(search(&[3])) && !clean.is_of(search(&[3, 1])));
        clean.note(Search::Numbered(7));
        clean.note(search(&[1]));
        assert!(clean.is_of(search(&[0, 1, 3])) && clean.is_of(Search::Numbered(7)));
        assert!(!clean.is_of(search(&[2])));
    }

    #[test]
    fn two_numbers_are_kept() {
        let clean = Clean::default();
        let most = (1 << Search::BITS) - 1;
        let is_of = |number| clean.is_of(Search::Numbered(number));
        clean.note(Search::Numbered(1));
        clean.note(Search::Numbered(most));
        assert!(is_of(1) && is_of(most) && !is_of(2));
        clean.note(Search::Numbered(2));
        assert!(!is_of(1) && is_of(most) && is_of(2));
        clean.note(Search::Unknown);
        assert!(!clean.is_of(Search::Unknown) && !clean.is_of(Search::Sorts(15)));
    }

    #[test]
    fn what_threads_note_at_once_is_true() {
        let clean = Clean::default();
        let noted = [
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
            for search in noted {
                let clean = &clean;
                scope.spawn(move || {
                    for _ in 0..2000 {
                        clean.note(search);
                        assert!(!others.iter().any(|other| clean.is_of(*other)));
                    }
                });
            }
        });
    }

    #[test]
    fn numbers_run_out_and_do_not_come_again() {
        let last = AtomicU32::new((1 << Search::BITS) - 2);
        let most = (1 << Search::BITS) - 1;
        assert_eq!(Search::after(&last), Search::Numbered(most));
        assert_eq!(Search::after(&last), Search::Unknown);
        assert_eq!(Search::after(&last), Search::Unknown);
        assert_ne!(Search::numbered(), Search::numbered());
        let patterns = Search::numbered();
        assert_ne!(patterns.and_sort(0), patterns);
        assert_ne!(patterns.and_sort(0), patterns.and_sort(0));
    }

    #[test]
    fn what_was_found_is_not_looked_for_again() {
        let notes = Notes::default();
        for _ in 0..2 {
            assert!(notes.fact(Fact::SentAsItIs, || true));
            assert!(!notes.fact(Fact::IsSound, || false));
        }
        assert!(notes.fact(Fact::SentAsItIs, || false));
        assert!(!notes.fact(Fact::IsSound, || true));
        assert_eq!(notes.only_text(|| Some((3, 9))), Some((3, 9)));
        assert_eq!(notes.only_text(|| None), Some((3, 9)));
        let none = Notes::default();
        assert_eq!(none.only_text(|| None), None);
        assert_eq!(none.only_text(|| Some((3, 9))), None);
        assert!(none.fact(Fact::IsSound, || true) && notes.fact(Fact::SentAsItIs, || false));
        let far = Notes::default();
        assert_eq!(far.only_text(|| Some((3, 1 << 29))), None);
        let last = Notes::default();
        let place = (0, (1 << 29) - 1);
        assert_eq!(last.only_text(|| Some(place)), Some(place));
    }
}
