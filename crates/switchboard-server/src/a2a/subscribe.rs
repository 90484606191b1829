//! Streams of tasks that clients have not begun themselves.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::Value;

use super::error::A2aError;
use super::follow::{only_task, updates_of};
use super::operations::Agent;
use super::parameters::TaskParameters;
use super::record::TaskRecord;
use super::types::Task;
use super::updates::TaskUpdates;
use crate::runs::RunRecord;

/// The pause between looking at a task that waits.
const WAIT_PAUSE: Duration = Duration::from_secs(1);

/// The pause between looking for a run that is about to begin.
const BEGIN_PAUSE: Duration = Duration::from_millis(1);

impl Agent {
    /// The task, and then its updates.
    pub(super) async fn subscribe(
        &self,
        parameters: TaskParameters,
    ) -> Result<BoxStream<'static, Value>, A2aError> {
        let (record, _) = self.load(&parameters.id).await?;
        if record.task.status.state.is_terminal() {
            return Err(A2aError::unsupported("the task has ended; get it instead"));
        }
        match record.running(&self.service, &self.caller) {
            Some(run) => {
                let events = run.log.so_far();
                let last = events.last().map_or(0, |event| event.id);
                let mut updates = TaskUpdates::new(record.task);
                for event in &events {
                    updates.translate(&event.event, &run);
                }
                Ok(updates_of(self, &run, updates, last))
            }
            None => Ok(self.wait_for_updates(record.task)),
        }
    }

    /// A task that waits, and then what comes of the next message of it, whoever sends it.
    fn wait_for_updates(&self, task: Task) -> BoxStream<'static, Value> {
        let agent = self.clone();
        let (id, changed) = (task.id.clone(), task.status.timestamp.clone());
        let rest = async move { agent.next_updates(&id, &changed).await };
        only_task(task).chain(rest.flatten_stream()).boxed()
    }

    /// The run of a task that was stored just before it. A short one may have ended by then.
    async fn begun_run(&self, record: &TaskRecord) -> Option<Arc<RunRecord>> {
        let deadline = tokio::time::Instant::now() + WAIT_PAUSE;
        loop {
            let run = record.running(&self.service, &self.caller);
            if run.is_some() || tokio::time::Instant::now() > deadline {
                return run;
            }
            tokio::time::sleep(BEGIN_PAUSE).await;
        }
    }

    /// Waits until a task changes, and follows it then.
    async fn next_updates(&self, id: &str, changed: &str) -> BoxStream<'static, Value> {
        loop {
            let notified = self.service.inner().records_changed.notified();
            let mut notified = std::pin::pin!(notified);
            notified.as_mut().enable();
            let Ok((record, _)) = self.load(id).await else {
                return stream::empty().boxed();
            };
            if record.task.status.timestamp != changed {
                match record.running(&self.service, &self.caller) {
                    Some(run) => {
                        let updates = TaskUpdates::new(record.task);
                        return updates_of(self, &run, updates, 0).skip(1).boxed();
                    }
                    None if !record.task.status.state.is_running() => {
                        return only_task(record.task);
                    }
                    None if record.is_of(&self.service) => {
                        if let Some(run) = self.begun_run(&record).await {
                            let updates = TaskUpdates::new(record.task);
                            return updates_of(self, &run, updates, 0).skip(1).boxed();
                        }
                    }
                    // Another process works on it.
                    None => {}
                }
            }
            if self.service.is_draining() || !self.service.is_key_valid(&self.caller) {
                return stream::empty().boxed();
            }
            // Another process may change it.
            let _ = tokio::time::timeout(WAIT_PAUSE, notified).await;
        }
    }
}
