//! AG-UI 1.0, the protocol between agents and user interfaces, over server-sent events.
//!
//! A thread is a conversation, and a run a run. The client's messages are compared with what was given before
//! ([`history`]), the events of the run are translated ([`output`]), agents inside calls are subagents
//! ([`subagents`]), and calls that wait are interrupts ([`interrupt`]).
//!
//! Requests without a valid key, beyond a limit, to a team that does not exist or that are no `RunAgentInput` get a
//! status of HTTP. What the thread does not allow is told as `RUN_ERROR`, as the protocol asks.

mod event;
mod history;
mod input;
mod interrupt;
mod output;
mod producer;
mod subagents;

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderName, HeaderValue};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use futures_util::stream;
use serde_json::Value;
use switchboard_core::Item;

use self::event::Sent;
use self::history::History;
pub(crate) use self::history::record_name;
use self::input::{Message as AguiMessage, RunAgentInput};
use self::interrupt::interrupt_id;
use self::output::{OutputEvents, RunNames};
use crate::api::KEEP_ALIVE;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::event_log::Read;
use crate::http::{JsonBody, PathOf};
use crate::idempotency::IdempotencyKey;
use crate::keys::random_id;
use crate::runs::RunRecord;
use crate::service::{Caller, GivenOutputs, Message, MessageOptions, OutputsGiven, Service};
use crate::team::ServedTeam;

pub(crate) fn routes() -> Router<Service> {
    Router::new()
        .route("/agui/{team}", post(run_team))
        .route("/agui/{team}/{agent}", post(run_agent))
}

