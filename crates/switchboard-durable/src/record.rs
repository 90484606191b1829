//! The state of a run, as its store lists it.

use std::borrow::Cow;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use switchboard_core::ErrorKind;
use switchboard_core::approval::Interruption;
use switchboard_core::conversation::now;

/// The state of a durable run.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct RunRecord {
    /// The identifier of the run: its conversation and its key.
    pub id: String,
    /// The conversation.
    pub conversation: String,
    /// The idempotency key of its message.
    pub key: String,
    /// The engine that executes it, with the name of its application if it has one.
    pub engine: Option<String>,
    /// The name of the team that it began with, if it has one.
    pub team: Option<String>,
    /// The version of the team that it began with; see [`Teams::version`](crate::Teams::version).
    pub version: Option<String>,
    /// The status.
    pub status: RunStatus,
    /// The number of times in a row that the run has failed for a reason that may pass.
    pub failures: u32,
    /// The time of its start.
    pub created: SystemTime,
    /// The time of the last change.
    pub changed: SystemTime,
    /// The time at which it goes on by itself: after a pause, or in another process if the one that has it is
    /// gone.
    pub due: Option<SystemTime>,
    /// The name by which the engine wakes the run, while it waits; see [`StepLog::wait`](crate::StepLog::wait).
    pub wake: Option<String>,
    /// The number of its log on an engine with logs. A run that is resumed after it has stopped gets a new one.
    pub log: u32,
    /// The time of its start, by which the runs of a conversation are ordered.
    pub(crate) order: u64,
    /// Set once a process has taken it for the first time.
    pub(crate) has_begun: bool,
    /// The owner of the conversation's lease while the run has it.
    pub(crate) lease_owner: String,
}

impl RunRecord {
    /// The final output as text, if the run has one.
    pub fn text(&self) -> Option<Cow<'_, str>> {
        match &self.status {
            RunStatus::Done { output } => Some(match output {
                Value::String(text) => text.as_str().into(),
                other => other.to_string().into(),
            }),
            _ => None,
        }
    }

    /// The name of the run's log on an engine with logs.
    pub fn log_name(&self) -> String {
        // The time of its start tells the run from one with the same key that was deleted.
        format!("{}#{:x}.{}", self.id, self.order, self.log)
    }

    /// Returns `true` if the time has come at which the run is to go on, and no process has it.
    pub fn is_overdue(&self) -> bool {
        !self.is_ended() && self.due.is_some_and(|due| due <= now())
    }

    /// Returns `true` if the run has ended for good.
    pub fn is_ended(&self) -> bool {
        matches!(
            self.status,
            RunStatus::Done { .. } | RunStatus::Failed { .. } | RunStatus::Cancelled
        )
    }

    /// Returns `true` if a process has the run.
    pub fn is_executed(&self) -> bool {
        let is_leased = self.due.is_some_and(|due| due > now());
        matches!(self.status, RunStatus::Running {}) && is_leased
    }

    /// Returns `true` if the run waits in the log of an engine, for a message or a time.
    #[cfg(any(feature = "restate", feature = "dbos"))]
    pub(crate) fn waits_in_log(&self) -> bool {
        // One that has not begun, or has stopped and was resumed, is pending without a reason.
        matches!(
            self.status,
            RunStatus::Waiting { .. } | RunStatus::Pending { reason: Some(_) }
        )
    }

    /// Returns `true` if another run of the same conversation goes on first. One that has begun waits for none: what it has
    /// committed to the conversation stands there already.
    pub(crate) fn comes_after(&self, other: &Self) -> bool {
        !self.has_begun && (other.has_begun || (other.order, &other.id) < (self.order, &self.id))
    }

    /// Returns `true` if nothing happens before somebody does something: the run has ended, waits for a person, or
    /// stopped because the team has changed.
    pub fn is_settled(&self) -> bool {
        let waits = matches!(
            self.status,
            RunStatus::Waiting { .. } | RunStatus::Stopped { .. }
        );
        self.is_ended() || (waits && self.due.is_none())
    }
}

/// The status of a durable run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum RunStatus {
    /// No process has it. It is due at [`RunRecord::due`].
    Pending {
        /// The reason for the pause, if there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<String>,
    },
    /// A process has it, until [`RunRecord::due`] at least.
    Running {},
    /// It waits for decisions or answers of people.
    Waiting {
        /// The calls and people that it waits for.
        interruptions: Vec<Interruption>,
    },
    /// It cannot go on with the team of today; see [`DurableRun::resume`](crate::DurableRun::resume).
    Stopped {
        /// The difference.
        reason: String,
    },
    /// It has its final output.
    Done {
        /// The output.
        output: Value,
    },
    /// It failed.
    Failed {
        /// The kind of error.
        kind: ErrorKind,
        /// The error.
        message: String,
    },
    /// It was cancelled.
    Cancelled,
}

impl RunStatus {
    /// The name of the status.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Pending { .. } => "pending",
            Self::Running { .. } => "running",
            Self::Waiting { .. } => "waiting",
            Self::Stopped { .. } => "stopped",
            Self::Done { .. } => "done",
            Self::Failed { .. } => "failed",
            Self::Cancelled => "cancelled",
        }
    }
}

/// The state of a run as the details of its journal store it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct StoredRecord {
    pub(crate) conversation: String,
    pub(crate) key: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) engine: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) team: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) version: Option<String>,
    pub(crate) status: RunStatus,
    #[serde(default)]
    pub(crate) failures: u32,
    /// The process that took the run last, by a name of its own for each time: the fencing token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) owner: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) wake: Option<String>,
    /// The owner of the conversation's lease while the run has it.
    #[serde(default)]
    pub(crate) lease_owner: String,
    /// The time of its start in nanoseconds, by which the runs of a conversation are ordered.
    #[serde(default)]
    pub(crate) order: u64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) log: u32,
    /// The position at which its log begins: earlier steps lie in the store, and later ones in the log and, but for the last
    /// ones, in the store too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) log_from: Option<u64>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
