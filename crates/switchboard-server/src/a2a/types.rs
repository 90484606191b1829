//! The objects of A2A that the service makes and stores.
//!
//! Messages are kept as JSON: a client may have put fields into them that nobody here knows.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A task: one message to a team and everything that comes of it, until the team has answered.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Task {
    pub(super) id: String,
    pub(super) context_id: String,
    pub(super) status: TaskStatus,
    #[serde(default)]
    pub(super) artifacts: Vec<Artifact>,
    #[serde(default)]
    pub(super) history: Vec<Value>,
    #[serde(default)]
    pub(super) metadata: Metadata,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TaskStatus {
    pub(super) state: TaskState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Option<Value>,
    /// In the form of RFC 3339.
    pub(super) timestamp: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum TaskState {
    #[serde(rename = "TASK_STATE_SUBMITTED")]
    Submitted,
    #[serde(rename = "TASK_STATE_WORKING")]
    Working,
    #[serde(rename = "TASK_STATE_COMPLETED")]
    Completed,
    #[serde(rename = "TASK_STATE_FAILED")]
    Failed,
    #[serde(rename = "TASK_STATE_CANCELED")]
    Canceled,
    #[serde(rename = "TASK_STATE_INPUT_REQUIRED")]
    InputRequired,
    #[serde(rename = "TASK_STATE_REJECTED")]
    Rejected,
    #[serde(rename = "TASK_STATE_AUTH_REQUIRED")]
    AuthRequired,
}

impl TaskState {
    /// Returns `true` if the task has ended.
    pub(super) const fn is_terminal(self) -> bool {
        matches!(
            self,
            Self::Completed | Self::Failed | Self::Canceled | Self::Rejected
        )
    }

    /// Returns `true` while a run is under way.
    pub(super) const fn is_running(self) -> bool {
        matches!(self, Self::Submitted | Self::Working)
    }
}

/// A message of an agent of the team.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Artifact {
    pub(super) artifact_id: String,
    /// The agent.
    pub(super) name: String,
    pub(super) parts: Vec<Value>,
    pub(super) metadata: Metadata,
}

/// Data of the service's own, under one name, so that it cannot be taken for another's.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Metadata {
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(super) switchboard: Map<String, Value>,
}

impl Metadata {
    pub(super) fn one(name: &str, value: impl Into<Value>) -> Self {
        let mut metadata = Self::default();
        metadata.set(name, value);
        metadata
    }

    pub(super) fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.switchboard.insert(name.to_owned(), value.into());
    }
}

/// The parts of a task that a client asks for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shown {
    /// The number of the latest messages; `None` is all.
    pub(super) history_length: Option<usize>,
    pub(super) with_artifacts: bool,
}

impl Task {
    /// The object as a client gets it.
    pub(super) fn show(&self, shown: Shown) -> Value {
        let mut task = self.clone();
        if let Some(length) = shown.history_length {
            let beyond = task.history.len().saturating_sub(length);
            task.history.drain(..beyond);
        }
        let mut value = serde_json::to_value(&task).unwrap_or_default();
        if let Value::Object(fields) = &mut value {
            if shown.history_length == Some(0) {
                fields.remove("history");
            }
            if !shown.with_artifacts {
                fields.remove("artifacts");
            }
        }
        value
    }
}
