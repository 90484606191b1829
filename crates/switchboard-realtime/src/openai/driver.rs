//! The driver of a connection: a task that moves commands, frames and events between the application, the
//! protocol and the socket.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;

use super::connection_settings::{ConnectionSettings, Reconnection};
use super::endpoint::Endpoint;
use super::event_queue::{EventWriter, event_queue};
use super::line::{Line, LineEnd, LineEvent};
use super::{Clock, ProtocolOutput, RealtimeProtocol};
use crate::model::{
    RealtimeClose, RealtimeConnection, RealtimeConnectionStatus, RealtimeModelCommand,
    RealtimeModelError, RealtimeModelErrorKind, RealtimeModelEvent, RealtimeTransport,
};

/// The bytes that wait for the network, before commands wait.
const MAX_WAITING_BYTES: usize = 256 << 10;

/// Pieces of audio up to this length are on their way once they are queued. Longer ones wait until they are taken, so
/// that the queue is bounded in bytes as well.
const MAX_QUEUED_AUDIO: usize = 16 << 10;

/// Everything that a connection needs.
pub(super) struct Setup {
    pub(super) endpoint: Endpoint,
    pub(super) settings: Arc<ConnectionSettings>,
    pub(super) clock: Clock,
    pub(super) reconnects: bool,
    pub(super) protocol: RealtimeProtocol,
}

/// Connects, opens the session, and starts the task that drives it.
pub(super) async fn connect(mut setup: Setup) -> Result<RealtimeConnection, RealtimeModelError> {
    let handshake = setup.endpoint.handshake(setup.protocol.model()).await?;
    let socket = handshake.connect(&setup.settings).await?;
    let mut line = Line::new(socket, &setup.settings);
    let opened = match setup.protocol.open() {
        Ok(opened) => opened,
        Err(error) => {
            line.close(CloseCode::Normal, setup.settings.close_timeout)
                .await;
            return Err(error);
        }
    };
    for frame in opened.frames {
        line.push(frame);
    }
    if let Err(end) = line.flush().await {
        return Err(end.to_error());
    }
    let (commands, receiver) = mpsc::channel(setup.settings.max_waiting_commands.max(1));
    let (events, reader) = event_queue(
        setup.settings.max_waiting_events,
        setup.settings.max_waiting_bytes,
    );
    let end = Arc::new(OnceLock::new());
    let driver = Driver {
        setup,
        commands: receiver,
        has_senders: true,
        events,
        end: end.clone(),
        attempts: 0,
    };
    tokio::spawn(driver.run(line));
    Ok(RealtimeConnection::new(Transport { commands, end }, reader))
}

type Reply<T> = oneshot::Sender<Result<T, RealtimeModelError>>;

enum Request {
    Command(RealtimeModelCommand, Option<Reply<Vec<RealtimeModelEvent>>>),
    Close(Reply<()>),
}

/// The end of a connection, for commands that come after it.
#[derive(Debug, Clone)]
enum End {
    ClosedByClient,
    Lost(RealtimeModelError),
}

impl End {
    fn error(&self) -> RealtimeModelError {
        match self {
            Self::ClosedByClient => RealtimeModelError::new(
                RealtimeModelErrorKind::NotConnected,
                "the session is closed: connect again to go on",
            ),
            Self::Lost(error) => error.clone(),
        }
    }
}

/// The side of the connection that takes commands.
struct Transport {
    commands: mpsc::Sender<Request>,
    end: Arc<OnceLock<End>>,
}

impl Transport {
    fn ended(&self) -> RealtimeModelError {
        let end = self.end.get().unwrap_or(&End::ClosedByClient);
        end.error()
    }
}

impl RealtimeTransport for Transport {
    async fn send(
        &self,
        command: RealtimeModelCommand,
    ) -> Result<Vec<RealtimeModelEvent>, RealtimeModelError> {
        if is_short_audio(&command) {
            // It can neither fail nor cause events, so that nothing has to be waited for.
            let sent = self.commands.send(Request::Command(command, None)).await;
            return sent.map(|()| Vec::new()).map_err(|_| self.ended());
        }
        let (reply, outcome) = oneshot::channel();
        let request = Request::Command(command, Some(reply));
        if self.commands.send(request).await.is_err() {
            return Err(self.ended());
        }
        outcome.await.unwrap_or_else(|_| Err(self.ended()))
    }

    async fn close(&self) -> Result<(), RealtimeModelError> {
        let (reply, outcome) = oneshot::channel();
        if self.commands.send(Request::Close(reply)).await.is_ok() {
            // The task may have ended meanwhile; then it is closed as well.
            let _ = outcome.await;
        }
        Ok(())
    }
}

