//! Spoken conversations, whatever makes them: a realtime model, or a voice pipeline.

use std::fmt;
use std::sync::Arc;

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use switchboard_core::StreamEvent;
use switchboard_core::conversation::Conversation;
use switchboard_core::model::Usage;
use switchboard_realtime::model::{RealtimeModelHandle, RealtimeModelSettings};
use switchboard_realtime::voice::{
    SpeechToText, SpeechToTextHandle, TextToSpeech, TextToSpeechHandle,
};

use super::frames::{Command, Mode, PlaybackReports, ServerFrame, Turns};
use crate::error::ServiceError;
use crate::recording::Recording;

/// The models by which a team hears and speaks.
#[derive(Clone)]
pub(crate) enum Speech {
    /// A realtime model, and the settings of its sessions.
    Realtime(RealtimeModelHandle, Box<RealtimeModelSettings>),
    /// A realtime model with agents of its own.
    Agents(Arc<dyn SpokenTeam>),
    Voice(VoiceModels),
}

impl Speech {
    pub(crate) fn mode(&self) -> Mode {
        match self {
            Self::Realtime(..) | Self::Agents(_) => Mode::Realtime,
            Self::Voice(_) => Mode::Voice,
        }
    }
}

impl fmt::Debug for Speech {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.mode().as_str())
    }
}

/// Speech to text and text to speech, for teams whose models have no realtime protocol.
///
/// ```
/// use switchboard_core::{Agent, Team};
/// use switchboard_realtime::testing::{ScriptedSpeechToText, ScriptedTextToSpeech};
/// use switchboard_server::{ServedTeam, VoiceModels};
///
/// let team: Team = Team::new().agent(Agent::new("Support")).build()?;
/// let hears = ScriptedSpeechToText::new(["hello"]);
/// let models = VoiceModels::new(hears, ScriptedTextToSpeech::new()).voice("Support", "coral");
/// let served = ServedTeam::new("support", team, ()).voice(models);
/// # Ok::<(), switchboard_core::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct VoiceModels {
    pub(super) speech_to_text: SpeechToTextHandle,
    pub(super) text_to_speech: TextToSpeechHandle,
    pub(super) voices: Vec<(Arc<str>, Arc<str>)>,
}

impl VoiceModels {
    /// Creates the models.
    pub fn new(speech_to_text: impl SpeechToText, text_to_speech: impl TextToSpeech) -> Self {
        Self {
            speech_to_text: SpeechToTextHandle::new(speech_to_text),
            text_to_speech: TextToSpeechHandle::new(text_to_speech),
            voices: Vec::new(),
        }
    }

    /// Sets the voice of an agent.
    #[must_use]
    pub fn voice(mut self, agent: impl Into<Arc<str>>, voice: impl Into<Arc<str>>) -> Self {
        self.voices.push((agent.into(), voice.into()));
        self
    }
}

/// A session to be opened.
#[derive(Debug, Clone)]
pub(crate) struct SpokenRequest {
    /// The agent that a new conversation begins with.
    pub(crate) agent: Option<Arc<str>>,
    pub(crate) conversation: Conversation,
    pub(crate) turns: Turns,
    pub(crate) playback: PlaybackReports,
    /// The longest time to wait for other runs of the conversation.
    pub(crate) exclusive: std::time::Duration,
    /// The recording that runs are written to. A realtime model makes no runs.
    pub(crate) recording: Option<Arc<Recording>>,
}

/// A team of agents for a realtime model.
pub(crate) trait SpokenTeam: Send + Sync {
    fn open(
        &self,
        request: SpokenRequest,
    ) -> BoxFuture<'static, Result<SpokenSession, ServiceError>>;
}

/// A spoken conversation.
pub(crate) struct SpokenSession {
    pub(super) input: Arc<dyn SpokenInput>,
    /// The events; polling them drives the session. They end when it does.
    pub(super) events: BoxStream<'static, SpokenEvent>,
    /// The agent that has the conversation.
    pub(super) agent: Arc<str>,
}

/// Something that a session says.
pub(super) enum SpokenEvent {
    /// Audio to play.
    Audio(Bytes),
    Frame(ServerFrame),
    /// An event of a run, for the metrics.
    Run(Box<StreamEvent>),
}

/// The input of a session.
pub(super) trait SpokenInput: Send + Sync {
    /// Takes audio of the user. Waits while the session is busy.
    fn audio(&self, audio: Bytes) -> BoxFuture<'_, Result<(), Problem>>;

    /// Carries out a command.
    fn command(&self, command: Command) -> BoxFuture<'_, Result<(), Problem>>;

    /// Ends the session in order; the events end when everything is stored.
    fn close(&self) -> BoxFuture<'_, ()>;

    /// The usage of all models so far.
    fn usage(&self) -> Usage;
}

/// A command that cannot be carried out.
#[derive(Debug)]
pub(super) struct Problem {
    pub(super) code: &'static str,
    pub(super) message: String,
}

impl Problem {
    pub(super) fn new(code: &'static str, message: impl fmt::Display) -> Self {
        Self {
            code,
            message: message.to_string(),
        }
    }
}
