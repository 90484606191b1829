//! The connections of a store.
//!
//! sqlx's own pool asks the server whether a connection still works each time one is given back, so
//! that a commit would cost two round trips. Here a lost connection shows when it is used, and the
//! statement is then run again on another one.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection as _, Executor};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep, timeout_at};

use super::error::{self, is_connection_lost, is_starting};
use crate::error::{Place, StoreError, StoreErrorKind};

/// The longest time between two attempts to connect.
const MAX_DELAY: Duration = Duration::from_millis(500);

/// The longest time that the network may add to that of a statement.
const MAX_NETWORK_TIME: Duration = Duration::from_secs(5);

pub(super) struct Pool {
    connect: PgConnectOptions,
    idle: Mutex<Vec<PgConnection>>,
    permits: Semaphore,
    settings: Settings,
    place: Place,
}

/// The limits of a [`Pool`].
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) max_connections: u32,
    pub(super) connect_timeout: Duration,
    pub(super) statement_timeout: Duration,
}

/// The condition of a connection that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    /// The server may have closed it.
    Any,
    /// The server has answered on it.
    Checked,
}

/// A connection in use. It is closed when it is dropped; see [`Connection::release`].
pub(super) struct Connection<'a> {
    pool: &'a Pool,
    connection: PgConnection,
    _permit: SemaphorePermit<'a>,
}

impl Pool {
    /// Creates a pool with one connection, so that a wrong address shows at once.
    pub(super) async fn open(
        connect: PgConnectOptions,
        settings: Settings,
        place: Place,
    ) -> Result<Self, StoreError> {
        let pool = Self {
            connect: connect.disable_statement_logging(),
            idle: Mutex::default(),
            permits: Semaphore::new(settings.max_connections as usize),
            settings,
            place,
        };
        let first = timeout_at(pool.deadline(), pool.connect()).await;
        match first {
            Ok(Ok(connection)) => pool.idle().push(connection),
            Ok(Err(error)) => return Err(error::convert(error, &pool.place)),
            Err(_) => return Err(pool.no_connection(None)),
        }
        Ok(pool)
    }

    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The time after which a statement has failed, also if the server does not answer.
    pub(super) fn statement_deadline(&self) -> Instant {
        let timeout = self.settings.statement_timeout;
        Instant::now() + timeout + timeout.min(MAX_NETWORK_TIME)
    }

    /// Waits for a connection. A server that is not there, or just starting, is asked again until the
    /// time is over.
    pub(super) async fn acquire(&self, condition: Condition) -> Result<Connection<'_>, StoreError> {
        let deadline = self.deadline();
        let permit = match timeout_at(deadline, self.permits.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => {
                let closed = "the store was closed";
                return Err(StoreError::new(
                    StoreErrorKind::Closed,
                    self.place.clone(),
                    closed,
                ));
            }
            Err(_) => return Err(self.all_in_use()),
        };
        let mut last_error = None;
        let connection = timeout_at(deadline, self.idle_or_new(condition, &mut last_error)).await;
        let connection = match connection {
            Ok(Ok(connection)) => connection,
            Ok(Err(error)) => return Err(error::convert(error, &self.place)),
            Err(_) => return Err(self.no_connection(last_error)),
        };
        Ok(Connection {
            pool: self,
            connection,
            _permit: permit,
        })
    }

    async fn idle_or_new(
        &self,
        condition: Condition,
        last_error: &mut Option<sqlx::Error>,
    ) -> Result<PgConnection, sqlx::Error> {
        loop {
            let Some(mut connection) = self.idle().pop() else {
                break;
            };
            if condition == Condition::Any || connection.ping().await.is_ok() {
                return Ok(connection);
            }
        }
        let mut delay = Duration::from_millis(10);
        loop {
            match self.connect().await {
                Ok(connection) => return Ok(connection),
                Err(error) if is_connection_lost(&error) || is_starting(&error) => {
                    *last_error = Some(error);
                }
                Err(error) => return Err(error),
            }
            sleep(delay).await;
            delay = (delay * 2).min(MAX_DELAY);
        }
    }

    async fn connect(&self) -> Result<PgConnection, sqlx::Error> {
        let mut connection = self.connect.connect().await?;
        // The statements rely on seeing what others have committed while they waited for a lock.
        let settings = format!(
            "SET statement_timeout = {}; SET default_transaction_isolation = 'read committed'",
            self.settings
                .statement_timeout
                .as_millis()
                .clamp(1, i32::MAX as u128)
        );
        connection
            .execute(sqlx::raw_sql(AssertSqlSafe(settings)))
            .await?;
        Ok(connection)
    }

    /// Waits until no connection is in use, and closes all.
    pub(super) async fn close(&self) {
        let all = self
            .permits
            .acquire_many(self.settings.max_connections)
            .await;
        self.permits.close();
        drop(all);
        let idle = std::mem::take(&mut *self.idle());
        for connection in idle {
            // The server notices by itself where this fails.
            let _ = connection.close().await;
        }
    }

    fn idle(&self) -> std::sync::MutexGuard<'_, Vec<PgConnection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.settings.connect_timeout
    }

    /// The error for a server that did not answer in time.
    fn no_connection(&self, last_error: Option<sqlx::Error>) -> StoreError {
        if let Some(error) = last_error {
            return error::convert(error, &self.place);
        }
        let seconds = self.settings.connect_timeout.as_secs_f32();
        let message = format!("the server did not answer within {seconds} s");
        StoreError::new(StoreErrorKind::Unreachable, self.place.clone(), message)
    }

    /// The error for a call that has waited in vain for other calls.
    fn all_in_use(&self) -> StoreError {
        let message = format!(
            "all {} connections were in use for {} s; if the server is not slow, allow more with \
             PostgresOptions::max_connections",
            self.settings.max_connections,
            self.settings.connect_timeout.as_secs_f32()
        );
        StoreError::new(StoreErrorKind::Busy, self.place.clone(), message)
    }
}

impl Connection<'_> {
    pub(super) fn get(&mut self) -> &mut PgConnection {
        &mut self.connection
    }

    /// Gives the connection back, for others to use.
    pub(super) fn release(self) {
        self.pool.idle().push(self.connection);
    }
}
