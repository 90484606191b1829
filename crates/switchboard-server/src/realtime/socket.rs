//! The WebSocket of a session: frames of the client to the session, events of the session to the client.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::ws::{CloseFrame, Message, WebSocket};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt as _, StreamExt as _};
use switchboard_core::model::Usage;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::frames::{
    CloseReason, Command, Direction, Mode, SAMPLE_RATE, ServerFrame, VERSION, audio_ms,
};
use super::sessions::{SessionPlace, Signal};
use super::spoken::{SpokenEvent, SpokenInput, SpokenSession};
use super::tickets::Ticket;
use crate::keys::RunPermit;
use crate::recording::SessionRecording;
use crate::service::Service;
use crate::team::ServedTeam;

/// The frames of the client's audio that wait for the session; more are dropped and told.
const MAX_AUDIO_FRAMES: usize = 64;

/// The answers to commands that wait to be sent; then no more commands are read.
const MAX_REPLIES: usize = 16;

/// The time between pings.
const PING: Duration = Duration::from_secs(20);

/// The time without anything from the client, not even an answer to a ping.
const IDLE: Duration = Duration::from_secs(60);

/// The time in which a session must end: the client reads the last frames, and the conversation is stored.
const END: Duration = Duration::from_secs(10);

/// A session with its client.
pub(super) struct Connection {
    pub(super) service: Service,
    pub(super) team: ServedTeam,
    pub(super) mode: Mode,
    pub(super) ticket: Ticket,
    pub(super) id: Arc<str>,
    pub(super) place: SessionPlace,
    pub(super) permit: Option<RunPermit>,
    pub(super) recording: Option<SessionRecording>,
}

/// The parts of a session that the reader and the writer share.
struct Shared {
    input: Arc<dyn SpokenInput>,
    is_muted: AtomicBool,
    /// The milliseconds of the client's audio that were dropped and not told yet.
    dropped_in: AtomicU64,
    /// The milliseconds after the beginning when something came from the client.
    last_heard: AtomicU64,
    began: Instant,
}

