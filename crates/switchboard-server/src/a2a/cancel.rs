//! Cancelling tasks.

use std::time::Duration;

use serde_json::Value;
use switchboard_core::conversation::{Expected, Revision};

use super::error::{A2aError, A2aErrorKind};
use super::operations::Agent;
use super::parameters::CancelParameters;
use super::record::TaskRecord;
use super::types::{Shown, Task, TaskState};
use super::updates::TaskUpdates;

/// The longest time in which another process cancels a task, and the pause between looking.
const CANCEL_TIME: Duration = Duration::from_secs(20);
const CANCEL_PAUSE: Duration = Duration::from_millis(200);

impl Agent {
    /// Cancels a task: the run that works on it, in whichever process, or its wait.
    pub(super) async fn cancel(&self, parameters: CancelParameters) -> Result<Value, A2aError> {
        let all = Shown {
            history_length: None,
            with_artifacts: true,
        };
        let deadline = tokio::time::Instant::now() + CANCEL_TIME;
        let mut asked: Option<TaskRecord> = None;
        loop {
            let (record, revision) = self.load(&parameters.id).await?;
            match record.task.status.state {
                state if state.is_terminal() => {
                    let asked = asked.filter(|_| state == TaskState::Canceled);
                    let not_cancelable =
                        || A2aError::new(A2aErrorKind::TaskNotCancelable, "the task has ended");
                    self.end_left_wait(&asked.ok_or_else(not_cancelable)?)
                        .await?;
                    return Ok(record.task.show(all));
                }
                TaskState::InputRequired => {
                    if let Some(task) = self.cancel_wait(record, revision).await? {
                        return Ok(task.show(all));
                    }
                }
                _ if asked.as_ref().is_some_and(|asked| asked.run == record.run) => {}
                _ => {
                    self.cancel_run(&record).await?;
                    asked = Some(record);
                    continue;
                }
            }
            if tokio::time::Instant::now() > deadline {
                let message = "what works on the task did not end in time; try again";
                return Err(A2aError::unsupported(message));
            }
            tokio::time::sleep(CANCEL_PAUSE).await;
        }
    }

    /// Cancels a task that waits, with its wait. Returns `None` if something else came first.
    async fn cancel_wait(
        &self,
        record: TaskRecord,
        revision: Revision,
    ) -> Result<Option<Task>, A2aError> {
        let (service, caller) = (&self.service, &self.caller);
        let context = &record.task.context_id;
        let held = service.hold_wait(caller, context, &record.waiting).await?;
        let Some(held) = held else {
            return Ok(None);
        };
        let mut updates = TaskUpdates::new(record.task.clone());
        updates.cancel("The task was cancelled.");
        let cancelled = TaskRecord {
            task: updates.task,
            run: None,
            waiting: Vec::new(),
            ..record
        };
        let saved = cancelled.save(service, caller, Expected::At(revision));
        if !matches!(saved.await, Ok(Some(_))) {
            held.release().await;
            return Ok(None);
        }
        held.end().await?;
        Ok(Some(cancelled.task))
    }

    /// Cancels the run that works on a task. A run of another process ends some time later.
    async fn cancel_run(&self, record: &TaskRecord) -> Result<(), A2aError> {
        if let Some(run) = record.running(&self.service, &self.caller) {
            if run.end(|_| ()).is_none() {
                run.cancel();
            }
            run.log.closed().await;
        } else if let (Some(process), Some(run)) = (&record.process, &record.run) {
            self.service.ask_to_cancel(process, run).await?;
        }
        Ok(())
    }

    /// Ends the wait that a task has left: its run was cancelled before it had carried a decision out.
    async fn end_left_wait(&self, task: &TaskRecord) -> Result<(), A2aError> {
        if task.waiting.is_empty() {
            return Ok(());
        }
        let (service, context) = (&self.service, &task.task.context_id);
        let held = service.hold_wait(&self.caller, context, &task.waiting);
        if let Some(held) = held.await? {
            held.end().await?;
        }
        Ok(())
    }
}
