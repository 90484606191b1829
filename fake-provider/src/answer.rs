//! The parts of a reply.

use bytes::Bytes;
use serde_json::Value;

#[derive(Debug, Clone)]
pub(crate) enum Answer {
    Items {
        items: Vec<Value>,
        end: End,
    },
    Raw {
        status: u16,
        content_type: String,
        bytes: Bytes,
    },
    Endless(Endless),
    Disconnect,
}

/// How an answer of items ends.
#[derive(Debug, Clone)]
pub(crate) enum End {
    Completed,
    Incomplete {
        reason: String,
    },
    Failed {
        code: String,
        message: String,
    },
    Error {
        form: ErrorForm,
        code: String,
        message: String,
    },
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum Endless {
    Events,
    Line,
}

/// What happens after a number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Close,
    End,
    Hang,
}

/// The two forms of an `error` event of the Responses API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorForm {
    /// `{"type": "error", "error": {"code": ..., "message": ...}}`: what OpenAI sends.
    Nested,
    /// `{"type": "error", "code": ..., "message": ...}`: what its documentation says.
    Flat,
}

/// What an answer cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// How many of them were cached.
    pub cached: u64,
    /// Tokens of the answer.
    pub output: u64,
    /// How many of them were reasoning.
    pub reasoning: u64,
}