/// Runs a team.
async fn run_team(
    State(service): State<Service>,
    caller: Caller,
    PathOf(team): PathOf<String>,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ServiceError> {
    run(service, caller, &team, None, body).await
}

/// Runs a team whose new conversations begin with an agent.
async fn run_agent(
    State(service): State<Service>,
    caller: Caller,
    PathOf((team, agent)): PathOf<(String, String)>,
    JsonBody(body): JsonBody<Value>,
) -> Result<Response, ServiceError> {
    run(service, caller, &team, Some(agent.into()), body).await
}

async fn run(
    service: Service,
    caller: Caller,
    team: &str,
    agent: Option<Arc<str>>,
    body: Value,
) -> Result<Response, ServiceError> {
    let team = service.team(&caller, team)?;
    let key = idempotency_key(&team, &body);
    let mut input: RunAgentInput = serde_json::from_value(body).map_err(|error| {
        ServiceError::invalid(format!(
            "the body is no RunAgentInput of AG-UI 1.0: {error}"
        ))
    })?;
    input.check()?;
    input.remove_subagent_messages();
    let agent = match agent {
        Some(agent) => Some(agent),
        None => input.agent()?,
    };
    if let Some(agent) = &agent
        && !team.has_agent(agent)
    {
        let message = format!("the team {:?} has no agent {agent:?}", team.name());
        return Err(ServiceError::not_found(message));
    }
    service.conversation(&caller, &input.thread_id)?;
    let names = RunNames {
        thread: input.thread_id.clone(),
        run: input.run_id.clone(),
        parent: input.parent_run_id.clone(),
    };
    match start(&service, &caller, &team, agent, &input, key).await {
        Ok(run) => {
            let events = OutputEvents::new(team.clone(), names, &run.id);
            Ok(stream_run(&run, events))
        }
        Err(error) => match error.kind() {
            ServiceErrorKind::InvalidRequest
            | ServiceErrorKind::Conflict
            | ServiceErrorKind::NotFound => {
                let events = OutputEvents::new(team.clone(), names, "");
                Ok(stream_error(events, &error))
            }
            _ => Err(error),
        },
    }
}

/// The key by which a request that is sent a second time is told from another one.
fn idempotency_key(team: &ServedTeam, body: &Value) -> IdempotencyKey {
    IdempotencyKey::of_request("agui", &[team.name(), &body.to_string()])
}

/// Begins the run: with new messages, with the results of the client's tools, or with answers to interrupts.
async fn start(
    service: &Service,
    caller: &Caller,
    team: &ServedTeam,
    agent: Option<Arc<str>>,
    input: &RunAgentInput,
    key: IdempotencyKey,
) -> Result<Arc<RunRecord>, ServiceError> {
    if let Some(run) = service.run_with_key(caller, &key)? {
        return Ok(run);
    }
    let thread = &input.thread_id;
    let _lock = service.lock_conversation(caller, thread).await?;
    service.wait_for_runs(caller, thread).await?;
    if let Some(run) = service.run_with_key(caller, &key)? {
        return Ok(run);
    }
    let mut options = MessageOptions {
        client_tools: input.client_tools()?,
        instructions: input.instructions(),
        idempotency_key: Some(key),
        run_id: Some(random_id("run")?),
        ..MessageOptions::default()
    };
    let resolutions = input.resume.iter().flatten();
    let resolutions = resolutions
        .map(|entry| Ok((entry.interrupt_id(), entry.resolution()?)))
        .collect::<Result<Vec<_>, ServiceError>>()?;
    let answered: Vec<&str> = resolutions.iter().map(|(id, _)| *id).collect();
    check_interrupts(service, caller, team, thread, &answered).await?;

    let conversation = service.conversation(caller, thread)?;
    let history = History::load(service, caller, thread).await?;
    let is_resumed = !resolutions.is_empty();
    options.admission = Some(service.admit(caller)?);
    let part = history
        .align(&conversation, &input.messages, is_resumed)
        .await?;
    let outputs = RunAgentInput::outputs(&input.messages[part.after_given..]);
    let new = &input.messages[part.start..];
    if is_resumed {
        let resolutions = resolutions.into_iter().map(|(_, resolution)| resolution);
        let options = MessageOptions {
            added: user_items(new)?,
            ..options
        };
        return service
            .resolve(caller, thread, resolutions.collect(), outputs, options)
            .await;
    }
    let given = GivenOutputs {
        outputs,
        added: user_items(new)?,
    };
    let options = match service.give_outputs(caller, thread, given, options).await? {
        OutputsGiven::Resumed(run) => return Ok(run),
        OutputsGiven::NotWaiting(options) => *options,
    };
    let items = if part.start == 0 {
        // A history that begins the conversation.
        let items = new.iter().map(AguiMessage::items);
        items.collect::<Result<Vec<_>, _>>()?.concat()
    } else {
        user_items(new)?
    };
    if items.is_empty() {
        return Err(ServiceError::invalid(
            "there is nothing new to answer: no message of the user, no result of a tool, no resume",
        ));
    }
    let message = Message {
        team: team.clone(),
        agent,
        conversation: Some(thread.clone()),
        input: items.into(),
        options,
    };
    service.send(caller, message).await
}

/// The messages of the user as items.
fn user_items(messages: &[AguiMessage]) -> Result<Vec<Item>, ServiceError> {
    let users = messages
        .iter()
        .filter(|message| message.role == input::Role::User);
    let items = users.map(AguiMessage::items);
    Ok(items.collect::<Result<Vec<_>, _>>()?.concat())
}

/// Checks that all calls that wait for a decision are answered, and nothing else. People may be answered elsewhere,
/// and the user may write to them meanwhile.
async fn check_interrupts(
    service: &Service,
    caller: &Caller,
    team: &ServedTeam,
    thread: &str,
    answered: &[&str],
) -> Result<(), ServiceError> {
    let conversation = service.conversation(caller, thread)?;
    let run = conversation.waiting_run().await;
    let run = run.map_err(|error| ServiceError::of_store(&error))?;
    let waiting = run.map(|run| run.interruptions()).unwrap_or_default();
    let waiting = waiting
        .iter()
        .filter(|waiting| !team.is_client_call(waiting));
    let waiting: Vec<(Arc<str>, bool)> = waiting
        .map(|waiting| {
            let is_call = !waiting.call_id.is_empty() && interrupt_id(waiting) == waiting.call_id;
            (interrupt_id(waiting), is_call)
        })
        .collect();
    let is_waiting = |id: &str| waiting.iter().any(|(known, _)| **known == *id);
    if let Some(unknown) = answered.iter().find(|id| !is_waiting(id)) {
        let message = format!("the interrupt {unknown:?} does not wait in this thread");
        return Err(ServiceError::new(ServiceErrorKind::Conflict, message));
    }
    let open = waiting
        .iter()
        .find(|(id, is_call)| *is_call && !answered.contains(&&**id));
    match open {
        Some((id, _)) => {
            let message = format!(
                "the interrupt {id:?} waits: resume must answer every call that waits before anything else is sent"
            );
            Err(ServiceError::new(ServiceErrorKind::Conflict, message))
        }
        None => Ok(()),
    }
}

/// Answers with the events of a run. The run goes on if the client disconnects.
fn stream_run(run: &Arc<RunRecord>, events: OutputEvents) -> Response {
    let first = vec![events.begin()];
    let state = (run.log.read_after(0), events, first.into_iter());
    let sent = stream::unfold(state, |(mut reader, mut events, mut waiting)| async move {
        loop {
            if let Some(event) = waiting.next() {
                return Some((sse_event(&event), (reader, events, waiting)));
            }
            if events.is_ended() {
                return None;
            }
            let next = match reader.next().await {
                Some(Read::Event(event)) => events.translate(&event.event),
                Some(Read::Truncated(_)) => events.fail(
                    "the client is too slow; read the conversation instead",
                    "too_slow",
                ),
                None => events.fail("the run ended without a result", "internal"),
            };
            waiting = next.into_iter();
        }
    });
    let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
    let mut response = Sse::new(sent).keep_alive(keep_alive).into_response();
    if let Ok(id) = HeaderValue::from_str(&run.id) {
        let name = HeaderName::from_static("x-run-id");
        response.headers_mut().insert(name, id);
    }
    response
}

/// Answers with a run that has failed before it began.
fn stream_error(mut events: OutputEvents, error: &ServiceError) -> Response {
    let mut sent = vec![events.begin()];
    sent.extend(events.fail(error.message(), error.kind().as_str()));
    let sent: Vec<_> = sent.iter().map(sse_event).collect();
    Sse::new(stream::iter(sent)).into_response()
}

fn sse_event(event: &Sent) -> Result<Event, Infallible> {
    let json = serde_json::to_string(event).unwrap_or_default();
    Ok(Event::default().data(json))
}
