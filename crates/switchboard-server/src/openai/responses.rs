//! `POST /v1/responses`, and the responses that are stored.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{FutureExt as _, stream};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use switchboard_core::conversation::{Expected, Revision};
use tokio::sync::watch;

use super::input::response_items;
use super::output::OutputEvents;
use super::place::{Origin, Place, lock_origin};
use super::record::{ResponseRecord, response_id, run_id};
use super::response_object::{input_values, new_response};
use super::settings::{choose_tools, client_tools, model_settings};
use super::{find_model, seconds};
use crate::api::KEEP_ALIVE;
use crate::error::ServiceError;
use crate::event_log::{EventReader, Read};
use crate::http::{JsonBody, PathOf, QueryOf};
use crate::idempotency::IdempotencyKey;
use crate::keys::random_id;
use crate::runs::RunRecord;
use crate::service::{
    Caller, ConversationLock, Follower, GivenOutputs, Message, MessageOptions, OutputsGiven,
    Service, store_persistently,
};

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
    let instructions = text(&body, "instructions")?.map(Arc::from);

    let origin = Origin::of_response(&service, &caller, &body, &items).await?;
    let sent_again = repeated_request(&origin, &body);
    let lock = match lock_unless_sent(&service, &caller, &origin, sent_again.as_ref()).await? {
        Locked::Lock(lock) => lock,
        Locked::Sent(run) => {
            let id = response_id(&run.id);
            let conversation = run.conversation.clone().unwrap_or_default();
            let mut response = new_response(&id, &body, model, &tools, is_stored, &conversation);
            response["created_at"] = seconds(run.started).into();
            let events = OutputEvents::new(team, conversation, response);
            return Ok(answer_again(&service, &caller, &run, events, is_streamed).await);
        }
    };
    let admission = service.admit(&caller)?;
    let place = Place::of(&service, &caller, origin, &items, is_stored).await?;
    let key = random_id("resp")?;
    let response = new_response(&key, &body, model, &tools, is_stored, &place.conversation);
    let mut kept = None;
    if is_stored {
        let record = ResponseRecord {
            response: response.clone(),
            input: input_values(&key, &items),
            conversation: place.conversation.to_string(),
            next: None,
            is_temporary: service.is_temporary(&caller, &place.conversation).await?,
            process: Some(service.process().to_string()),
        };
        service.announce_process().await?;
        let saved = record.save(&service, &caller, &key, Expected::New).await?;
        kept = saved.map(|revision| (record, revision));
    }
    let events = OutputEvents::new(team.clone(), place.conversation.clone(), response);
    let (follower, finished) = follow(&service, &caller, events.clone(), kept);
    let options = MessageOptions {
        client_tools: offered,
        settings,
        instructions,
        idempotency_key: sent_again,
        run_id: Some(run_id(&key).into()),
        is_temporary: place.is_temporary,
        admission: Some(admission),
        follower: Some(follower),
        ..MessageOptions::default()
    };
    let message = Message {
        team,
        agent,
        conversation: Some(place.conversation),
        input: place.input.unwrap_or(items).into(),
        options,
    };
    let run = match start(&service, &caller, message, place.given).await {
        Ok(run) => run,
        Err(error) => {
            if is_stored {
                // Best effort: the response is one that was never begun.
                let _ = ResponseRecord::delete(&service, &caller, &key).await;
            }
            return Err(error);
        }
    };
    // The same request may be sent again while this one waits for the end of the run.
    drop(lock);
    Ok(answer(&run, events, finished, is_streamed).await)
}

/// The outcome of locking the conversation of a request.
enum Locked {
    /// The lock; `None` for a request that begins a conversation.
    Lock(Option<ConversationLock>),
    /// The run of the same request, which was sent before and is still answered.
    Sent(Arc<RunRecord>),
}

