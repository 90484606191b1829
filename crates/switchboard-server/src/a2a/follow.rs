//! Following the run of a task: for its record, and for the streams of clients.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::Value;
use switchboard_core::conversation::{Expected, Revision};
use switchboard_core::stream::EventKind;

use super::operations::Agent;
use super::record::TaskRecord;
use super::types::{Task, TaskState};
use super::updates::TaskUpdates;
use crate::event_log::{EventReader, Read};
use crate::runs::RunRecord;
use crate::service::{Caller, Service, store_persistently};

/// The time in which a task is cancelled after its run was, and the pause between looking.
const CANCEL_TIME: Duration = Duration::from_secs(1);
const CANCEL_PAUSE: Duration = Duration::from_millis(50);

/// The task of a run that is under way, with what has come of it so far.
pub(super) fn live_task(record: &TaskRecord, run: &RunRecord) -> TaskUpdates {
    let mut updates = TaskUpdates::new(record.task.clone());
    for event in run.log.so_far() {
        updates.translate(&event.event, run);
    }
    updates
}

/// A task that waited for a decision or an answer, before its run went on.
pub(super) struct WaitingTask {
    pub(super) record: TaskRecord,
    /// The revision at which the task was stored when its run went on.
    pub(super) resumed: Revision,
}

/// Follows a run to its end, and stores the task. `waited` is the task as it was before, if the run went on with it.
pub(super) async fn keep_record(
    service: Service,
    caller: Caller,
    mut record: TaskRecord,
    waited: Option<WaitingTask>,
    run: Arc<RunRecord>,
) {
    let mut updates = TaskUpdates::new(record.task.clone());
    let mut reader = run.log.read_after(0);
    while let Some(read) = reader.next().await {
        if let Read::Event(event) = read {
            updates.translate(&event.event, &run);
        }
    }
    let before = match waited {
        Some(waited) => waited.if_without_effect(&service, &caller, &run).await,
        None => None,
    };
    let mut expected = Expected::Any;
    if let Some((waiting, resumed)) = before {
        (record, expected) = (waiting, Expected::At(resumed));
    } else {
        record.end_with(updates, &run);
    }
    let saved = store_persistently(|| record.save(&service, &caller, expected).boxed());
    if let Err(error) = saved.await {
        // Whoever asks for the task tries again.
        tracing::error!(%error, task = record.task.id, "a task could not be stored");
    }
}

impl TaskRecord {
    /// Sets the task to what came of its run, which has ended.
    pub(super) fn end_with(&mut self, mut updates: TaskUpdates, run: &RunRecord) {
        if !updates.is_settled() {
            updates.fail("The run ended without a result.");
        }
        self.task = updates.task;
        self.wait = run.wait();
        self.run = None;
    }
}

impl WaitingTask {
    /// The task as it waits again, and the revision that is expected, if nothing came of the run: it has stored nothing, so
    /// that the task waits as before, or it has only begun, because something else came first. Whoever asks for the task
    /// sees what has become of its wait then.
    async fn if_without_effect(
        mut self,
        service: &Service,
        caller: &Caller,
        run: &RunRecord,
    ) -> Option<(TaskRecord, Revision)> {
        let context = &self.record.task.context_id;
        match service.waiting_for(caller, context).await {
            Ok(Some(wait)) if Some(wait.at) == self.record.wait => {
                let last = run.log.last();
                let reason = match last.as_ref().map(|last| &last.event.kind) {
                    Some(EventKind::RunFailed { message, .. }) => message,
                    _ if run.is_cancelled() => "The run was cancelled.",
                    _ => "The run was stopped: its time was over, or the service is shutting down.",
                };
                self.record.wait_again(&wait, Some(reason));
            }
            _ if run.has_only_begun() => {}
            _ => return None,
        }
        Some((self.record, self.resumed))
    }
}

/// The task, and then its updates after the event with this number. The last one is sent once it is stored.
pub(super) fn updates_of(
    agent: &Agent,
    run: &Arc<RunRecord>,
    updates: TaskUpdates,
    after: u64,
) -> BoxStream<'static, Value> {
    let first = updates.snapshot();
    let state = Following {
        agent: agent.clone(),
        run: run.clone(),
        reader: run.log.read_after(after),
        updates,
        waiting: Vec::new().into_iter(),
    };
    let rest = stream::unfold(state, |mut state| async {
        let update = state.next().await?;
        Some((update, state))
    });
    stream::once(async move { first }).chain(rest).boxed()
}

/// A client that follows the run of a task.
struct Following {
    agent: Agent,
    run: Arc<RunRecord>,
    reader: EventReader,
    updates: TaskUpdates,
    /// Updates that are still to be sent.
    waiting: std::vec::IntoIter<Value>,
}

impl Following {
    async fn next(&mut self) -> Option<Value> {
        loop {
            if let Some(update) = self.waiting.next() {
                return Some(update);
            }
            if self.updates.is_settled() {
                return None;
            }
            let mut next: Vec<Value> = match self.reader.next().await {
                Some(Read::Event(event)) => self.updates.translate(&event.event, &self.run),
                Some(Read::Truncated(_)) => {
                    let text = "The client is too slow; get the task instead.";
                    vec![self.updates.fail(text)]
                }
                None => vec![self.updates.fail("The run ended without a result.")],
            };
            if self.updates.is_settled() {
                self.run.log.closed().await;
                if let Some(update) = self.other_end().await {
                    next = vec![update];
                }
            }
            self.waiting = next.into_iter();
        }
    }

    /// The state of a task whose run could not go on with it, if that is no end of the task.
    async fn other_end(&self) -> Option<Value> {
        let task = &self.updates.task;
        if !matches!(task.status.state, TaskState::Failed | TaskState::Canceled) {
            return None;
        }
        let mut record = self.agent.settled(&task.id).await.ok()?;
        if self.run.is_cancelled() {
            // Whoever cancels the task ends its wait next.
            let deadline = tokio::time::Instant::now() + CANCEL_TIME;
            while record.task.status.state == TaskState::InputRequired
                && tokio::time::Instant::now() < deadline
            {
                tokio::time::sleep(CANCEL_PAUSE).await;
                record = self.agent.load(&task.id).await.ok()?.0;
            }
        }
        let is_other = record.task.status.state != task.status.state;
        is_other.then(|| TaskUpdates::new(record.task).state_update())
    }
}

/// A stream of a task that waits.
pub(super) fn only_task(task: Task) -> BoxStream<'static, Value> {
    let first = TaskUpdates::new(task).snapshot();
    async move { first }.into_stream().boxed()
}
