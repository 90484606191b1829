//! What a message says is not wanted.

use crate::text::{Token, is_stop_word};

/// The maximum number of tokens between "not" and "but".
const MAX_REJECTED: usize = 6;

/// Returns the tokens without those of what the user rejects for something else: `I don't want to rent, I
/// want to buy`, `to buy, not to rent`, `to buy instead of renting`, `不要退款，要换货`. A message that says
/// nothing else stays whole, as one that only says what is wrong does.
pub(crate) fn without_rejected(tokens: Vec<Token>) -> Vec<Token> {
    let is_rejected = rejected(&tokens);
    let left = tokens.iter().zip(&is_rejected);
    let says_something = |(token, is_rejected): (&Token, &bool)| {
        !is_rejected
            && match token {
                Token::Word(word) => !is_stop_word(word) && !is_wish(word),
                Token::Han(c) => !"不想要是我的".contains(*c),
                Token::Break => false,
            }
    };
    if !left.clone().any(says_something) {
        return tokens;
    }
    let left = left.filter(|(_, is_rejected)| !**is_rejected);
    left.map(|(token, _)| token.clone()).collect()
}

/// Returns for each token whether it is part of what is rejected.
fn rejected(tokens: &[Token]) -> Vec<bool> {
    let mut rejected = vec![false; tokens.len()];
    let clauses = clauses(tokens);
    let wishes: Vec<Option<Wish<'_>>> = clauses
        .iter()
        .map(|range| wish(&tokens[range.clone()]))
        .collect();
    let is_wanted = |wish: &Option<Wish<'_>>| wish.is_some_and(|wish| !wish.is_negated);
    for (at, range) in clauses.iter().enumerate() {
        let clause = &tokens[range.clone()];
        if let Some(unwanted) = wishes[at].filter(|wish| wish.is_negated && wish.is_of_kind(clause))
        {
            let is_said_otherwise = wishes.iter().flatten().zip(&clauses).any(|(wish, range)| {
                !wish.is_negated
                    && wish.word == unwanted.word
                    && wish.has_infinitive(&tokens[range.clone()])
                        == unwanted.has_infinitive(clause)
            });
            let from = unwanted.at + 1;
            let but = clause.iter().position(|token| is_word(Some(token), "but"));
            match but.filter(|but| *but > from) {
                Some(but) => rejected[range.start + from..range.start + but].fill(true),
                None if is_said_otherwise => rejected[range.start + from..range.end].fill(true),
                None => {}
            }
        }
        // `I want to buy, not to rent`
        if at > 0 && is_word(clause.first(), "not") && is_wanted(&wishes[at - 1]) {
            rejected[range.clone()].fill(true);
        }
        for (place, token) in clause.iter().enumerate() {
            let next = clause.get(place + 1);
            let is_contrast = (is_word(Some(token), "instead") && is_word(next, "of"))
                || (is_word(Some(token), "rather") && is_word(next, "than"));
            if is_contrast && is_wanted(&wishes[at]) {
                rejected[range.start + place + 2..range.end].fill(true);
            }
            let before = place.checked_sub(1).and_then(|before| clause.get(before));
            if is_word(Some(token), "not") && !before.is_some_and(is_auxiliary) {
                let rest = &clause[place..clause.len().min(place + 1 + MAX_REJECTED)];
                if let Some(length) = rest.iter().position(|token| is_word(Some(token), "but")) {
                    rejected[range.start + place..range.start + place + length].fill(true);
                }
            }
        }
    }
    rejected
}

/// What a clause says about what the user wants.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wish<'a> {
    /// The position of the word that says it.
    at: usize,
    word: &'a Token,
    is_negated: bool,
}

impl Wish<'_> {
    /// Returns `true` if something is to be done: `want to rent`.
    fn has_infinitive(&self, clause: &[Token]) -> bool {
        is_word(clause.get(self.at + 1), "to")
    }

    /// Returns `true` if it is about any of a kind. What somebody does not want of what there is, as in
    /// `I don't want this subscription`, is what the message is about.
    fn is_of_kind(&self, clause: &[Token]) -> bool {
        match clause.get(self.at + 1) {
            Some(Token::Word(word)) => !matches!(
                word.as_str(),
                "this"
                    | "that"
                    | "these"
                    | "those"
                    | "thes"
                    | "thos"
                    | "it"
                    | "them"
                    | "the"
                    | "my"
                    | "your"
                    | "any"
                    | "you"
            ),
            Some(Token::Han(c)) => !"这那我你它再".contains(*c),
            _ => false,
        }
    }
}

