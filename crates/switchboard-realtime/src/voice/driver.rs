//! Drives a voice session: takes input, writes it down, runs the agents, speaks.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use switchboard_core::callback::{BoxError, BoxFuture};
use switchboard_core::run::RunStatus;
use switchboard_core::session::SessionHandle;
use switchboard_core::{EventKind, Run, RunResult, Runner, StreamEvent};
use tokio::time::{Instant, sleep_until, timeout};

use super::activity::{Activity, RATE, SpeechDetector};
use super::answer::{Answer, Speaking};
use super::audio::{Audio, duration_of, samples_in};
use super::event::{VoiceError, VoiceEvent, VoiceEventKind, VoiceStage};
use super::heard::{HeardOutcome, store_heard};
use super::resample::Resampler;
use super::sentences::spoken_words;
use super::session::{Command, Input, Inputs};
use super::speech::{SpeechRequest, SpeechToText as _};
use super::{BargeIn, Settings, TurnEnd};

/// The turns of the user that may wait to be written down; then no more input is taken.
const MAX_UTTERANCES: usize = 8;

/// The longest audio of one sentence.
const MAX_SENTENCE: Duration = Duration::from_secs(180);

/// The state of a session.
pub(super) struct Driver<C> {
    runner: Runner<C, Arc<C>>,
    session: SessionHandle,
    settings: Arc<Settings>,
    inputs: Inputs,
    /// Set once no more input will come.
    is_closed: bool,
    /// Set once no more commands will come.
    has_no_commands: bool,
    detector: SpeechDetector,
    /// Converts the user's audio of this rate.
    resampler: Option<(u32, Resampler)>,
    /// The audio of the turn, where the application ends turns.
    held: Vec<i16>,
    /// The turns to write down.
    utterances: VecDeque<Vec<i16>>,
    transcribing: Option<Transcribing>,
    /// The words of the user that no run has got.
    unanswered: Vec<String>,
    /// A run to go on with.
    resumed: Option<Box<Run>>,
    answer: Option<Answer<C>>,
    agent: Arc<str>,
    ready: VecDeque<VoiceEvent>,
}

struct Transcribing {
    text: BoxFuture<'static, Result<String, BoxError>>,
    speech: Duration,
}

/// The reason to go on.
enum Wake {
    Input(Option<Input>),
    Command(Option<Command>),
    Transcript(Result<String, BoxError>),
    RunEvent(Option<Box<StreamEvent>>),
    Speech(Option<Result<Audio, BoxError>>),
    Stored(HeardOutcome),
    Time,
}

