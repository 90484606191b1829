//! `POST /v1/responses`, and the responses that are stored.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_core::Item;
use tokio::sync::watch;

use super::find_model;
use super::input::{
    is_temporary, messages, new_conversation, outputs, response_items, waiting_outputs,
};
use super::output::OutputEvents;
use super::record::{ResponseRecord, run_id};
use super::response_object::{input_values, new_response};
use super::settings::{choose_tools, client_tools, model_settings};
use crate::api::KEEP_ALIVE;
use crate::error::{ServiceError, ServiceErrorKind};
use crate::event_log::{EventReader, Read};
use crate::http::{JsonBody, PathOf, QueryOf};
use crate::keys::random_id;
use crate::runs::RunRecord;
use crate::service::{Caller, Message, MessageOptions, Service};
use crate::team::ServedTeam;

type Body = Map<String, Value>;

/// The longest time in which a cancelled response is stored, perhaps by another process, and the pause between looking.
const CANCEL_TIME: Duration = Duration::from_secs(10);
const CANCEL_PAUSE: Duration = Duration::from_millis(20);

/// Creates a response.
pub(super) async fn create(
    State(service): State<Service>,
    caller: Caller,
    JsonBody(body): JsonBody<Body>,
) -> Result<Response, ServiceError> {
    let model = text(&body, "model")?.ok_or_else(|| ServiceError::invalid("model is missing"))?;
    let (team, agent) = find_model(&service, &caller, model)?;
    refuse_what_cannot_be_done(&body)?;
    let items = response_items(body.get("input").unwrap_or(&Value::Null))?;
    let tools = client_tools(body.get("tools"))?;
    let is_stored = flag(&body, "store")?.unwrap_or(true);
    let is_streamed = flag(&body, "stream")?.unwrap_or(false);
    let choice = body.get("tool_choice").unwrap_or(&Value::Null);
    let (offered, tool_choice) = choose_tools(choice, tools.clone())?;
    let effort = body
        .get("reasoning")
        .and_then(|reasoning| reasoning["effort"].as_str());
    let mut settings = model_settings(&body, &["max_output_tokens"], effort)?;
    settings.tool_choice = tool_choice;

    let key = random_id("resp")?;
    let mut options = MessageOptions {
        client_tools: offered,
        settings,
        instructions: text(&body, "instructions")?.map(Arc::from),
        run_id: Some(run_id(&key).into()),
        ..MessageOptions::default()
    };
    let place = find_place(&service, &caller, &body, is_stored, &items).await?;
    options.is_temporary = is_temporary(&place.conversation);
    let response = new_response(&key, &body, model, &tools, is_stored, &place.conversation);
    let record = ResponseRecord {
        response: response.clone(),
        input: input_values(&key, &items),
        conversation: place.conversation.to_string(),
        next: None,
        process: Some(service.process().to_string()),
    };
    if is_stored {
        service.announce_process().await?;
        record.save(&service, &caller, &key).await?;
    }
    let started = start(&service, &caller, &team, agent, &place, items, options).await;
    let run = match started {
        Ok(run) => run,
        Err(error) => {
            if is_stored {
                // Best effort: the response is one that was never begun.
                let _ = ResponseRecord::delete(&service, &caller, &key).await;
            }
            return Err(error);
        }
    };
    let events = OutputEvents::new(team.clone(), place.conversation, response);
    let finished = keep_record(
        &service,
        &caller,
        &run,
        events.clone(),
        is_stored.then_some(record),
        &key,
    );
    if is_streamed {
        return Ok(stream_response(&run, events, finished));
    }
    Ok(Json(final_response(finished).await).into_response())
}

/// The conversation of a response, and how it goes on.
struct Place {
    conversation: Arc<str>,
    /// Set if the conversation is kept by the service, so that the request has only what is new.
    is_continued: bool,
}

