//! Teams: list, show, draw, check.

use axum::Json;
use axum::extract::State;
use axum::response::Response;

use super::requests::{GraphFormat, GraphParameters};
use super::types::{CheckBody, FindingBody, TeamBody, TeamList};
use crate::error::ServiceError;
use crate::http::{PathOf, QueryOf, text};
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
