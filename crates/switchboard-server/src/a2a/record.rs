//! Stored tasks.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use switchboard_core::conversation::{Expected, Revision};

use super::error::A2aError;
use super::follow::live_task;
use super::types::{Task, TaskState};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::records::{NewRecord, RecordKind};
use crate::runs::RunRecord;
use crate::service::{Caller, Service};

/// The number of times that a task is read while others change it.
const LOAD_ATTEMPTS: usize = 8;

/// A stored task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TaskRecord {
    pub(super) task: Task,
    /// The team's name.
    pub(super) team: String,
    /// The run that is under way.
    pub(super) run: Option<String>,
    /// The process that has the run.
    #[serde(default)]
    pub(super) process: Option<String>,
    /// The place in its conversation of the wait that the task is in, also while its run goes on from there.
    #[serde(default)]
    pub(super) wait: Option<Revision>,
}

/// The parts of a task that lists are filtered by.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct Summary {
    pub(super) context: String,
    pub(super) team: String,
    pub(super) state: TaskState,
}

impl TaskRecord {
    /// Stores the task as it is now. Returns its revision; `None` if it is not as expected.
    pub(super) async fn save(
        &self,
        service: &Service,
        caller: &Caller,
        expected: Expected,
    ) -> Result<Option<Revision>, ServiceError> {
        let summary = Summary {
            context: self.task.context_id.clone(),
            team: self.team.clone(),
            state: self.task.status.state,
        };
        let record = NewRecord {
            content: self,
            expected,
            summary: serde_json::to_string(&summary).ok().map(Into::into),
        };
        let saved = service.save_record(caller, RecordKind::Task, &self.task.id, record);
        saved.await
    }

    /// Reads a task of the caller and the team, as it is now.
    pub(super) async fn load(
        service: &Service,
        caller: &Caller,
        team: &str,
        id: &str,
    ) -> Result<(Self, Revision), A2aError> {
        let found = Self::load_any(service, caller, id).await?;
        let found = found.filter(|(record, _)| record.team == team);
        found.ok_or_else(A2aError::no_task)
    }

    /// Reads a task of the caller and any team, as it is now; `None` if there is none.
    pub(super) async fn load_any(
        service: &Service,
        caller: &Caller,
        id: &str,
    ) -> Result<Option<(Self, Revision)>, ServiceError> {
        for _ in 0..LOAD_ATTEMPTS {
            let loaded = service.load_record(caller, RecordKind::Task, id).await?;
            let Some((mut record, revision)): Option<(Self, Revision)> = loaded else {
                return Ok(None);
            };
            let updated = record.bring_up_to_date(service, caller, revision).await?;
            // Otherwise another process has changed it meanwhile.
            if let Some(revision) = updated {
                return Ok(Some((record, revision)));
            }
        }
        let message = "the task is being changed; try again";
        Err(ServiceError::new(ServiceErrorKind::Conflict, message))
    }

    /// The task as it is at this moment, with what has come of a run of this process so far.
    pub(super) fn now(self, service: &Service, caller: &Caller) -> Task {
        match self.running(service, caller) {
            Some(run) if self.task.status.state.is_running() => live_task(&self, &run).task,
            _ => self.task,
        }
    }

    /// Returns `true` if this process has the run of the task.
    pub(super) fn is_of(&self, service: &Service) -> bool {
        self.process.as_deref() == Some(&**service.process())
    }

    /// The run that is under way.
    pub(super) fn running(&self, service: &Service, caller: &Caller) -> Option<Arc<RunRecord>> {
        service.run(caller, self.run.as_deref()?).ok()
    }
}
