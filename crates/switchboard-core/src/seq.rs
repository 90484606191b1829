//! A list that shares its storage with every list it was made from.

mod chunks;

use std::iter::Flatten;
use std::sync::Arc;
use std::{fmt, slice, vec};

use chunks::Caches;
pub use chunks::Chunk;
pub(crate) use chunks::IdentityIndex;
use serde::{Deserialize, Serialize};

/// An immutable list whose clones and extensions share their elements.
///
/// Cloning costs one reference count. Extending costs what is added, even while older clones are
/// alive; they do not see the new elements. So a run hands its whole history to the model each turn,
/// and every request can be kept, without copying the history once.
///
/// ```
/// use switchboard_core::items::Seq;
///
/// let mut list: Seq<u32> = Seq::from(vec![1, 2]);
/// let before = list.clone();
/// list.extend([3]);
/// assert_eq!(before.iter().collect::<Vec<_>>(), [&1, &2]);
/// assert_eq!(list.iter().collect::<Vec<_>>(), [&1, &2, &3]);
/// ```
#[derive(Deserialize)]
#[serde(from = "Vec<T>")]
pub struct Seq<T> {
    last: Option<Arc<Segment<T>>>,
    len: usize,
}

struct Segment<T> {
    before: Option<Arc<Segment<T>>>,
    elements: Vec<T>,
    /// The number of segments before this one.
    depth: usize,
    caches: Caches,
}

impl<T> Seq<T> {
    /// Creates an empty list.
    pub const fn new() -> Self {
        Self { last: None, len: 0 }
    }

    /// The number of elements.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Returns `true` if the list has no elements.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Iterates over the elements from first to last.
    pub fn iter(&self) -> Iter<'_, T> {
        let mut front = [].iter();
        // A list of one segment needs no allocation.
        let mut others = Vec::with_capacity(self.last.as_ref().map_or(0, |last| last.depth));
        for segment in self.segments() {
            if segment.before.is_some() {
                others.push(segment.elements.as_slice());
            } else {
                front = segment.elements.iter();
            }
        }
        others.reverse();
        Iter {
            front,
            others: others.into_iter().flatten(),
            left: self.len,
        }
    }

    /// The last element.
    pub fn last(&self) -> Option<&T> {
        self.last.as_ref()?.elements.last()
    }

    /// The element at `index`.
    pub fn get(&self, index: usize) -> Option<&T> {
        let mut end = self.len;
        for segment in self.segments() {
            let start = end - segment.elements.len();
            if index >= start {
                return segment.elements.get(index - start);
            }
            end = start;
        }
        None
    }

    /// Returns `true` if both are the same list in memory, not merely equal.
    pub(crate) fn ptr_eq(&self, other: &Self) -> bool {
        let address = |list: &Self| list.last.as_ref().map(Arc::as_ptr);
        self.len == other.len && address(self) == address(other)
    }

    /// The elements from `start` on, found from the end.
    pub(crate) fn tail(&self, start: usize) -> Vec<&T> {
        let mut tail = Vec::with_capacity(self.len.saturating_sub(start));
        let mut end = self.len;
        for segment in self.segments() {
            if end <= start {
                break;
            }
            end -= segment.elements.len();
            tail.extend(segment.elements[start.saturating_sub(end)..].iter().rev());
        }
        tail.reverse();
        tail
    }

    /// The elements from `start` on, as a list of their own.
    pub fn skip(&self, start: usize) -> Self
    where
        T: Clone,
    {
        if start == 0 {
            return self.clone();
        }
        self.iter().skip(start).cloned().collect()
    }

    /// Keeps the first `len` elements.
    pub(crate) fn truncate(&mut self, len: usize)
    where
        T: Clone,
    {
        if len < self.len {
            *self = self.iter().take(len).cloned().collect();
        }
    }

    /// This list followed by `other`. This list's storage is shared; the elements of `other` are
    /// cloned.
    pub fn concat(&self, other: &Self) -> Self
    where
        T: Clone,
    {
        if self.is_empty() {
            return other.clone();
        }
        let mut joined = self.clone();
        joined.extend(other.iter().cloned());
        joined
    }

    /// The segments from last to first.
    fn segments(&self) -> impl Iterator<Item = &Segment<T>> {
        std::iter::successors(self.last.as_deref(), |segment| segment.before.as_deref())
    }
}

impl<T> Extend<T> for Seq<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, elements: I) {
        // A last segment that no other list shares grows in place.
        if let Some(segment) = self.last.as_mut().and_then(Arc::get_mut) {
            let before = segment.elements.len();
            segment.caches.identities.take();
            segment.elements.extend(elements);
            self.len += segment.elements.len() - before;
            return;
        }
        let elements: Vec<T> = elements.into_iter().collect();
        if elements.is_empty() {
            return;
        }
        let before = self.last.take();
        self.len += elements.len();
        self.last = Some(Arc::new(Segment {
            depth: before.as_ref().map_or(0, |segment| segment.depth + 1),
            before,
            elements,
            caches: Caches::default(),
        }));
    }
}

impl<T> Drop for Segment<T> {
    /// Unlinks a long chain in a loop: dropping it recursively could overflow the stack.
    fn drop(&mut self) {
        let mut next = self.before.take();
        while let Some(segment) = next {
            match Arc::into_inner(segment) {
                Some(mut segment) => next = segment.before.take(),
                None => break,
            }
        }
    }
}

