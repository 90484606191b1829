//! Realtime models: the trait, its commands and its events.

mod command;
mod error;
mod event;
mod playback;
mod settings;

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use futures_core::Stream;
use futures_core::stream::BoxStream;
use futures_util::StreamExt as _;
use serde::{Deserialize, Serialize};
use switchboard_core::callback::BoxFuture;

pub use command::{
    ImageDetail, RealtimeInputPart, RealtimeInterrupt, RealtimeModelCommand, RealtimeRawCommand,
    RealtimeResponseRequest, RealtimeToolOutput, RealtimeUserInput,
};
pub use error::{RealtimeModelError, RealtimeModelErrorKind};
pub use event::{
    AudioPart, RealtimeClose, RealtimeConnectionStatus, RealtimeModelAudio, RealtimeModelDelta,
    RealtimeModelEvent, RealtimeModelUsage, RealtimeResponseStatus, RealtimeServerError,
    RealtimeTokensDetails, RealtimeToolCall, RealtimeTurnEnd, ReportedError,
};
pub use playback::{PlaybackState, PlaybackTracker};
pub use settings::{
    AudioFormat, MaxOutputTokens, Modality, NoiseReduction, RealtimeModelSettings, RealtimeTrace,
    RealtimeTracing, RealtimeVoice, SemanticVad, ServerVad, Switch, Transcription, TurnDetection,
};

use crate::items::RealtimeItem;

/// A model that holds a spoken or written conversation on one connection.
///
/// ```
/// use futures_util::stream;
/// use switchboard_realtime::model::{
///     RealtimeConnection, RealtimeModel, RealtimeModelCommand, RealtimeModelConfig, RealtimeModelError,
///     RealtimeModelEvent, RealtimeTransport,
/// };
///
/// struct Silent;
///
/// impl RealtimeModel for Silent {
///     async fn connect(&self, _: RealtimeModelConfig) -> Result<RealtimeConnection, RealtimeModelError> {
///         Ok(RealtimeConnection::new(Mute, stream::pending()))
///     }
/// }
///
/// struct Mute;
///
/// impl RealtimeTransport for Mute {
///     async fn send(
///         &self,
///         _: RealtimeModelCommand,
///     ) -> Result<Vec<RealtimeModelEvent>, RealtimeModelError> {
///         Ok(Vec::new())
///     }
///
///     async fn close(&self) -> Result<(), RealtimeModelError> {
///         Ok(())
///     }
/// }
/// ```
pub trait RealtimeModel: Send + Sync + 'static {
    /// Connects, and opens a session with these settings.
    fn connect(
        &self,
        config: RealtimeModelConfig,
    ) -> impl Future<Output = Result<RealtimeConnection, RealtimeModelError>> + Send;

    /// The model's name, for traces.
    fn name(&self) -> &str {
        "realtime model"
    }
}

/// The side of a connection that takes commands.
pub trait RealtimeTransport: Send + Sync + 'static {
    /// Carries out a command. It is done when everything that it sends at once is on its way; a response
    /// that it asks for may wait for the end of the current one. Returns the events that the command itself
    /// causes; they come before those of the stream that have not been read.
    fn send(
        &self,
        command: RealtimeModelCommand,
    ) -> impl Future<Output = Result<Vec<RealtimeModelEvent>, RealtimeModelError>> + Send;

    /// Closes the connection. No event follows but those that are on their way.
    fn close(&self) -> impl Future<Output = Result<(), RealtimeModelError>> + Send;
}

/// The settings of a connection to a realtime model.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct RealtimeModelConfig {
    /// The settings of the session.
    pub settings: RealtimeModelSettings,
    /// The conversation so far. It is put before what the user says, and nothing in it is run or
    /// answered again.
    pub history: Vec<RealtimeItem>,
    /// The record of what is played to the user.
    pub playback: Option<PlaybackTracker>,
    /// Passes on the server's events as they are, beside those that are made of them.
    pub raw_events: bool,
    /// The choices where more than one behaviour makes sense.
    pub policy: RealtimeModelPolicy,
}

impl RealtimeModelConfig {
    /// A configuration with these settings; set the other fields on it.
    pub fn new(settings: RealtimeModelSettings) -> Self {
        Self {
            settings,
            ..Self::default()
        }
    }
}

/// Choices of a realtime model where more than one behaviour makes sense.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RealtimeModelPolicy {
    /// Asks for a response again that the server refused because another was running.
    pub repeat_refused_responses: bool,
    /// Keeps the predecessor of an item from every event that names it.
    pub keep_previous_item_ids: bool,
    /// Connects again when the connection is lost, where the model can.
    pub reconnect: bool,
    /// Passes on a tool call once, however often the server sends it.
    pub ignore_repeated_calls: bool,
    /// Reads events of the server as far as it can. Otherwise an event that the official types refuse is
    /// an error, and a frame that is not JSON ends the session.
    pub lenient_server_events: bool,
    /// Answers a raw command that the protocol does not know with an error. Otherwise it is dropped.
    pub report_invalid_raw_commands: bool,
}

