//! Tolerant reading of JSON: repeated fields, numbers as text, lone surrogates.

use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_core::__private::{replace_lone_surrogates, select_fields, unquote};
use switchboard_core::model::RawEvent;

use super::error::{ModelError, ModelErrorKind};

/// The JSON of an object's fields with these names. The last of repeated fields counts, and a null
/// counts as missing. `None` if `json` is not one object.
pub(super) fn fields<'a, const N: usize>(
    json: &'a str,
    names: &[&str; N],
) -> Option<[Option<&'a str>; N]> {
    let fields = select_fields(json, names).ok()?;
    Some(fields.map(|json| json.filter(|json| *json != "null")))
}

/// The same, with all fields missing if `json` is not one object.
pub(super) fn fields_or_none<'a, const N: usize>(
    json: Option<&'a str>,
    names: &[&str; N],
) -> [Option<&'a str>; N] {
    json.and_then(|json| fields(json, names))
        .unwrap_or([None; N])
}

/// A value that is read from a JSON object or list field by field, in one pass.
pub(super) trait ReadParts<'de>: Default {
    /// `true` for a list, `false` for an object.
    const IS_LIST: bool = false;

    /// Reads the value of the field whose key has this JSON, or skips it.
    fn read_field<A: MapAccess<'de>>(&mut self, _key: &str, map: &mut A) -> Result<(), A::Error> {
        map.next_value::<IgnoredAny>().map(drop)
    }

    /// Reads or skips the next element. Returns `false` at the end.
    fn read_element<A: SeqAccess<'de>>(&mut self, list: &mut A) -> Result<bool, A::Error> {
        Ok(list.next_element::<IgnoredAny>()?.is_some())
    }
}

impl<'de, T: Deserialize<'de>> ReadParts<'de> for Vec<T> {
    const IS_LIST: bool = true;

    fn read_element<A: SeqAccess<'de>>(&mut self, list: &mut A) -> Result<bool, A::Error> {
        let element = list.next_element()?;
        let is_some = element.is_some();
        self.extend(element);
        Ok(is_some)
    }
}

/// A value that is `None` if the JSON is of another type.
#[derive(Default)]
pub(super) struct Lenient<T>(pub(super) Option<T>);

impl<'de, T: ReadParts<'de>> Deserialize<'de> for Lenient<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(LenientVisitor(PhantomData))
    }
}

struct LenientVisitor<T>(PhantomData<T>);

impl<'de, T: ReadParts<'de>> Visitor<'de> for LenientVisitor<T> {
    type Value = Lenient<T>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Lenient<T>, A::Error> {
        let mut value = T::default();
        // As a raw value, since a key may hold a lone surrogate.
        while let Some(key) = map.next_key::<&'de RawValue>()? {
            value.read_field(key.get(), &mut map)?;
        }
        Ok(Lenient((!T::IS_LIST).then_some(value)))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Lenient<T>, A::Error> {
        let mut value = T::default();
        while value.read_element(&mut list)? {}
        Ok(Lenient(T::IS_LIST.then_some(value)))
    }

    fn visit_unit<E>(self) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }

    fn visit_bool<E>(self, _: bool) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }

    fn visit_i64<E>(self, _: i64) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }

    fn visit_u64<E>(self, _: u64) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }

    fn visit_f64<E>(self, _: f64) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }

    fn visit_str<E>(self, _: &str) -> Result<Lenient<T>, E> {
        Ok(Lenient(None))
    }
}

/// The text of a field. Empty if it is not a string.
pub(super) fn text(json: Option<&str>) -> Cow<'_, str> {
    json.and_then(unquote).unwrap_or_default()
}

/// The elements of a field that is a list. `None` if it is not one.
pub(super) fn list(json: &str) -> Option<Vec<&str>> {
    let elements: Vec<&RawValue> = serde_json::from_str(json).ok()?;
    Some(elements.into_iter().map(RawValue::get).collect())
}

/// A field as a value; null if it is missing or nested too deeply.
pub(super) fn value_or_null(json: Option<&str>) -> Value {
    json.and_then(value).unwrap_or_default()
}

/// A number of tokens, written as an integer, a float or a string; 0 if it is none of these.
pub(super) fn count(json: Option<&str>) -> u64 {
    let Some(json) = json else {
        return 0;
    };
    let number = unquote(json).unwrap_or(Cow::Borrowed(json));
    let number = number.trim();
    // The cast saturates: negative numbers become 0.
    let float = || number.parse::<f64>().unwrap_or_default() as u64;
    number.parse().unwrap_or_else(|_| float())
}

/// Parses JSON into a value. `None` if it is not JSON, or nested too deeply.
pub(super) fn value(json: &str) -> Option<Value> {
    let value = serde_json::from_str(json);
    value
        .or_else(|_| serde_json::from_str(&replace_lone_surrogates(json)))
        .ok()
}

/// The raw event of a JSON text that has been parsed before.
pub(super) fn raw(data: Arc<str>) -> Result<RawEvent, ModelError> {
    if data.trim_ascii().len() == data.len() {
        Ok(RawEvent::from_read(data))
    } else {
        RawEvent::from_json((*data).to_owned()).map_err(|error| bad(&error))
    }
}

/// The error for an answer that cannot be understood.
pub(super) fn bad(error: &dyn fmt::Display) -> ModelError {
    let message = format!("the answer cannot be read: {error}");
    ModelError::new(ModelErrorKind::BadAnswer, message)
}

/// Accepts an event that is not a JSON object, as proxies send them, but not an incomplete object.
pub(super) fn no_object(data: &str) -> Result<(), ModelError> {
    if data.trim_start().starts_with('{') {
        return Err(bad(&"an event is not valid JSON"));
    }
    Ok(())
}

/// Returns `true` if the value of a field named `error` reports one.
pub(super) fn is_error(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && *value != ""
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_null_counts_as_missing() {
        let json = r#"{"a":null,"b":1,"b":null,"c":[{},7]}"#;
        let [a, b, c] = fields(json, &["a", "b", "c"]).unwrap();
        assert_eq!((a, b, c), (None, None, Some("[{},7]")));
        assert_eq!(list(c.unwrap()).unwrap(), ["{}", "7"]);
        assert_eq!(fields_or_none(Some("7"), &["a"]), [None]);
    }

    #[test]
    fn counts_are_read_from_numbers_and_texts() {
        let counts = ["5", "5.0", "\"5\"", "\" 5 \"", "5.9", "5e0"].map(|json| count(Some(json)));
        assert_eq!(counts, [5; 6]);
        let counts = ["-5", "-1.5", "[]", "\"x\"", "true"].map(|json| count(Some(json)));
        assert_eq!((counts, count(None)), ([0; 5], 0));
    }

    #[test]
    fn a_value_is_read_despite_lone_surrogates() {
        assert_eq!(
            value(r#"["\ud800"]"#),
            Some(serde_json::json!(["\u{fffd}"]))
        );
        assert_eq!(value(r#""\ud8"#), None);
    }
}
