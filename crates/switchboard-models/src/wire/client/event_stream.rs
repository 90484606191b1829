//! The events of a streamed answer.

use std::collections::VecDeque;
use std::time::Duration;

use serde::de::IgnoredAny;

use super::response_body::ResponseBody;
use crate::wire::model_error::ModelError;
use crate::wire::sse::{Event, Splitter};

/// The longest wait for a server to end its stream after the answer is complete.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(2);

/// The events of an answer in progress. Dropping it closes the connection.
pub(crate) struct Events {
    pub(crate) body: ResponseBody,
    splitter: Splitter,
    ready: VecDeque<Event>,
    has_ended: bool,
}

impl Events {
    /// The events of a body that begins with `start`.
    pub(super) fn new(body: ResponseBody, start: &[u8]) -> Self {
        let mut events = Self {
            body,
            splitter: Splitter::default(),
            ready: VecDeque::new(),
            has_ended: false,
        };
        events.splitter.push(start, &mut events.ready);
        events
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
            match self.body.next_chunk().await? {
                Some(bytes) => self.splitter.push(&bytes, &mut self.ready),
                None => {
                    self.has_ended = true;
                    self.ready
                        .extend(self.splitter.finish().filter(is_complete));
                }
            }
        }
    }

    /// Puts an event back to the front.
    pub(super) fn put_back(&mut self, event: Event) {
        self.ready.push_front(event);
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