/// Locks the conversation of a request, unless the same request was sent before and is still answered.
async fn lock_unless_sent(
    service: &Service,
    caller: &Caller,
    origin: &Origin,
    key: Option<&IdempotencyKey>,
) -> Result<Locked, ServiceError> {
    let (Some(id), Some(key)) = (origin.conversation(), key) else {
        return lock_origin(service, caller, origin).await.map(Locked::Lock);
    };
    if let Some(run) = service.run_with_key(caller, key)? {
        return Ok(Locked::Sent(run));
    }
    let lock = service.lock_conversation(caller, id).await?;
    if let Some(run) = service.run_with_key(caller, key)? {
        return Ok(Locked::Sent(run));
    }
    service.wait_for_runs(caller, id).await?;
    Ok(Locked::Lock(Some(lock)))
}

/// The key of a request with the name of its conversation: the same one while it is answered is a client that tries again.
/// A client that names an earlier response may want several answers, each in a conversation of its own.
fn repeated_request(origin: &Origin, body: &Body) -> Option<IdempotencyKey> {
    let Origin::Conversation(id) = origin else {
        return None;
    };
    let body = serde_json::to_string(body).unwrap_or_default();
    Some(IdempotencyKey::of_request("responses", &[id, &body]).while_running())
}

/// Answers a request that was sent again, with the response of the first one.
async fn answer_again(
    service: &Service,
    caller: &Caller,
    run: &Arc<RunRecord>,
    events: OutputEvents,
    is_streamed: bool,
) -> Response {
    let (follower, finished) = follow(service, caller, events.clone(), None);
    let followed = run.clone();
    tokio::spawn(async move {
        // Until then, the response is not stored.
        followed.log.closed().await;
        follower.follow(followed).await;
    });
    answer(run, events, finished, is_streamed).await
}

/// Answers with a response, as a stream or at its end.
async fn answer(
    run: &Arc<RunRecord>,
    events: OutputEvents,
    finished: watch::Receiver<Option<Value>>,
    is_streamed: bool,
) -> Response {
    if is_streamed {
        return stream_response(run, events, finished);
    }
    Json(final_response(finished).await).into_response()
}

/// Begins the run: with the outputs of calls that wait, or with new input.
async fn start(
    service: &Service,
    caller: &Caller,
    message: Message,
    given: GivenOutputs,
) -> Result<Arc<RunRecord>, ServiceError> {
    let id = match &message.conversation {
        Some(id) if !given.outputs.is_empty() => id.clone(),
        _ => return service.send(caller, message).await,
    };
    let options = message.options;
    match service.give_outputs(caller, &id, given, options).await? {
        OutputsGiven::Resumed(run) => Ok(run),
        OutputsGiven::NotWaiting(_) => Err(ServiceError::invalid(
            "no call with this identifier waits for its output",
        )),
    }
}

/// Follows a run to its end, whether or not its client does, and stores the response. The receiver gets the
/// response once it is stored.
fn follow(
    service: &Service,
    caller: &Caller,
    mut events: OutputEvents,
    record: Option<(ResponseRecord, Revision)>,
) -> (Follower, watch::Receiver<Option<Value>>) {
    let (sender, receiver) = watch::channel(None);
    let (service, caller) = (service.clone(), caller.clone());
    let follower = Follower::new(move |run| async move {
        events.begin();
        let mut reader = run.log.read_after(0);
        while let Some(read) = reader.next().await {
            if let Read::Event(event) = read {
                events.translate(&event);
            }
        }
        if !events.is_ended() {
            events.fail("the run ended without a result");
        }
        let mut response = events.response();
        if let Some((record, revision)) = record {
            let stored = store_persistently(|| {
                let (service, caller) = (&service, &caller);
                let (record, response) = (record.clone(), response.clone());
                async move { record.end(service, caller, response, revision).await }.boxed()
            });
            if let Err(error) = stored.await {
                let id = response["id"].as_str().unwrap_or_default();
                tracing::error!(%error, response = id, "a response could not be stored");
                response["status"] = "failed".into();
                response["error"] =
                    json!({"code": "server_error", "message": "the response could not be stored"});
            }
        }
        sender.send_replace(Some(response));
    });
    (follower, receiver)
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
        Some(Read::Event(event)) => Some(events.translate(&event)),
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
    Ok(Json(record.response))
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
    if let Some(run) = run.filter(|run| run.is_under_way()) {
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
