//! Messages of clients: each begins a task, or decides what one waits for.

use std::sync::Arc;
use std::time::Duration;

use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use switchboard_core::conversation::{Expected, Revision};

use super::error::{A2aError, A2aErrorKind};
use super::follow::{WaitingTask, keep_record, live_task, only_task, updates_of};
use super::message::{ClientMessage, Reply};
use super::operations::Agent;
use super::parameters::{Configuration, SendParameters};
use super::record::TaskRecord;
use super::types::{Metadata, Task, TaskState};
use super::updates::{TaskUpdates, status};
use crate::error::ServiceError;
use crate::keys::random_id;
use crate::records::RecordKind;
use crate::runs::RunRecord;
use crate::service::{Follower, Message, MessageOptions};

/// The number of messages between a question and its decision that the history of a task has, and the longest of them
/// in bytes: each is stored with all that is before it.
const MAX_UNDECIDED: usize = 8;
const MAX_UNDECIDED_BYTES: usize = 16 * 1024;

/// The pause between looking at a task that another run works on.
const SETTLE_PAUSE: Duration = Duration::from_millis(50);

/// The outcome of a message.
enum Begun {
    Run(Arc<RunRecord>, Box<TaskRecord>),
    /// The task waits as before.
    Unchanged(Box<TaskRecord>),
}

impl Begun {
    fn task(&self) -> &Task {
        match self {
            Self::Run(_, record) | Self::Unchanged(record) => &record.task,
        }
    }
}

fn too_late() -> A2aError {
    A2aError::unsupported(
        "another message of the task came first; get the task to see what came of it",
    )
}

impl Agent {
    /// Sends a message, and waits for the end of its run.
    pub(super) async fn send(&self, parameters: SendParameters) -> Result<Value, A2aError> {
        let configuration = parameters.configuration()?;
        let shown = configuration.shown()?;
        let begun = self.begin(parameters, &configuration).await?;
        let Begun::Run(run, record) = begun else {
            return Ok(json!({"task": begun.task().show(shown)}));
        };
        if configuration.return_immediately {
            return Ok(json!({"task": live_task(&record, &run).task.show(shown)}));
        }
        run.log.closed().await;
        let record = self.settled(&record.task.id).await?;
        Ok(json!({"task": record.task.show(shown)}))
    }

