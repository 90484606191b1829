//! OpenAI's protocols, for clients that exist already: each team, and each agent of a team, is a model.
//!
//! Both protocols are translations of one: [`output::OutputEvents`] makes the events of a response from the events
//! of a run, over tools and handoffs, and Chat Completions is written from these.

mod chat;
mod input;
mod models;
mod output;
mod place;
mod record;
mod response_object;
mod responses;
mod settings;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::Router;
use axum::routing::{get, post};

pub(crate) use self::input::text_of;
use crate::error::ServiceError;
use crate::service::{Caller, Service};
use crate::team::ServedTeam;

pub(crate) fn routes() -> Router<Service> {
    Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*model}", get(models::show))
        .route("/v1/chat/completions", post(chat::create))
        .route("/v1/responses", post(responses::create))
        .route(
            "/v1/responses/{response}",
            get(responses::show).delete(responses::delete),
        )
        .route("/v1/responses/{response}/cancel", post(responses::cancel))
        .route(
            "/v1/responses/{response}/input_items",
            get(responses::input_items),
        )
}

/// The team and the agent that a model's name stands for: `team`, or `team/agent`.
fn find_model(
    service: &Service,
    caller: &Caller,
    model: &str,
) -> Result<(ServedTeam, Option<Arc<str>>), ServiceError> {
    let missing = || ServiceError::not_found(format!("the model {model:?} does not exist"));
    let (team, agent) = match model.split_once('/') {
        None => (model, None),
        Some((team, agent)) => (team, Some(agent)),
    };
    let team = service.team(caller, team).map_err(|_| missing())?;
    if agent.is_some_and(|agent| !team.has_agent(agent)) {
        return Err(missing());
    }
    Ok((team, agent.map(Arc::from)))
}

/// The current time in seconds.
fn now() -> u64 {
    seconds(SystemTime::now())
}

/// A time in seconds since 1970.
fn seconds(time: SystemTime) -> u64 {
    let since = time.duration_since(UNIX_EPOCH);
    since.unwrap_or_default().as_secs()
}
