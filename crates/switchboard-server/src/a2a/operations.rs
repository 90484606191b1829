//! The operations of A2A, which both bindings call.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt as _, StreamExt as _};
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::conversation::{Expected, Revision};

use super::card;
use super::error::{A2aError, A2aErrorKind};
use super::follow::{WaitingTask, keep_record, live_task, only_task, updates_of};
use super::list::{self, TaskQuery};
use super::message::{ClientMessage, Reply};
use super::parameters::{
    Configuration, ListParameters, SendParameters, TaskParameters, parse_time,
};
use super::record::TaskRecord;
use super::types::{Metadata, Shown, Task, TaskState};
use super::updates::{TaskUpdates, status};
use crate::error::ServiceError;
use crate::keys::random_id;
use crate::records::RecordKind;
use crate::runs::RunRecord;
use crate::service::{Caller, Follower, Message, MessageOptions, Service};
use crate::team::ServedTeam;

/// The number of tasks on a page, unless the client asks for another.
const DEFAULT_PAGE: usize = 50;
const MAX_PAGE: usize = 100;

/// The pause between looking at a task that waits.
const WAIT_PAUSE: Duration = Duration::from_secs(1);

/// The operations, by their names in JSON-RPC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operation {
    SendMessage,
    SendStreamingMessage,
    GetTask,
    ListTasks,
    CancelTask,
    SubscribeToTask,
    /// One of the four that configure push notifications.
    PushNotifications,
    GetExtendedAgentCard,
}

impl Operation {
    pub(super) fn of_method(method: &str) -> Option<Self> {
        Some(match method {
            "SendMessage" => Self::SendMessage,
            "SendStreamingMessage" => Self::SendStreamingMessage,
            "GetTask" => Self::GetTask,
            "ListTasks" => Self::ListTasks,
            "CancelTask" => Self::CancelTask,
            "SubscribeToTask" => Self::SubscribeToTask,
            "CreateTaskPushNotificationConfig"
            | "GetTaskPushNotificationConfig"
            | "ListTaskPushNotificationConfigs"
            | "DeleteTaskPushNotificationConfig" => Self::PushNotifications,
            "GetExtendedAgentCard" => Self::GetExtendedAgentCard,
            _ => return None,
        })
    }
}

/// The answer to an operation.
pub(super) enum Answer {
    Object(Value),
    Stream(BoxStream<'static, Value>),
}

/// A client of a team.
#[derive(Clone)]
pub(super) struct Agent {
    pub(super) service: Service,
    pub(super) caller: Caller,
    pub(super) team: ServedTeam,
    /// The address of the service, as the client knows it.
    pub(super) base: String,
}

impl Agent {
    /// Carries an operation out.
    pub(super) async fn call(
        &self,
        operation: Operation,
        parameters: Value,
    ) -> Result<Answer, A2aError> {
        Ok(match operation {
            Operation::SendMessage => Answer::Object(self.send(read(parameters)?).await?),
            Operation::SendStreamingMessage => {
                Answer::Stream(self.send_streaming(read(parameters)?).await?)
            }
            Operation::GetTask => Answer::Object(self.get(read(parameters)?).await?),
            Operation::ListTasks => Answer::Object(self.list(read(parameters)?).await?),
            Operation::CancelTask => Answer::Object(self.cancel(read(parameters)?).await?),
            Operation::SubscribeToTask => Answer::Stream(self.subscribe(read(parameters)?).await?),
            Operation::PushNotifications => {
                let message = "this agent has no push notifications; stream, or get the task";
                return Err(A2aError::new(
                    A2aErrorKind::PushNotificationNotSupported,
                    message,
                ));
            }
            Operation::GetExtendedAgentCard => Answer::Object(self.extended_card()?),
        })
    }

    fn extended_card(&self) -> Result<Value, A2aError> {
        if self.service.inner().keys.is_none() {
            return Err(A2aError::unsupported("the agent card is all there is"));
        }
        Ok(card::agent_card(
            &self.service,
            &self.team,
            &self.base,
            card::Detail::Agents,
        ))
    }

    async fn send(&self, parameters: SendParameters) -> Result<Value, A2aError> {
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
        let id = record.task.id;
        let (record, _) = self.load(&id).await?;
        Ok(json!({"task": record.task.show(shown)}))
    }

