//! One answer: the run that writes it, and its speech.

use std::time::Duration;

use futures_core::stream::BoxStream;
use serde_json::Value;
use switchboard_core::callback::{BoxError, BoxFuture};
use switchboard_core::stream::{EventKind, ItemEvent};
use switchboard_core::{Error, RunResult, RunStream, StreamEvent};
use tokio::time::Instant;

use super::audio::Audio;
use super::heard::HeardOutcome;
use super::playback::{AnswerPlayback, Playback, Segment, heard_text};
use super::resample::Resampler;
use super::sentences::SentenceSplitter;

/// The sentences that may wait to be spoken; then the run is not polled.
const MAX_WAITING: usize = 64;

/// An answer that is being written, spoken and played.
pub(super) struct Answer<C> {
    /// The words that it answers; `None` if a run is resumed.
    pub(super) input: Option<String>,
    /// The run; `None` once it has ended.
    pub(super) run: Option<RunStream<C>>,
    pub(super) outcome: Option<Result<RunResult<C>, Error>>,
    splitter: SentenceSplitter,
    pub(super) segments: Vec<Segment>,
    /// The index of the next segment to speak.
    next: usize,
    pub(super) speaking: Option<Speaking>,
    pub(super) playback: AnswerPlayback,
    /// Set if text of the current message has come in pieces.
    has_deltas: bool,
    /// Set if the run has sent any text.
    has_text: bool,
    running_tools: usize,
    /// Set if the rest is not spoken: the user has interrupted, or speech has failed.
    is_mute: bool,
    /// The audio that was played when the user interrupted.
    pub(super) interrupted_at: Option<Duration>,
    /// Stores what was heard, after an interruption.
    pub(super) storing: Option<BoxFuture<'static, HeardOutcome>>,
}

/// A sentence that is being spoken.
pub(super) struct Speaking {
    pub(super) index: usize,
    pub(super) audio: BoxStream<'static, Result<Audio, BoxError>>,
    /// The time by which the next audio must come.
    pub(super) deadline: Instant,
    /// Converts audio of this rate to that of the output.
    pub(super) resampler: Option<(u32, Resampler)>,
    /// Set once all of its audio is there.
    pub(super) is_ended: bool,
}

impl<C: Send + Sync + 'static> Answer<C> {
    pub(super) fn new(input: Option<String>, run: RunStream<C>, playback: Playback) -> Self {
        Self {
            input,
            run: Some(run),
            outcome: None,
            splitter: SentenceSplitter::default(),
            segments: Vec::new(),
            next: 0,
            speaking: None,
            playback: AnswerPlayback::new(playback, Instant::now()),
            has_deltas: false,
            has_text: false,
            running_tools: 0,
            is_mute: false,
            interrupted_at: None,
            storing: None,
        }
    }

    /// Takes the text and the tools of an event.
    pub(super) fn take_event(&mut self, event: &StreamEvent) {
        match &event.kind {
            EventKind::TextDelta { text, .. } => {
                self.has_deltas = true;
                self.add_text(text, event);
            }
            EventKind::Item {
                name: ItemEvent::MessageOutputCreated,
                text,
                ..
            } => {
                // A model that does not stream sends its message whole.
                if !std::mem::take(&mut self.has_deltas)
                    && let Some(text) = text
                {
                    self.add_text(text, event);
                }
                self.end_message(event);
            }
            EventKind::ToolStarted { .. } => self.running_tools += 1,
            EventKind::ToolEnded { .. } => {
                self.running_tools = self.running_tools.saturating_sub(1);
            }
            EventKind::RunFinished {
                output: Value::String(output),
                ..
            } if !self.has_text => {
                // The output of a tool is no message.
                self.add_text(output, event);
                self.end_message(event);
            }
            EventKind::TurnStarted { .. }
            | EventKind::RunFinished { .. }
            | EventKind::RunInterrupted { .. } => self.end_message(event),
            _ => {}
        }
    }

    fn add_text(&mut self, text: &str, event: &StreamEvent) {
        self.has_text = true;
        self.splitter.push(text);
        while let Some(sentence) = self.splitter.next() {
            self.add_segment(sentence, event);
        }
    }

    fn end_message(&mut self, event: &StreamEvent) {
        if let Some(rest) = self.splitter.flush() {
            self.add_segment(rest, event);
        }
    }

    fn add_segment(&mut self, text: String, event: &StreamEvent) {
        if !self.is_mute {
            self.segments.push(Segment {
                text,
                agent: event.agent.clone(),
                turn: event.turn,
                length: Duration::ZERO,
                is_complete: false,
            });
        }
    }

    /// Adds words that the pipeline itself says. No turn of the run has them.
    pub(super) fn say(&mut self, text: &str, agent: &str) {
        self.segments.push(Segment {
            text: text.to_owned(),
            agent: agent.into(),
            turn: 0,
            length: Duration::ZERO,
            is_complete: false,
        });
    }

    /// Returns `true` if the run may be polled.
    pub(super) fn takes_text(&self) -> bool {
        self.run.is_some() && self.segments.len() - self.next < MAX_WAITING
    }

    /// The index of the next segment, if it may be spoken now.
    pub(super) fn next_segment(&mut self, max_lead: Duration) -> Option<usize> {
        let is_free = self.speaking.is_none() && !self.is_mute && self.next < self.segments.len();
        if !is_free || self.playback.lead(Instant::now()) > max_lead {
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }

    /// Ends the speech of the current sentence.
    pub(super) fn end_sentence(&mut self) {
        if let Some(speaking) = self.speaking.take() {
            self.segments[speaking.index].is_complete = true;
        }
    }

    /// Speaks nothing more.
    pub(super) fn mute(&mut self) {
        self.is_mute = true;
        self.speaking = None;
        self.next = self.segments.len();
    }

    /// Interrupts the answer. Returns what was heard and the audio that was played; `None` if it was
    /// interrupted before.
    pub(super) fn interrupt(&mut self) -> Option<(String, Duration)> {
        if self.interrupted_at.is_some() {
            return None;
        }
        let played = self.playback.played(Instant::now());
        self.interrupted_at = Some(played);
        let heard = heard_text(&self.segments, played, |_| true);
        self.mute();
        if let Some(run) = &self.run {
            // A tool that has begun is not cut off, so that its output is known.
            if self.running_tools > 0 {
                run.stop_after_turn();
            } else {
                run.stop();
            }
        }
        Some((heard, played))
    }

    /// Returns `true` if all that is to be spoken was given to the application.
    pub(super) fn is_spoken(&self) -> bool {
        let has_more = !self.is_mute && self.next < self.segments.len();
        self.run.is_none() && self.speaking.is_none() && !has_more
    }

    /// The time when something has to be done without an event.
    pub(super) fn wake_time(&self, max_lead: Duration) -> Option<Instant> {
        if let Some(speaking) = &self.speaking {
            return Some(speaking.deadline);
        }
        if self.interrupted_at.is_some() {
            return None;
        }
        if self.is_spoken() {
            return self.playback.time_of_lead(Duration::ZERO);
        }
        if !self.is_mute && self.next < self.segments.len() {
            return self.playback.time_of_lead(max_lead);
        }
        None
    }
}
