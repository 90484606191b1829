//! A search index: BM25 over the features of candidates.

use rustc_hash::FxHashMap;

use crate::features::{Bag, Feature, add_features};
use crate::text::{Token, is_stop_word, tokenize};
use crate::thesaurus::Thesaurus;
use crate::typos::Vocabulary;

/// BM25's `k1`: how soon repeating a feature stops to matter.
const K1: f64 = 1.2;
/// BM25's `b`: how much long descriptions are discounted.
const B: f64 = 0.3;
/// The minimum number of candidates assumed for a feature's rarity. With very few candidates every
/// feature would look common.
const MIN_CANDIDATES: usize = 6;
/// The maximum number of unknown words of a message that are looked up for correction.
const MAX_TYPOS: usize = 24;

/// An inverted index from features to candidates.
#[derive(Debug, Default)]
pub(crate) struct Index {
    lengths: Vec<f64>,
    /// For each feature, the candidates that have it and how often.
    postings: FxHashMap<Feature, Vec<(usize, f64)>>,
    vocabulary: Vocabulary,
}

impl Index {
    /// Creates an index of candidates, each a list of texts and their weights.
    pub(crate) fn new<'a>(candidates: impl Iterator<Item = Vec<(&'a str, f64)>>) -> Self {
        let mut index = Self::default();
        for texts in candidates {
            let mut bag = Bag::new();
            for (text, weight) in texts {
                add_features(&mut bag, &tokenize(text), weight);
            }
            let at = index.lengths.len();
            index.lengths.push(bag.values().sum());
            for (feature, times) in bag {
                index.postings.entry(feature).or_default().push((at, times));
            }
        }
        let words = index.postings.keys().filter_map(|feature| match feature {
            Feature::Word(word) => Some(word.as_str()),
            _ => None,
        });
        index.vocabulary = Vocabulary::new(words);
        index
    }

    /// Returns the score of each candidate.
    pub(crate) fn scores(&self, query: &Bag) -> Vec<f64> {
        let mut scores = vec![0.0; self.lengths.len()];
        let total: f64 = self.lengths.iter().sum();
        let average = (total / self.lengths.len().max(1) as f64).max(1.0);
        for (feature, count) in query {
            let Some(postings) = self.postings.get(feature) else {
                continue;
            };
            // Repetition within the query adds little.
            let count = if *count < 1.0 {
                *count
            } else {
                count.min(2.0).sqrt()
            };
            let weight = feature.weight() * count * self.rarity(postings);
            for (at, times) in postings {
                let length = 1.0 - B + B * self.lengths[*at] / average;
                scores[*at] += weight * times * (K1 + 1.0) / (times + K1 * length);
            }
        }
        scores
    }

    /// Returns a feature's inverse document frequency. Candidates count in proportion to how often
    /// they have the feature, relative to the one that has it most often.
    fn rarity(&self, postings: &[(usize, f64)]) -> f64 {
        let all = self.lengths.len().max(MIN_CANDIDATES) as f64;
        let most = postings.iter().map(|(_, times)| *times).fold(0.0, f64::max);
        let having: f64 = postings.iter().map(|(_, times)| times / most).sum();
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }

    /// Corrects misspelt words, to words of the candidates if possible, else of the thesaurus, and
    /// replaces unknown words by words of the candidates that are related to them.
    pub(crate) fn correct_typos(&self, mut tokens: Vec<Token>) -> Vec<Token> {
        let unknown = tokens.iter_mut().filter_map(|token| match token {
            Token::Word(word) if !self.is_known(word) => Some(word),
            _ => None,
        });
        for word in unknown.take(MAX_TYPOS) {
            let correction = self
                .vocabulary
                .closest(word)
                .or_else(|| self.vocabulary.related(word))
                .or_else(|| Thesaurus::built_in().vocabulary().closest(word));
            if let Some(correction) = correction {
                *word = correction.to_owned();
            }
        }
        tokens
    }

    fn is_known(&self, word: &str) -> bool {
        word.len() < 5
            || is_stop_word(word)
            || Thesaurus::built_in().contains_word(word)
            || self.postings.contains_key(&Feature::Word(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::features::bag_of;

    fn best(index: &Index, text: &str) -> Option<usize> {
        let scores = index.scores(&bag_of(&index.correct_typos(tokenize(text))));
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]))?;
        (scores[best] > 0.0).then_some(best)
    }

    #[test]
    fn the_best_match_has_the_highest_score() {
        let texts = ["Invoices and refunds", "Parcels and delivery", "Passwords"];
        let index = Index::new(texts.iter().map(|text| vec![(*text, 1.0)]));
        assert_eq!(best(&index, "I want a refund"), Some(0));
        assert_eq!(best(&index, "I want a refudn"), Some(0));
        assert_eq!(best(&index, "快递到哪了"), Some(1));
        assert_eq!(best(&index, "忘记密码"), Some(2));
        assert_eq!(best(&index, "xyzzy"), None);
    }
}
