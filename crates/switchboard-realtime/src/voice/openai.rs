//! OpenAI's audio endpoints, and those of compatible servers.

use futures_core::Stream;
use futures_util::StreamExt as _;
use switchboard_core::callback::BoxError;
use switchboard_models::{SpeechModel, TranscriptionModel};

use super::audio::Audio;
use super::speech::{SpeechRequest, SpeechToText, TextToSpeech};

impl SpeechToText for TranscriptionModel {
    async fn transcribe(&self, speech: Audio) -> Result<String, BoxError> {
        let wav = speech.to_wav()?;
        Ok(Self::transcribe(self, &wav).await?)
    }

    fn name(&self) -> &str {
        self.name()
    }
}

impl TextToSpeech for SpeechModel {
    fn speak(&self, request: SpeechRequest) -> impl Stream<Item = Result<Audio, BoxError>> + Send {
        let bytes = Self::speak(self, &request.text, request.voice.as_deref());
        // The first byte of a sample that is divided between two pieces.
        let mut divided = None;
        bytes.map(move |piece| {
            let mut pcm: Vec<u8> = divided.take().into_iter().collect();
            pcm.extend_from_slice(&piece?);
            if pcm.len() % 2 == 1 {
                divided = pcm.pop();
            }
            Ok(Audio::from_pcm(Self::SAMPLE_RATE, &pcm))
        })
    }

    fn name(&self) -> &str {
        self.name()
    }
}
