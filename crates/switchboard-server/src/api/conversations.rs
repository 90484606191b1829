//! Conversations: list, search, show, fork, delete; messages, decisions, answers.

use std::collections::HashMap;
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use switchboard_core::Input;

use super::requests::{
    AnswerBody, DecisionsBody, ForkBody, ListParameters, MessageBody, PageParameters, ResendBody,
    SearchParameters,
};
use super::types::{
    ConversationBody, ConversationList, EntryBody, FoundEntry, SearchResults, TurnList,
};
use super::{run_events, run_info};
use crate::error::{ServiceError, ServiceErrorKind};
use crate::http::{JsonBody, PathOf, QueryOf, header_text};
use crate::idempotency::IdempotencyKey;
use crate::keys::random_id;
use crate::runs::RunRecord;
use crate::service::{Caller, Message, MessageOptions, Service};

/// The number of entries in an answer, unless the client asks for another.
const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 1000;

/// The longest idempotency key, in bytes.
const MAX_IDEMPOTENCY_KEY: usize = 128;

fn bounded(limit: Option<usize>) -> Result<usize, ServiceError> {
    match limit {
        None => Ok(DEFAULT_LIMIT),
        Some(limit @ 1..=MAX_LIMIT) => Ok(limit),
        Some(_) => Err(ServiceError::invalid("the limit is from 1 to 1000")),
    }
}

pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
    QueryOf(parameters): QueryOf<ListParameters>,
) -> Result<Json<ConversationList>, ServiceError> {
    let limit = bounded(parameters.limit)?;
    let listed = service.conversations_of(&caller, limit, parameters.cursor.as_deref());
    Ok(Json(listed.await?.into()))
}

pub(super) async fn search(
    State(service): State<Service>,
    caller: Caller,
    QueryOf(parameters): QueryOf<SearchParameters>,
) -> Result<Json<SearchResults>, ServiceError> {
    let limit = bounded(parameters.limit)?;
    if parameters.q.is_empty() || parameters.q.contains('\0') {
        return Err(ServiceError::invalid(
            "q is the text to search for: not empty, and without zeros",
        ));
    }
    let found = service.search(&caller, &parameters.q, limit).await?;
    let mut titles: HashMap<Arc<str>, Option<String>> = HashMap::new();
    let mut results = Vec::with_capacity(found.len());
    for (conversation, entry) in &found {
        let title = match titles.get(conversation) {
            Some(title) => title.clone(),
            None => {
                let listed = service.listed(&caller, conversation).await?;
                let title = listed.and_then(|listed| listed.title);
                titles.insert(conversation.clone(), title.clone());
                title
            }
        };
        results.push(FoundEntry {
            conversation: conversation.to_string(),
            title,
            entry: EntryBody::from(entry),
        });
    }
    Ok(Json(SearchResults { found: results }))
}

pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(parameters): QueryOf<PageParameters>,
) -> Result<Json<ConversationBody>, ServiceError> {
    let limit = bounded(parameters.limit)?;
    let shown = service.show(&caller, &id, limit, parameters.before).await?;
    Ok(Json(ConversationBody::new(&caller.tenant, &shown)))
}

pub(super) async fn turns(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    QueryOf(parameters): QueryOf<PageParameters>,
) -> Result<Json<TurnList>, ServiceError> {
    let limit = bounded(parameters.limit.or(Some(MAX_LIMIT)))?;
    let turns = service.turns(&caller, &id, parameters.after, limit).await?;
    Ok(Json(turns.into()))
}

