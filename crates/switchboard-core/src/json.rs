//! Helpers over JSON text: quoting, unquoting, compacting.

mod byte_search;
mod quote;
mod scalars;

use std::borrow::Cow;
use std::fmt;
use std::fmt::Write as _;

pub(crate) use byte_search::{any_byte, first_byte};
pub(crate) use quote::{Quoted, quote_ascii_into, quote_into};
pub(crate) use scalars::{Scalar, Scalars};
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

/// The text of a JSON string token, or `None` if `token` is not a string. Lone surrogates become
/// U+FFFD.
pub fn unquote(token: &str) -> Option<Cow<'_, str>> {
    let inner = token.strip_prefix('"')?.strip_suffix('"')?;
    if !any_byte(inner.as_bytes(), |byte| byte == b'\\') {
        return Some(Cow::Borrowed(inner));
    }
    let text = serde_json::from_str(token);
    let text = text.or_else(|_| serde_json::from_str(&replace_lone_surrogates(token)));
    text.ok().map(Cow::Owned)
}

/// Replaces the escapes of lone surrogates, which JSON allows and a Rust string cannot hold, by the
/// escape of U+FFFD.
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(backslash) = json[at..].find('\\') {
        at += backslash;
        let (length, is_lone) = match (escaped_unit(json, at), escaped_unit(json, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, false),
            (Some(0xd800..=0xdfff), _) => (6, true),
            (Some(_), _) => (6, false),
            (None, _) => (2, false),
        };
        if is_lone {
            out.push_str(&json[copied..at]);
            out.push_str("\\ufffd");
            copied = at + length;
        }
        at += length;
        if !json.is_char_boundary(at) {
            // A backslash that begins no escape: this is not JSON.
            break;
        }
    }
    if copied == 0 {
        return Cow::Borrowed(json);
    }
    Cow::Owned(out + &json[copied..])
}

/// The UTF-16 code unit of an escape such as `\ud800` at `at`.
fn escaped_unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

/// The fields of a JSON object in order, each with the JSON of its value.
pub(crate) fn object_fields(json: &str) -> serde_json::Result<Vec<(Cow<'_, str>, &str)>> {
    struct Fields;
    impl<'de> Visitor<'de> for Fields {
        type Value = Vec<(Cow<'de, str>, &'de str)>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = Vec::new();
            // As raw values, since a key may hold a lone surrogate.
            while let Some((key, value)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
                fields.push((unquote(key.get()).unwrap_or_default(), value.get()));
            }
            Ok(fields)
        }
    }
    read_object(json, Fields)
}

/// Reads JSON text that is one object.
fn read_object<'de, V: Visitor<'de>>(json: &'de str, visitor: V) -> serde_json::Result<V::Value> {
    let mut deserializer = serde_json::Deserializer::from_str(json);
    let value = deserializer.deserialize_map(visitor)?;
    deserializer.end()?;
    Ok(value)
}

