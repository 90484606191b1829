//! Finding what fits a text best: BM25 over the features of everything that could be chosen.

use rustc_hash::FxHashMap;

use super::features::{Bag, Feature, add};
use super::text::{Token, is_stop_word, tokens};
use super::thesaurus::Thesaurus;
use super::typos::Vocabulary;

/// How quickly it stops to matter that a feature occurs once more.
const SATURATION: f64 = 1.2;
/// How much long descriptions are discounted.
const LENGTH: f64 = 0.3;
/// With fewer candidates than this, rarity is judged as if there were as many: of one candidate
/// every feature would look common.
const FEWEST: usize = 6;
/// The most misspelt words that are looked up for one message.
const MOST_TYPOS: usize = 24;

/// What can be chosen, by what it is about.
#[derive(Debug, Default)]
pub(super) struct Index {
    lengths: Vec<f64>,
    places: FxHashMap<Feature, Vec<(usize, f64)>>,
    vocabulary: Vocabulary,
}

impl Index {
    /// An index of candidates, each a list of texts and how often a text counts.
    pub(super) fn of<'a>(candidates: impl Iterator<Item = Vec<(&'a str, f64)>>) -> Self {
        let mut index = Self::default();
        for texts in candidates {
            let mut bag = Bag::new();
            for (text, times) in texts {
                add(&mut bag, &tokens(text), times);
            }
            let at = index.lengths.len();
            index.lengths.push(bag.values().sum());
            for (feature, times) in bag {
                index.places.entry(feature).or_default().push((at, times));
            }
        }
        let own = index.places.keys().filter_map(|feature| match feature {
            Feature::Word(word) => Some(word.as_str()),
            _ => None,
        });
        index.vocabulary = Vocabulary::of(own);
        index
    }

    /// How well each candidate fits.
    pub(super) fn scores(&self, query: &Bag) -> Vec<f64> {
        let mut scores = vec![0.0; self.lengths.len()];
        let total: f64 = self.lengths.iter().sum();
        let average = (total / self.lengths.len().max(1) as f64).max(1.0);
        for (feature, asked) in query {
            let Some(places) = self.places.get(feature) else {
                continue;
            };
            // Saying it again adds little.
            let asked = if *asked < 1.0 {
                *asked
            } else {
                asked.min(2.0).sqrt()
            };
            let weight = feature.weight() * asked * self.rarity(places);
            for (at, times) in places {
                let length = 1.0 - LENGTH + LENGTH * self.lengths[*at] / average;
                scores[*at] += weight * times * (SATURATION + 1.0) / (times + SATURATION * length);
            }
        }
        scores
    }

    /// How much it says that a candidate has a feature: the more, the fewer have it. One that is
    /// full of it counts for more than one that merely mentions it.
    fn rarity(&self, places: &[(usize, f64)]) -> f64 {
        let all = self.lengths.len().max(FEWEST) as f64;
        let most = places.iter().map(|(_, times)| *times).fold(0.0, f64::max);
        let having: f64 = places.iter().map(|(_, times)| times / most).sum();
        (1.0 + (all - having + 0.5) / (having + 0.5)).ln()
    }

    /// Tokens with misspelt words replaced by what they were meant to be.
    pub(super) fn corrected(&self, mut tokens: Vec<Token>) -> Vec<Token> {
        let unknown = tokens.iter_mut().filter_map(|token| match token {
            Token::Word(word) if !self.knows(word) => Some(word),
            _ => None,
        });
        for word in unknown.take(MOST_TYPOS) {
            let own = self.vocabulary.nearest(word);
            if let Some(meant) = own.or_else(|| Thesaurus::built_in().vocabulary().nearest(word)) {
                *word = meant.to_owned();
            }
        }
        tokens
    }

    fn knows(&self, word: &str) -> bool {
        word.len() < 5
            || is_stop_word(word)
            || Thesaurus::built_in().knows(word)
            || self.places.contains_key(&Feature::Word(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::offline::features::bag_of;

    fn best(index: &Index, text: &str) -> Option<usize> {
        let scores = index.scores(&bag_of(&index.corrected(tokens(text))));
        let best = (0..scores.len()).max_by(|a, b| scores[*a].total_cmp(&scores[*b]))?;
        (scores[best] > 0.0).then_some(best)
    }

    #[test]
    fn what_fits_best_comes_first() {
        let texts = ["Invoices and refunds", "Parcels and delivery", "Passwords"];
        let index = Index::of(texts.iter().map(|text| vec![(*text, 1.0)]));
        assert_eq!(best(&index, "I want a refund"), Some(0));
        assert_eq!(best(&index, "I want a refudn"), Some(0));
        assert_eq!(best(&index, "快递到哪了"), Some(1));
        assert_eq!(best(&index, "忘记密码"), Some(2));
        assert_eq!(best(&index, "xyzzy"), None);
    }
}
