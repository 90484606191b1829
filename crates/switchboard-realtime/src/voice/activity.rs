//! Voice activity: where speech begins and ends.

use std::collections::VecDeque;
use std::time::Duration;

use earshot::Detector;

use super::audio::{duration_of, samples_in};

/// The sample rate of the detector.
pub(crate) const RATE: u32 = 16_000;

/// The samples of a frame, 16 milliseconds.
const FRAME: usize = 256;

/// The settings of voice activity detection, which decides when the user speaks and when a turn has ended.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub struct VoiceActivity {
    /// The score from which a frame is speech, from 0 to 1.
    pub threshold: f32,
    /// The speech that begins a turn. Shorter sounds are noise.
    pub min_speech: Duration,
    /// The silence that ends a turn.
    pub silence: Duration,
    /// The audio before the speech that belongs to the turn.
    pub prefix: Duration,
    /// The longest turn. Longer speech is taken in parts.
    pub max_speech: Duration,
}

impl Default for VoiceActivity {
    fn default() -> Self {
        Self {
            threshold: 0.5,
            min_speech: Duration::from_millis(130),
            silence: Duration::from_millis(600),
            prefix: Duration::from_millis(300),
            max_speech: Duration::from_secs(60),
        }
    }
}

/// A change that the detector has found. Times are those in the audio since its beginning.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Activity {
    /// Speech began.
    Started { at: Duration },
    /// Speech ended. The samples are those of the turn.
    Stopped { at: Duration, samples: Vec<i16> },
}

/// Finds speech in audio of 16 kHz.
pub(crate) struct SpeechDetector {
    detector: Detector,
    settings: VoiceActivity,
    /// Samples that do not fill a frame yet.
    frame: Vec<i16>,
    /// The latest samples while nobody speaks.
    before: VecDeque<i16>,
    /// The turn so far, while somebody speaks.
    speech: Option<Vec<i16>>,
    /// The frames of speech that are not a turn yet, less those of silence between them.
    voiced: usize,
    /// The frames of silence at the end of the turn.
    silent: usize,
    /// The number of samples so far.
    position: usize,
}

impl SpeechDetector {
    pub(crate) fn new(settings: VoiceActivity) -> Self {
        Self {
            detector: Detector::default(),
            settings,
            frame: Vec::with_capacity(FRAME),
            before: VecDeque::new(),
            speech: None,
            voiced: 0,
            silent: 0,
            position: 0,
        }
    }

    /// Returns `true` while somebody speaks.
    pub(crate) fn is_speaking(&self) -> bool {
        self.speech.is_some()
    }

    /// Takes the next samples.
    pub(crate) fn push(&mut self, mut samples: &[i16]) -> Vec<Activity> {
        let mut found = Vec::new();
        while !samples.is_empty() {
            let (now, later) = samples.split_at(samples.len().min(FRAME - self.frame.len()));
            self.frame.extend_from_slice(now);
            samples = later;
            if self.frame.len() == FRAME {
                found.extend(self.take_frame());
                self.frame.clear();
            }
        }
        found
    }

    /// Ends a turn that is open, at the end of the audio.
    pub(crate) fn finish(&mut self) -> Option<Activity> {
        let mut samples = self.speech.take()?;
        samples.append(&mut self.frame);
        Some(self.stopped(samples))
    }

    /// Forgets what was heard, as after audio that was left out.
    pub(crate) fn reset(&mut self) {
        self.detector = Detector::default();
        self.frame.clear();
        self.before.clear();
        self.speech = None;
        self.voiced = 0;
        self.silent = 0;
    }

    fn take_frame(&mut self) -> Option<Activity> {
        let is_voice = self.detector.predict_i16(&self.frame) >= self.settings.threshold;
        self.position += FRAME;
        let Some(speech) = &mut self.speech else {
            return self.wait_for_speech(is_voice);
        };
        speech.extend_from_slice(&self.frame);
        self.silent = if is_voice { 0 } else { self.silent + 1 };
        let is_over = self.silent >= frames_in(self.settings.silence)
            || speech.len() >= samples_in(self.settings.max_speech, RATE);
        if !is_over {
            return None;
        }
        let samples = self.speech.take()?;
        Some(self.stopped(samples))
    }

