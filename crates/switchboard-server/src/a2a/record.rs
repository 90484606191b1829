//! Stored tasks.

use std::collections::HashMap;
use std::time::{Duration, SystemTime};

use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use switchboard_core::approval::Interruption;
use switchboard_core::conversation::{
    EntryContent, Expected, Head, Revision, from_millis, to_millis,
};

use super::error::A2aError;
use super::follow::live_task;
use super::parameters::parse_time;
use super::types::{Task, TaskState};
use super::updates::{TaskUpdates, status};
use crate::error::ServiceError;
use crate::records::{NewRecord, RecordKind};
use crate::runs::RunRecord;
use crate::service::{Caller, HeadPages, Resumption, Service};

/// The longest time between storing a task and beginning its run.
const BEGINNING: Duration = Duration::from_secs(5);

/// The reason of a task that has failed with its process.
const CUT_OFF: &str = "The process that worked on the task has ended.";

/// The number of tasks that a list reads at once.
const READ_AT_ONCE: usize = 16;

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
    /// The identifiers of the calls that the task waits for, and the names of people.
    #[serde(default)]
    pub(super) waiting: Vec<String>,
    /// The position after the last entry of the task in its conversation, when its run ended.
    #[serde(default)]
    pub(super) next: u64,
}

/// The parts of a task that lists are filtered by.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Summary {
    context: String,
    team: String,
    state: TaskState,
}

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

