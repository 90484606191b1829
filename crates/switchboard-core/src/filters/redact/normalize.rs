//! Text with its digits, spaces and punctuation in ASCII, as the detectors expect it.

use std::borrow::Cow;
use std::ops::Range;

/// A text with full-width characters, spaces and dashes replaced by ASCII and invisible characters
/// removed, and the mapping of its offsets to the original text.
pub(super) struct Normalized<'a> {
    text: Cow<'a, str>,
    /// Pairs of offsets (normalized, original) after each character that was changed, in order.
    changes: Vec<(usize, usize)>,
}

impl<'a> Normalized<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let mut changes = Vec::new();
        if text.is_ascii() || text.chars().all(|c| normalize(c) == Some(c)) {
            let text = Cow::Borrowed(text);
            return Self { text, changes };
        }
        let mut normalized = String::with_capacity(text.len());
        for (offset, c) in text.char_indices() {
            let replacement = normalize(c);
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

/// Returns the ASCII form of a character, `None` for an invisible one, and others unchanged.
fn normalize(c: char) -> Option<char> {
    match c {
        // The full-width block mirrors ASCII at a fixed distance.
        'Ａ'..='Ｚ' | 'ａ'..='ｚ' | '０'..='９' => full_width_to_ascii(c),
        '（' | '）' | '＋' | '－' | '．' | '＠' | '：' | '＃' | '＿' => {
            full_width_to_ascii(c)
        }
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Some(' '),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => Some('-'),
        // Soft hyphens, joiners and direction marks come along with copied numbers.
        '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' => None,
        '\u{2060}'..='\u{2069}' | '\u{feff}' => None,
        _ => Some(c),
    }
}

fn full_width_to_ascii(c: char) -> Option<char> {
    char::from_u32(u32::from(c) - 0xfee0)
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
}
