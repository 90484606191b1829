//! Responses, whose bodies are read piece by piece.

use std::time::Duration;

use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use tokio::time::{Instant, timeout_at};

use super::error::{HttpError, TimedOut};

/// A response. Dropping it before the end of its body closes its connection.
#[derive(Debug)]
pub struct HttpResponse {
    head: Parts,
    body: Incoming,
    /// The longest wait for a piece of the body.
    read: Option<Duration>,
    deadline: Option<Instant>,
}

impl HttpResponse {
    pub(super) fn new(
        response: Response<Incoming>,
        read: Option<Duration>,
        deadline: Option<Instant>,
    ) -> Self {
        let (head, body) = response.into_parts();
        Self {
            head,
            body,
            read,
            deadline,
        }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.head.status
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The number of bytes that are still to come, if the server has announced it.
    pub fn remaining_length(&self) -> Option<u64> {
        self.body.size_hint().exact()
    }

    /// The next piece of the body; `None` at the end.
    ///
    /// # Errors
    /// If the body breaks off, or does not come within the limits.
    pub async fn chunk(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = within(self.read, self.deadline, self.body.frame()).await?;
            let Some(frame) = frame else {
                return Ok(None);
            };
            // Trailers are of no use to anybody here.
            if let Ok(bytes) = frame.map_err(HttpError::from_body)?.into_data() {
                return Ok(Some(bytes));
            }
        }
    }
}

/// The end of a time that begins now; `None` if it is too far away to be one.
pub(super) fn after(time: Duration) -> Option<Instant> {
    Instant::now().checked_add(time)
}

/// Awaits what is expected within `wait`, and not after the deadline.
pub(super) async fn within<T>(
    wait: Option<Duration>,
    deadline: Option<Instant>,
    expected: impl Future<Output = T>,
) -> Result<T, HttpError> {
    let until = match (wait.and_then(after), deadline) {
        (Some(wait), Some(deadline)) => wait.min(deadline),
        (Some(until), None) | (None, Some(until)) => until,
        (None, None) => return Ok(expected.await),
    };
    let arrived = timeout_at(until, expected).await;
    arrived.map_err(|_| HttpError::from_client(TimedOut))
}