fn is_short_audio(command: &RealtimeModelCommand) -> bool {
    matches!(command, RealtimeModelCommand::Audio { audio, .. } if audio.len() <= MAX_QUEUED_AUDIO)
}

/// The state of the task.
struct Driver {
    setup: Setup,
    commands: mpsc::Receiver<Request>,
    has_senders: bool,
    events: EventWriter,
    end: Arc<OnceLock<End>>,
    /// The attempts to connect again since the last connection that lasted.
    attempts: u32,
}

/// The reason for which a connection is left.
enum Left {
    /// Closed by the application, with the reply that it waits for, or dropped by it.
    Finished(Option<Reply<()>>),
    Ended(LineEnd),
}

impl Driver {
    async fn run(mut self, mut line: Line) {
        loop {
            let since = Instant::now();
            let end = match self.drive(&mut line).await {
                Left::Finished(reply) => {
                    let _ = self.end.set(End::ClosedByClient);
                    line.close(CloseCode::Normal, self.setup.settings.close_timeout)
                        .await;
                    if let Some(reply) = reply {
                        let _ = reply.send(Ok(()));
                    }
                    return;
                }
                Left::Ended(end) => end,
            };
            if let LineEnd::Failed(_, Some(code)) = &end {
                line.close(*code, self.setup.settings.close_timeout).await;
            }
            let reconnection = self.setup.settings.reconnection.clone();
            let reconnection =
                reconnection.filter(|_| self.setup.reconnects && end.may_reconnect());
            let Some(reconnection) = reconnection else {
                self.finish(end);
                return;
            };
            if since.elapsed() >= reconnection.stable_after {
                self.attempts = 0;
            }
            match self.reconnect(&reconnection, &end).await {
                Some(connected) => line = connected,
                None => return,
            }
        }
    }

    /// Drives an open connection until it is left.
    async fn drive(&mut self, line: &mut Line) -> Left {
        loop {
            if !self.has_senders && !self.events.has_reader() {
                return Left::Finished(None);
            }
            line.set_awaiting(self.setup.protocol.awaits_answer());
            let may_read = !self.events.is_full();
            let takes_commands = self.has_senders && line.waiting_bytes() < MAX_WAITING_BYTES;
            tokio::select! {
                request = self.commands.recv(), if takes_commands => match request {
                    Some(Request::Command(command, reply)) => self.command(command, reply, line),
                    Some(Request::Close(reply)) => return Left::Finished(Some(reply)),
                    None => self.has_senders = false,
                },
                event = line.next(may_read) => match event {
                    LineEvent::Frame(text) => {
                        let output = self.setup.protocol.frame(&text, (self.setup.clock)());
                        self.apply(output, line);
                    }
                    LineEvent::Flushed => {}
                    LineEvent::Ended(end) => return Left::Ended(end),
                },
                () = self.events.has_room(), if !may_read => {}
                () = self.events.no_reader(), if !self.has_senders => {}
            }
        }
    }

    fn command(
        &mut self,
        command: RealtimeModelCommand,
        reply: Option<Reply<Vec<RealtimeModelEvent>>>,
        line: &mut Line,
    ) {
        let outcome = self.setup.protocol.command(command, (self.setup.clock)());
        let outcome = outcome.map(|output| {
            for frame in output.frames {
                line.push(frame);
            }
            output.events
        });
        // A caller that has gone needs no answer.
        let _ = reply.map(|reply| reply.send(outcome));
    }

    fn apply(&self, output: ProtocolOutput, line: &mut Line) {
        for frame in output.frames {
            line.push(frame);
        }
        self.tell(output.events);
    }

    fn tell(&self, events: Vec<RealtimeModelEvent>) {
        for event in events {
            self.events.push(event);
        }
    }

    fn tell_status(&self, status: RealtimeConnectionStatus) {
        self.events
            .push(RealtimeModelEvent::ConnectionStatus(status));
    }

    /// Tells the end of the connection.
    fn finish(&self, end: LineEnd) {
        let error = end.to_error();
        let _ = self.end.set(End::Lost(error.clone()));
        match end {
            LineEnd::Closed(close) if matches!(close.code, 1000 | 1001) => {
                let close = Some(close);
                self.tell_status(RealtimeConnectionStatus::Disconnected { close });
                self.events.push(RealtimeModelEvent::EndOfStream);
            }
            _ => self.fail(error),
        }
    }

    fn fail(&self, error: RealtimeModelError) {
        let _ = self.end.set(End::Lost(error.clone()));
        let context = Some("the connection to the realtime server".into());
        self.events
            .push(RealtimeModelEvent::Exception { error, context });
    }