    async fn send_streaming(
        &self,
        parameters: SendParameters,
    ) -> Result<BoxStream<'static, Value>, A2aError> {
        let configuration = parameters.configuration()?;
        Ok(match self.begin(parameters, &configuration).await? {
            Begun::Run(run, record) => updates_of(self, &run, TaskUpdates::new(record.task), 0),
            Begun::Unchanged(record) => only_task(record.task),
        })
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
        match message.task.clone() {
            None => self.begin_task(&message).await,
            Some(id) => self.continue_task(&id, &message).await,
        }
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
                let message = "this context belongs to another agent";
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
            waiting: Vec::new(),
            next: 0,
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
            let message = "the task belongs to another context";
            return Err(A2aError::invalid("message.contextId", message));
        }
        match record.task.status.state {
            TaskState::InputRequired => {}
            state if state.is_terminal() => {
                return Err(A2aError::unsupported(
                    "the task has ended; send a message with its contextId and without a taskId",
                ));
            }
            _ => return Err(A2aError::unsupported("the task is under way")),
        }
        let waiting = service.waiting_for(caller, &context).await?;
        let Some(reply) = message.reply(&waiting)? else {
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
        let options = self.options(&resumed, Some(waited), run_id);
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
                let expected = Expected::At(revision);
                record.save(service, caller, expected).await?;
                Err(error.into())
            }
        }
    }

    /// Adds a message that is no decision to the history of its task, and asks once more.
    async fn ask_again(
        &self,
        mut record: TaskRecord,
        revision: Revision,
        message: &ClientMessage,
    ) -> Result<Begun, A2aError> {
        let task = &mut record.task;
        let message = message.for_history(&task.context_id, &task.id);
        task.history.push(message);
        let saved = record.save(&self.service, &self.caller, Expected::At(revision));
        saved.await?.ok_or_else(too_late)?;
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

    pub(super) async fn load(&self, id: &str) -> Result<(TaskRecord, Revision), A2aError> {
        TaskRecord::load(&self.service, &self.caller, self.team.name(), id).await
    }

    async fn get(&self, parameters: TaskParameters) -> Result<Value, A2aError> {
        let shown = Shown {
            history_length: parameters.history_length()?,
            with_artifacts: true,
        };
        let (record, _) = self.load(&parameters.id).await?;
        Ok(record.now(&self.service, &self.caller).show(shown))
    }

    async fn list(&self, parameters: ListParameters) -> Result<Value, A2aError> {
        let limit = match parameters.page_size {
            None => DEFAULT_PAGE,
            Some(size) => match usize::try_from(size) {
                Ok(size @ 1..=MAX_PAGE) => size,
                _ => return Err(A2aError::invalid("pageSize", "pageSize is from 1 to 100")),
            },
        };
        let shown = Shown {
            history_length: parameters.history_length()?,
            with_artifacts: parameters.include_artifacts == Some(true),
        };
        let state = match parameters.status.as_deref() {
            None | Some("" | "TASK_STATE_UNSPECIFIED") => None,
            Some(name) => {
                let state = TaskState::deserialize(Value::from(name));
                let message = format!("{name:?} is no state of a task");
                Some(state.map_err(|_| A2aError::invalid("status", message))?)
            }
        };
        let changed_since: Option<SystemTime> = match parameters.status_timestamp_after.as_deref() {
            None | Some("") => None,
            Some(text) => {
                let message = "this is no time, such as 2026-11-16T09:05:06.250Z";
                let time = parse_time(text);
                Some(time.ok_or_else(|| A2aError::invalid("statusTimestampAfter", message))?)
            }
        };
        let not_empty = |text: &&str| !text.is_empty();
        let query = TaskQuery {
            team: self.team.name(),
            context: parameters.context_id.as_deref().filter(not_empty),
            state,
            changed_since,
            limit,
            cursor: parameters.page_token.as_deref().filter(not_empty),
        };
        let page = list::list(&self.service, &self.caller, query).await?;
        let tasks: Vec<Value> = page
            .tasks
            .into_iter()
            .map(|record| record.now(&self.service, &self.caller).show(shown))
            .collect();
        Ok(json!({
            "tasks": tasks, "nextPageToken": page.next, "pageSize": limit,
            "totalSize": page.total,
        }))
    }

    async fn subscribe(
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
                        // Its run is about to begin.
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        continue;
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
    A2aError::unsupported("another message of the task came first")
}

fn read<T: for<'de> Deserialize<'de>>(parameters: Value) -> Result<T, A2aError> {
    let parameters = match parameters {
        Value::Null => json!({}),
        other => other,
    };
    serde_json::from_value(parameters).map_err(|error| {
        let message = format!("the parameters are not what this operation expects: {error}");
        A2aError::new(A2aErrorKind::InvalidParams, message)
    })
}
