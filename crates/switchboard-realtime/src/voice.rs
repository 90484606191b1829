//! A voice pipeline, for models without a realtime protocol: speech to text, a text run, text to speech.
//!
//! The agents are those of text runs, and so are handoffs, tools, guardrails and sessions. What the user says is
//! written down when the user stops speaking; the answer is spoken sentence by sentence, while the model still
//! writes; and when the user speaks, it stops, and the conversation keeps what was heard.
//!
//! ```
//! use switchboard_core::testing::ScriptedModel;
//! use switchboard_core::{Agent, Runner};
//! use switchboard_realtime::testing::{ScriptedSpeechToText, ScriptedTextToSpeech};
//! use switchboard_realtime::voice::{Playback, VoiceEventKind, VoicePipeline};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let billing: Agent = Agent::new("Billing");
//! let triage = Agent::new("Triage").handoff(&billing);
//! let model = ScriptedModel::new().call("transfer_to_billing", "{}").say("It is fixed. Bye!");
//!
//! let runner = Runner::new(&triage).model(model);
//! let hears = ScriptedSpeechToText::new(["my bill is wrong"]);
//! let speaks = ScriptedTextToSpeech::new();
//! let pipeline = VoicePipeline::new(runner, hears, speaks).playback(Playback::Instant);
//! let (handle, mut session) = pipeline.open();
//! handle.send_audio(switchboard_realtime::testing::speech(16_000)).await?;
//! handle.close().await;
//!
//! let mut sentences = Vec::new();
//! while let Some(event) = session.next().await {
//!     match event.kind {
//!         VoiceEventKind::Transcript { text, .. } => assert_eq!(text, "my bill is wrong"),
//!         VoiceEventKind::Sentence { text, .. } => sentences.push(format!("{}: {text}", event.agent)),
//!         VoiceEventKind::Audio { audio, .. } => println!("{:?}", audio.duration()),
//!         _ => {}
//!     }
//! }
//! assert_eq!(sentences, ["Billing: It is fixed.", "Billing: Bye!"]);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # }).unwrap();
//! ```
//!
//! OpenAI's endpoints are behind the two traits: a
//! [`TranscriptionModel`](switchboard_models::TranscriptionModel) is [`SpeechToText`], and a
//! [`SpeechModel`](switchboard_models::SpeechModel) is [`TextToSpeech`]. [`Flite`] and [`PocketSphinx`] need no
//! network.

mod activity;
mod answer;
mod audio;
mod driver;
mod event;
mod flite;
mod heard;
mod openai;
mod playback;
mod pocketsphinx;
mod programs;
mod resample;
mod sentences;
mod session;
mod speech;
mod wav;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use switchboard_core::run::ContextSource;
use switchboard_core::session::SessionHandle;
use switchboard_core::{MemorySession, Runner};

pub use activity::VoiceActivity;
pub use audio::{Audio, UnsupportedRate};
pub use event::{VoiceError, VoiceEvent, VoiceEventKind, VoiceStage};
pub use flite::Flite;
pub use playback::Playback;
pub use pocketsphinx::PocketSphinx;
pub use session::{SendError, VoiceHandle, VoiceSession};
pub use speech::{
    SpeechRequest, SpeechToText, SpeechToTextHandle, TextToSpeech, TextToSpeechHandle,
};
pub use wav::{WavError, WavReader, WavWriter};

use driver::Driver;

/// The policy for the user's speech while an answer is prepared, spoken and played.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum BargeIn {
    /// It interrupts the answer. Needs a microphone that does not hear the answer.
    #[default]
    Interrupt,
    /// It waits: input is not taken before the answer has ended. For files.
    Wait,
    /// It is ignored. For loudspeakers beside the microphone.
    Ignore,
}

/// The end of the user's turn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TurnEnd {
    /// Silence after speech; see [`VoiceActivity`].
    #[default]
    Silence,
    /// [`VoiceHandle::end_turn`]: push to talk. All audio before it is the turn.
    Manual,
}

/// The settings of a session.
pub(crate) struct Settings {
    pub(crate) speech_to_text: SpeechToTextHandle,
    pub(crate) text_to_speech: TextToSpeechHandle,
    pub(crate) activity: VoiceActivity,
    pub(crate) turn_end: TurnEnd,
    pub(crate) barge_in: BargeIn,
    pub(crate) playback: Playback,
    pub(crate) voices: BTreeMap<Arc<str>, Arc<str>>,
    pub(crate) output_rate: u32,
    pub(crate) max_lead: Duration,
    pub(crate) transcription_timeout: Duration,
    pub(crate) speech_timeout: Duration,
    pub(crate) failure_words: Option<Arc<str>>,
    pub(crate) pronounce: Option<Box<Pronounce>>,
}

