//! Tolerant reading of JSON: repeated fields, numbers as text, lone surrogates.

mod part;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;
use serde_json::value::RawValue;
use switchboard_core::__private::{replace_lone_surrogates, select_fields, unquote};
use switchboard_core::model::{RawEvent, Usage};

use super::model_error::{ModelError, ModelErrorKind};
pub(super) use part::{Key, Part, ReadPart, json_object, parse};

/// The JSON of an object's fields with these names. The last of repeated fields counts, and a null
/// counts as missing. `None` if `json` is not one object.
pub(super) fn fields<'a, const N: usize>(
    json: &'a str,
    names: &[&str; N],
) -> Option<[Option<&'a str>; N]> {
    let fields = select_fields(json, names).ok()?;
    Some(fields.map(|json| json.filter(|json| *json != "null")))
}

/// The JSON of one field of an object; `None` if it is missing or null, or `json` is not one object.
pub(super) fn field<'a>(json: &'a str, name: &str) -> Option<&'a str> {
    let [field] = fields(json, &[name])?;
    field
}

/// The text of a field. Empty if it is not a string.
pub(super) fn text(json: Option<&str>) -> Cow<'_, str> {
    json.and_then(unquote).unwrap_or_default()
}

/// The text of a field; `None` if it is empty or not a string.
pub(super) fn non_empty(json: Option<&str>) -> Option<Cow<'_, str>> {
    json.and_then(unquote).filter(|text| !text.is_empty())
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
    if let Ok(number) = json.parse() {
        return number;
    }
    let number = unquote(json).unwrap_or(Cow::Borrowed(json));
    let number = number.trim();
    // The cast saturates: negative numbers become 0.
    let float = || number.parse::<f64>().unwrap_or_default() as u64;
    number.parse().unwrap_or_else(|_| float())
}

json_object! {
    /// The tokens of a usage by kind.
    struct TokenDetails { cached_tokens, cache_write_tokens, reasoning_tokens }
}

/// The usage of an answer, of which these are the tokens of the input and of the output.
pub(super) fn usage(
    (input, input_details): (Option<&str>, Option<&TokenDetails<'_>>),
    (output, output_details): (Option<&str>, Option<&TokenDetails<'_>>),
) -> Usage {
    Usage {
        requests: 1,
        input_tokens: count(input),
        cached_tokens: count(input_details.and_then(|details| details.cached_tokens)),
        cache_write_tokens: count(input_details.and_then(|details| details.cache_write_tokens)),
        output_tokens: count(output),
        reasoning_tokens: count(output_details.and_then(|details| details.reasoning_tokens)),
    }
}

/// The usage of an answer as the server sent it. `None` if it is not an object.
pub(super) fn raw_usage(json: Option<&str>) -> Option<Box<Value>> {
    value(json?).filter(Value::is_object).map(Box::new)
}

/// Parses JSON into a value. `None` if it is not JSON, or nested too deeply.
pub(super) fn value(json: &str) -> Option<Value> {
    let value = serde_json::from_str(json);
    value
        .or_else(|_| serde_json::from_str(&replace_lone_surrogates(json)))
        .ok()
}

/// A value as text: that of a string without quotes, and JSON of others.
pub(super) fn plain_text(value: &Value) -> String {
    let text = value.as_str().map(str::to_owned);
    text.unwrap_or_else(|| value.to_string())
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
        assert_eq!((field("7", "a"), field(json, "b")), (None, None));
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
