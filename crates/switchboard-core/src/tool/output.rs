//! The output of a tool.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::output_part::{InputPart, OutputFile, OutputImage, OutputPart};
use crate::items::{Item, ItemKind};

/// The output of a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum ToolOutput {
    /// Text for the model.
    Text(String),
    /// A value; the model reads it as JSON.
    Json(#[serde(with = "crate::json::on_its_own")] Value),
    /// Texts, images and files.
    Parts(Vec<OutputPart>),
}

impl ToolOutput {
    /// The output as text, as the model reads it. Of several parts each is a line; an image or a
    /// file is a placeholder such as `[image]`.
    pub fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Text(text) => Cow::Borrowed(text),
            Self::Json(value) => Cow::Owned(value.to_string()),
            Self::Parts(parts) => {
                let lines: Vec<String> = parts.iter().map(OutputPart::placeholder).collect();
                Cow::Owned(lines.join("\n"))
            }
        }
    }

    /// The output as JSON: text becomes a string, and parts a list of objects.
    pub fn into_value(self) -> Value {
        match self {
            Self::Text(text) => Value::String(text),
            Self::Json(value) => value,
            // Parts consist of strings, which always have a JSON form.
            Self::Parts(parts) => serde_json::to_value(parts).unwrap_or_default(),
        }
    }

    /// The item that answers a call with this output.
    pub(crate) fn to_item(&self, call: &Item) -> Item {
        let call_id = call.call_id().unwrap_or_default();
        let item = Item::builder().string("call_id", &call_id);
        let item = match self {
            Self::Parts(parts) if !parts.is_empty() => {
                let parts: Vec<InputPart<'_>> = parts.iter().map(InputPart).collect();
                item.value("output", &parts)
            }
            // An empty list would be no output.
            Self::Parts(_) => item.string("output", "[]"),
            output => {
                let text = output.text();
                item.reserve(text.len() + 64).string("output", &text)
            }
        };
        let kind = call.kind().output_kind();
        let kind = kind.unwrap_or(ItemKind::FunctionCallOutput);
        item.string("type", kind.as_str()).build()
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
        |part: OutputPart| Self::Parts(vec![part]),
        |image: OutputImage| Self::Parts(vec![image.into()]),
        |file: OutputFile| Self::Parts(vec![file.into()]),
        |parts: Vec<OutputPart>| Self::Parts(parts),
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
