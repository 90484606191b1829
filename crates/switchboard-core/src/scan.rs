//! JSON as it mostly is, read in one pass into what is needed of it.
//!
//! A reader asks for the values of the fields it knows and skips the rest, which is checked all the
//! same: what is no JSON is not read. What is not as it should be (a field twice, a number as text,
//! half a character, lists as deep as no server's) is `None` here, and whoever asked has a closer look
//! with a reader that takes it: what is read is the same, the cost is not. A piece of a streamed answer
//! takes 4,300 instructions; with a derived type it took 6,100, and as a tree of values 13,700.

use std::borrow::Cow;

use crate::json;

/// How deep values may be nested, each level being a bit.
const DEEPEST: u32 = 60;

/// A place in a JSON text.
#[derive(Debug)]
pub struct Scanner<'a> {
    json: &'a str,
    at: usize,
}

/// Reads one object, whose fields `field` takes.
pub fn object<'a>(
    json: &'a str,
    field: impl FnMut(&mut Scanner<'a>, &'a str) -> Option<()>,
) -> Option<()> {
    let mut scanner = Scanner::new(json);
    scanner.object(field)?;
    scanner.is_at_end().then_some(())
}

/// Keeps the value of a field. A field that is there twice is not usual.
pub fn keep<T>(slot: &mut Option<T>, value: Option<Option<T>>) -> Option<()> {
    let value = value?;
    if slot.is_some() {
        return None;
    }
    *slot = value;
    Some(())
}

/// Keeps a count that stands in an object of its own.
pub fn detail(scanner: &mut Scanner<'_>, name: &str, slot: &mut Option<u64>) -> Option<()> {
    let read = scanner.nullable(|scanner| {
        scanner.object(|scanner, key| match key == name {
            true => keep(slot, scanner.count()),
            false => scanner.ignore(),
        })
    });
    read.map(|_| ())
}

impl<'a> Scanner<'a> {
    pub(crate) fn new(json: &'a str) -> Self {
        Self { json, at: 0 }
    }

    /// Whether nothing but white space follows.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Whether this byte comes next.
    pub(crate) fn is_at(&mut self, byte: u8) -> bool {
        self.peek() == Some(byte)
    }

    /// Where it is, in bytes.
    pub(crate) fn place(&self) -> usize {
        self.at
    }

