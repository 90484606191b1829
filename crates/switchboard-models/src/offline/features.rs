//! What a text is about, in a form that can be compared.

use std::collections::{BTreeMap, BTreeSet};

use super::text::{Token, is_stop_char, is_stop_word};
use super::thesaurus::Thesaurus;

/// Something a text has in common with another.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Feature {
    /// A word, by its stem.
    Word(String),
    /// A Chinese character.
    Han(char),
    /// Two Chinese characters in a row.
    Pair(char, char),
    /// An idea of the thesaurus.
    Idea(u16),
    /// A topic of the thesaurus.
    Topic(u16),
}

impl Feature {
    /// How much it says that two texts share this: the same word more than the same idea, and
    /// that more than the same field of life.
    pub(super) const fn weight(&self) -> f64 {
        match self {
            Self::Word(_) => 1.0,
            Self::Pair(..) => 0.7,
            Self::Han(_) => 0.1,
            Self::Idea(_) => 0.9,
            Self::Topic(_) => 0.45,
        }
    }
}

/// The features of a text, and how often each occurs. Ordered, so that sums over it come out the
/// same every time.
pub(super) type Bag = BTreeMap<Feature, f64>;

/// The features of these tokens.
pub(super) fn bag_of(tokens: &[Token]) -> Bag {
    let mut bag = Bag::new();
    add(&mut bag, tokens, 1.0);
    bag
}

/// Adds the features of these tokens, each occurrence counting `times`.
pub(super) fn add(bag: &mut Bag, tokens: &[Token], times: f64) {
    for (at, token) in tokens.iter().enumerate() {
        match token {
            Token::Word(word) if !is_stop_word(word) => {
                count(bag, Feature::Word(word.clone()), times);
            }
            Token::Han(c) => add_han(bag, *c, tokens.get(at + 1), times),
            _ => {}
        }
    }
    let senses = Thesaurus::built_in().senses(tokens);
    // How many words are of each topic: a hint needs another beside it.
    let mut words_of = BTreeMap::new();
    for senses in &senses {
        let topics: BTreeSet<u16> = senses.iter().map(|sense| sense.topic).collect();
        for topic in topics {
            *words_of.entry(topic).or_insert(0) += 1;
        }
    }
    for senses in senses {
        // A word of several ideas says less about each.
        let share = times / (senses.len() as f64).sqrt();
        for sense in senses {
            let share = match sense.is_hint {
                true if words_of[&sense.topic] < 2 => continue,
                true => share / 2.0,
                false => share,
            };
            count(bag, Feature::Idea(sense.idea), share);
            count(bag, Feature::Topic(sense.topic), share);
        }
    }
}

fn add_han(bag: &mut Bag, c: char, next: Option<&Token>, times: f64) {
    if !is_stop_char(c) {
        count(bag, Feature::Han(c), times);
    }
    if let Some(Token::Han(next)) = next {
        match (is_stop_char(c), is_stop_char(*next)) {
            (true, true) => {}
            (false, false) => count(bag, Feature::Pair(c, *next), times),
            _ => count(bag, Feature::Pair(c, *next), times * 0.3),
        }
    }
}

fn count(bag: &mut Bag, feature: Feature, times: f64) {
    *bag.entry(feature).or_default() += times;
}
