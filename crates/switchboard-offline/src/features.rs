//! Features of a text, for comparison with other texts.

use std::collections::{BTreeMap, BTreeSet};

use crate::text::{Token, is_stop_char, is_stop_word};
use crate::thesaurus::Thesaurus;

/// A feature of a text.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Feature {
    /// The stem of a word.
    Word(String),
    /// A Chinese character.
    Han(char),
    /// Two adjacent Chinese characters.
    Pair(char, char),
    /// A concept of the thesaurus.
    Concept(u16),
    /// A topic of the thesaurus.
    Topic(u16),
}

impl Feature {
    /// The weight of a shared feature: a word says more than a concept, a concept more than a topic.
    pub(crate) const fn weight(&self) -> f64 {
        match self {
            Self::Word(_) => 1.0,
            Self::Pair(..) => 0.7,
            Self::Han(_) => 0.1,
            Self::Concept(_) => 0.9,
            Self::Topic(_) => 0.45,
        }
    }
}

/// A bag of features: how often each occurs. Ordered, so that floating-point sums over it are
/// deterministic.
pub(crate) type Bag = BTreeMap<Feature, f64>;

/// Returns the features of `tokens`.
pub(crate) fn bag_of(tokens: &[Token]) -> Bag {
    let mut bag = Bag::new();
    add_features(&mut bag, tokens, 1.0);
    bag
}

/// Adds the features of `tokens`, each occurrence counted `times` times.
pub(crate) fn add_features(bag: &mut Bag, tokens: &[Token], times: f64) {
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
    let mut topic_terms = BTreeMap::new();
    for senses in &senses {
        let topics: BTreeSet<u16> = senses.iter().map(|sense| sense.topic).collect();
        for topic in topics {
            *topic_terms.entry(topic).or_insert(0) += 1;
        }
    }
    for senses in senses {
        // An ambiguous term says less about each of its concepts.
        let share = times / (senses.len() as f64).sqrt();
        for sense in senses {
            if sense.is_hint && topic_terms[&sense.topic] < 2 {
                continue;
            }
            let share = if sense.is_hint { share / 2.0 } else { share };
            count(bag, Feature::Concept(sense.concept), share);
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
