//! The paths of the service.

use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::middleware::{from_fn, from_fn_with_state, map_response};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use serde_json::json;

use crate::error::ServiceError;
use crate::service::{Caller, Service};
use crate::{a2a, agui, api, http, openai, realtime, studio};

impl Service {
    /// The service as a router, to be mounted into an application of your own or to be served by
    /// [`Server`](crate::Server). The server also deletes responses, tasks and records whose time has passed; an application
    /// calls [`Conversations::delete_expired`](switchboard_core::conversation::Conversations::delete_expired) now and then.
    ///
    /// | path | content |
    /// | --- | --- |
    /// | `/v1/models`, `/v1/responses`, `/v1/chat/completions` | OpenAI's protocols |
    /// | `/agui/TEAM`, `/agui/TEAM/AGENT` | AG-UI |
    /// | `/.well-known/agent-card.json`, `/a2a/TEAM/…` | A2A |
    /// | `/api/…` | the service's own API, described by `/api/openapi.json` |
    /// | `/health/live`, `/health/ready` | health, without a key |
    /// | `/` | the studio, where the service has one |
    /// | `/metrics` | metrics in the text format of Prometheus |
    pub fn router(&self) -> Router {
        let admitted = Router::new()
            .merge(api::routes())
            .merge(a2a::routes())
            .merge(openai::routes())
            .merge(agui::routes())
            .route("/metrics", get(metrics))
            .fallback(http::not_found)
            .method_not_allowed_fallback(http::method_not_allowed)
            .layer(from_fn_with_state(self.clone(), http::admit));
        // A browser cannot send a key with a WebSocket: its ticket is checked instead.
        let sockets = Router::new()
            .route("/api/teams/{team}/realtime", get(realtime::open))
            .method_not_allowed_fallback(http::method_not_allowed)
            .layer(from_fn_with_state(self.clone(), http::admit_socket));
        let cards = a2a::card_routes().layer(from_fn_with_state(self.clone(), http::admit_anybody));
        Router::new()
            .route("/", get(studio::page))
            .route("/icon.svg", get(studio::page))
            .route("/assets/{file}", get(studio::page))
            .route("/health/live", get(live))
            .route("/health/ready", get(ready))
            .merge(cards)
            .merge(admitted)
            .merge(sockets)
            .layer(from_fn(a2a::error_form))
            .layer(map_response(close_refused_bodies))
            .layer(from_fn_with_state(self.clone(), http::observe))
            .with_state(self.clone())
    }
}

/// Closes the connection after a refusal: the rest of the body is not worth reading.
async fn close_refused_bodies(mut response: Response) -> Response {
    if matches!(
        response.status(),
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::GATEWAY_TIMEOUT
    ) {
        let close = axum::http::HeaderValue::from_static("close");
        response
            .headers_mut()
            .insert(axum::http::header::CONNECTION, close);
    }
    response
}

async fn live() -> Response {
    axum::Json(json!({"status": "live"})).into_response()
}

/// Ready is a service that takes new runs and whose store answers.
async fn ready(State(service): State<Service>) -> Result<Response, ServiceError> {
    if service.is_draining() {
        return Err(crate::service::draining());
    }
    service.check_store().await?;
    Ok(axum::Json(json!({"status": "ready"})).into_response())
}

async fn metrics(State(service): State<Service>, caller: Caller) -> Result<Response, ServiceError> {
    if caller.key.as_ref().is_some_and(|key| !key.allows_metrics()) {
        return Err(ServiceError::not_found("there is nothing at this path"));
    }
    let text = service.inner().metrics.to_text();
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(http::text(content_type, text))
}
