//! The models: each team, and each agent of a team.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::find_model;
use crate::error::ServiceError;
use crate::http::PathOf;
use crate::service::{Caller, Service};

pub(super) async fn list(State(service): State<Service>, caller: Caller) -> Json<Value> {
    let models = service.teams(&caller).into_iter().flat_map(|team| {
        let agents = team.agents().into_iter();
        let agents = agents.map(|agent| model(&format!("{}/{}", team.name(), agent.name)));
        let agents: Vec<_> = agents.collect();
        std::iter::once(model(team.name())).chain(agents)
    });
    Json(json!({"object": "list", "data": models.collect::<Vec<_>>()}))
}

pub(super) async fn show(
    State(service): State<Service>,
    caller: Caller,
    PathOf(name): PathOf<String>,
) -> Result<Json<Value>, ServiceError> {
    find_model(&service, &caller, &name)?;
    Ok(Json(model(&name)))
}

fn model(name: &str) -> Value {
    // There is no time at which a team was made; clients only need a number.
    json!({"id": name, "object": "model", "created": 0, "owned_by": "switchboard"})
}
