//! A spoken conversation with a realtime model.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{StreamExt as _, stream};
use switchboard_core::RunConfig;
use switchboard_core::model::Usage;
use switchboard_core::stream::HandoffStatus;
use switchboard_realtime::items::{RealtimeItem, RealtimeItemStatus, RealtimeRole};
use switchboard_realtime::model::{
    AudioFormat, AudioPart, PlaybackTracker, RealtimeModelCommand, RealtimeModelHandle,
    RealtimeModelSettings, RealtimeResponseRequest, RealtimeResponseStatus, Switch,
};
use switchboard_realtime::{
    RealtimeAgent, RealtimeError, RealtimeEvent, RealtimeHandle, RealtimeHistory, RealtimeRunner,
    RealtimeSession,
};

use super::frames::{Command, Direction, PlaybackReports, ServerFrame, Turns, audio_ms};
use super::spoken::{Problem, SpokenEvent, SpokenInput, SpokenRequest, SpokenSession, SpokenTeam};
use crate::api::Waiting;
use crate::error::{ServiceError, ServiceErrorKind};

/// The number of events, and the bytes of their audio, that wait for a client that reads slowly.
const MAX_EVENTS: usize = 1024;
const MAX_AUDIO: usize = 4 << 20;

/// The latest items of the history in which a message may have been completed.
const LATEST: usize = 32;

/// Agents of their own for a realtime model.
pub(crate) struct RealtimeAgents<C> {
    pub(crate) first: RealtimeAgent<C>,
    pub(crate) context: Arc<C>,
    pub(crate) model: RealtimeModelHandle,
    pub(crate) settings: RealtimeModelSettings,
}

impl<C: Send + Sync + 'static> SpokenTeam for RealtimeAgents<C> {
    fn open(
        &self,
        request: SpokenRequest,
    ) -> BoxFuture<'static, Result<SpokenSession, ServiceError>> {
        Box::pin(open(
            self.first.clone(),
            self.context.clone(),
            RunConfig::default(),
            self.model.clone(),
            self.settings.clone(),
            request,
        ))
    }
}

/// Opens a session with a realtime model.
pub(crate) async fn open<C: Send + Sync + 'static>(
    first: RealtimeAgent<C>,
    context: Arc<C>,
    config: RunConfig<C>,
    model: RealtimeModelHandle,
    settings: RealtimeModelSettings,
    request: SpokenRequest,
) -> Result<SpokenSession, ServiceError> {
    let waiting = request.conversation.waiting_run().await;
    if waiting
        .map_err(|error| ServiceError::of_store(&error))?
        .is_some()
    {
        return Err(ServiceError::new(
            ServiceErrorKind::Conflict,
            "calls or people wait in this conversation; decide them before it is spoken",
        ));
    }
    let settings = RealtimeModelSettings {
        input_audio_format: Some(AudioFormat::Pcm16),
        output_audio_format: Some(AudioFormat::Pcm16),
        turn_detection: match request.turns {
            Turns::Detected => settings.turn_detection.clone(),
            Turns::Manual => Some(Switch::Off),
        },
        ..settings
    };
    let mut runner = RealtimeRunner::new(&first)
        .context(context)
        .model(&model)
        .model_settings(settings)
        .session(&request.conversation)
        .event_limits(MAX_EVENTS, MAX_AUDIO)
        .configure(|own| *own = config);
    let playback = PlaybackTracker::new();
    let is_reported = request.playback == PlaybackReports::Reported;
    if is_reported {
        runner = runner.playback(playback.clone());
    }
    let session = runner.connect().await.map_err(|error| {
        tracing::error!(%error, model = model.name(), "a realtime model cannot be connected");
        let message = "the realtime model cannot be connected; try again later";
        let error = ServiceError::new(ServiceErrorKind::Unavailable, message);
        error.retry_after(std::time::Duration::from_secs(5))
    })?;
    let shared = Arc::new(Shared {
        playback: is_reported.then_some(playback),
        sent: Mutex::default(),
    });
    let agent = session.agent();
    let input = Input {
        handle: session.handle(),
        shared: shared.clone(),
    };
    let translator = Translator {
        handle: session.handle(),
        shared,
        told: None,
    };
    Ok(SpokenSession {
        input: Arc::new(input),
        events: stream::unfold((session, translator, VecDeque::new()), next_event)
            .filter_map(std::future::ready)
            .boxed(),
        agent,
    })
}

type State<C> = (RealtimeSession<C>, Translator<C>, VecDeque<SpokenEvent>);

