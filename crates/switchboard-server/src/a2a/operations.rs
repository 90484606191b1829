//! The operations of A2A, which both bindings call.

use std::time::SystemTime;

use futures_util::stream::BoxStream;
use serde::Deserialize;
use serde_json::{Value, json};
use switchboard_core::conversation::Revision;

use super::card;
use super::error::{A2aError, A2aErrorKind};
use super::list::{self, TaskQuery};
use super::parameters::{ListParameters, TaskParameters, parse_time};
use super::record::TaskRecord;
use super::types::{Shown, TaskState};
use crate::service::{Caller, Service};
use crate::team::ServedTeam;

/// The number of tasks on a page, unless the client asks for another.
const DEFAULT_PAGE: usize = 50;
const MAX_PAGE: usize = 100;

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
