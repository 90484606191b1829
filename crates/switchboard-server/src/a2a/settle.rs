//! What has become of a task that has not ended by what is stored.
//!
//! Its process may have been killed, its calls may have been decided through another protocol or by another process, and
//! another message of the conversation may have ended its wait. A task is settled when somebody asks for it: by the record
//! of its conversation, and by the ends of the runs that went on there.

use std::time::{Duration, SystemTime};

use serde_json::json;
use switchboard_core::conversation::{Entry, EntryContent, Expected, Revision};

use super::follow::live_task;
use super::parameters::parse_time;
use super::record::TaskRecord;
use super::types::TaskState;
use super::updates::{TaskUpdates, status};
use crate::error::ServiceError;
use crate::service::{Caller, EndedResumption, ResumptionEnd, Service, Wait};

/// The longest time between storing a task and beginning its run.
const BEGINNING: Duration = Duration::from_secs(5);

/// The reason of a task that has failed with its process.
const CUT_OFF: &str = "The process that worked on the task has ended.";

/// The number of times that a conversation is read while others change it.
const READ_ATTEMPTS: usize = 8;

/// What follows in a conversation after the wait of a task.
struct FollowingEntries {
    /// The entries of the task's own run.
    own: Vec<Entry>,
    /// The position of the first message that is not of that run.
    message: Option<u64>,
    /// Set if the own run is as it was when it began to wait, or waits again.
    is_undecided: bool,
    /// Set if the own run has ended with a message.
    is_answered: bool,
}

/// A conversation as it is after the wait of a task.
struct AfterWait {
    entries: FollowingEntries,
    waiting: Option<Wait>,
    ended: Vec<EndedResumption>,
}

/// The state of the conversation of a task that waits.
enum WaitState {
    /// It waits as before.
    Unchanged(Wait),
    /// A run goes on.
    UnderWay {
        run: String,
        process: String,
    },
    Changed(AfterWait),
}

impl TaskRecord {
    /// Looks at what has become of a task that has not ended. Returns the revision at which it is stored; `None` if it was
    /// changed meanwhile, and has to be read again.
    pub(super) async fn bring_up_to_date(
        &mut self,
        service: &Service,
        caller: &Caller,
        revision: Revision,
    ) -> Result<Option<Revision>, ServiceError> {
        let state = self.task.status.state;
        if state == TaskState::InputRequired {
            return self.update_from_wait(service, caller, revision).await;
        }
        if !state.is_running() {
            return Ok(Some(revision));
        }
        if let Some(run) = self.running(service, caller) {
            if run.is_under_way() {
                return Ok(Some(revision));
            }
            // What came of the run could not be stored at its end.
            if self.wait.is_some() {
                return self.update_from_wait(service, caller, revision).await;
            }
            self.end_with(live_task(self, &run), &run);
            return self.save(service, caller, Expected::At(revision)).await;
        }
        let is_elsewhere = !self.is_of(service);
        if self.is_beginning() {
            if is_elsewhere {
                self.task.status.state = TaskState::Working;
            }
            return Ok(Some(revision));
        }
        if self.wait.is_some() {
            return self.update_from_wait(service, caller, revision).await;
        }
        if let Some(process) = self.process.as_ref().filter(|_| is_elsewhere)
            && service.is_process_alive(process).await?
        {
            // It was stored before its run began.
            self.task.status.state = TaskState::Working;
            return Ok(Some(revision));
        }
        let mut updates = TaskUpdates::new(self.task.clone());
        updates.fail(CUT_OFF);
        self.task = updates.task;
        self.run = None;
        self.save(service, caller, Expected::At(revision)).await
    }

    /// Returns `true` if the run of the task may not have begun yet: the task is stored first.
    fn is_beginning(&self) -> bool {
        let changed = parse_time(&self.task.status.timestamp);
        let age = changed.and_then(|changed| SystemTime::now().duration_since(changed).ok());
        age.is_some_and(|age| age < BEGINNING)
    }

    /// Brings a task up to date that waits, or whose run has gone on and ended with its process.
    async fn update_from_wait(
        &mut self,
        service: &Service,
        caller: &Caller,
        revision: Revision,
    ) -> Result<Option<Revision>, ServiceError> {
        let mut wait_state = self.read_wait(service, caller).await?;
        for _ in 1..READ_ATTEMPTS {
            if wait_state.is_some() {
                break;
            }
            wait_state = self.read_wait(service, caller).await?;
        }
        match wait_state {
            // Where the conversation changes all the time, the next one who asks is told.
            None => Ok(Some(revision)),
            Some(WaitState::Unchanged(_)) if self.task.status.state == TaskState::InputRequired => {
                Ok(Some(revision))
            }
            Some(WaitState::Unchanged(wait)) => {
                // Nothing of the decision was stored, and it can be made again.
                self.wait_again(&wait, None);
                self.save(service, caller, Expected::At(revision)).await
            }
            Some(WaitState::UnderWay { run, process }) => {
                (self.run, self.process) = (Some(run), Some(process));
                if !self.task.status.state.is_running() {
                    self.task.status = status(TaskState::Working, None);
                }
                Ok(Some(revision))
            }
            Some(WaitState::Changed(after)) => {
                self.settle(&after);
                self.save(service, caller, Expected::At(revision)).await
            }
        }
    }

