//! Teams: list, show, draw, check, speak with.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};

use super::files::require_studio;
use super::graph::GraphBody;
use super::requests::{GraphFormat, GraphParameters, RealtimeBody};
use super::types::{
    AgentDetailsBody, CheckBody, FindingBody, StudioBody, StudioLimits, TeamBody, TeamList,
    TicketBody,
};
use crate::error::ServiceError;
use crate::http::{JsonBody, PathOf, QueryOf, text};
use crate::keys::random_id;
use crate::realtime::{PROTOCOL, TICKET_TIME, Ticket, speech_mode};
use crate::service::{Caller, Service};

pub(super) async fn list(State(service): State<Service>, caller: Caller) -> Json<TeamList> {
    Json(TeamList {
        teams: service.teams(&caller).iter().map(TeamBody::from).collect(),
    })
}

pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
) -> Result<Json<TeamBody>, ServiceError> {
    Ok(Json(TeamBody::from(&service.team(&caller, &name)?)))
}

pub(super) async fn graph(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
    QueryOf(parameters): QueryOf<GraphParameters>,
) -> Result<Response, ServiceError> {
    let team = service.team(&caller, &name)?;
    let graph = team.graph();
    let drawing = match parameters.format {
        GraphFormat::Mermaid => graph.to_mermaid(),
        GraphFormat::Dot => graph.to_dot(),
        GraphFormat::Svg => return Ok(text("image/svg+xml", graph.to_svg())),
        GraphFormat::Json => return Ok(Json(GraphBody::new(&team, &graph)).into_response()),
    };
    Ok(text("text/plain; charset=utf-8", drawing))
}

pub(super) async fn agent(
    State(service): State<Service>,
    caller: Caller,
    PathOf((name, agent)): PathOf<(String, String)>,
) -> Result<Json<AgentDetailsBody>, ServiceError> {
    let team = service.team(&caller, &name)?;
    require_studio(&service)?;
    let details = team.agent_details(&agent);
    let missing = || ServiceError::not_found(format!("the team has no agent {agent:?}"));
    let details = details.ok_or_else(missing)?;
    let findings = team.check();
    let findings = findings.iter().filter(|finding| finding.agent == agent);
    Ok(Json(AgentDetailsBody {
        details,
        findings: findings.map(FindingBody::from).collect(),
    }))
}

/// What a page should know before it begins.
pub(super) async fn studio(State(service): State<Service>, caller: Caller) -> Json<StudioBody> {
    let inner = service.inner();
    let studio = inner.studio.as_ref();
    let teams = service.teams(&caller);
    let sources = teams.iter().filter_map(|team| team.team_source());
    let is_editing = studio.is_some() && sources.into_iter().any(|source| source.is_editable());
    Json(StudioBody {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        recording: inner.recordings.is_some(),
        editing: is_editing,
        default_team: teams.first().map(|team| team.name().to_owned()),
        language: studio
            .map_or("en", |studio| studio.language_name())
            .to_owned(),
        limits: StudioLimits {
            body_bytes: inner.limits.body_bytes,
            // Base64 makes four bytes of three, and the message has words as well.
            attachment_bytes: inner.limits.body_bytes / 2,
        },
        voice: teams.iter().any(|team| team.speech_mode().is_some()),
    })
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
    let mode = speech_mode(&team)?;
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
