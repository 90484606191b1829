//! The final output of a run: text, or JSON that matches the user's type.

use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::schema::{self, InvalidPayload, Payload, StrictSchemaError};

/// The final output of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalOutput {
    /// Plain text.
    Text(Arc<str>),
    /// JSON in the agent's [`OutputType`], or the output of a tool the run stopped at.
    Json(#[serde(with = "crate::json::on_its_own")] Value),
}

impl FinalOutput {
    /// Returns the output as text; JSON is serialized.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(value) => Cow::Owned(value.to_string()),
        }
    }

    /// Deserializes the output to a `T`.
    ///
    /// # Errors
    /// If the output does not deserialize to a `T`.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match self {
            Self::Text(text) => serde_json::from_str(text),
            Self::Json(value) => T::deserialize(value),
        }
    }

    /// Returns the output as JSON; text becomes a string.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(&**text),
            Self::Json(value) => value.clone(),
        }
    }
}

impl_from! {
    FinalOutput {
        |text: &str| Self::Text(text.into()),
        |text: String| Self::Text(text.into()),
        |value: Value| Self::Json(value),
    }
}

/// The type of an agent's final output if it is not plain text.
#[derive(Clone)]
pub struct OutputType(Arc<Inner>);

struct Inner {
    name: String,
    schema: Arc<RawValue>,
    payload: Payload,
    /// Set if the type is no object, so that the model has to send it inside of one.
    is_wrapped: bool,
}

/// The field that holds a wrapped value.
const WRAPPER: &str = "response";

impl OutputType {
    /// Creates the output type of `T`. A type that is no object (a list, a number, an enum) is
    /// wrapped in one for the model, and unwrapped again.
    ///
    /// # Errors
    /// If the schema of `T` cannot be made strict.
    pub fn of<T: JsonSchema + DeserializeOwned + 'static>() -> Result<Self, StrictSchemaError> {
        let mut schema = schema::of::<T>();
        let is_wrapped = schema["type"] != "object";
        let payload = if is_wrapped {
            schema = wrap(schema);
            Payload::new(schema.clone(), |value| {
                T::deserialize(&value[WRAPPER]).map(|_| None)
            })
        } else {
            Payload::new(schema.clone(), |value| T::deserialize(value).map(|_| None))
        };
        Ok(Self(Arc::new(Inner {
            name: T::schema_name().into_owned(),
            schema: schema::raw(&schema::strict(schema)?),
            payload,
            is_wrapped,
        })))
    }

    /// Returns the name of the type.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the JSON schema that is sent to the model.
    pub fn schema(&self) -> &Arc<RawValue> {
        &self.0.schema
    }

    /// Parses the text of a model as an output of this type.
    pub(crate) fn validate(&self, text: &str) -> Result<FinalOutput, InvalidPayload> {
        let mut value = self.0.payload.check(text)?;
        if self.0.is_wrapped {
            value = value[WRAPPER].take();
        }
        Ok(FinalOutput::Json(value))
    }

    /// Validates an output that the application set. Unlike a model's it is never wrapped; a text is
    /// taken as a string if the type allows one, and parsed as JSON otherwise.
    pub(crate) fn accept(&self, output: &FinalOutput) -> Result<FinalOutput, InvalidPayload> {
        match output {
            FinalOutput::Text(text) if !self.0.is_wrapped => self.validate(text),
            FinalOutput::Text(text) => self
                .validate(&self.to_model_text(output))
                .or_else(|_| self.validate(&format!(r#"{{"{WRAPPER}":{text}}}"#))),
            FinalOutput::Json(_) => self.validate(&self.to_model_text(output)),
        }
    }

    /// Returns an output as the model would have written it.
    pub(crate) fn to_model_text(&self, output: &FinalOutput) -> String {
        let value = output.to_value();
        if self.0.is_wrapped {
            json!({WRAPPER: value}).to_string()
        } else {
            value.to_string()
        }
    }
}

/// Returns the schema of an object whose only field matches `schema`.
fn wrap(mut schema: Value) -> Value {
    let definitions = schema
        .as_object_mut()
        .and_then(|schema| schema.shift_remove("$defs"));
    let mut wrapped = json!({
        "type": "object",
        "properties": {WRAPPER: schema},
        "required": [WRAPPER],
    });
    if let Some(definitions) = definitions {
        wrapped["$defs"] = definitions;
    }
    wrapped
}

impl_debug!(OutputType, |output| output.name());
