//! A quick check that rules out personal data in most texts, before any pattern is matched.

use super::class::{Classes, Pii};
use super::emails;
use super::normalize::digit_value;
use crate::json;

/// An upper bound on the characters in a text that personal data consists of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CharCounts {
    digits: usize,
    may_have_email: bool,
}

impl CharCounts {
    /// Counts in a text or in a JSON token.
    pub(super) fn of(text: &str) -> Self {
        // An escaped character can be any.
        if text.contains("\\u") {
            return Self {
                digits: usize::MAX,
                may_have_email: true,
            };
        }
        // Most texts have neither; skipping to the first takes a quarter of the time of counting.
        let start = json::first_byte(text.as_bytes(), |byte| is_digit(byte) | (byte == b'@'));
        let bytes = &text.as_bytes()[start..];
        let has_full_width_sign = || text.contains(['＠', '﹫']);
        let has_sign =
            bytes.contains(&b'@') || (bytes.contains(&FULL_WIDTH) && has_full_width_sign());
        let digits = bytes.iter().filter(|byte| is_digit(**byte)).count();
        let digits = if digits >= LEAST_DIGITS && bytes.iter().any(|byte| may_begin_digit(*byte)) {
            text.chars().filter(|c| digit_value(*c).is_some()).count()
        } else {
            digits
        };
        Self {
            digits,
            may_have_email: has_sign || emails::may_be_obfuscated(text),
        }
    }

    /// Returns `false` if a text with these characters has no data of these classes.
    pub(super) fn may_have(self, classes: Classes) -> bool {
        (classes.contains(Pii::Email) && self.may_have_email)
            || (classes.intersects(Classes::NUMBERS) && self.digits >= least_digits(classes))
    }
}

/// The least number of digits in any class.
const LEAST_DIGITS: usize = 2;

fn least_digits(classes: Classes) -> usize {
    let least = |class: Pii| match class {
        Pii::Passport => LEAST_DIGITS,
        Pii::Phone => 7,
        Pii::Iban => 8,
        Pii::Ssn => 9,
        Pii::Card => 12,
        Pii::ResidentId => 15,
        Pii::Email => usize::MAX,
    };
    let wanted = Pii::ALL
        .into_iter()
        .filter(|class| classes.contains(*class));
    wanted.map(least).min().unwrap_or(usize::MAX)
}

/// The first byte of all full-width digits and punctuation in UTF-8.
const FULL_WIDTH: u8 = 0xef;

fn is_digit(byte: u8) -> bool {
    byte.is_ascii_digit() | may_begin_digit(byte)
}

/// Returns `true` for the first bytes of digits outside ASCII in UTF-8.
fn may_begin_digit(byte: u8) -> bool {
    matches!(
        byte,
        0xd9 | 0xdb | 0xdf | 0xe0 | 0xe1 | 0xea | FULL_WIDTH | 0xf0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filters::redact::tables::unicode::ZEROS;

    #[test]
    fn characters_are_counted_in_every_form() {
        let counts = |digits, may_have_email| CharCounts {
            digits,
            may_have_email,
        };
        assert_eq!(CharCounts::of("no sign \\\" of it"), counts(0, false));
        assert_eq!(CharCounts::of("call 911, or a@b.c"), counts(3, true));
        assert_eq!(CharCounts::of("１２34"), counts(4, false));
        assert_eq!(CharCounts::of("a＠b"), counts(1, true));
        assert_eq!(CharCounts::of("٤٢ ไทย ไทย ไทย"), counts(2, false));
        assert_eq!(CharCounts::of("ann [at] x.com"), counts(0, true));
        assert_eq!(CharCounts::of(r"a\u0040b"), counts(usize::MAX, true));
    }

    #[test]
    fn digits_of_every_script_are_counted() {
        for zero in ZEROS.into_iter().filter(|zero| !zero.is_ascii()) {
            let first = zero.to_string().as_bytes()[0];
            assert!(may_begin_digit(first), "{zero:?}");
        }
    }
}
