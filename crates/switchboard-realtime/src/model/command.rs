//! Commands: what a session tells a realtime model.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::event::RealtimeToolCall;
use super::settings::RealtimeModelSettings;
use crate::items::RealtimeContent;

/// A command to a realtime model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RealtimeModelCommand {
    /// Adds a message of the user and asks for a response.
    UserInput(RealtimeUserInput),
    /// Adds a message of the user and asks for a response, unless the conversation has gone on: another
    /// response has begun since this one, or one has been asked for. Then the command does nothing.
    UserInputAfter {
        /// The message.
        input: RealtimeUserInput,
        /// The response that must be the latest.
        response_id: Arc<str>,
    },
    /// Adds audio of the user, in the session's input format.
    Audio {
        /// The audio.
        audio: Bytes,
        /// Ends the user's turn after it; for sessions without turn detection.
        commit: bool,
    },
    /// Ends the user's turn with the audio so far.
    CommitAudio,
    /// Drops the audio of the user that is not part of a turn yet.
    ClearAudio,
    /// Answers a tool call.
    ToolOutput(RealtimeToolOutput),
    /// Asks for a response. Where one is running it waits for its end.
    CreateResponse(RealtimeResponseRequest),
    /// Interrupts the model.
    Interrupt(RealtimeInterrupt),
    /// Sets the settings of the session. [`SessionUpdated`](super::RealtimeModelEvent::SessionUpdated) or
    /// [`SessionUpdateRefused`](super::RealtimeModelEvent::SessionUpdateRefused) tells the outcome.
    UpdateSession {
        /// The settings, all of them.
        settings: Box<RealtimeModelSettings>,
        /// The identifier under which the outcome is told; at most 64 characters.
        update_id: Option<Arc<str>>,
    },
    /// Sends an event of the provider's protocol.
    Raw(RealtimeRawCommand),
}

impl RealtimeModelCommand {
    /// A message of the user that is only text.
    pub fn say(text: impl Into<String>) -> Self {
        Self::UserInput(RealtimeUserInput::Text(text.into()))
    }
}

/// A message of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RealtimeUserInput {
    /// Text.
    Text(String),
    /// Text and images.
    Message(Vec<RealtimeInputPart>),
}

impl RealtimeUserInput {
    /// The message as the content of an item.
    pub fn into_content(self) -> Vec<RealtimeContent> {
        let parts = match self {
            Self::Text(text) => vec![RealtimeInputPart::Text { text }],
            Self::Message(parts) => parts,
        };
        let content = parts.into_iter().map(|part| match part {
            RealtimeInputPart::Text { text } => RealtimeContent::InputText { text: Some(text) },
            RealtimeInputPart::Image { image_url, detail } => RealtimeContent::InputImage {
                image_url: Some(image_url),
                detail: detail.map(|detail| detail.as_str().to_owned()),
            },
        });
        content.collect()
    }
}

impl From<&str> for RealtimeUserInput {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for RealtimeUserInput {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// One part of a message of the user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum RealtimeInputPart {
    /// Text.
    #[serde(rename = "input_text")]
    Text {
        /// The text.
        text: String,
    },
    /// An image.
    #[serde(rename = "input_image")]
    Image {
        /// The address of the image, or its data as an address (`data:image/png;base64,…`).
        image_url: String,
        /// The level of detail.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<ImageDetail>,
    },
}

/// The level of detail at which the model looks at an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ImageDetail {
    /// The provider decides.
    Auto,
    /// A coarse look.
    Low,
    /// A close look.
    High,
}

impl ImageDetail {
    /// `auto`, `low` or `high`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Low => "low",
            Self::High => "high",
        }
    }
}

/// The output of a tool call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RealtimeToolOutput {
    /// The call.
    pub tool_call: RealtimeToolCall,
    /// The output.
    pub output: Arc<str>,
    /// Asks for a response as well.
    pub start_response: bool,
}

/// A request for a response.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RealtimeResponseRequest {
    /// Instructions for this response alone, in place of the session's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Arc<str>>,
}

/// An interruption: stops the playback, cuts the message in the conversation to what was heard, and
/// cancels the response.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RealtimeInterrupt {
    /// Cancels the response even where the server does it on its own when the user speaks.
    pub force_response_cancel: bool,
    /// The response to interrupt; the current one if not set. Playback of other responses goes on.
    pub response_id: Option<Arc<str>>,
    /// Cancels the response and lets the playback go on. Needs `response_id`.
    pub cancel_response_only: bool,
    /// Stops the playback and lets the response go on.
    pub playback_only: bool,
}

/// An event of the provider's protocol that the application sends itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RealtimeRawCommand {
    /// The type of the event.
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// Its other fields.
    #[serde(default, rename = "other_data")]
    pub fields: Map<String, Value>,
}
