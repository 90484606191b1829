//! One message to a remote agent, and its answer.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::Uri;
use http::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use switchboard_core::callback::BoxError;
use switchboard_core::model::{ModelEvent, Usage};
use switchboard_core::{Item, ModelRequest, ModelResponse};
use url::Url;

use super::RemoteAgent;
use super::card::{AgentCard, Binding};
use super::history::{News, Place, answer_item};
use super::task::RemoteTask;
use crate::wire::PLACEHOLDER_ID;
use crate::wire::client::{BytesCall, Client, Events, ResponseBody};
use crate::wire::model_error::{ModelError, ModelErrorKind};
use crate::wire::sse::Event;

/// The header with the version of the protocol.
const VERSION: HeaderName = HeaderName::from_static("a2a-version");

/// The pauses between questions for a task that is under way; each is twice as long as the one before.
const FIRST_PAUSE: Duration = Duration::from_millis(250);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The longest time that cancelling a task may take.
const CANCEL_TIME: Duration = Duration::from_secs(10);

/// The codes of JSON-RPC for a task that is not there, or takes no message any more.
const TASK_ENDED: [&str; 4] = [
    "-32001",
    "-32004",
    "TASK_NOT_FOUND",
    "UNSUPPORTED_OPERATION",
];

/// An exchange with a remote agent.
pub(super) struct Exchange {
    agent: RemoteAgent,
    request: ModelRequest,
    is_streamed: bool,
    ready: VecDeque<ModelEvent>,
    state: State,
    task: RemoteTask,
    card: Option<Arc<AgentCard>>,
}

enum State {
    Start,
    Reading(Box<Events>),
    /// The task is under way, and the stream of its updates has ended, or there was none.
    Asking {
        pause: Duration,
        until: Option<Instant>,
    },
    Finished,
}

impl Exchange {
    pub(super) fn new(agent: RemoteAgent, request: ModelRequest, is_streamed: bool) -> Self {
        Self {
            agent,
            request,
            is_streamed,
            ready: VecDeque::new(),
            state: State::Start,
            task: RemoteTask::default(),
            card: None,
        }
    }

