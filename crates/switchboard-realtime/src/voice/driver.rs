//! Drives a voice session: takes input, writes it down, runs the agents, speaks.

mod speaking;
mod user_turn;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt as _, StreamExt as _};
use switchboard_core::callback::{BoxError, BoxFuture};
use switchboard_core::run::RunStatus;
use switchboard_core::session::SessionHandle;
use switchboard_core::{EventKind, Run, RunResult, Runner, StreamEvent};
use tokio::time::sleep_until;

use super::activity::SpeechDetector;
use super::answer::Answer;
use super::audio::Audio;
use super::event::{VoiceError, VoiceEvent, VoiceEventKind, VoiceStage};
use super::heard::{HeardOutcome, store_heard};
use super::resample::Resampler;
use super::session::{Command, Input, Inputs};
use super::{BargeIn, Settings};

/// The turns of the user that may wait to be written down; then no more input is taken.
const MAX_UTTERANCES: usize = 8;

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
}

/// The run, if calls of it wait for decisions.
fn waiting_run<C>(result: &RunResult<C>) -> Option<Box<Run>> {
    let waits = result.status() == RunStatus::Interrupted;
    waits.then(|| Box::new(result.run().clone()))
}

fn took_too_long(name: &str, limit: Duration) -> BoxError {
    format!("{name} took more than {} seconds", limit.as_secs_f64()).into()
}
