//! Teams: list, show, draw, check, speak with.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use super::requests::{GraphFormat, GraphParameters, RealtimeBody};
use super::types::{CheckBody, FindingBody, TeamBody, TeamList, TicketBody};
use crate::error::ServiceError;
use crate::http::{JsonBody, PathOf, QueryOf, text};
use crate::keys::random_id;
use crate::realtime::{PROTOCOL, TICKET_TIME, Ticket, speech_mode};
use crate::service::{Caller, Service};

pub(super) async fn list(State(service): State<Service>, caller: Caller) -> Json<TeamList> {
    Json(TeamList {
        teams: service.teams(&caller).map(TeamBody::from).collect(),
    })
}

pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
) -> Result<Json<TeamBody>, ServiceError> {
    Ok(Json(service.team(&caller, &name)?.into()))
}

pub(super) async fn graph(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
    QueryOf(parameters): QueryOf<GraphParameters>,
) -> Result<Response, ServiceError> {
    let graph = service.team(&caller, &name)?.graph();
    let drawing = match parameters.format {
        GraphFormat::Mermaid => graph.to_mermaid(),
        GraphFormat::Dot => graph.to_dot(),
    };
    Ok(text("text/plain; charset=utf-8", drawing))
}

pub(super) async fn check(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
) -> Result<Json<CheckBody>, ServiceError> {
    let findings = service.team(&caller, &name)?.check();
    Ok(Json(CheckBody {
        findings: findings.iter().map(FindingBody::from).collect(),
    }))
}

/// Makes a ticket for a realtime session.
pub(super) async fn realtime_ticket(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
    JsonBody(body): JsonBody<RealtimeBody>,
) -> Result<Response, ServiceError> {
    let team = service.team(&caller, &name)?;
    let mode = speech_mode(team)?;
    if let Some(agent) = &body.agent
        && !team.has_agent(agent)
    {
        let message = format!("the team {name:?} has no agent {agent:?}");
        return Err(ServiceError::not_found(message));
    }
    if service.is_draining() {
        return Err(crate::service::draining());
    }
    let conversation: Arc<str> = match body.conversation {
        Some(id) => id.into(),
        None => random_id("conv")?,
    };
    service.conversation(&caller, &conversation)?;
    let ticket = service.inner().tickets.issue(Ticket {
        caller,
        team: team.name().into(),
        agent: body.agent.map(Arc::from),
        conversation: conversation.clone(),
        turns: body.turns,
        playback: body.playback,
    })?;
    let body = TicketBody {
        ticket: ticket.to_string(),
        conversation: conversation.to_string(),
        expires_in: TICKET_TIME.as_secs(),
        protocol: PROTOCOL.to_owned(),
        mode,
    };
    Ok((StatusCode::CREATED, Json(body)).into_response())
}
