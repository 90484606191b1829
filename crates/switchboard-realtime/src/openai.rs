//! OpenAI's realtime protocol (GA), and the model that speaks it over a WebSocket.

mod connection_settings;
mod driver;
mod endpoint;
mod event_queue;
mod line;
mod protocol;
mod secret;
mod socket;
mod tls;

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use switchboard_core::callback::BoxError;

pub use self::connection_settings::{ConnectionSettings, Reconnection};
pub use self::protocol::{ProtocolOutput, RealtimeProtocol};

use self::endpoint::{Endpoint, Key};
use self::protocol::DEFAULT_MODEL;
use self::secret::Secret;
use crate::model::{
    RealtimeConnection, RealtimeModel, RealtimeModelConfig, RealtimeModelError,
    RealtimeModelErrorKind,
};

/// OpenAI's realtime models over a WebSocket, or any server that speaks the same protocol.
///
/// Clones share nothing but settings; each connection is its own.
///
/// ```no_run
/// use switchboard_realtime::model::{RealtimeModel, RealtimeModelConfig};
/// use switchboard_realtime::openai::OpenAiRealtimeModel;
///
/// # async fn example() -> Result<(), switchboard_realtime::model::RealtimeModelError> {
/// // The key is `OPENAI_API_KEY` of the environment.
/// let model = OpenAiRealtimeModel::new();
/// let (sender, events) = model.connect(RealtimeModelConfig::default()).await?.split();
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct OpenAiRealtimeModel {
    model: Arc<str>,
    endpoint: Endpoint,
    connection: Arc<ConnectionSettings>,
    clock: Clock,
}

/// The time since any fixed moment.
type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

impl OpenAiRealtimeModel {
    /// The provider's current model, with the key of the environment.
    pub fn new() -> Self {
        let start = Instant::now();
        Self {
            model: DEFAULT_MODEL.into(),
            endpoint: Endpoint::default(),
            connection: Arc::default(),
            clock: Arc::new(move || start.elapsed()),
        }
    }

    /// Sets the model of sessions whose settings name none.
    #[must_use]
    pub fn model(mut self, name: impl Into<Arc<str>>) -> Self {
        self.model = name.into();
        self
    }

    /// Sets the key: an API key, or an ephemeral key that the provider has made for one session.
    #[must_use]
    pub fn api_key(mut self, key: impl Into<String>) -> Self {
        self.endpoint.key = Key::Fixed(Secret::new(key.into()));
        self
    }

    /// Sets a function that gives the key. It is called for each connection, and again when a lost
    /// connection is made again: an ephemeral key does not last.
    ///
    /// ```
    /// use switchboard_realtime::openai::OpenAiRealtimeModel;
    ///
    /// let model = OpenAiRealtimeModel::new().api_key_from(|| async { Ok(fetch_key().await?) });
    /// # async fn fetch_key() -> Result<String, std::io::Error> { Ok("ek_1".into()) }
    /// ```
    #[must_use]
    pub fn api_key_from<F>(mut self, function: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = Result<String, BoxError>> + Send + 'static,
    {
        self.endpoint.key = Key::Function(Arc::new(move || Box::pin(function())));
        self
    }

    /// Uses no key, not that of the environment either; for servers that need none.
    #[must_use]
    pub fn without_api_key(mut self) -> Self {
        self.endpoint.key = Key::None;
        self
    }

    /// Sets the server, such as `wss://api.openai.com`. The path and the query are OpenAI's.
    #[must_use]
    pub fn base_url(mut self, url: impl Into<Arc<str>>) -> Self {
        self.endpoint.base_url = Some(url.into());
        self
    }

    /// Sets the whole address, with its path and its query. The model is not added to it.
    #[must_use]
    pub fn url(mut self, url: impl Into<Arc<str>>) -> Self {
        self.endpoint.url = Some(url.into());
        self
    }

    /// Sets the headers of the handshake in place of the authorization, such as `api-key` for Azure.
    #[must_use]
    pub fn headers<K: Into<String>, V: Into<String>>(
        mut self,
        headers: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let headers = headers.into_iter();
        let headers = headers.map(|(name, value)| (name.into(), Secret::new(value.into())));
        self.endpoint.headers = Some(headers.collect());
        self
    }

    /// Adds a header beside the authorization.
    #[must_use]
    pub fn header(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        let value = Secret::new(value.into());
        self.endpoint.added_headers.push((name.into(), value));
        self
    }

    /// Joins a call, such as one that came in over SIP, instead of opening a session of its own. The call
    /// has its model and its audio formats.
    #[must_use]
    pub fn call_id(mut self, id: impl Into<Arc<str>>) -> Self {
        self.endpoint.call_id = Some(id.into());
        self
    }

    /// Sets the limits and times of connections.
    ///
    /// ```
    /// use std::time::Duration;
    /// use switchboard_realtime::openai::{ConnectionSettings, OpenAiRealtimeModel};
    ///
    /// let mut settings = ConnectionSettings::default();
    /// settings.handshake_timeout = Duration::from_secs(3);
    /// settings.reconnection = None;
    /// let model = OpenAiRealtimeModel::new().connection(settings);
    /// ```
    #[must_use]
    pub fn connection(mut self, settings: ConnectionSettings) -> Self {
        self.connection = Arc::new(settings);
        self
    }

    /// Sets the clock that measures what was heard of a message where no tracker does; for tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        self.clock = Arc::new(clock);
        self
    }
}

impl Default for OpenAiRealtimeModel {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for OpenAiRealtimeModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenAiRealtimeModel")
            .field("model", &self.model)
            .field("connection", &self.connection)
            .finish_non_exhaustive()
    }
}

impl RealtimeModel for OpenAiRealtimeModel {
    async fn connect(
        &self,
        config: RealtimeModelConfig,
    ) -> Result<RealtimeConnection, RealtimeModelError> {
        let joins_call = self.endpoint.call_id.is_some();
        if joins_call && config.settings.model_name.is_some() {
            return Err(RealtimeModelError::new(
                RealtimeModelErrorKind::Configuration,
                "a session that joins a call cannot set `model_name`: the call has its model",
            ));
        }
        let reconnects = config.policy.reconnect;
        let protocol = RealtimeProtocol::with_model(config, &self.model, joins_call);
        driver::connect(driver::Setup {
            endpoint: self.endpoint.clone(),
            settings: self.connection.clone(),
            clock: self.clock.clone(),
            reconnects,
            protocol,
        })
        .await
    }

    fn name(&self) -> &str {
        &self.model
    }
}
