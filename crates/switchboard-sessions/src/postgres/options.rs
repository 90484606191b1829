//! The options of a store in PostgreSQL.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::{PgConnectOptions, PgConnection};

use super::error::convert;
use super::pool::{Condition, Pool, Settings};
use super::schema::{self, Migrated};
use super::statements::Statements;
use super::{Inner, PostgresStore};
use crate::abandoned::Abandoned;
use crate::error::{Place, StoreError, StoreErrorKind};

/// The options of a [`PostgresStore`].
///
/// ```no_run
/// use std::time::Duration;
/// use switchboard_sessions::PostgresOptions;
///
/// # async fn example() -> Result<(), switchboard_sessions::StoreError> {
/// let store = PostgresOptions::new("postgres://app:secret@db.example.com/app?sslmode=verify-full")?
///     .schema("support_chats")
///     .max_connections(30)
///     .statement_timeout(Duration::from_secs(5))
///     .open()
///     .await?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresOptions {
    connect: PgConnectOptions,
    place: Place,
    schema: String,
    settings: Settings,
}

impl PostgresOptions {
    /// Creates the options for a server, given as `postgres://user:password@host:port/database`. The
    /// parameters `sslmode`, `sslrootcert`, `sslcert`, `sslkey`, `application_name` and `options` are
    /// those of PostgreSQL's own programs, and so are the environment variables `PGHOST`, `PGPORT`,
    /// `PGUSER`, `PGPASSWORD`, `PGDATABASE` and `PGSSLMODE` for what the address leaves out.
    ///
    /// # Errors
    /// Returns an error if the address is invalid.
    pub fn new(address: &str) -> Result<Self, StoreError> {
        let connect = PgConnectOptions::from_str(address)
            .map_err(|error| convert(error, &Place::Server("PostgreSQL".into())))?;
        let host = match connect.get_socket() {
            Some(socket) => socket.display().to_string(),
            None => format!("{}:{}", connect.get_host(), connect.get_port()),
        };
        let database = connect
            .get_database()
            .unwrap_or_else(|| connect.get_username());
        let place = Place::Server(format!("postgres://{host}/{database}"));
        Ok(Self {
            connect,
            place,
            schema: "switchboard".to_owned(),
            settings: Settings {
                max_connections: 10,
                connect_timeout: Duration::from_secs(10),
                statement_timeout: Duration::from_secs(30),
            },
        })
    }

    /// Sets the schema of the tables (`switchboard`). It is created if it does not exist. Stores with
    /// different schemas have nothing in common.
    #[must_use]
    pub fn schema(mut self, schema: impl Into<String>) -> Self {
        self.schema = schema.into();
        self
    }

    /// Sets the number of connections at one time (10). Further calls wait.
    #[must_use]
    pub fn max_connections(mut self, connections: u32) -> Self {
        self.settings.max_connections = connections.max(1);
        self
    }

    /// Sets the time that a call waits for a connection (10 s), also while the server restarts.
    #[must_use]
    pub fn connect_timeout(mut self, timeout: Duration) -> Self {
        self.settings.connect_timeout = timeout;
        self
    }

    /// Sets the time after which the server cancels a statement (30 s).
    #[must_use]
    pub fn statement_timeout(mut self, timeout: Duration) -> Self {
        self.settings.statement_timeout = timeout;
        self
    }

    /// Connects, and creates or updates the tables.
    ///
    /// # Errors
    /// Returns an error if the server cannot be reached or denies access, if the database does not use
    /// UTF-8, or if the tables were made by a later version. These are left as they are.
    pub async fn open(self) -> Result<PostgresStore, StoreError> {
        let pool = Pool::open(self.connect, self.settings, self.place).await?;
        let mut connection = pool.acquire(Condition::Any).await?;
        let prepared = prepare(connection.get(), &self.schema, pool.place()).await?;
        match prepared {
            Migrated::Current => connection.release(),
            Migrated::Newer(version) => {
                let message = format!(
                    "the tables in schema {:?} are of version {version}, which is later than this \
                     program knows",
                    self.schema
                );
                return Err(StoreError::new(
                    StoreErrorKind::Newer,
                    pool.place().clone(),
                    message,
                ));
            }
        }
        Ok(PostgresStore(Arc::new(Inner {
            pool,
            statements: Statements::new(&self.schema),
            abandoned: Abandoned::default(),
        })))
    }
}

impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("place", &self.place)
            .field("schema", &self.schema)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

async fn prepare(
    connection: &mut PgConnection,
    schema: &str,
    place: &Place,
) -> Result<Migrated, StoreError> {
    let encoding = sqlx::query("SHOW server_encoding")
        .fetch_one(&mut *connection)
        .await;
    let encoding: String = encoding
        .and_then(|row| row.try_get(0))
        .map_err(|error| convert(error, place))?;
    if encoding != "UTF8" {
        let message = format!(
            "the database stores text as {encoding}, which has no place for all characters; create \
             it with `ENCODING 'UTF8'`"
        );
        return Err(StoreError::new(
            StoreErrorKind::Address,
            place.clone(),
            message,
        ));
    }
    let migrated = schema::migrate(connection, schema).await;
    migrated.map_err(|error| convert(error, place))
}
