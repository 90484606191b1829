//! One conversation in the file.

use std::fmt;
use std::sync::Arc;

use futures_util::TryStreamExt;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Row, query, query_scalar};
use switchboard_core::{BoxError, Item, Items, Session};

use super::{SqliteSessions, now};
use crate::error::{SessionError, SessionErrorKind};

/// A conversation in the file of [`SqliteSessions`], to give to a run. A cheap handle: clones, and
/// all handles of one name, are the same session.
///
/// ```
/// use switchboard_core::{Item, Session};
/// use switchboard_sessions::SqliteSessions;
///
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("conversations.db");
/// # let sessions = SqliteSessions::open(path).await?;
/// let session = sessions.session("customer-42");
/// session.append(&[Item::user("Hi"), Item::assistant("Hello!")]).await?;
///
/// let latest = session.load(Some(1)).await?;
/// assert_eq!(latest.last(), Some(&Item::assistant("Hello!")));
/// # sessions.close().await;
/// # Ok::<(), switchboard_core::BoxError>(())
/// # })?;
/// # Ok::<(), switchboard_core::BoxError>(())
/// ```
#[derive(Clone)]
pub struct SqliteSession {
    sessions: SqliteSessions,
    name: Arc<str>,
}

impl SqliteSession {
    pub(super) fn new(sessions: SqliteSessions, name: Arc<str>) -> Self {
        Self { sessions, name }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The agent that had the conversation last, as noted with [`SqliteSession::set_agent`].
    ///
    /// A run starts with the agent it is given; this is for giving it the one that the user was
    /// talking to:
    ///
    /// ```
    /// use switchboard_core::testing::ScriptedModel;
    /// use switchboard_core::{Agent, Runner, Team};
    /// use switchboard_sessions::SqliteSessions;
    ///
    /// # tokio::runtime::Runtime::new()?.block_on(async {
    /// # let folder = tempfile::tempdir()?;
    /// # let path = folder.path().join("conversations.db");
    /// # let sessions = SqliteSessions::open(path).await?;
    /// # let model = ScriptedModel::new().call("transfer_to_billing", "{}").say("Which bill?").say("Mended.");
    /// let team: Team = Team::new()
    ///     .agent(Agent::new("Triage").handoff("Billing"))
    ///     .agent(Agent::new("Billing").handoff("Triage"))
    ///     .build()?;
    /// let session = sessions.session("customer-42");
    ///
    /// for words in ["My bill is wrong", "The last one"] {
    ///     let agent = session.agent().await?;
    ///     let agent = agent.and_then(|name| team.get(&name)).unwrap_or(&team["Triage"]);
    ///     let result = Runner::new(agent).model(model.clone()).session(&session).run(words).await?;
    ///     session.set_agent(result.last_agent().name()).await?;
    /// }
    /// assert_eq!(session.agent().await?.as_deref(), Some("Billing"));
    /// # sessions.close().await;
    /// # Ok::<(), switchboard_core::BoxError>(())
    /// # })?;
    /// # Ok::<(), switchboard_core::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// Where the file cannot be read.
    pub async fn agent(&self) -> Result<Option<String>, SessionError> {
        let agent = query_scalar("SELECT agent FROM session WHERE name = ?").bind(&*self.name);
        let agent = agent.fetch_optional(self.sessions.readers()).await;
        agent
            .map(Option::flatten)
            .map_err(|error| self.failed(error))
    }

    /// Notes which agent has the conversation, until the session is cleared.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub async fn set_agent(&self, name: &str) -> Result<(), SessionError> {
        let noted = query(
            "INSERT INTO session (name, agent, created, changed) VALUES (?1, ?2, ?3, ?3) \
             ON CONFLICT (name) DO UPDATE SET agent = ?2, changed = ?3",
        );
        let noted = noted.bind(&*self.name).bind(name).bind(now());
        match noted.execute(self.sessions.writer()).await {
            Ok(_) => Ok(()),
            Err(error) => Err(self.failed(error)),
        }
    }

    async fn append_all(&self, items: &[Item]) -> Result<(), sqlx::Error> {
        let mut transaction = self.sessions.begin().await?;
        let session = self.begun(&mut transaction).await?;
        let next = "SELECT coalesce(max(position) + 1, 0) FROM item WHERE session = ?";
        let next: i64 = query_scalar(next)
            .bind(session)
            .fetch_one(&mut *transaction)
            .await?;
        for (position, item) in (next..).zip(items) {
            query("INSERT INTO item (session, position, json) VALUES (?, ?, ?)")
                .bind(session)
                .bind(position)
                .bind(item.as_json())
                .execute(&mut *transaction)
                .await?;
        }
        transaction.commit().await
    }

