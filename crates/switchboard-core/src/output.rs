//! What a run comes to: text, or a value of the user's type.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::schema::{self, InvalidPayload, Payload, StrictSchemaError};

/// What a run came to.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinalOutput {
    /// An answer in words.
    Text(Arc<str>),
    /// An answer in the form the agent was asked for, or the value of a tool the run stopped at.
    Json(#[serde(with = "crate::json::on_its_own")] Value),
}

impl FinalOutput {
    /// The answer as text: words as they are, a value as JSON.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(value) => Cow::Owned(value.to_string()),
        }
    }

    /// The answer as a value of `T`.
    ///
    /// # Errors
    /// Where the answer is not one.
    pub fn parse<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        match self {
            Self::Text(text) => serde_json::from_str(text),
            Self::Json(value) => T::deserialize(value),
        }
    }

    /// The answer as JSON: words become a string.
    pub fn to_value(&self) -> Value {
        match self {
            Self::Text(text) => Value::from(&**text),
            Self::Json(value) => value.clone(),
        }
    }
}

impl From<&str> for FinalOutput {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for FinalOutput {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<Value> for FinalOutput {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

/// The form of an agent's final answer where it is not plain text.
#[derive(Clone)]
pub struct OutputType(Arc<Inner>);

struct Inner {
    name: String,
    schema: Arc<RawValue>,
    payload: Payload,
    /// Whether the value is inside an object, because the type is none: models answer in objects.
    is_wrapped: bool,
}

/// The field a value that is no object is put into.
const WRAPPER: &str = "response";

impl OutputType {
    /// The type `T` as the form of the answer. A type that is no object (a list, a number, an enum)
    /// is put into one for the model, and taken out of it again.
    ///
    /// # Errors
    /// Where `T`'s schema cannot be made strict.
    pub fn of<T: JsonSchema + DeserializeOwned + 'static>() -> Result<Self, StrictSchemaError> {
        let mut schema = schema::of::<T>();
        let is_wrapped = schema["type"] != "object";
        let payload = if is_wrapped {
            schema = wrapped(schema);
            Payload::new(schema.clone(), |value| {
                T::deserialize(&value[WRAPPER]).map(drop)
            })
        } else {
            Payload::typed::<T>()
        };
        Ok(Self(Arc::new(Inner {
            name: T::schema_name().into_owned(),
            schema: schema::raw(&schema::strict(schema)?),
            payload,
            is_wrapped,
        })))
    }

    /// The type's name.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// The JSON schema the model is given.
    pub fn schema(&self) -> &Arc<RawValue> {
        &self.0.schema
    }

    /// A model's text as an answer in this form.
    pub(crate) fn validate(&self, text: &str) -> Result<FinalOutput, InvalidPayload> {
        let mut value = self.0.payload.check(text)?;
        if self.0.is_wrapped {
            value = value[WRAPPER].take();
        }
        Ok(FinalOutput::Json(value))
    }

    /// An answer of the application as one in this form. It is not inside an object where the
    /// model's would be; words are the value itself where that may be a string, and JSON otherwise.
    pub(crate) fn accept(&self, output: &FinalOutput) -> Result<FinalOutput, InvalidPayload> {
        match output {
            FinalOutput::Text(text) if !self.0.is_wrapped => self.validate(text),
            FinalOutput::Text(text) => self
                .validate(&self.written(output))
                .or_else(|_| self.validate(&format!(r#"{{"{WRAPPER}":{text}}}"#))),
            FinalOutput::Json(_) => self.validate(&self.written(output)),
        }
    }

    /// An answer as a model would have written it.
    pub(crate) fn written(&self, output: &FinalOutput) -> String {
        let value = output.to_value();
        if self.0.is_wrapped {
            json!({WRAPPER: value}).to_string()
        } else {
            value.to_string()
        }
    }
}

/// An object with one field that keeps to `schema`.
fn wrapped(mut schema: Value) -> Value {
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

impl fmt::Debug for OutputType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OutputType({})", self.0.name)
    }
}