    fn wait_for_speech(&mut self, is_voice: bool) -> Option<Activity> {
        self.before.extend(&self.frame);
        let needed = frames_in(self.settings.min_speech);
        self.voiced = if is_voice {
            self.voiced + 1
        } else {
            self.voiced.saturating_sub(1)
        };
        let kept = samples_in(self.settings.prefix, RATE) + self.voiced.max(needed) * FRAME;
        let surplus = self.before.len().saturating_sub(kept);
        self.before.drain(..surplus);
        if self.voiced < needed {
            return None;
        }
        let at = self.position.saturating_sub(self.voiced * FRAME);
        self.voiced = 0;
        self.silent = 0;
        self.speech = Some(self.before.drain(..).collect());
        Some(Activity::Started {
            at: duration_of(at, RATE),
        })
    }

    fn stopped(&mut self, samples: Vec<i16>) -> Activity {
        let at = self.position.saturating_sub(self.silent * FRAME);
        self.silent = 0;
        Activity::Stopped {
            at: duration_of(at, RATE),
            samples,
        }
    }
}

/// The number of frames of this length, at least one.
fn frames_in(length: Duration) -> usize {
    (samples_in(length, RATE) / FRAME).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sound like a vowel: the harmonics of a low voice, louder and softer like syllables.
    fn vowel(seconds: f64) -> Vec<i16> {
        let rate = f64::from(RATE);
        let sample = |n: usize| {
            let time = n as f64 / rate;
            let tones: f64 = (1..20)
                .map(|harmonic| {
                    let frequency = 120.0 * f64::from(harmonic);
                    let formant = (-((frequency - 700.0) / 400.0).powi(2)).exp();
                    (formant + 0.1) * (std::f64::consts::TAU * frequency * time).sin()
                })
                .sum();
            let syllables = 0.6 + 0.4 * (std::f64::consts::TAU * 4.0 * time).sin();
            (tones * syllables * 2_000.0) as i16
        };
        (0..(seconds * rate) as usize).map(sample).collect()
    }

    fn silence(seconds: f64) -> Vec<i16> {
        vec![0; (seconds * f64::from(RATE)) as usize]
    }

    #[test]
    fn speech_between_silence_is_one_turn() {
        let mut detector = SpeechDetector::new(VoiceActivity::default());
        let audio = [silence(1.0), vowel(1.0), silence(1.0)].concat();
        let mut found = Vec::new();
        for piece in audio.chunks(777) {
            found.extend(detector.push(piece));
        }
        let [
            Activity::Started { at: start },
            Activity::Stopped { at: end, samples },
        ] = &*found
        else {
            panic!("{} changes", found.len());
        };
        assert!((0.8..1.3).contains(&start.as_secs_f64()), "{start:?}");
        assert!((1.7..2.4).contains(&end.as_secs_f64()), "{end:?}");
        // With what came before it, and the silence that ended it.
        assert!(
            (20_000..40_000).contains(&samples.len()),
            "{}",
            samples.len()
        );
    }

    #[test]
    fn silence_is_no_speech() {
        let mut detector = SpeechDetector::new(VoiceActivity::default());
        assert_eq!(detector.push(&silence(60.0)), []);
        assert_eq!(detector.finish(), None);
        assert!(detector.before.len() < RATE as usize);
    }

    #[test]
    fn the_end_of_the_audio_ends_a_turn() {
        let mut detector = SpeechDetector::new(VoiceActivity::default());
        assert_eq!(detector.push(&vowel(1.0)).len(), 1);
        assert!(matches!(detector.finish(), Some(Activity::Stopped { .. })));
    }

    #[test]
    fn a_turn_that_is_too_long_is_divided() {
        let settings = VoiceActivity {
            max_speech: Duration::from_secs(2),
            ..VoiceActivity::default()
        };
        let mut detector = SpeechDetector::new(settings);
        let found = detector.push(&vowel(9.0));
        let lengths = found.iter().filter_map(|activity| match activity {
            Activity::Stopped { samples, .. } => Some(samples.len()),
            Activity::Started { .. } => None,
        });
        let lengths: Vec<usize> = lengths.collect();
        assert!(lengths.len() >= 3, "{lengths:?}");
        assert!(
            lengths
                .iter()
                .all(|length| *length <= 2 * RATE as usize + FRAME)
        );
    }
}
