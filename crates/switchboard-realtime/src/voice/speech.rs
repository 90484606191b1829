//! Speech to text, and text to speech.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_core::Stream;
use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;
use switchboard_core::callback::{BoxError, BoxFuture};

use super::audio::Audio;

/// Writes down speech.
///
/// ```
/// use switchboard_core::callback::BoxError;
/// use switchboard_realtime::voice::{Audio, SpeechToText};
///
/// struct Seconds;
///
/// impl SpeechToText for Seconds {
///     async fn transcribe(&self, speech: Audio) -> Result<String, BoxError> {
///         Ok(format!("{:.0} seconds", speech.duration().as_secs_f64()))
///     }
/// }
/// ```
pub trait SpeechToText: Send + Sync + 'static {
    /// Writes down what is said in one turn of the user. An empty text is no turn.
    fn transcribe(&self, speech: Audio) -> impl Future<Output = Result<String, BoxError>> + Send;

    /// The sample rate that it wants; 16,000 unless it says something else.
    fn rate(&self) -> u32 {
        16_000
    }

    /// The name, for errors.
    fn name(&self) -> &str {
        "speech to text"
    }
}

/// Speaks texts.
///
/// ```
/// use futures_util::{Stream, stream};
/// use switchboard_core::callback::BoxError;
/// use switchboard_realtime::voice::{Audio, SpeechRequest, TextToSpeech};
///
/// struct Hum;
///
/// impl TextToSpeech for Hum {
///     fn speak(&self, request: SpeechRequest) -> impl Stream<Item = Result<Audio, BoxError>> + Send {
///         let samples = vec![0; request.text.len() * 100];
///         stream::iter([Ok(Audio::new(16_000, samples))])
///     }
/// }
/// ```
pub trait TextToSpeech: Send + Sync + 'static {
    /// Speaks a text: audio in pieces of one rate, in order. Dropping the stream ends the work.
    fn speak(&self, request: SpeechRequest) -> impl Stream<Item = Result<Audio, BoxError>> + Send;

    /// The name, for errors.
    fn name(&self) -> &str {
        "text to speech"
    }
}

/// A text to speak: a sentence, or a part of one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpeechRequest {
    /// The text.
    pub text: String,
    /// The agent whose words they are.
    pub agent: Arc<str>,
    /// The voice; `None` is that of the implementation.
    pub voice: Option<Arc<str>>,
}

impl SpeechRequest {
    /// A request without a voice.
    pub fn new(text: impl Into<String>, agent: impl Into<Arc<str>>) -> Self {
        Self {
            text: text.into(),
            agent: agent.into(),
            voice: None,
        }
    }
}

/// A handle to speech to text; clones share it.
#[derive(Clone)]
pub struct SpeechToTextHandle(Arc<dyn DynSpeechToText>);

impl SpeechToTextHandle {
    /// Creates a handle.
    pub fn new(speech_to_text: impl SpeechToText) -> Self {
        Self(Arc::new(speech_to_text))
    }
}

impl SpeechToText for SpeechToTextHandle {
    async fn transcribe(&self, speech: Audio) -> Result<String, BoxError> {
        self.0.transcribe_dyn(speech).await
    }

    fn rate(&self) -> u32 {
        self.0.rate_dyn()
    }

    fn name(&self) -> &str {
        self.0.name_dyn()
    }
}

impl fmt::Debug for SpeechToTextHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SpeechToTextHandle({})", self.name())
    }
}

/// A handle to text to speech; clones share it.
#[derive(Clone)]
pub struct TextToSpeechHandle(Arc<dyn DynTextToSpeech>);

impl TextToSpeechHandle {
    /// Creates a handle.
    pub fn new(text_to_speech: impl TextToSpeech) -> Self {
        Self(Arc::new(text_to_speech))
    }

    /// The spoken text, as a stream that owns what it needs.
    pub(crate) fn speech(
        &self,
        request: SpeechRequest,
    ) -> BoxStream<'static, Result<Audio, BoxError>> {
        self.0.clone().speak_dyn(request)
    }
}

impl TextToSpeech for TextToSpeechHandle {
    fn speak(&self, request: SpeechRequest) -> impl Stream<Item = Result<Audio, BoxError>> + Send {
        self.speech(request)
    }

    fn name(&self) -> &str {
        self.0.name_dyn()
    }
}

impl fmt::Debug for TextToSpeechHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TextToSpeechHandle({})", self.name())
    }
}

/// [`SpeechToText`] as a trait object.
trait DynSpeechToText: Send + Sync {
    fn transcribe_dyn(&self, speech: Audio) -> BoxFuture<'_, Result<String, BoxError>>;
    fn rate_dyn(&self) -> u32;
    fn name_dyn(&self) -> &str;
}

impl<S: SpeechToText> DynSpeechToText for S {
    fn transcribe_dyn(&self, speech: Audio) -> BoxFuture<'_, Result<String, BoxError>> {
        Box::pin(self.transcribe(speech))
    }

    fn rate_dyn(&self) -> u32 {
        self.rate()
    }

    fn name_dyn(&self) -> &str {
        self.name()
    }
}

/// [`TextToSpeech`] as a trait object.
trait DynTextToSpeech: Send + Sync {
    fn speak_dyn(
        self: Arc<Self>,
        request: SpeechRequest,
    ) -> BoxStream<'static, Result<Audio, BoxError>>;
    fn name_dyn(&self) -> &str;
}

impl<T: TextToSpeech> DynTextToSpeech for T {
    fn speak_dyn(
        self: Arc<Self>,
        request: SpeechRequest,
    ) -> BoxStream<'static, Result<Audio, BoxError>> {
        // A stream that borrows from the handle is driven by a future that owns it.
        let (sender, receiver) = futures_channel::mpsc::channel(1);
        let work = async move {
            let mut sender = sender;
            let mut audio = std::pin::pin!(self.speak(request));
            while let Some(piece) = audio.next().await {
                if futures_util::SinkExt::send(&mut sender, piece)
                    .await
                    .is_err()
                {
                    return;
                }
            }
        };
        let work = futures_util::stream::once(work).filter_map(|()| std::future::ready(None));
        futures_util::stream::select(receiver, work).boxed()
    }

    fn name_dyn(&self) -> &str {
        self.name()
    }
}
