//! Handles one request.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{HeaderMap, Response, StatusCode};
use serde_json::Value;

use crate::body::{DisconnectGuard, ReplyBody};
use crate::check::{Protocol, check_route};
use crate::error::Problem;
use crate::form;
use crate::record::{Request, Violation};
use crate::render::{RequestInfo, json_body, render};
use crate::reply::Reply;
use crate::reply::content::{Content, Ending};
use crate::route::Route;
use crate::shared::Shared;

/// Handles a request. An error closes the connection.
pub(crate) async fn handle(
    shared: Arc<Shared>,
    request: hyper::Request<Incoming>,
) -> io::Result<Response<ReplyBody>> {
    let (head, body) = request.into_parts();
    let bytes = body.collect().await.map_err(io::Error::other)?.to_bytes();
    let path = head.uri.path().to_owned();
    let route = Route::find(&path, &head.method);
    if let Some(prepared) = &shared.prepared {
        let protocol = route.and_then(Route::protocol);
        let rendered = protocol.and_then(|protocol| prepared.find(protocol, &bytes));
        return Ok(match rendered {
            Ok(rendered) => {
                let response = response(rendered.status, &rendered.content_type, 0);
                response.map(|()| ReplyBody::new(rendered, None, None))
            }
            Err(problem) => rejection(&problem, 0),
        });
    }
    let body = match route {
        Ok(Route::Transcriptions) => {
            let content_type = head.headers.get(CONTENT_TYPE);
            let content_type = content_type.and_then(|value| value.to_str().ok());
            form::parse(content_type.unwrap_or_default(), &bytes)
        }
        _ => parse(&bytes),
    };
    let number = record(&shared, &head.headers, &path, &body, &bytes);
    let mut guard = DisconnectGuard::new(shared.clone(), number);
    let body = body.unwrap_or_default();
    let reply = route.and_then(|route| {
        let request = RequestInfo {
            route,
            body: &body,
            number,
        };
        Ok((next_reply(&shared, &request)?, request))
    });
    let (reply, request) = match reply {
        Ok(reply) => reply,
        Err(problem) => {
            guard.done();
            return Ok(rejection(&problem, number));
        }
    };
    tokio::time::sleep(reply.delay).await;
    let Some(rendered) = render(&reply, &request) else {
        guard.done();
        return Err(io::ErrorKind::ConnectionAborted.into());
    };
    let mut response = response(rendered.status, &rendered.content_type, number);
    for (name, value) in &reply.headers {
        set_header(&mut response, name, value);
    }
    Ok(response.map(|()| ReplyBody::new(rendered, reply.pace, Some(guard))))
}

fn parse(bytes: &Bytes) -> Result<Value, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        let message = format!("We could not parse the JSON body of your request: {error}");
        Problem::new("invalid_json", None, message)
    })
}

/// Records a request and returns its number.
fn record(
    shared: &Shared,
    headers: &HeaderMap,
    path: &str,
    body: &Result<Value, Problem>,
    bytes: &Bytes,
) -> usize {
    let text = |value: &HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
    let mut request = Request {
        key: String::new(),
        path: path.to_owned(),
        headers: headers
            .iter()
            .map(|(name, value)| (name.to_string(), text(value)))
            .collect(),
        body: Value::Null,
        closed_early: false,
    };
    let key = request.header("authorization").unwrap_or_default();
    request.key = key.strip_prefix("Bearer ").unwrap_or_default().to_owned();
    let mut state = shared.state();
    let number = state.requests.len();
    match body {
        Ok(body) => request.body = body.clone(),
        Err(problem) => {
            request.body = String::from_utf8_lossy(bytes).into();
            let violation = violation(&request, number, problem.clone());
            state.violations.push(violation);
        }
    }
    state.requests.push(request);
    number
}

fn violation(request: &Request, number: usize, problem: Problem) -> Violation {
    Violation {
        key: request.key.clone(),
        path: request.path.clone(),
        request: number,
        problem,
    }
}

/// Checks a request and takes the next reply to it.
fn next_reply(shared: &Shared, request: &RequestInfo<'_>) -> Result<Reply, Problem> {
    let number = request.number;
    let open = {
        let state = shared.state();
        let mut violations = state.violations.iter();
        if let Some(violation) = violations.find(|it| it.request == number) {
            return Err(violation.problem.clone());
        }
        state.open_calls.for_request(request.body)
    };
    // Slow, so not under the lock.
    let checked = check_route(request.route, request.body, shared.rules, open);
    let mut state = shared.state();
    let Some(recorded) = state.requests.get(number) else {
        let message = "the provider was cleared during the request";
        return Err(Problem::new("cleared", None, message).status(409));
    };
    let key = recorded.key.clone();
    if let Err(problem) = checked {
        let violation = violation(recorded, number, problem.clone());
        state.violations.push(violation);
        return Err(problem);
    }
    let reply = state.next_reply(&key)?;
    if let (Route::Model(Protocol::Responses), Content::Items { items, end }) =
        (request.route, &reply.content)
        && matches!(end, Ending::Completed | Ending::Incomplete { .. })
    {
        state.open_calls.store(request.body, &request.id(), items);
    }
    Ok(reply)
}

/// The response to an invalid request.
fn rejection(problem: &Problem, number: usize) -> Response<ReplyBody> {
    let rendered = json_body(problem.status, problem.body().to_string().into());
    let response = response(rendered.status, &rendered.content_type, number);
    response.map(|()| ReplyBody::new(rendered, None, None))
}

fn response(status: u16, content_type: &str, number: usize) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or_default();
    set_header(&mut response, "content-type", content_type);
    set_header(&mut response, "x-request-id", &format!("req_{number}"));
    response
}

/// Sets a header, unless the name or value is invalid.
fn set_header(response: &mut Response<()>, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (name.parse::<HeaderName>(), HeaderValue::from_str(value)) {
        response.headers_mut().insert(name, value);
    }
}
