//! Small helpers over JSON text: quoting, lenient unquoting, compacting.
//!
//! Items keep the bytes they arrived in, so most of this works on text and never builds a tree.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

/// Appends `text` as a JSON string literal.
pub(crate) fn quote_into(out: &mut String, text: &str) {
    out.push('"');
    let mut rest = text;
    let must_escape = |byte: &u8| matches!(byte, b'"' | b'\\' | 0x00..=0x1f);
    while let Some(at) = rest.as_bytes().iter().position(must_escape) {
        out.push_str(&rest[..at]);
        match rest.as_bytes()[at] {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            control => push_unicode_escape(out, u16::from(control)),
        }
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
    out.push('"');
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

fn push_unicode_escape(out: &mut String, unit: u16) {
    // Writing to a String cannot fail.
    let _ = write!(out, "\\u{unit:04x}");
}

/// The text of a JSON string token, or `None` where `token` is not a string.
///
/// A lone surrogate, which JSON allows and a Rust string cannot hold, becomes U+FFFD.
pub(crate) fn unquote(token: &str) -> Option<Cow<'_, str>> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    if !inner.contains('\\') {
        return Some(Cow::Borrowed(inner));
    }
    match serde_json::from_str::<String>(token) {
        Ok(text) => Some(Cow::Owned(text)),
        Err(_) => Some(Cow::Owned(unescape_lossy(inner))),
    }
}

fn unescape_lossy(inner: &str) -> String {
    let mut out = String::with_capacity(inner.len());
    let mut rest = inner;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = rest[at + 1..].chars().next().unwrap_or('\\');
        let mut used = at + 1 + escape.len_utf8();
        match escape {
            'n' => out.push('\n'),
            'r' => out.push('\r'),
            't' => out.push('\t'),
            'b' => out.push('\u{8}'),
            'f' => out.push('\u{c}'),
            'u' => {
                let high = hex_unit(rest, used);
                used = (used + 4).min(rest.len());
                let low = rest[used..]
                    .starts_with("\\u")
                    .then(|| hex_unit(rest, used + 2))
                    .flatten();
                match (high, low) {
                    (Some(high @ 0xd800..=0xdbff), Some(low @ 0xdc00..=0xdfff)) => {
                        let code = 0x10000 + ((high - 0xd800) << 10) + (low - 0xdc00);
                        out.push(char::from_u32(code).unwrap_or('\u{fffd}'));
                        used = (used + 6).min(rest.len());
                    }
                    (Some(unit), _) => out.push(char::from_u32(unit).unwrap_or('\u{fffd}')),
                    (None, _) => out.push('\u{fffd}'),
                }
            }
            other => out.push(other),
        }
        rest = &rest[used..];
    }
    out.push_str(rest);
    out
}

fn hex_unit(text: &str, at: usize) -> Option<u32> {
    u32::from_str_radix(text.get(at..at + 4)?, 16).ok()
}

/// `raw` on one line: white space between tokens goes when there is a line break among it.
pub(crate) fn on_one_line(raw: &str) -> Cow<'_, str> {
    if !raw.contains(['\n', '\r']) {
        return Cow::Borrowed(raw);
    }
    let mut out = String::with_capacity(raw.len());
    let mut in_string = false;
    let mut escaped = false;
    for character in raw.chars() {
        if in_string {
            in_string = escaped || character != '"';
            escaped = character == '\\' && !escaped;
        } else if matches!(character, ' ' | '\n' | '\r' | '\t') {
            continue;
        } else {
            in_string = character == '"';
        }
        out.push(character);
    }
    Cow::Owned(out)
}

/// Stores a value as a document of its own, so that it may be as deep as any and not only as deep
/// as what it is part of leaves room for. What is deeper than can be read comes back as its text.
pub(crate) mod on_its_own {
    use serde::de::Deserialize as _;
    use serde::{Deserializer, Serialize as _, Serializer};
    use serde_json::Value;
    use serde_json::value::{RawValue, to_raw_value};

