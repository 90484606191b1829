//! What must be in a text for private data to be there.

use crate::json;

/// What private data of one sort cannot do without.
#[derive(Debug, Clone, Copy)]
pub(super) enum Needs {
    /// So many digits.
    Digits(usize),
    /// The sign in an address.
    At,
}

impl Needs {
    pub(super) fn are_among(self, signs: Signs) -> bool {
        match self {
            Self::Digits(least) => signs.digits >= least,
            Self::At => signs.at,
        }
    }
}

/// What of that is in a text, at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Signs {
    digits: usize,
    at: bool,
}

impl Signs {
    /// The signs of a text, or of a part of JSON, where escapes may hide anything.
    pub(super) fn of(text: &str) -> Self {
        let bytes = text.as_bytes();
        let is_sign = |byte: u8| {
            byte.is_ascii_digit() | (byte == b'@') | (byte == FULL_WIDTH) | (byte == b'\\')
        };
        let start = json::first_byte(bytes, is_sign);
        let bytes = &bytes[start..];
        if bytes.is_empty() {
            let (digits, at) = (0, false);
            return Self { digits, at };
        }
        if text.contains("\\u") {
            let (digits, at) = (usize::MAX, true);
            return Self { digits, at };
        }
        let is_digit = |byte: &&u8| byte.is_ascii_digit() | (**byte == FULL_WIDTH);
        Self {
            digits: bytes.iter().filter(is_digit).count(),
            at: json::any_byte(bytes, |byte| (byte == b'@') | (byte == FULL_WIDTH)),
        }
    }
}

/// The first byte of every full-width digit or sign.
const FULL_WIDTH: u8 = 0xef;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signs_are_counted_however_they_are_written() {
        let signs = |digits, at| Signs { digits, at };
        assert_eq!(Signs::of("no sign \\\" of it"), signs(0, false));
        assert_eq!(Signs::of("call 911, or a@b.c"), signs(3, true));
        assert_eq!(Signs::of("１２3"), signs(3, true));
        assert_eq!(Signs::of(r"a\u0040b"), signs(usize::MAX, true));
    }
}
