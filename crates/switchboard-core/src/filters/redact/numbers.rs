//! The groups of digits in a text, for the detectors of numbers.

use std::ops::Range;

/// The groups of ASCII digits of a normalized text, except those in UUIDs.
pub(super) struct Numbers<'t> {
    pub(super) text: &'t str,
    pub(super) groups: Vec<Range<usize>>,
}

impl<'t> Numbers<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        super::count_steps(text.len());
        let bytes = text.as_bytes();
        let mut groups = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let begins_word = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
            if begins_word && is_uuid(&bytes[at..]) {
                at += UUID_LEN;
            } else if bytes[at].is_ascii_digit() {
                let len = bytes[at..].iter().take_while(|byte| byte.is_ascii_digit());
                let end = at + len.count();
                groups.push(at..end);
                at = end;
            } else {
                at += 1;
            }
        }
        Self { text, groups }
    }

    /// Returns the text between a group and the next.
    pub(super) fn separator(&self, group: usize) -> &'t str {
        match self.groups.get(group + 1) {
            Some(next) => &self.text[self.groups[group].end..next.start],
            None => "",
        }
    }

    pub(super) fn digits(&self, group: usize) -> &'t str {
        &self.text[self.groups[group].clone()]
    }

    /// Returns the digits of several groups.
    pub(super) fn joined(&self, groups: Range<usize>) -> String {
        groups.map(|group| self.digits(group)).collect()
    }

    /// Returns the sizes of several groups.
    pub(super) fn sizes(&self, groups: Range<usize>) -> impl Iterator<Item = usize> {
        self.groups[groups].iter().map(Range::len)
    }

    pub(super) fn range(&self, groups: Range<usize>) -> Range<usize> {
        self.groups[groups.start].start..self.groups[groups.end - 1].end
    }

    /// Returns `true` if a number is not part of a longer one, a fraction or a word.
    pub(super) fn is_whole(&self, range: &Range<usize>) -> bool {
        let bytes = self.text.as_bytes();
        let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
        let continues_before = match &bytes[..range.start] {
            [.., last] if is_word(last) => true,
            [.., before, b'-' | b'.'] => before.is_ascii_digit(),
            _ => false,
        };
        let continues_after = match &bytes[range.end..] {
            [next, ..] if is_word(next) => true,
            [b'-' | b'.', after, ..] => after.is_ascii_digit(),
            _ => false,
        };
        !continues_before && !continues_after
    }
}

const UUID_LEN: usize = 36;

fn is_uuid(bytes: &[u8]) -> bool {
    let is_dash = |at: usize| matches!(at, 8 | 13 | 18 | 23);
    bytes.len() >= UUID_LEN
        && (bytes[..UUID_LEN].iter().enumerate()).all(|(at, byte)| {
            if is_dash(at) {
                *byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        })
}

/// Returns the end of `text`, at most `len` bytes of it.
pub(super) fn last_bytes(text: &str, len: usize) -> &str {
    let start = text.len().saturating_sub(len);
    let start = (start..=text.len()).find(|at| text.is_char_boundary(*at));
    &text[start.unwrap_or(text.len())..]
}

/// Returns the beginning of `text`, at most `len` bytes of it.
pub(super) fn first_bytes(text: &str, len: usize) -> &str {
    let end = (0..=len.min(text.len()))
        .rev()
        .find(|at| text.is_char_boundary(*at));
    &text[..end.unwrap_or(0)]
}
