//! The connection of a store.

use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, RedisError};
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep};

use super::error::{convert, is_connection_lost, is_starting};
use crate::error::{Place, StoreError, StoreErrorKind};

/// The longest time between two attempts to connect.
const MAX_DELAY: Duration = Duration::from_millis(500);

/// One connection that all calls share, and that is made again when it is lost.
///
/// The commands of a connection are run in the order in which they were sent, so that a commit whose
/// caller has gone is done before anything that is sent later. A connection that was lost may still hold
/// commands that the server has not read: it is closed at the server before another one is used.
pub(super) struct Connection {
    client: Client,
    config: AsyncConnectionConfig,
    connect_timeout: Duration,
    current: Mutex<Current>,
    place: Place,
}

struct Current {
    connection: Option<MultiplexedConnection>,
    /// The connection as the server knows it, also once it is lost.
    known: Option<KnownConnection>,
    /// The number of connections so far.
    number: u64,
    is_closed: bool,
}

/// A connection as the server knows it.
struct KnownConnection {
    /// The identifier of the server's process. A server that was started again counts its connections anew.
    process: String,
    id: i64,
}

/// A handle to the connection, for one command.
pub(super) struct Handle {
    pub(super) connection: MultiplexedConnection,
    number: u64,
}

/// The error of a command.
pub(super) enum Failure {
    /// The connection was lost, and it is not known if the command was run.
    Lost(RedisError),
    Other(StoreError),
}

impl Connection {
    /// Connects, so that a wrong address shows at once.
    pub(super) async fn open(
        client: Client,
        connect_timeout: Duration,
        response_timeout: Duration,
        place: Place,
    ) -> Result<Self, StoreError> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(connect_timeout))
            .set_response_timeout(Some(response_timeout));
        let connection = client
            .get_multiplexed_async_connection_with_config(&config)
            .await;
        let mut connection = connection.map_err(|error| convert(error, &place))?;
        let known = KnownConnection::of(&mut connection).await;
        Ok(Self {
            client,
            config,
            connect_timeout,
            current: Mutex::new(Current {
                connection: Some(connection),
                known,
                number: 0,
                is_closed: false,
            }),
            place,
        })
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// Returns the connection. A server that is not there, or just starting, is asked again until the
    /// time is over.
    pub(super) async fn get(&self) -> Result<Handle, StoreError> {
        let mut current = self.current.lock().await;
        if current.is_closed {
            let closed = "the store was closed";
            return Err(StoreError::new(
                StoreErrorKind::Closed,
                self.place.clone(),
                closed,
            ));
        }
        let connection = match &current.connection {
            Some(connection) => connection.clone(),
            None => {
                let mut connection = self.connect().await?;
                let known = KnownConnection::of(&mut connection).await;
                if let (Some(lost), Some(known)) = (current.known.take(), &known)
                    && lost.process == known.process
                {
                    // Most often it is closed already, which is an error here.
                    let mut kill = redis::cmd("CLIENT");
                    kill.arg("KILL").arg("ID").arg(lost.id);
                    let _: Result<redis::Value, _> = kill.query_async(&mut connection).await;
                }
                current.known = known;
                current.connection = Some(connection.clone());
                current.number += 1;
                connection
            }
        };
        let number = current.number;
        Ok(Handle { connection, number })
    }

    async fn connect(&self) -> Result<MultiplexedConnection, StoreError> {
        let deadline = Instant::now() + self.connect_timeout;
        let mut delay = Duration::from_millis(10);
        loop {
            let connected = self.try_connect().await;
            match connected {
                Ok(connection) => return Ok(connection),
                Err(error) if !is_connection_lost(&error) && !is_starting(&error) => {
                    return Err(convert(error, &self.place));
                }
                Err(error) if Instant::now() + delay > deadline => {
                    return Err(convert(error, &self.place));
                }
                Err(_) => {}
            }
            sleep(delay).await;
            delay = (delay * 2).min(MAX_DELAY);
        }
    }

    /// A connection to a server that has loaded its data.
    async fn try_connect(&self) -> Result<MultiplexedConnection, RedisError> {
        let config = &self.config;
        let connection = self
            .client
            .get_multiplexed_async_connection_with_config(config)
            .await;
        let mut connection = connection?;
        let _: String = redis::cmd("PING").query_async(&mut connection).await?;
        Ok(connection)
    }

    /// The result of a command. A lost connection is not used again.
    pub(super) async fn finished<T>(
        &self,
        handle: Handle,
        done: Result<T, RedisError>,
    ) -> Result<T, Failure> {
        let error = match done {
            Ok(done) => return Ok(done),
            Err(error) => error,
        };
        if !is_connection_lost(&error) && !is_starting(&error) {
            return Err(Failure::Other(convert(error, &self.place)));
        }
        let mut current = self.current.lock().await;
        if current.number == handle.number {
            current.connection = None;
        }
        Err(Failure::Lost(error))
    }

    /// Waits until the commands that were sent before are answered, and closes the connection.
    pub(super) async fn close(&self) {
        let mut current = self.current.lock().await;
        current.is_closed = true;
        if let Some(mut connection) = current.connection.take() {
            // The commands are answered in order; an error says that there is no connection any more.
            let _: Result<String, _> = redis::cmd("PING").query_async(&mut connection).await;
        }
    }
}

impl KnownConnection {
    /// Asks the server. `None` if it does not tell.
    async fn of(connection: &mut MultiplexedConnection) -> Option<Self> {
        let (id, info): (i64, String) = redis::pipe()
            .cmd("CLIENT")
            .arg("ID")
            .cmd("INFO")
            .arg("server")
            .query_async(connection)
            .await
            .ok()?;
        let mut lines = info.lines();
        let process = lines.find_map(|line| line.strip_prefix("run_id:"))?;
        Some(Self {
            process: process.trim().to_owned(),
            id,
        })
    }
}
