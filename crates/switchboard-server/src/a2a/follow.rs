//! Following the run of a task: for its record, and for the streams of clients.

use std::sync::Arc;

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
use crate::service::{Caller, Service, wait_keys};

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
    let mut expected = Expected::Any;
    if let Some(waited) = waited
        && is_without_effect(&service, &caller, &waited.record, &run).await
    {
        record = waited.record;
        expected = Expected::At(waited.resumed);
    } else {
        if !updates.is_settled() {
            updates.fail("The run ended without a result.");
        }
        record.set_waiting(&updates.waiting);
        record.task = updates.task;
        record.run = None;
        let head = match service.conversation(&caller, &record.task.context_id) {
            Ok(conversation) => conversation.head().await.ok().flatten(),
            Err(_) => None,
        };
        record.next = head.map_or(0, |head| head.revision.next);
    }
    if let Err(error) = record.save(&service, &caller, expected).await {
        tracing::error!(%error, task = record.task.id, "a task could not be stored");
    }
}

/// Returns `true` if a run could not go on with a task, and this is no failure of the task: another decision came first, or
/// the service shuts down.
async fn is_without_effect(
    service: &Service,
    caller: &Caller,
    waited: &TaskRecord,
    run: &RunRecord,
) -> bool {
    if !run.has_only_begun() || run.is_cancelled() {
        return false;
    }
    let last = run.log.last();
    let is_stopped =
        last.is_some_and(|last| matches!(last.event.kind, EventKind::RunStopped { .. }));
    let context = &waited.task.context_id;
    let waiting = service.waiting_for(caller, context).await;
    let is_decided = waiting.is_ok_and(|waiting| wait_keys(&waiting) != waited.waiting);
    is_stopped || is_decided
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

    /// The state of a task whose run could not go on with it, if that is no failure of the task.
    async fn other_end(&self) -> Option<Value> {
        let task = &self.updates.task;
        if task.status.state != TaskState::Failed || !self.run.has_only_begun() {
            return None;
        }
        let (record, _) = self.agent.load(&task.id).await.ok()?;
        let is_other = record.task.status.state != TaskState::Failed;
        is_other.then(|| TaskUpdates::new(record.task).state_update())
    }
}

/// A stream of a task that waits.
pub(super) fn only_task(task: Task) -> BoxStream<'static, Value> {
    let first = TaskUpdates::new(task).snapshot();
    async move { first }.into_stream().boxed()
}
