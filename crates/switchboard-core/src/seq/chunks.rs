//! The pieces a list is stored in, and what is known of them.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Seq;

/// Elements that lie side by side. Not part of the public API.
#[doc(hidden)]
#[derive(Debug)]
pub struct Chunk<'a, T> {
    pub elements: &'a [T],
    known: &'a Known,
}

/// Whose form of the elements something is known of.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Responses,
    Chat,
}

/// The first elements of a stretch, all of which can be written as usual whatever stands around them,
/// and how many bytes that takes, as whoever notes it counts them.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usual {
    pub elements: usize,
    pub length: usize,
}

/// By what the elements of a stretch are told apart.
#[derive(Debug)]
pub(crate) struct Identities {
    /// From the smallest to the largest, without those of elements that have none.
    pub(crate) sorted: Box<[u64]>,
    /// Whether none comes up twice.
    pub(crate) are_distinct: bool,
    /// Whether all elements are shown to a model as they are.
    pub(crate) are_shown: bool,
}

impl<'a, T> Chunk<'a, T> {
    /// The identities, which `find` finds the first time.
    pub(crate) fn identities(&self, find: impl FnOnce(&[T]) -> Identities) -> &'a Identities {
        let found = || Box::new(find(self.elements));
        self.known.identities.get_or_init(found)
    }

    /// What was noted last; at first nothing.
    pub fn usual(&self, form: Form) -> Usual {
        self.known.usual[form as usize].get()
    }

    /// Notes it for whoever asks again. It must be true of these elements for ever.
    pub fn note(&self, form: Form, usual: Usual) {
        debug_assert!(usual.elements <= self.elements.len());
        self.known.usual[form as usize].set(usual);
    }
}

impl<T> Seq<T> {
    /// What the list is made of, from first to last.
    ///
    /// What is known of them is kept with them and shared as they are, so that a request looks at what is
    /// new, and not at 1,000 items again.
    #[doc(hidden)]
    pub fn chunks(&self) -> impl Iterator<Item = Chunk<'_, T>> {
        let mut at = self.last.as_deref();
        let mut first = None;
        let mut later = Vec::with_capacity(at.map_or(0, |last| last.depth));
        while let Some(segment) = at {
            let stretch = Chunk {
                elements: &segment.elements,
                known: &segment.known,
            };
            at = segment.before.as_deref();
            match at {
                Some(_) => later.push(stretch),
                None => first = Some(stretch),
            }
        }
        first.into_iter().chain(later.into_iter().rev())
    }
}

/// What is known of a segment.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// In each [`Form`].
    usual: [Noted; 2],
    identities: OnceLock<Box<Identities>>,
}

impl Known {
    /// The segment gets more elements. What was noted of its first ones stays true.
    pub(super) fn grows(&mut self) {
        self.identities.take();
    }
}

/// A [`Usual`] in eight bytes. Threads may find it out at the same time: whichever comes last, it is true.
#[derive(Debug, Default)]
struct Noted(AtomicU64);

impl Noted {
    /// The bits of the length: a terabyte.
    const LENGTH: u32 = 40;

    fn get(&self) -> Usual {
        let known = self.0.load(Ordering::Relaxed);
        Usual {
            elements: (known >> Self::LENGTH) as usize,
            length: (known & ((1 << Self::LENGTH) - 1)) as usize,
        }
    }

    /// What is more than there is room for stays unknown.
    fn set(&self, usual: Usual) {
        let (elements, length) = (usual.elements as u64, usual.length as u64);
        if elements < 1 << (u64::BITS - Self::LENGTH) && length < 1 << Self::LENGTH {
            let known = elements << Self::LENGTH | length;
            self.0.store(known, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usual(elements: usize, length: usize) -> Usual {
        Usual { elements, length }
    }

    fn stretches(list: &Seq<i32>) -> Vec<Chunk<'_, i32>> {
        list.chunks().collect()
    }

    #[test]
    fn what_is_known_stays_with_its_elements() {
        let mut list = Seq::from(vec![1, 2]);
        stretches(&list)[0].note(Form::Chat, usual(2, 20));
        // It grows in place.
        list.extend([3]);
        let older = list.clone();
        list.extend([4, 5]);
        let all = stretches(&list);
        let elements: Vec<&[i32]> = all.iter().map(|stretch| stretch.elements).collect();
        assert_eq!(elements, [&[1, 2, 3][..], &[4, 5]]);
        assert_eq!(all[0].usual(Form::Chat), usual(2, 20));
        assert_eq!(all[0].usual(Form::Responses), Usual::default());
        assert_eq!(all[1].usual(Form::Chat), Usual::default());
        all[0].note(Form::Chat, usual(3, 30));
        assert_eq!(stretches(&older)[0].usual(Form::Chat), usual(3, 30));
        assert!(stretches(&Seq::new()).is_empty());
    }

    #[test]
    fn identities_are_looked_for_again_where_a_stretch_has_grown() {
        let find = |elements: &[i32]| Identities {
            sorted: elements.iter().map(|element| *element as u64).collect(),
            are_distinct: true,
            are_shown: true,
        };
        let mut list = Seq::from(vec![1]);
        assert_eq!(*stretches(&list)[0].identities(find).sorted, [1]);
        list.extend([2]);
        assert_eq!(*stretches(&list)[0].identities(find).sorted, [1, 2]);
        let known = stretches(&list)[0].identities(|_| unreachable!("they are known"));
        assert_eq!(*known.sorted, [1, 2]);
    }

    #[test]
    fn what_has_no_room_is_not_noted() {
        let known = Noted::default();
        let most = usual((1 << 24) - 1, (1 << 40) - 1);
        known.set(most);
        assert_eq!(known.get(), most);
        known.set(usual(1 << 24, 1));
        known.set(usual(1, 1 << 40));
        assert_eq!(known.get(), most);
    }
}
