//! Conversations in PostgreSQL.

mod error;
mod pool;
mod rows;
mod schema;
mod statements;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::postgres::{PgArguments, PgConnectOptions, PgConnection, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{Connection as _, Row};
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, Expected, Found, Head, ListQuery, Revision, now,
    to_millis,
};
use tokio::time::timeout_at;

use self::error::{convert, is_connection_lost, no_answer};
use self::pool::{Condition, Connection, Pool, Settings};
use self::rows::{escaped, stored_position};
use self::schema::Migrated;
use self::statements::Statements;
use crate::abandoned::Abandoned;
use crate::error::{Place, StoreError, StoreErrorKind};

/// The longest name of a conversation, in bytes. An index of PostgreSQL cannot hold much more.
const MAX_NAME: usize = 2_000;

/// The longest lease. It is far beyond the life of a run, and small enough to be added to any time.
const MAX_LEASE: Duration = Duration::from_secs(60 * 60 * 24 * 365);

/// Conversations in PostgreSQL. Clones share the same connections.
///
/// The tables are in a schema of their own, `switchboard`, and are created and updated when the store is
/// opened; programs that start at the same time wait for each other. A commit is one statement, and
/// with that one round trip and one transaction.
///
/// A connection that was lost is replaced, and the statement is run again: a commit of a run at most
/// once more, and it is stored once. Calls wait for a server that restarts; see
/// [`PostgresOptions::connect_timeout`].
///
/// # Panics
/// The methods panic outside of a Tokio runtime.
///
/// ```no_run
/// use switchboard_core::conversation::Conversations;
/// use switchboard_sessions::PostgresStore;
///
/// # async fn example() -> Result<(), switchboard_core::callback::BoxError> {
/// let store = PostgresStore::open("postgres://app:secret@db.example.com/app").await?;
/// let conversations = Conversations::new(store);
/// let session = conversations.get("customer-42");
/// assert_eq!(session.agent().await?, None);
/// conversations.close().await;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct PostgresStore(Arc<Inner>);

struct Inner {
    pool: Pool,
    statements: Statements,
    abandoned: Abandoned,
}

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
        let database = connect.get_database().unwrap_or_else(|| connect.get_username());
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
                return Err(StoreError::new(StoreErrorKind::Newer, pool.place().clone(), message));
            }
        }
        Ok(PostgresStore(Arc::new(Inner {
            pool,
            statements: Statements::new(&self.schema),
            abandoned: Abandoned::new(),
        })))
    }
}

async fn prepare(
    connection: &mut PgConnection,
    schema: &str,
    place: &Place,
) -> Result<Migrated, StoreError> {
    let encoding = sqlx::query("SHOW server_encoding").fetch_one(&mut *connection).await;
    let encoding: String = encoding
        .and_then(|row| row.try_get(0))
        .map_err(|error| convert(error, place))?;
    if encoding != "UTF8" {
        let message = format!(
            "the database stores text as {encoding}, which has no place for all characters; create \
             it with `ENCODING 'UTF8'`"
        );
        return Err(StoreError::new(StoreErrorKind::Address, place.clone(), message));
    }
    let migrated = schema::migrate(connection, schema).await;
    migrated.map_err(|error| convert(error, place))
}

impl PostgresStore {
    /// Connects with the usual [`PostgresOptions`], and creates or updates the tables.
    ///
    /// # Errors
    /// As [`PostgresOptions::open`].
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        PostgresOptions::new(address)?.open().await
    }
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("PostgresStore").field(self.0.pool.place()).finish()
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

/// The error of one attempt.
enum Failure {
    /// The connection was lost while the statement ran.
    Lost(sqlx::Error),
    Other(StoreError),
}

