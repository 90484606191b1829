//! The content of a reply.

use bytes::Bytes;
use serde_json::Value;

/// The content type of spoken audio.
pub(crate) const AUDIO: &str = "application/octet-stream";

/// The content of a reply.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    Items {
        items: Vec<Value>,
        end: Ending,
    },
    Raw {
        status: u16,
        content_type: String,
        bytes: Bytes,
    },
    Endless(Endless),
    Disconnect,
}

/// The ending of a reply made of items.
#[derive(Debug, Clone)]
pub(crate) enum Ending {
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

/// The kind of a body that never ends.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Endless {
    Events,
    Line,
}

/// The action after a number of bytes of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cut {
    Close,
    End,
    Hang,
}

/// The two forms of an `error` event of the Responses API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorForm {
    /// `{"type": "error", "error": {"code": ..., "message": ...}}`, as OpenAI sends it.
    Nested,
    /// `{"type": "error", "code": ..., "message": ...}`, as OpenAI documents it.
    Flat,
}

/// The token usage of a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// Tokens of the request.
    pub input: u64,
    /// Cached tokens of the request.
    pub cached: u64,
    /// Tokens of the request that were written to the cache.
    pub cache_write: u64,
    /// Tokens of the reply.
    pub output: u64,
    /// Reasoning tokens of the reply.
    pub reasoning: u64,
}
