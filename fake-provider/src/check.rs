//! Checks request bodies.

pub(crate) mod calls;
mod chat;
mod fields;
mod responses;
mod schema;
mod strict;
mod tools;

use serde_json::Value;

use crate::error::Problem;
use crate::open_calls::OpenCalls;
use crate::route::Route;
use crate::rules::Rules;

/// A protocol of the provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// `POST /responses`.
    Responses,
    /// `POST /chat/completions`.
    Chat,
}

/// Checks a request body, as a server without earlier responses does.
///
/// ```
/// use fake_provider::{Protocol, Rules, check};
/// use serde_json::json;
///
/// let body = json!({"model": "gpt-test", "input": "Hi", "temprature": 1});
/// let problem = check(Protocol::Responses, &body, Rules::default()).unwrap_err();
/// assert_eq!(problem.to_string(), "temprature: Unknown parameter: 'temprature'.");
/// ```
///
/// # Errors
/// Returns the first problem.
pub fn check(protocol: Protocol, body: &Value, rules: Rules) -> Result<(), Problem> {
    check_with(
        protocol,
        body,
        rules,
        OpenCalls::default().for_request(body),
    )
}

/// Checks the body of a request to any endpoint.
pub(crate) fn check_route(
    route: Route,
    body: &Value,
    rules: Rules,
    open: Result<Vec<String>, Problem>,
) -> Result<(), Problem> {
    match route {
        Route::Model(protocol) => check_with(protocol, body, rules, open),
        _ if !rules.check => Ok(()),
        Route::Speech | Route::Transcriptions => schema::check(route, body),
    }
}

/// Checks a request body. `open` holds the calls of earlier responses that it must answer.
fn check_with(
    protocol: Protocol,
    body: &Value,
    rules: Rules,
    open: Result<Vec<String>, Problem>,
) -> Result<(), Problem> {
    if !rules.check {
        return Ok(());
    }
    match protocol {
        Protocol::Responses => responses::check(body, rules, open),
        Protocol::Chat => chat::check(body, rules),
    }
}

/// The list in a field, or an empty one.
fn list<'a>(body: &'a Value, field: &str) -> &'a [Value] {
    body[field]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default()
}