/// The next event of a session; `None` inside for those that are not told.
async fn next_event<C: Send + Sync + 'static>(
    (mut session, mut translator, mut ready): State<C>,
) -> Option<(Option<SpokenEvent>, State<C>)> {
    if ready.is_empty() {
        let event = session.next().await?;
        translator.translate(event, &mut ready);
    }
    Some((ready.pop_front(), (session, translator, ready)))
}

/// The audio that the client has not reported as played.
struct Shared {
    playback: Option<PlaybackTracker>,
    /// The parts that were sent, with the milliseconds of each that are not played yet.
    sent: Mutex<VecDeque<(AudioPart, f64)>>,
}

impl Shared {
    fn sent(&self, part: &AudioPart, bytes: usize) {
        if self.playback.is_none() {
            return;
        }
        let ms = AudioFormat::Pcm16.length_ms(bytes as u64);
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        match sent.back_mut() {
            Some((last, left)) if last == part => *left += ms,
            _ => sent.push_back((part.clone(), ms)),
        }
    }

    /// Counts audio as played, in the order in which it was sent.
    fn played(&self, mut ms: f64) {
        let Some(playback) = &self.playback else {
            return;
        };
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((part, left)) = sent.front_mut()
            && ms > 0.0
        {
            let played = ms.min(*left);
            playback.played_ms(&part.item_id, part.content_index, played);
            ms -= played;
            *left -= played;
            if *left <= 0.0 {
                sent.pop_front();
            }
        }
    }

    fn clear(&self) {
        let mut sent = self.sent.lock().unwrap_or_else(PoisonError::into_inner);
        sent.clear();
    }
}

struct Input<C> {
    handle: RealtimeHandle<C>,
    shared: Arc<Shared>,
}

impl<C: Send + Sync + 'static> SpokenInput for Input<C> {
    fn audio(&self, audio: Bytes) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async move { self.handle.send_audio(audio).await.map_err(problem) })
    }

    fn command(&self, command: Command) -> BoxFuture<'_, Result<(), Problem>> {
        Box::pin(async move {
            match command {
                Command::Text { text } => {
                    // Otherwise the message would be answered after the answer under way.
                    self.handle.interrupt().await.map_err(problem)?;
                    self.handle.send_message(text).await.map_err(problem)
                }
                Command::Commit {} => {
                    let commit = RealtimeModelCommand::CommitAudio;
                    self.handle.send(commit).await.map_err(problem)?;
                    let request = RealtimeResponseRequest::default();
                    let respond = RealtimeModelCommand::CreateResponse(request);
                    self.handle.send(respond).await.map_err(problem)
                }
                Command::Interrupt {} => self.handle.interrupt().await.map_err(problem),
                Command::Decide(decide) => {
                    let call_id = decide.call_id.as_str();
                    let decided = self.handle.decide(call_id, decide.decision());
                    decided
                        .await
                        .map_err(|error| Problem::new("not_waiting", error))
                }
                Command::Played { ms } => {
                    self.shared.played(ms);
                    Ok(())
                }
                Command::Mute { .. } | Command::Close {} => Ok(()),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // A session that has ended needs no end.
            let _ = self.handle.close().await;
        })
    }

    fn usage(&self) -> Usage {
        self.handle.usage()
    }
}

fn problem(error: RealtimeError) -> Problem {
    Problem::new("model", error)
}

/// Makes frames of the session's events.
struct Translator<C> {
    handle: RealtimeHandle<C>,
    shared: Arc<Shared>,
    /// The messages that were told; `None` before the stored history was seen.
    told: Option<HashSet<Arc<str>>>,
}

