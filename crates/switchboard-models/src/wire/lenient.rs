//! JSON as servers and people write it: fields twice, numbers as text, halves of characters.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde::Deserializer as _;
use serde::de::{MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_core::RawEvent;

use super::error::{ModelError, ModelErrorKind};

/// The fields of an object as they are written. Of a field that is there twice the last counts,
/// and a null counts as missing.
#[derive(Default)]
pub(super) struct Object<'a>(Vec<(&'a str, &'a str)>);

impl<'a> Object<'a> {
    /// `None` where `json` is not one object.
    pub(super) fn of(json: &'a str) -> Option<Self> {
        let mut deserializer = serde_json::Deserializer::from_str(json);
        let fields = deserializer.deserialize_map(Fields).ok()?;
        deserializer.end().ok()?;
        Some(Self(fields))
    }

    /// The JSON of a field.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        let field = self.0.iter().rev().find(|(key, _)| *key == name);
        field.map(|(_, json)| *json).filter(|json| *json != "null")
    }

    /// A field that is text.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        text(self.get(name)?)
    }

    /// A field as a value; null where there is none.
    pub(super) fn value(&self, name: &str) -> Value {
        self.get(name).and_then(value).unwrap_or_default()
    }

    /// What a field that is a list holds, as it is written.
    pub(super) fn list(&self, name: &str) -> Option<Vec<&'a RawValue>> {
        serde_json::from_str(self.get(name)?).ok()
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Vec<(&'de str, &'de str)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut fields = Vec::new();
        while let Some((key, json)) = map.next_entry::<&'de RawValue, &'de RawValue>()? {
            fields.push((key.get().trim_matches('"'), json.get()));
        }
        Ok(fields)
    }
}

/// JSON as a value; `None` where it is no JSON, or nested too deeply.
pub(super) fn value(json: &str) -> Option<Value> {
    match serde_json::from_str(json) {
        Ok(value) => Some(value),
        Err(_) => match sound(json) {
            Cow::Owned(sound) => serde_json::from_str(&sound).ok(),
            Cow::Borrowed(_) => None,
        },
    }
}

/// The text of a JSON string.
pub(super) fn text(json: &str) -> Option<String> {
    match value(json) {
        Some(Value::String(text)) => Some(text),
        _ => None,
    }
}

/// A number of tokens, however it is written. What is none counts as nothing.
pub(super) fn count(value: &Value) -> u64 {
    let text = value.as_str().and_then(|text| text.trim().parse().ok());
    let number: f64 = value.as_f64().or(text).unwrap_or_default();
    // The cast goes to the nearest number there is: 0 for what is below.
    value.as_u64().unwrap_or(number as u64)
}

/// An event whose JSON was read.
pub(super) fn raw(data: Arc<str>) -> Result<RawEvent, ModelError> {
    if data.trim_ascii().len() == data.len() {
        Ok(RawEvent::from_read(data))
    } else {
        RawEvent::from_json((*data).to_owned()).map_err(|error| bad(&error))
    }
}

/// What an answer that makes no sense is.
pub(super) fn bad(error: &dyn fmt::Display) -> ModelError {
    let message = format!("the answer cannot be read: {error}");
    ModelError::new(ModelErrorKind::BadAnswer, message)
}

/// An event that is no object is some proxy's word and means nothing, unless it is an object in
/// pieces.
pub(super) fn no_object(data: &str) -> Result<(), ModelError> {
    match data.trim_start().starts_with('{') {
        true => Err(bad(&"an event is no JSON")),
        false => Ok(()),
    }
}

/// Whether a field named `error` tells of one.
pub(super) fn is_error(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && *value != ""
}

/// Whether halves of characters are in JSON.
pub(super) fn has_halves(json: &str) -> bool {
    matches!(sound(json), Cow::Owned(_))
}

/// JSON without halves of characters (lone surrogates), which are no text: U+FFFD takes their
/// place.
pub(super) fn sound(json: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let (mut copied, mut at) = (0, 0);
    while let Some(found) = json[at..].find('\\') {
        at += found;
        let (length, is_half) = match (unit(json, at), unit(json, at + 6)) {
            (Some(0xd800..=0xdbff), Some(0xdc00..=0xdfff)) => (12, false),
            (Some(0xd800..=0xdfff), _) => (6, true),
            (Some(_), _) => (6, false),
            (None, _) => (2, false),
        };
        if is_half {
            out.push_str(&json[copied..at]);
            out.push_str("\\ufffd");
            copied = at + length;
        }
        at += length;
        if !json.is_char_boundary(at) {
            // A backslash before what is no escape: this is not JSON.
            break;
        }
    }
    match copied {
        0 => Cow::Borrowed(json),
        _ => Cow::Owned(out + &json[copied..]),
    }
}

/// The number in an escape such as `\ud800` at this place.
fn unit(json: &str, at: usize) -> Option<u32> {
    let digits = json.get(at..at + 6)?.strip_prefix("\\u")?;
    u32::from_str_radix(digits, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn halves_of_characters_are_replaced_and_nothing_else() {
        for (json, expected) in [
            (r#""a\ud800b""#, "a\u{fffd}b"),
            (r#""\ud83d\ude00\ude00""#, "\u{1f600}\u{fffd}"),
            (r#""\ud83d\ud83d\ude00\n""#, "\u{fffd}\u{1f600}\n"),
            (r#""\\ud800 \u00e9""#, "\\ud800 é"),
        ] {
            assert_eq!(text(json).as_deref(), Some(expected), "{json}");
        }
        assert!(matches!(sound(r#""\ud83d\ude00""#), Cow::Borrowed(_)));
        assert_eq!(value(r#""\ud8"#), None);
    }

    #[test]
    fn of_a_field_that_is_there_twice_the_last_counts() {
        let object = Object::of(r#" {"a":1,"\ud800":2,"a":"x","b":null,"c":[{},7]} "#).unwrap();
        assert_eq!(object.text("a").as_deref(), Some("x"));
        assert_eq!(object.get("b"), None);
        assert_eq!(object.list("c").map(|list| list.len()), Some(2));
        assert_eq!(object.value("z"), Value::Null);
        for other in ["1", "ping", "[]", "{} {}", ""] {
            assert!(Object::of(other).is_none(), "{other}");
        }
    }

    #[test]
    fn counts_are_read_however_they_are_written() {
        let counted = [json!(5), json!(5.0), json!("5"), json!(5.9)].map(|value| count(&value));
        assert_eq!(counted, [5; 4]);
        let none = [json!(-5), json!(-1.5), json!([]), json!(null), json!("x")];
        assert_eq!(none.map(|value| count(&value)), [0; 5]);
    }

    proptest! {
        #[test]
        fn what_is_sound_stays_as_it_is(text in any::<String>()) {
            let json = json!(text).to_string();
            prop_assert_eq!(&*sound(&json), &*json);
            let _ = sound(&text);
        }

        #[test]
        fn any_escapes_are_made_text(inner in "(\\\\u(d83d|de00|0041|D800)|\\\\\\\\|\\\\n|a|é){0,20}") {
            let json = format!("\"{inner}\"");
            prop_assert!(value(&json).is_some());
        }
    }
}
