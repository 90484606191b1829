//! The binding JSON-RPC: one path for all operations.

use std::convert::Infallible;

use axum::extract::{Request, State};
use axum::response::sse::{Event, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::StreamExt as _;
use serde_json::{Value, json};

use super::error::{A2aError, A2aErrorKind};
use super::operations::{Answer, Operation};
use super::{KEEP_ALIVE, agent_of, check_version};
use crate::http::{PathOf, check_media_type, read_body};
use crate::service::{Caller, Service};

/// The longest identifier of a call, in bytes of its JSON.
const MAX_CALL_ID: usize = 256;

/// Answers a call.
pub(super) async fn call(
    State(service): State<Service>,
    caller: Caller,
    PathOf(team): PathOf<String>,
    request: Request,
) -> Response {
    match answer(&service, caller, &team, request).await {
        (id, Ok(Answer::Object(result))) => {
            axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response()
        }
        (id, Ok(Answer::Stream(updates))) => {
            let events = updates.map(move |result| {
                let response = json!({"jsonrpc": "2.0", "id": id, "result": result});
                Ok::<_, Infallible>(Event::default().data(response.to_string()))
            });
            let keep_alive = axum::response::sse::KeepAlive::new().interval(KEEP_ALIVE);
            Sse::new(events).keep_alive(keep_alive).into_response()
        }
        (id, Err(error)) => {
            let body = json!({"jsonrpc": "2.0", "id": id, "error": error.to_json_rpc()});
            let mut response = axum::Json(body).into_response();
            if let Some(status) = error.transport_status() {
                *response.status_mut() = status;
            }
            error.add_headers(&mut response);
            response
        }
    }
}

/// The identifier of a call, and its outcome.
async fn answer(
    service: &Service,
    caller: Caller,
    team: &str,
    request: Request,
) -> (Value, Result<Answer, A2aError>) {
    let checked = agent_of(service, caller, team, &request).and_then(|agent| {
        check_media_type(request.headers(), &["application/json"])?;
        Ok((agent, check_version(&request)))
    });
    let (agent, version) = match checked {
        Ok(checked) => checked,
        Err(error) => return (Value::Null, Err(error)),
    };
    let body = match read_body(request, service).await {
        Ok(body) => body,
        Err(error) => return (Value::Null, Err(error.into())),
    };
    let call = match serde_json::from_slice::<Value>(&body) {
        Ok(call) => call,
        Err(error) => {
            let message = format!("the body is not JSON: {error}");
            let error = A2aError::new(A2aErrorKind::Parse, message);
            return (Value::Null, Err(error));
        }
    };
    let id = match &call["id"] {
        id @ (Value::String(_) | Value::Number(_)) if id.to_string().len() <= MAX_CALL_ID => {
            id.clone()
        }
        _ => {
            let message = "a call is an object with an id, which is text or a number";
            let error = A2aError::new(A2aErrorKind::InvalidRequest, message);
            return (Value::Null, Err(error));
        }
    };
    let outcome = async {
        let (operation, parameters) = read_call(call)?;
        version?;
        agent.call(operation, parameters).await
    };
    (id, outcome.await)
}

fn read_call(mut call: Value) -> Result<(Operation, Value), A2aError> {
    let invalid = |message: &str| A2aError::new(A2aErrorKind::InvalidRequest, message);
    if call["jsonrpc"] != "2.0" {
        return Err(invalid("jsonrpc must be \"2.0\""));
    }
    let Some(method) = call["method"].as_str() else {
        return Err(invalid("the call has no method"));
    };
    let operation = Operation::of_method(method).ok_or_else(|| {
        let message = format!("there is no method {:?}", crate::http::shortened(method));
        A2aError::new(A2aErrorKind::MethodNotFound, message)
    })?;
    match call["params"].take() {
        parameters @ (Value::Object(_) | Value::Null) => Ok((operation, parameters)),
        _ => Err(A2aError::new(
            A2aErrorKind::InvalidParams,
            "params is an object",
        )),
    }
}
