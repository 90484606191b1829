//! A map that needs no table for its first entries.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// A map whose first `N` entries are kept in place. Most runs have no more of them, and a table costs
/// 400 instructions before it holds anything. It is boxed, as runs without it keep room for it.
#[derive(Debug, Clone)]
pub(super) struct SmallMap<K, V, const N: usize> {
    first: [Option<(K, V)>; N],
    rest: Option<Box<FxHashMap<K, V>>>,
}

impl<K: Eq + Hash, V, const N: usize> SmallMap<K, V, N> {
    pub(super) fn get(&self, key: &K) -> Option<&V> {
        let mut first = self.first.iter().flatten();
        match first.find(|(known, _)| known == key) {
            Some((_, value)) => Some(value),
            None => self.rest.as_ref()?.get(key),
        }
    }

    /// Puts a value in the place of the one that was there, which it returns.
    pub(super) fn insert(&mut self, key: K, value: V) -> Option<V> {
        for place in &mut self.first {
            match place {
                Some((known, before)) if *known == key => {
                    return Some(std::mem::replace(before, value));
                }
                Some(_) => {}
                None => {
                    *place = Some((key, value));
                    return None;
                }
            }
        }
        self.rest.get_or_insert_default().insert(key, value)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
        let first = self.first.iter().flatten();
        let rest = self.rest.iter().flat_map(|rest| rest.iter());
        first.map(|(key, value)| (key, value)).chain(rest)
    }
}

impl<K, V, const N: usize> Default for SmallMap<K, V, N> {
    fn default() -> Self {
        Self {
            first: [const { None }; N],
            rest: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_holds_what_a_map_holds() {
        let mut few: SmallMap<u32, u32, 2> = SmallMap::default();
        let mut map = FxHashMap::default();
        for n in 0..20 {
            let (key, value) = (n * 7 % 6, n);
            assert_eq!(few.get(&key), map.get(&key));
            assert_eq!(few.insert(key, value), map.insert(key, value));
            assert_eq!(few.get(&key), Some(&value));
        }
        let held: FxHashMap<u32, u32> = few.iter().map(|(key, value)| (*key, *value)).collect();
        assert_eq!(held, map);
    }
}