impl Inner {
    /// Returns the rows of a statement, which is run again on another connection if one is lost.
    async fn rows<'q>(
        &self,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        self.abandoned.settled().await;
        let mut condition = Condition::Any;
        loop {
            let mut connection = self.pool.acquire(condition).await?;
            let rows = self.in_time(query().fetch_all(connection.get())).await;
            match self.finished(connection, rows) {
                Err(Failure::Lost(_)) if condition == Condition::Any => {
                    condition = Condition::Checked;
                }
                rows => return rows.map_err(|failure| self.error(failure)),
            }
        }
    }

    async fn in_time<T>(
        &self,
        statement: impl Future<Output = Result<T, sqlx::Error>>,
    ) -> Result<T, sqlx::Error> {
        let done = timeout_at(self.pool.statement_deadline(), statement).await;
        done.unwrap_or_else(|_| Err(no_answer()))
    }

    /// Gives back the connection of a statement, unless it cannot be used further.
    fn finished<T>(
        &self,
        connection: Connection<'_>,
        done: Result<T, sqlx::Error>,
    ) -> Result<T, Failure> {
        match done {
            Ok(done) => {
                connection.release();
                Ok(done)
            }
            Err(error) if is_connection_lost(&error) => Err(Failure::Lost(error)),
            Err(error) => Err(Failure::Other(convert(error, self.pool.place()))),
        }
    }

    fn error(&self, failure: Failure) -> StoreError {
        match failure {
            Failure::Lost(error) => convert(error, self.pool.place()),
            Failure::Other(error) => error,
        }
    }

    async fn commit(&self, id: &str, commit: &Commit) -> Result<Committed, StoreError> {
        let name = self.name(id)?;
        let mut connection = self.pool.acquire(Condition::Any).await?;
        let done = self.commit_once(connection.get(), &name, commit);
        let done = self.in_time(done).await;
        let lost = match self.finished(connection, done) {
            Err(Failure::Lost(error)) => error,
            done => return done.map_err(|failure| self.error(failure)),
        };
        if commit.number == 0 && commit.expected == Expected::Any {
            return Err(self.unknown_outcome(lost));
        }
        let connection = self.pool.acquire(Condition::Checked).await;
        let mut connection = connection.map_err(|error| self.unknown_outcome(error))?;
        let done = self.commit_again(connection.get(), &name, commit);
        let done = self.in_time(done).await;
        match self.finished(connection, done) {
            // Another writer was faster, or the first attempt was stored.
            Ok(Committed::Conflict) if commit.number == 0 => Err(self.unknown_outcome(lost)),
            done => done.map_err(|failure| self.unknown_outcome(self.error(failure))),
        }
    }

    async fn commit_once(
        &self,
        connection: &mut PgConnection,
        name: &str,
        commit: &Commit,
    ) -> Result<Committed, sqlx::Error> {
        if let Some(revision) = self.append(connection, name, commit).await? {
            return Ok(Committed::At(revision));
        }
        let stored = self.same_commit(connection, name, commit).await?;
        Ok(stored.map_or(Committed::Conflict, Committed::At))
    }

    /// Makes a commit that may be stored already.
    async fn commit_again(
        &self,
        connection: &mut PgConnection,
        name: &str,
        commit: &Commit,
    ) -> Result<Committed, sqlx::Error> {
        if commit.expected != Expected::Any {
            return self.commit_once(connection, name, commit).await;
        }
        // The lock waits for a first attempt that the server has not finished.
        let mut transaction = connection.begin().await?;
        sqlx::query(self.statements.lock.sql())
            .bind(name)
            .execute(&mut *transaction)
            .await?;
        if let Some(revision) = self.same_commit(&mut transaction, name, commit).await? {
            return Ok(Committed::At(revision));
        }
        let done = self.commit_once(&mut transaction, name, commit).await?;
        transaction.commit().await?;
        Ok(done)
    }

    /// Appends the entries if the conversation is as expected.
    async fn append(
        &self,
        connection: &mut PgConnection,
        name: &str,
        commit: &Commit,
    ) -> Result<Option<Revision>, sqlx::Error> {
        let new_epoch = || Revision::of_new_conversation().epoch;
        let (statement, epoch, next) = match commit.expected {
            Expected::At(revision) => (
                &self.statements.commit_at,
                revision.epoch,
                Some(stored_position(revision.next)),
            ),
            Expected::New => (&self.statements.commit_new, new_epoch(), None),
            _ => (&self.statements.commit_any, new_epoch(), None),
        };
        let entries = &commit.entries;
        let agent = commit.agent.as_ref();
        let row = sqlx::query(statement.sql())
            .bind(name)
            .bind(entries.len() as i64)
            .bind(commit.state_index().map(|index| index as i64))
            .bind(agent.is_some())
            .bind(agent.and_then(|agent| agent.as_deref()).map(escaped))
            .bind(commit.details.as_deref())
            .bind(commit.expires.is_some())
            .bind(commit.expires.flatten().map(to_millis))
            .bind(to_millis(commit.time))
            .bind(stored_position(epoch))
            .bind(next)
            .bind(column(entries, |entry| escaped(&entry.run)))
            .bind(column(entries, |entry| i64::from(entry.turn)))
            .bind(column(entries, |entry| i64::from(entry.commit)))
            .bind(column(entries, |entry| entry.agent.as_deref().map(escaped)))
            .bind(column(entries, |entry| to_millis(entry.time)))
            .bind(column(entries, |entry| entry.content.kind()))
            .bind(column(entries, |entry| entry.content.as_json()))
            .bind(column(entries, |entry| {
                entry.content.searchable_text().map(|text| rows::searched(&text))
            }))
            .fetch_optional(connection)
            .await?;
        row.map(|row| rows::revision(&row)).transpose()
    }

    /// The revision of a conversation that has the entries of this commit.
    async fn same_commit(
        &self,
        connection: &mut PgConnection,
        name: &str,
        commit: &Commit,
    ) -> Result<Option<Revision>, sqlx::Error> {
        if commit.number == 0 {
            return Ok(None);
        }
        let (epoch, from) = match commit.expected {
            Expected::At(revision) => (Some(stored_position(revision.epoch)), revision.next),
            _ => (None, 0),
        };
        let row = sqlx::query(self.statements.same_commit.sql())
            .bind(name)
            .bind(epoch)
            .bind(stored_position(from))
            .bind(escaped(&commit.run))
            .bind(i64::from(commit.number))
            .fetch_optional(connection)
            .await?;
        row.map(|row| rows::revision(&row)).transpose()
    }

    async fn clear(&self, connection: &mut PgConnection, name: &str) -> Result<(), sqlx::Error> {
        let mut transaction = connection.begin().await?;
        let head = sqlx::query(self.statements.clear_head.sql())
            .bind(name)
            .bind(to_millis(now()))
            .fetch_optional(&mut *transaction)
            .await?;
        if let Some(head) = head {
            // A statement of its own sees the entries of a commit that the first one waited for.
            sqlx::query(self.statements.clear_entries.sql())
                .bind(head.try_get::<i64, _>("key")?)
                .bind(head.try_get::<i64, _>("next")?)
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await
    }

    fn unknown_outcome(&self, cause: impl Into<BoxError>) -> StoreError {
        let cause = cause.into();
        let message = format!("the connection was lost during a commit ({cause})");
        StoreError::new(StoreErrorKind::UnknownOutcome, self.pool.place().clone(), message)
            .caused_by(cause)
    }

    /// The name of a conversation as it is stored.
    fn name<'a>(&self, id: &'a str) -> Result<std::borrow::Cow<'a, str>, StoreError> {
        let name = escaped(id);
        if name.len() > MAX_NAME {
            let message = format!(
                "the name of a conversation has {} bytes, and PostgreSQL can have {MAX_NAME}",
                name.len()
            );
            return Err(StoreError::new(StoreErrorKind::Name, self.pool.place().clone(), message));
        }
        Ok(name)
    }
}

