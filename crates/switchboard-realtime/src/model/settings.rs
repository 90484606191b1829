//! The settings of a realtime session.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use switchboard_core::model::{HandoffSpec, Prompt, ToolChoice, ToolSpec};

/// The settings of a realtime session. All are optional; `None` is the default of the model's adapter or of
/// the provider.
///
/// ```
/// use switchboard_realtime::model::{RealtimeModelSettings, RealtimeVoice};
///
/// let team = RealtimeModelSettings { speed: Some(1.1), ..Default::default() };
/// let call = RealtimeModelSettings { voice: Some(RealtimeVoice::named("coral")), ..Default::default() };
/// let merged = team.overridden_by(&call);
/// assert_eq!(merged.speed, Some(1.1));
/// assert_eq!(merged.voice, Some(RealtimeVoice::named("coral")));
/// ```
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct RealtimeModelSettings {
    /// The name of the model. It cannot change while a session runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_name: Option<Arc<str>>,
    /// The instructions of the current agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instructions: Option<Arc<str>>,
    /// The prompt that the provider stores.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<Prompt>>,
    /// The kinds of output.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_modalities: Option<Vec<Modality>>,
    /// The format of the user's audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_audio_format: Option<AudioFormat>,
    /// The format of the model's audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output_audio_format: Option<AudioFormat>,
    /// The transcription of the user's audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_audio_transcription: Option<Switch<Transcription>>,
    /// The noise reduction for the user's audio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub input_audio_noise_reduction: Option<Switch<NoiseReduction>>,
    /// The detection of the end of the user's turn. Switched off, the application ends turns itself
    /// ([`CommitAudio`](super::RealtimeModelCommand::CommitAudio)).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_detection: Option<Switch<TurnDetection>>,
    /// The voice of the model. Most providers keep the first voice that has spoken.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub voice: Option<RealtimeVoice>,
    /// The speed of the voice; 1 is normal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub speed: Option<f64>,
    /// The limit of output tokens of one response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<MaxOutputTokens>,
    /// The tool that the model must call, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool_choice: Option<ToolChoice>,
    /// Allows several tool calls in one response.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parallel_tool_calls: Option<bool>,
    /// The reasoning effort: `minimal`, `low`, `medium`, `high`, or another value of the provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning_effort: Option<Arc<str>>,
    /// The provider's strategy for a conversation that is too long, as the provider writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub truncation: Option<Value>,
    /// The trace that the provider keeps.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tracing: Option<Switch<RealtimeTracing>>,
    /// The tools of the current agent. Not part of the stored form.
    #[serde(skip)]
    pub tools: Option<Arc<[ToolSpec]>>,
    /// The handoffs of the current agent. Not part of the stored form.
    #[serde(skip)]
    pub handoffs: Option<Arc<[HandoffSpec]>>,
}

impl RealtimeModelSettings {
    /// Returns these settings, overridden by those that `other` sets.
    #[must_use]
    pub fn overridden_by(&self, other: &Self) -> Self {
        macro_rules! first_set {
            ($($field:ident),* $(,)?) => {
                Self { $($field: other.$field.as_ref().or(self.$field.as_ref()).cloned()),* }
            };
        }
        first_set! {
            model_name, instructions, prompt, output_modalities, input_audio_format,
            output_audio_format, input_audio_transcription, input_audio_noise_reduction,
            turn_detection, voice, speed, max_output_tokens, tool_choice, parallel_tool_calls,
            reasoning_effort, truncation, tracing, tools, handoffs,
        }
    }
}

/// A part of a session that can be switched off.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Switch<T> {
    /// Switched off.
    Off,
    /// Switched on, with these settings.
    On(T),
}

impl<T> Switch<T> {
    /// The settings, if it is on.
    pub fn on(&self) -> Option<&T> {
        match self {
            Self::On(settings) => Some(settings),
            Self::Off => None,
        }
    }
}

/// A kind of output.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Modality {
    /// Text.
    Text,
    /// Audio, with a transcript.
    Audio,
}

/// The format of audio.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub enum AudioFormat {
    /// 16 bit PCM, little-endian, one channel, 24 kHz.
    #[default]
    #[serde(rename = "pcm16")]
    Pcm16,
    /// G.711 µ-law, 8 kHz.
    #[serde(rename = "g711_ulaw")]
    G711Ulaw,
    /// G.711 A-law, 8 kHz.
    #[serde(rename = "g711_alaw")]
    G711Alaw,
}

impl AudioFormat {
    /// The length of audio of so many bytes, in milliseconds.
    pub fn length_ms(self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes_per_ms()
    }

    /// The number of bytes of a millisecond of audio.
    pub const fn bytes_per_ms(self) -> f64 {
        match self {
            Self::Pcm16 => 48.0,
            Self::G711Ulaw | Self::G711Alaw => 8.0,
        }
    }
}

/// A voice.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(untagged)]
pub enum RealtimeVoice {
    /// A voice of the provider, by its name.
    Named(Arc<str>),
    /// A voice that the application has made at the provider.
    Custom {
        /// The identifier of the voice.
        id: Arc<str>,
    },
}

impl RealtimeVoice {
    /// A voice of the provider.
    pub fn named(name: impl Into<Arc<str>>) -> Self {
        Self::Named(name.into())
    }
}

impl From<&str> for RealtimeVoice {
    fn from(name: &str) -> Self {
        Self::named(name)
    }
}

/// The transcription of the user's audio.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Transcription {
    /// The model that transcribes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Arc<str>>,
    /// The language, as a code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<Arc<str>>,
    /// Words that guide the transcription.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt: Option<Arc<str>>,
    /// Further fields of the provider, such as `keywords`, `languages` and `delay`.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The noise reduction for the user's audio.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum NoiseReduction {
    /// For a microphone near the mouth.
    NearField,
    /// For a microphone in the room.
    FarField,
}

/// The detection of the end of the user's turn.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum TurnDetection {
    /// By silence.
    Server(ServerVad),
    /// By what the user says.
    Semantic(SemanticVad),
    /// As the provider writes it.
    Other(Map<String, Value>),
}

/// Turn detection by silence.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerVad {
    /// The loudness of speech, from 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub threshold: Option<f64>,
    /// The audio to keep before the speech, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix_padding_ms: Option<u32>,
    /// The silence that ends a turn, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub silence_duration_ms: Option<u32>,
    /// The time after which the model speaks though the user does not, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub idle_timeout_ms: Option<u32>,
    /// Begins a response when a turn ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_response: Option<bool>,
    /// Cancels the response when the user speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_response: Option<bool>,
    /// Further fields of the provider.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// Turn detection by what the user says.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SemanticVad {
    /// The eagerness to take a turn: `low`, `medium`, `high`, `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eagerness: Option<Arc<str>>,
    /// Begins a response when a turn ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub create_response: Option<bool>,
    /// Cancels the response when the user speaks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub interrupt_response: Option<bool>,
    /// Further fields of the provider.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
}

/// The limit of output tokens of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MaxOutputTokens {
    /// The model's own limit.
    Unlimited,
    /// At most so many.
    Limit(u32),
}

/// The trace that the provider keeps of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RealtimeTracing {
    /// With the provider's defaults.
    Auto,
    /// With these names.
    Named(RealtimeTrace),
}

/// The names of a trace that the provider keeps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RealtimeTrace {
    /// The name of the workflow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workflow_name: Option<Arc<str>>,
    /// The identifier that links several traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group_id: Option<Arc<str>>,
    /// Further data.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub metadata: BTreeMap<String, Value>,
}
