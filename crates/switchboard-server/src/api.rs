//! The service's own API, under `/api`.

mod conversations;
mod events;
mod exports;
mod files;
mod graph;
mod openapi;
mod recordings;
mod requests;
mod runs;
mod teams;
mod types;
mod waiting;

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
        .route("/api/studio", get(teams::studio))
        .route("/api/events", get(waiting::changes))
        .route("/api/waiting", get(waiting::list))
        .route("/api/teams", get(teams::list))
        .route("/api/teams/{team}", get(teams::show))
        .route("/api/teams/{team}/agents/{agent}", get(teams::agent))
        .route("/api/teams/{team}/file", get(files::show).put(files::save))
        .route("/api/teams/{team}/file/check", post(files::check))
        .route("/api/teams/{team}/file/completions", post(files::complete))
        .route("/api/teams/{team}/reload", post(files::reload))
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
            "/api/conversations/{conversation}/resend",
            post(conversations::resend),
        )
        .route(
            "/api/conversations/{conversation}/turns",
            get(conversations::turns),
        )
        .route(
            "/api/conversations/{conversation}/export",
            get(exports::export),
        )
        .route(
            "/api/conversations/{conversation}/recordings",
            get(recordings::of_conversation),
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
        .route("/api/runs/{run}/recording", get(recordings::rows))
        .route("/api/runs/{run}/recording/events", get(recordings::events))
        .route("/api/runs/{run}/recording/{row}", get(recordings::row))
}
