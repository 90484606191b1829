//! Speech to text and text to speech from a script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_core::Stream;
use futures_util::stream;
use switchboard_core::callback::BoxError;

use crate::voice::{Audio, SpeechRequest, SpeechToText, TextToSpeech};

/// Audio that voice activity detection takes for speech: a second of a vowel, and a second of silence.
pub fn speech(rate: u32) -> Audio {
    let sample = |n: u32| {
        let time = f64::from(n) / f64::from(rate);
        let turn = |frequency: f64| (std::f64::consts::TAU * frequency * time).sin();
        let vowel: f64 = (1..20)
            .map(|harmonic| {
                let frequency = 120.0 * f64::from(harmonic);
                let loudness = (-((frequency - 700.0) / 400.0).powi(2)).exp() + 0.1;
                loudness * turn(frequency)
            })
            .sum();
        (vowel * (0.6 + 0.4 * turn(4.0)) * 2_000.0) as i16
    };
    let mut samples: Vec<i16> = (0..rate).map(sample).collect();
    samples.resize(2 * rate as usize, 0);
    Audio::new(rate, samples)
}

/// Speech to text from a script, one answer per turn of the user; clones share it. A turn after the last answer
/// fails.
///
/// ```
/// use switchboard_realtime::testing::{ScriptedSpeechToText, speech};
/// use switchboard_realtime::voice::SpeechToText;
///
/// # futures_util::FutureExt::now_or_never(async {
/// let hears = ScriptedSpeechToText::new(["my bill is wrong"]);
/// assert_eq!(hears.transcribe(speech(16_000)).await?, "my bill is wrong");
/// assert_eq!(hears.speech()[0].rate(), 16_000);
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct ScriptedSpeechToText(Arc<Mutex<Heard>>);

#[derive(Debug, Default)]
struct Heard {
    answers: VecDeque<(Duration, Result<String, String>)>,
    speech: Vec<Audio>,
    rate: Option<u32>,
}

impl ScriptedSpeechToText {
    /// Answers with these texts.
    pub fn new<T: Into<String>>(texts: impl IntoIterator<Item = T>) -> Self {
        let hears = Self::default();
        let answers = texts
            .into_iter()
            .map(|text| (Duration::ZERO, Ok(text.into())));
        lock(&hears.0).answers.extend(answers);
        hears
    }

    /// Adds an answer.
    pub fn then(self, text: impl Into<String>) -> Self {
        self.add(Duration::ZERO, Ok(text.into()))
    }

    /// Adds an answer that takes this long.
    pub fn then_after(self, delay: Duration, text: impl Into<String>) -> Self {
        self.add(delay, Ok(text.into()))
    }

    /// Adds a failure.
    pub fn fail(self, message: impl Into<String>) -> Self {
        self.add(Duration::ZERO, Err(message.into()))
    }

    /// Sets the rate that it asks for.
    pub fn rate(self, rate: u32) -> Self {
        lock(&self.0).rate = Some(rate);
        self
    }

    /// The speech that it was given.
    pub fn speech(&self) -> Vec<Audio> {
        lock(&self.0).speech.clone()
    }

    fn add(self, delay: Duration, answer: Result<String, String>) -> Self {
        lock(&self.0).answers.push_back((delay, answer));
        self
    }
}

impl SpeechToText for ScriptedSpeechToText {
    async fn transcribe(&self, speech: Audio) -> Result<String, BoxError> {
        let answer = {
            let mut heard = lock(&self.0);
            heard.speech.push(speech);
            heard.answers.pop_front()
        };
        let (delay, answer) = answer.ok_or("the script of speech to text has ended")?;
        if !delay.is_zero() {
            tokio::time::sleep(delay).await;
        }
        Ok(answer?)
    }

    fn rate(&self) -> u32 {
        lock(&self.0).rate.unwrap_or(16_000)
    }

    fn name(&self) -> &str {
        "scripted speech to text"
    }
}

/// Text to speech that makes a soft tone of each text, 60 milliseconds a character unless set, and keeps the
/// requests; clones share them.
#[derive(Debug, Clone)]
#[must_use]
pub struct ScriptedTextToSpeech {
    requests: Arc<Mutex<Vec<SpeechRequest>>>,
    rate: u32,
    per_character: Duration,
    /// The pause before each piece of audio.
    delay: Duration,
    /// The request that fails, counted from 0, and its message.
    failure: Option<(usize, String)>,
}

impl Default for ScriptedTextToSpeech {
    fn default() -> Self {
        Self {
            requests: Arc::default(),
            rate: 24_000,
            per_character: Duration::from_millis(60),
            delay: Duration::ZERO,
            failure: None,
        }
    }
}

impl ScriptedTextToSpeech {
    /// Speech at 24,000 samples per second.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the rate of the audio.
    pub fn rate(mut self, rate: u32) -> Self {
        self.rate = rate;
        self
    }

    /// Sets the length of the audio of a character.
    pub fn per_character(mut self, length: Duration) -> Self {
        self.per_character = length;
        self
    }

    /// Sets a pause before each of the two pieces of a text's audio.
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Lets the request with this number fail after its first piece, counted from 0.
    pub fn fail_at(mut self, request: usize, message: impl Into<String>) -> Self {
        self.failure = Some((request, message.into()));
        self
    }

    /// The requests so far.
    pub fn requests(&self) -> Vec<SpeechRequest> {
        lock(&self.requests).clone()
    }
}

impl TextToSpeech for ScriptedTextToSpeech {
    fn speak(&self, request: SpeechRequest) -> impl Stream<Item = Result<Audio, BoxError>> + Send {
        let characters = u32::try_from(request.text.chars().count()).unwrap_or(u32::MAX);
        let number = {
            let mut requests = lock(&self.requests);
            requests.push(request);
            requests.len() - 1
        };
        let failure = self.failure.as_ref().filter(|(at, _)| *at == number);
        let failure = failure.map(|(_, message)| message.clone());
        let half = self.per_character * characters / 2;
        let tone = Audio::new(
            self.rate,
            vec![300; Audio::silence(self.rate, half).samples().len()],
        );
        let pieces = [Ok(tone.clone()), failure.map_or(Ok(tone), Err)];
        let delay = self.delay;
        stream::unfold(pieces.into_iter(), move |mut pieces| async move {
            let piece = pieces.next()?;
            if !delay.is_zero() {
                tokio::time::sleep(delay).await;
            }
            Some((piece.map_err(BoxError::from), pieces))
        })
    }

    fn name(&self) -> &str {
        "scripted text to speech"
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while the lock is held.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
