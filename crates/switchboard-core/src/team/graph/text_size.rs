//! Estimates of the size of text in an image.

/// The columns of a text in a terminal: 2 for wide characters, 0 for combining ones.
pub(super) fn columns(text: &str) -> usize {
    text.chars().map(char_columns).sum()
}

fn char_columns(c: char) -> usize {
    match u32::from(c) {
        0x0300..=0x036F | 0x200B..=0x200F | 0xFE00..=0xFE0F => 0,
        0x1100..=0x115F
        | 0x2E80..=0xA4CF
        | 0xAC00..=0xD7A3
        | 0xF900..=0xFAFF
        | 0xFE30..=0xFE4F
        | 0xFF00..=0xFF60
        | 0xFFE0..=0xFFE6
        | 0x1F300..=0x1FAFF
        | 0x20000..=0x3FFFD => 2,
        _ => 1,
    }
}

/// The width of a text of this font size. Fonts differ; this is on the safe side for sans serif.
pub(super) fn width(text: &str, font_size: f64) -> f64 {
    // Labels have thousands of columns at most.
    f64::from(u32::try_from(columns(text)).unwrap_or(u32::MAX)) * font_size * 0.58
}

/// Breaks a text at spaces into lines of at most this many columns, as far as words allow.
pub(super) fn wrapped(text: &str, max_columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= max_columns => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
