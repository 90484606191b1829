//! The events of a streamed answer.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::Response;
use serde::de::IgnoredAny;

use super::{ResponseHeaders, too_large, transport_error};
use crate::wire::error::ModelError;
use crate::wire::sse::{Event, Splitter};

/// The longest wait for a server to end its stream after the answer is complete.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The events of an answer in progress. Dropping it closes the connection.
pub(crate) struct Events {
    response: Response,
    pub(crate) headers: ResponseHeaders,
    splitter: Splitter,
    ready: VecDeque<Event>,
    limit: usize,
    received: usize,
    has_ended: bool,
}

impl Events {
    /// The events of a response whose first bytes have been read; at most `limit` bytes.
    pub(super) fn new(
        response: Response,
        headers: ResponseHeaders,
        first_bytes: &[u8],
        limit: usize,
    ) -> Result<Self, ModelError> {
        let mut events = Self {
            response,
            headers,
            splitter: Splitter::new(limit),
            ready: VecDeque::new(),
            limit,
            received: 0,
            has_ended: false,
        };
        events.push(first_bytes)?;
        Ok(events)
    }

    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<Event>, ModelError> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Ok(Some(event));
            }
            if self.has_ended {
                return Ok(None);
            }
            match self.response.chunk().await {
                Ok(Some(bytes)) => self.push(&bytes)?,
                Ok(None) => {
                    self.has_ended = true;
                    self.ready
                        .extend(self.splitter.finish().filter(is_complete));
                }
                Err(error) => {
                    return Err(transport_error(error, true).with_headers(&self.headers));
                }
            }
        }
    }

    /// Puts an event back to the front.
    pub(super) fn put_back(&mut self, event: Event) {
        self.ready.push_front(event);
    }

    fn push(&mut self, bytes: &[u8]) -> Result<(), ModelError> {
        self.received += bytes.len();
        let split = self.splitter.push(bytes, &mut self.ready);
        if self.received > self.limit || split.is_err() {
            return Err(too_large(self.limit).with_headers(&self.headers));
        }
        Ok(())
    }

    /// Reads the rest of the stream in the background, so that the connection can be reused.
    pub(crate) fn drain(mut self) {
        let rest = async move { while let Ok(Some(_)) = self.next().await {} };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(DRAIN_TIMEOUT, rest));
        }
    }
}

/// Returns `true` if an event that the end of the stream terminated does not seem to be cut short.
fn is_complete(event: &Event) -> bool {
    match event {
        Event::Data(data) if data.starts_with("[DONE]") => true,
        Event::Data(data) | Event::Error(data) => serde_json::from_str::<IgnoredAny>(data).is_ok(),
    }
}
