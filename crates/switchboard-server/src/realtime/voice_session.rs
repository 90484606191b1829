//! A spoken conversation with a voice pipeline: speech to text, a run, text to speech.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use switchboard_core::model::Usage;
use switchboard_core::stream::{EventKind, ItemEvent};
use switchboard_core::{Run, Runner, StreamEvent};
use switchboard_realtime::voice::{
    Audio, Playback, TurnEnd, VoiceEvent, VoiceEventKind, VoiceHandle, VoicePipeline, VoiceSession,
};

use super::frames::{Command, Direction, PlaybackReports, SAMPLE_RATE, ServerFrame, Turns};
use super::spoken::{Problem, SpokenEvent, SpokenInput, SpokenRequest, SpokenSession, VoiceModels};
use crate::api::{DecisionBody, Waiting};
use crate::error::ServiceError;

/// Opens a session with a voice pipeline. A run that waits in the conversation can be decided in it.
pub(crate) async fn open<C: Send + Sync + 'static>(
    runner: Runner<C, Arc<C>>,
    models: &VoiceModels,
    request: SpokenRequest,
) -> Result<SpokenSession, ServiceError> {
    let failed = |error| ServiceError::of_store(&error);
    let waiting = request.conversation.waiting_run().await.map_err(failed)?;
    let agent = request.conversation.agent().await.map_err(failed)?;
    let agent = agent.unwrap_or_else(|| runner.agent().name().into());
    let mut pipeline = VoicePipeline::new(
        runner,
        models.speech_to_text.clone(),
        models.text_to_speech.clone(),
    )
    .turn_end(match request.turns {
        Turns::Detected => TurnEnd::Silence,
        Turns::Manual => TurnEnd::Manual,
    })
    .playback(match request.playback {
        PlaybackReports::Clock => Playback::Clock,
        PlaybackReports::Reported => Playback::Reported,
    });
    for (agent, voice) in &models.voices {
        pipeline = pipeline.voice(agent.clone(), voice.clone());
    }
    let (handle, session) = pipeline.open();
    let shared = Arc::new(Mutex::new(Shared {
        waiting: waiting.map(Box::new),
        usage: Usage::default(),
        written: Vec::new(),
    }));
    let mut ready = VecDeque::new();
    if let Some(run) = &lock(&shared).waiting {
        ready.push_back(approval_required(run));
    }
    let translator = Translator {
        shared: shared.clone(),
        agent: agent.clone(),
    };
    Ok(SpokenSession {
        input: Arc::new(Input { handle, shared }),
        events: stream::unfold((session, translator, ready), next_event)
            .filter_map(std::future::ready)
            .boxed(),
        agent,
    })
}

/// The state that the two sides of a session share.
struct Shared {
    /// The run whose calls wait for decisions.
    waiting: Option<Box<Run>>,
    usage: Usage,
    /// Messages that were written and not told yet.
    written: Vec<String>,
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn approval_required(run: &Run) -> SpokenEvent {
    SpokenEvent::Frame(ServerFrame::ApprovalRequired {
        waiting: run.interruptions().iter().map(Waiting::from).collect(),
    })
}

struct Input {
    handle: VoiceHandle,
    shared: Arc<Mutex<Shared>>,
}

impl SpokenInput for Input {
    fn audio(&self, audio: Bytes) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async move {
            let audio = Audio::from_pcm(SAMPLE_RATE, &audio);
            let sent = self.handle.send_audio(audio).await;
            sent.map_err(ended)
        })
    }

    fn command(&self, command: Command) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async move {
            match command {
                Command::Text { text } => {
                    lock(&self.shared).written.push(text.clone());
                    self.handle.send_text(text).await.map_err(ended)
                }
                Command::Commit {} => self.handle.end_turn().await.map_err(ended),
                Command::Interrupt {} => self.handle.interrupt().await.map_err(ended),
                Command::Decide(decide) => self.decide(&decide).await,
                Command::Played { ms } => {
                    self.handle.played(Duration::from_secs_f64(ms / 1000.0));
                    Ok(())
                }
                Command::Mute { .. } | Command::Close {} => Ok(()),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // A session that has ended needs no end.
            let _ = self.handle.interrupt().await;
            self.handle.close().await;
        })
    }

    fn usage(&self) -> Usage {
        lock(&self.shared).usage
    }
}

fn ended(error: impl std::fmt::Display) -> Problem {
    Problem::new("ended", error)
}

impl Input {
    /// Decides a call, and goes on with the run once nothing waits any more.
    async fn decide(&self, decide: &DecisionBody) -> Result<(), Problem> {
        let run = {
            let mut shared = lock(&self.shared);
            let run = shared.waiting.as_mut();
            let run = run.ok_or_else(|| Problem::new("not_waiting", "no call waits"))?;
            let waiting = run.interruptions().into_iter();
            let mut waiting = waiting.filter(|waiting| *waiting.call_id == *decide.call_id);
            let call = waiting
                .next()
                .ok_or_else(|| Problem::new("not_waiting", "no call with this identifier waits"))?;
            let decided = run.decide(&call, decide.decision());
            decided.map_err(|error| Problem::new("not_waiting", error))?;
            if run.interruptions().is_empty() {
                shared.waiting.take()
            } else {
                None
            }
        };
        match run {
            Some(run) => self.handle.resume(*run).await.map_err(ended),
            None => Ok(()),
        }
    }
}