impl<C: Send + Sync + 'static> Driver<C> {
    pub(super) fn new(
        runner: Runner<C, Arc<C>>,
        session: SessionHandle,
        settings: Arc<Settings>,
        inputs: Inputs,
    ) -> Self {
        Self {
            agent: runner.agent().name().into(),
            detector: SpeechDetector::new(settings.activity),
            runner,
            session,
            settings,
            inputs,
            is_closed: false,
            has_no_commands: false,
            resampler: None,
            held: Vec::new(),
            utterances: VecDeque::new(),
            transcribing: None,
            unanswered: Vec::new(),
            resumed: None,
            answer: None,
            ready: VecDeque::new(),
        }
    }

    /// The next event; `None` at the end of the session.
    pub(super) async fn next(&mut self) -> Option<VoiceEvent> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            self.count_reports();
            self.begin_transcription();
            self.begin_answer();
            self.begin_sentence();
            self.end_answer();
            if !self.ready.is_empty() {
                continue;
            }
            if self.is_over() {
                return None;
            }
            let wake = self.wait().await;
            self.handle(wake).await;
        }
    }

    /// Returns `true` if nothing is left to do and nothing can come.
    fn is_over(&self) -> bool {
        // A run that waited may be resumed after the end of the input.
        self.is_closed && !self.is_busy() && self.inputs.commands.is_empty()
    }

    /// Returns `true` from the end of the user's turn to the end of the answer.
    fn is_busy(&self) -> bool {
        self.answer.is_some()
            || self.transcribing.is_some()
            || self.resumed.is_some()
            || !self.utterances.is_empty()
            || !self.unanswered.is_empty()
    }

    fn takes_input(&self) -> bool {
        let has_room = self.utterances.len() < MAX_UTTERANCES;
        let waits = self.settings.barge_in == BargeIn::Wait && self.is_busy();
        !self.is_closed && has_room && !waits
    }

    /// Waits for something to do.
    async fn wait(&mut self) -> Wake {
        let takes_input = self.takes_input();
        let takes_commands = !self.has_no_commands;
        let max_lead = self.settings.max_lead;
        let wake_time = self
            .answer
            .as_ref()
            .and_then(|answer| answer.wake_time(max_lead));
        let Inputs {
            input,
            commands,
            shared,
        } = &mut self.inputs;
        let (run, speaking, storing) = match &mut self.answer {
            Some(answer) => {
                let takes_text = answer.takes_text();
                let run = answer.run.as_mut().filter(|_| takes_text);
                (run, answer.speaking.as_mut(), answer.storing.as_mut())
            }
            None => (None, None, None),
        };
        let text = async {
            match &mut self.transcribing {
                Some(transcribing) => transcribing.text.as_mut().await,
                None => std::future::pending().await,
            }
        };
        let event = async {
            match run {
                Some(run) => run.next().await,
                None => std::future::pending().await,
            }
        };
        let speech = async {
            match speaking {
                Some(speaking) => speaking.audio.next().await,
                None => std::future::pending().await,
            }
        };
        let stored = async {
            match storing {
                Some(storing) => storing.await,
                None => std::future::pending().await,
            }
        };
        let time = async {
            match wake_time {
                Some(time) => sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            // First, so that an answer that never pauses can be stopped.
            command = commands.recv(), if takes_commands => Wake::Command(command),
            input = input.recv(), if takes_input => Wake::Input(input),
            text = text => Wake::Transcript(text),
            outcome = stored => Wake::Stored(outcome),
            audio = speech => Wake::Speech(audio),
            event = event => Wake::RunEvent(event.map(Box::new)),
            () = shared.changed() => Wake::Time,
            () = time => Wake::Time,
        }
    }

    async fn handle(&mut self, wake: Wake) {
        match wake {
            Wake::Input(Some(Input::Audio(audio))) => self.hear(&audio),
            Wake::Input(Some(Input::Text(text))) => {
                self.interrupt();
                self.unanswered.push(text);
            }
            Wake::Input(Some(Input::EndTurn)) => self.end_turn(),
            Wake::Input(Some(Input::Close) | None) => {
                self.end_turn();
                self.is_closed = true;
            }
            Wake::Command(Some(Command::Interrupt)) => self.interrupt(),
            Wake::Command(Some(Command::Resume(run))) => {
                self.interrupt();
                self.resumed = Some(run);
            }
            Wake::Command(None) => self.has_no_commands = true,
            Wake::Transcript(text) => self.take_transcript(text),
            Wake::RunEvent(Some(event)) => self.take_run_event(event),
            Wake::RunEvent(None) => self.end_run().await,
            Wake::Speech(audio) => self.take_speech(audio),
            Wake::Stored(outcome) => self.take_stored(outcome),
            Wake::Time => self.check_deadline(),
        }
    }

    fn emit(&mut self, kind: VoiceEventKind) {
        self.ready.push_back(VoiceEvent {
            kind,
            agent: self.agent.clone(),
        });
    }

    fn fail(&mut self, stage: VoiceStage, error: impl Into<BoxError>) {
        self.emit(VoiceEventKind::Error(VoiceError::new(stage, error)));
    }

    fn count_reports(&mut self) {
        let length = self.inputs.shared.take_dropped();
        if !length.is_zero() {
            self.emit(VoiceEventKind::AudioDropped { length });
        }
        let played = self.inputs.shared.take_played();
        if let Some(answer) = &mut self.answer {
            answer.playback.report(played);
        }
    }

    // The user.

    /// Takes audio of the user.
    fn hear(&mut self, audio: &Audio) {
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

    fn resample(&mut self, audio: &Audio) -> Result<Vec<i16>, BoxError> {
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

    fn take_activity(&mut self, activity: Activity) {
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
    fn end_turn(&mut self) {
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

    fn begin_transcription(&mut self) {
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

    fn take_transcript(&mut self, text: Result<String, BoxError>) {
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

    // The answer.

    fn begin_answer(&mut self) {
        // What is still being said or written down belongs to the same turn.
        let is_turn_over = self.answer.is_none()
            && self.transcribing.is_none()
            && self.utterances.is_empty()
            && !self.detector.is_speaking();
        if !is_turn_over {
            return;
        }
        let (input, run) = if let Some(run) = self.resumed.take() {
            match self.runner.resume_stream(*run) {
                Ok(stream) => (None, stream),
                Err(error) => return self.fail(VoiceStage::Run, error),
            }
        } else if self.unanswered.is_empty() {
            return;
        } else {
            let input = std::mem::take(&mut self.unanswered).join(" ");
            let run = self.runner.stream(&*input);
            (Some(input), run)
        };
        self.answer = Some(Answer::new(input, run, self.settings.playback));
    }

    fn take_run_event(&mut self, event: Box<StreamEvent>) {
        let Some(answer) = &mut self.answer else {
            return;
        };
        answer.take_event(&event);
        self.agent = event.agent.clone();
        let is_unheard =
            answer.interrupted_at.is_some() && matches!(event.kind, EventKind::TextDelta { .. });
        if !is_unheard {
            self.emit(VoiceEventKind::Run(event));
        }
    }

    /// Takes the result of the run.
    async fn end_run(&mut self) {
        let Some(answer) = &mut self.answer else {
            return;
        };
        let Some(run) = answer.run.take() else {
            return;
        };
        // It has ended, so this does not wait.
        let outcome = run.finish().await;
        if answer.interrupted_at.is_some() {
            answer.outcome = Some(outcome);
            self.store_heard();
            return;
        }
        match &outcome {
            Ok(result) => {
                let waiting = waiting_run(result);
                self.agent = result.last_agent().name().into();
                answer.outcome = Some(outcome);
                if let Some(run) = waiting {
                    self.emit(VoiceEventKind::ApprovalRequired(run));
                }
            }
            Err(_) => {
                if let Some(words) = &self.settings.failure_words {
                    answer.say(words, &self.agent);
                }
                if let Err(error) = outcome {
                    self.fail(VoiceStage::Run, error);
                }
            }
        }
    }

    /// Interrupts the answer, if there is one.
    fn interrupt(&mut self) {
        let Some(answer) = &mut self.answer else {
            return;
        };
        let Some((heard, played)) = answer.interrupt() else {
            return;
        };
        let has_ended = answer.run.is_none();
        self.emit(VoiceEventKind::Interrupted { heard, played });
        if has_ended {
            self.store_heard();
        }
    }

    /// Begins to store what was heard of an answer that was interrupted, once its run has ended.
    fn store_heard(&mut self) {
        let Some(answer) = &mut self.answer else {
            return;
        };
        let (Some(outcome), Some(played)) = (answer.outcome.take(), answer.interrupted_at) else {
            // The run has failed, which was told, or the words are the pipeline's own.
            self.answer = None;
            return;
        };
        let storing = store_heard(
            self.runner.clone(),
            self.session.clone(),
            outcome,
            answer.input.clone(),
            std::mem::take(&mut answer.segments),
            played,
        );
        answer.storing = Some(storing.boxed());
    }

    fn take_stored(&mut self, outcome: HeardOutcome) {
        let answer = self.answer.take();
        match outcome {
            HeardOutcome::Stored => {}
            HeardOutcome::Unstored => {
                let input = answer.and_then(|answer| answer.input);
                self.unanswered.splice(0..0, input);
            }
            HeardOutcome::RunFailed(error) => self.fail(VoiceStage::Run, error),
            HeardOutcome::SessionFailed(error) => self.fail(VoiceStage::Session, error),
        }
    }

    // Speech.

    fn begin_sentence(&mut self) {
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

    fn take_speech(&mut self, audio: Option<Result<Audio, BoxError>>) {
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
    fn end_speech(&mut self, error: BoxError) {
        if let Some(answer) = &mut self.answer {
            answer.mute();
        }
        self.fail(VoiceStage::Speech, error);
    }

    /// Ends speech that has not come in time.
    fn check_deadline(&mut self) {
        let speaking = self
            .answer
            .as_ref()
            .and_then(|answer| answer.speaking.as_ref());
        if speaking.is_some_and(|speaking| speaking.deadline <= Instant::now()) {
            let name = super::speech::TextToSpeech::name(&self.settings.text_to_speech);
            let error = took_too_long(name, self.settings.speech_timeout);
            self.end_speech(error);
        }
    }

    /// Ends an answer that was spoken and played.
    fn end_answer(&mut self) {
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

/// The run, if calls of it wait for decisions.
fn waiting_run<C>(result: &RunResult<C>) -> Option<Box<Run>> {
    let waits = result.status() == RunStatus::Interrupted;
    waits.then(|| Box::new(result.run().clone()))
}

fn took_too_long(name: &str, limit: Duration) -> BoxError {
    format!("{name} took more than {} seconds", limit.as_secs_f64()).into()
}