    pub(crate) fn serialize<S: Serializer>(
        value: &Value,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        let raw = to_raw_value(value).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Value, D::Error> {
        let raw: Box<RawValue> = Box::deserialize(deserializer)?;
        let value = serde_json::from_str(raw.get());
        Ok(value.unwrap_or_else(|_| Value::String(raw.get().to_owned())))
    }
}

/// A value in the form of Python's `json.dumps(.., ensure_ascii=False)`: a space after each comma
/// and colon.
pub(crate) fn as_python_writes(value: &Value) -> String {
    let mut out = String::new();
    write_as_python(&mut out, value);
    out
}

fn write_as_python(out: &mut String, value: &Value) {
    let mut separator = "";
    match value {
        Value::Object(fields) => {
            out.push('{');
            for (key, value) in fields {
                out.push_str(separator);
                quote_into(out, key);
                out.push_str(": ");
                write_as_python(out, value);
                separator = ", ";
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for element in elements {
                out.push_str(separator);
                write_as_python(out, element);
                separator = ", ";
            }
            out.push(']');
        }
        Value::String(text) => quote_into(out, text),
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

/// The strings and numbers of a JSON text, with where they stand.
pub(crate) struct Scalars<'a> {
    raw: &'a str,
    at: usize,
    /// For each open container: whether it is an object, and its current key.
    open: Vec<(bool, Option<&'a str>)>,
    expects_key: bool,
}

/// One string or number of a JSON text.
pub(crate) struct Scalar<'a> {
    pub(crate) token: &'a str,
    pub(crate) at: usize,
    pub(crate) is_key: bool,
    /// How many containers it is in.
    pub(crate) depth: usize,
    /// The key it is the value of, as it is written.
    pub(crate) key: Option<&'a str>,
}

impl<'a> Scalars<'a> {
    /// `raw` must be JSON.
    pub(crate) fn new(raw: &'a str) -> Self {
        Self {
            raw,
            at: 0,
            open: Vec::new(),
            expects_key: false,
        }
    }

    pub(crate) fn next_scalar(&mut self) -> Option<Scalar<'a>> {
        let bytes = self.raw.as_bytes();
        while let Some(byte) = bytes.get(self.at) {
            match byte {
                b'{' | b'[' => {
                    self.open.push((*byte == b'{', None));
                    self.expects_key = *byte == b'{';
                }
                b'}' | b']' => {
                    self.open.pop();
                    self.expects_key = false;
                }
                b',' => {
                    self.expects_key = self.open.last().is_some_and(|(is_object, _)| *is_object)
                }
                b'"' => return self.string(),
                b'-' | b'0'..=b'9' => return self.number(),
                _ => {}
            }
            self.at += 1;
        }
        None
    }

    fn number(&mut self) -> Option<Scalar<'a>> {
        let start = self.at;
        let rest = &self.raw[start..];
        let ends = |c: char| !matches!(c, '-' | '+' | '.' | 'e' | 'E' | '0'..='9');
        let token = &rest[..rest.find(ends).unwrap_or(rest.len())];
        self.at = start + token.len();
        Some(Scalar {
            token,
            at: start,
            is_key: false,
            depth: self.open.len(),
            key: self.open.last().and_then(|(_, key)| *key),
        })
    }

    fn string(&mut self) -> Option<Scalar<'a>> {
        let start = self.at;
        let bytes = self.raw.as_bytes();
        let mut end = start + 1;
        while *bytes.get(end)? != b'"' {
            end += if bytes[end] == b'\\' { 2 } else { 1 };
        }
        self.at = end + 1;
        let token = self.raw.get(start..=end)?;
        let is_key = self.expects_key;
        self.expects_key = false;
        let depth = self.open.len();
        let key = match self.open.last_mut() {
            Some((true, key)) if is_key => {
                *key = token.get(1..token.len() - 1);
                None
            }
            Some((_, key)) => *key,
            None => None,
        };
        Some(Scalar {
            token,
            at: start,
            is_key,
            depth,
            key,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_lone_surrogate_becomes_the_replacement_character() {
        assert_eq!(unquote(r#""a\ud800b""#).unwrap(), "a\u{fffd}b");
        assert_eq!(
            unquote(r#""\ud83d\ude00 \udc00\n""#).unwrap(),
            "😀 \u{fffd}\n"
        );
    }

    #[test]
    fn pretty_printed_json_is_put_on_one_line() {
        assert_eq!(
            on_one_line("{\n  \"a b\" : \"c \\\" d\"\n}"),
            r#"{"a b":"c \" d"}"#
        );
        assert_eq!(on_one_line(r#"{"a": 1}"#), r#"{"a": 1}"#);
    }
}
