//! Agent cards: a team as an agent, with a skill for each of its agents.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::message::INPUT_MODES;
use super::{PROTOCOL_VERSION, base_address, team_path};
use crate::error::ServiceError;
use crate::http::PathOf;
use crate::service::Service;
use crate::team::ServedTeam;

/// The seconds for which a client may keep a card.
const CARD_SECONDS: u32 = 300;

/// The detail of a card.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// The team alone, for clients without a key.
    Team,
    /// The team and its agents.
    Agents,
}

/// The card of the first team.
pub(super) async fn first(
    State(service): State<Service>,
    request: Request,
) -> Result<Response, ServiceError> {
    let team = service.first_team().ok_or_else(missing)?;
    Ok(answer(&service, &team, &request))
}

/// The card of a team.
pub(super) async fn of_team(
    State(service): State<Service>,
    PathOf(name): PathOf<String>,
    request: Request,
) -> Result<Response, ServiceError> {
    let team = service.any_team(&name).ok_or_else(missing)?;
    Ok(answer(&service, &team, &request))
}

fn missing() -> ServiceError {
    ServiceError::not_found("there is no such agent")
}

fn answer(service: &Service, team: &ServedTeam, request: &Request) -> Response {
    let detail = if service.inner().keys.is_some() {
        Detail::Team
    } else {
        Detail::Agents
    };
    let base = base_address(service, request.headers(), request.extensions());
    let body = agent_card(service, team, &base, detail).to_string();
    let hash = ring::digest::digest(&ring::digest::SHA256, body.as_bytes());
    let tag: String = hash.as_ref()[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    let tag = format!("\"{tag}\"");
    let mut response = if is_known(request.headers(), &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, "application/json")], body).into_response()
    };
    let headers = response.headers_mut();
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if let Ok(value) = HeaderValue::from_str(&format!("public, max-age={CARD_SECONDS}")) {
        headers.insert(header::CACHE_CONTROL, value);
    }
    response
}

fn is_known(headers: &HeaderMap, tag: &str) -> bool {
    let given = headers.get(header::IF_NONE_MATCH);
    let given = given
        .and_then(|given| given.to_str().ok())
        .unwrap_or_default();
    given
        .split(',')
        .any(|given| given.trim().trim_start_matches("W/") == tag)
}

/// The card of a team at a service with this address.
pub(super) fn agent_card(
    service: &Service,
    team: &ServedTeam,
    base: &str,
    detail: Detail,
) -> Value {
    let has_keys = service.inner().keys.is_some();
    let url = format!("{base}{}", team_path(team.name()));
    let interface = |binding: &str| json!({"url": url, "protocolBinding": binding, "protocolVersion": PROTOCOL_VERSION});
    let description = match team.description_text() {
        Some(text) => text.to_owned(),
        None => format!("The team {}.", team.name()),
    };
    let skills: Vec<Value> = match detail {
        Detail::Team => vec![json!({
            "id": team.name(), "name": team.name(), "description": description,
            "tags": [team.name()],
        })],
        Detail::Agents => team
            .agents()
            .into_iter()
            .map(|agent| {
                let description = agent.description;
                let description =
                    description.unwrap_or_else(|| format!("Questions for {}.", agent.name));
                json!({
                    "id": agent.name, "name": agent.name, "description": description,
                    "tags": [team.name()],
                })
            })
            .collect(),
    };
    let mut card = json!({
        "name": team.name(),
        "description": description,
        "version": env!("CARGO_PKG_VERSION"),
        "supportedInterfaces": [interface("JSONRPC"), interface("HTTP+JSON")],
        "capabilities": {
            "streaming": true, "pushNotifications": false, "extendedAgentCard": has_keys,
        },
        "defaultInputModes": INPUT_MODES,
        "defaultOutputModes": ["text/plain", "application/json"],
        "skills": skills,
    });
    if has_keys {
        card["securitySchemes"] = json!({"key": {
            "httpAuthSecurityScheme": {"scheme": "Bearer", "description": "A key of the service."},
        }});
        card["securityRequirements"] = json!([{"schemes": {"key": {"list": []}}}]);
    }
    card
}
