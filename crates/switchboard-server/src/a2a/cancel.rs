//! Cancelling tasks.

use std::time::Duration;

use serde_json::Value;
use switchboard_core::conversation::{Expected, Revision};

use super::error::{A2aError, A2aErrorKind};
use super::operations::Agent;
use super::parameters::CancelParameters;
use super::record::TaskRecord;
use super::types::{Shown, TaskState};
use super::updates::TaskUpdates;
use crate::error::ServiceError;

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
        let mut has_ended_wait = false;
        let mut asked: Option<TaskRecord> = None;
        loop {
            let (record, revision) = self.load(&parameters.id).await?;
            match record.task.status.state {
                TaskState::Canceled if has_ended_wait || asked.is_some() => {
                    return Ok(record.task.show(all));
                }
                state if state.is_terminal() => {
                    let message = "the task has ended";
                    return Err(A2aError::new(A2aErrorKind::TaskNotCancelable, message));
                }
                TaskState::InputRequired => {
                    let agent = self.clone();
                    // A client that disconnects must not leave the wait held, so that no decision is taken.
                    let ended = tokio::spawn(async move { agent.end_wait(record, revision).await });
                    if ended.await.map_err(|_| ServiceError::panicked())?? {
                        has_ended_wait = true;
                        continue;
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

    /// Ends the wait of a task, and cancels the task. Returns `false` if the wait is over, or its run goes on.
    async fn end_wait(&self, record: TaskRecord, revision: Revision) -> Result<bool, A2aError> {
        let (service, caller) = (&self.service, &self.caller);
        let Some(wait) = record.wait else {
            return Ok(false);
        };
        let held = service.hold_wait(caller, &record.task.context_id, wait);
        let Some(held) = held.await? else {
            return Ok(false);
        };
        // First, so that nothing is carried out for a task that has ended. A process that stops here leaves a task whose
        // wait has ended without a decision, which is cancelled as well.
        held.end().await?;
        let mut updates = TaskUpdates::new(record.task.clone());
        updates.cancel("The task was cancelled.");
        let cancelled = TaskRecord {
            task: updates.task,
            run: None,
            ..record
        };
        let saved = cancelled.save(service, caller, Expected::At(revision));
        // Otherwise a decision came meanwhile, whose run finds the wait over.
        saved.await?;
        Ok(true)
    }

    /// Cancels the run that works on a task. A run of another process ends some time later.
    async fn cancel_run(&self, record: &TaskRecord) -> Result<(), A2aError> {
        if let Some(run) = record.running(&self.service, &self.caller) {
            if run.is_under_way() {
                run.cancel();
            }
            run.log.closed().await;
        } else if let (Some(process), Some(run)) = (&record.process, &record.run) {
            self.service.ask_to_cancel(process, run).await?;
        }
        Ok(())
    }
}
