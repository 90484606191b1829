//! The items of a realtime conversation: messages and tool calls.
//!
//! Their JSON form is that of the reference.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// One entry of a realtime conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum RealtimeItem {
    /// A message.
    #[serde(rename = "message")]
    Message(RealtimeMessageItem),
    /// A tool call, and its output once there is one.
    #[serde(rename = "function_call")]
    ToolCall(RealtimeToolCallItem),
}

impl RealtimeItem {
    /// The identifier of the item.
    pub fn item_id(&self) -> &Arc<str> {
        match self {
            Self::Message(message) => &message.item_id,
            Self::ToolCall(call) => &call.item_id,
        }
    }

    /// The identifier of the item before it, where the server has named one.
    pub fn previous_item_id(&self) -> Option<&Arc<str>> {
        match self {
            Self::Message(message) => message.previous_item_id.as_ref(),
            Self::ToolCall(call) => call.previous_item_id.as_ref(),
        }
    }

    /// The message, if it is one.
    pub fn as_message(&self) -> Option<&RealtimeMessageItem> {
        match self {
            Self::Message(message) => Some(message),
            Self::ToolCall(_) => None,
        }
    }

    /// The tool call, if it is one.
    pub fn as_tool_call(&self) -> Option<&RealtimeToolCallItem> {
        match self {
            Self::ToolCall(call) => Some(call),
            Self::Message(_) => None,
        }
    }
}

/// A message of a realtime conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RealtimeMessageItem {
    /// The identifier of the message.
    pub item_id: Arc<str>,
    /// The identifier of the item before it, where the server has named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_item_id: Option<Arc<str>>,
    /// The author.
    pub role: RealtimeRole,
    /// The parts of the message.
    pub content: Vec<RealtimeContent>,
    /// The progress of the message, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<RealtimeItemStatus>,
}

impl RealtimeMessageItem {
    /// Creates a message without a known predecessor.
    pub fn new(
        item_id: impl Into<Arc<str>>,
        role: RealtimeRole,
        content: impl IntoIterator<Item = RealtimeContent>,
    ) -> Self {
        Self {
            item_id: item_id.into(),
            previous_item_id: None,
            role,
            content: content.into_iter().collect(),
            status: None,
        }
    }

    /// The texts and transcripts of the message, joined by spaces.
    pub fn text(&self) -> String {
        let texts = self.content.iter().filter_map(RealtimeContent::text);
        texts.collect::<Vec<_>>().join(" ")
    }
}

impl From<RealtimeMessageItem> for RealtimeItem {
    fn from(message: RealtimeMessageItem) -> Self {
        Self::Message(message)
    }
}

/// The author of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RealtimeRole {
    /// The application, with words that are not the user's.
    System,
    /// The user.
    User,
    /// The model.
    Assistant,
}

/// The progress of an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RealtimeItemStatus {
    /// It is still being made.
    InProgress,
    /// It is complete.
    Completed,
    /// It stopped short, because it was interrupted or a limit was reached.
    Incomplete,
}

/// One part of a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
#[non_exhaustive]
pub enum RealtimeContent {
    /// Text of the user or the application.
    InputText {
        /// The text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// Audio of the user.
    InputAudio {
        /// The audio in base64, where the server has sent it back.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio: Option<String>,
        /// The transcript, once there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transcript: Option<String>,
    },
    /// An image of the user.
    InputImage {
        /// The address of the image, or its data as an address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image_url: Option<String>,
        /// The level of detail: `auto`, `low` or `high`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
    },
    /// Text of the model.
    Text {
        /// The text.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        text: Option<String>,
    },
    /// Audio of the model.
    Audio {
        /// The audio in base64, where the server has sent it with the item.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        audio: Option<String>,
        /// The transcript, as far as it is known.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        transcript: Option<String>,
    },
}

impl RealtimeContent {
    /// The text or the transcript of the part.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::InputText { text } | Self::Text { text } => text.as_deref(),
            Self::InputAudio { transcript, .. } | Self::Audio { transcript, .. } => {
                transcript.as_deref()
            }
            Self::InputImage { .. } => None,
        }
    }
}

/// A tool call of a realtime conversation. The call and its output are one item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RealtimeToolCallItem {
    /// The identifier of the item.
    pub item_id: Arc<str>,
    /// The identifier of the item before it, where the server has named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_item_id: Option<Arc<str>>,
    /// The identifier of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call_id: Option<Arc<str>>,
    /// The progress: complete once the call has its output.
    pub status: RealtimeItemStatus,
    /// The arguments, as the model wrote them.
    pub arguments: Arc<str>,
    /// The name of the tool.
    pub name: Arc<str>,
    /// The output, once there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
}

impl From<RealtimeToolCallItem> for RealtimeItem {
    fn from(call: RealtimeToolCallItem) -> Self {
        Self::ToolCall(call)
    }
}