impl_clone! { struct Seq<T> { last, len } }

/// Returns the element at `index`.
///
/// # Panics
/// If `index` is out of bounds; [`Seq::get`] does not panic.
impl<T> std::ops::Index<usize> for Seq<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        self.get(index)
            .unwrap_or_else(|| panic!("there is no element {index} in a list of {}", self.len))
    }
}

impl<T: Clone> IntoIterator for Seq<T> {
    type Item = T;
    type IntoIter = vec::IntoIter<T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter().cloned().collect::<Vec<T>>().into_iter()
    }
}

impl<T> Default for Seq<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: fmt::Debug> fmt::Debug for Seq<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl<T: Serialize> Serialize for Seq<T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

impl<T: PartialEq> PartialEq for Seq<T> {
    fn eq(&self, other: &Self) -> bool {
        self.len == other.len && self.iter().eq(other.iter())
    }
}

impl<T> From<Vec<T>> for Seq<T> {
    fn from(elements: Vec<T>) -> Self {
        elements.into_iter().collect()
    }
}

impl<T> FromIterator<T> for Seq<T> {
    fn from_iter<I: IntoIterator<Item = T>>(elements: I) -> Self {
        let mut list = Self::new();
        list.extend(elements);
        list
    }
}

impl<'a, T> IntoIterator for &'a Seq<T> {
    type Item = &'a T;
    type IntoIter = Iter<'a, T>;

    fn into_iter(self) -> Iter<'a, T> {
        self.iter()
    }
}

/// An iterator over the elements of a [`Seq`].
#[derive(Debug, Clone)]
pub struct Iter<'a, T> {
    /// The elements of the first segment.
    front: slice::Iter<'a, T>,
    others: Flatten<vec::IntoIter<&'a [T]>>,
    left: usize,
}

impl<'a, T> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        self.left = self.left.checked_sub(1)?;
        match self.front.next() {
            None => self.others.next(),
            element => element,
        }
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }

    /// Skips whole segments at once.
    fn nth(&mut self, count: usize) -> Option<&'a T> {
        self.left = self.left.saturating_sub(count).saturating_sub(1);
        let in_front = self.front.len();
        match self.front.nth(count) {
            None => self.others.nth(count - in_front),
            element => element,
        }
    }
}

impl<'a, T> DoubleEndedIterator for Iter<'a, T> {
    fn next_back(&mut self) -> Option<&'a T> {
        self.left = self.left.checked_sub(1)?;
        match self.others.next_back() {
            None => self.front.next_back(),
            element => element,
        }
    }
}

impl<T> std::iter::FusedIterator for Iter<'_, T> {}

impl<T> ExactSizeIterator for Iter<'_, T> {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn it_is_iterated_from_both_ends_like_a_vector(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..4), 0..6),
            from_back in prop::collection::vec(any::<bool>(), 0..30),
        ) {
            let mut list = Seq::new();
            let mut shared = Vec::new();
            for piece in &pieces {
                shared.push(list.clone());
                list.extend(piece.iter().copied());
            }
            let plain: Vec<u8> = pieces.concat();
            let (mut ours, mut theirs) = (list.iter(), plain.iter());
            for from_back in from_back {
                prop_assert_eq!(ours.len(), theirs.len());
                if from_back {
                    prop_assert_eq!(ours.next_back(), theirs.next_back());
                } else {
                    prop_assert_eq!(ours.next(), theirs.next());
                }
            }
            let far = ours.len() * 2 / 3;
            prop_assert_eq!(ours.nth(far), theirs.nth(far));
            prop_assert_eq!(ours.len(), theirs.len());
            prop_assert!(ours.eq(theirs));
            prop_assert_eq!(list.iter().nth(plain.len()), None);
            prop_assert!(list.iter().rev().eq(plain.iter().rev()));
        }
    }

    #[test]
    fn an_extension_does_not_change_older_clones() {
        let mut list = Seq::new();
        let mut snapshots = Vec::new();
        for n in 0..100 {
            list.extend([n, n]);
            snapshots.push(list.clone());
        }
        for (n, snapshot) in snapshots.iter().enumerate() {
            assert_eq!(snapshot.len(), 2 * (n + 1));
            assert_eq!(snapshot.iter().count(), snapshot.len());
            assert_eq!(snapshot.last(), Some(&n));
            assert_eq!(snapshot.get(2 * n), Some(&n));
        }
        assert_eq!(list.get(200), None);
    }

    #[test]
    fn a_chain_of_a_million_segments_drops_without_recursion() {
        let mut list = Seq::new();
        for n in 0..1_000_000 {
            let _shared = list.clone();
            list.extend([n]);
        }
        assert_eq!(list.len(), 1_000_000);
        drop(list);
    }

    #[test]
    fn concat_and_skip_keep_the_order() {
        let a = Seq::from(vec![1, 2]);
        let b = Seq::from(vec![3]);
        assert_eq!(a.concat(&b), Seq::from(vec![1, 2, 3]));
        assert_eq!(a.concat(&b).skip(1), Seq::from(vec![2, 3]));
        assert_eq!(Seq::new().concat(&b), b);
        assert_eq!(a.concat(&b).tail(1), [&2, &3]);
        assert_eq!(a.concat(&b).tail(2), [&3]);
        assert!(a.concat(&b).tail(3).is_empty());
    }
}