    /// The next event; `None` after the last.
    pub(super) async fn next(&mut self) -> Option<Result<ModelEvent, BoxError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(Ok(event));
            }
            if matches!(self.state, State::Finished) {
                return None;
            }
            if let Err(error) = self.advance().await {
                self.state = State::Finished;
                self.ready.clear();
                let url = self.agent.0.card.url();
                return Some(Err(self.agent.client().report(error, &self.request, url)));
            }
        }
    }

    /// Moves on to the next state or fills `ready`.
    async fn advance(&mut self) -> Result<(), ModelError> {
        match &mut self.state {
            State::Start => self.start().await?,
            State::Reading(events) => match events.next().await {
                Ok(Some(Event::Data(data) | Event::Error(data))) => {
                    let result = self.result(data.as_bytes())?;
                    self.read(&result);
                }
                Ok(None) => self.ask(),
                // The task goes on without this connection.
                Err(error) if self.task.id.is_some() && is_lost(&error) => {
                    tracing::warn!(%error, "the stream of a remote task broke off");
                    self.ask();
                }
                Err(error) => return Err(error),
            },
            State::Asking { pause, until } => {
                if until.is_some_and(|until| Instant::now() >= until) {
                    let message = "the remote agent took too long";
                    return Err(ModelError::new(ModelErrorKind::Timeout, message));
                }
                tokio::time::sleep(*pause).await;
                *pause = (*pause * 2).min(LONGEST_PAUSE);
                let Some(id) = self.task.id.clone() else {
                    let message = "the remote agent's answer ended before its end";
                    return Err(ModelError::new(ModelErrorKind::Interrupted, message));
                };
                let call = self.call(Operation::GetTask(&id))?;
                let body = self.agent.client().send_bytes(&call).await?;
                let task = self.read_object(body).await?;
                // Over JSON-RPC and HTTP+JSON the result is the task itself.
                self.read(&json!({"task": task}));
            }
            State::Finished => {}
        }
        if !matches!(self.state, State::Finished) && self.task.is_settled() {
            self.finish()?;
        }
        Ok(())
    }

    /// Sends the message, or hands it back.
    async fn start(&mut self) -> Result<(), ModelError> {
        let news = News::find(&self.request, &self.agent.0.card.id());
        if let Some(handoff) = self.way_back(&news) {
            self.ready.push_back(ModelEvent::Completed(handoff));
            self.state = State::Finished;
            return Ok(());
        }
        if news.parts.is_empty() {
            let message = "there is nothing that the remote agent could be told: the conversation has no message for it";
            return Err(ModelError::unsupported(message));
        }
        let card = self.agent.0.card.get().await?;
        let is_streamed = self.is_streamed && card.is_streaming;
        self.card = Some(card);
        let mut place = news.place;
        // The same for all attempts, so that a server can tell that it has the message.
        let message_id = format!("{:032x}", fastrand::u128(..));
        let mut attempt = 1;
        loop {
            let message = message(&message_id, &news.parts, place.as_ref());
            let sent = self.send(message, is_streamed).await;
            match sent {
                Ok(()) => return Ok(()),
                // The task has ended meanwhile: the message begins another in the same context.
                Err(error)
                    if has_ended(&error) && place.as_ref().is_some_and(|place| place.is_open) =>
                {
                    if let Some(place) = &mut place {
                        place.is_open = false;
                    }
                }
                Err(error) if was_not_taken(&error) => {
                    let retry = self.agent.client().plan_bytes_retry(error, attempt)?;
                    tokio::time::sleep(retry.delay).await;
                    attempt = retry.attempt;
                    self.ready.push_back(ModelEvent::Retry(retry));
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The handoff by which a message goes back that came after the remote agent's task had ended.
    fn way_back(&self, news: &News) -> Option<ModelResponse> {
        let place = news.place.as_ref().filter(|place| !place.is_open)?;
        let message = news.direct_message?;
        let handoff = self.request.handoffs.first()?;
        let task = place.task_id.as_deref().unwrap_or_default();
        let key = {
            use std::hash::BuildHasher as _;
            rustc_hash::FxBuildHasher.hash_one((message, task))
        };
        if !self.agent.note_handed_back(key) {
            return None;
        }
        let call_id = format!("call_{:016x}", fastrand::u64(..));
        let call = Item::function_call(&call_id, &handoff.tool_name, "{}");
        Some(ModelResponse::new([call]))
    }

    async fn send(&mut self, message: Value, is_streamed: bool) -> Result<(), ModelError> {
        let operation = if is_streamed {
            Operation::SendStreamingMessage(message)
        } else {
            Operation::SendMessage(message)
        };
        let call = self.call(operation)?;
        let body = self.agent.client().send_bytes(&call).await?;
        if is_streamed && body.media_type() == "text/event-stream" {
            let mut events = body.into_events();
            // An error that comes first is one of the request.
            let first = events.next().await?;
            self.state = State::Reading(Box::new(events));
            if let Some(Event::Data(data) | Event::Error(data)) = first {
                let result = self.result(data.as_bytes())?;
                self.read(&result);
            }
            return Ok(());
        }
        let result = self.read_object(body).await?;
        self.read(&result);
        self.ask();
        Ok(())
    }

    fn ask(&mut self) {
        let total = self.agent.client().total_timeout();
        self.state = State::Asking {
            pause: FIRST_PAUSE,
            until: total.map(|total| Instant::now() + total),
        };
    }

    /// Reads a task, a message or an update, and passes its text on.
    fn read(&mut self, result: &Value) {
        let text = self.task.read(result);
        if self.is_streamed && !text.is_empty() {
            let delta = ModelEvent::text_delta(PLACEHOLDER_ID, text);
            self.ready.push_back(delta);
        }
    }

    /// Ends the exchange with the answer, or with the failure of the task.
    fn finish(&mut self) -> Result<(), ModelError> {
        if let State::Reading(events) = std::mem::replace(&mut self.state, State::Finished) {
            events.drain();
        }
        if let Some(error) = self.task.error() {
            return Err(error);
        }
        let place = Place {
            agent: self.agent.0.card.id(),
            context_id: self.task.context_id.clone(),
            task_id: self.task.id.clone(),
            is_open: self.task.is_open(),
        };
        let item = answer_item(&self.task.text(), &place);
        let usage = Usage {
            requests: 1,
            ..Usage::default()
        };
        let answer = ModelResponse::new([item]).usage(usage);
        self.ready.push_back(ModelEvent::Completed(answer));
        Ok(())
    }

    /// The result in a response: the body itself, or what JSON-RPC puts around it.
    fn result(&self, body: &[u8]) -> Result<Value, ModelError> {
        let parsed = serde_json::from_slice::<Value>(body);
        let mut parsed = parsed.map_err(|error| {
            let message = format!("the answer is not JSON: {error}");
            ModelError::new(ModelErrorKind::BadAnswer, message)
        })?;
        let error = &parsed["error"];
        if !error.is_null() {
            let message = error["message"]
                .as_str()
                .unwrap_or("the request was refused");
            let code = match &error["code"] {
                Value::String(code) => Some(code.clone()),
                Value::Number(code) => Some(code.to_string()),
                _ => None,
            };
            let refused = ModelError::new(ModelErrorKind::Request, message);
            return Err(refused.with(|details| details.code = code));
        }
        Ok(match self.card.as_ref().map(|card| card.binding) {
            Some(Binding::JsonRpc) => parsed["result"].take(),
            _ => parsed,
        })
    }

    async fn read_object(&self, mut body: ResponseBody) -> Result<Value, ModelError> {
        let bytes = body.read_bytes().await?;
        self.result(&bytes)
    }

    fn call(&self, operation: Operation<'_>) -> Result<BytesCall, ModelError> {
        let Some(card) = &self.card else {
            return Err(ModelError::configuration("the agent card is missing"));
        };
        operation.call(card)
    }
}

/// Cancels the task of a run that was stopped.
impl Drop for Exchange {
    fn drop(&mut self) {
        if matches!(self.state, State::Start | State::Finished) {
            return;
        }
        let (Some(id), Some(card)) = (self.task.id.take(), &self.card) else {
            return;
        };
        let Ok(call) = Operation::CancelTask(&id).call(card) else {
            return;
        };
        let client: Client = self.agent.client().clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                let cancelled = tokio::time::timeout(CANCEL_TIME, client.send_bytes(&call)).await;
                if !matches!(cancelled, Ok(Ok(_))) {
                    tracing::debug!("a remote task could not be cancelled");
                }
            });
        }
    }
}

