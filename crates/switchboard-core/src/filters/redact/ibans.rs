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

/// Text with the form of an IBAN, whatever its check digits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Lookalike {
    pub(super) range: Range<usize>,
    /// The end of its first group.
    first_end: usize,
    has_length: bool,
}

impl Lookalike {
    /// Returns `true` if a card is a part of it: not if nothing but two letters and two digits stands before a card.
    pub(super) fn holds_card(&self, card: &Range<usize>) -> bool {
        let is_inside = self.range.start <= card.start && card.start < self.range.end;
        let stands_apart = card.start <= self.first_end + 1 && card.end >= self.range.end;
        is_inside && (self.has_length || !stands_apart)
    }
}

/// Finds what is written as an IBAN, also with wrong check digits or a wrong length, in order.
pub(super) fn lookalikes(text: &str) -> Vec<Lookalike> {
    super::count_steps(text.len());
    let bytes = text.as_bytes();
    let mut found = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let begins_word = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        let is_named = || {
            let near = super::numbers::last_bytes(&text[..at], 12);
            near.to_ascii_lowercase().contains("iban")
        };
        let lookalike = (begins_word && begins_as_iban(&bytes[at..]))
            .then(|| lookalike(&bytes[at..], is_named()))
            .flatten();
        match lookalike {
            Some((first_end, end, has_length)) => {
                found.push(Lookalike {
                    range: at..at + end,
                    first_end: at + first_end,
                    has_length,
                });
                at += end;
            }
            None => at += 1,
        }
    }
    found
}

fn begins_as_iban(bytes: &[u8]) -> bool {
    matches!(bytes, [first, second, third, fourth, ..]
        if first.is_ascii_alphabetic() && second.is_ascii_alphabetic() && third.is_ascii_digit() && fourth.is_ascii_digit())
}

/// Returns the ends of the first and the last group of what has the form of an IBAN, and whether it has the length of one. A word
/// for it before it allows other countries and more lengths.
fn lookalike(bytes: &[u8], is_named: bool) -> Option<(usize, usize, bool)> {
    const LONGEST: usize = 34;
    const SHORTEST: usize = 15;
    let country = [bytes[0].to_ascii_uppercase(), bytes[1].to_ascii_uppercase()];
    let known = LENGTHS.binary_search_by_key(&&country, |(code, _)| *code);
    let expected = known
        .ok()
        .and_then(|at| LENGTHS.get(at))
        .map(|(_, len)| *len);
    if expected.is_none() && !is_named {
        return None;
    }
    let is_small = bytes[0].is_ascii_lowercase();
    let mut sizes: Vec<usize> = Vec::new();
    let (mut end, mut first_end, mut total) = (0, 0, 0);
    loop {
        super::count_steps(1);
        let begin = if sizes.is_empty() { 0 } else { end + 1 };
        let rest = bytes.get(begin..)?;
        let len = rest
            .iter()
            .take(LONGEST + 1)
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        let group = &rest[..len];
        let is_group = group.iter().any(u8::is_ascii_digit)
            || group.iter().all(u8::is_ascii_uppercase)
            || (is_small && sizes.len() == 1 && len == 4);
        if len == 0 || !is_group || total + len > LONGEST {
            break;
        }
        (end, total) = (begin + len, total + len);
        sizes.push(len);
        if sizes.len() == 1 {
            first_end = end;
        }
        let is_in_fours = sizes.len() > 1 && sizes[..2] == [4, 4];
        let is_whole = Some(total) == expected || (is_in_fours && len < 4);
        if is_whole || !matches!(bytes.get(end), Some(b' ' | b'-' | b'.' | b'/')) {
            break;
        }
        // A longer group after groups of four is another number.
        let next = bytes[end + 1..]
            .iter()
            .take(5)
            .take_while(|byte| byte.is_ascii_alphanumeric())
            .count();
        if is_in_fours && sizes.len() > 3 && next > 4 {
            break;
        }
    }
    let difference = expected.map_or(0, |expected| expected.abs_diff(total));
    let is_in_fours = matches!(&*sizes, [rest @ .., last]
        if !rest.is_empty() && *last <= 4 && rest.iter().all(|size| *size == 4));
    let is_iban = match (is_named, is_in_fours) {
        (true, true) => total >= 8,
        (true, false) => total >= SHORTEST - 4 && difference <= 6,
        (false, true) => total >= SHORTEST && (sizes.len() > 4 || difference <= 4),
        (false, false) => total >= SHORTEST && difference <= 2,
    };
    is_iban.then_some((first_end, end, difference == 0))
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
    fn the_form_of_an_iban_is_found_whatever_its_digits() {
        let found = |text: &str| {
            let found = lookalikes(text);
            found
                .first()
                .map(|found| text[found.range.clone()].to_owned())
        };
        for text in [
            "DE12 5001 0517 0648 4898 91",
            "DE12500105170648489891",
            "DE12 500105170648489891",
            "NL99 ABNA 0417 1643 01",
            "nl99 abna 0417 1643 01",
            "FR11 2004 1010 0505 0001 3M02 607",
            "FR14 20041 01005 0500013M026 07",
            "GB12 BARC 202015 30093459",
            "NO93-8601-1117-948",
            "DE12 5001 0517 0648 4898",
        ] {
            assert_eq!(found(text).as_deref(), Some(text));
            assert_eq!(found(&format!("{text} but")).as_deref(), Some(text));
        }
        assert_eq!(
            found("IBAN: DE12 5001 0517").as_deref(),
            Some("DE12 5001 0517")
        );
        for text in [
            "DE12 0171 2345678",
            "room IT15 0612 3456",
            "US12 5001 0517 0648 4898 91",
            "A4 paper",
        ] {
            assert_eq!(found(text), None, "{text:?}");
        }
    }

    #[test]
    fn the_countries_are_in_order() {
        assert!(LENGTHS.is_sorted_by_key(|(code, _)| *code));
    }
}