    /// What `read` goes over, which is told where it begins.
    pub(crate) fn taken(
        &mut self,
        read: impl FnOnce(&mut Self, usize) -> Option<()>,
    ) -> Option<&'a str> {
        self.peek()?;
        let start = self.at;
        read(self, start)?;
        self.json.get(start..self.at)
    }

    /// An object, whose fields `field` takes.
    #[inline]
    pub fn object(
        &mut self,
        mut field: impl FnMut(&mut Self, &'a str) -> Option<()>,
    ) -> Option<()> {
        self.expect(b'{')?;
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(());
        }
        loop {
            self.peek()?;
            let key = self.plain()?;
            self.expect(b':')?;
            field(self, key)?;
            if !self.goes_on(b'}')? {
                return Some(());
            }
        }
    }

    /// A list, whose elements `element` takes.
    #[inline]
    pub fn list(&mut self, mut element: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.expect(b'[')?;
        if self.peek()? == b']' {
            self.at += 1;
            return Some(());
        }
        loop {
            element(self)?;
            if !self.goes_on(b']')? {
                return Some(());
            }
        }
    }

    /// A value, or `Some(None)` for a null.
    #[inline]
    pub fn nullable<T>(&mut self, read: impl FnOnce(&mut Self) -> Option<T>) -> Option<Option<T>> {
        match self.peek()? {
            b'n' => self.literal("null").map(|()| None),
            _ => read(self).map(Some),
        }
    }

    /// A text, or `Some(None)` for a null.
    #[inline]
    pub fn text(&mut self) -> Option<Option<Cow<'a, str>>> {
        self.nullable(|scanner| {
            let start = scanner.at;
            let is_plain = scanner.string()?;
            let token = scanner.json.get(start..scanner.at)?;
            match is_plain {
                true => Some(Cow::Borrowed(inside(token)?)),
                false => serde_json::from_str(token).ok().map(Cow::Owned),
            }
        })
    }

    /// A number that counts something, or `Some(None)` for a null.
    pub fn count(&mut self) -> Option<Option<u64>> {
        self.nullable(|scanner| {
            let start = scanner.at;
            scanner.number()?;
            let digits = scanner.json.get(start..scanner.at)?;
            digits.parse().ok()
        })
    }

    /// A value as it is written, or `Some(None)` for a null.
    #[inline]
    pub fn raw(&mut self) -> Option<Option<&'a str>> {
        self.nullable(Self::skip)
    }

    /// Skips a value; its JSON.
    #[inline]
    pub fn skip(&mut self) -> Option<&'a str> {
        self.peek()?;
        let start = self.at;
        self.ignore()?;
        self.json.get(start..self.at)
    }

    /// Skips a value that nobody asked for.
    ///
    /// In one loop: what is open is a bit each, a set one for an object.
    pub fn ignore(&mut self) -> Option<()> {
        let mut open: u64 = 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.string()?;
                }
                b'{' => {
                    self.at += 1;
                    if self.peek()? != b'}' {
                        open = deeper(open)? | 1;
                        self.name()?;
                        continue;
                    }
                    self.at += 1;
                }
                b'[' => {
                    self.at += 1;
                    if self.peek()? != b']' {
                        open = deeper(open)?;
                        continue;
                    }
                    self.at += 1;
                }
                b't' => self.literal("true")?,
                b'f' => self.literal("false")?,
                b'n' => self.literal("null")?,
                _ => self.number()?,
            }
            // A value ended, and with it perhaps what it is in.
            loop {
                if open == 1 {
                    return Some(());
                }
                let is_object = open & 1 == 1;
                if self.goes_on(if is_object { b'}' } else { b']' })? {
                    if is_object {
                        self.peek()?;
                        self.name()?;
                    }
                    break;
                }
                open >>= 1;
            }
        }
    }

    /// The name of a field, and the colon after it.
    fn name(&mut self) -> Option<()> {
        self.string()?;
        self.expect(b':')
    }

    /// A string that is written as it is meant.
    #[inline]
    fn plain(&mut self) -> Option<&'a str> {
        let start = self.at;
        self.string()?
            .then(|| inside(self.json.get(start..self.at)?))?
    }

    /// Goes behind a string; whether it is written as it is meant.
    fn string(&mut self) -> Option<bool> {
        let bytes = self.json.as_bytes();
        if *bytes.get(self.at)? != b'"' {
            return None;
        }
        let end = plain_end(bytes, self.at + 1)?;
        if bytes[end] != b'"' {
            return self.escaped(end);
        }
        self.at = end + 1;
        Some(true)
    }

    /// Goes behind a string that has a backslash here, or what may not be in one. On its own, so that
    /// the usual way saves no registers: 30 of 100 instructions for a short string.
    #[cold]
    fn escaped(&mut self, mut at: usize) -> Option<bool> {
        let bytes = self.json.as_bytes();
        loop {
            match bytes[at] {
                b'"' => break,
                b'\\' => {
                    at += match bytes.get(at + 1)? {
                        b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => 2,
                        b'u' if bytes.get(at + 2..at + 6)?.iter().all(u8::is_ascii_hexdigit) => 6,
                        _ => return None,
                    };
                }
                _ => return None,
            }
            at += end_of_long(bytes.get(at..)?)?;
        }
        self.at = at + 1;
        Some(false)
    }

    fn number(&mut self) -> Option<()> {
        let bytes = self.json.as_bytes();
        let mut at = self.at + usize::from(*bytes.get(self.at)? == b'-');
        let starts_with_zero = bytes.get(at) == Some(&b'0');
        let start = at;
        at = digits(bytes, at)?;
        if starts_with_zero && at > start + 1 {
            return None;
        }
        if bytes.get(at) == Some(&b'.') {
            at = digits(bytes, at + 1)?;
        }
        if let Some(b'e' | b'E') = bytes.get(at) {
            let is_signed = matches!(bytes.get(at + 1), Some(b'+' | b'-'));
            at = digits(bytes, at + 1 + usize::from(is_signed))?;
        }
        self.at = at;
        Some(())
    }

    #[inline]
    fn literal(&mut self, word: &str) -> Option<()> {
        let rest = self.json.as_bytes().get(self.at..)?;
        rest.starts_with(word.as_bytes())
            .then(|| self.at += word.len())
    }

    /// Whether another element follows, or this was the last.
    #[inline]
    fn goes_on(&mut self, end: u8) -> Option<bool> {
        let next = self.peek()?;
        self.at += 1;
        match next {
            b',' => Some(true),
            _ => (next == end).then_some(false),
        }
    }

    #[inline]
    fn expect(&mut self, wanted: u8) -> Option<()> {
        (self.peek()? == wanted).then(|| self.at += 1)
    }

    /// The next byte that is no white space.
    #[inline]
    fn peek(&mut self) -> Option<u8> {
        let bytes = self.json.as_bytes();
        loop {
            match *bytes.get(self.at)? {
                byte if byte > b' ' => return Some(byte),
                b' ' | b'\n' | b'\r' | b'\t' => self.at += 1,
                byte => return Some(byte),
            }
        }
    }
}

