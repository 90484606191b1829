//! An open WebSocket: its frames, pings and deadlines.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::{FutureExt as _, Sink as _, Stream as _};
use tokio::time::{Instant, Sleep, sleep_until, timeout};
use tokio_tungstenite::tungstenite::protocol::CloseFrame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::{Bytes, Error as WsError, Message};

use super::connection_settings::ConnectionSettings;
use super::socket::Socket;
use crate::model::{RealtimeClose, RealtimeModelError, RealtimeModelErrorKind};

/// An open WebSocket.
pub(super) struct Line {
    socket: Pin<Box<Socket>>,
    outgoing: VecDeque<Message>,
    is_flushed: bool,
    is_paused: bool,
    close: Option<RealtimeClose>,
    ping_interval: Option<Duration>,
    ping_timeout: Option<Duration>,
    answer_timeout: Option<Duration>,
    write_timeout: Duration,
    next_ping: Option<Instant>,
    /// The time of a ping after which nothing has been heard yet.
    pinged: Option<Instant>,
    /// The time since which the network has taken nothing of what is to be sent.
    writing: Option<Instant>,
    /// The time since which the server owes an answer and sends nothing.
    awaiting: Option<Instant>,
    timer: Pin<Box<Sleep>>,
}

/// Something that happened on the line.
pub(super) enum LineEvent {
    /// A frame has come.
    Frame(String),
    /// Everything that was to be sent has been taken by the network.
    Flushed,
    /// The connection has ended.
    Ended(LineEnd),
}

/// The end of a connection.
#[derive(Debug)]
pub(super) enum LineEnd {
    /// The server closed it.
    Closed(RealtimeClose),
    /// It failed. The code is sent to the server, if it can still be told.
    Failed(RealtimeModelError, Option<CloseCode>),
}

impl Line {
    pub(super) fn new(socket: Socket, settings: &ConnectionSettings) -> Self {
        let now = Instant::now();
        let next_ping = settings.ping_interval.map(|interval| now + interval);
        Self {
            socket: Box::pin(socket),
            outgoing: VecDeque::new(),
            is_flushed: true,
            is_paused: false,
            close: None,
            ping_interval: settings.ping_interval,
            ping_timeout: settings.ping_timeout,
            answer_timeout: settings.answer_timeout,
            write_timeout: settings.write_timeout,
            next_ping,
            pinged: None,
            writing: None,
            awaiting: None,
            timer: Box::pin(sleep_until(
                next_ping.unwrap_or(now + Duration::from_secs(3_600)),
            )),
        }
    }

    /// Adds a frame to what is to be sent.
    pub(super) fn push(&mut self, frame: String) {
        self.push_message(Message::text(frame));
    }

    fn push_message(&mut self, message: Message) {
        self.outgoing.push_back(message);
        self.is_flushed = false;
        self.writing.get_or_insert_with(Instant::now);
    }

    /// The bytes of the frames that the network has not taken yet.
    pub(super) fn waiting_bytes(&self) -> usize {
        self.outgoing.iter().map(Message::len).sum()
    }

    /// Notes whether the server owes an answer.
    pub(super) fn set_awaiting(&mut self, is_awaiting: bool) {
        if is_awaiting {
            self.awaiting.get_or_insert_with(Instant::now);
        } else {
            self.awaiting = None;
        }
    }

    /// Sends everything, without reading.
    pub(super) async fn flush(&mut self) -> Result<(), LineEnd> {
        loop {
            match self.next(false).await {
                LineEvent::Ended(end) => return Err(end),
                LineEvent::Flushed => return Ok(()),
                LineEvent::Frame(_) => {}
            }
        }
    }

    /// The next event. Frames are read only if `may_read` is set. It can be dropped at any time.
    pub(super) async fn next(&mut self, may_read: bool) -> LineEvent {
        std::future::poll_fn(|cx| self.poll_next(cx, may_read)).await
    }

