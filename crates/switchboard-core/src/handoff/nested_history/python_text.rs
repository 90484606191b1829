//! Line breaks, white space and digits as Python defines them.

/// Splits text into lines like Python's `str.splitlines`.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let text = rest?;
        let (line, after) = text.split_at(text.find(is_line_break).unwrap_or(text.len()));
        let after = after
            .strip_prefix("\r\n")
            .or_else(|| after.strip_prefix(is_line_break));
        rest = after.filter(|text| !text.is_empty());
        Some(line)
    })
}

/// Returns `true` for a character at which Python's `str.splitlines` splits.
pub(super) fn is_line_break(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{1c}'..='\u{1e}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// Returns `true` for white space that Python's `str.strip` removes.
fn is_white_space(c: char) -> bool {
    c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}')
}

pub(super) fn strip(text: &str) -> &str {
    text.trim_matches(is_white_space)
}

pub(super) fn strip_start(text: &str) -> &str {
    text.trim_start_matches(is_white_space)
}

pub(super) fn strip_end(text: &str) -> &str {
    text.trim_end_matches(is_white_space)
}

/// Returns `true` for a character that Python's `str.isdigit` accepts.
pub(super) fn is_digit(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_digit();
    }
    let code = u32::from(c);
    let range = DIGITS.partition_point(|(_, last)| *last < code);
    DIGITS.get(range).is_some_and(|(first, _)| *first <= code)
}

/// The ranges of code points that Python's `str.isdigit` accepts: decimal digits, superscripts,
/// circled digits.
#[rustfmt::skip]
const DIGITS: [(u32, u32); 81] = [
    (0x30, 0x39), (0xb2, 0xb3), (0xb9, 0xb9), (0x660, 0x669),
    (0x6f0, 0x6f9), (0x7c0, 0x7c9), (0x966, 0x96f), (0x9e6, 0x9ef),
    (0xa66, 0xa6f), (0xae6, 0xaef), (0xb66, 0xb6f), (0xbe6, 0xbef),
    (0xc66, 0xc6f), (0xce6, 0xcef), (0xd66, 0xd6f), (0xde6, 0xdef),
    (0xe50, 0xe59), (0xed0, 0xed9), (0xf20, 0xf29), (0x1040, 0x1049),
    (0x1090, 0x1099), (0x1369, 0x1371), (0x17e0, 0x17e9), (0x1810, 0x1819),
    (0x1946, 0x194f), (0x19d0, 0x19da), (0x1a80, 0x1a89), (0x1a90, 0x1a99),
    (0x1b50, 0x1b59), (0x1bb0, 0x1bb9), (0x1c40, 0x1c49), (0x1c50, 0x1c59),
    (0x2070, 0x2070), (0x2074, 0x2079), (0x2080, 0x2089), (0x2460, 0x2468),
    (0x2474, 0x247c), (0x2488, 0x2490), (0x24ea, 0x24ea), (0x24f5, 0x24fd),
    (0x24ff, 0x24ff), (0x2776, 0x277e), (0x2780, 0x2788), (0x278a, 0x2792),
    (0xa620, 0xa629), (0xa8d0, 0xa8d9), (0xa900, 0xa909), (0xa9d0, 0xa9d9),
    (0xa9f0, 0xa9f9), (0xaa50, 0xaa59), (0xabf0, 0xabf9), (0xff10, 0xff19),
    (0x104a0, 0x104a9), (0x10a40, 0x10a43), (0x10d30, 0x10d39), (0x10e60, 0x10e68),
    (0x11052, 0x1105a), (0x11066, 0x1106f), (0x110f0, 0x110f9), (0x11136, 0x1113f),
    (0x111d0, 0x111d9), (0x112f0, 0x112f9), (0x11450, 0x11459), (0x114d0, 0x114d9),
    (0x11650, 0x11659), (0x116c0, 0x116c9), (0x11730, 0x11739), (0x118e0, 0x118e9),
    (0x11950, 0x11959), (0x11c50, 0x11c59), (0x11d50, 0x11d59), (0x11da0, 0x11da9),
    (0x16a60, 0x16a69), (0x16ac0, 0x16ac9), (0x16b50, 0x16b59), (0x1d7ce, 0x1d7ff),
    (0x1e140, 0x1e149), (0x1e2f0, 0x1e2f9), (0x1e950, 0x1e959), (0x1f100, 0x1f10a),
    (0x1fbf0, 0x1fbf9),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_split_as_in_python() {
        let split = |text| lines(text).collect::<Vec<_>>();
        assert_eq!(split("a\r\nb\u{2028}c\n\nd\n"), ["a", "b", "c", "", "d"]);
        assert_eq!(split(""), [""; 0]);
    }

    #[test]
    fn digits_are_those_of_python() {
        for c in ['0', '٣', '²', '①', '𝟗'] {
            assert!(is_digit(c), "{c}");
        }
        for c in ['½', '五', 'Ⅷ', 'a'] {
            assert!(!is_digit(c), "{c}");
        }
    }
}