/// What is between the quotes of a string.
#[inline]
fn inside(token: &str) -> Option<&str> {
    token.get(1..token.len().checked_sub(1)?)
}

/// One level more is open; `None` where that is deeper than any server's answer.
#[inline]
fn deeper(open: u64) -> Option<u64> {
    (open >> DEEPEST == 0).then_some(open << 1)
}

/// Where the digits that must be here end.
#[inline]
fn digits(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start;
    while bytes.get(at).is_some_and(u8::is_ascii_digit) {
        at += 1;
    }
    (at > start).then_some(at)
}

/// Where what is plain in a string ends: at a quote, a backslash, or what may not be in one.
///
/// Eight bytes at a time, since names and most values are short, and longer text block by block.
#[inline]
fn plain_end(bytes: &[u8], start: usize) -> Option<usize> {
    const SHORT: usize = 4;
    let mut rest = bytes.get(start..)?;
    for _ in 0..SHORT {
        let Some((eight, after)) = rest.split_first_chunk() else {
            break;
        };
        if let Some(end) = end_in(*eight) {
            return Some(bytes.len() - rest.len() + end);
        }
        rest = after;
    }
    Some(bytes.len() - rest.len() + end_of_long(rest)?)
}

/// Never in line: it would cost short strings their registers.
#[inline(never)]
fn end_of_long(text: &[u8]) -> Option<usize> {
    let end = json::first_byte(text, is_end);
    (end < text.len()).then_some(end)
}

