//! A thesaurus that maps words and phrases to concepts and topics.

use std::collections::HashMap;
use std::sync::OnceLock;

use crate::text::{Token, tokenize};
use crate::typos::Vocabulary;

/// The maximum length of a phrase in tokens.
const MAX_PHRASE: usize = 7;

/// A meaning of a term: a concept within a topic.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sense {
    pub(crate) concept: u16,
    pub(crate) topic: u16,
    /// Set if the term is ambiguous. It counts half, and only beside another term of its topic.
    pub(crate) is_hint: bool,
}

/// Terms (words and phrases) and their senses.
#[derive(Debug, Default)]
pub(crate) struct Thesaurus {
    senses: HashMap<String, Vec<Sense>>,
    words: Vec<String>,
    vocabulary: Vocabulary,
    concepts: u16,
}

impl Thesaurus {
    /// Returns the built-in thesaurus, parsed on first use.
    pub(crate) fn built_in() -> &'static Self {
        static BUILT_IN: OnceLock<Thesaurus> = OnceLock::new();
        BUILT_IN.get_or_init(|| Self::parse(include_str!("thesaurus.txt")))
    }

    fn parse(text: &str) -> Self {
        let mut thesaurus = Self::default();
        let mut topic = 0;
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            if line.starts_with('[') {
                topic += 1;
            } else if line.ends_with(':') {
                thesaurus.concepts += 1;
            } else {
                line.split(',')
                    .map(str::trim)
                    .filter(|term| !term.is_empty())
                    .for_each(|term| thesaurus.add(term, topic));
            }
        }
        thesaurus.words.sort_unstable();
        thesaurus.words.dedup();
        thesaurus.vocabulary = Vocabulary::new(thesaurus.words.iter().map(String::as_str));
        thesaurus
    }

    fn add(&mut self, term: &str, topic: u16) {
        let tokens = tokenize(term.trim_end_matches('?'));
        let words = tokens.iter().filter_map(|token| match token {
            Token::Word(word) => Some(word.clone()),
            _ => None,
        });
        self.words.extend(words);
        let sense = Sense {
            concept: self.concepts,
            topic,
            is_hint: term.ends_with('?'),
        };
        let senses = self.senses.entry(key(&tokens)).or_default();
        if !senses.iter().any(|known| known.concept == sense.concept) {
            senses.push(sense);
        }
    }

    /// Returns the words of all terms, for spelling correction.
    pub(crate) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Returns `true` if a term contains `word`.
    pub(crate) fn contains_word(&self, word: &str) -> bool {
        self.words
            .binary_search_by(|known| known.as_str().cmp(word))
            .is_ok()
    }

    /// Returns the senses of each term in a text: at each position the longest term that starts
    /// there, unless it lies within the previous one.
    pub(crate) fn senses(&self, tokens: &[Token]) -> Vec<&[Sense]> {
        let mut found = Vec::new();
        let mut covered = 0;
        for start in 0..tokens.len() {
            let longest = MAX_PHRASE.min(tokens.len() - start);
            let term = (1..=longest).rev().find_map(|length| {
                let senses = self.senses.get(&key(&tokens[start..start + length]))?;
                Some((start + length, senses.as_slice()))
            });
            if let Some((end, senses)) = term.filter(|(end, _)| *end > covered) {
                covered = end;
                found.push(senses);
            }
        }
        found
    }
}

/// Joins tokens into the key of a term. No term contains a break.
fn key(tokens: &[Token]) -> String {
    let mut key = String::new();
    for token in tokens {
        match token {
            Token::Word(word) => {
                key.push(' ');
                key.push_str(word);
            }
            Token::Han(c) => key.push(*c),
            Token::Break => key.push('\n'),
        }
    }
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    fn concepts(text: &str) -> Vec<u16> {
        let senses = Thesaurus::built_in().senses(&tokenize(text));
        senses
            .iter()
            .flat_map(|senses| senses.iter().map(|sense| sense.concept))
            .collect()
    }

    #[test]
    fn languages_share_concepts() {
        assert_eq!(concepts("invoices"), concepts("发票"));
        assert_eq!(concepts("password"), concepts("密码"));
        assert!(!concepts("password").is_empty());
    }

    #[test]
    fn the_longest_term_wins() {
        assert_ne!(concepts("优惠券"), concepts("优惠"));
        assert_eq!(concepts("sign in"), concepts("login"));
    }

    #[test]
    fn the_file_is_sorted_and_well_formed() {
        let (mut topic, mut concept) = ("", "");
        for line in include_str!("thesaurus.txt").lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.starts_with('[') {
                assert!(line > topic, "{line} comes before {topic}");
                (topic, concept) = (line, "");
            } else if let Some(name) = line.strip_suffix(':') {
                assert!(name > concept, "{name} comes before {concept}");
                concept = name;
            } else {
                assert!(line.starts_with("    ") && !concept.is_empty(), "{line}");
            }
        }
    }
}
