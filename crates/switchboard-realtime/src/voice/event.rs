//! The events of a voice session.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::ser::SerializeMap as _;
use serde::{Serialize, Serializer};
use switchboard_core::callback::BoxError;
use switchboard_core::{Run, StreamEvent};

use super::audio::Audio;

/// Something that happened in a voice session.
///
/// As JSON it is one flat object, like a [`StreamEvent`]: `{"type": "transcript", "agent": "Billing", "turn": 0,
/// ...}`. Audio is there with its length only.
#[derive(Debug)]
#[non_exhaustive]
pub struct VoiceEvent {
    /// The kind of event, with its data.
    pub kind: VoiceEventKind,
    /// The agent that has the conversation, by name.
    pub agent: Arc<str>,
}

/// The kinds of events. Kinds and fields may be added: end a `match` with `_`, and a pattern with `..`.
#[derive(Debug)]
#[non_exhaustive]
pub enum VoiceEventKind {
    /// The user began to speak.
    #[non_exhaustive]
    SpeechStarted {
        /// The time in the user's audio.
        at: Duration,
    },
    /// The user stopped speaking.
    #[non_exhaustive]
    SpeechStopped {
        /// The time in the user's audio.
        at: Duration,
    },
    /// The words of the user were written down.
    #[non_exhaustive]
    Transcript {
        /// The words; empty if there were none, and then no agent gets them.
        text: String,
        /// The length of the speech.
        speech: Duration,
    },
    /// An event of the text run: agents, handoffs, text, tools.
    Run(Box<StreamEvent>),
    /// A sentence begins to be spoken.
    #[non_exhaustive]
    Sentence {
        /// The words that are spoken.
        text: String,
    },
    /// Audio to play, after the audio before it.
    #[non_exhaustive]
    Audio {
        /// The audio, at the pipeline's output rate.
        audio: Audio,
    },
    /// The answer was interrupted: audio that is not played yet is not to be played.
    #[non_exhaustive]
    Interrupted {
        /// The words of the answer that were heard. The conversation keeps them.
        heard: String,
        /// The length of the answer's audio that was played.
        played: Duration,
    },
    /// The answer was spoken and played to its end.
    AnswerEnded,
    /// Calls of the run wait for a person's decision. Decide them and pass the run to
    /// [`VoiceHandle::resume`](super::VoiceHandle::resume); the user's next words end the wait.
    ApprovalRequired(Box<Run>),
    /// Audio of the user was dropped, because the session did not take it fast enough.
    #[non_exhaustive]
    AudioDropped {
        /// The length.
        length: Duration,
    },
    /// Something failed. The session goes on.
    Error(VoiceError),
}

impl VoiceEventKind {
    /// The `type` of the event in JSON.
    pub fn name(&self) -> &str {
        match self {
            Self::SpeechStarted { .. } => "speech_started",
            Self::SpeechStopped { .. } => "speech_stopped",
            Self::Transcript { .. } => "transcript",
            Self::Run(event) => event.kind.name(),
            Self::Sentence { .. } => "sentence",
            Self::Audio { .. } => "audio",
            Self::Interrupted { .. } => "interrupted",
            Self::AnswerEnded => "answer_ended",
            Self::ApprovalRequired(_) => "approval_required",
            Self::AudioDropped { .. } => "audio_dropped",
            Self::Error(_) => "voice_error",
        }
    }
}

impl Serialize for VoiceEvent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if let VoiceEventKind::Run(event) = &self.kind {
            return event.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind.name())?;
        map.serialize_entry("agent", &*self.agent)?;
        map.serialize_entry("turn", &0)?;
        match &self.kind {
            VoiceEventKind::SpeechStarted { at } | VoiceEventKind::SpeechStopped { at } => {
                map.serialize_entry("audio_seconds", &seconds(*at))?;
            }
            VoiceEventKind::Transcript { text, speech } => {
                map.serialize_entry("text", text)?;
                map.serialize_entry("seconds", &seconds(*speech))?;
            }
            VoiceEventKind::Sentence { text } => map.serialize_entry("text", text)?,
            VoiceEventKind::Audio { audio } => {
                map.serialize_entry("seconds", &seconds(audio.duration()))?;
                map.serialize_entry("rate", &audio.rate())?;
            }
            VoiceEventKind::Interrupted { heard, played } => {
                map.serialize_entry("heard", heard)?;
                map.serialize_entry("seconds", &seconds(*played))?;
            }
            VoiceEventKind::AudioDropped { length } => {
                map.serialize_entry("seconds", &seconds(*length))?;
            }
            VoiceEventKind::Error(error) => {
                map.serialize_entry("stage", error.stage().name())?;
                map.serialize_entry("message", &error.to_string())?;
            }
            VoiceEventKind::AnswerEnded
            | VoiceEventKind::ApprovalRequired(_)
            | VoiceEventKind::Run(_) => {}
        }
        map.end()
    }
}

/// Seconds, rounded to milliseconds.
fn seconds(length: Duration) -> f64 {
    (length.as_secs_f64() * 1000.0).round() / 1000.0
}

/// The stage of the pipeline that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum VoiceStage {
    /// The user's audio could not be taken.
    Input,
    /// The user's words could not be written down. They are lost.
    Transcription,
    /// The run failed.
    Run,
    /// The answer could not be spoken. Its text is in the events and in the conversation.
    Speech,
    /// The conversation could not be corrected to what was heard.
    Session,
}

impl VoiceStage {
    /// The name in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Input => "input",
            Self::Transcription => "transcription",
            Self::Run => "run",
            Self::Speech => "speech",
            Self::Session => "session",
        }
    }
}

/// The failure of a stage of a voice session.
#[derive(Debug)]
pub struct VoiceError {
    stage: VoiceStage,
    source: BoxError,
}

impl VoiceError {
    pub(super) fn new(stage: VoiceStage, source: impl Into<BoxError>) -> Self {
        let source = source.into();
        Self { stage, source }
    }

    /// The stage that failed.
    pub fn stage(&self) -> VoiceStage {
        self.stage
    }

    /// The cause: the error of the run, or of the implementation.
    pub fn cause(&self) -> &(dyn std::error::Error + Send + Sync + 'static) {
        &*self.source
    }
}

impl fmt::Display for VoiceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let problem = match self.stage {
            VoiceStage::Input => "the audio cannot be used",
            VoiceStage::Transcription => "the speech could not be written down",
            VoiceStage::Run => "the run failed",
            VoiceStage::Speech => "the answer could not be spoken",
            VoiceStage::Session => "what was heard could not be stored",
        };
        write!(f, "{problem}: {}", self.source)
    }
}

impl std::error::Error for VoiceError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&*self.source)
    }
}
