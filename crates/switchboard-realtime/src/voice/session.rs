//! A voice session and its handle.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use futures_core::Stream;
use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;
use switchboard_core::Run;
use tokio::sync::Notify;
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::mpsc::{Receiver, Sender, channel};

use super::audio::{Audio, RATES, UnsupportedRate};
use super::event::VoiceEvent;

/// The length of the pieces in which audio goes to the session.
const PIECE: Duration = Duration::from_millis(100);

/// The pieces of audio that wait to be taken: ten seconds.
const MAX_WAITING: usize = 100;

/// The commands that wait to be taken.
const MAX_COMMANDS: usize = 16;

/// A voice conversation as a stream of events; see [`VoicePipeline::open`](super::VoicePipeline::open).
///
/// It advances only while it is polled, and dropping it ends everything: nothing runs in the background. It ends
/// after the last answer once its input has ended: with [`VoiceHandle::close`], or when all handles are gone.
pub struct VoiceSession {
    events: BoxStream<'static, VoiceEvent>,
}

impl VoiceSession {
    pub(super) fn new(events: impl Stream<Item = VoiceEvent> + Send + 'static) -> Self {
        Self {
            events: events.boxed(),
        }
    }

    /// Returns the next event, or `None` once the session has ended.
    pub async fn next(&mut self) -> Option<VoiceEvent> {
        self.events.next().await
    }
}

impl Stream for VoiceSession {
    type Item = VoiceEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<VoiceEvent>> {
        self.events.as_mut().poll_next(cx)
    }
}

impl fmt::Debug for VoiceSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("VoiceSession")
    }
}

/// The input of a voice session, from anywhere; clones share the session.
#[derive(Debug, Clone)]
pub struct VoiceHandle {
    input: Sender<Input>,
    commands: Sender<Command>,
    shared: Arc<Shared>,
}

/// Input in order.
#[derive(Debug)]
pub(super) enum Input {
    Audio(Audio),
    Text(String),
    EndTurn,
    Close,
}

/// A command that does not wait for the input before it.
#[derive(Debug)]
pub(super) enum Command {
    Interrupt,
    Resume(Box<Run>),
}

/// Counters that handles and the session share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The audio that was dropped and not told yet, in nanoseconds.
    dropped: AtomicU64,
    /// The audio that was played and not counted yet, in nanoseconds.
    played: AtomicU64,
    changed: Notify,
}

impl Shared {
    pub(super) fn take_dropped(&self) -> Duration {
        Duration::from_nanos(self.dropped.swap(0, Ordering::Relaxed))
    }

    pub(super) fn take_played(&self) -> Duration {
        Duration::from_nanos(self.played.swap(0, Ordering::Relaxed))
    }

    /// Waits for a change of a counter.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }

    fn add(&self, counter: &AtomicU64, length: Duration) {
        let nanos = u64::try_from(length.as_nanos()).unwrap_or(u64::MAX);
        counter.fetch_add(nanos, Ordering::Relaxed);
        self.changed.notify_one();
    }
}

/// The side of a session that takes input.
pub(super) struct Inputs {
    pub(super) input: Receiver<Input>,
    pub(super) commands: Receiver<Command>,
    pub(super) shared: Arc<Shared>,
}

/// The two sides of a session's input.
pub(super) fn inputs() -> (VoiceHandle, Inputs) {
    let (input, input_receiver) = channel(MAX_WAITING);
    let (commands, command_receiver) = channel(MAX_COMMANDS);
    let shared = Arc::new(Shared::default());
    let inputs = Inputs {
        input: input_receiver,
        commands: command_receiver,
        shared: shared.clone(),
    };
    let handle = VoiceHandle {
        input,
        commands,
        shared,
    };
    (handle, inputs)
}

impl VoiceHandle {
    /// Sends audio of the user, at any rate. Waits while more than ten seconds of audio have not been taken.
    ///
    /// # Errors
    /// If the session has ended, or the rate is not supported.
    pub async fn send_audio(&self, audio: Audio) -> Result<(), SendError> {
        check_rate(&audio)?;
        for piece in audio.pieces(PIECE) {
            self.send(Input::Audio(piece)).await?;
        }
        Ok(())
    }

    /// Sends audio of the user without waiting, as from the callback of a sound card. Audio that the session
    /// has no room for is dropped, and told by
    /// [`AudioDropped`](super::VoiceEventKind::AudioDropped).
    ///
    /// # Errors
    /// If the session has ended, or the rate is not supported.
    pub fn try_send_audio(&self, audio: Audio) -> Result<(), SendError> {
        check_rate(&audio)?;
        for piece in audio.pieces(PIECE) {
            match self.input.try_send(Input::Audio(piece)) {
                Ok(()) => {}
                Err(TrySendError::Full(Input::Audio(piece))) => {
                    self.shared.add(&self.shared.dropped, piece.duration());
                }
                Err(_) => return Err(SendError::Closed),
            }
        }
        Ok(())
    }

    /// Sends a message that the user has written.
    ///
    /// # Errors
    /// If the session has ended.
    pub async fn send_text(&self, text: impl Into<String>) -> Result<(), SendError> {
        self.send(Input::Text(text.into())).await
    }

    /// Ends the user's turn: what was said before is answered, without waiting for silence.
    ///
    /// # Errors
    /// If the session has ended.
    pub async fn end_turn(&self) -> Result<(), SendError> {
        self.send(Input::EndTurn).await
    }

    /// Interrupts the answer, as the user's speech does.
    ///
    /// # Errors
    /// If the session has ended.
    pub async fn interrupt(&self) -> Result<(), SendError> {
        let sent = self.commands.send(Command::Interrupt).await;
        sent.map_err(|_| SendError::Closed)
    }

    /// Goes on with a run that waited for decisions, and speaks its answer. An answer that is under way is
    /// interrupted.
    ///
    /// # Errors
    /// If the session has ended.
    pub async fn resume(&self, run: Run) -> Result<(), SendError> {
        let sent = self.commands.send(Command::Resume(Box::new(run))).await;
        sent.map_err(|_| SendError::Closed)
    }

    /// Reports that so much more audio of the answer was played; for
    /// [`Playback::Reported`](super::Playback::Reported).
    pub fn played(&self, length: Duration) {
        self.shared.add(&self.shared.played, length);
    }

    /// Ends the input. What was said before is still answered.
    pub async fn close(&self) {
        // A session that has ended needs no end.
        let _ = self.send(Input::Close).await;
    }

    async fn send(&self, input: Input) -> Result<(), SendError> {
        self.input.send(input).await.map_err(|_| SendError::Closed)
    }
}

fn check_rate(audio: &Audio) -> Result<(), SendError> {
    if RATES.contains(&audio.rate()) {
        Ok(())
    } else {
        Err(SendError::Rate(UnsupportedRate(audio.rate())))
    }
}

/// The error of sending input to a voice session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError {
    /// The session has ended.
    Closed,
    /// The rate of the audio is not supported.
    Rate(UnsupportedRate),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Closed => f.write_str("the voice session has ended"),
            Self::Rate(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for SendError {}
