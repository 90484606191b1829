//! The processes that share a store, for what one tells of the work of another.
//!
//! A process with work that others may be asked about keeps a record in the store, with the time until which it is to be
//! believed, and renews it every few seconds as long as runs are under way. So a task of a process that was killed is
//! told to have failed a short time later, and one that goes on is not. The clocks of the processes must agree to within
//! [`LEASE`] less [`RENEWAL`] and the time of a write, about ten seconds. With each renewal the process also reads which
//! of its runs others have asked it to cancel.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use switchboard_core::conversation::{
    Commit, ConversationStore, Expected, ListQuery, from_millis, to_millis,
};

use super::Service;
use crate::error::ServiceError;
use crate::tenant::Tenant;

/// The time between renewals.
const RENEWAL: Duration = Duration::from_secs(3);

/// The time for which a process is believed to live after a renewal.
const LEASE: Duration = Duration::from_secs(15);

/// The time for which the records are kept.
const KEEP: Duration = Duration::from_secs(60 * 60);

/// The kinds of the records, which belong to no tenant.
const PROCESS: &str = "process";
const CANCEL: &str = "cancel";

/// The record of a process.
#[derive(Debug, Serialize, Deserialize)]
struct ProcessRecord {
    /// Milliseconds since 1970.
    alive_until: i64,
}

/// The renewal of this process's record.
#[derive(Debug, Default)]
pub(super) struct Renewal {
    is_running: bool,
    /// Set if the record was asked for since the last renewal: a run may be about to begin.
    is_wanted: bool,
}

impl Service {
    /// The name of this process among those that share a store.
    pub(crate) fn process(&self) -> &Arc<str> {
        &self.0.process
    }

    /// Makes sure that other processes know of this one, before something is stored that names it.
    pub(crate) async fn announce_process(&self) -> Result<(), ServiceError> {
        let mut renewal = self.0.renewal.lock().await;
        renewal.is_wanted = true;
        if renewal.is_running {
            return Ok(());
        }
        self.renew().await?;
        renewal.is_running = true;
        let service = self.clone();
        tokio::spawn(async move { service.keep_renewing().await });
        Ok(())
    }

    /// Renews the record until no run is under way.
    async fn keep_renewing(&self) {
        loop {
            tokio::time::sleep(RENEWAL).await;
            let mut renewal = self.0.renewal.lock().await;
            if !renewal.is_wanted && self.0.runs.running() == 0 {
                renewal.is_running = false;
                return;
            }
            renewal.is_wanted = false;
            drop(renewal);
            if let Err(error) = self.renew().await {
                tracing::warn!(%error, "the record of the process could not be renewed");
            }
            if let Err(error) = self.cancel_asked().await {
                tracing::warn!(%error, "the runs to be cancelled could not be read");
            }
        }
    }

    async fn renew(&self) -> Result<(), ServiceError> {
        let now = SystemTime::now();
        let record = ProcessRecord {
            alive_until: to_millis(now + LEASE),
        };
        let mut commit = Commit::new(Expected::Any, Vec::new());
        commit.details = serde_json::to_string(&record).ok().map(Into::into);
        commit.expires = Some(Some(now + KEEP));
        let name = Tenant::single().record_name(PROCESS, &self.0.process);
        let committed = ConversationStore::commit(&self.0.store, &name, commit).await;
        committed.map_err(|error| ServiceError::of_store(&error))?;
        Ok(())
    }

    /// Returns `true` if a process is this one, or has renewed its record a short time ago.
    pub(crate) async fn is_process_alive(&self, process: &str) -> Result<bool, ServiceError> {
        if *process == *self.0.process {
            return Ok(true);
        }
        let name = Tenant::single().record_name(PROCESS, process);
        let head = ConversationStore::head(&self.0.store, &name).await;
        let head = head.map_err(|error| ServiceError::of_store(&error))?;
        let details = head.and_then(|head| head.details);
        let record = details.and_then(|details| serde_json::from_str(&details).ok());
        Ok(record.is_some_and(|record: ProcessRecord| {
            from_millis(record.alive_until) > SystemTime::now()
        }))
    }

    /// Asks another process to cancel one of its runs.
    pub(crate) async fn ask_to_cancel(&self, process: &str, run: &str) -> Result<(), ServiceError> {
        let mut commit = Commit::new(Expected::Any, Vec::new());
        commit.expires = Some(Some(SystemTime::now() + KEEP));
        let name = Tenant::single().record_name(CANCEL, &format!("{process}/{run}"));
        let committed = ConversationStore::commit(&self.0.store, &name, commit).await;
        committed.map_err(|error| ServiceError::of_store(&error))?;
        Ok(())
    }

    /// Cancels the runs of this process that others have asked for.
    async fn cancel_asked(&self) -> Result<(), ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let folder = Tenant::single().record_name(CANCEL, &format!("{}/", self.0.process));
        let mut query = ListQuery::default();
        query.folder = Some(folder.clone());
        let asked = ConversationStore::list(&self.0.store, &query).await;
        for head in asked.map_err(failed)? {
            let run = head.id.strip_prefix(&*folder).unwrap_or_default();
            if let Some(run) = self.0.runs.of_any_tenant(run) {
                run.cancel();
            }
            self.0.store.delete(&head.id).await.map_err(failed)?;
        }
        Ok(())
    }
}
