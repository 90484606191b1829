//! A2A 1.0: a team as an agent for other agents.
//!
//! A context is a conversation, and a task is one message to it with everything that comes of it: the run, and, where the
//! run waits for a decision or a person, the runs that go on with it. Both bindings, JSON-RPC and HTTP+JSON, read their
//! requests and call [`operations`]; [`updates`] makes the state of a task from the events of its run, and [`settle`] finds
//! out what has become of one whose wait was ended, or whose process was.

mod cancel;
mod card;
mod error;
mod follow;
mod http_json;
mod json_rpc;
mod list;
mod message;
mod operations;
mod parameters;
mod record;
mod send;
mod settle;
mod subscribe;
mod types;
mod updates;

use std::time::Duration;

use axum::Router;
use axum::extract::{Query, Request};
use axum::http::{Extensions, HeaderMap, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use self::error::{A2aError, A2aErrorKind};
use self::operations::Agent;
use crate::error::ServiceError;
use crate::http::{OverTls, header_text, method_not_allowed};
use crate::service::{Caller, Service};

/// The version of the protocol.
const PROTOCOL_VERSION: &str = "1.0";

/// The service parameter with the client's version.
const VERSION_PARAMETER: &str = "a2a-version";

/// The time between comments that keep a quiet connection open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// The cards, which need no key.
pub(crate) fn card_routes() -> Router<Service> {
    Router::new()
        .route("/.well-known/agent-card.json", get(card::first))
        .route(
            "/a2a/{team}/.well-known/agent-card.json",
            get(card::of_team),
        )
        .method_not_allowed_fallback(method_not_allowed)
}

/// The operations.
pub(crate) fn routes() -> Router<Service> {
    Router::new()
        .route("/a2a/{team}", post(json_rpc::call))
        // Some clients end every address with a slash.
        .route("/a2a/{team}/", post(json_rpc::call))
        .route("/a2a/{team}/message:send", post(http_json::send))
        .route("/a2a/{team}/message:stream", post(http_json::stream))
        .route("/a2a/{team}/tasks", get(http_json::list))
        .route(
            "/a2a/{team}/tasks/{task}",
            get(http_json::task).post(http_json::task),
        )
        .route(
            "/a2a/{team}/tasks/{task}/pushNotificationConfigs",
            get(http_json::push_notifications).post(http_json::push_notifications),
        )
        .route(
            "/a2a/{team}/tasks/{task}/pushNotificationConfigs/{config}",
            get(http_json::push_notifications).delete(http_json::push_notifications),
        )
        .route(
            "/a2a/{team}/extendedAgentCard",
            get(http_json::extended_card),
        )
        .method_not_allowed_fallback(method_not_allowed)
}

/// Gives errors that are not those of an operation, such as a missing key or an unknown path, the form of A2A.
pub(crate) async fn error_form(request: Request, next: Next) -> Response {
    let is_agent = request.uri().path().starts_with("/a2a/");
    let response = next.run(request).await;
    if !is_agent {
        return response;
    }
    let error = response
        .extensions()
        .get::<std::sync::Arc<ServiceError>>()
        .cloned();
    let Some(error) = error else {
        return response;
    };
    let mut formed = A2aError::from(&*error).into_response();
    if let Some(scheme) = response.headers().get(header::WWW_AUTHENTICATE) {
        let headers = formed.headers_mut();
        headers.insert(header::WWW_AUTHENTICATE, scheme.clone());
    }
    formed
}

/// The client of a team.
fn agent_of(
    service: &Service,
    caller: Caller,
    team: &str,
    request: &Request,
) -> Result<Agent, A2aError> {
    let team = service.team(&caller, team)?.clone();
    let base = base_address(service, request.headers(), request.extensions());
    Ok(Agent {
        service: service.clone(),
        caller,
        team,
        base,
    })
}

/// Checks the version that the client speaks, from the header or the query. A client that tells none speaks 0.3.
fn check_version(request: &Request) -> Result<(), A2aError> {
    let given = match header_text(request.headers(), VERSION_PARAMETER) {
        Some(version) => version.to_owned(),
        None => {
            let pairs = query_pairs_with_version(request)?;
            let version = pairs
                .into_iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(VERSION_PARAMETER));
            version.map(|(_, version)| version).unwrap_or_default()
        }
    };
    // Patch versions do not count.
    let mut numbers = given.splitn(3, '.');
    if (numbers.next(), numbers.next()) == (Some("1"), Some("0")) {
        return Ok(());
    }
    let given = match crate::http::shortened(&given) {
        "" => "0.3, which a request without the header A2A-Version speaks,",
        given => given,
    };
    let message = format!("the version {given} is not supported, only {PROTOCOL_VERSION}");
    Err(A2aError::new(A2aErrorKind::VersionNotSupported, message))
}

fn query_pairs_with_version(request: &Request) -> Result<Vec<(String, String)>, A2aError> {
    let pairs = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let pairs =
        pairs.map_err(|error| A2aError::new(A2aErrorKind::InvalidParams, error.body_text()))?;
    Ok(pairs.0)
}

/// The parameters after the path that are the operation's.
fn query_pairs(request: &Request) -> Result<Vec<(String, String)>, A2aError> {
    let mut pairs = query_pairs_with_version(request)?;
    pairs.retain(|(name, _)| !name.eq_ignore_ascii_case(VERSION_PARAMETER));
    Ok(pairs)
}

/// The address of the service: the one that is set, or that of the request.
fn base_address(service: &Service, headers: &HeaderMap, extensions: &Extensions) -> String {
    if let Some(url) = &service.inner().public_url {
        return url.clone();
    }
    let scheme = match extensions.get::<OverTls>() {
        Some(_) => "https",
        None => "http",
    };
    let host = header_text(headers, header::HOST.as_str()).unwrap_or("localhost");
    format!("{scheme}://{host}")
}

/// The path of a team's agent.
fn team_path(team: &str) -> String {
    let mut path = String::from("/a2a/");
    for byte in team.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~') {
            path.push(char::from(byte));
        } else {
            path.push_str(&format!("%{byte:02X}"));
        }
    }
    path
}
