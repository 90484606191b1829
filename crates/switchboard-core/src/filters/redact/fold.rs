//! Text as patterns want it: the many ways to write a digit, a space or a dash made one.

use std::borrow::Cow;
use std::ops::Range;

/// A text with letters, digits, spaces, dashes and signs in their ASCII form and invisible characters left
/// out, and the way back to the places in the text it was made from.
pub(super) struct Folded<'a> {
    text: Cow<'a, str>,
    /// Where the folded text and the original part: the place in each, in order.
    steps: Vec<(usize, usize)>,
}

impl<'a> Folded<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        if text.is_ascii() || !text.chars().any(|c| fold(c) != Fold::Same) {
            return Self {
                text: Cow::Borrowed(text),
                steps: Vec::new(),
            };
        }
        let mut folded = String::with_capacity(text.len());
        let mut steps = Vec::new();
        for (at, c) in text.char_indices() {
            match fold(c) {
                Fold::Same => {
                    folded.push(c);
                    continue;
                }
                Fold::To(ascii) => folded.push(ascii),
                Fold::Gone => {}
            }
            steps.push((folded.len(), at + c.len_utf8()));
        }
        Self {
            text: Cow::Owned(folded),
            steps,
        }
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// The range of the original text for a range of the folded one.
    pub(super) fn original(&self, range: &Range<usize>) -> Range<usize> {
        self.place(range.start)..self.place(range.end)
    }

    fn place(&self, at: usize) -> usize {
        let passed = self.steps.partition_point(|(folded, _)| *folded <= at);
        match passed.checked_sub(1).map(|last| self.steps[last]) {
            Some((folded, original)) => original + (at - folded),
            None => at,
        }
    }
}

#[derive(PartialEq)]
enum Fold {
    Same,
    To(char),
    Gone,
}

fn fold(c: char) -> Fold {
    match c {
        '\0'..='\x7f' => Fold::Same,
        // Full-width forms stand at a fixed distance from ASCII: letters, digits, and signs of numbers
        // and addresses.
        'Ａ'..='Ｚ'
        | 'ａ'..='ｚ'
        | '０'..='９'
        | '（'
        | '）'
        | '＋'
        | '－'
        | '．'
        | '＠'
        | '：'
        | '＃'
        | '＿' => char::from_u32(u32::from(c) - 0xfee0).map_or(Fold::Same, Fold::To),
        '\u{a0}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => Fold::To(' '),
        '\u{2010}'..='\u{2015}' | '\u{2212}' | '\u{fe58}' | '\u{fe63}' => Fold::To('-'),
        // Soft hyphens, joiners and marks of direction, which come along with copied numbers.
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}' => Fold::Gone,
        _ => Fold::Same,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_of_the_folded_text_leads_back() {
        let text = "号\u{202a}１２\u{a0}3\u{200b}4\u{202c}!";
        let folded = Folded::new(text);
        assert_eq!(folded.text(), "号12 34!");
        let found = folded.text().find("12 34").unwrap();
        let original = folded.original(&(found..found + 5));
        assert_eq!(&text[original], "１２\u{a0}3\u{200b}4\u{202c}");
        assert_eq!(Folded::new("né").original(&(1..3)), 1..3);
    }
}
