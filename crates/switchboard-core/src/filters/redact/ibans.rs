//! International bank account numbers (ISO 13616).

use std::ops::Range;

/// The countries of the SWIFT registry, release 100, with the length of their numbers.
#[rustfmt::skip]
const LENGTHS: [(&[u8; 2], usize); 89] = [
    (b"AD", 24), (b"AE", 23), (b"AL", 28), (b"AT", 20), (b"AZ", 28), (b"BA", 20), (b"BE", 16), (b"BG", 22),
    (b"BH", 22), (b"BI", 27), (b"BR", 29), (b"BY", 28), (b"CH", 21), (b"CR", 22), (b"CY", 28), (b"CZ", 24),
    (b"DE", 22), (b"DJ", 27), (b"DK", 18), (b"DO", 28), (b"EE", 20), (b"EG", 29), (b"ES", 24), (b"FI", 18),
    (b"FK", 18), (b"FO", 18), (b"FR", 27), (b"GB", 22), (b"GE", 22), (b"GI", 23), (b"GL", 18), (b"GR", 27),
    (b"GT", 28), (b"HN", 28), (b"HR", 21), (b"HU", 28), (b"IE", 22), (b"IL", 23), (b"IQ", 23), (b"IS", 26),
    (b"IT", 27), (b"JO", 30), (b"KW", 30), (b"KZ", 20), (b"LB", 28), (b"LC", 32), (b"LI", 21), (b"LT", 20),
    (b"LU", 20), (b"LV", 21), (b"LY", 25), (b"MC", 27), (b"MD", 24), (b"ME", 22), (b"MK", 19), (b"MN", 20),
    (b"MR", 27), (b"MT", 31), (b"MU", 30), (b"NI", 28), (b"NL", 18), (b"NO", 15), (b"OM", 23), (b"PK", 24),
    (b"PL", 28), (b"PS", 29), (b"PT", 25), (b"QA", 29), (b"RO", 24), (b"RS", 22), (b"RU", 33), (b"SA", 24),
    (b"SC", 31), (b"SD", 18), (b"SE", 24), (b"SI", 19), (b"SK", 24), (b"SM", 27), (b"SO", 23), (b"ST", 25),
    (b"SV", 28), (b"TL", 23), (b"TN", 24), (b"TR", 26), (b"UA", 29), (b"VA", 22), (b"VG", 24), (b"XK", 20),
    (b"YE", 30),
];

pub(super) fn find(text: &str) -> Vec<Range<usize>> {
    super::count_steps(text.len());
    let bytes = text.as_bytes();
    let mut ibans = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begins_word = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        match iban_len(&bytes[at..]).filter(|_| begins_word) {
            Some(len) => {
                ibans.push(at..at + len);
                at += len;
            }
            None => at += 1,
        }
    }
    ibans
}

/// Returns the length of the IBAN that a text begins with, separators included.
fn iban_len(bytes: &[u8]) -> Option<usize> {
    let [first, second, check @ ..] = bytes else {
        return None;
    };
    if !check.first()?.is_ascii_digit() || !check.get(1)?.is_ascii_digit() {
        return None;
    }
    let country = [first.to_ascii_uppercase(), second.to_ascii_uppercase()];
    let found = LENGTHS.binary_search_by_key(&&country, |(code, _)| *code);
    let (_, length) = LENGTHS.get(found.ok()?)?;
    let mut characters = Vec::with_capacity(*length);
    let mut was_separator = false;
    for (at, byte) in bytes.iter().enumerate() {
        super::count_steps(1);
        match byte {
            b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => {
                characters.push(byte.to_ascii_uppercase());
                was_separator = false;
            }
            b' ' | b'-' | b'.' | b'/' if !was_separator => was_separator = true,
            _ => return None,
        }
        if characters.len() == *length {
            let ends = !bytes.get(at + 1).is_some_and(u8::is_ascii_alphanumeric);
            return (ends && has_check_digits(&characters)).then_some(at + 1);
        }
    }
    None
}

/// Returns `true` if the number, with its first four characters moved to the end, is 1 modulo 97.
fn has_check_digits(characters: &[u8]) -> bool {
    let (start, rest) = characters.split_at(4);
    let remainder = rest
        .iter()
        .chain(start)
        .fold(0_u32, |remainder, byte| match byte {
            b'0'..=b'9' => (remainder * 10 + u32::from(byte - b'0')) % 97,
            _ => (remainder * 100 + u32::from(byte - b'A') + 10) % 97,
        });
    remainder == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_countries_are_in_order() {
        assert!(LENGTHS.is_sorted_by_key(|(code, _)| *code));
    }
}
