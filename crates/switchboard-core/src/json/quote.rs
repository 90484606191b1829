//! Writing JSON string literals.

use std::fmt::Write as _;

use super::first_byte;

/// Appends `text` as a JSON string literal.
pub(crate) fn quote_into(out: &mut String, text: &str) {
    Quoted::write(out, |quoted| quoted.push(text));
}

/// Appends `text` as a JSON string literal with everything outside ASCII escaped.
pub(crate) fn quote_ascii_into(out: &mut String, text: &str) {
    if text.is_ascii() {
        return quote_into(out, text);
    }
    let mut quoted = String::with_capacity(text.len() + 2);
    quote_into(&mut quoted, text);
    let mut units = [0; 2];
    for character in quoted.chars() {
        if character.is_ascii() {
            out.push(character);
            continue;
        }
        for unit in character.encode_utf16(&mut units) {
            push_unicode_escape(out, *unit);
        }
    }
}

/// A writer of one JSON string literal, which escapes each piece as it is added.
pub(crate) struct Quoted<'a>(&'a mut String);

impl<'a> Quoted<'a> {
    /// Appends the literal whose content `write` adds.
    pub(crate) fn write(out: &'a mut String, write: impl FnOnce(&mut Self)) {
        out.push('"');
        let mut quoted = Self(out);
        write(&mut quoted);
        quoted.0.push('"');
    }

    /// Adds a text, escaped.
    pub(crate) fn push(&mut self, text: &str) {
        let out = &mut *self.0;
        let mut rest = text;
        loop {
            let (plain, more) = rest.split_at(first_byte(rest.as_bytes(), needs_escape));
            out.push_str(plain);
            match more.as_bytes().first() {
                None => return,
                Some(b'"') => out.push_str("\\\""),
                Some(b'\\') => out.push_str("\\\\"),
                Some(b'\n') => out.push_str("\\n"),
                Some(b'\r') => out.push_str("\\r"),
                Some(b'\t') => out.push_str("\\t"),
                Some(0x08) => out.push_str("\\b"),
                Some(0x0c) => out.push_str("\\f"),
                Some(control) => push_unicode_escape(out, u16::from(*control)),
            }
            rest = &more[1..];
        }
    }

    /// The length of the output so far.
    pub(crate) fn place(&self) -> usize {
        self.0.len()
    }

    /// Adds text that needs no escapes.
    pub(crate) fn push_plain(&mut self, text: &str) {
        self.0.push_str(text);
    }
}

fn needs_escape(byte: u8) -> bool {
    (byte < 0x20) | (byte == b'"') | (byte == b'\\')
}

fn push_unicode_escape(out: &mut String, unit: u16) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\u{unit:04x}");
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::unquote;

    #[test]
    fn quoting_and_unquoting_are_inverse() {
        let text = "tab\t quote\" back\\ line\n bell\u{7} 账单 😀";
        let mut quoted = String::new();
        quote_into(&mut quoted, text);
        assert_eq!(unquote(&quoted).unwrap(), text);
        let mut ascii = String::new();
        quote_ascii_into(&mut ascii, text);
        assert_eq!(unquote(&ascii).unwrap(), text);
        assert!(ascii.is_ascii());
    }

    proptest! {
        #[test]
        fn texts_are_quoted_as_serde_json_quotes_them(
            pieces in prop::collection::vec("[ -~]{0,40}|\\PC{0,9}|[\\x00-\\x1f\"\\\\]{0,3}", 0..6),
        ) {
            let text = pieces.concat();
            let mut whole = String::new();
            quote_into(&mut whole, &text);
            prop_assert_eq!(&whole, &serde_json::to_string(&text).unwrap());
            let mut in_pieces = String::new();
            Quoted::write(&mut in_pieces, |quoted| pieces.iter().for_each(|piece| quoted.push(piece)));
            prop_assert_eq!(in_pieces, whole);
        }
    }
}
