//! Following the run of a task: for its record, and for the streams of clients.

use std::sync::Arc;

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use serde_json::Value;
use switchboard_core::conversation::{Expected, Revision};
use switchboard_core::stream::EventKind;

use super::record::TaskRecord;
use super::types::Task;
use super::updates::TaskUpdates;
use crate::event_log::Read;
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
    run: &Arc<RunRecord>,
    updates: TaskUpdates,
    after: u64,
) -> BoxStream<'static, Value> {
    let first = updates.snapshot();
    let state = (
        run.clone(),
        run.log.read_after(after),
        updates,
        Vec::new().into_iter(),
    );
    let rest = stream::unfold(state, |(run, mut reader, mut updates, mut waiting)| async {
        loop {
            if let Some(update) = waiting.next() {
                return Some((update, (run, reader, updates, waiting)));
            }
            if updates.is_settled() {
                return None;
            }
            let next: Vec<Value> = match reader.next().await {
                Some(Read::Event(event)) => updates.translate(&event.event, &run),
                Some(Read::Truncated(_)) => {
                    vec![updates.fail("The client is too slow; get the task instead.")]
                }
                None => vec![updates.fail("The run ended without a result.")],
            };
            if updates.is_settled() {
                run.log.closed().await;
            }
            waiting = next.into_iter();
        }
    });
    stream::once(async move { first }).chain(rest).boxed()
}

/// A stream of a task that waits.
pub(super) fn only_task(task: Task) -> BoxStream<'static, Value> {
    let first = TaskUpdates::new(task).snapshot();
    async move { first }.into_stream().boxed()
}
