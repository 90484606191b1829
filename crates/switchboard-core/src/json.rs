//! Small helpers over JSON text: quoting, lenient unquoting, compacting.
//!
//! Items keep the bytes they arrived in, so most of this works on text and never builds a tree.

mod blocks;
mod plain;
mod quote;

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

pub(crate) use blocks::{any_byte, first_byte};
pub(crate) use plain::{maybe_end_in, plain_len};
pub use quote::quote_into;
pub(crate) use quote::{Quoted, quote_ascii_into};

/// The text of a JSON string token, or `None` where `token` is not a string.
///
/// A lone surrogate, which JSON allows and a Rust string cannot hold, becomes U+FFFD.
pub(crate) fn unquote(token: &str) -> Option<Cow<'_, str>> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    if !any_byte(inner.as_bytes(), |byte| byte == b'\\') {
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
        loop {
            end += first_byte(bytes.get(end..)?, |byte| (byte == b'"') | (byte == b'\\'));
            match bytes.get(end)? {
                b'"' => break,
                _ => end += 2,
            }
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
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_lone_surrogate_becomes_the_replacement_character() {
        assert_eq!(unquote(r#""a\ud800b""#).unwrap(), "a\u{fffd}b");
        assert_eq!(
            unquote(r#""\ud83d\ude00 \udc00\n""#).unwrap(),
            "😀 \u{fffd}\n"
        );
    }

    proptest! {
        #[test]
        fn every_string_is_found_where_it_stands(
            texts in prop::collection::vec("([ -~]{0,20}|[\"\\\\\n账]){0,4}", 0..5),
        ) {
            let raw = serde_json::to_string(&texts).unwrap();
            let mut scalars = Scalars::new(&raw);
            for text in &texts {
                let scalar = scalars.next_scalar().unwrap();
                prop_assert_eq!(unquote(scalar.token).unwrap(), text.as_str());
                prop_assert!(raw[scalar.at..].starts_with(scalar.token));
            }
            prop_assert!(scalars.next_scalar().is_none());
        }
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
