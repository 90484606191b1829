//! Styles as private characters, which the wrapper counts as no columns.

use crate::screen::wrap::{FIRST_MARK, LAST_MARK};

pub(super) const BOLD: u32 = 1;
pub(super) const ITALIC: u32 = 2;
pub(super) const CODE: u32 = 4;
pub(super) const HEADING: u32 = 8;
pub(super) const QUOTE: u32 = 16;
pub(super) const LINK: u32 = 32;

/// The private character that sets these styles.
pub(super) fn mark(styles: u32) -> char {
    char::from_u32(u32::from(FIRST_MARK) + styles).unwrap_or(FIRST_MARK)
}

/// Replaces the private characters by escape sequences.
pub(super) fn escape_sequences(marked: &str) -> String {
    let mut out = String::with_capacity(marked.len());
    for c in marked.chars() {
        if !(FIRST_MARK..=LAST_MARK).contains(&c) {
            out.push(c);
            continue;
        }
        let styles = u32::from(c) - u32::from(FIRST_MARK);
        out.push_str("\u{1b}[0");
        for (style, code) in [
            (BOLD, ";1"),
            (ITALIC, ";3"),
            (CODE, ";36"),
            (HEADING, ";1;4"),
            (QUOTE, ";2"),
            (LINK, ";34"),
        ] {
            if styles & style != 0 {
                out.push_str(code);
            }
        }
        out.push('m');
    }
    out
}