type State = (VoiceSession, Translator, VecDeque<SpokenEvent>);

/// The next event of a session; `None` inside for those that are not told.
async fn next_event(
    (mut session, mut translator, mut ready): State,
) -> Option<(Option<SpokenEvent>, State)> {
    if ready.is_empty() {
        let event = session.next().await?;
        translator.translate(event, &mut ready);
    }
    Some((ready.pop_front(), (session, translator, ready)))
}

/// Makes frames of the session's events.
struct Translator {
    shared: Arc<Mutex<Shared>>,
    agent: Arc<str>,
}

impl Translator {
    fn translate(&mut self, event: VoiceEvent, ready: &mut VecDeque<SpokenEvent>) {
        let agent = event.agent;
        let frame = match event.kind {
            VoiceEventKind::Audio { audio, .. } => {
                ready.push_back(SpokenEvent::Audio(audio.to_pcm().into()));
                return;
            }
            VoiceEventKind::Run(run) => {
                self.take_run_event(*run, ready);
                return;
            }
            VoiceEventKind::ApprovalRequired(run) => {
                ready.push_back(approval_required(&run));
                lock(&self.shared).waiting = Some(run);
                return;
            }
            VoiceEventKind::SpeechStarted { .. } => ServerFrame::SpeechStarted {},
            VoiceEventKind::SpeechStopped { .. } => ServerFrame::SpeechStopped {},
            VoiceEventKind::Transcript { text, .. } if !text.is_empty() => ServerFrame::Message {
                role: "user",
                agent: None,
                text,
            },
            VoiceEventKind::Interrupted { heard, .. } => {
                ServerFrame::Interrupted { heard: Some(heard) }
            }
            VoiceEventKind::AnswerEnded => ServerFrame::AnswerEnded { agent },
            VoiceEventKind::AudioDropped { length, .. } => ServerFrame::Dropped {
                direction: Direction::In,
                ms: u64::try_from(length.as_millis()).unwrap_or(u64::MAX),
            },
            VoiceEventKind::Error(error) => {
                tracing::warn!(%error, stage = error.stage().name(), "a spoken conversation failed");
                ServerFrame::problem(error.stage().name(), error.to_string())
            }
            _ => return,
        };
        ready.push_back(SpokenEvent::Frame(frame));
    }

    fn take_run_event(&mut self, event: StreamEvent, ready: &mut VecDeque<SpokenEvent>) {
        let agent = event.agent.clone();
        if agent != self.agent && !agent.is_empty() {
            self.agent = agent.clone();
            ready.push_back(SpokenEvent::Frame(ServerFrame::Agent {
                agent: agent.clone(),
            }));
        }
        let frame = match &event.kind {
            EventKind::RunStarted { .. } => {
                let written = std::mem::take(&mut lock(&self.shared).written);
                let written = written.into_iter().map(|text| ServerFrame::Message {
                    role: "user",
                    agent: None,
                    text,
                });
                ready.extend(written.map(SpokenEvent::Frame));
                // A run that goes on after a decision waits for nothing any more, nor does one that the user's
                // next words have ended.
                lock(&self.shared).waiting = None;
                Some(ServerFrame::AnswerStarted { agent })
            }
            EventKind::TextDelta { text, .. } => Some(ServerFrame::TextDelta {
                agent,
                text: text.clone(),
            }),
            EventKind::Item {
                name: ItemEvent::MessageOutputCreated,
                text: Some(text),
                ..
            } => Some(ServerFrame::Message {
                role: "assistant",
                agent: Some(agent),
                text: text.clone(),
            }),
            EventKind::ToolStarted {
                call_id,
                tool,
                arguments,
                ..
            } => Some(ServerFrame::ToolStarted {
                agent,
                tool: tool.clone(),
                call_id: call_id.clone(),
                arguments: arguments.to_string(),
            }),
            EventKind::ToolEnded {
                call_id,
                tool,
                output,
                ..
            } => Some(ServerFrame::ToolEnded {
                agent,
                tool: tool.clone(),
                call_id: call_id.clone(),
                output: output.clone(),
            }),
            EventKind::Handoff(handoff) => Some(ServerFrame::Handoff {
                from: handoff.from.clone(),
                to: Some(handoff.to.clone()),
                status: handoff.status,
                tool: Some(handoff.tool.clone()),
                call_id: Some(handoff.call_id.clone()),
                payload: Some(handoff.payload.clone()),
                reason: handoff.reason.clone(),
            }),
            EventKind::Usage { response, .. } => {
                lock(&self.shared).usage += *response;
                None
            }
            _ => None,
        };
        ready.extend(frame.map(SpokenEvent::Frame));
        ready.push_back(SpokenEvent::Run(Box::new(event)));
    }
}
