//! Events: what a realtime model tells a session.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_core::model::Usage;

use super::error::RealtimeModelError;
use crate::items::RealtimeItem;

/// An event of a realtime model.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum RealtimeModelEvent {
    /// The server reported an error, or sent an event that cannot be read. The connection goes on.
    Error(RealtimeServerError),
    /// Something failed in this process or on the connection; the session cannot rely on it any more.
    Exception {
        /// The error.
        error: RealtimeModelError,
        /// The activity that failed.
        context: Option<Arc<str>>,
    },
    /// The model calls a tool or a handoff.
    ToolCall(RealtimeToolCall),
    /// Audio of the model, in the session's output format.
    Audio(RealtimeModelAudio),
    /// The playback of a part has to stop.
    AudioInterrupted(AudioPart),
    /// The audio of a part is complete.
    AudioDone(AudioPart),
    /// The user's audio was transcribed.
    InputAudioTranscriptionCompleted {
        /// The user's message.
        item_id: Arc<str>,
        /// The transcript.
        transcript: String,
    },
    /// The user's audio could not be transcribed.
    InputAudioTranscriptionFailed {
        /// The user's message.
        item_id: Arc<str>,
        /// The error, as the server sent it.
        error: Value,
    },
    /// The server began to hear the user.
    SpeechStarted {
        /// The message that the speech will be.
        item_id: Arc<str>,
        /// The time in the input audio, in milliseconds.
        audio_start_ms: u64,
    },
    /// The server no longer hears the user.
    SpeechStopped {
        /// The message that the speech will be.
        item_id: Arc<str>,
        /// The time in the input audio, in milliseconds.
        audio_end_ms: u64,
    },
    /// The user has been silent for the time set as `idle_timeout_ms`.
    InputAudioTimeoutTriggered {
        /// The message that stands for the silence.
        item_id: Arc<str>,
        /// The start of the silence in the input audio, in milliseconds.
        audio_start_ms: u64,
        /// Its end.
        audio_end_ms: u64,
    },
    /// The transcript of the model's audio has grown.
    TranscriptDelta(RealtimeModelDelta),
    /// The model's text has grown.
    OutputTextDelta(RealtimeModelDelta),
    /// An item was added or has changed.
    ItemUpdated(RealtimeItem),
    /// An item was deleted.
    ItemDeleted {
        /// The identifier of the item.
        item_id: Arc<str>,
    },
    /// The server has cut a message to the audio that was heard.
    ItemTruncated {
        /// The identifier of the message.
        item_id: Arc<str>,
        /// The part.
        content_index: u32,
        /// The length that is left, in milliseconds.
        audio_end_ms: u64,
    },
    /// The connection has changed its state.
    ConnectionStatus(RealtimeConnectionStatus),
    /// No more events will come.
    EndOfStream,
    /// The model began a response.
    TurnStarted {
        /// The identifier of the response.
        response_id: Option<Arc<str>>,
    },
    /// The tokens of a response.
    Usage(Box<RealtimeModelUsage>),
    /// A response has ended.
    TurnEnded(RealtimeTurnEnd),
    /// The server has taken new session settings.
    SessionUpdated {
        /// The identifier that the command had.
        update_id: Option<Arc<str>>,
    },
    /// The server has refused new session settings. [`Error`](Self::Error) tells why.
    SessionUpdateRefused {
        /// The identifier that the command had.
        update_id: Option<Arc<str>>,
        /// The error.
        error: RealtimeServerError,
    },
    /// An event that only this provider has.
    Other(Value),
    /// An event of the server as it was sent; where
    /// [`RealtimeModelConfig::raw_events`](super::RealtimeModelConfig::raw_events) asks for them.
    RawServerEvent(Arc<str>),
}

/// An error that a realtime server reported.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum RealtimeServerError {
    /// The server's own words.
    Reported(ReportedError),
    /// An event of the server has a type or a shape that is not known.
    Unreadable(RealtimeModelError),
}

/// An error as the server words it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportedError {
    /// The message.
    pub message: String,
    /// The kind of error, such as `invalid_request_error`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The code, where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The identifier of the client's event that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub event_id: Option<String>,
    /// The field that caused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub param: Option<String>,
}