fn wish(clause: &[Token]) -> Option<Wish<'_>> {
    let at = clause.iter().position(|token| match token {
        Token::Word(word) => is_wish(word),
        Token::Han(c) => "想要是".contains(*c),
        Token::Break => false,
    })?;
    let before = &clause[at.saturating_sub(3)..at];
    let is_negated = before.iter().any(|token| match token {
        Token::Word(word) => matches!(word.as_str(), "not" | "dont" | "doesnt" | "no" | "never"),
        Token::Han(c) => *c == '不',
        Token::Break => false,
    });
    Some(Wish {
        at,
        word: &clause[at],
        is_negated,
    })
}

/// Returns `true` for the stem of a word with which somebody says what is wanted.
fn is_wish(word: &str) -> bool {
    matches!(
        word,
        "want" | "need" | "look" | "interest" | "id" | "wish" | "prefer" | "would"
    )
}

/// Returns `true` for a word that "not" follows where it says that something fails.
fn is_auxiliary(token: &Token) -> bool {
    let Token::Word(word) = token else {
        return false;
    };
    matches!(
        word.as_str(),
        "is" | "are"
            | "was"
            | "were"
            | "do"
            | "doe"
            | "does"
            | "did"
            | "can"
            | "could"
            | "ha"
            | "has"
            | "hav"
            | "have"
            | "had"
            | "will"
            | "would"
            | "should"
            | "am"
    )
}

fn is_word(token: Option<&Token>, expected: &str) -> bool {
    matches!(token, Some(Token::Word(word)) if word == expected)
}

/// Returns the ranges of the clauses, without the breaks.
fn clauses(tokens: &[Token]) -> Vec<std::ops::Range<usize>> {
    let mut clauses = Vec::new();
    let mut start = 0;
    let ends = tokens
        .iter()
        .enumerate()
        .filter(|(_, token)| **token == Token::Break);
    for end in ends.map(|(at, _)| at).chain([tokens.len()]) {
        if start < end {
            clauses.push(start..end);
        }
        start = end + 1;
    }
    clauses
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokenize;

    #[test]
    fn what_is_rejected_for_something_else_is_left_out() {
        for (text, gone, kept) in [
            ("I don't want to rent, I want to buy", "rent", "buy"),
            ("I want to buy. I do not want to rent", "rent", "buy"),
            ("I'd like to buy, not to rent", "rent", "buy"),
            ("I want to buy instead of renting", "rent", "buy"),
            ("I would buy one rather than rent", "rent", "buy"),
            ("not a bike but a helmet", "bike", "helmet"),
            ("I don't want to rent but to buy", "rent", "buy"),
            ("I'm not looking to rent, I'm looking to buy", "rent", "buy"),
        ] {
            let left = without_rejected(tokenize(text));
            let has = |word: &str| {
                left.iter()
                    .any(|token| is_word(Some(token), &crate::text::stem(word)))
            };
            assert!(!has(gone) && has(kept), "{text}: {left:?}");
        }
        let left = without_rejected(tokenize("我不要退款，我要换货"));
        assert!(!left.contains(&Token::Han('退')) && left.contains(&Token::Han('换')));
    }

    #[test]
    fn what_is_only_said_not_to_work_or_not_to_be_wanted_stays() {
        for text in [
            "I don't want to rent",
            "my lamp does not work, I want a refund",
            "it is not working but I need it",
            "I do not have a ticket",
            "I don't want this subscription any more, cancel it",
            "I don't want this renewal, I want my money back",
            "I got a red one instead of a blue one",
            "我不要这个了，我要退款",
            "not today",
        ] {
            let tokens = tokenize(text);
            assert_eq!(without_rejected(tokens.clone()), tokens, "{text}");
        }
    }
}
