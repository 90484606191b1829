//! The service's own API, under `/api`.

mod conversations;
mod events;
mod openapi;
mod requests;
mod runs;
mod teams;
mod types;

use axum::Router;
use axum::routing::{get, post};

use crate::service::Service;

pub(crate) use events::{KEEP_ALIVE, run_events};
pub(crate) use requests::{AnswerBody, DecisionBody, DecisionsBody};
pub(crate) use types::{Waiting, run_info};

/// The routes of the API. `openapi.rs` describes them; a test compares both.
pub(crate) fn routes() -> Router<Service> {
    Router::new()
        .route("/api/openapi.json", get(openapi::document))
        .route("/api/teams", get(teams::list))
        .route("/api/teams/{team}", get(teams::show))
        .route("/api/teams/{team}/graph", get(teams::graph))
        .route("/api/teams/{team}/check", get(teams::check))
        .route(
            "/api/teams/{team}/realtime/tickets",
            post(teams::realtime_ticket),
        )
        .route("/api/conversations", get(conversations::list))
        .route("/api/search", get(conversations::search))
        .route(
            "/api/conversations/{conversation}",
            get(conversations::show).delete(conversations::delete),
        )
        .route(
            "/api/conversations/{conversation}/fork",
            post(conversations::fork),
        )
        .route(
            "/api/conversations/{conversation}/messages",
            post(conversations::send),
        )
        .route(
            "/api/conversations/{conversation}/decisions",
            post(conversations::decide),
        )
        .route(
            "/api/conversations/{conversation}/answers",
            post(conversations::answer),
        )
        .route("/api/runs", get(runs::list))
        .route("/api/runs/{run}", get(runs::show))
        .route("/api/runs/{run}/events", get(runs::events))
        .route("/api/runs/{run}/cancel", post(runs::cancel))
}
