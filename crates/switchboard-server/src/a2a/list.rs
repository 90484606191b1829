//! Lists of tasks.
//!
//! Without a filter of states or times, only the tasks of the page are read: what is stored with them tells the rest. What a
//! task that has not ended has become is seen in its conversation alone, so that with such a filter all of these are looked
//! at first.

use std::collections::HashMap;
use std::time::SystemTime;

use futures_util::{StreamExt as _, stream};
use switchboard_core::conversation::{Head, from_millis, to_millis};

use super::error::A2aError;
use super::record::{Summary, TaskRecord};
use super::types::TaskState;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::records::RecordKind;
use crate::service::{Caller, HeadPages, Service};

/// The number of tasks that a list reads at once.
const READ_AT_ONCE: usize = 16;

/// A list of tasks to be read.
#[derive(Debug)]
pub(super) struct TaskQuery<'a> {
    pub(super) team: &'a str,
    pub(super) context: Option<&'a str>,
    pub(super) state: Option<TaskState>,
    pub(super) changed_since: Option<SystemTime>,
    pub(super) limit: usize,
    pub(super) cursor: Option<&'a str>,
}

/// A page of a list.
#[derive(Debug)]
pub(super) struct TaskPage {
    pub(super) tasks: Vec<TaskRecord>,
    /// The cursor of the next page; empty on the last.
    pub(super) next: String,
    /// The number of tasks of all pages.
    pub(super) total: usize,
}

/// The last task of a page: the time of its change, and its identifier.
#[derive(Debug, Clone, Copy)]
struct Cursor<'a> {
    time: i64,
    id: &'a str,
}

impl<'a> Cursor<'a> {
    fn parse(text: &'a str) -> Result<Self, A2aError> {
        let parsed = text.split_once('~');
        let parsed = parsed.and_then(|(time, id)| {
            let time = time.parse().ok()?;
            Some(Self { time, id })
        });
        parsed.ok_or_else(|| {
            A2aError::invalid(
                "pageToken",
                "this is no token of a page; send the nextPageToken of the page before",
            )
        })
    }

    /// Returns `true` if a task comes after this one in a list. Those of one millisecond are in the order of their
    /// identifiers.
    fn is_before(self, time: SystemTime, id: &str) -> bool {
        let last = from_millis(self.time);
        time < last || (time == last && id > self.id)
    }
}

/// Lists the caller's tasks of a team, the last changed first.
pub(super) async fn list(
    service: &Service,
    caller: &Caller,
    query: TaskQuery<'_>,
) -> Result<TaskPage, A2aError> {
    let cursor = query.cursor.map(Cursor::parse).transpose()?;
    let current = query.current_states(service, caller).await?;
    let kind = RecordKind::Task.as_str();
    let mut pages = HeadPages::new(caller.tenant.record_folder(kind), query.limit, None);
    let mut total = 0;
    let mut found = Vec::new();
    let mut has_more = false;
    'pages: while let Some(heads) = pages.next(service).await? {
        for head in heads {
            if query.changed_since.is_some_and(|time| head.changed < time) {
                break 'pages;
            }
            let Some(id) = caller.tenant.record_id(kind, &head.id) else {
                continue;
            };
            let Some(stored) = query.stored_state(&head) else {
                continue;
            };
            let state = current.get(id).copied().unwrap_or(Some(stored));
            if query.state.is_some() && query.state != state {
                continue;
            }
            total += 1;
            if cursor.is_some_and(|cursor| !cursor.is_before(head.changed, id)) {
                // It is on an earlier page.
                continue;
            }
            if found.len() < query.limit {
                found.push((id.to_owned(), to_millis(head.changed)));
            } else {
                has_more = true;
            }
        }
    }
    let next = match found.last() {
        Some((id, time)) if has_more => format!("{time}~{id}"),
        _ => String::new(),
    };
    let ids = found.into_iter().map(|(id, _)| id).collect();
    let tasks = read(service, caller, ids).await?;
    Ok(TaskPage { tasks, next, total })
}

/// Reads tasks as they are now, in their order. One that was deleted meanwhile is left out, and so is one that cannot
/// be read, so that it does not hide the others.
async fn read(
    service: &Service,
    caller: &Caller,
    ids: Vec<String>,
) -> Result<Vec<TaskRecord>, ServiceError> {
    let loads = ids.into_iter().map(|id| async move {
        match read_one(service, caller, &id).await {
            // Without its store the list would be empty.
            Err(error) if error.kind() == ServiceErrorKind::Unavailable => Err(error),
            Err(error) => {
                tracing::warn!(%error, task = id, "a task could not be read");
                Ok(None)
            }
            read => read,
        }
    });
    let mut loads = stream::iter(loads).buffered(READ_AT_ONCE);
    let mut tasks = Vec::new();
    while let Some(loaded) = loads.next().await {
        tasks.extend(loaded?.map(shown_as_working));
    }
    Ok(tasks)
}

/// Reads a task as it is now, or as it is stored if its conversation cannot be read.
async fn read_one(
    service: &Service,
    caller: &Caller,
    id: &str,
) -> Result<Option<TaskRecord>, ServiceError> {
    match TaskRecord::load_any(service, caller, id).await {
        Err(error) if error.kind() != ServiceErrorKind::Unavailable => {
            tracing::warn!(%error, task = id, "a task could not be brought up to date");
            let stored = service.load_record::<TaskRecord>(caller, RecordKind::Task, id);
            Ok(stored.await?.map(|(record, _)| record))
        }
        loaded => Ok(loaded?.map(|(record, _)| record)),
    }
}

fn shown_as_working(mut record: TaskRecord) -> TaskRecord {
    if record.task.status.state.is_running() {
        record.task.status.state = TaskState::Working;
    }
    record
}

impl TaskQuery<'_> {
    /// The stored state of a task, if it is one of the team and the context.
    fn stored_state(&self, head: &Head) -> Option<TaskState> {
        let summary: Summary = serde_json::from_str(head.details.as_deref()?).ok()?;
        let is_wanted = summary.team == self.team
            && self
                .context
                .is_none_or(|context| summary.context == context);
        is_wanted.then_some(match summary.state {
            TaskState::Submitted => TaskState::Working,
            state => state,
        })
    }

    /// The states that tasks which have not ended by what is stored have now, where the query depends on them; `None` for
    /// one that cannot be read. Those that have changed are stored, and change their place.
    async fn current_states(
        &self,
        service: &Service,
        caller: &Caller,
    ) -> Result<HashMap<String, Option<TaskState>>, ServiceError> {
        let mut states = HashMap::new();
        if self.state.is_none() && self.changed_since.is_none() {
            return Ok(states);
        }
        let kind = RecordKind::Task.as_str();
        let mut pages = HeadPages::new(caller.tenant.record_folder(kind), 0, None);
        while let Some(heads) = pages.next(service).await? {
            let open = heads.iter().filter_map(|head| {
                let state = self.stored_state(head)?;
                let id = caller.tenant.record_id(kind, &head.id)?;
                (!state.is_terminal()).then(|| id.to_owned())
            });
            let open: Vec<String> = open.collect();
            states.extend(open.iter().map(|id| (id.clone(), None)));
            for record in read(service, caller, open).await? {
                let state = record.task.status.state;
                states.insert(record.task.id, Some(state));
            }
        }
        Ok(states)
    }
}