    /// The row of the session, made where there is none.
    async fn begun(&self, connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
        let begun = query_scalar(
            "INSERT INTO session (name, created, changed) VALUES (?1, ?2, ?2) \
             ON CONFLICT (name) DO UPDATE SET changed = ?2 RETURNING id",
        );
        begun
            .bind(&*self.name)
            .bind(now())
            .fetch_one(connection)
            .await
    }

    async fn pop_last(&self) -> Result<Option<Item>, SessionError> {
        let failed = |error| self.failed(error);
        let mut transaction = self.sessions.begin().await.map_err(failed)?;
        let last = query(
            "SELECT item.rowid, position, json, session FROM item \
             WHERE session = (SELECT id FROM session WHERE name = ?) \
             ORDER BY position DESC LIMIT 1",
        );
        let last = last.bind(&*self.name).fetch_optional(&mut *transaction);
        let Some(row) = last.await.map_err(failed)? else {
            return Ok(None);
        };
        // Read before it is taken out: an item that cannot be read stays.
        let item = self.item(&row)?;
        let rowid: i64 = row.try_get("rowid").map_err(failed)?;
        let session: i64 = row.try_get("session").map_err(failed)?;
        let taken = query("DELETE FROM item WHERE rowid = ?").bind(rowid);
        taken.execute(&mut *transaction).await.map_err(failed)?;
        let changed = query("UPDATE session SET changed = ? WHERE id = ?");
        let changed = changed.bind(now()).bind(session);
        changed.execute(&mut *transaction).await.map_err(failed)?;
        transaction.commit().await.map_err(failed)?;
        Ok(Some(item))
    }

    async fn clear_all(&self) -> Result<(), sqlx::Error> {
        let mut transaction = self.sessions.begin().await?;
        query("DELETE FROM item WHERE session = (SELECT id FROM session WHERE name = ?)")
            .bind(&*self.name)
            .execute(&mut *transaction)
            .await?;
        query("UPDATE session SET agent = NULL, changed = ? WHERE name = ?")
            .bind(now())
            .bind(&*self.name)
            .execute(&mut *transaction)
            .await?;
        transaction.commit().await
    }

    /// The item of a row with its `position` and its `json`.
    fn item(&self, row: &SqliteRow) -> Result<Item, SessionError> {
        let unreadable = |error: BoxError| {
            let message = "this is not an item (an item is one JSON object)";
            SessionError::new(SessionErrorKind::Item, self.sessions.path(), message)
                .in_session(&self.name)
                .at_position(row.try_get("position").unwrap_or(-1))
                .caused_by(error)
        };
        let json: String = row.try_get("json").map_err(|e| unreadable(e.into()))?;
        Item::from_json(json).map_err(|e| unreadable(e.into()))
    }

    fn failed(&self, error: sqlx::Error) -> SessionError {
        self.sessions.failed(error).in_session(&self.name)
    }
}

impl Session for SqliteSession {
    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        // SQLite takes a negative limit for none.
        let limit = limit.map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        let mut rows = query(
            "SELECT position, json FROM item \
             WHERE session = (SELECT id FROM session WHERE name = ?) \
             ORDER BY position DESC LIMIT ?",
        )
        .bind(&*self.name)
        .bind(limit)
        .fetch(self.sessions.readers());
        let mut items = Vec::new();
        while let Some(row) = rows.try_next().await.map_err(|error| self.failed(error))? {
            items.push(self.item(&row)?);
        }
        items.reverse();
        Ok(items.into())
    }

    async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        if items.is_empty() {
            return Ok(());
        }
        let appended = self.append_all(items).await;
        Ok(appended.map_err(|error| self.failed(error))?)
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        Ok(self.pop_last().await?)
    }

    async fn clear(&self) -> Result<(), BoxError> {
        let cleared = self.clear_all().await;
        Ok(cleared.map_err(|error| self.failed(error))?)
    }
}

impl fmt::Debug for SqliteSession {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SqliteSession")
            .field("sessions", &self.sessions)
            .field("name", &self.name)
            .finish()
    }
}