    /// Sends a message. The answer is the task, and then its updates.
    pub(super) async fn send_streaming(
        &self,
        parameters: SendParameters,
    ) -> Result<BoxStream<'static, Value>, A2aError> {
        let configuration = parameters.configuration()?;
        Ok(match self.begin(parameters, &configuration).await? {
            Begun::Run(run, record) => updates_of(self, &run, TaskUpdates::new(record.task), 0),
            Begun::Unchanged(record) => only_task(record.task),
        })
    }

    /// The task once no run works on it: where another decision came first, that one is carried out.
    pub(super) async fn settled(&self, id: &str) -> Result<TaskRecord, A2aError> {
        loop {
            let (record, _) = self.load(id).await?;
            if !record.task.status.state.is_running() || self.service.is_draining() {
                return Ok(record);
            }
            tokio::time::sleep(SETTLE_PAUSE).await;
        }
    }

    /// Begins the run of a message, or goes on with the one that its task waits in.
    async fn begin(
        &self,
        parameters: SendParameters,
        configuration: &Configuration,
    ) -> Result<Begun, A2aError> {
        if configuration.has_push_notifications {
            let message = "this agent has no push notifications; stream, or get the task";
            return Err(A2aError::new(
                A2aErrorKind::PushNotificationNotSupported,
                message,
            ));
        }
        let message = ClientMessage::parse(parameters.message)?;
        let agent = self.clone();
        // A client that disconnects must not leave the task of a run that has not begun.
        let begun = tokio::spawn(async move {
            match message.task.clone() {
                None => agent.begin_task(&message).await,
                Some(id) => agent.continue_task(&id, &message).await,
            }
        });
        begun.await.map_err(|_| ServiceError::panicked())?
    }

    async fn begin_task(&self, message: &ClientMessage) -> Result<Begun, A2aError> {
        let (service, caller) = (&self.service, &self.caller);
        let context: Arc<str> = match &message.context {
            Some(context) => context.as_str().into(),
            None => random_id("ctx")?,
        };
        let conversation = service
            .conversation(caller, &context)
            .map_err(|error| A2aError::invalid("message.contextId", error.message()))?;
        if message.context.is_some() {
            let head = conversation.head().await;
            let is_known = head
                .map_err(|error| ServiceError::of_store(&error))?
                .is_some();
            if is_known && service.team_of(caller, &conversation).await?.name() != self.team.name()
            {
                let message =
                    "this context belongs to another agent; leave contextId out to begin one";
                return Err(A2aError::invalid("message.contextId", message));
            }
        }
        let input = message.input()?;
        let id = random_id("task")?;
        let run_id = random_id("run")?;
        let record = TaskRecord {
            task: Task {
                id: id.to_string(),
                context_id: context.to_string(),
                status: status(TaskState::Submitted, None),
                artifacts: Vec::new(),
                history: vec![message.for_history(&context, &id)],
                metadata: Metadata::default(),
            },
            team: self.team.name().to_owned(),
            run: Some(run_id.to_string()),
            process: Some(service.process().to_string()),
            wait: None,
        };
        service.announce_process().await?;
        record.save(service, caller, Expected::New).await?;
        let message = Message {
            team: self.team.clone(),
            agent: None,
            conversation: Some(context),
            input,
            options: self.options(&record, None, run_id),
        };
        match service.send(caller, message).await {
            Ok(run) => Ok(Begun::Run(run, Box::new(record))),
            Err(error) => {
                // Best effort: the task was never begun.
                let _ = service.delete_record(caller, RecordKind::Task, &id).await;
                Err(error.into())
            }
        }
    }

    async fn continue_task(&self, id: &str, message: &ClientMessage) -> Result<Begun, A2aError> {
        let (service, caller) = (&self.service, &self.caller);
        let (record, revision) = self.load(id).await?;
        let context = record.task.context_id.clone();
        if message
            .context
            .as_ref()
            .is_some_and(|given| *given != context)
        {
            let message = "the task belongs to another context; leave contextId out";
            return Err(A2aError::invalid("message.contextId", message));
        }
        match record.task.status.state {
            TaskState::InputRequired => {}
            state if state.is_terminal() => {
                return Err(A2aError::unsupported(
                    "the task has ended; send a message with its contextId and without a taskId",
                ));
            }
            _ => {
                return Err(A2aError::unsupported(
                    "the task is under way; subscribe to it, or cancel it",
                ));
            }
        }
        let wait = service.waiting_for(caller, &context).await?;
        let wait = wait.filter(|wait| Some(wait.at) == record.wait);
        let wait = wait.ok_or_else(too_late)?;
        let Some(reply) = message.reply(&wait.calls)? else {
            return self.ask_again(record, revision, message).await;
        };
        let run_id = random_id("run")?;
        let mut resumed = record.clone();
        let task = &mut resumed.task;
        task.history.extend(task.status.message.take());
        task.history.push(message.for_history(&context, id));
        task.status = status(TaskState::Working, None);
        resumed.run = Some(run_id.to_string());
        resumed.process = Some(service.process().to_string());
        service.announce_process().await?;
        let saved = resumed.save(service, caller, Expected::At(revision));
        let revision = saved.await?.ok_or_else(too_late)?;
        let waited = WaitingTask {
            record: record.clone(),
            resumed: revision,
        };
        let mut options = self.options(&resumed, Some(waited), run_id);
        options.wait = Some(wait.at);
        let run = match reply {
            Reply::Decisions(decisions) => {
                service.decide(caller, &context, decisions, options).await
            }
            Reply::Person(person, answer) => {
                let person = person.as_deref();
                service
                    .answer(caller, &context, person, Ok(answer), options)
                    .await
            }
        };
        match run {
            Ok(run) => Ok(Begun::Run(run, Box::new(resumed))),
            Err(error) => {
                // Whoever asks for the task finds out that it still waits, if this fails.
                let saved = record.save(service, caller, Expected::At(revision));
                if let Err(error) = saved.await {
                    tracing::warn!(%error, task = id, "a task could not be stored");
                }
                Err(error.into())
            }
        }
    }

    /// Adds a message that is no decision to the history of its task, if there is room for it, and asks once more.
    async fn ask_again(
        &self,
        mut record: TaskRecord,
        revision: Revision,
        message: &ClientMessage,
    ) -> Result<Begun, A2aError> {
        let task = &mut record.task;
        let message = message.for_history(&task.context_id, &task.id);
        let history = task.history.iter().skip(1).rev();
        let undecided = history.take_while(|message| message["role"] == "ROLE_USER");
        let is_kept =
            undecided.count() < MAX_UNDECIDED && message.to_string().len() <= MAX_UNDECIDED_BYTES;
        if is_kept {
            task.history.push(message);
            let saved = record.save(&self.service, &self.caller, Expected::At(revision));
            saved.await?.ok_or_else(too_late)?;
        }
        let text =
            "This is no decision. Answer \"approve\" or \"reject\", or with decisions as data.";
        if let Some(question) = &mut record.task.status.message
            && let Some(parts) = question["parts"].as_array_mut()
        {
            parts.insert(0, json!({"text": text}));
        }
        Ok(Begun::Unchanged(Box::new(record)))
    }

    /// The settings of a task's run: it keeps the task up to date, whether or not a client follows it. `waited` is the
    /// task as it was before, if its run goes on.
    fn options(
        &self,
        record: &TaskRecord,
        waited: Option<WaitingTask>,
        run_id: Arc<str>,
    ) -> MessageOptions {
        let (service, caller) = (self.service.clone(), self.caller.clone());
        let record = record.clone();
        MessageOptions {
            run_id: Some(run_id),
            follower: Some(Follower::new(move |run| {
                keep_record(service, caller, record, waited, run)
            })),
            ..MessageOptions::default()
        }
    }
}
