//! Commits, and their repetition when an answer is lost.

use sqlx::Connection as _;
use sqlx::postgres::PgConnection;
use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{Commit, Committed, Entry, Expected, Revision, to_millis};

use super::pool::Condition;
use super::rows::{self, escaped, stored_position};
use super::{Failure, Inner};
use crate::error::{StoreError, StoreErrorKind};

impl Inner {
    pub(super) async fn commit(&self, id: &str, commit: &Commit) -> Result<Committed, StoreError> {
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
                entry
                    .content
                    .searchable_text()
                    .map(|text| rows::searched(&text))
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

    pub(super) fn unknown_outcome(&self, cause: impl Into<BoxError>) -> StoreError {
        let cause = cause.into();
        let message = format!("the connection was lost during a commit ({cause})");
        StoreError::new(
            StoreErrorKind::UnknownOutcome,
            self.pool.place().clone(),
            message,
        )
        .caused_by(cause)
    }
}

fn column<'a, T>(entries: &'a [Entry], value: impl Fn(&'a Entry) -> T) -> Vec<T> {
    entries.iter().map(value).collect()
}