    fn poll_next(&mut self, cx: &mut Context<'_>, may_read: bool) -> Poll<LineEvent> {
        if !self.is_flushed {
            match self.poll_write(cx) {
                Poll::Ready(Ok(())) => return Poll::Ready(LineEvent::Flushed),
                Poll::Ready(Err(error)) => return Poll::Ready(LineEvent::Ended(self.end(error))),
                Poll::Pending => {}
            }
        }
        if may_read {
            if std::mem::take(&mut self.is_paused) {
                // What came meanwhile has not been read: silence proves nothing.
                self.pinged = None;
                self.awaiting = self.awaiting.map(|_| Instant::now());
            }
            if let Poll::Ready(event) = self.poll_read(cx) {
                return Poll::Ready(event);
            }
        } else {
            self.is_paused = true;
        }
        self.poll_deadlines(cx).map(LineEvent::Ended)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), WsError>> {
        loop {
            if !self.outgoing.is_empty() {
                std::task::ready!(self.socket.as_mut().poll_ready(cx))?;
                if let Some(message) = self.outgoing.pop_front() {
                    self.socket.as_mut().start_send(message)?;
                    self.writing = Some(Instant::now());
                }
                continue;
            }
            std::task::ready!(self.socket.as_mut().poll_flush(cx))?;
            self.is_flushed = true;
            self.writing = None;
            return Poll::Ready(Ok(()));
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<LineEvent> {
        loop {
            let message = std::task::ready!(self.socket.as_mut().poll_next(cx));
            let frame = match message {
                Some(Ok(message)) => {
                    self.pinged = None;
                    match message {
                        Message::Text(text) => text.as_str().to_owned(),
                        Message::Binary(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
                        Message::Close(frame) => {
                            // The answer to it is sent by reading on.
                            self.close = Some(server_close(frame));
                            continue;
                        }
                        Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => continue,
                    }
                }
                Some(Err(error)) => return Poll::Ready(LineEvent::Ended(self.end(error))),
                None => return Poll::Ready(LineEvent::Ended(self.end(WsError::ConnectionClosed))),
            };
            self.awaiting = self.awaiting.map(|_| Instant::now());
            return Poll::Ready(LineEvent::Frame(frame));
        }
    }

    /// Sends pings, and ends a connection on which nothing moves.
    fn poll_deadlines(&mut self, cx: &mut Context<'_>) -> Poll<LineEnd> {
        loop {
            let now = Instant::now();
            if let Some(end) = self.missed_deadline(now) {
                return Poll::Ready(end);
            }
            if self.next_ping.is_some_and(|next| next <= now) {
                self.next_ping = self.ping_interval.map(|interval| now + interval);
                if !self.is_paused && self.pinged.is_none() {
                    self.push_message(Message::Ping(Bytes::new()));
                    self.pinged = Some(now);
                    // The ping is sent with the next poll.
                    cx.waker().wake_by_ref();
                }
            }
            let next = self.next_deadline(now);
            if self.timer.deadline() > next || self.timer.is_elapsed() {
                self.timer.as_mut().reset(next);
            }
            match self.timer.poll_unpin(cx) {
                Poll::Ready(()) => {}
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    fn missed_deadline(&self, now: Instant) -> Option<LineEnd> {
        let is_over = |since: Option<Instant>, limit: Option<Duration>| {
            since
                .zip(limit)
                .is_some_and(|(since, limit)| now >= since + limit)
        };
        let (what, setting) = if is_over(self.writing, Some(self.write_timeout)) {
            ("the network takes nothing of what is sent", "write_timeout")
        } else if self.is_paused {
            return None;
        } else if is_over(self.pinged, self.ping_timeout) {
            ("the realtime server does not answer pings", "ping_timeout")
        } else if is_over(self.awaiting, self.answer_timeout) {
            ("the realtime server does not answer", "answer_timeout")
        } else {
            return None;
        };
        let message = format!("{what}: check the network, or raise `{setting}`");
        let error = RealtimeModelError::new(RealtimeModelErrorKind::Timeout, message);
        Some(LineEnd::Failed(error, None))
    }

    fn next_deadline(&self, now: Instant) -> Instant {
        let after = |since: Option<Instant>, limit: Option<Duration>| {
            since.zip(limit).map(|(since, limit)| since + limit)
        };
        let deadlines = [
            self.next_ping,
            after(self.writing, Some(self.write_timeout)),
            after(self.pinged, self.ping_timeout),
            after(self.awaiting, self.answer_timeout),
        ];
        let next = deadlines
            .into_iter()
            .flatten()
            .filter(|deadline| *deadline > now)
            .min();
        next.unwrap_or(now + Duration::from_secs(3_600))
    }

    /// The end of the connection by an error of the WebSocket.
    fn end(&mut self, error: WsError) -> LineEnd {
        if let Some(close) = self.close.take() {
            return LineEnd::Closed(close);
        }
        let (message, code) = match &error {
            WsError::Capacity(_) => (
                format!(
                    "the realtime server sent too much at once: raise `max_frame_bytes` ({error})"
                ),
                Some(CloseCode::Size),
            ),
            WsError::Utf8(_) => (
                format!("the realtime server sent a frame that is not text: {error}"),
                Some(CloseCode::Invalid),
            ),
            WsError::ConnectionClosed | WsError::AlreadyClosed => (
                "the connection to the realtime server was lost".to_owned(),
                None,
            ),
            WsError::Protocol(
                tokio_tungstenite::tungstenite::error::ProtocolError::ResetWithoutClosingHandshake,
            )
            | WsError::Io(_) => (
                format!("the connection to the realtime server was lost: {error}"),
                None,
            ),
            _ => (
                format!("the realtime server broke the WebSocket protocol: {error}"),
                Some(CloseCode::Protocol),
            ),
        };
        let error = RealtimeModelError::new(RealtimeModelErrorKind::Transport, message);
        LineEnd::Failed(error, code)
    }

    /// Closes the connection: sends what is to be sent, then the code, and waits for the server's
    /// answer, all within a time.
    pub(super) async fn close(mut self, code: CloseCode, within: Duration) {
        let frame = CloseFrame {
            code,
            reason: "".into(),
        };
        self.push_message(Message::Close(Some(frame)));
        let closing = async {
            if self.flush().await.is_err() {
                return;
            }
            loop {
                if let LineEvent::Ended(_) = self.next(true).await {
                    return;
                }
            }
        };
        let _ = timeout(within, closing).await;
    }
}

fn server_close(frame: Option<CloseFrame>) -> RealtimeClose {
    match frame {
        Some(frame) => RealtimeClose {
            code: frame.code.into(),
            reason: frame.reason.as_str().to_owned(),
        },
        None => RealtimeClose {
            code: CloseCode::Status.into(),
            reason: String::new(),
        },
    }
}
