//! A quick check that rules out private data in most texts, before any pattern is matched.

use crate::json;

/// The characters that private data of one kind must contain.
#[derive(Debug, Clone, Copy)]
pub(super) enum Requirement {
    /// At least this number of digits.
    Digits(usize),
    AtSign,
}

/// An upper bound on the characters in a text that matter for a [`Requirement`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CharCounts {
    digits: usize,
    has_at_sign: bool,
}

/// The first byte of all full-width digits and punctuation in UTF-8.
const FULL_WIDTH: u8 = 0xef;

impl CharCounts {
    /// Counts in a text or in a JSON token.
    pub(super) fn of(text: &str) -> Self {
        // An escaped character can be any.
        if text.contains("\\u") {
            return Self {
                digits: usize::MAX,
                has_at_sign: true,
            };
        }
        let is_digit = |byte: u8| byte.is_ascii_digit() | (byte == FULL_WIDTH);
        // Most texts have neither; skipping to the first takes a quarter of the time of counting.
        let start = json::first_byte(text.as_bytes(), |byte| is_digit(byte) | (byte == b'@'));
        let bytes = &text.as_bytes()[start..];
        Self {
            digits: bytes.iter().filter(|byte| is_digit(**byte)).count(),
            has_at_sign: bytes.contains(&b'@') || bytes.contains(&FULL_WIDTH),
        }
    }

    pub(super) fn meet(self, requirement: Requirement) -> bool {
        match requirement {
            Requirement::Digits(least) => self.digits >= least,
            Requirement::AtSign => self.has_at_sign,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_counted_in_every_form() {
        let counts = |digits, has_at_sign| CharCounts {
            digits,
            has_at_sign,
        };
        assert_eq!(CharCounts::of("no sign \\\" of it"), counts(0, false));
        assert_eq!(CharCounts::of("call 911, or a@b.c"), counts(3, true));
        assert_eq!(CharCounts::of("１２3"), counts(3, true));
        assert_eq!(CharCounts::of(r"a\u0040b"), counts(usize::MAX, true));
    }
}