/// Finds the conversation of a request.
async fn find_place(
    service: &Service,
    caller: &Caller,
    body: &Body,
    is_stored: bool,
    items: &[Item],
) -> Result<Place, ServiceError> {
    let conversation = match body.get("conversation") {
        None | Some(Value::Null) => None,
        Some(Value::String(id)) => Some(id.as_str()),
        Some(object) => match object["id"].as_str() {
            Some(id) => Some(id),
            None => {
                return Err(ServiceError::invalid(
                    "conversation is an identifier, or an object with an id",
                ));
            }
        },
    };
    match (conversation, text(body, "previous_response_id")?) {
        (Some(_), Some(_)) => Err(ServiceError::invalid(
            "conversation and previous_response_id exclude each other",
        )),
        (Some(id), None) => {
            service.conversation(caller, id)?;
            Ok(Place {
                conversation: id.into(),
                is_continued: true,
            })
        }
        (None, Some(previous)) => Ok(Place {
            conversation: continue_from(service, caller, previous).await?,
            is_continued: true,
        }),
        // The calls of a client that keeps its conversations itself say where they wait.
        (None, None) => Ok(match waiting_outputs(items) {
            Some(waiting) => Place {
                conversation: waiting.conversation,
                is_continued: false,
            },
            None => Place {
                conversation: new_conversation(is_stored)?,
                is_continued: false,
            },
        }),
    }
}

/// The conversation of an earlier response: the same one if nothing has followed, otherwise a copy up to there.
async fn continue_from(
    service: &Service,
    caller: &Caller,
    previous: &str,
) -> Result<Arc<str>, ServiceError> {
    let record = ResponseRecord::load(service, caller, previous).await?;
    let next = record.next.ok_or_else(|| {
        ServiceError::new(
            ServiceErrorKind::Conflict,
            "the previous response has not ended",
        )
    })?;
    let failed = |error| ServiceError::of_store(&error);
    let conversation = service.conversation(caller, &record.conversation)?;
    let head = conversation.head().await.map_err(failed)?;
    let head = head.ok_or_else(|| {
        ServiceError::not_found("the conversation of the previous response was deleted")
    })?;
    if head.revision.next == next {
        return Ok(record.conversation.into());
    }
    let copy = new_conversation(true)?;
    service
        .fork(caller, &record.conversation, &copy, Some(next))
        .await?;
    Ok(copy)
}

/// Begins the run: with new input, or with the outputs of calls that wait.
async fn start(
    service: &Service,
    caller: &Caller,
    team: &ServedTeam,
    agent: Option<Arc<str>>,
    place: &Place,
    items: Vec<Item>,
    mut options: MessageOptions,
) -> Result<Arc<RunRecord>, ServiceError> {
    let given = if place.is_continued {
        Some((outputs(&items), messages(&items)))
    } else {
        waiting_outputs(&items).map(|waiting| (waiting.outputs, waiting.added))
    };
    if let Some((outputs, added)) = given
        && !outputs.is_empty()
    {
        let resumed = MessageOptions {
            client_tools: options.client_tools.clone(),
            settings: options.settings.clone(),
            instructions: options.instructions.clone(),
            run_id: options.run_id.clone(),
            is_temporary: options.is_temporary,
            added,
            ..MessageOptions::default()
        };
        let run = service
            .give_outputs(caller, &place.conversation, outputs, resumed)
            .await?;
        if let Some(run) = run {
            return Ok(run);
        }
        if place.is_continued {
            return Err(ServiceError::invalid(
                "no call with this identifier waits for its output",
            ));
        }
        // The wait is over; the client's own record of the conversation is all that there is.
        options.is_temporary = true;
    }
    let message = Message {
        team: team.clone(),
        agent,
        conversation: Some(place.conversation.clone()),
        input: items.into(),
        options,
    };
    service.send(caller, message).await
}

