//! Stored tasks.

use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use serde_json::json;
use switchboard_core::approval::Interruption;
use switchboard_core::conversation::{EntryContent, Expected, Revision, from_millis, to_millis};

use super::error::A2aError;
use super::parameters::parse_time;
use super::types::{Task, TaskState};
use super::updates::{TaskUpdates, status};
use crate::error::ServiceError;
use crate::records::{NewRecord, RecordKind};
use crate::runs::RunRecord;
use crate::service::{Caller, HeadPages, Service};

/// The longest time between storing a task and beginning its run.
const BEGINNING: Duration = Duration::from_secs(5);

/// A stored task.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct TaskRecord {
    pub(super) task: Task,
    /// The team's name.
    pub(super) team: String,
    /// The run that is under way.
    pub(super) run: Option<String>,
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
        if record.task.status.state == TaskState::InputRequired {
            record.look_at_conversation(service, caller).await?;
        }
        if record.task.status.state.is_running()
            && record.running(service, caller).is_none()
            && !record.is_beginning()
        {
            let mut updates = TaskUpdates::new(record.task);
            updates.fail("The service was restarted meanwhile.");
            record.task = updates.task;
        }
        Ok((record, revision))
    }

    /// Returns `true` if the run of the task may not have begun yet: the task is stored first.
    fn is_beginning(&self) -> bool {
        let changed = parse_time(&self.task.status.timestamp);
        let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        age.is_some_and(|age| age < BEGINNING)
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
            let details = head.details.as_deref().unwrap_or_default();
            let Ok(summary) = serde_json::from_str::<Summary>(details) else {
                continue;
            };
            let is_wanted = summary.team == query.team
                && query
                    .context
                    .is_none_or(|context| summary.context == context)
                && query.state.is_none_or(|state| summary.state == state);
            if !is_wanted {
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
        // One that was deleted meanwhile is left out.
        let loaded = service.load_record::<TaskRecord>(caller, RecordKind::Task, id);
        tasks.extend(loaded.await?.map(|(record, _)| record));
    }
    Ok(TaskPage { tasks, next, total })
}
