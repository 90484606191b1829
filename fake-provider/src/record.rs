//! What the provider keeps of what it was sent.

use std::fmt;

use serde_json::Value;

use crate::error::Problem;

/// A request the provider got.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Request {
    /// The API key it came with; empty where it had none.
    pub key: String,
    /// Its path, like `/v1/responses`.
    pub path: String,
    /// Its headers, with lower-case names.
    pub headers: Vec<(String, String)>,
    /// Its body; where that was no JSON, the text of it.
    pub body: Value,
    /// Whether the client closed the connection before it had the whole answer.
    pub closed_early: bool,
}

impl Request {
    /// A header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(known, _)| known == name)
            .map(|(_, value)| value.as_str())
    }
}

/// A request that broke a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Violation {
    /// The API key it came with.
    pub key: String,
    /// Its path.
    pub path: String,
    /// Which of the provider's requests it was, counted from 0.
    pub request: usize,
    /// What is wrong with it.
    pub problem: Problem,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (path, key, problem) = (&self.path, &self.key, &self.problem);
        write!(f, "{path} with the key {key:?}: {problem}")
    }
}
