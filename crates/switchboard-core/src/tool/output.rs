//! The output of a tool.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The output of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolOutput {
    /// Text for the model.
    Text(String),
    /// A value; the model reads it as JSON.
    Json(#[serde(with = "crate::json::on_its_own")] Value),
}

impl ToolOutput {
    /// The output as the model reads it.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(value) => Cow::Owned(value.to_string()),
        }
    }

    /// The output as JSON: text becomes a string.
    pub fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::String(text),
            Self::Json(value) => value,
        }
    }
}

impl_from! {
    ToolOutput {
        |text: String| Self::Text(text),
        |text: &str| Self::Text(text.to_owned()),
        |_nothing: ()| Self::Text(String::new()),
        |value: Value| match value {
            Value::String(text) => Self::Text(text),
            value => Self::Json(value),
        },
    }
}

/// A value that a tool returns as JSON.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use switchboard_core::{Json, Tool, tool};
///
/// #[derive(Serialize)]
/// struct Account { id: u32, open: bool }
///
/// let lookup: Tool = tool("lookup").run(|_ctx, (): ()| Json(Account { id: 42, open: true }));
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Json<T>(pub T);

impl<T: Serialize> From<Json<T>> for ToolOutput {
    /// A value that has no JSON form (a map whose keys are not text) becomes an error text.
    fn from(Json(value): Json<T>) -> Self {
        match serde_json::to_value(value) {
            Ok(value) => value.into(),
            Err(error) => Self::Text(format!("the tool's value is not JSON: {error}")),
        }
    }
}
