//! Teams: list, show, draw, check.

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse as _, Response};

use super::files::require_studio;
use super::graph::GraphBody;
use super::requests::{GraphFormat, GraphParameters};
use super::types::{
    AgentDetailsBody, CheckBody, FindingBody, StudioBody, StudioLimits, TeamBody, TeamList,
};
use crate::error::ServiceError;
use crate::http::{PathOf, QueryOf, text};
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
        voice: false,
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