/// A call of a tool or a handoff.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RealtimeToolCall {
    /// The name of the tool.
    pub name: Arc<str>,
    /// The identifier of the call.
    pub call_id: Arc<str>,
    /// The arguments, as the model wrote them.
    pub arguments: Arc<str>,
    /// The identifier of the call's item.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// The identifier of the item before it, where the server has named one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous_item_id: Option<Arc<str>>,
    /// The response that the call is part of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub response_id: Option<Arc<str>>,
}

impl RealtimeToolCall {
    /// Creates a call whose item is not known.
    pub fn new(
        name: impl Into<Arc<str>>,
        call_id: impl Into<Arc<str>>,
        arguments: impl Into<Arc<str>>,
    ) -> Self {
        Self {
            name: name.into(),
            call_id: call_id.into(),
            arguments: arguments.into(),
            id: None,
            previous_item_id: None,
            response_id: None,
        }
    }
}

/// Audio of the model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealtimeModelAudio {
    /// The audio.
    pub data: Bytes,
    /// The response that it is part of.
    pub response_id: Arc<str>,
    /// The message and the part that it belongs to.
    pub part: AudioPart,
}

/// A part of a message that is audio.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AudioPart {
    /// The message.
    pub item_id: Arc<str>,
    /// The position of the part in the message.
    pub content_index: u32,
}

impl AudioPart {
    /// The part of a message at a position.
    pub fn new(item_id: impl Into<Arc<str>>, content_index: u32) -> Self {
        Self {
            item_id: item_id.into(),
            content_index,
        }
    }
}

/// A piece of text or transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealtimeModelDelta {
    /// The message.
    pub item_id: Arc<str>,
    /// The piece.
    pub delta: String,
    /// The response that it is part of.
    pub response_id: Arc<str>,
}

/// The state of a connection.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RealtimeConnectionStatus {
    /// It is being made.
    Connecting,
    /// It is made.
    Connected,
    /// It was lost, and is being made again; the conversation will be replayed.
    Reconnecting {
        /// The number of the attempt, from 1.
        attempt: u32,
        /// The end of the connection before.
        close: Option<RealtimeClose>,
    },
    /// It was made again, and the conversation was replayed.
    Reconnected {
        /// The length of the user's audio that was lost meanwhile, in milliseconds.
        dropped_audio_ms: u64,
    },
    /// It has ended. The close tells why, if the server closed it: 1001 is the end of the time that the
    /// provider allows for one session.
    Disconnected {
        /// The code and the reason of the server's close.
        close: Option<RealtimeClose>,
    },
}

/// The close of a connection by the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RealtimeClose {
    /// The code.
    pub code: u16,
    /// The server's words.
    pub reason: String,
}

/// The end of a response.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct RealtimeTurnEnd {
    /// The identifier of the response.
    pub response_id: Option<Arc<str>>,
    /// The outcome.
    pub status: RealtimeResponseStatus,
    /// The reason, for responses that are not complete; as the server sent it.
    pub details: Option<Box<Value>>,
}

impl RealtimeTurnEnd {
    /// The end of a complete response.
    pub fn completed(response_id: impl Into<Arc<str>>) -> Self {
        Self {
            response_id: Some(response_id.into()),
            ..Self::default()
        }
    }
}

/// The outcome of a response.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RealtimeResponseStatus {
    /// It is complete.
    #[default]
    Completed,
    /// It was cancelled, by the client or because the user spoke.
    Cancelled,
    /// It failed.
    Failed,
    /// It stopped short: a limit or a content filter.
    Incomplete,
}

/// The tokens of a response.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct RealtimeModelUsage {
    /// The sums, counted as one request.
    pub usage: Usage,
    /// The sum as the provider computed it.
    pub total_tokens: u64,
    /// The input tokens by kind.
    pub input_tokens_details: Option<RealtimeTokensDetails>,
    /// The cached input tokens by kind.
    pub cached_tokens_details: Option<RealtimeTokensDetails>,
    /// The output tokens by kind.
    pub output_tokens_details: Option<RealtimeTokensDetails>,
}

/// Tokens by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RealtimeTokensDetails {
    /// Tokens of text.
    pub text_tokens: Option<u64>,
    /// Tokens of audio.
    pub audio_tokens: Option<u64>,
    /// Tokens of images.
    pub image_tokens: Option<u64>,
    /// Tokens that the provider had cached.
    pub cached_tokens: Option<u64>,
}
