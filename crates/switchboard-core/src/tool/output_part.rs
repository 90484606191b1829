//! The parts of an output that is more than text: texts, images and files.

use std::sync::Arc;

use serde::de::Error as _;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A part of a tool's output: a text, an image or a file.
///
/// A tool returns one part, or a list of them. Over Responses the model gets them as they are. Over
/// Chat Completions, whose tool messages are text, it gets the texts, and is told that images and
/// files were left out.
///
/// ```
/// use switchboard_core::tool::{OutputImage, OutputPart};
/// use switchboard_core::{Tool, tool};
///
/// let chart: Tool = tool("chart").run(|_ctx, (): ()| {
///     vec![
///         OutputPart::text("Sales of this year:"),
///         OutputImage::url("https://example.com/sales.png").detail("low").into(),
///     ]
/// });
/// ```
///
/// Its JSON is the reference's: `{"type": "image", "image_url": ".."}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum OutputPart {
    /// A text.
    #[non_exhaustive]
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    Image(OutputImage),
    /// A file.
    File(OutputFile),
}

impl OutputPart {
    /// A text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text { text: text.into() }
    }

    /// The text, or a placeholder for an image or a file.
    pub(super) fn placeholder(&self) -> String {
        match self {
            Self::Text { text } => text.clone(),
            Self::Image(_) => "[image]".to_owned(),
            Self::File(file) => match &file.filename {
                Some(name) => format!("[file {name}]"),
                None => "[file]".to_owned(),
            },
        }
    }
}

impl_from! {
    OutputPart {
        |text: &str| Self::text(text),
        |text: String| Self::text(text),
        |image: OutputImage| Self::Image(image),
        |file: OutputFile| Self::File(file),
    }
}

/// An image that a tool returns.
///
/// ```
/// use switchboard_core::tool::OutputImage;
/// use switchboard_core::{Tool, tool};
///
/// let map: Tool = tool("map")
///     .description("Draws a map.")
///     .run(|_ctx, (): ()| OutputImage::url("https://example.com/map.png"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct OutputImage {
    #[serde(skip_serializing_if = "Option::is_none")]
    image_url: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<Arc<str>>,
}

impl OutputImage {
    /// The image at an address, or in a data URL (`data:image/png;base64,..`).
    pub fn url(url: impl Into<Arc<str>>) -> Self {
        Self {
            image_url: Some(url.into()),
            file_id: None,
            detail: None,
        }
    }

    /// The image in a file that was uploaded to the provider.
    pub fn file_id(id: impl Into<Arc<str>>) -> Self {
        Self {
            image_url: None,
            file_id: Some(id.into()),
            detail: None,
        }
    }

    /// Sets how closely the model looks at the image: `low`, `high`, `auto`, or another value of
    /// the provider.
    #[must_use]
    pub fn detail(mut self, detail: impl Into<Arc<str>>) -> Self {
        self.detail = Some(detail.into());
        self
    }
}

/// A file that a tool returns.
///
/// ```
/// use switchboard_core::tool::OutputFile;
/// use switchboard_core::{Tool, tool};
///
/// let invoice: Tool = tool("invoice").run(|_ctx, (): ()| {
///     OutputFile::data("invoice.txt", "data:text/plain;base64,MTIgRVVS")
/// });
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(remote = "Self")]
pub struct OutputFile {
    #[serde(skip_serializing_if = "Option::is_none")]
    file_data: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_url: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file_id: Option<Arc<str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<Arc<str>>,
}

impl OutputFile {
    const NONE: Self = Self {
        file_data: None,
        file_url: None,
        file_id: None,
        filename: None,
    };

    /// A file with this name and content. The content is a data URL
    /// (`data:application/pdf;base64,..`) or, where the provider takes it, plain base64.
    pub fn data(name: impl Into<Arc<str>>, data: impl Into<Arc<str>>) -> Self {
        Self {
            file_data: Some(data.into()),
            filename: Some(name.into()),
            ..Self::NONE
        }
    }

    /// The file at an address.
    pub fn url(url: impl Into<Arc<str>>) -> Self {
        Self {
            file_url: Some(url.into()),
            ..Self::NONE
        }
    }

    /// A file that was uploaded to the provider.
    pub fn file_id(id: impl Into<Arc<str>>) -> Self {
        Self {
            file_id: Some(id.into()),
            ..Self::NONE
        }
    }

    /// Sets the name of the file.
    #[must_use]
    pub fn name(mut self, name: impl Into<Arc<str>>) -> Self {
        self.filename = Some(name.into());
        self
    }
}

/// Implements serde's traits with the derived functions of `remote = "Self"`. A part without content
/// is not read.
macro_rules! read_with_content {
    ($part:ident, |$read:ident| $has_content:expr, $needs:literal) => {
        impl Serialize for $part {
            fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                Self::serialize(self, serializer)
            }
        }

        impl<'de> Deserialize<'de> for $part {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let $read = Self::deserialize(deserializer)?;
                if $has_content {
                    Ok($read)
                } else {
                    Err(D::Error::custom($needs))
                }
            }
        }
    };
}

read_with_content! {
    OutputImage,
    |image| image.image_url.is_some() || image.file_id.is_some(),
    "an image needs an image_url or a file_id"
}

read_with_content! {
    OutputFile,
    |file| file.file_data.is_some() || file.file_url.is_some() || file.file_id.is_some(),
    "a file needs a file_data, a file_url or a file_id"
}

/// A part in the form of an output item: `{"type": "input_image", ..}`.
pub(super) struct InputPart<'a>(pub(super) &'a OutputPart);

impl Serialize for InputPart<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let (kind, fields) = match self.0 {
            OutputPart::Text { text } => (
                "input_text",
                [("text", Some(&**text)), NO_FIELD, NO_FIELD, NO_FIELD],
            ),
            OutputPart::Image(image) => {
                let fields = [
                    ("image_url", image.image_url.as_deref()),
                    ("file_id", image.file_id.as_deref()),
                    ("detail", image.detail.as_deref()),
                    NO_FIELD,
                ];
                ("input_image", fields)
            }
            OutputPart::File(file) => {
                let fields = [
                    ("file_data", file.file_data.as_deref()),
                    ("file_url", file.file_url.as_deref()),
                    ("file_id", file.file_id.as_deref()),
                    ("filename", file.filename.as_deref()),
                ];
                ("input_file", fields)
            }
        };
        let mut part = serializer.serialize_map(None)?;
        part.serialize_entry("type", kind)?;
        for (name, value) in fields {
            if let Some(value) = value {
                part.serialize_entry(name, value)?;
            }
        }
        part.end()
    }
}

const NO_FIELD: (&str, Option<&str>) = ("", None);
