//! The records of requests and violations.

use std::fmt;

use serde_json::Value;

use crate::error::Problem;

/// A request that the provider received.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// The API key, or an empty text if there is none.
    pub key: String,
    /// The path, like `/v1/responses`.
    pub path: String,
    /// The headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// The body, or its text if it is not JSON. A form is an object, and a file in it an object with its
    /// `filename`, its `content_type` and its length in `bytes`.
    pub body: Value,
    /// `true` if the client closed the connection before it had the whole reply.
    pub closed_early: bool,
}

impl Request {
    /// Returns the value of a header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers
            .iter()
            .find(|(header, _)| header == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A request that broke a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The API key of the request.
    pub key: String,
    /// The path of the request.
    pub path: String,
    /// The index of the request among all of the provider.
    pub request: usize,
    /// The problem of the request.
    pub problem: Problem,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, key, problem) = (&self.path, &self.key, &self.problem);
        write!(f, "{path} with the key {key:?}: {problem}")
    }
}
