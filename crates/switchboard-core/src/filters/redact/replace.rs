//! Replacing ranges of a text.

use std::ops::Range;

/// A range of a text and what replaces it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Replacement<'p> {
    pub(super) range: Range<usize>,
    pub(super) placeholder: &'p str,
}

/// Replaces ranges of a text. Ranges that overlap become one, with the placeholder of the longest. Returns
/// `None` if there are none.
pub(super) fn replace(text: &str, mut replacements: Vec<Replacement<'_>>) -> Option<String> {
    if replacements.is_empty() {
        return None;
    }
    replacements.sort_by_key(|replacement| replacement.range.start);
    let mut out = String::with_capacity(text.len());
    let mut copied = 0;
    let mut rest = replacements.into_iter().peekable();
    while let Some(first) = rest.next() {
        let Range { start, mut end } = first.range;
        let mut longest = (end - start, first.placeholder);
        while let Some(next) = rest.next_if(|next| next.range.start < end) {
            end = end.max(next.range.end);
            if next.range.len() > longest.0 {
                longest = (next.range.len(), next.placeholder);
            }
        }
        out.push_str(&text[copied..start]);
        out.push_str(longest.1);
        copied = end;
    }
    out.push_str(&text[copied..]);
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_become_one() {
        let replacement = |range, placeholder| Replacement { range, placeholder };
        let replacements = vec![
            replacement(8..10, "C"),
            replacement(4..7, "B"),
            replacement(2..5, "A"),
            replacement(6..8, "-"),
        ];
        assert_eq!(replace("0123456789", replacements).unwrap(), "01AC");
        assert_eq!(replace("text", Vec::new()), None);
    }
}
