//! Runs: list, show, attach, cancel.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;

use super::events::last_event_id;
use super::types::{RunInfo, RunList};
use super::{run_events, run_info};
use crate::error::ServiceError;
use crate::http::PathOf;
use crate::service::{Caller, Service};

pub(super) async fn list(State(service): State<Service>, caller: Caller) -> Json<RunList> {
    let runs = service.runs(&caller);
    Json(RunList {
        runs: runs.iter().map(|run| run_info(run)).collect(),
    })
}

pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<RunInfo>, ServiceError> {
    let run = service.run(&caller, &id)?;
    Ok(Json(run_info(&run)))
}

pub(super) async fn events(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
    headers: HeaderMap,
) -> Result<Response, ServiceError> {
    let after = last_event_id(&headers)?;
    let run = service.run(&caller, &id)?;
    Ok(run_events(&run, after))
}

/// Cancels a run, and answers once it has ended. What was shown of its answer is stored.
pub(super) async fn cancel(
    State(service): State<Service>,
    caller: Caller,
    PathOf(id): PathOf<String>,
) -> Result<Json<RunInfo>, ServiceError> {
    let run = service.run(&caller, &id)?;
    if run.is_under_way() {
        run.cancel();
        run.log.closed().await;
    }
    Ok(Json(run_info(&run)))
}