#[inline]
fn is_end(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// The first byte of eight at which a string's plain part ends.
#[inline]
fn end_in(eight: [u8; 8]) -> Option<usize> {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const HIGHS: u64 = ONES << 7;
    let eight = u64::from_le_bytes(eight);
    // The high bit of each byte that is below another: of the lowest such byte for certain.
    let is_below = |eight: u64, other: u64| eight.wrapping_sub(ONES * other);
    let is = |byte: u8| is_below(eight ^ (ONES * u64::from(byte)), 1);
    let ends = (is_below(eight, 0x20) | is(b'"') | is(b'\\')) & !eight & HIGHS;
    (ends != 0).then(|| ends.trailing_zeros() as usize / 8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn skipped(json: &str) -> bool {
        let mut scanner = Scanner::new(json);
        scanner.skip().is_some() && scanner.is_at_end()
    }

    #[test]
    fn what_is_usual_is_read_and_the_rest_is_left() {
        let read = |json: &str| {
            let (mut text, mut count, mut raw, mut list) = (None, None, None, Vec::new());
            object(json, |scanner, key| match key {
                "text" => keep(
                    &mut text,
                    scanner.text().map(|text| text.map(Cow::into_owned)),
                ),
                "count" => keep(&mut count, scanner.count()),
                "raw" => keep(&mut raw, scanner.raw().map(|raw| raw.map(str::to_owned))),
                "list" => scanner.list(|scanner| scanner.skip().map(|raw| list.push(raw.len()))),
                _ => scanner.ignore(),
            })?;
            Some((text, count, raw, list))
        };
        let told = read(
            r#" {"text":"a\u00e9","count":7,"raw":{"a" : [1]},"list":[1,"x"],"x":{"y":[-1.5e+3,true]}} "#,
        );
        let expected = (
            Some("aé".to_owned()),
            Some(7),
            Some(r#"{"a" : [1]}"#.to_owned()),
            vec![1, 3],
        );
        assert_eq!(told, Some(expected));
        assert_eq!(
            read(r#"{"text":null,"count":null,"list":[]}"#),
            Some((None, None, None, vec![]))
        );
        assert_eq!(read("{}"), Some((None, None, None, vec![])));
        for odd in [
            r#"{"text":"a","text":"b"}"#,
            r#"{"text":1}"#,
            r#"{"text":"\ud800"}"#,
            r#"{"count":1.5}"#,
            r#"{"count":"1"}"#,
            r#"{"list":{}}"#,
            r#"{"te\u0078t":"a"}"#,
            r#"["a"]"#,
            r#"{"text":"a"} x"#,
            r#"{"text":"a",}"#,
            r#"{"x":01}"#,
            r#"{"x":1.}"#,
            "{\"x\":\"\n\"}",
            "{\"x\":\"                              \n\"}",
            "{",
            "",
        ] {
            assert_eq!(read(odd), None, "{odd}");
        }
    }

    #[test]
    fn what_is_nested_deeper_than_usual_is_left() {
        let nested = |depth: usize| "[".repeat(depth) + &"]".repeat(depth);
        assert!(skipped(&nested(50)));
        assert!(!skipped(&nested(100_000)));
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(|value| json!(value)),
            any::<f64>().prop_map(|value| json!(value)),
            any::<i64>().prop_map(|value| json!(value)),
            any::<String>().prop_map(|value| json!(value)),
            "[a-z\"\\\\\n ]{20,60}".prop_map(|value| json!(value)),
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[a-c\"]{0,2}", inner, 0..4)
                    .prop_map(|map| json!(map)),
            ]
        })
    }

    proptest! {
        #[test]
        fn a_string_ends_where_it_ends_byte_by_byte(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let is_end = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..0x20);
            for at in 0..=bytes.len() {
                let end = bytes[at..].iter().position(is_end).map(|end| at + end);
                prop_assert_eq!(plain_end(&bytes, at), end);
            }
        }

        #[test]
        fn json_is_read(value in any_json()) {
            prop_assert!(skipped(&value.to_string()));
            prop_assert!(skipped(&serde_json::to_string_pretty(&value).unwrap()));
        }

        #[test]
        fn what_is_read_is_json(text in "[\\[\\]{}:,\"\\\\ut01-9.eE+ \n-]{0,16}|(\"[ -\"a\\\\nu\\x01]{0,40}\")") {
            let is_json = serde_json::from_str::<serde::de::IgnoredAny>(&text).is_ok();
            prop_assert!(!skipped(&text) || is_json, "{}", text);
        }

        #[test]
        fn what_is_cut_or_changed_is_json_or_not_read(value in any_json(), at in 0usize..200, by in any::<u8>()) {
            let mut bytes = value.to_string().into_bytes();
            let at = at % bytes.len();
            bytes[at] = by;
            for text in [std::str::from_utf8(&bytes), std::str::from_utf8(&bytes[..at])].into_iter().flatten() {
                let is_json = serde_json::from_str::<serde::de::IgnoredAny>(text).is_ok();
                prop_assert!(!skipped(text) || is_json, "{}", text);
            }
        }
    }
}
