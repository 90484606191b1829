//! The options of a store in Redis.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::{Client, IntoConnectionInfo};

use super::connection::Connection;
use super::error::convert;
use super::scripts::Scripts;
use super::{Inner, RedisStore, persistence};
use crate::error::{Place, StoreError};

/// The options of a [`RedisStore`].
///
/// ```no_run
/// use std::time::Duration;
/// use switchboard_sessions::RedisOptions;
///
/// # async fn example() -> Result<(), switchboard_sessions::StoreError> {
/// let store = RedisOptions::new("redis://cache.example.com:6379/1")?
///     .prefix("support_chats")
///     .response_timeout(Duration::from_secs(5))
///     .open()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisOptions {
    client: Client,
    place: Place,
    prefix: String,
    connect_timeout: Duration,
    response_timeout: Duration,
    search_limit: usize,
}

impl RedisOptions {
    /// Creates the options for a server, given as `redis://user:password@host:port/database`; with
    /// `rediss`, the connection is encrypted. Certificates are checked against those that the system
    /// trusts, or those of the file that `SSL_CERT_FILE` names.
    ///
    /// # Errors
    /// Returns an error if the address is invalid.
    pub fn new(address: &str) -> Result<Self, StoreError> {
        let unknown = Place::Server("Redis".into());
        let info = address.into_connection_info();
        let info = info.map_err(|error| convert(error, &unknown))?;
        let database = info.redis_settings().db();
        let scheme = address.split(':').next().unwrap_or_default();
        let place = Place::Server(format!("{scheme}://{}/{database}", info.addr()));
        if scheme == "rediss" && rustls::crypto::CryptoProvider::get_default().is_none() {
            // The client takes the provider of the process. One that was set meanwhile is as good.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let client = Client::open(info).map_err(|error| convert(error, &place))?;
        Ok(Self {
            client,
            place,
            prefix: "switchboard".to_owned(),
            connect_timeout: Duration::from_secs(10),
            response_timeout: Duration::from_secs(30),
            search_limit: 100_000,
        })
    }

    /// Sets the beginning of the names of all keys (`switchboard`). Stores with different prefixes have
    /// nothing in common.
    #[must_use]
    pub fn prefix(mut self, prefix: impl Into<String>) -> Self {
        self.prefix = prefix.into();
        self
    }

    /// Sets the time that a call waits for a connection (10 s), also while the server restarts.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.connect_timeout = timeout;
        self
    }

    /// Sets the time that a call waits for the answer to a command (30 s).
    #[must_use]
    pub fn response_timeout(mut self, timeout: Duration) -> Self {
        self.response_timeout = timeout;
        self
    }

    /// Sets the number of entries that a search reads at most (100,000), those of the last changed
    /// conversations first. Redis cannot search by itself.
    #[must_use]
    pub fn search_limit(mut self, entries: usize) -> Self {
        self.search_limit = entries;
        self
    }

    /// Connects, and warns if the server's settings lose conversations.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached or denies access, or if the conversations were
    /// stored by a later version. These are left as they are.
    pub async fn open(self) -> Result<RedisStore, StoreError> {
        let (connect, response) = (self.connect_timeout, self.response_timeout);
        let connection = Connection::open(self.client, connect, response, self.place).await?;
        let mut handle = connection.get().await?;
        persistence::check(&mut handle.connection, connection.place()).await;
        let inner = Inner {
            connection,
            scripts: Scripts::new(),
            prefix: format!("{{{}}}", self.prefix),
            search_limit: self.search_limit,
        };
        inner.check_version().await?;
        Ok(RedisStore(Arc::new(inner)))
    }
}

impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("place", &self.place)
            .field("prefix", &self.prefix)
            .finish_non_exhaustive()
    }
}
