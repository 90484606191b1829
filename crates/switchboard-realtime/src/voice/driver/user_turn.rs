//! The user's turn: its audio, where it ends, and its words.

use std::time::Duration;

use switchboard_core::callback::BoxError;
use tokio::time::timeout;

use super::super::activity::{Activity, RATE};
use super::super::audio::{Audio, duration_of, samples_in};
use super::super::event::{VoiceEventKind, VoiceStage};
use super::super::resample::Resampler;
use super::super::speech::SpeechToText as _;
use super::super::{BargeIn, TurnEnd};
use super::{Driver, Transcribing, took_too_long};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Takes audio of the user.
    pub(super) fn hear(&mut self, audio: &Audio) {
        if self.settings.barge_in == BargeIn::Ignore && self.is_busy() {
            self.detector.reset();
            return;
        }
        let samples = match self.resample(audio) {
            Ok(samples) => samples,
            Err(error) => return self.fail(VoiceStage::Input, error),
        };
        match self.settings.turn_end {
            TurnEnd::Silence => {
                for activity in self.detector.push(&samples) {
                    self.take_activity(activity);
                }
            }
            TurnEnd::Manual => {
                if self.held.is_empty() && !samples.is_empty() {
                    self.interrupt();
                }
                let room = samples_in(self.settings.activity.max_speech, RATE) - self.held.len();
                self.held.extend(samples.iter().take(room));
                if samples.len() >= room {
                    self.end_turn();
                }
            }
        }
    }

    pub(super) fn resample(&mut self, audio: &Audio) -> Result<Vec<i16>, BoxError> {
        if self
            .resampler
            .as_ref()
            .is_none_or(|(rate, _)| *rate != audio.rate())
        {
            self.resampler = Some((audio.rate(), Resampler::new(audio.rate(), RATE)?));
        }
        let resampler = self.resampler.as_mut();
        Ok(resampler.map_or_else(Vec::new, |(_, resampler)| resampler.push(audio.samples())))
    }

    pub(super) fn take_activity(&mut self, activity: Activity) {
        match activity {
            Activity::Started { at } => {
                self.emit(VoiceEventKind::SpeechStarted { at });
                self.interrupt();
            }
            Activity::Stopped { at, samples } => {
                self.emit(VoiceEventKind::SpeechStopped { at });
                self.utterances.push_back(samples);
            }
        }
    }

    /// Ends the turn of the user that is open.
    pub(super) fn end_turn(&mut self) {
        if let Some((_, resampler)) = &mut self.resampler {
            let rest = resampler.finish();
            self.resampler = None;
            match self.settings.turn_end {
                TurnEnd::Silence => {
                    for activity in self.detector.push(&rest) {
                        self.take_activity(activity);
                    }
                }
                TurnEnd::Manual => self.held.extend(rest),
            }
        }
        if let Some(activity) = self.detector.finish() {
            self.take_activity(activity);
        }
        if !self.held.is_empty() {
            self.utterances.push_back(std::mem::take(&mut self.held));
        }
    }

    pub(super) fn begin_transcription(&mut self) {
        if self.transcribing.is_some() {
            return;
        }
        let Some(samples) = self.utterances.pop_front() else {
            return;
        };
        let speech = duration_of(samples.len(), RATE);
        let settings = self.settings.clone();
        let text = async move {
            let hears = &settings.speech_to_text;
            let audio = Audio::new(RATE, samples).resampled(hears.rate())?;
            let limit = settings.transcription_timeout;
            match timeout(limit, hears.transcribe(audio)).await {
                Ok(text) => text,
                Err(_) => Err(took_too_long(hears.name(), limit)),
            }
        };
        self.transcribing = Some(Transcribing {
            text: Box::pin(text),
            speech,
        });
    }

    pub(super) fn take_transcript(&mut self, text: Result<String, BoxError>) {
        let speech = self
            .transcribing
            .take()
            .map_or(Duration::ZERO, |it| it.speech);
        match text {
            Ok(text) => {
                let text = text.trim().to_owned();
                if !text.is_empty() {
                    self.unanswered.push(text.clone());
                }
                self.emit(VoiceEventKind::Transcript { text, speech });
            }
            Err(error) => self.fail(VoiceStage::Transcription, error),
        }
    }
}