/// Makes the words that are spoken of a sentence.
type Pronounce = dyn Fn(&str) -> Option<String> + Send + Sync;

/// Speech to text, a text run, and text to speech; see the [module](self).
#[must_use]
pub struct VoicePipeline<C = ()> {
    runner: Runner<C, Arc<C>>,
    settings: Settings,
}

impl<C: Send + Sync + 'static> VoicePipeline<C> {
    /// A pipeline that answers with this runner. A runner without a session gets one in memory for each
    /// voice session.
    pub fn new<S: ContextSource<C>>(
        runner: Runner<C, S>,
        speech_to_text: impl SpeechToText,
        text_to_speech: impl TextToSpeech,
    ) -> Self {
        Self {
            runner: runner.with_shared_context(),
            settings: Settings {
                speech_to_text: SpeechToTextHandle::new(speech_to_text),
                text_to_speech: TextToSpeechHandle::new(text_to_speech),
                activity: VoiceActivity::default(),
                turn_end: TurnEnd::default(),
                barge_in: BargeIn::default(),
                playback: Playback::default(),
                voices: BTreeMap::new(),
                output_rate: 24_000,
                max_lead: Duration::from_secs(10),
                transcription_timeout: Duration::from_secs(30),
                speech_timeout: Duration::from_secs(30),
                failure_words: None,
                pronounce: None,
            },
        }
    }

    /// Sets when the user's turn ends; by default with silence.
    pub fn turn_end(mut self, turn_end: TurnEnd) -> Self {
        self.settings.turn_end = turn_end;
        self
    }

    /// Sets how speech is told from silence.
    pub fn voice_activity(mut self, activity: VoiceActivity) -> Self {
        self.settings.activity = activity;
        self
    }

    /// Sets what the user's speech does while an answer is under way; by default it interrupts.
    pub fn barge_in(mut self, policy: BargeIn) -> Self {
        self.settings.barge_in = policy;
        self
    }

    /// Sets how the pipeline knows what was played; by default by the clock.
    pub fn playback(mut self, playback: Playback) -> Self {
        self.settings.playback = playback;
        self
    }

    /// Sets the voice of an agent.
    pub fn voice(mut self, agent: impl Into<Arc<str>>, voice: impl Into<Arc<str>>) -> Self {
        self.settings.voices.insert(agent.into(), voice.into());
        self
    }

    /// Sets the rate of the answers' audio; 24,000 samples per second by default.
    ///
    /// # Errors
    /// If the rate is not supported.
    pub fn output_rate(mut self, rate: u32) -> Result<Self, UnsupportedRate> {
        if !audio::RATES.contains(&rate) {
            return Err(UnsupportedRate(rate));
        }
        self.settings.output_rate = rate;
        Ok(self)
    }

    /// Sets the audio that is made ahead of what is played; 10 seconds by default. A sentence more may come.
    pub fn max_lead(mut self, lead: Duration) -> Self {
        self.settings.max_lead = lead;
        self
    }

    /// Sets the time within which speech must be written down; 30 seconds by default.
    pub fn transcription_timeout(mut self, timeout: Duration) -> Self {
        self.settings.transcription_timeout = timeout;
        self
    }

    /// Sets the longest wait for the next audio of a sentence; 30 seconds by default.
    pub fn speech_timeout(mut self, timeout: Duration) -> Self {
        self.settings.speech_timeout = timeout;
        self
    }

    /// Sets words that are spoken when a run fails, so that the user does not hear silence. The conversation
    /// does not keep them.
    pub fn failure_words(mut self, words: impl Into<Arc<str>>) -> Self {
        self.settings.failure_words = Some(words.into());
        self
    }

    /// Sets a function that makes the words that are spoken of a sentence, such as to spell out an abbreviation.
    /// A sentence of which it makes `None` is not spoken. It gets sentences without the marks of Markdown.
    pub fn pronounce(
        mut self,
        words: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Self {
        self.settings.pronounce = Some(Box::new(words));
        self
    }

    /// Opens a session, and the handle that gives it input.
    pub fn open(self) -> (VoiceHandle, VoiceSession) {
        let session = self.runner.config().session.clone();
        let session = session.unwrap_or_else(|| SessionHandle::new(MemorySession::new()));
        let runner = self.runner.session(&session);
        let (handle, inputs) = session::inputs();
        let driver = Driver::new(runner, session, Arc::new(self.settings), inputs);
        let events = stream::unfold(Box::new(driver), |mut driver| async move {
            let event = driver.next().await?;
            Some((event, driver))
        });
        (handle, VoiceSession::new(events))
    }
}

impl<C> fmt::Debug for VoicePipeline<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VoicePipeline")
            .field("speech_to_text", &self.settings.speech_to_text)
            .field("text_to_speech", &self.settings.text_to_speech)
            .finish_non_exhaustive()
    }
}
