//! JSON schemas of payloads and answers: made from types, made strict, checked.

mod strict;

use std::fmt;
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

pub use strict::{StrictSchemaError, strict};

/// The schema of a type, as schemars sees it.
pub fn of<T: JsonSchema>() -> Value {
    SchemaSettings::draft2020_12()
        .into_generator()
        .into_root_schema_for::<T>()
        .to_value()
}

/// A schema as the text that goes to a model.
pub(crate) fn raw(schema: &Value) -> Arc<RawValue> {
    // A value always serialises; the fallback is the empty schema.
    serde_json::value::to_raw_value(schema)
        .unwrap_or_else(|_| RawValue::NULL.to_owned())
        .into()
}

/// What a model's JSON is checked against before anybody acts on it.
#[derive(Clone)]
pub(crate) struct Payload(Arc<Inner>);

struct Inner {
    schema: Value,
    validator: OnceLock<Result<jsonschema::Validator, String>>,
    deserializes: fn(&Value) -> Result<(), serde_json::Error>,
}

impl Payload {
    /// JSON that is a `T`.
    pub(crate) fn typed<T: JsonSchema + DeserializeOwned>() -> Self {
        Self::new(of::<T>(), |value| T::deserialize(value).map(drop))
    }

    /// JSON that keeps to a schema.
    pub(crate) fn described_by(schema: Value) -> Self {
        Self::new(schema, |_| Ok(()))
    }

    pub(crate) fn new(
        schema: Value,
        deserializes: fn(&Value) -> Result<(), serde_json::Error>,
    ) -> Self {
        Self(Arc::new(Inner {
            schema,
            validator: OnceLock::new(),
            deserializes,
        }))
    }

    /// Whether the schema itself can be used.
    pub(crate) fn check_schema(&self) -> Result<(), String> {
        self.validator().as_ref().map(drop).map_err(Clone::clone)
    }

    /// The value in `json`, which must be an object that keeps to the schema and the type.
    pub(crate) fn check(&self, json: &str) -> Result<Value, InvalidPayload> {
        let value: Value =
            serde_json::from_str(json).map_err(|error| InvalidPayload(error.to_string()))?;
        if !value.is_object() {
            return Err(InvalidPayload("it is not a JSON object".to_owned()));
        }
        let validator = self.validator().as_ref();
        let validator = validator.map_err(|error| InvalidPayload(error.clone()))?;
        if let Err(error) = validator.validate(&value) {
            let path = error.instance_path().as_str();
            let at = if path.is_empty() { "/" } else { path };
            return Err(InvalidPayload(format!("at {at}: {}", error.masked())));
        }
        // What serde says may quote the value.
        (self.0.deserializes)(&value).map_err(|_| {
            InvalidPayload(
                "it keeps to the schema, but does not make a value of the type".to_owned(),
            )
        })?;
        Ok(value)
    }

    fn validator(&self) -> &Result<jsonschema::Validator, String> {
        self.0.validator.get_or_init(|| {
            jsonschema::validator_for(&self.0.schema)
                .map_err(|error| format!("its JSON schema cannot be used: {error}"))
        })
    }
}

impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Payload").field(&self.0.schema).finish()
    }
}

/// Why a model's JSON was not what was asked for. Values are left out: they may be private.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct InvalidPayload(String);

impl fmt::Display for InvalidPayload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidPayload {}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "read by serde and schemars only")]
    struct Order {
        id: i64,
        lines: Vec<Line>,
        note: Option<String>,
    }

    #[derive(Deserialize, JsonSchema)]
    #[expect(dead_code, reason = "read by serde and schemars only")]
    struct Line {
        sku: String,
    }

    #[test]
    fn a_payload_is_an_object_of_the_right_types() {
        let payload = Payload::typed::<Order>();
        assert!(
            payload
                .check(r#"{"id":1,"lines":[{"sku":"a"}],"more":true}"#)
                .is_ok()
        );
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
    fn a_refusal_does_not_repeat_the_value() {
        let payload = Payload::typed::<Order>();
        let error = payload
            .check(r#"{"id":"4111111111111111","lines":[]}"#)
            .unwrap_err();
        assert!(!error.to_string().contains("4111"), "{error}");
        assert!(error.to_string().contains("/id"), "{error}");
    }
}