impl Connection {
    /// Serves the client until one of both sides ends the session.
    pub(super) async fn serve(mut self, socket: WebSocket, session: SpokenSession) {
        let SpokenSession {
            input,
            mut events,
            agent,
        } = session;
        let metrics = &self.service.inner().metrics;
        metrics.session_started();
        let began = Instant::now();
        tracing::info!(
            session = &*self.id,
            team = self.team.name(),
            tenant = self.ticket.caller.tenant.name(),
            mode = self.mode.as_str(),
            "a realtime session begins"
        );
        let shared = Shared {
            input: input.clone(),
            is_muted: AtomicBool::new(false),
            dropped_in: AtomicU64::new(0),
            last_heard: AtomicU64::new(0),
            began,
        };
        let (sink, stream) = socket.split();
        let write_time = self.service.inner().limits.write_time;
        let mut sink = TimedSink { sink, write_time };
        let (audio, waiting_audio) = mpsc::channel(MAX_AUDIO_FRAMES);
        let (replies, mut waiting_replies) = mpsc::channel(MAX_REPLIES);
        let mut usage = Usage::default();
        let reason = {
            let written = async {
                if let Err(reason) = sink.send_frame(&self.first_frame(agent)).await {
                    return reason;
                }
                let mut signal = self.place.signal.clone();
                let mut pings = tokio::time::interval_at(Instant::now() + PING, PING);
                let mut writer = Writer {
                    connection: &self,
                    shared: &shared,
                    sink: &mut sink,
                    usage: &mut usage,
                    is_answering: false,
                    is_draining: false,
                };
                loop {
                    let event = tokio::select! {
                        reply = waiting_replies.recv() => match reply {
                            Some(frame) => Some(SpokenEvent::Frame(frame)),
                            None => continue,
                        },
                        event = events.next() => event,
                        _ = pings.tick() => {
                            if let Err(reason) = writer.ping().await {
                                return reason;
                            }
                            continue;
                        }
                        _ = signal.changed() => {
                            if let Err(reason) = writer.end_if_asked().await {
                                return reason;
                            }
                            continue;
                        }
                    };
                    let Some(event) = event else {
                        return CloseReason::Failed;
                    };
                    if let Err(reason) = writer.write(event).await {
                        return reason;
                    }
                }
            };
            let limit = self.service.inner().limits.realtime_time;
            tokio::select! {
                reason = written => reason,
                reason = read(stream, &shared, audio, replies.clone()) => reason,
                reason = forward_audio(waiting_audio, &shared, replies) => reason,
                () = tokio::time::sleep(limit) => CloseReason::Time,
                reason = self.ended_by_service() => reason,
            }
        };
        let ended = async {
            let stored = async {
                input.close().await;
                while events.next().await.is_some() {}
            };
            let told = async {
                let _ = sink.send_frame(&ServerFrame::Closed { reason }).await;
                sink.close(reason).await;
            };
            futures_util::future::join(stored, told).await;
        };
        if tokio::time::timeout(END, ended).await.is_err() {
            tracing::warn!(
                session = &*self.id,
                "a realtime session did not end in time"
            );
        }
        drop(events);
        self.count(&input.usage(), &mut usage).await;
        if let Some(recording) = self.recording.take() {
            let status = if reason == CloseReason::Failed {
                "failed"
            } else {
                "completed"
            };
            recording.end(status, usage);
        }
        if reason != CloseReason::Deleted {
            self.note_change().await;
        }
        metrics.session_ended(self.team.name(), reason.as_str(), began.elapsed());
        tracing::info!(
            session = &*self.id,
            reason = reason.as_str(),
            seconds = began.elapsed().as_secs_f64(),
            tokens = usage.total_tokens(),
            "a realtime session has ended"
        );
        drop(self.permit);
        drop(self.place);
    }

    fn first_frame(&self, agent: Arc<str>) -> ServerFrame {
        ServerFrame::Session {
            version: VERSION,
            session: self.id.clone(),
            team: self.ticket.team.clone(),
            conversation: self.ticket.conversation.clone(),
            agent,
            mode: self.mode,
            sample_rate: SAMPLE_RATE,
            turns: self.ticket.turns,
            playback: self.ticket.playback,
        }
    }

    /// Waits for the service to end the session at once.
    async fn ended_by_service(&self) -> CloseReason {
        let mut signal = self.place.signal.clone();
        let ended = signal.wait_for(|signal| matches!(signal, Signal::End(_)));
        match ended.await.map(|signal| *signal) {
            Ok(Signal::End(reason)) => reason,
            _ => CloseReason::Draining,
        }
    }

    /// Tells clients of the service that the conversation has changed, and notes if it waits.
    async fn note_change(&self) {
        let ticket = &self.ticket;
        self.service
            .note_spoken(&ticket.caller, &ticket.conversation)
            .await;
    }

    /// Counts the usage since the last time.
    async fn count(&self, now: &Usage, counted: &mut Usage) {
        let new = Usage {
            requests: now.requests.saturating_sub(counted.requests),
            input_tokens: now.input_tokens.saturating_sub(counted.input_tokens),
            cached_tokens: now.cached_tokens.saturating_sub(counted.cached_tokens),
            output_tokens: now.output_tokens.saturating_sub(counted.output_tokens),
            reasoning_tokens: now
                .reasoning_tokens
                .saturating_sub(counted.reasoning_tokens),
            ..Usage::default()
        };
        *counted = *now;
        self.service
            .inner()
            .metrics
            .add_tokens(self.team.name(), &new);
        if let Some(key) = &self.ticket.caller.key
            && new.total_tokens() > 0
            && let Some((day, used)) = key.add_usage(new.total_tokens(), 0.0)
        {
            self.service.store_usage(key, day, used).await;
        }
    }
}

