//! What is found out about an item once, and kept with it for whoever asks again.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// What models over the wire ask of every item with every request. Not part of the public API.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fact {
    /// The Responses API takes the item as it stands, whatever stands around it.
    SentAsItIs,
    /// Its JSON holds no half of a character.
    IsSound,
}

impl Fact {
    /// Two bits for each: whether it is known, and whether it holds.
    const fn bits(self) -> (u8, u8) {
        match self {
            Self::SentAsItIs => (1, 2),
            Self::IsSound => (4, 8),
        }
    }
}

/// Nine bytes that fit where an item had none to spare: the allocator gives an item no more memory
/// than before. They spare a request over 1,000 items of 500 bytes two looks at each: 30 times the
/// instructions of copying them.
///
/// Clones of an item share them. Two threads may find out the same thing at the same time; it stays
/// the same.
#[derive(Debug, Default)]
pub(super) struct Notes {
    facts: AtomicU8,
    /// Where the only text of a message is: 0 as long as nobody looked.
    only_text: AtomicU64,
}

/// There is no text, or more than one.
const NOT_ONE: u64 = u64::MAX;

impl Notes {
    pub(super) fn fact(&self, fact: Fact, find: impl FnOnce() -> bool) -> bool {
        let (known, holds) = fact.bits();
        let facts = self.facts.load(Ordering::Relaxed);
        if facts & known != 0 {
            return facts & holds != 0;
        }
        let found = find();
        let bits = if found { known | holds } else { known };
        self.facts.fetch_or(bits, Ordering::Relaxed);
        found
    }

    /// The start and the end of the only text, which `find` looks for.
    pub(super) fn only_text(
        &self,
        find: impl FnOnce() -> Option<(u32, u32)>,
    ) -> Option<(u32, u32)> {
        let packed = match self.only_text.load(Ordering::Relaxed) {
            0 => {
                let packed = match find() {
                    Some((start, end)) => u64::from(start) << 32 | u64::from(end),
                    None => NOT_ONE,
                };
                self.only_text.store(packed, Ordering::Relaxed);
                packed
            }
            packed => packed,
        };
        #[expect(clippy::cast_possible_truncation, reason = "the two halves of it")]
        (packed != NOT_ONE).then_some(((packed >> 32) as u32, packed as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
    }
}