/// Follows a run to its end, whether or not its client does, and stores the response. The receiver gets the
/// response once it is stored.
fn keep_record(
    service: &Service,
    caller: &Caller,
    run: &Arc<RunRecord>,
    mut events: OutputEvents,
    record: Option<ResponseRecord>,
    id: &str,
) -> watch::Receiver<Option<Value>> {
    let (sender, receiver) = watch::channel(None);
    let (service, caller, run, id) = (service.clone(), caller.clone(), run.clone(), id.to_owned());
    tokio::spawn(async move {
        events.begin();
        let mut reader = run.log.read_after(0);
        while let Some(read) = reader.next().await {
            if let Read::Event(event) = read {
                events.translate(&event.event);
            }
        }
        if !events.is_ended() {
            events.fail("the run ended without a result");
        }
        let mut response = events.response();
        if let Some(mut record) = record {
            let head = match service.conversation(&caller, &record.conversation) {
                Ok(conversation) => conversation.head().await.ok().flatten(),
                Err(_) => None,
            };
            record.next = Some(head.map_or(0, |head| head.revision.next));
            record.response = response.clone();
            if let Err(error) = record.save(&service, &caller, &id).await {
                tracing::error!(%error, response = id, "a response could not be stored");
                response["status"] = "failed".into();
                response["error"] =
                    json!({"code": "server_error", "message": "the response could not be stored"});
            }
        }
        sender.send_replace(Some(response));
    });
    receiver
}

/// The response, once it is stored.
async fn final_response(mut finished: watch::Receiver<Option<Value>>) -> Value {
    match finished.wait_for(Option::is_some).await {
        Ok(response) => response.clone().unwrap_or_default(),
        Err(_) => Value::Null,
    }
}

/// Answers with the events of a response. The last one is sent once the response is stored.
fn stream_response(
    run: &Arc<RunRecord>,
    mut events: OutputEvents,
    finished: watch::Receiver<Option<Value>>,
) -> Response {
    let first = events.begin();
    let state = (run.log.read_after(0), events, finished, first.into_iter());
    let sent = stream::unfold(
        state,
        |(mut reader, mut events, finished, mut waiting)| async move {
            loop {
                if let Some(mut event) = waiting.next() {
                    if event.get("response").is_some() && events.is_ended() {
                        event = with_stored(event, finished.clone()).await;
                    }
                    let kind = event["type"].as_str().unwrap_or_default().to_owned();
                    let sent = Event::default().event(kind).data(event.to_string());
                    return Some((
                        Ok::<_, Infallible>(sent),
                        (reader, events, finished, waiting),
                    ));
                }
                waiting = next_events(&mut reader, &mut events).await?.into_iter();
            }
        },
    );
    Sse::new(sent)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response()
}

/// Puts the stored response into the last event.
async fn with_stored(mut event: Value, finished: watch::Receiver<Option<Value>>) -> Value {
    let is_failure = event["type"] == "response.failed";
    if is_failure {
        return event;
    }
    let response = final_response(finished).await;
    if response["status"] == "failed" {
        event["type"] = "response.failed".into();
    }
    event["response"] = response;
    event
}

/// The events of a response for the next event of the run; `None` after the last.
pub(super) async fn next_events(
    reader: &mut EventReader,
    events: &mut OutputEvents,
) -> Option<Vec<Value>> {
    if events.is_ended() {
        return None;
    }
    match reader.next().await {
        Some(Read::Event(event)) => Some(events.translate(&event.event)),
        Some(Read::Truncated(_)) => {
            Some(events.fail("the client is too slow; read the conversation instead"))
        }
        None => Some(events.fail("the run ended without a result")),
    }
}

/// Returns a stored response.
pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(parameters): QueryOf<ShowParameters>,
) -> Result<Json<Value>, ServiceError> {
    if parameters.stream == Some(true) {
        return Err(ServiceError::invalid(
            "a stored response cannot be streamed; follow its run under /api/runs",
        ));
    }
    let record = ResponseRecord::load(&service, &caller, &id).await?;
    let is_lost = record.next.is_none()
        && service.run(&caller, &run_id(&id)).is_err()
        && record.running_elsewhere(&service).await?.is_none();
    let mut response = record.response;
    if is_lost {
        response["status"] = "failed".into();
        response["error"] =
            json!({"code": "server_error", "message": "the service was restarted meanwhile"});
    }
    Ok(Json(response))
}

