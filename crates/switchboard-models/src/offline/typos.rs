//! Words that were meant to be others.

use std::collections::HashMap;

/// The words that are known, by first letter.
#[derive(Debug, Default)]
pub(super) struct Vocabulary(HashMap<u8, Vec<String>>);

impl Vocabulary {
    /// A vocabulary of these words; only words in ASCII letters are kept.
    pub(super) fn of<'a>(words: impl Iterator<Item = &'a str>) -> Self {
        let mut known = Self::default();
        for word in words.filter(|word| word.len() >= 4 && is_plain(word)) {
            known
                .0
                .entry(word.as_bytes()[0])
                .or_default()
                .push(word.to_owned());
        }
        for words in known.0.values_mut() {
            words.sort_unstable();
            words.dedup();
        }
        known
    }

    /// The known word that `word` was most likely meant to be.
    ///
    /// One slip is forgiven in a word of five letters or more, two in a word of nine or more. The
    /// first letter is taken to be right.
    pub(super) fn nearest(&self, word: &str) -> Option<&str> {
        let slips = match word.len() {
            _ if !is_plain(word) => return None,
            5..=8 => 1,
            9..=24 => 2,
            _ => return None,
        };
        let words = self.0.get(word.as_bytes().first()?)?;
        let near = words
            .iter()
            .filter(|known| known.len().abs_diff(word.len()) <= slips);
        near.map(|known| (distance(word.as_bytes(), known.as_bytes()), known))
            .filter(|(distance, _)| *distance <= slips)
            .min()
            .map(|(_, known)| known.as_str())
    }
}

fn is_plain(word: &str) -> bool {
    word.bytes().all(|b| b.is_ascii_lowercase())
}

/// How many letters to add, drop, change or swap to get from one word to the other.
fn distance(a: &[u8], b: &[u8]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_forgiven_and_another_word_is_not() {
        let known = Vocabulary::of(["refund", "password", "subscription"].into_iter());
        assert_eq!(known.nearest("refnud"), Some("refund"));
        assert_eq!(known.nearest("pasword"), Some("password"));
        assert_eq!(known.nearest("subcsripton"), Some("subscription"));
        assert_eq!(known.nearest("remand"), None);
        assert_eq!(known.nearest("fund"), None);
    }
}
