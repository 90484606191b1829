//! The speech of an answer, sentence by sentence.

use std::time::Duration;

use switchboard_core::callback::BoxError;
use tokio::time::Instant;

use super::super::answer::Speaking;
use super::super::audio::Audio;
use super::super::event::{VoiceEvent, VoiceEventKind, VoiceStage};
use super::super::resample::Resampler;
use super::super::sentences::spoken_words;
use super::super::speech::{SpeechRequest, TextToSpeech as _};
use super::{Driver, took_too_long};

/// The longest audio of one sentence.
const MAX_SENTENCE: Duration = Duration::from_secs(180);

impl<C: Send + Sync + 'static> Driver<C> {
    pub(super) fn begin_sentence(&mut self) {
        let Some(answer) = &mut self.answer else {
            return;
        };
        while let Some(index) = answer.next_segment(self.settings.max_lead) {
            let segment = &mut answer.segments[index];
            let words =
                spoken_words(&segment.text).and_then(|words| match &self.settings.pronounce {
                    Some(pronounce) => pronounce(&words),
                    None => Some(words),
                });
            let Some(text) = words else {
                segment.is_complete = true;
                continue;
            };
            let agent = segment.agent.clone();
            let request = SpeechRequest {
                text: text.clone(),
                voice: self.settings.voices.get(&*agent).cloned(),
                agent: agent.clone(),
            };
            answer.speaking = Some(Speaking {
                index,
                audio: self.settings.text_to_speech.speech(request),
                deadline: Instant::now() + self.settings.speech_timeout,
                resampler: None,
                is_ended: false,
            });
            let kind = VoiceEventKind::Sentence { text };
            self.ready.push_back(VoiceEvent { kind, agent });
            return;
        }
    }

    pub(super) fn take_speech(&mut self, audio: Option<Result<Audio, BoxError>>) {
        let rate = self.settings.output_rate;
        let Some(answer) = &mut self.answer else {
            return;
        };
        let Some(speaking) = &mut answer.speaking else {
            return;
        };
        let samples = match audio {
            Some(Ok(audio)) => {
                speaking.deadline = Instant::now() + self.settings.speech_timeout;
                speaking.resample(&audio, rate)
            }
            Some(Err(error)) => Err(error),
            None => Ok(speaking.finish_resampling()),
        };
        let is_end = speaking.is_ended;
        let index = speaking.index;
        match samples {
            Ok(samples) => {
                if !samples.is_empty() {
                    let audio = Audio::new(rate, samples);
                    let length = audio.duration();
                    answer.playback.add(length, Instant::now());
                    let segment = &mut answer.segments[index];
                    segment.length += length;
                    let is_too_long = segment.length > MAX_SENTENCE;
                    let agent = segment.agent.clone();
                    let kind = VoiceEventKind::Audio { audio };
                    self.ready.push_back(VoiceEvent { kind, agent });
                    if is_too_long {
                        let message = format!(
                            "a sentence has more than {} seconds of audio",
                            MAX_SENTENCE.as_secs()
                        );
                        return self.end_speech(message.into());
                    }
                }
                if is_end {
                    answer.end_sentence();
                }
            }
            Err(error) => self.end_speech(error),
        }
    }

    /// Speaks no more of the answer, after a failure.
    pub(super) fn end_speech(&mut self, error: BoxError) {
        if let Some(answer) = &mut self.answer {
            answer.mute();
        }
        self.fail(VoiceStage::Speech, error);
    }

    /// Ends speech that has not come in time.
    pub(super) fn check_deadline(&mut self) {
        let speaking = self
            .answer
            .as_ref()
            .and_then(|answer| answer.speaking.as_ref());
        if speaking.is_some_and(|speaking| speaking.deadline <= Instant::now()) {
            let name = self.settings.text_to_speech.name();
            let error = took_too_long(name, self.settings.speech_timeout);
            self.end_speech(error);
        }
    }

    /// Ends an answer that was spoken and played.
    pub(super) fn end_answer(&mut self) {
        let Some(answer) = &self.answer else {
            return;
        };
        let is_played = answer.playback.lead(Instant::now()).is_zero();
        if answer.interrupted_at.is_none() && answer.is_spoken() && is_played {
            self.answer = None;
            self.emit(VoiceEventKind::AnswerEnded);
        }
    }
}

impl Speaking {
    fn resample(&mut self, audio: &Audio, rate: u32) -> Result<Vec<i16>, BoxError> {
        let mut samples = Vec::new();
        if self
            .resampler
            .as_ref()
            .is_none_or(|(from, _)| *from != audio.rate())
        {
            if let Some((_, mut before)) = self.resampler.take() {
                samples = before.finish();
            }
            self.resampler = Some((audio.rate(), Resampler::new(audio.rate(), rate)?));
        }
        if let Some((_, resampler)) = &mut self.resampler {
            samples.extend(resampler.push(audio.samples()));
        }
        Ok(samples)
    }

    /// The last samples of the sentence.
    fn finish_resampling(&mut self) -> Vec<i16> {
        self.is_ended = true;
        let resampler = self.resampler.take();
        resampler.map_or_else(Vec::new, |(_, mut resampler)| resampler.finish())
    }
}
