//! JSON schemas of payloads and final outputs: derived from types, made strict, validated against.

mod coerce;
mod fingerprint;
mod references;
mod strict;
mod work_limit;

use std::any::Any;
use std::fmt;
use std::sync::{Arc, OnceLock};

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

pub(crate) use fingerprint::fingerprint;
pub(crate) use strict::empty_object;
pub use strict::{StrictSchemaError, strict};

use crate::error::excerpt;

/// Returns the JSON schema of a type, as schemars derives it.
pub fn of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// Checks a JSON schema that is used to validate what models send.
///
/// # Errors
/// If it is not a schema, or checking a value against it could take too much work.
pub fn check(schema: &Value) -> Result<(), String> {
    Payload::described_by(schema.clone()).check_schema()
}

/// Serializes a schema to the text that is sent to a model.
pub(crate) fn raw(schema: &Value) -> Arc<RawValue> {
    // Serializing a `Value` does not fail.
    serde_json::value::to_raw_value(schema)
        .unwrap_or_else(|_| RawValue::NULL.to_owned())
        .into()
}

/// The limit of problems that an [`InvalidPayload`] lists.
const MAX_PROBLEMS: usize = 8;

/// The schema, and possibly the type, of JSON that a model has to send.
#[derive(Clone)]
pub(crate) struct Payload(Arc<Inner>);

struct Inner {
    schema: Value,
    validator: OnceLock<Result<jsonschema::Validator, String>>,
    deserialize: Deserialize,
    /// Set if numbers and booleans may be sent as text.
    coerces: bool,
}

/// Deserializes a valid payload. Returns `None` if there is no type, or only its check matters.
type Deserialize = fn(&Value) -> Result<Option<Box<dyn Any + Send>>, serde_json::Error>;

/// A payload that is valid.
pub(crate) struct ParsedPayload {
    pub(crate) value: Value,
    /// The deserialized `T` of [`Payload::typed`].
    pub(crate) typed: Option<Box<dyn Any + Send>>,
}

impl Payload {
    /// A payload that deserializes to a `T`.
    pub(crate) fn typed<T: JsonSchema + DeserializeOwned + Send + 'static>() -> Self {
        let deserialize: Deserialize = |value| Ok(Some(Box::new(T::deserialize(value)?)));
        Self::new(of::<T>(), false, deserialize)
    }

    /// A payload that only has to match a schema.
    pub(crate) fn described_by(schema: Value) -> Self {
        Self::arguments(schema, false)
    }

    /// A payload that has to match a schema, such as the arguments of a tool. With `coerces`, a number or a boolean
    /// may be sent as the text that spells it.
    pub(crate) fn arguments(schema: Value, coerces: bool) -> Self {
        Self::new(schema, coerces, |_| Ok(None))
    }

    fn new(schema: Value, coerces: bool, deserialize: Deserialize) -> Self {
        Self(Arc::new(Inner {
            schema,
            validator: OnceLock::new(),
            deserialize,
            coerces,
        }))
    }

    pub(crate) fn schema(&self) -> &Value {
        &self.0.schema
    }

    /// Fails if the schema itself is invalid, or takes too much work to check.
    pub(crate) fn check_schema(&self) -> Result<(), String> {
        self.validator().map(drop).map_err(ToOwned::to_owned)
    }

    /// Parses `json` once. It must be an object that matches the schema and deserializes to the type.
    pub(crate) fn parse(&self, json: &str) -> Result<ParsedPayload, InvalidPayload> {
        let mut value: Value =
            serde_json::from_str(json).map_err(|error| InvalidPayload(error.to_string()))?;
        if !value.is_object() {
            return Err(InvalidPayload("it is not a JSON object".to_owned()));
        }
        if let Err(problem) = self.validate(&value) {
            // Only what is invalid is read in another way.
            if !self.0.coerces || !coerce::coerce(&self.0.schema, &mut value) {
                return Err(problem);
            }
            self.validate(&value)?;
        }
        let typed = (self.0.deserialize)(&value).map_err(|_| InvalidPayload::of_type())?;
        Ok(ParsedPayload { value, typed })
    }

    fn validate(&self, value: &Value) -> Result<(), InvalidPayload> {
        let validator = self.validator().map_err(|e| InvalidPayload(e.to_owned()))?;
        work_limit::check_work(&self.0.schema, value).map_err(InvalidPayload)?;
        let problems = validator.iter_errors(value).take(MAX_PROBLEMS);
        let problems: Vec<String> = problems.map(|error| describe(&error)).collect();
        if problems.is_empty() {
            Ok(())
        } else {
            Err(InvalidPayload(problems.join("; ")))
        }
    }

    /// The JSON with numbers and booleans in place of texts that spell them; `None` where it is valid
    /// as it is, or invalid in any case.
    pub(crate) fn coerced(&self, json: &str) -> Option<String> {
        if !self.0.coerces {
            return None;
        }
        let mut value: Value = serde_json::from_str(json).ok()?;
        if !value.is_object() || self.validate(&value).is_ok() {
            return None;
        }
        let is_changed = coerce::coerce(&self.0.schema, &mut value);
        (is_changed && self.validate(&value).is_ok()).then(|| value.to_string())
    }

    /// Like [`parse`](Self::parse), for callers that need only the value.
    pub(crate) fn check(&self, json: &str) -> Result<Value, InvalidPayload> {
        self.parse(json).map(|parsed| parsed.value)
    }

    fn validator(&self) -> Result<&jsonschema::Validator, &str> {
        let validator = self.0.validator.get_or_init(|| {
            work_limit::check_schema_work(&self.0.schema)
                .and_then(|()| {
                    let validator = jsonschema::validator_for(&self.0.schema);
                    validator.map_err(|error| error.to_string())
                })
                .map_err(|error| format!("its JSON schema cannot be used: {error}"))
        });
        validator.as_ref().map_err(String::as_str)
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Payload").field(&self.0.schema).finish()
    }
}

