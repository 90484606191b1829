//! Conversations in PostgreSQL.

mod commits;
mod error;
mod options;
mod pool;
mod rows;
mod schema;
mod statements;

use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use sqlx::postgres::{PgArguments, PgConnection, PgRow, Postgres};
use sqlx::query::Query;
use sqlx::{Connection as _, Row};
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{
    Commit, Committed, ConversationStore, Entry, Found, Head, ListQuery, Listed, Revision,
    SearchQuery, now, to_millis,
};
use tokio::time::timeout_at;

pub use self::options::PostgresOptions;

use self::error::{convert, is_connection_lost, no_answer};
use self::pool::{Condition, Connection, Pool};
use self::rows::{escaped, stored_position};
use self::statements::Statements;
use crate::abandoned::Abandoned;
use crate::error::{StoreError, StoreErrorKind};

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
        f.debug_tuple("PostgresStore")
            .field(self.0.pool.place())
            .finish()
    }
}

/// The error of one attempt.
enum Failure {
    /// The connection was lost while the statement ran.
    Lost(sqlx::Error),
    Other(StoreError),
}

impl Inner {
    /// Returns the rows of a statement about one conversation or all, which is run again on another
    /// connection if one is lost.
    async fn rows<'q>(
        &self,
        id: Option<&str>,
        query: impl Fn() -> Query<'q, Postgres, PgArguments>,
    ) -> Result<Vec<PgRow>, StoreError> {
        self.abandoned.settled(id).await;
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

    async fn clear(&self, connection: &mut PgConnection, name: &str) -> Result<(), sqlx::Error> {
        let mut transaction = connection.begin().await?;
        let head = sqlx::query(self.statements.clear_head.sql())
            .bind(name)
            .bind(to_millis(now()))
            .bind(i64::try_from(Revision::of_new_conversation().epoch).unwrap_or(1))
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

    /// The name of a conversation as it is stored.
    fn name<'a>(&self, id: &'a str) -> Result<std::borrow::Cow<'a, str>, StoreError> {
        let name = escaped(id);
        if name.len() > MAX_NAME {
            let message = format!(
                "the name of a conversation has {} bytes, and PostgreSQL can have {MAX_NAME}",
                name.len()
            );
            return Err(StoreError::new(
                StoreErrorKind::Name,
                self.pool.place().clone(),
                message,
            ));
        }
        Ok(name)
    }
}

impl ConversationStore for PostgresStore {
    async fn head(&self, id: &str) -> Result<Option<Head>, BoxError> {
        let inner = &self.0;
        let name = inner.name(id)?;
        let query = || sqlx::query(inner.statements.head.sql()).bind(&*name);
        let rows = inner.rows(Some(id), query).await;
        let rows = rows.map_err(|error| error.in_conversation(id))?;
        let head = rows.first().map(rows::head).transpose();
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
        let rows = inner.rows(Some(id), query).await;
        let rows = rows.map_err(|error| error.in_conversation(id))?;
        let entries = rows
            .iter()
            .map(|row| rows::entry(row, id, inner.pool.place()));
        Ok(entries.collect::<Result<_, _>>()?)
    }

    async fn commit(&self, id: &str, commit: Commit) -> Result<Committed, BoxError> {
        self.0.abandoned.settled(Some(id)).await;
        let (inner, name): (_, Arc<str>) = (self.0.clone(), id.into());
        let (caller, running) = self.0.abandoned.begin(&name);
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
        inner.abandoned.settled(Some(id)).await;
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
        let deleted = inner.rows(Some(id), query).await;
        let deleted = deleted.map_err(|error| error.in_conversation(id))?;
        Ok(!deleted.is_empty())
    }

    async fn delete_expired(&self, id: &str, time: SystemTime) -> Result<bool, BoxError> {
        let inner = &self.0;
        let name = inner.name(id)?;
        let query = || {
            let query = sqlx::query(inner.statements.delete_expired.sql());
            query.bind(&*name).bind(to_millis(time))
        };
        let deleted = inner.rows(Some(id), query).await;
        let deleted = deleted.map_err(|error| error.in_conversation(id))?;
        Ok(!deleted.is_empty())
    }

    async fn list(&self, query: &ListQuery) -> Result<Vec<Head>, BoxError> {
        let inner = &self.0;
        let limit = query
            .limit
            .map(|limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let folder = query.folder.as_deref().map(escaped);
        let expired_from = query.expired_from.map(to_millis);
        let statement = match (&folder, expired_from) {
            (None, None) => &inner.statements.list,
            (Some(_), None) => &inner.statements.list_folder,
            (None, Some(_)) => &inner.statements.list_by_expiry,
            (Some(_), Some(_)) => &inner.statements.list_folder_by_expiry,
        };
        let query = || {
            let mut listed = sqlx::query(statement.sql())
                .bind(query.changed_before.map(to_millis))
                .bind(query.expired_before.map(to_millis))
                .bind(limit)
                .bind(query.listed == Listed::Journals);
            if let Some(time) = expired_from {
                listed = listed.bind(time);
            }
            match &folder {
                None => listed,
                Some(folder) => listed.bind(&**folder),
            }
        };
        let rows = inner.rows(None, query).await?;
        let heads: Result<_, _> = rows.iter().map(rows::head).collect();
        Ok(heads.map_err(|error| convert(error, inner.pool.place()))?)
    }

    async fn search(&self, query: &SearchQuery) -> Result<Vec<Found>, BoxError> {
        let inner = &self.0;
        let pattern = rows::pattern(&query.text);
        let folder = query.folder.as_deref().map(escaped);
        let statement = match folder {
            None => &inner.statements.search,
            Some(_) => &inner.statements.search_folder,
        };
        let limit = i64::try_from(query.limit).unwrap_or(i64::MAX);
        let query = || {
            let found = sqlx::query(statement.sql()).bind(&*pattern).bind(limit);
            match &folder {
                None => found,
                Some(folder) => found.bind(&**folder),
            }
        };
        let rows = inner.rows(None, query).await?;
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
        let taken = inner.rows(Some(id), query).await;
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
        let released = inner.rows(Some(id), query).await;
        released.map_err(|error| error.in_conversation(id))?;
        Ok(())
    }

    async fn close(&self) {
        self.0.abandoned.settled(None).await;
        self.0.pool.close().await;
    }
}