/// Parameters of a stored response.
#[derive(Debug, Deserialize)]
pub(super) struct ShowParameters {
    stream: Option<bool>,
}

pub(super) async fn delete(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<Value>, ServiceError> {
    ResponseRecord::delete(&service, &caller, &id).await?;
    Ok(Json(
        json!({"id": id, "object": "response", "deleted": true}),
    ))
}

/// Cancels the run of a response.
pub(super) async fn cancel(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<Value>, ServiceError> {
    let mut record = ResponseRecord::load(&service, &caller, &id).await?;
    let run = service.run(&caller, &run_id(&id)).ok();
    if let Some(run) = run.filter(|run| run.end(|_| ()).is_none()) {
        run.cancel();
        run.log.closed().await;
    } else if let Some(process) = record.running_elsewhere(&service).await? {
        service.ask_to_cancel(process, &run_id(&id)).await?;
    } else {
        return Ok(Json(record.response));
    }
    // The response is stored shortly after the end of its run.
    let deadline = tokio::time::Instant::now() + CANCEL_TIME;
    while record.next.is_none() && tokio::time::Instant::now() < deadline {
        tokio::time::sleep(CANCEL_PAUSE).await;
        record = ResponseRecord::load(&service, &caller, &id).await?;
    }
    Ok(Json(record.response))
}

/// Parameters of a list of items.
#[derive(Debug, Deserialize)]
pub(super) struct ItemParameters {
    limit: Option<usize>,
    after: Option<String>,
    order: Option<String>,
}

pub(super) async fn input_items(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(parameters): QueryOf<ItemParameters>,
) -> Result<Json<Value>, ServiceError> {
    let limit = parameters.limit.unwrap_or(20).clamp(1, 100);
    let mut items = ResponseRecord::load(&service, &caller, &id).await?.input;
    if parameters.order.as_deref() != Some("asc") {
        items.reverse();
    }
    if let Some(after) = &parameters.after {
        let at = items.iter().position(|item| item["id"] == after.as_str());
        let at = at.ok_or_else(|| ServiceError::invalid("after names no item of the list"))?;
        items.drain(..=at);
    }
    let has_more = items.len() > limit;
    items.truncate(limit);
    Ok(Json(json!({
        "object": "list",
        "first_id": items.first().map(|item| item["id"].clone()),
        "last_id": items.last().map(|item| item["id"].clone()),
        "has_more": has_more,
        "data": items,
    })))
}

/// Refuses requests whose answer would not be what they ask for.
fn refuse_what_cannot_be_done(body: &Body) -> Result<(), ServiceError> {
    if flag(body, "background")? == Some(true) {
        return Err(ServiceError::invalid(
            "background responses are not possible; stream it: its run goes on if the connection is lost",
        ));
    }
    let format = body
        .get("text")
        .map_or(&Value::Null, |text| &text["format"]["type"]);
    if !format.is_null() && format != "text" {
        return Err(ServiceError::invalid(
            "the form of an answer is set by the agents of the team, not by text.format",
        ));
    }
    if body.get("prompt").is_some_and(|prompt| !prompt.is_null()) {
        return Err(ServiceError::invalid("a team has its own prompts"));
    }
    Ok(())
}

pub(super) fn text<'a>(body: &'a Body, name: &str) -> Result<Option<&'a str>, ServiceError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(ServiceError::invalid(format!("{name} is a text"))),
    }
}

pub(super) fn flag(body: &Body, name: &str) -> Result<Option<bool>, ServiceError> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::Bool(flag)) => Ok(Some(*flag)),
        Some(_) => Err(ServiceError::invalid(format!("{name} is true or false"))),
    }
}