fn column<'a, T>(entries: &'a [Entry], value: impl Fn(&'a Entry) -> T) -> Vec<T> {
    entries.iter().map(value).collect()
}

impl ConversationStore for PostgresStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        let inner = &self.0;
        let name = inner.name(id)?;
        let query = || sqlx::query(inner.statements.head.sql()).bind(&*name);
        let rows = inner.rows(query).await;
        let rows = rows.map_err(|error| error.in_conversation(id))?;
        let head = rows.first().map(|row| rows::head(row)).transpose();
        Ok(head.map_err(|error| convert(error, inner.pool.place()))?)
    }

    async fn read(&self, id: &str, positions: Range<u64>) -> Result<Vec<Entry>, BoxError> {
        let inner = &self.0;
        let name = inner.name(id)?;
        let query = || {
            sqlx::query(inner.statements.read.sql())
                .bind(&*name)
                .bind(stored_position(positions.start))
                .bind(stored_position(positions.end))
        };
        let rows = inner.rows(query).await;
        let rows = rows.map_err(|error| error.in_conversation(id))?;
        let entries = rows.iter().map(|row| rows::entry(row, id, inner.pool.place()));
        Ok(entries.collect::<Result<_, _>>()?)
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        self.0.abandoned.settled().await;
        let (inner, name): (_, Arc<str>) = (self.0.clone(), id.into());
        let (caller, running) = self.0.abandoned.begin();
        // A task of its own goes on when the caller does not: a statement that was sent is awaited.
        let task = tokio::spawn(async move {
            let committed = inner.commit(&name, &commit).await;
            drop(running);
            committed
        });
        let committed = task.await;
        drop(caller);
        match committed {
            Ok(committed) => Ok(committed.map_err(|error| error.in_conversation(id))?),
            Err(error) => Err(self.0.unknown_outcome(error).in_conversation(id).into()),
        }
    }

    async fn clear(&self, id: &str) -> Result<(), BoxError> {
        let inner = &self.0;
        let name = inner.name(id)?;
        inner.abandoned.settled().await;
        let mut condition = Condition::Any;
        loop {
            let mut connection = inner.pool.acquire(condition).await?;
            let cleared = inner.clear(connection.get(), &name);
            let cleared = inner.in_time(cleared).await;
            match inner.finished(connection, cleared) {
                Err(Failure::Lost(_)) if condition == Condition::Any => {
                    condition = Condition::Checked;
                }
                cleared => {
                    let cleared = cleared.map_err(|failure| inner.error(failure));
                    return Ok(cleared.map_err(|error| error.in_conversation(id))?);
                }
            }
        }
    }

    async fn delete(&self, id: &str) -> Result<bool, BoxError> {
        let inner = &self.0;
        let name = inner.name(id)?;
        let query = || sqlx::query(inner.statements.delete.sql()).bind(&*name);
        let deleted = inner.rows(query).await;
        let deleted = deleted.map_err(|error| error.in_conversation(id))?;
        Ok(!deleted.is_empty())
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        let inner = &self.0;
        let limit = query.limit.map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let query = || {
            sqlx::query(inner.statements.list.sql())
                .bind(query.changed_before.map(to_millis))
                .bind(query.expired_before.map(to_millis))
                .bind(limit)
        };
        let rows = inner.rows(query).await?;
        let heads: Result<_, _> = rows.iter().map(rows::head).collect();
        Ok(heads.map_err(|error| convert(error, inner.pool.place()))?)
    }

    async fn search(&self, text: &str, limit: usize) -> Result<Vec<Found>, BoxError> {
        let inner = &self.0;
        let pattern = rows::pattern(text);
        let query = || {
            sqlx::query(inner.statements.search.sql())
                .bind(&*pattern)
                .bind(i64::try_from(limit).unwrap_or(i64::MAX))
        };
        let rows = inner.rows(query).await?;
        let place = inner.pool.place();
        let found = rows.iter().map(|row| {
            let id = rows::conversation(row).map_err(|error| convert(error, place))?;
            let entry = rows::entry(row, &id, place)?;
            Ok::<_, StoreError>(Found::new(id, entry))
        });
        Ok(found.collect::<Result<_, _>>()?)
    }

    async fn lease(&self, id: &str, owner: &str, time: Duration) -> Result<bool, BoxError> {
        let inner = &self.0;
        let (name, owner) = (inner.name(id)?, escaped(owner));
        let millis = time.min(MAX_LEASE).as_secs_f64() * 1_000.0;
        let query = || {
            let query = sqlx::query(inner.statements.lease.sql());
            query.bind(&*name).bind(&*owner).bind(millis)
        };
        let taken = inner.rows(query).await;
        let taken = taken.map_err(|error| error.in_conversation(id))?;
        Ok(!taken.is_empty())
    }

    async fn release(&self, id: &str, owner: &str) -> Result<(), BoxError> {
        let inner = &self.0;
        let (name, owner) = (inner.name(id)?, escaped(owner));
        let query = || {
            let query = sqlx::query(inner.statements.release.sql());
            query.bind(&*name).bind(&*owner)
        };
        let released = inner.rows(query).await;
        released.map_err(|error| error.in_conversation(id))?;
        Ok(())
    }

    async fn close(&self) {
        self.0.abandoned.settled().await;
        self.0.pool.close().await;
    }
}
