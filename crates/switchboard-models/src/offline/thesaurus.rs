//! What words have to do with each other.

use std::collections::HashMap;
use std::sync::OnceLock;

use super::text::{Token, tokens};
use super::typos::Vocabulary;

/// The longest phrase, in tokens.
const LONGEST_PHRASE: usize = 7;

/// An idea that a word or phrase stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sense {
    pub(super) idea: u16,
    pub(super) topic: u16,
    /// Whether the word often means something else.
    pub(super) is_hint: bool,
}

/// Words and phrases with the ideas they stand for.
#[derive(Debug, Default)]
pub(super) struct Thesaurus {
    senses: HashMap<String, Vec<Sense>>,
    words: Vec<String>,
    vocabulary: Vocabulary,
    ideas: u16,
}

impl Thesaurus {
    /// The one that is built in.
    pub(super) fn built_in() -> &'static Self {
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
                thesaurus.ideas += 1;
            } else {
                let terms = line
                    .split(',')
                    .map(str::trim)
                    .filter(|term| !term.is_empty());
                terms.for_each(|term| thesaurus.add(term, topic));
            }
        }
        thesaurus.words.sort_unstable();
        thesaurus.words.dedup();
        thesaurus.vocabulary = Vocabulary::of(thesaurus.words.iter().map(String::as_str));
        thesaurus
    }

    fn add(&mut self, term: &str, topic: u16) {
        let tokens = tokens(term.trim_end_matches('?'));
        let words = tokens.iter().filter_map(|token| match token {
            Token::Word(word) => Some(word.clone()),
            _ => None,
        });
        self.words.extend(words);
        let sense = Sense {
            idea: self.ideas,
            topic,
            is_hint: term.ends_with('?'),
        };
        let senses = self.senses.entry(key(&tokens)).or_default();
        if !senses.iter().any(|known| known.idea == sense.idea) {
            senses.push(sense);
        }
    }

    /// The words of all terms, to find misspelt ones.
    pub(super) fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    /// Whether a word stands in some term.
    pub(super) fn knows(&self, word: &str) -> bool {
        self.words
            .binary_search_by(|known| known.as_str().cmp(word))
            .is_ok()
    }

    /// The ideas in a text: of each place the longest term that begins there, unless it lies
    /// within the one before.
    pub(super) fn senses(&self, tokens: &[Token]) -> Vec<&[Sense]> {
        let mut found = Vec::new();
        let mut covered = 0;
        for start in 0..tokens.len() {
            let longest = LONGEST_PHRASE.min(tokens.len() - start);
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

/// Tokens as one string; a break is in no term.
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

    fn ideas(text: &str) -> Vec<u16> {
        let senses = Thesaurus::built_in().senses(&tokens(text));
        senses
            .iter()
            .flat_map(|senses| senses.iter().map(|sense| sense.idea))
            .collect()
    }

    #[test]
    fn languages_share_ideas() {
        assert_eq!(ideas("invoices"), ideas("发票"));
        assert_eq!(ideas("password"), ideas("密码"));
        assert!(!ideas("password").is_empty());
    }

    #[test]
    fn the_longest_term_wins() {
        assert_ne!(ideas("优惠券"), ideas("优惠"));
        assert_eq!(ideas("sign in"), ideas("login"));
    }

    #[test]
    fn the_file_is_sorted_and_well_formed() {
        let (mut topic, mut idea) = ("", "");
        for line in include_str!("thesaurus.txt").lines() {
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if line.starts_with('[') {
                assert!(line > topic, "{line} comes before {topic}");
                (topic, idea) = (line, "");
            } else if let Some(name) = line.strip_suffix(':') {
                assert!(name > idea, "{name} comes before {idea}");
                idea = name;
            } else {
                assert!(line.starts_with("    ") && !idea.is_empty(), "{line}");
            }
        }
    }
}
