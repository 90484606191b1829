//! The events of a streamed answer.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ModelResponse;

/// A piece of a streamed response.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum ModelEvent {
    /// More of a message's text.
    TextDelta {
        /// Identifies the item within the response.
        item: Arc<str>,
        /// The piece.
        text: String,
    },
    /// More of the model's reasoning, as far as the provider shows it.
    ReasoningDelta {
        /// The item that grows.
        item: Arc<str>,
        /// The piece.
        text: String,
    },
    /// More of the arguments of a tool call or a handoff.
    ArgumentsDelta {
        /// The item that grows.
        item: Arc<str>,
        /// The identifier of the call; empty where the provider has not given it yet.
        call_id: Arc<str>,
        /// The name of the tool that is called.
        tool: Arc<str>,
        /// The piece.
        text: String,
    },
    /// A request failed, and is sent again.
    Retry(ModelRetry),
    /// An event of the provider's protocol, as it came.
    Raw(RawEvent),
    /// The complete response. Nothing follows it.
    Completed(ModelResponse),
}

impl ModelEvent {
    /// Returns `true` if a part of the answer was sent: anything but a retry and the provider's notice
    /// that it has begun.
    pub(crate) fn is_part_of_answer(&self) -> bool {
        match self {
            Self::Retry(_) => false,
            Self::Raw(event) => !matches!(
                event.kind().as_deref(),
                Some("response.created" | "response.in_progress")
            ),
            _ => true,
        }
    }

    /// Creates a [`ModelEvent::TextDelta`].
    pub fn text_delta(item: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        Self::TextDelta {
            item: item.into(),
            text: text.into(),
        }
    }
}

/// A request that failed and is sent again.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct ModelRetry {
    /// The number of the attempt that comes next; the first retry is attempt 2.
    pub attempt: u32,
    /// The pause before it.
    pub delay: Duration,
    /// The reason the attempt before it failed.
    pub reason: String,
}

impl ModelRetry {
    /// Creates a retry.
    pub fn new(attempt: u32, delay: Duration, reason: impl Into<String>) -> Self {
        Self {
            attempt,
            delay,
            reason: reason.into(),
        }
    }
}

/// An event of a provider's protocol, as it came.
#[derive(Clone, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct RawEvent(#[serde(with = "crate::json::as_written")] Arc<str>);

impl RawEvent {
    /// Parses an event.
    ///
    /// # Errors
    /// An error if `json` is not JSON.
    pub fn from_json(json: String) -> Result<Self, serde_json::Error> {
        let raw: &RawValue = serde_json::from_str(&json)?;
        Ok(Self(raw.get().into()))
    }

    /// Creates an event from text that is known to be JSON.
    #[doc(hidden)]
    pub fn from_read(json: Arc<str>) -> Self {
        Self(json)
    }

    /// The event's `type`.
    fn kind(&self) -> Option<String> {
        #[derive(Deserialize)]
        struct Typed {
            r#type: String,
        }
        let typed: Typed = serde_json::from_str(&self.0).ok()?;
        Some(typed.r#type)
    }

    /// The event's JSON.
    pub fn as_json(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for RawEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}