    /// Connects again. `None` if that failed for good, or nobody wants it any more.
    async fn reconnect(&mut self, policy: &Reconnection, end: &LineEnd) -> Option<Line> {
        let output = self.setup.protocol.disconnected();
        self.tell(output.events);
        let mut last = end.to_error();
        let mut close = end.close().cloned();
        while self.attempts < policy.max_attempts {
            self.attempts += 1;
            let attempt = self.attempts;
            let close = close.take();
            self.tell_status(RealtimeConnectionStatus::Reconnecting { attempt, close });
            match self.attempt(policy.delay(attempt)).await? {
                Ok(line) => return Some(line),
                Err(error) if is_final(&error) => {
                    self.fail(error);
                    return None;
                }
                Err(error) => last = error,
            }
        }
        let message = format!(
            "the connection to the realtime server was lost, and {} attempts to make it again failed; \
             the last one: {last}",
            policy.max_attempts
        );
        self.fail(RealtimeModelError::new(last.kind(), message));
        None
    }

    /// Makes one attempt, while commands go on changing the state. `None` if nobody wants it any more.
    async fn attempt(&mut self, delay: Duration) -> Option<Result<Line, RealtimeModelError>> {
        let jitter = delay.mul_f64(fastrand::f64() * 0.25);
        let endpoint = self.setup.endpoint.clone();
        let settings = self.setup.settings.clone();
        let model = self.setup.protocol.model().clone();
        let connecting = async move {
            tokio::time::sleep(delay + jitter).await;
            let handshake = endpoint.handshake(&model).await?;
            handshake.connect(&settings).await
        };
        let mut connecting = std::pin::pin!(connecting);
        let socket = loop {
            if !self.has_senders && !self.events.has_reader() {
                return None;
            }
            tokio::select! {
                biased;
                // First, so that the audio that came before the connection counts as lost.
                request = self.commands.recv(), if self.has_senders => match request {
                    Some(Request::Command(command, reply)) => self.command_offline(command, reply),
                    Some(Request::Close(reply)) => {
                        let _ = self.end.set(End::ClosedByClient);
                        let _ = reply.send(Ok(()));
                        return None;
                    }
                    None => self.has_senders = false,
                },
                socket = &mut connecting => break socket,
                () = self.events.no_reader(), if !self.has_senders => return None,
            }
        };
        Some(socket.and_then(|socket| self.reopen(socket)))
    }

    fn command_offline(
        &mut self,
        command: RealtimeModelCommand,
        reply: Option<Reply<Vec<RealtimeModelEvent>>>,
    ) {
        let outcome = self.setup.protocol.command(command, (self.setup.clock)());
        let events = outcome.map(|output| output.events);
        let _ = reply.map(|reply| reply.send(events));
    }

    fn reopen(&mut self, socket: super::socket::Socket) -> Result<Line, RealtimeModelError> {
        let mut line = Line::new(socket, &self.setup.settings);
        let dropped_audio_ms = self.setup.protocol.take_dropped_audio_ms();
        let output = self.setup.protocol.open()?;
        self.tell_status(RealtimeConnectionStatus::Reconnected { dropped_audio_ms });
        self.apply(output, &mut line);
        Ok(line)
    }
}

/// Returns `true` if another attempt would fail as well.
fn is_final(error: &RealtimeModelError) -> bool {
    let is_configuration = matches!(
        error.kind(),
        RealtimeModelErrorKind::Configuration | RealtimeModelErrorKind::Validation
    );
    is_configuration || matches!(error.status(), Some(400 | 401 | 403 | 404))
}

impl LineEnd {
    fn close(&self) -> Option<&RealtimeClose> {
        match self {
            Self::Closed(close) => Some(close),
            Self::Failed(..) => None,
        }
    }

    /// Returns `true` if a new connection could go on with the session.
    fn may_reconnect(&self) -> bool {
        match self {
            Self::Closed(close) => Reconnection::applies_to(Some(close.code)),
            Self::Failed(_, code) => code.is_none(),
        }
    }

    fn to_error(&self) -> RealtimeModelError {
        match self {
            Self::Failed(error, _) => error.clone(),
            Self::Closed(close) => {
                let advice = match close.code {
                    1001 => {
                        ": a session has reached the time that the provider allows; open a new one"
                    }
                    1008 => ": it refuses the session; check the key, the model and the settings",
                    1009 => ": a frame was too large for it",
                    _ => "",
                };
                let reason = if close.reason.is_empty() {
                    "no reason"
                } else {
                    &close.reason
                };
                let code = close.code;
                let message = format!(
                    "the realtime server closed the connection with {code} ({reason}){advice}"
                );
                RealtimeModelError::closed(code, message)
            }
        }
    }
}
