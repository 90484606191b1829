//! Text with its digits, spaces and punctuation in ASCII, as the detectors expect it.

use std::borrow::Cow;
use std::cmp::Ordering;
use std::ops::Range;

use super::tables::unicode::{MARKS, ZEROS};

/// A text with digits, full-width characters, spaces and dashes replaced by ASCII, and with invisible
/// characters and marks on digits removed, and the mapping of its offsets to the original text.
pub(super) struct Normalized<'a> {
    text: Cow<'a, str>,
    /// Pairs of offsets (normalized, original) after each character that was changed, in order.
    changes: Vec<(usize, usize)>,
}

impl<'a> Normalized<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut changes = Vec::new();
        if text.is_ascii() {
            let text = Cow::Borrowed(text);
            return Self { text, changes };
        }
        let mut normalized = String::with_capacity(text.len());
        for (offset, c) in text.char_indices() {
            let follows_digit = normalized.ends_with(|last: char| last.is_ascii_digit());
            let replacement = match normalize(c) {
                Some(mark) if follows_digit && is_mark(mark) => None,
                replacement => replacement,
            };
            normalized.extend(replacement);
            if replacement != Some(c) {
                changes.push((normalized.len(), offset + c.len_utf8()));
            }
        }
        let text = Cow::Owned(normalized);
        Self { text, changes }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the range of the original text for a range of the normalized one.
    pub(super) fn original_range(&self, range: &Range<usize>) -> Range<usize> {
        self.original_offset(range.start)..self.original_offset(range.end)
    }

    fn original_offset(&self, offset: usize) -> usize {
        let before = self.changes.partition_point(|(at, _)| *at <= offset);
        match self.changes[..before].last() {
            Some((normalized, original)) => original + (offset - normalized),
            None => offset,
        }
    }
}

/// Returns the value of a decimal digit of any script.
pub(super) fn digit_value(c: char) -> Option<u8> {
    if c.is_ascii() {
        return c.is_ascii_digit().then(|| c as u8 - b'0');
    }
    let after = ZEROS.partition_point(|zero| *zero <= c);
    let zero = u32::from(*ZEROS.get(after.checked_sub(1)?)?);
    u8::try_from(u32::from(c) - zero)
        .ok()
        .filter(|digit| *digit < 10)
}

/// Returns `true` for combining marks, in all scripts.
pub(super) fn is_mark(c: char) -> bool {
    let position = |(first, last): &(char, char)| match (*last < c, *first > c) {
        (true, _) => Ordering::Less,
        (_, true) => Ordering::Greater,
        _ => Ordering::Equal,
    };
    c > '\u{2ff}' && MARKS.binary_search_by(position).is_ok()
}

/// Returns `true` for characters that show nothing: the property `Default_Ignorable_Code_Point` in
/// Unicode's `DerivedCoreProperties.txt`, with variation selectors and tags.
pub(super) fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Returns the ASCII form of a character, `None` for an invisible one, and others unchanged.
fn normalize(c: char) -> Option<char> {
    match c {
        '\0'..='\u{7f}' => Some(c),
        // The full-width block mirrors ASCII at a fixed distance.
        '\u{ff01}'..='\u{ff5e}' => char::from_u32(u32::from(c) - 0xfee0),
        '\u{fe6b}' => Some('@'),
        '\u{fe52}' => Some('.'),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => Some('-'),
        _ if is_ignorable(c) => None,
        _ => match digit_value(c) {
            Some(digit) => Some(char::from(b'0' + digit)),
            None => Some(c),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_maps_back_to_the_original_text() {
        let text = "号\u{202a}１２\u{a0}3\u{200b}4\u{202c}!";
        let normalized = Normalized::new(text);
        assert_eq!(normalized.text(), "号12 34!");
        let start = normalized.text().find("12 34").unwrap();
        let original = normalized.original_range(&(start..start + 5));
        assert_eq!(&text[original], "１２\u{a0}3\u{200b}4\u{202c}");
        assert_eq!(Normalized::new("né").original_range(&(1..3)), 1..3);
    }

    #[test]
    fn digits_of_all_scripts_become_ascii_and_marks_on_them_go() {
        for text in [
            "٤٢",
            "۴۲",
            "४२",
            "๔๒",
            "４２",
            "𝟒𝟐",
            "4\u{336}2\u{20e3}",
            "4\u{fe0f}\u{20e3}2",
        ] {
            assert_eq!(Normalized::new(text).text(), "42", "of {text:?}");
        }
        assert_eq!(Normalized::new("é²½一").text(), "é²½一");
        assert_eq!(Normalized::new("हिन्दी e\u{301}").text(), "हिन्दी e\u{301}");
    }

    #[test]
    fn ignorable_characters_are_those_of_unicode() {
        let property = regex::Regex::new(r"^\p{Default_Ignorable_Code_Point}$").unwrap();
        let mut buffer = [0; 4];
        for c in (0..=0x10_ffff_u32).filter_map(char::from_u32) {
            let expected = property.is_match(c.encode_utf8(&mut buffer));
            assert_eq!(is_ignorable(c), expected, "of {c:?}");
        }
    }
}
