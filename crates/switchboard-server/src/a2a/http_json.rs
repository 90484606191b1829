//! The binding HTTP+JSON: a path for each operation.

use std::convert::Infallible;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, Method, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use serde_json::{Map, Value};

use super::error::{A2aError, A2aErrorKind, MEDIA_TYPE};
use super::operations::{Answer, Operation};
use super::{KEEP_ALIVE, agent_of, check_version, query_pairs};
use crate::error::ServiceError;
use crate::http::{PathOf, check_media_type, header_text, read_body};
use crate::service::{Caller, Service};

pub(super) async fn send(
    State(service): State<Service>,
    caller: Caller,
    PathOf(team): PathOf<String>,
    request: Request,
) -> Result<Response, A2aError> {
    call(
        &service,
        caller,
        &team,
        Operation::SendMessage,
        None,
        request,
    )
    .await
}

pub(super) async fn stream(
    State(service): State<Service>,
    caller: Caller,
    PathOf(team): PathOf<String>,
    request: Request,
) -> Result<Response, A2aError> {
    let operation = Operation::SendStreamingMessage;
    call(&service, caller, &team, operation, None, request).await
}

pub(super) async fn list(
    State(service): State<Service>,
    caller: Caller,
    PathOf(team): PathOf<String>,
    request: Request,
) -> Result<Response, A2aError> {
    call(&service, caller, &team, Operation::ListTasks, None, request).await
}

/// `GET` or `POST` of a task: `ID`, `ID:cancel` or `ID:subscribe`.
pub(super) async fn task(
    State(service): State<Service>,
    caller: Caller,
    PathOf((team, task)): PathOf<(String, String)>,
    request: Request,
) -> Result<Response, A2aError> {
    let (id, verb) = match task.rsplit_once(':') {
        Some((id, verb)) => (id, Some(verb)),
        None => (task.as_str(), None),
    };
    let operation = match (request.method(), verb) {
        (&Method::GET, None) => Operation::GetTask,
        (&Method::POST, Some("cancel")) => Operation::CancelTask,
        // The table of the specification has POST, its protocol buffers have GET.
        (&Method::POST | &Method::GET, Some("subscribe")) => Operation::SubscribeToTask,
        _ => {
            let message = "a task has GET, POST :cancel and POST :subscribe";
            return Err(A2aError::new(A2aErrorKind::MethodNotFound, message));
        }
    };
    call(&service, caller, &team, operation, Some(id), request).await
}

pub(super) async fn push_notifications(
    State(service): State<Service>,
    caller: Caller,
    PathOf(path): PathOf<Vec<(String, String)>>,
    request: Request,
) -> Result<Response, A2aError> {
    let team = path.first().map(|(_, team)| team.as_str());
    let operation = Operation::PushNotifications;
    let team = team.unwrap_or_default();
    call(&service, caller, team, operation, None, request).await
}

pub(super) async fn extended_card(
    State(service): State<Service>,
    caller: Caller,
    PathOf(team): PathOf<String>,
    request: Request,
) -> Result<Response, A2aError> {
    let operation = Operation::GetExtendedAgentCard;
    call(&service, caller, &team, operation, None, request).await
}

/// The media type of an answer: A2A's own for clients that name it, and otherwise plain JSON, which all clients read.
fn answer_type(headers: &HeaderMap) -> &'static str {
    let names_it = |name: HeaderName| {
        let value = header_text(headers, name.as_str()).unwrap_or_default();
        value.contains(MEDIA_TYPE)
    };
    if names_it(header::ACCEPT) || names_it(header::CONTENT_TYPE) {
        MEDIA_TYPE
    } else {
        "application/json"
    }
}

/// Carries an operation out. Its parameters are the body, the query and the task of the path.
async fn call(
    service: &Service,
    caller: Caller,
    team: &str,
    operation: Operation,
    task: Option<&str>,
    request: Request,
) -> Result<Response, A2aError> {
    let agent = agent_of(service, caller, team, &request)?;
    check_version(&request)?;
    let media_type = answer_type(request.headers());
    let mut parameters = Map::new();
    for (name, value) in query_pairs(&request)? {
        parameters.insert(name, value.into());
    }
    if request.method() == Method::POST {
        let has_type = request.headers().contains_key(header::CONTENT_TYPE);
        if has_type {
            check_media_type(request.headers(), &["application/json", MEDIA_TYPE])?;
        }
        let body = read_body(request, service).await?;
        if !body.is_empty() && !has_type {
            let message = format!("the content type of the body must be {MEDIA_TYPE}");
            let kind = crate::error::ServiceErrorKind::UnsupportedMediaType;
            return Err(ServiceError::new(kind, message).into());
        }
        if !body.is_empty() {
            let body: Value = serde_json::from_slice(&body).map_err(|error| {
                A2aError::new(
                    A2aErrorKind::Parse,
                    format!("the body is not JSON: {error}"),
                )
            })?;
            let Value::Object(body) = body else {
                let message = "the body is an object";
                return Err(A2aError::new(A2aErrorKind::InvalidRequest, message));
            };
            parameters.extend(body);
        }
    }
    if let Some(task) = task {
        parameters.insert("id".to_owned(), task.into());
    }
    Ok(match agent.call(operation, parameters.into()).await? {
        Answer::Object(result) => {
            let content_type = [(header::CONTENT_TYPE, media_type)];
            (content_type, result.to_string()).into_response()
        }
        Answer::Stream(updates) => {
            let events = updates
                .map(|update| Ok::<_, Infallible>(Event::default().data(update.to_string())));
            let keep_alive = KeepAlive::new().interval(KEEP_ALIVE);
            Sse::new(events).keep_alive(keep_alive).into_response()
        }
    })
}