/// The operations of A2A that this client calls.
enum Operation<'a> {
    SendMessage(Value),
    SendStreamingMessage(Value),
    GetTask(&'a str),
    CancelTask(&'a str),
}

impl Operation<'_> {
    fn call(self, card: &AgentCard) -> Result<BytesCall, ModelError> {
        let is_streamed = matches!(self, Self::SendStreamingMessage(_));
        let (method, path, mut parameters) = match self {
            Self::SendMessage(message) => ("SendMessage", "message:send".to_owned(), send(message)),
            Self::SendStreamingMessage(message) => {
                let path = "message:stream".to_owned();
                ("SendStreamingMessage", path, send(message))
            }
            Self::GetTask(id) => (
                "GetTask",
                format!("tasks/{}", encoded(id)),
                json!({"id": id}),
            ),
            Self::CancelTask(id) => {
                let path = format!("tasks/{}:cancel", encoded(id));
                ("CancelTask", path, json!({"id": id}))
            }
        };
        if let Some(tenant) = &card.tenant {
            parameters["tenant"] = tenant.as_str().into();
        }
        let (url, body, is_get) = match card.binding {
            Binding::JsonRpc => {
                let body =
                    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters});
                (card.url.clone(), Some(body), false)
            }
            Binding::HttpJson => {
                let url = below(&card.url, &path);
                let is_get = method == "GetTask";
                (url, (!is_get).then_some(parameters), is_get)
            }
        };
        let accept = if is_streamed {
            "text/event-stream"
        } else {
            "application/json"
        };
        let url: Uri = url
            .as_str()
            .parse()
            .map_err(|_| ModelError::configuration("the address of the agent cannot be used"))?;
        Ok(BytesCall {
            is_get,
            url,
            content_type: HeaderValue::from_static("application/json"),
            accept: HeaderValue::from_static(accept),
            added_header: Some((VERSION, HeaderValue::from_static("1.0"))),
            body: body.map(|body| body.to_string()).unwrap_or_default().into(),
        })
    }
}

fn send(message: Value) -> Value {
    json!({
        "message": message,
        "configuration": {"acceptedOutputModes": ["text/plain", "application/json"]},
    })
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    let path = format!("{}/{path}", base.path().trim_end_matches('/'));
    url.set_path(&path);
    url
}

/// An identifier as a segment of a path.
fn encoded(id: &str) -> String {
    percent_encoding::utf8_percent_encode(id, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn message(id: &str, parts: &[Value], place: Option<&Place>) -> Value {
    let mut message = json!({"messageId": id, "role": "ROLE_USER", "parts": parts});
    if let Some(place) = place {
        if let Some(context) = &place.context_id {
            message["contextId"] = context.as_str().into();
        }
        if let Some(task) = place.task_id.as_ref().filter(|_| place.is_open) {
            message["taskId"] = task.as_str().into();
        }
    }
    message
}

/// Returns `true` if the connection broke, so that the task may still be under way.
fn is_lost(error: &ModelError) -> bool {
    use ModelErrorKind::{Connection, Interrupted};
    matches!(error.kind(), Connection | Interrupted)
}

/// Returns `true` if the server has certainly not begun with the message.
fn was_not_taken(error: &ModelError) -> bool {
    error.is_unsent() || matches!(error.status(), Some(429 | 503))
}

/// Returns `true` if the message's task takes no message any more.
fn has_ended(error: &ModelError) -> bool {
    error.code().is_some_and(|code| TASK_ENDED.contains(&code))
        || (error.status() == Some(404) && error.code() == Some("404"))
}
