//! What has become of a task that has not ended by what is stored.
//!
//! Its process may have been killed, its calls may have been decided through another protocol or by another process, and
//! another message of the conversation may have ended its wait. A task is settled when somebody asks for it: by the record
//! of its conversation, and by the ends of the runs that went on there.

use std::time::{Duration, SystemTime};

use switchboard_core::approval::Interruption;
use switchboard_core::conversation::{Entry, EntryContent, Expected, Revision};

use super::parameters::parse_time;
use super::record::TaskRecord;
use super::types::TaskState;
use super::updates::{TaskUpdates, status};
use crate::error::ServiceError;
use crate::service::{Caller, EndedResumption, ResumptionEnd, Service, wait_keys};

/// The longest time between storing a task and beginning its run.
const BEGINNING: Duration = Duration::from_secs(5);

/// The reason of a task that has failed with its process.
const CUT_OFF: &str = "The process that worked on the task has ended.";

/// The number of times that a conversation is read while others change it.
const LOOKS: usize = 8;

/// What follows in a conversation after the wait of a task.
struct Followed {
    /// The entries of the task's own run.
    own: Vec<Entry>,
    /// The position of the first message that is not of that run.
    message: Option<u64>,
    /// Set if the own run is as it was when it began to wait, or waits again.
    is_undecided: bool,
}

/// A conversation as it is after the wait of a task.
struct Seen {
    /// The position after the last entry.
    next: u64,
    followed: Followed,
    waiting: Vec<Interruption>,
    ended: Vec<EndedResumption>,
}