/// The side of the socket that is written to, with a limit on the time of each write.
struct TimedSink {
    sink: SplitSink<WebSocket, Message>,
    write_time: Duration,
}

impl TimedSink {
    async fn send(&mut self, message: Message) -> Result<(), CloseReason> {
        match tokio::time::timeout(self.write_time, self.sink.send(message)).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) => Err(CloseReason::Client),
            Err(_) => Err(CloseReason::Slow),
        }
    }

    async fn send_frame(&mut self, frame: &ServerFrame) -> Result<(), CloseReason> {
        let json = serde_json::to_string(frame).unwrap_or_default();
        self.send(Message::Text(json.into())).await
    }

    async fn close(&mut self, reason: CloseReason) {
        let frame = CloseFrame {
            code: reason.code(),
            reason: reason.as_str().into(),
        };
        // A client that is gone needs no close.
        let _ = self.send(Message::Close(Some(frame))).await;
    }
}

/// Writes events to the client.
struct Writer<'a> {
    connection: &'a Connection,
    shared: &'a Shared,
    sink: &'a mut TimedSink,
    usage: &'a mut Usage,
    is_answering: bool,
    is_draining: bool,
}

impl Writer<'_> {
    async fn write(&mut self, event: SpokenEvent) -> Result<(), CloseReason> {
        let metrics = &self.connection.service.inner().metrics;
        let team = &self.connection.team;
        let dropped = self.shared.dropped_in.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let frame = ServerFrame::Dropped {
                direction: Direction::In,
                ms: dropped,
            };
            self.write_frame(&frame).await?;
        }
        match event {
            SpokenEvent::Audio(audio) => self.sink.send(Message::Binary(audio)).await?,
            SpokenEvent::Run(event) => {
                metrics.observe(team.name(), &event, |tool| team.has_tool(tool));
            }
            SpokenEvent::Frame(frame) => self.write_frame(&frame).await?,
        }
        self.end_if_asked().await
    }

    async fn write_frame(&mut self, frame: &ServerFrame) -> Result<(), CloseReason> {
        let connection = self.connection;
        let metrics = &connection.service.inner().metrics;
        match frame {
            ServerFrame::AnswerStarted { .. } => self.is_answering = true,
            ServerFrame::AnswerEnded { .. } | ServerFrame::Interrupted { .. } => {
                self.is_answering = false;
                let used = self.shared.input.usage();
                connection.count(&used, self.usage).await;
            }
            ServerFrame::Handoff {
                from, to, status, ..
            } if connection.mode == Mode::Realtime => {
                let to = to.as_deref().unwrap_or_default();
                metrics.handoff(connection.team.name(), from, to, *status);
            }
            ServerFrame::Dropped { direction, ms } => metrics.audio_dropped(*direction, *ms),
            _ => {}
        }
        self.sink.send_frame(frame).await?;
        match frame {
            ServerFrame::ApprovalRequired { .. } | ServerFrame::AnswerEnded { .. } => {
                connection.note_change().await;
                Ok(())
            }
            ServerFrame::Error { fatal: true, .. } => Err(CloseReason::Failed),
            _ => Ok(()),
        }
    }

    /// Ends the session where the service or a limit of the key asks for it and no answer is under way.
    async fn end_if_asked(&mut self) -> Result<(), CloseReason> {
        let signal = *self.connection.place.signal.borrow();
        if signal == Signal::EndSoon && !self.is_draining {
            self.is_draining = true;
            self.sink.send_frame(&ServerFrame::Draining {}).await?;
        }
        if self.is_answering {
            return Ok(());
        }
        if self.is_draining {
            return Err(CloseReason::Draining);
        }
        let caller = &self.connection.ticket.caller;
        let key = caller.key.as_ref();
        if key.is_some_and(|key| key.check_day().is_err())
            || !self.connection.service.is_key_valid(caller)
        {
            return Err(CloseReason::Limit);
        }
        Ok(())
    }

    async fn ping(&mut self) -> Result<(), CloseReason> {
        let heard = Duration::from_millis(self.shared.last_heard.load(Ordering::Relaxed));
        if self.shared.began.elapsed().saturating_sub(heard) > IDLE {
            return Err(CloseReason::Idle);
        }
        self.sink.send(Message::Ping(Bytes::new())).await?;
        self.end_if_asked().await
    }
}