    /// Reads what has become of the wait. Returns `None` if the conversation has changed while it was read.
    async fn read_wait(
        &self,
        service: &Service,
        caller: &Caller,
    ) -> Result<Option<WaitState>, ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let context = &self.task.context_id;
        let conversation = service.conversation(caller, context)?;
        let head = conversation.head().await.map_err(failed)?;
        let revision = head.map(|head| head.revision);
        let waiting = service.waiting_for(caller, context).await?;
        // Asked for after the wait: what has ended it has left its record by then.
        let resumptions = service.resumptions(caller, context).await?;
        let (same, other) = match waiting {
            Some(wait) if Some(wait.at) == self.wait => (Some(wait), None),
            other => (None, other),
        };
        if let (Some(_), None) = (&same, &resumptions.under_way) {
            return Ok(same.map(WaitState::Unchanged));
        }
        let entries = match (self.wait, revision) {
            (Some(wait), Some(revision)) if wait.epoch == revision.epoch => {
                let entries = conversation.entries(wait.next..revision.next);
                FollowingEntries::of(wait, &entries.await.map_err(failed)?)
            }
            // The conversation was deleted. There may be another one of its name.
            _ => FollowingEntries::default(),
        };
        let message = entries.message.unwrap_or(u64::MAX);
        let is_own = |at: Revision| {
            let own = self.wait.filter(|own| own.epoch == at.epoch);
            own.is_some_and(|own| (own.next..message).contains(&at.next))
        };
        if let Some(run) = resumptions.under_way
            && is_own(run.wait)
        {
            return Ok(Some(WaitState::UnderWay {
                run: run.run.to_string(),
                process: run.process.to_string(),
            }));
        }
        if let Some(wait) = same {
            return Ok(Some(WaitState::Unchanged(wait)));
        }
        let now = conversation.head().await.map_err(failed)?;
        if now.map(|head| head.revision) != revision {
            return Ok(None);
        }
        let mut ended = resumptions.ended;
        ended.retain(|ended| is_own(ended.wait));
        Ok(Some(WaitState::Changed(AfterWait {
            entries,
            waiting: other.filter(|wait| self.wait.is_none_or(|own| own.epoch == wait.at.epoch)),
            ended,
        })))
    }

    /// Lets the task wait as before, after a run that stored nothing of a decision, perhaps for a reason.
    pub(super) fn wait_again(&mut self, wait: &Wait, reason: Option<&str>) {
        let mut updates = TaskUpdates::new(self.task.clone());
        let mut question = updates.question(&wait.calls);
        if let (Some(reason), Some(parts)) = (reason, question["parts"].as_array_mut()) {
            let text = format!("The last answer was not carried out: {reason}");
            parts.push(json!({"text": text}));
        }
        updates.settle(TaskState::InputRequired, Some(question), None);
        self.task = updates.task;
        self.run = None;
    }

    /// Sets the state after a wait that is over, or after another has begun.
    fn settle(&mut self, after: &AfterWait) {
        let mut updates = TaskUpdates::new(self.task.clone());
        for entry in &after.entries.own {
            if let EntryContent::Item(item) = &entry.content
                && item.role().as_deref() == Some("assistant")
            {
                let agent = entry.agent.as_deref().unwrap_or_default();
                updates.add_message(agent, &item.text().unwrap_or_default());
            }
        }
        let next = after.waiting.as_ref();
        let next = next.filter(|_| after.entries.message.is_none());
        let end = after.ended.last().map(|ended| &ended.end);
        match (next, end) {
            (Some(wait), _) => {
                let question = updates.question(&wait.calls);
                updates.settle(TaskState::InputRequired, Some(question), None);
                self.wait = Some(wait.at);
            }
            _ if after.entries.is_undecided && after.entries.message.is_some() => {
                updates.cancel("Another message of the conversation came instead of a decision.");
            }
            (_, Some(ResumptionEnd::CutOff)) if !after.entries.is_answered => {
                updates.fail(CUT_OFF);
            }
            (_, Some(ResumptionEnd::Failed(message))) => drop(updates.fail(message)),
            (_, Some(ResumptionEnd::Cancelled)) => drop(updates.stop(true, None)),
            (_, Some(ResumptionEnd::Stopped)) => drop(updates.stop(false, None)),
            _ if after.entries.is_undecided => {
                updates.cancel("The wait has ended without a decision.");
            }
            _ => drop(updates.settle(TaskState::Completed, None, None)),
        }
        self.task = updates.task;
        self.run = None;
    }
}

impl Default for FollowingEntries {
    fn default() -> Self {
        Self {
            own: Vec::new(),
            message: None,
            is_undecided: true,
            is_answered: false,
        }
    }
}

impl FollowingEntries {
    /// Reads the entries from the wait of the task on.
    fn of(wait: Revision, entries: &[Entry]) -> Self {
        let waiting = entries.first().filter(|entry| entry.position == wait.next);
        let run = waiting.map(|entry| &entry.run);
        let mut rest = entries;
        let is_message = |entry: &&Entry| {
            let item = entry.content.item();
            Some(&entry.run) != run
                && item.is_some_and(|item| item.role().as_deref() == Some("user"))
        };
        let message = rest.iter().find(is_message);
        if let Some(message) = message {
            // What a message finds undecided is answered in its own run, before it.
            let end = rest.iter().position(|entry| entry.run == message.run);
            rest = rest.get(..end.unwrap_or_default()).unwrap_or_default();
        }
        let mut followed = Self {
            own: rest.to_vec(),
            message: message.map(|message| message.position),
            ..Self::default()
        };
        for entry in rest {
            match &entry.content {
                EntryContent::Item(item) => {
                    followed.is_undecided = false;
                    followed.is_answered = item.role().as_deref() == Some("assistant");
                }
                EntryContent::Waiting(_) => followed.is_undecided = true,
                _ => {}
            }
        }
        followed
    }
}