/// The state of the conversation of a task that waits.
enum Look {
    /// It waits as before.
    Unchanged,
    /// A run goes on.
    UnderWay {
        run: String,
        process: String,
    },
    Changed(Seen),
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
            return self.look_at_wait(service, caller, revision).await;
        }
        if !state.is_running() || self.running(service, caller).is_some() {
            return Ok(Some(revision));
        }
        let is_elsewhere = match &self.process {
            Some(process) if !self.is_of(service) => service.is_process_alive(process).await?,
            _ => false,
        };
        if is_elsewhere {
            // It was stored before its run began.
            self.task.status.state = TaskState::Working;
            return Ok(Some(revision));
        }
        if self.is_beginning() {
            return Ok(Some(revision));
        }
        let mut updates = TaskUpdates::new(self.task.clone());
        let mut waiting = Vec::new();
        if !self.waiting.is_empty() {
            waiting = service.waiting_for(caller, &self.task.context_id).await?;
        }
        if !waiting.is_empty() && wait_keys(&waiting) == self.waiting {
            // Nothing of the decision was stored, and it can be made again.
            let question = updates.question(&waiting);
            updates.settle(TaskState::InputRequired, Some(question), None);
        } else {
            updates.fail(CUT_OFF);
        }
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

    /// Brings a task that waits up to date.
    async fn look_at_wait(
        &mut self,
        service: &Service,
        caller: &Caller,
        revision: Revision,
    ) -> Result<Option<Revision>, ServiceError> {
        let mut look = self.look(service, caller).await?;
        for _ in 1..LOOKS {
            if look.is_some() {
                break;
            }
            look = self.look(service, caller).await?;
        }
        match look {
            // Where the conversation changes all the time, the next one who asks is told.
            None | Some(Look::Unchanged) => Ok(Some(revision)),
            Some(Look::UnderWay { run, process }) => {
                (self.run, self.process) = (Some(run), Some(process));
                self.task.status = status(TaskState::Working, None);
                Ok(Some(revision))
            }
            Some(Look::Changed(seen)) => {
                self.settle(&seen);
                self.save(service, caller, Expected::At(revision)).await
            }
        }
    }

    /// Reads what has become of the wait. Returns `None` if the conversation has changed while it was read.
    async fn look(&self, service: &Service, caller: &Caller) -> Result<Option<Look>, ServiceError> {
        let failed = |error| ServiceError::of_store(&error);
        let context = &self.task.context_id;
        let conversation = service.conversation(caller, context)?;
        let head = conversation.head().await.map_err(failed)?;
        let revision = head.map(|head| head.revision);
        let waiting = service.waiting_for(caller, context).await?;
        // Asked for after the wait: what has ended it has left its record by then.
        let resumptions = service.resumptions(caller, context).await?;
        let is_same = !waiting.is_empty() && wait_keys(&waiting) == self.waiting;
        if is_same && resumptions.under_way.is_none() {
            return Ok(Some(Look::Unchanged));
        }
        let next = revision.map_or(0, |revision| revision.next);
        let followed = if next < self.next {
            // The conversation was deleted.
            Followed::of(&[])
        } else {
            let entries = conversation.entries(self.next.saturating_sub(1)..next);
            Followed::of(&entries.await.map_err(failed)?)
        };
        let message = followed.message.unwrap_or(u64::MAX);
        if let Some(run) = resumptions.under_way
            && run.from <= message
        {
            return Ok(Some(Look::UnderWay {
                run: run.run.to_string(),
                process: run.process.to_string(),
            }));
        }
        if is_same {
            return Ok(Some(Look::Unchanged));
        }
        let now = conversation.head().await.map_err(failed)?;
        if now.map(|head| head.revision) != revision {
            return Ok(None);
        }
        let mut ended = resumptions.ended;
        ended.retain(|ended| (self.next..=message).contains(&ended.from));
        Ok(Some(Look::Changed(Seen {
            next,
            followed,
            waiting,
            ended,
        })))
    }

    /// Sets the state after a wait that is over, or after another has begun.
    fn settle(&mut self, seen: &Seen) {
        let mut updates = TaskUpdates::new(self.task.clone());
        for entry in &seen.followed.own {
            if let EntryContent::Item(item) = &entry.content
                && item.role().as_deref() == Some("assistant")
            {
                let agent = entry.agent.as_deref().unwrap_or_default();
                updates.add_message(agent, &item.text().unwrap_or_default());
            }
        }
        let is_over = seen.waiting.is_empty() || seen.followed.message.is_some();
        let end = seen.ended.last().map(|ended| &ended.end);
        match end {
            _ if !is_over => {
                let question = updates.question(&seen.waiting);
                updates.settle(TaskState::InputRequired, Some(question), None);
                self.set_waiting(&seen.waiting);
            }
            _ if seen.followed.is_undecided && seen.followed.message.is_some() => {
                updates.cancel("Another message of the conversation came instead of a decision.");
            }
            Some(ResumptionEnd::CutOff) => drop(updates.fail(CUT_OFF)),
            Some(ResumptionEnd::Failed(message)) => drop(updates.fail(message)),
            Some(ResumptionEnd::Cancelled) => drop(updates.stop(true, None)),
            Some(ResumptionEnd::Stopped) => drop(updates.stop(false, None)),
            None if seen.followed.is_undecided => {
                updates.cancel("The wait has ended without a decision.");
            }
            None => drop(updates.settle(TaskState::Completed, None, None)),
        }
        self.task = updates.task;
        self.next = seen.next;
    }
}

impl Followed {
    /// Reads the entries from the last one of the task on.
    fn of(entries: &[Entry]) -> Self {
        let run = entries.first().map(|entry| entry.run.clone());
        let mut rest = entries.get(1..).unwrap_or_default();
        let is_message = |entry: &&Entry| {
            let item = entry.content.item();
            Some(&entry.run) != run.as_ref()
                && item.is_some_and(|item| item.role().as_deref() == Some("user"))
        };
        let message = rest.iter().find(is_message);
        if let Some(message) = message {
            // What a message finds undecided is answered in its own run, before it.
            let end = rest.iter().position(|entry| entry.run == message.run);
            rest = rest.get(..end.unwrap_or_default()).unwrap_or_default();
        }
        let mut is_undecided = true;
        for entry in rest {
            match entry.content {
                EntryContent::Item(_) => is_undecided = false,
                EntryContent::Waiting(_) => is_undecided = true,
                _ => {}
            }
        }
        Self {
            own: rest.to_vec(),
            message: message.map(|message| message.position),
            is_undecided,
        }
    }
}