impl RealtimeModelPolicy {
    /// The default: nothing is lost.
    pub const fn production() -> Self {
        Self {
            repeat_refused_responses: true,
            keep_previous_item_ids: true,
            reconnect: true,
            ignore_repeated_calls: true,
            lenient_server_events: true,
            report_invalid_raw_commands: true,
        }
    }

    /// The behaviour of the reference.
    pub const fn reference() -> Self {
        Self {
            repeat_refused_responses: false,
            keep_previous_item_ids: false,
            reconnect: false,
            ignore_repeated_calls: false,
            lenient_server_events: false,
            report_invalid_raw_commands: false,
        }
    }
}

impl Default for RealtimeModelPolicy {
    fn default() -> Self {
        Self::production()
    }
}

/// A connection to a realtime model.
pub struct RealtimeConnection {
    sender: RealtimeSender,
    events: BoxStream<'static, RealtimeModelEvent>,
}

impl RealtimeConnection {
    /// Creates a connection of its two sides.
    pub fn new(
        transport: impl RealtimeTransport,
        events: impl Stream<Item = RealtimeModelEvent> + Send + 'static,
    ) -> Self {
        Self {
            sender: RealtimeSender(Arc::new(transport)),
            events: events.boxed(),
        }
    }

    /// Takes the two sides apart. The connection closes when both have been dropped.
    pub fn split(self) -> (RealtimeSender, BoxStream<'static, RealtimeModelEvent>) {
        (self.sender, self.events)
    }
}

impl fmt::Debug for RealtimeConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RealtimeConnection")
    }
}

/// A handle that sends commands; clones share the connection.
#[derive(Clone)]
pub struct RealtimeSender(Arc<dyn DynTransport>);

impl RealtimeSender {
    /// Carries out a command; see [`RealtimeTransport::send`].
    pub fn send(
        &self,
        command: RealtimeModelCommand,
    ) -> BoxFuture<'_, Result<Vec<RealtimeModelEvent>, RealtimeModelError>> {
        self.0.send_dyn(command)
    }

    /// Closes the connection.
    pub fn close(&self) -> BoxFuture<'_, Result<(), RealtimeModelError>> {
        self.0.close_dyn()
    }
}

impl fmt::Debug for RealtimeSender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RealtimeSender")
    }
}

/// A handle to a realtime model; clones share it.
#[derive(Clone)]
pub struct RealtimeModelHandle(Arc<dyn DynRealtimeModel>);

impl RealtimeModelHandle {
    /// Creates a handle.
    pub fn new(model: impl RealtimeModel) -> Self {
        Self(Arc::new(model))
    }

    /// See [`RealtimeModel::connect`].
    pub fn connect(
        &self,
        config: RealtimeModelConfig,
    ) -> BoxFuture<'_, Result<RealtimeConnection, RealtimeModelError>> {
        self.0.connect_dyn(config)
    }

    /// The model's name.
    pub fn name(&self) -> &str {
        self.0.name_dyn()
    }
}

impl fmt::Debug for RealtimeModelHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RealtimeModelHandle({})", self.name())
    }
}

impl<M: RealtimeModel> From<M> for RealtimeModelHandle {
    fn from(model: M) -> Self {
        Self::new(model)
    }
}

impl From<&RealtimeModelHandle> for RealtimeModelHandle {
    fn from(handle: &RealtimeModelHandle) -> Self {
        handle.clone()
    }
}

/// [`RealtimeModel`] as a trait object.
trait DynRealtimeModel: Send + Sync {
    fn connect_dyn(
        &self,
        config: RealtimeModelConfig,
    ) -> BoxFuture<'_, Result<RealtimeConnection, RealtimeModelError>>;
    fn name_dyn(&self) -> &str;
}

impl<M: RealtimeModel> DynRealtimeModel for M {
    fn connect_dyn(
        &self,
        config: RealtimeModelConfig,
    ) -> BoxFuture<'_, Result<RealtimeConnection, RealtimeModelError>> {
        Box::pin(self.connect(config))
    }

    fn name_dyn(&self) -> &str {
        self.name()
    }
}

/// [`RealtimeTransport`] as a trait object.
trait DynTransport: Send + Sync {
    fn send_dyn(
        &self,
        command: RealtimeModelCommand,
    ) -> BoxFuture<'_, Result<Vec<RealtimeModelEvent>, RealtimeModelError>>;
    fn close_dyn(&self) -> BoxFuture<'_, Result<(), RealtimeModelError>>;
}

impl<T: RealtimeTransport> DynTransport for T {
    fn send_dyn(
        &self,
        command: RealtimeModelCommand,
    ) -> BoxFuture<'_, Result<Vec<RealtimeModelEvent>, RealtimeModelError>> {
        Box::pin(self.send(command))
    }

    fn close_dyn(&self) -> BoxFuture<'_, Result<(), RealtimeModelError>> {
        Box::pin(self.close())
    }
}
