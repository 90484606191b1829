//! The final output of a run: text, or JSON that matches the user's type.

mod union;

use std::any::TypeId;
use std::borrow::Cow;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};
#[doc(hidden)]
pub use union::read_as;
pub use union::{NotInUnion, OutputUnion, ReadError};

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

#[derive(Clone)]
struct Inner {
    name: String,
    /// The Rust type; `None` where it is known only at run time.
    rust_type: Option<TypeId>,
    schema: Arc<RawValue>,
    payload: Payload,
    /// Checks that a valid value is of the Rust type.
    check: fn(&Value) -> Result<(), serde_json::Error>,
    /// Set if the model must keep to the schema.
    is_strict: bool,
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
        let lenient = Self::lenient::<T>();
        let described = lenient.0.payload.schema().clone();
        let schema = schema::strict(described.clone())?;
        Ok(Self(Arc::new(Inner {
            schema: schema::raw(&schema),
            payload: Payload::described_by(described),
            is_strict: true,
            ..Arc::unwrap_or_clone(lenient.0)
        })))
    }

    /// Creates the output type of a `T` whose schema cannot be strict, because it has a map for
    /// example. The model is shown the schema and not held to it; its answer is validated, and a
    /// number or a boolean may be the text that spells it exactly (`"25"`).
    ///
    /// ```
    /// use std::collections::BTreeMap;
    /// use switchboard_core::Agent;
    /// use switchboard_core::output::OutputType;
    ///
    /// let agent: Agent = Agent::new("Counter")
    ///     .output_as(OutputType::lenient::<BTreeMap<String, u32>>());
    /// ```
    pub fn lenient<T: JsonSchema + DeserializeOwned + 'static>() -> Self {
        let check = |value: &Value| T::deserialize(value).map(|_| ());
        let rust_type = Some(TypeId::of::<T>());
        Self::new(&T::schema_name(), schema::of::<T>(), rust_type, check)
    }

    /// Creates an output type that is known only at run time, by its name and JSON schema. Answers
    /// are validated against it, and read as those of a [lenient](Self::lenient) type.
    ///
    /// ```
    /// use serde_json::json;
    /// use switchboard_core::Agent;
    /// use switchboard_core::output::OutputType;
    ///
    /// let schema = json!({"type": "object", "properties": {"total": {"type": "number"}}});
    /// let agent: Agent = Agent::new("Billing").output_as(OutputType::described_by("Bill", schema)?);
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    /// If the schema is invalid, or takes too much work to check.
    pub fn described_by(name: &str, schema: Value) -> Result<Self, String> {
        let output = Self::new(name, schema, None, |_| Ok(()));
        output.0.payload.check_schema()?;
        Ok(output)
    }

    fn new(
        name: &str,
        schema: Value,
        rust_type: Option<TypeId>,
        check: fn(&Value) -> Result<(), serde_json::Error>,
    ) -> Self {
        let is_wrapped = schema["type"] != "object";
        let schema = if is_wrapped { wrap(schema) } else { schema };
        Self(Arc::new(Inner {
            name: name.to_owned(),
            rust_type,
            schema: schema::raw(&schema),
            payload: Payload::arguments(schema, true),
            check,
            is_wrapped,
            is_strict: false,
        }))
    }

    /// Returns the name of the type.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Returns the JSON schema that is sent to the model.
    pub fn schema(&self) -> &Arc<RawValue> {
        &self.0.schema
    }

    pub(crate) fn rust_type(&self) -> Option<TypeId> {
        self.0.rust_type
    }

    /// Returns `true` if the model must keep to the schema.
    pub fn is_strict(&self) -> bool {
        self.0.is_strict
    }

    /// Parses the text of a model as an output of this type.
    pub(crate) fn validate(&self, text: &str) -> Result<FinalOutput, InvalidPayload> {
        let mut value = self.0.payload.check(text)?;
        if self.0.is_wrapped {
            value = value[WRAPPER].take();
        }
        (self.0.check)(&value).map_err(|_| InvalidPayload::of_type())?;
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
