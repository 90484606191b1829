//! The use of keys over a day, which outlives the process.
//!
//! Each process keeps a record of its own for each key with a limit on the tokens or the cost of a day, so that
//! processes which share a store do not overwrite each other. A process reads those of all when it begins.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use switchboard_core::conversation::{Commit, ConversationStore, Expected, ListQuery};

use super::Service;
use crate::error::ServiceError;
use crate::keys::{DayUsage, Key, today};

/// The time for which a record is kept.
const KEEP: Duration = Duration::from_secs(2 * 24 * 60 * 60);

/// The use of a key on a day, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct StoredUsage {
    day: u64,
    #[serde(flatten)]
    usage: DayUsage,
}

impl Service {
    /// Reads what keys have used today. A [`Server`](crate::Server) does so when it begins; call it where the router
    /// is mounted elsewhere.
    ///
    /// # Errors
    /// An error if the store does not answer.
    pub async fn load_usage(&self) -> Result<(), ServiceError> {
        let Some(keys) = &self.0.keys else {
            return Ok(());
        };
        let (today, _) = today();
        for key in keys.all().values().filter(|key| key.has_daily_limit()) {
            let mut query = ListQuery::default();
            query.folder = Some(key.tenant.record_name("usage", &format!("{}/", key.id())));
            let records = ConversationStore::list(&self.0.store, &query).await;
            let records = records.map_err(|error| ServiceError::of_store(&error))?;
            let own = format!("/{}", self.0.process);
            let used = records
                .iter()
                .filter(|record| !record.id.ends_with(&own))
                .filter_map(|record| {
                    let stored: StoredUsage =
                        serde_json::from_str(record.details.as_deref()?).ok()?;
                    (stored.day == today).then_some(stored.usage)
                });
            key.set_elsewhere(today, used.fold(DayUsage::default(), DayUsage::plus));
        }
        Ok(())
    }

    /// Stores what this process has used of a key on a day.
    pub(super) async fn store_usage(&self, key: &Key, day: u64, usage: DayUsage) {
        let id = format!("{}/{}", key.id(), self.0.process);
        let name = key.tenant.record_name("usage", &id);
        let mut commit = Commit::new(Expected::Any, Vec::new());
        let details = serde_json::to_string(&StoredUsage { day, usage });
        commit.details = details.ok().map(Into::into);
        commit.expires = Some(Some(SystemTime::now() + KEEP));
        if let Err(error) = ConversationStore::commit(&self.0.store, &name, commit).await {
            tracing::warn!(%error, "the use of a key could not be stored");
        }
    }
}
