//! Commits, and their repetition when an answer is lost.

use switchboard_core::callback::BoxError;
use switchboard_core::conversation::{Commit, Committed, Expected, Revision, to_millis};

use super::connection::Failure;
use super::{Inner, entries};
use crate::error::{StoreError, StoreErrorKind};

impl Inner {
    pub(super) async fn commit(&self, id: &str, commit: &Commit) -> Result<Committed, StoreError> {
        let lost = match self.commit_once(id, commit, false).await {
            Err(Failure::Lost(error)) => error,
            done => return done.map_err(|failure| self.error(failure)),
        };
        if commit.number == 0 && commit.expected == Expected::Any {
            return Err(self.unknown_outcome(lost));
        }
        match self.commit_once(id, commit, true).await {
            // Another writer was faster, or the first attempt was stored.
            Ok(Committed::Conflict) if commit.number == 0 => Err(self.unknown_outcome(lost)),
            done => done.map_err(|failure| self.unknown_outcome(self.error(failure))),
        }
    }

    async fn commit_once(
        &self,
        id: &str,
        commit: &Commit,
        is_repeated: bool,
    ) -> Result<Committed, Failure> {
        let (expects, epoch, next) = match commit.expected {
            Expected::At(revision) => ("at", revision.epoch, revision.next),
            Expected::New => ("new", 0, 0),
            _ => ("any", 0, 0),
        };
        let change = |is_set: Option<bool>| match is_set {
            None => "keep",
            Some(true) => "set",
            Some(false) => "unset",
        };
        let agent = commit.agent.as_ref();
        let expires = commit.expires.flatten();
        let mut script = self.scripts.commit.prepare_invoke();
        for key in self.keys(id) {
            script.key(key);
        }
        script
            .arg(expects)
            .arg(epoch)
            .arg(next)
            .arg(&*commit.run)
            .arg(commit.number)
            .arg(u8::from(is_repeated))
            .arg(id)
            .arg(to_millis(commit.time))
            .arg(
                commit
                    .state_index()
                    .map_or_else(String::new, |index| index.to_string()),
            )
            .arg(change(agent.map(Option::is_some)))
            .arg(agent.and_then(|agent| agent.as_deref()).unwrap_or_default())
            .arg(change(commit.details.as_ref().map(|_| true)))
            .arg(commit.details.as_deref().unwrap_or_default())
            .arg(change(commit.expires.map(|expires| expires.is_some())))
            .arg(expires.map(to_millis).unwrap_or_default())
            .arg(Revision::of_new_conversation().epoch);
        for entry in &commit.entries {
            let encoded =
                entries::encode(entry).map_err(|error| Failure::Other(self.storage(error)))?;
            script.arg(encoded);
        }
        let committed: Option<(u64, u64)> = self.invoke_once(&script).await?;
        Ok(committed.map_or(Committed::Conflict, |(epoch, next)| {
            Committed::At(Revision::new(epoch, next))
        }))
    }

    fn unknown_outcome(&self, cause: impl Into<BoxError>) -> StoreError {
        let cause = cause.into();
        let message = format!("the connection was lost during a commit ({cause})");
        let place = self.connection.place().clone();
        StoreError::new(StoreErrorKind::UnknownOutcome, place, message).caused_by(cause)
    }

    fn storage(&self, error: impl Into<BoxError>) -> StoreError {
        let error = error.into();
        let place = self.connection.place().clone();
        StoreError::new(StoreErrorKind::Storage, place, error.to_string()).caused_by(error)
    }
}
