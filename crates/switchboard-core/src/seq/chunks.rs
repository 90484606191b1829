//! The chunks that a list is stored in, and the caches kept with them.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

use super::Seq;

/// A run of consecutive elements of a [`Seq`], with a cache that its owner fills.
///
/// Lists that share storage share its chunks, and so their caches: what was computed for a chunk is
/// not computed again when a list grows by another one.
pub struct Chunk<'a, T> {
    elements: &'a [T],
    caches: &'a Caches,
}

impl<'a, T> Chunk<'a, T> {
    /// The elements of the chunk.
    pub fn elements(&self) -> &'a [T] {
        self.elements
    }

    /// The chunk's cache, created on first use. `None` if a cache of another type is there already.
    ///
    /// The last chunk of a list may get more elements later. Its cache stays, so a cache must record
    /// how many elements, from the first on, it covers.
    ///
    /// ```
    /// use std::sync::atomic::{AtomicUsize, Ordering};
    /// use switchboard_core::items::Seq;
    ///
    /// #[derive(Default)]
    /// struct Covered(AtomicUsize);
    ///
    /// let mut list = Seq::from(vec!["a", "b"]);
    /// for chunk in list.chunks() {
    ///     let covered = chunk.cache::<Covered>().unwrap();
    ///     covered.0.store(chunk.elements().len(), Ordering::Relaxed);
    /// }
    /// list.extend(["c"]);
    /// let chunk = list.chunks().next().unwrap();
    /// assert_eq!(chunk.cache::<Covered>().unwrap().0.load(Ordering::Relaxed), 2);
    /// assert!(chunk.cache::<String>().is_none());
    /// ```
    pub fn cache<C: Default + Send + Sync + 'static>(&self) -> Option<&'a C> {
        let cache = self.caches.model.get_or_init(|| Box::new(C::default()));
        cache.downcast_ref()
    }

    /// The identities of the elements, computed by `index` on first use.
    pub(crate) fn identities(
        &self,
        index: impl FnOnce(&[T]) -> IdentityIndex,
    ) -> &'a IdentityIndex {
        let identities = &self.caches.identities;
        identities.get_or_init(|| Box::new(index(self.elements)))
    }
}

impl<T: fmt::Debug> fmt::Debug for Chunk<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.elements).finish()
    }
}

/// The identities of a chunk's elements.
#[derive(Debug)]
pub(crate) struct IdentityIndex {
    /// In ascending order, without elements that have no identity.
    pub(crate) sorted: Box<[u64]>,
    /// Set if no identity occurs twice.
    pub(crate) are_distinct: bool,
    /// Set if no element has fields that are hidden from the model.
    pub(crate) are_shown: bool,
}

/// The caches of a segment.
#[derive(Debug, Default)]
pub(super) struct Caches {
    /// Dropped when the segment grows.
    pub(super) identities: OnceLock<Box<IdentityIndex>>,
    model: OnceLock<Box<dyn Any + Send + Sync>>,
}

impl<T> Seq<T> {
    /// The chunks the list is stored in, from first to last.
    pub fn chunks(&self) -> impl Iterator<Item = Chunk<'_, T>> {
        let mut first = None;
        // A list of one segment needs no allocation.
        let mut others = Vec::with_capacity(self.last.as_ref().map_or(0, |last| last.depth));
        for segment in self.segments() {
            let chunk = Chunk {
                elements: &segment.elements,
                caches: &segment.caches,
            };
            if segment.before.is_some() {
                others.push(chunk);
            } else {
                first = Some(chunk);
            }
        }
        first.into_iter().chain(others.into_iter().rev())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    fn chunks(list: &Seq<i32>) -> Vec<Chunk<'_, i32>> {
        list.chunks().collect()
    }

    #[test]
    fn a_cache_stays_with_its_chunk() {
        type Covered = Mutex<usize>;
        let covered = |chunk: &Chunk<'_, i32>| *chunk.cache::<Covered>().unwrap().lock().unwrap();
        let mut list = Seq::from(vec![1, 2]);
        *chunks(&list)[0].cache::<Covered>().unwrap().lock().unwrap() = 2;
        list.extend([3]);
        let older = list.clone();
        list.extend([4, 5]);
        let all = chunks(&list);
        let elements: Vec<&[i32]> = all.iter().map(Chunk::elements).collect();
        assert_eq!(elements, [&[1, 2, 3][..], &[4, 5]]);
        assert_eq!(all.iter().map(covered).collect::<Vec<_>>(), [2, 0]);
        *all[0].cache::<Covered>().unwrap().lock().unwrap() = 3;
        assert_eq!(covered(&chunks(&older)[0]), 3);
        assert!(all[0].cache::<String>().is_none());
        assert!(chunks(&Seq::new()).is_empty());
    }

    #[test]
    fn identities_are_indexed_again_after_a_chunk_has_grown() {
        let index = |elements: &[i32]| IdentityIndex {
            sorted: elements.iter().map(|element| *element as u64).collect(),
            are_distinct: true,
            are_shown: true,
        };
        let mut list = Seq::from(vec![1]);
        assert_eq!(*chunks(&list)[0].identities(index).sorted, [1]);
        list.extend([2]);
        assert_eq!(*chunks(&list)[0].identities(index).sorted, [1, 2]);
        let cached = chunks(&list)[0].identities(|_| unreachable!("they are cached"));
        assert_eq!(*cached.sorted, [1, 2]);
    }
}
