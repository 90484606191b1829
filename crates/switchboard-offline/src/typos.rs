//! Spelling correction.

use std::collections::HashMap;

/// The words that a misspelt one is corrected to, by first letter.
#[derive(Debug, Default)]
pub(crate) struct Vocabulary(HashMap<u8, Vec<String>>);

impl Vocabulary {
    /// Creates a vocabulary of those of `words` that have at least four letters, all ASCII.
    pub(crate) fn new<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut by_letter: HashMap<u8, Vec<String>> = HashMap::new();
        for word in words.filter(|word| word.len() >= 4 && is_ascii_word(word)) {
            let first = word.as_bytes()[0];
            by_letter.entry(first).or_default().push(word.to_owned());
        }
        for words in by_letter.values_mut() {
            words.sort_unstable();
            words.dedup();
        }
        Self(by_letter)
    }

    /// Returns the word closest to `word`, if one is close enough.
    ///
    /// The edit distance may be 1 for a word of five letters or more, 2 for one of ten or more. The
    /// first letter must be the same.
    pub(crate) fn closest(&self, word: &str) -> Option<&str> {
        let max_distance = match word.len() {
            _ if !is_ascii_word(word) => return None,
            5..=9 => 1,
            10..=24 => 2,
            _ => return None,
        };
        let words = self.0.get(word.as_bytes().first()?)?;
        words
            .iter()
            .filter(|known| known.len().abs_diff(word.len()) <= max_distance)
            .map(|known| (edit_distance(word.as_bytes(), known.as_bytes()), known))
            .filter(|(distance, _)| *distance <= max_distance)
            .min()
            .map(|(_, known)| known.as_str())
    }

    /// Returns the word that is related to `word`, if there is one: `plumb` to `plumber`. Most of both
    /// must be the same.
    pub(crate) fn related(&self, word: &str) -> Option<&str> {
        if !is_ascii_word(word) {
            return None;
        }
        let words = self.0.get(word.as_bytes().first()?)?;
        words
            .iter()
            .map(|known| (common_length(word, known), known))
            .filter(|(common, known)| {
                *common >= MIN_COMMON && word.len().max(known.len()) - common <= MAX_REST
            })
            .max_by_key(|(common, known)| (*common, std::cmp::Reverse(known.len())))
            .map(|(_, known)| known.as_str())
    }
}

/// The minimum length of the beginning that related words have in common.
const MIN_COMMON: usize = 5;
/// The maximum length of the rest of each.
const MAX_REST: usize = 3;

fn is_ascii_word(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_lowercase())
}

fn common_length(a: &str, b: &str) -> usize {
    let pairs = a.bytes().zip(b.bytes());
    pairs.take_while(|(a, b)| a == b).count()
}

/// Returns the Damerau-Levenshtein distance (optimal string alignment).
fn edit_distance(a: &[u8], b: &[u8]) -> usize {
    let mut before_last: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let substitution = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = substitution.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before_last[j - 2] + 1);
            }
            row.push(best);
        }
        before_last = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_typo_is_corrected_and_another_word_is_not() {
        let known = Vocabulary::new(["refund", "password", "subscription"].into_iter());
        assert_eq!(known.closest("refnud"), Some("refund"));
        assert_eq!(known.closest("pasword"), Some("password"));
        assert_eq!(known.closest("subcsripton"), Some("subscription"));
        assert_eq!(known.closest("remand"), None);
        assert_eq!(known.closest("fund"), None);
    }

    #[test]
    fn words_with_the_same_beginning_are_related() {
        let known = Vocabulary::new(["plumb", "restaurant", "pharmaci"].into_iter());
        assert_eq!(known.related("plumber"), Some("plumb"));
        assert_eq!(known.related("pharmacist"), Some("pharmaci"));
        assert_eq!(known.related("restart"), None);
        assert_eq!(known.related("plum"), None);
    }
}