/// The JSON of the fields with these names. The last of repeated fields counts.
pub fn select_fields<'a, const N: usize>(
    json: &'a str,
    names: &[&str; N],
) -> serde_json::Result<[Option<&'a str>; N]> {
    struct Fields<'n, const N: usize>(&'n [&'n str; N]);
    impl<'de, const N: usize> Visitor<'de> for Fields<'_, N> {
        type Value = [Option<&'de str>; N];

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("a JSON object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut fields = [None; N];
            while let Some(index) = map.next_key_seed(IndexIn(self.0))? {
                match index {
                    Some(index) => fields[index] = Some(map.next_value::<&'de RawValue>()?.get()),
                    None => {
                        map.next_value::<IgnoredAny>()?;
                    }
                }
            }
            Ok(fields)
        }
    }
    read_object(json, Fields(names)).or_else(|_| {
        // A key may hold a lone surrogate.
        let fields = object_fields(json)?;
        let last = |name: &&str| fields.iter().rfind(|(key, _)| key == name);
        Ok(names
            .each_ref()
            .map(|name| last(name).map(|(_, json)| *json)))
    })
}

/// Deserializes a string as its index in a list.
struct IndexIn<'n>(&'n [&'n str]);

impl<'de> DeserializeSeed<'de> for IndexIn<'_> {
    type Value = Option<usize>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Option<usize>, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for IndexIn<'_> {
    type Value = Option<usize>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E>(self, text: &str) -> Result<Option<usize>, E> {
        Ok(self.0.iter().position(|name| *name == text))
    }
}

/// Puts `raw` on one line: if it holds a line break, all white space between tokens is removed.
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

/// The arguments of a call as a value: an empty object where there are none, and a string where they
/// are not JSON.
pub(crate) fn arguments_value(arguments: &str) -> Value {
    match arguments.trim() {
        "" => Value::Object(serde_json::Map::new()),
        json => serde_json::from_str(json).unwrap_or_else(|_| Value::from(arguments)),
    }
}

/// JSON text that is read and written unchanged.
pub(crate) mod as_written {
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};
    use serde_json::value::RawValue;

    pub(crate) fn serialize<S: Serializer>(json: &str, serializer: S) -> Result<S::Ok, S::Error> {
        let raw: &RawValue = serde_json::from_str(json).map_err(serde::ser::Error::custom)?;
        raw.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, T, D>(deserializer: D) -> Result<T, D::Error>
    where
        T: From<Box<str>>,
        D: Deserializer<'de>,
    {
        let raw = Box::<RawValue>::deserialize(deserializer)?;
        Ok(Box::<str>::from(raw).into())
    }
}

/// Serializes a value as a document of its own, so that the document around it does not count towards
/// the recursion limit. A value past the limit is read back as the text of its JSON.
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

    /// The same for a value that may be absent.
    pub(crate) mod optional {
        use serde::{Deserializer, Serialize as _, Serializer};
        use serde_json::Value;
        use serde_json::value::to_raw_value;

        pub(crate) fn serialize<S: Serializer>(
            value: &Option<Value>,
            serializer: S,
        ) -> Result<S::Ok, S::Error> {
            let raw = value.as_ref().map(to_raw_value).transpose();
            raw.map_err(serde::ser::Error::custom)?
                .serialize(serializer)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            deserializer: D,
        ) -> Result<Option<Value>, D::Error> {
            let value = super::deserialize(deserializer)?;
            Ok(Some(value).filter(|value| !value.is_null()))
        }
    }
}

/// Formats a value like Python's `json.dumps`: with a space after each comma and colon. `quote` writes
/// its strings: [`quote_ascii_into`], or [`quote_into`] as with `ensure_ascii=False`.
pub(crate) fn as_python_writes(value: &Value, quote: fn(&mut String, &str)) -> String {
    let mut out = String::new();
    write_as_python(&mut out, value, quote);
    out
}

fn write_as_python(out: &mut String, value: &Value, quote: fn(&mut String, &str)) {
    let mut separator = "";
    match value {
        Value::Object(fields) => {
            out.push('{');
            for (key, value) in fields {
                out.push_str(separator);
                quote(out, key);
                out.push_str(": ");
                write_as_python(out, value, quote);
                separator = ", ";
            }
            out.push('}');
        }
        Value::Array(elements) => {
            out.push('[');
            for element in elements {
                out.push_str(separator);
                write_as_python(out, element, quote);
                separator = ", ";
            }
            out.push(']');
        }
        Value::String(text) => quote(out, text),
        scalar => {
            let _ = write!(out, "{scalar}");
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn only_lone_surrogates_are_replaced() {
        for (json, expected) in [
            (r#""a\ud800b""#, "a\u{fffd}b"),
            (r#""\ud83d\ude00\ude00""#, "\u{1f600}\u{fffd}"),
            (r#""\ud83d\ud83d\ude00\n""#, "\u{fffd}\u{1f600}\n"),
            (r#""\\ud800 \u00e9""#, "\\ud800 é"),
        ] {
            assert_eq!(unquote(json).as_deref(), Some(expected), "{json}");
        }
        let pair = r#""\ud83d\ude00""#;
        assert!(matches!(replace_lone_surrogates(pair), Cow::Borrowed(_)));
        assert_eq!(unquote(r#""\ud8"#), None);
    }

    #[test]
    fn the_fields_of_an_object_are_listed_in_order() {
        let fields = object_fields(r#" {"a":1,"\ud800":[2],"a":"x","\u0062":null} "#).unwrap();
        let fields: Vec<(&str, &str)> = fields.iter().map(|(key, json)| (&**key, *json)).collect();
        assert_eq!(
            fields,
            [
                ("a", "1"),
                ("\u{fffd}", "[2]"),
                ("a", "\"x\""),
                ("b", "null")
            ]
        );
        for other in ["1", "ping", "[]", "{} {}", ""] {
            assert!(object_fields(other).is_err(), "{other}");
            assert!(select_fields(other, &["a"]).is_err(), "{other}");
        }
    }

    #[test]
    fn the_last_of_repeated_fields_is_selected() {
        for odd_key in ["x", r"\ud800"] {
            let json = format!(r#"{{"a":1,"{odd_key}":2,"a":"x","\u0062":null}}"#);
            let fields = select_fields(&json, &["b", "a", "c"]).unwrap();
            assert_eq!(fields, [Some("null"), Some("\"x\""), None]);
        }
    }

    proptest! {
        #[test]
        fn text_without_lone_surrogates_is_unchanged(text in any::<String>()) {
            let json = serde_json::to_string(&text).unwrap();
            prop_assert_eq!(&*replace_lone_surrogates(&json), &*json);
            let _ = replace_lone_surrogates(&text);
        }

        #[test]
        fn any_escapes_become_text(inner in "(\\\\u(d83d|de00|0041|D800)|\\\\\\\\|\\\\n|a|é){0,20}") {
            let json = format!("\"{inner}\"");
            prop_assert!(unquote(&json).is_some());
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