/// Audio of the client, and the ends of turns between it.
enum QueuedAudio {
    Audio(Bytes),
    Commit,
}

/// Gives audio to the session in order, so that it waits for the session and commands do not.
async fn forward_audio(
    mut queued: mpsc::Receiver<QueuedAudio>,
    shared: &Shared,
    replies: mpsc::Sender<ServerFrame>,
) -> CloseReason {
    while let Some(queued) = queued.recv().await {
        let taken = match queued {
            QueuedAudio::Audio(audio) => shared.input.audio(audio).await,
            QueuedAudio::Commit => shared.input.command(Command::Commit {}).await,
        };
        if let Err(problem) = taken {
            let frame = ServerFrame::problem(problem.code, problem.message);
            if replies.send(frame).await.is_err() {
                break;
            }
        }
    }
    CloseReason::Client
}

/// Reads frames of the client until it ends the session.
async fn read(
    mut stream: SplitStream<WebSocket>,
    shared: &Shared,
    audio: mpsc::Sender<QueuedAudio>,
    replies: mpsc::Sender<ServerFrame>,
) -> CloseReason {
    while let Some(Ok(message)) = stream.next().await {
        let heard = shared.began.elapsed().as_millis();
        let heard = u64::try_from(heard).unwrap_or(u64::MAX);
        shared.last_heard.store(heard, Ordering::Relaxed);
        let problem = match message {
            Message::Binary(bytes) if bytes.len() % 2 != 0 => {
                ServerFrame::problem("invalid_frame", "audio has two bytes for each sample")
            }
            Message::Binary(bytes) => {
                take_audio(bytes, shared, &audio);
                continue;
            }
            Message::Text(text) => match serde_json::from_str::<Command>(&text) {
                Ok(Command::Close {}) => return CloseReason::Client,
                Ok(Command::Mute { on }) => {
                    shared.is_muted.store(on, Ordering::Relaxed);
                    continue;
                }
                Ok(Command::Commit {}) => {
                    // It belongs after the audio that came before it.
                    if audio.send(QueuedAudio::Commit).await.is_err() {
                        return CloseReason::Client;
                    }
                    continue;
                }
                Ok(Command::Text { text }) if text.trim().is_empty() => {
                    ServerFrame::problem("invalid_command", "the text is empty")
                }
                Ok(Command::Played { ms }) if !(0.0..=3_600_000.0).contains(&ms) => {
                    ServerFrame::problem("invalid_command", "ms is from 0 to 3600000")
                }
                Ok(command) => match shared.input.command(command).await {
                    Ok(()) => continue,
                    Err(problem) => ServerFrame::problem(problem.code, problem.message),
                },
                Err(error) => ServerFrame::problem("invalid_command", error.to_string()),
            },
            Message::Close(_) => return CloseReason::Client,
            Message::Ping(_) | Message::Pong(_) => continue,
        };
        if replies.send(problem).await.is_err() {
            return CloseReason::Client;
        }
    }
    CloseReason::Client
}

fn take_audio(bytes: Bytes, shared: &Shared, audio: &mpsc::Sender<QueuedAudio>) {
    if shared.is_muted.load(Ordering::Relaxed) || bytes.is_empty() {
        return;
    }
    let ms = audio_ms(bytes.len());
    let sent = audio.try_send(QueuedAudio::Audio(bytes));
    if matches!(sent, Err(mpsc::error::TrySendError::Full(_))) {
        shared.dropped_in.fetch_add(ms, Ordering::Relaxed);
    }
}