impl<C: Send + Sync + 'static> Translator<C> {
    fn translate(
        &mut self,
        event: Result<RealtimeEvent, RealtimeError>,
        ready: &mut VecDeque<SpokenEvent>,
    ) {
        let event = match event {
            Ok(event) => event,
            Err(error) => {
                ready.push_back(SpokenEvent::Frame(ServerFrame::Error {
                    code: "model",
                    message: error.to_string(),
                    fatal: true,
                }));
                return;
            }
        };
        let frame = match event {
            RealtimeEvent::Audio { data, part, .. } => {
                self.shared.sent(&part, data.len());
                ready.push_back(SpokenEvent::Audio(data));
                return;
            }
            RealtimeEvent::HistoryAdded(item) => {
                let told = self.tell(&item);
                ready.extend(told);
                return;
            }
            RealtimeEvent::HistoryUpdated(history) => {
                self.tell_latest(&history, ready);
                return;
            }
            RealtimeEvent::Handoff { from, to } => {
                let agent = to.clone();
                ready.push_back(SpokenEvent::Frame(ServerFrame::Handoff {
                    from,
                    to: Some(to),
                    status: HandoffStatus::Taken,
                    tool: None,
                    call_id: None,
                    payload: None,
                    reason: None,
                }));
                Some(ServerFrame::Agent { agent })
            }
            event => self.frame(event),
        };
        ready.extend(frame.map(SpokenEvent::Frame));
    }

    fn frame(&self, event: RealtimeEvent) -> Option<ServerFrame> {
        Some(match event {
            RealtimeEvent::AgentStart { agent } => ServerFrame::AnswerStarted { agent },
            RealtimeEvent::AgentEnd { agent } => ServerFrame::AnswerEnded { agent },
            RealtimeEvent::HandoffFailed {
                agent,
                tool,
                call_id,
                reason,
            } => ServerFrame::Handoff {
                from: agent,
                to: None,
                status: HandoffStatus::Failed,
                tool: Some(tool),
                call_id: Some(call_id),
                payload: None,
                reason: Some(reason.to_string()),
            },
            RealtimeEvent::ToolStart(call) => ServerFrame::ToolStarted {
                agent: call.agent,
                tool: call.tool,
                call_id: call.call_id,
                arguments: call.arguments.to_string(),
            },
            RealtimeEvent::ToolEnd { call, output } => ServerFrame::ToolEnded {
                agent: call.agent,
                tool: call.tool,
                call_id: call.call_id,
                output,
            },
            RealtimeEvent::ApprovalRequired(call) => ServerFrame::ApprovalRequired {
                waiting: vec![Waiting::of_call(
                    &call.agent,
                    &call.tool,
                    &call.call_id,
                    &call.arguments,
                )],
            },
            RealtimeEvent::AudioInterrupted(_) => {
                self.shared.clear();
                ServerFrame::Interrupted { heard: None }
            }
            RealtimeEvent::TranscriptDelta { delta, .. } => ServerFrame::TextDelta {
                agent: self.handle.agent(),
                text: delta,
            },
            RealtimeEvent::SpeechStarted => ServerFrame::SpeechStarted {},
            RealtimeEvent::SpeechStopped => ServerFrame::SpeechStopped {},
            RealtimeEvent::GuardrailTripped { results, .. } => {
                let names: Vec<&str> = results.iter().map(|result| &*result.guardrail).collect();
                let message = format!("the answer was stopped by {}", names.join(", "));
                ServerFrame::problem("guardrail", message)
            }
            // An answer that was interrupted.
            RealtimeEvent::ResponseFailed {
                status: RealtimeResponseStatus::Cancelled,
                ..
            } => return None,
            RealtimeEvent::ResponseFailed { .. } => {
                ServerFrame::problem("model", "the model did not complete its answer")
            }
            RealtimeEvent::Error(problem) => ServerFrame::problem("model", problem.message()),
            RealtimeEvent::Reconnected { dropped_audio_ms } if dropped_audio_ms > 0 => {
                ServerFrame::Dropped {
                    direction: Direction::In,
                    ms: dropped_audio_ms,
                }
            }
            RealtimeEvent::Disconnected { .. } => {
                ServerFrame::problem("model", "the realtime model has ended the connection")
            }
            RealtimeEvent::Dropped { audio_bytes, .. } => ServerFrame::Dropped {
                direction: Direction::Out,
                ms: audio_ms(usize::try_from(audio_bytes).unwrap_or(usize::MAX)),
            },
            _ => return None,
        })
    }

    /// Tells the messages that have been completed.
    fn tell_latest(&mut self, history: &RealtimeHistory, ready: &mut VecDeque<SpokenEvent>) {
        let items = history.items();
        if self.told.is_none() {
            // What was stored before the session is not told.
            self.told = Some(items.iter().map(|item| item.item_id().clone()).collect());
            return;
        }
        let start = items.len().saturating_sub(LATEST);
        for item in &items[start..] {
            ready.extend(self.tell(item));
        }
    }

    fn tell(&mut self, item: &RealtimeItem) -> Option<SpokenEvent> {
        let message = item.as_message()?;
        let text = message.text();
        let role = match message.role {
            RealtimeRole::User => "user",
            RealtimeRole::Assistant if message.status == Some(RealtimeItemStatus::InProgress) => {
                return None;
            }
            RealtimeRole::Assistant => "assistant",
            _ => return None,
        };
        let told = self.told.get_or_insert_with(HashSet::new);
        if text.is_empty() || !told.insert(message.item_id.clone()) {
            return None;
        }
        let agent = (role == "assistant").then(|| self.handle.agent());
        Some(SpokenEvent::Frame(ServerFrame::Message {
            role,
            agent,
            text,
        }))
    }
}
