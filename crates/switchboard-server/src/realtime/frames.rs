//! The frames of a session in JSON: commands from the client, events to it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_core::stream::HandoffStatus;

use crate::api::{DecisionBody, Waiting};

/// The subprotocol of the WebSocket, with the version of the frames.
pub(crate) const PROTOCOL: &str = "switchboard.realtime.v1";

/// The version of the frames. Kinds and fields are added without a new one.
pub(super) const VERSION: u32 = 1;

/// The samples per second of all audio, both ways.
pub(crate) const SAMPLE_RATE: u32 = 24_000;

/// The milliseconds of audio in these bytes.
pub(super) fn audio_ms(bytes: usize) -> u64 {
    bytes as u64 * 1000 / (2 * u64::from(SAMPLE_RATE))
}

/// The kind of model behind a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Mode {
    /// A realtime model, which hears and speaks.
    Realtime,
    /// Speech to text, a run, text to speech.
    Voice,
}

impl Mode {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Realtime => "realtime",
            Self::Voice => "voice",
        }
    }
}

/// The end of the user's turns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Turns {
    /// Silence after speech.
    #[default]
    Detected,
    /// The command `commit`: push to talk.
    Manual,
}

/// The way in which the service knows what was played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PlaybackReports {
    /// Audio is played at its own speed, from the moment when it is sent.
    #[default]
    Clock,
    /// The client reports what it has played with the command `played`.
    Reported,
}

/// A command of the client.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Command {
    /// A message that the user has written.
    Text { text: String },
    /// Ends the user's turn.
    Commit {},
    /// Stops the answer.
    Interrupt {},
    /// Ignores the audio that follows, or not any more.
    Mute { on: bool },
    /// Decides a call that waits.
    Decide(DecisionBody),
    /// Reports that so much more audio was played.
    Played { ms: f64 },
    /// Ends the session.
    Close {},
}

/// An event of a session, as the client gets it.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum ServerFrame {
    /// The first frame.
    Session {
        version: u32,
        session: Arc<str>,
        team: Arc<str>,
        conversation: Arc<str>,
        agent: Arc<str>,
        mode: Mode,
        sample_rate: u32,
        turns: Turns,
        playback: PlaybackReports,
    },
    /// The agent that has the conversation from now on.
    Agent {
        agent: Arc<str>,
    },
    SpeechStarted {},
    SpeechStopped {},
    /// A whole message, spoken or written.
    Message {
        role: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        agent: Option<Arc<str>>,
        text: String,
    },
    AnswerStarted {
        agent: Arc<str>,
    },
    AnswerEnded {
        agent: Arc<str>,
    },
    TextDelta {
        agent: Arc<str>,
        text: String,
    },
    Handoff {
        from: Arc<str>,
        #[serde(skip_serializing_if = "Option::is_none")]
        to: Option<Arc<str>>,
        status: HandoffStatus,
        #[serde(skip_serializing_if = "Option::is_none")]
        tool: Option<Arc<str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        call_id: Option<Arc<str>>,
        #[serde(skip_serializing_if = "Option::is_none")]
        payload: Option<Value>,
        #[serde(skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    ToolStarted {
        agent: Arc<str>,
        tool: Arc<str>,
        call_id: Arc<str>,
        arguments: String,
    },
    ToolEnded {
        agent: Arc<str>,
        tool: Arc<str>,
        call_id: Arc<str>,
        output: Value,
    },
    ApprovalRequired {
        waiting: Vec<Waiting>,
    },
    /// Audio that is not played yet is not to be played.
    Interrupted {
        #[serde(skip_serializing_if = "Option::is_none")]
        heard: Option<String>,
    },
    /// Audio was dropped, because somebody was too slow.
    Dropped {
        direction: Direction,
        ms: u64,
    },
    /// The service ends soon.
    Draining {},
    Error {
        code: &'static str,
        message: String,
        fatal: bool,
    },
    /// The last frame.
    Closed {
        reason: CloseReason,
    },
}

impl ServerFrame {
    /// An error that does not end the session.
    pub(super) fn problem(code: &'static str, message: impl Into<String>) -> Self {
        Self::Error {
            code,
            message: message.into(),
            fatal: false,
        }
    }
}

/// The direction of audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Direction {
    /// From the client.
    In,
    /// To the client.
    Out,
}

/// The reason for the end of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum CloseReason {
    /// The client has ended it, is gone, or has broken the protocol of WebSockets.
    Client,
    /// The service ends.
    Draining,
    /// The longest time of a session has passed.
    Time,
    /// Nothing came from the client, not even an answer to a ping.
    Idle,
    /// The client has read nothing for a time.
    Slow,
    /// The key has reached a limit.
    Limit,
    /// The conversation was deleted.
    Deleted,
    /// The session has failed.
    Failed,
}

impl CloseReason {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Client => "client",
            Self::Draining => "draining",
            Self::Time => "time",
            Self::Idle => "idle",
            Self::Slow => "slow",
            Self::Limit => "limit",
            Self::Deleted => "deleted",
            Self::Failed => "failed",
        }
    }

    /// The close code of the WebSocket.
    pub(super) const fn code(self) -> u16 {
        match self {
            Self::Client | Self::Time | Self::Idle | Self::Slow | Self::Deleted => 1000,
            Self::Draining => 1001,
            Self::Limit => 1008,
            Self::Failed => 1011,
        }
    }
}
