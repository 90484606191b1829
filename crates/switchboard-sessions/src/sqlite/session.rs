//! One session in the file.

use std::fmt;
use std::sync::Arc;

use futures_util::TryStreamExt;
use sqlx::sqlite::{SqliteConnection, SqliteRow};
use sqlx::{Row, query, query_scalar};
use switchboard_core::callback::BoxError;
use switchboard_core::items::Items;
use switchboard_core::{Item, Session};

use super::{SqliteSessions, now};
use crate::error::{SessionError, SessionErrorKind};

/// A handle to a conversation in the file of [`SqliteSessions`]. It is cheap to clone, and all handles
/// with one name are the same session.
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
/// # Ok::<(), switchboard_core::callback::BoxError>(())
/// # })?;
/// # Ok::<(), switchboard_core::callback::BoxError>(())
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

    /// The name of the session.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The name of the agent that was set with [`SqliteSession::set_agent`].
    ///
    /// A run starts with the agent of its `Runner`. This lets the next run continue with the agent that
    /// the user last talked to:
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
    /// # Ok::<(), switchboard_core::callback::BoxError>(())
    /// # })?;
    /// # Ok::<(), switchboard_core::callback::BoxError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub async fn agent(&self) -> Result<Option<String>, SessionError> {
        query_scalar("SELECT agent FROM session WHERE name = ?")
            .bind(&*self.name)
            .fetch_optional(self.sessions.readers())
            .await
            .map(Option::flatten)
            .map_err(|error| self.error(error))
    }

    /// Stores the name of the agent that has the conversation, until the session is cleared.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    pub async fn set_agent(&self, name: &str) -> Result<(), SessionError> {
        query(
            "INSERT INTO session (name, agent, created, changed) VALUES (?1, ?2, ?3, ?3) \
             ON CONFLICT (name) DO UPDATE SET agent = ?2, changed = ?3",
        )
        .bind(&*self.name)
        .bind(name)
        .bind(now())
        .execute(self.sessions.writer())
        .await
        .map(drop)
        .map_err(|error| self.error(error))
    }

    async fn append_all(&self, items: &[Item]) -> Result<(), sqlx::Error> {
        let mut transaction = self.sessions.begin().await?;
        let session = self.find_or_insert(&mut transaction).await?;
        let next: i64 =
            query_scalar("SELECT coalesce(max(position) + 1, 0) FROM item WHERE session = ?")
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

    /// Returns the row ID of the session. Inserts the row if there is none.
    async fn find_or_insert(&self, connection: &mut SqliteConnection) -> Result<i64, sqlx::Error> {
        query_scalar(
            "INSERT INTO session (name, created, changed) VALUES (?1, ?2, ?2) \
             ON CONFLICT (name) DO UPDATE SET changed = ?2 RETURNING id",
        )
        .bind(&*self.name)
        .bind(now())
        .fetch_one(connection)
        .await
    }

    async fn pop_last(&self) -> Result<Option<Item>, SessionError> {
        let failed = |error| self.error(error);
        let mut transaction = self.sessions.begin().await.map_err(failed)?;
        let last = query(
            "SELECT item.rowid, position, json, session FROM item \
             WHERE session = (SELECT id FROM session WHERE name = ?) \
             ORDER BY position DESC LIMIT 1",
        )
        .bind(&*self.name)
        .fetch_optional(&mut *transaction)
        .await;
        let Some(row) = last.map_err(failed)? else {
            return Ok(None);
        };
        // Parsed before it is deleted: an item that cannot be read stays.
        let item = self.parse_item(&row)?;
        let rowid: i64 = row.try_get("rowid").map_err(failed)?;
        let session: i64 = row.try_get("session").map_err(failed)?;
        query("DELETE FROM item WHERE rowid = ?")
            .bind(rowid)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
        query("UPDATE session SET changed = ? WHERE id = ?")
            .bind(now())
            .bind(session)
            .execute(&mut *transaction)
            .await
            .map_err(failed)?;
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

    /// Parses the item of a row that has a `position` and a `json`.
    fn parse_item(&self, row: &SqliteRow) -> Result<Item, SessionError> {
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

    fn error(&self, error: sqlx::Error) -> SessionError {
        self.sessions.error(error).in_session(&self.name)
    }
}

impl Session for SqliteSession {
    fn id(&self) -> Option<&str> {
        Some(&self.name)
    }

    async fn load(&self, limit: Option<usize>) -> Result<Items, BoxError> {
        // To SQLite, a negative limit is none.
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
        while let Some(row) = rows.try_next().await.map_err(|error| self.error(error))? {
            items.push(self.parse_item(&row)?);
        }
        items.reverse();
        Ok(items.into())
    }

    async fn append(&self, items: &[Item]) -> Result<(), BoxError> {
        if items.is_empty() {
            return Ok(());
        }
        let appended = self.append_all(items).await;
        Ok(appended.map_err(|error| self.error(error))?)
    }

    async fn pop(&self) -> Result<Option<Item>, BoxError> {
        Ok(self.pop_last().await?)
    }

    async fn clear(&self) -> Result<(), BoxError> {
        let cleared = self.clear_all().await;
        Ok(cleared.map_err(|error| self.error(error))?)
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