/// The reason why a payload is invalid. It quotes no values: they may be private.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidPayload(String);

impl InvalidPayload {
    /// The error for a value that the type does not accept. The error of serde may quote the value,
    /// so it is not passed on.
    pub(crate) fn of_type() -> Self {
        Self("it matches the schema, but does not deserialize to the type".to_owned())
    }
}

impl_error!(InvalidPayload, |error| "{}", error.0);

/// Describes a problem: where, what was expected, what was sent. It quotes no value.
fn describe(error: &ValidationError<'_>) -> String {
    let path = match error.instance_path().as_str() {
        "" => "/",
        path => path,
    };
    let problem = match error.kind() {
        ValidationErrorKind::Required { property } => {
            let name = property.as_str().unwrap_or_default();
            format!("at {}/{name}: it is missing", path.trim_end_matches('/'))
        }
        ValidationErrorKind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(one) => one.to_string(),
                TypeKind::Multiple(several) => {
                    let several: Vec<String> = several.iter().map(|one| one.to_string()).collect();
                    several.join(" or ")
                }
            };
            let got = type_name(error.instance());
            format!("at {path}: expected {expected}, got {got}")
        }
        _ => format!("at {path}: {}", error.masked()),
    };
    // The names of fields may be the model's.
    excerpt(&problem).into_owned()
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Order {
        id: i64,
        lines: Vec<Line>,
        note: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Line {
        sku: String,
    }

    #[test]
    fn a_payload_is_an_object_of_the_right_types() {
        let payload = Payload::typed::<Order>();
        let json = r#"{"id":1,"lines":[{"sku":"a"}],"more":true}"#;
        let parsed = payload.parse(json).unwrap();
        assert_eq!(parsed.value.to_string(), json);
        let order = Order {
            id: 1,
            lines: vec![Line { sku: "a".into() }],
            note: None,
        };
        assert_eq!(*parsed.typed.unwrap().downcast::<Order>().unwrap(), order);
        for bad in [
            "",
            "{}",
            "null",
            r#"[1,[],null]"#,
            r#"{"id":"1","lines":[]}"#,
            r#"{"id":1,"lines":[["a"]]}"#,
            r#"{"id":1.5,"lines":[]}"#,
        ] {
            assert!(payload.check(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn an_error_lists_every_field_with_what_was_expected() {
        let payload = Payload::typed::<Order>();
        let error = payload.check(r#"{"id":"1","lines":[{},{"sku":5}]}"#);
        assert_eq!(
            error.unwrap_err().to_string(),
            "at /id: expected integer, got string; at /lines/0/sku: it is missing; \
             at /lines/1/sku: expected string, got number"
        );
    }

    #[test]
    fn an_error_does_not_quote_the_value() {
        let payload = Payload::typed::<Order>();
        let error = payload.check(r#"{"id":"4111111111111111","lines":[]}"#);
        let message = error.unwrap_err().to_string();
        assert!(!message.contains("4111"), "{message}");
        assert!(message.contains("/id"), "{message}");
    }
}
