//! A hash map with inline room for its first entries.

use std::hash::Hash;

use rustc_hash::FxHashMap;

/// A hash map whose first `N` entries are stored inline: most runs have no more, and need no table.
#[derive(Debug, Clone)]
pub(crate) struct SmallMap<K, V, const N: usize> {
    first: [Option<(K, V)>; N],
    rest: Option<Box<FxHashMap<K, V>>>,
}

impl<K: Eq + Hash, V, const N: usize> SmallMap<K, V, N> {
    pub(crate) fn get(&self, key: &K) -> Option<&V> {
        let mut first = self.first.iter().flatten();
        match first.find(|(known, _)| known == key) {
            Some((_, value)) => Some(value),
            None => self.rest.as_ref()?.get(key),
        }
    }

    /// Inserts a value and returns the one it replaced.
    pub(crate) fn insert(&mut self, key: K, value: V) -> Option<V> {
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&K, &V)> {
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
    fn it_behaves_like_a_hash_map() {
        let mut small: SmallMap<u32, u32, 2> = SmallMap::default();
        let mut map = FxHashMap::default();
        for n in 0..20 {
            let (key, value) = (n * 7 % 6, n);
            assert_eq!(small.get(&key), map.get(&key));
            assert_eq!(small.insert(key, value), map.insert(key, value));
            assert_eq!(small.get(&key), Some(&value));
        }
        let held: FxHashMap<u32, u32> = small.iter().map(|(key, value)| (*key, *value)).collect();
        assert_eq!(held, map);
    }
}