impl TaskRecord {
    /// Stores the task as it is now. Returns `false` if it is not as expected.
    pub(super) async fn save(
        &self,
        service: &Service,
        caller: &Caller,
        expected: Expected,
    ) -> Result<bool, ServiceError> {
        let summary = json!({"context": self.task.context_id, "team": self.team,
                             "state": self.task.status.state});
        let record = NewRecord {
            content: self,
            expected,
            summary: Some(summary.to_string().into()),
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
        let loaded = service.load_record(caller, RecordKind::Task, id).await?;
        let found = loaded.filter(|(record, _): &(Self, _)| record.team == team);
        let (mut record, revision) = found.ok_or_else(A2aError::no_task)?;
        record.bring_up_to_date(service, caller, revision).await?;
        Ok((record, revision))
    }

    /// Looks at what has become of a task that has not ended: its conversation may have gone on without it, and the
    /// process that has its run may have been killed.
    async fn bring_up_to_date(
        &mut self,
        service: &Service,
        caller: &Caller,
        revision: Revision,
    ) -> Result<(), ServiceError> {
        let state = self.task.status.state;
        if state == TaskState::InputRequired {
            self.look_at_conversation(service, caller).await?;
        }
        if !state.is_running() || self.running(service, caller).is_some() {
            return Ok(());
        }
        let is_elsewhere = match &self.process {
            Some(process) if !self.is_of(service) => service.is_process_alive(process).await?,
            _ => false,
        };
        if is_elsewhere {
            // It was stored before its run began.
            self.task.status.state = TaskState::Working;
        } else if !self.is_beginning() {
            let mut updates = TaskUpdates::new(self.task.clone());
            updates.fail(CUT_OFF);
            self.task = updates.task;
            self.run = None;
            // If it has changed meanwhile, the next one who asks is told.
            let _ = self.save(service, caller, Expected::At(revision)).await?;
        }
        Ok(())
    }

    /// The task as it is at this moment, with what has come of a run of this process so far.
    pub(super) fn now(self, service: &Service, caller: &Caller) -> Task {
        match self.running(service, caller) {
            Some(run) if self.task.status.state.is_running() => live_task(&self, &run).task,
            _ => self.task,
        }
    }

    /// Returns `true` if the run of the task may not have begun yet: the task is stored first.
    fn is_beginning(&self) -> bool {
        let changed = parse_time(&self.task.status.timestamp);
        let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        age.is_some_and(|age| age < BEGINNING)
    }

    /// Returns `true` if this process has the run of the task.
    pub(super) fn is_of(&self, service: &Service) -> bool {
        self.process.as_deref() == Some(&**service.process())
    }

    /// The run that is under way.
    pub(super) fn running(
        &self,
        service: &Service,
        caller: &Caller,
    ) -> Option<std::sync::Arc<RunRecord>> {
        service.run(caller, self.run.as_deref()?).ok()
    }

    /// Sets what the task waits for.
    pub(super) fn set_waiting(&mut self, waiting: &[Interruption]) {
        self.waiting = waiting.iter().map(wait_key).collect();
    }

    /// Brings a task that waits up to date: its calls may have been decided through another protocol, or another
    /// message may have ended the wait.
    async fn look_at_conversation(
        &mut self,
        service: &Service,
        caller: &Caller,
    ) -> Result<(), ServiceError> {
        let context = &self.task.context_id;
        let waiting = service.waiting_for(caller, context).await?;
        if !waiting.is_empty()
            && waiting
                .iter()
                .map(wait_key)
                .eq(self.waiting.iter().cloned())
        {
            return Ok(());
        }
        let runs = service.runs(caller);
        let is_own = |run: &&std::sync::Arc<RunRecord>| {
            run.conversation.as_deref() == Some(context) && run.end(|_| ()).is_none()
        };
        if let Some(run) = runs.iter().find(is_own) {
            self.run = Some(run.id.to_string());
            self.process = Some(service.process().to_string());
            self.task.status = status(TaskState::Working, None);
            return Ok(());
        }
        let resumption = service.resumption_elsewhere(caller, context).await?;
        if resumption == Resumption::UnderWay {
            (self.run, self.process) = (None, None);
            self.task.status = status(TaskState::Working, None);
            return Ok(());
        }
        let failed = |error| ServiceError::of_store(&error);
        let conversation = service.conversation(caller, context)?;
        let head = conversation.head().await.map_err(failed)?;
        let next = head.map_or(0, |head| head.revision.next);
        let entries = conversation.entries(self.next..next.max(self.next)).await;
        let entries = entries.map_err(failed)?;
        let items = entries.iter().filter_map(|entry| match &entry.content {
            EntryContent::Item(item) => Some((entry, item)),
            _ => None,
        });
        let mut updates = TaskUpdates::new(self.task.clone());
        let mut is_superseded = next == 0;
        for (entry, item) in items {
            match item.role().as_deref() {
                Some("user") => is_superseded = true,
                Some("assistant") if !is_superseded => {
                    let agent = entry.agent.as_deref().unwrap_or_default();
                    updates.add_message(agent, &item.text().unwrap_or_default());
                }
                _ => {}
            }
        }
        if is_superseded {
            let text = "Another message of the conversation came instead of a decision.";
            let message = updates.agent_message(vec![json!({"text": text})]);
            updates.settle(TaskState::Canceled, Some(message), None);
        } else if waiting.is_empty() && resumption == Resumption::CutOff {
            updates.fail(CUT_OFF);
        } else if waiting.is_empty() {
            updates.settle(TaskState::Completed, None, None);
        } else {
            let question = updates.question(&waiting);
            updates.settle(TaskState::InputRequired, Some(question), None);
            self.set_waiting(&waiting);
        }
        self.task = updates.task;
        self.next = next;
        self.save(service, caller, Expected::Any).await.map(drop)
    }
}

/// The identifier of a call that waits, or the name of a person.
fn wait_key(waiting: &Interruption) -> String {
    format!("{}/{}", waiting.agent, waiting.call_id)
}

/// Lists the caller's tasks of a team, the last changed first.
pub(super) async fn list(
    service: &Service,
    caller: &Caller,
    query: TaskQuery<'_>,
) -> Result<TaskPage, A2aError> {
    let cursor = match query.cursor {
        None => None,
        Some(cursor) => {
            let parsed = cursor.split_once('~');
            let parsed = parsed.and_then(|(time, id)| Some((time.parse::<i64>().ok()?, id)));
            let invalid = || A2aError::invalid("pageToken", "this is no token of a page");
            Some(parsed.ok_or_else(invalid)?)
        }
    };
    let mut open = open_tasks(service, caller, &query).await?;
    let folder = caller.tenant.record_folder(RecordKind::Task.as_str());
    let mut pages = HeadPages::new(folder, query.limit, None);
    let mut total = 0;
    // Tasks before the cursor are only counted.
    let mut is_counting = cursor.is_some();
    let mut found = Vec::new();
    let mut has_more = false;
    'pages: while let Some(heads) = pages.next(service).await? {
        for head in heads {
            if query.changed_since.is_some_and(|time| head.changed < time) {
                break 'pages;
            }
            let Some(id) = caller.tenant.record_id(RecordKind::Task.as_str(), &head.id) else {
                continue;
            };
            let Some(stored) = query.stored_state(&head) else {
                continue;
            };
            let state = open.get(id).map_or(stored, |open| open.task.status.state);
            if query.state.is_some_and(|wanted| wanted != state) {
                continue;
            }
            total += 1;
            if let (true, Some((time, last))) = (is_counting, cursor) {
                if head.changed < from_millis(time) {
                    is_counting = false;
                } else {
                    is_counting = id != last;
                    continue;
                }
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
    let mut tasks = Vec::new();
    for (id, _) in &found {
        if let Some(task) = open.remove(id) {
            tasks.push(task);
            continue;
        }
        // One that was deleted meanwhile is left out.
        let loaded = service.load_record::<TaskRecord>(caller, RecordKind::Task, id);
        tasks.extend(loaded.await?.map(|(record, _)| record));
    }
    Ok(TaskPage { tasks, next, total })
}

/// The tasks of a query that have not ended by what is stored, as they are now.
async fn open_tasks(
    service: &Service,
    caller: &Caller,
    query: &TaskQuery<'_>,
) -> Result<HashMap<String, TaskRecord>, A2aError> {
    let folder = caller.tenant.record_folder(RecordKind::Task.as_str());
    let mut pages = HeadPages::new(folder, query.limit, None);
    let mut ids = Vec::new();
    while let Some(heads) = pages.next(service).await? {
        let open = heads.iter().filter(|head| {
            let state = query.stored_state(head);
            state.is_some_and(|state| !state.is_terminal())
        });
        let open = open.filter_map(|head| {
            let id = caller
                .tenant
                .record_id(RecordKind::Task.as_str(), &head.id)?;
            Some(id.to_owned())
        });
        ids.extend(open);
    }
    let tasks = ids.into_iter().map(|id| async move {
        let loaded = service.load_record::<TaskRecord>(caller, RecordKind::Task, &id);
        let Some((mut record, revision)) = loaded.await? else {
            // It was deleted meanwhile.
            return Ok(None);
        };
        let updated = record.bring_up_to_date(service, caller, revision).await;
        if let Err(error) = updated {
            // A conversation that cannot be read must not hide the other tasks.
            tracing::warn!(%error, task = id, "a task could not be brought up to date");
        }
        if record.task.status.state.is_running() {
            record.task.status.state = TaskState::Working;
        }
        Ok::<_, ServiceError>(Some((id, record)))
    });
    let tasks = stream::iter(tasks).buffered(READ_AT_ONCE);
    let tasks: Vec<Option<(String, TaskRecord)>> = tasks.try_collect().await?;
    Ok(tasks.into_iter().flatten().collect())
}

impl TaskQuery<'_> {
    /// The stored state of a task, if it is one of the team and the context.
    fn stored_state(&self, head: &Head) -> Option<TaskState> {
        let summary: Summary = serde_json::from_str(head.details.as_deref()?).ok()?;
        let is_wanted = summary.team == self.team
            && self
                .context
                .is_none_or(|context| summary.context == context);
        is_wanted.then_some(summary.state)
    }
}