pub(super) async fn delete(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<StatusCode, ServiceError> {
    service.delete(&caller, &id).await?;
    Ok(StatusCode::NO_CONTENT)
}

pub(super) async fn fork(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<ForkBody>,
) -> Result<Response, ServiceError> {
    service.fork(&caller, &id, &body.to, body.before).await?;
    let shown = service.show(&caller, &body.to, DEFAULT_LIMIT, None).await?;
    let body = ConversationBody::new(&caller.tenant, &shown);
    Ok((StatusCode::CREATED, Json(body)).into_response())
}

pub(super) async fn send(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
    JsonBody(body): JsonBody<MessageBody>,
) -> Result<Response, ServiceError> {
    let conversation = service.conversation(&caller, &id)?;
    let team = match &body.team {
        Some(name) => service.team(&caller, name)?,
        None => service.team_of(&caller, &conversation).await?,
    };
    let team = team.with_context(&body.context)?;
    if let Some(agent) = &body.agent
        && !team.has_agent(agent)
    {
        let message = format!("the team {:?} has no agent {agent:?}", team.name());
        return Err(ServiceError::not_found(message));
    }
    let key = idempotency_key(&headers, team.name(), &id, &body)?;
    if let Some(key) = &key
        && let Some(run) = service.run_with_key(&caller, key)?
    {
        return Ok(answer_with(&run, body.stream).await);
    }
    let input = body.input.into_input()?;
    let admission = service.admit(&caller)?;
    service.choose_context(&conversation, &body.context).await?;
    let message = Message {
        team,
        agent: body.agent.as_deref().map(Arc::from),
        conversation: Some(id.as_str().into()),
        input,
        options: MessageOptions {
            idempotency_key: key,
            admission: Some(admission),
            ..MessageOptions::default()
        },
    };
    let run = service.send(&caller, message).await?;
    Ok(answer_with(&run, body.stream).await)
}

/// Sends a message of a conversation again, or another one in its place: in a copy that ends before it, or in the
/// conversation itself.
pub(super) async fn resend(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<ResendBody>,
) -> Result<Response, ServiceError> {
    let conversation = service.conversation(&caller, &id)?;
    let team = service.team_of(&caller, &conversation).await?;
    let entries = conversation.entries(body.position..body.position.saturating_add(1));
    let entries = entries
        .await
        .map_err(|error| ServiceError::of_store(&error))?;
    let message = entries.iter().find_map(|entry| {
        let item = entry.content.item()?;
        (item.role().as_deref() == Some("user")).then(|| item.clone())
    });
    let Some(message) = message else {
        let message = "there is no message of the user at this position";
        return Err(ServiceError::new(ServiceErrorKind::Conflict, message));
    };
    let input = match body.input {
        Some(input) => input.into_input()?,
        None => Input::from(vec![message]),
    };
    let target = match (body.in_place, body.to) {
        (true, None) => id.clone(),
        (true, Some(_)) => {
            return Err(ServiceError::invalid("to and in_place exclude each other"));
        }
        (false, Some(to)) => to,
        (false, None) => random_id("c")?.to_string(),
    };
    let _lock = service.lock_conversation(&caller, &target).await?;
    if body.in_place {
        // A run under way could not store its turn any more.
        service.wait_for_runs(&caller, &id).await?;
    }
    let admission = service.admit(&caller)?;
    if body.in_place {
        service.rewind(&caller, &id, body.position).await?;
    } else {
        let before = Some(body.position);
        service.fork(&caller, &id, &target, before).await?;
    }
    let message = Message {
        team,
        agent: None,
        conversation: Some(target.as_str().into()),
        input,
        options: MessageOptions {
            admission: Some(admission),
            ..MessageOptions::default()
        },
    };
    let run = service.send(&caller, message).await?;
    let mut response = answer_with(&run, body.stream).await;
    if let Ok(target) = HeaderValue::from_str(&target) {
        let name = HeaderName::from_static("x-conversation-id");
        response.headers_mut().insert(name, target);
    }
    Ok(response)
}

pub(super) async fn decide(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<DecisionsBody>,
) -> Result<Response, ServiceError> {
    let decisions = body.decisions.iter();
    let decisions =
        decisions.map(|decision| (decision.call_id.as_str().into(), decision.decision()));
    let run = service
        .decide(&caller, &id, decisions.collect(), MessageOptions::default())
        .await?;
    Ok(answer_with(&run, body.stream).await)
}

pub(super) async fn answer(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    JsonBody(body): JsonBody<AnswerBody>,
) -> Result<Response, ServiceError> {
    let run = service
        .answer(
            &caller,
            &id,
            body.person.as_deref(),
            body.answer(),
            MessageOptions::default(),
        )
        .await?;
    Ok(answer_with(&run, body.stream).await)
}

/// Answers with the events of a run, or with the run once it has ended. The run goes on if the client disconnects.
async fn answer_with(run: &Arc<RunRecord>, stream: bool) -> Response {
    if stream {
        return run_events(run, 0);
    }
    run.log.closed().await;
    Json(run_info(run)).into_response()
}

/// The key that the client has sent, for a message to a team and a conversation. How it is answered is no part of the
/// request.
fn idempotency_key(
    headers: &HeaderMap,
    team: &str,
    conversation: &str,
    body: &MessageBody,
) -> Result<Option<IdempotencyKey>, ServiceError> {
    match header_text(headers, "idempotency-key") {
        Some(key) if key.len() > MAX_IDEMPOTENCY_KEY => Err(ServiceError::invalid(
            "the idempotency key is longer than 128 bytes",
        )),
        Some(key) => {
            let content = json!([body.input, body.agent, body.context]).to_string();
            let request = [team, conversation, &content];
            Ok(Some(IdempotencyKey::of_client(key, &request)))
        }
        None => Ok(None),
    }
}
