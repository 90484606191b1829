//! An answer event by event.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use reqwest::Response;

use super::{Client, Head, too_large, transport};
use crate::wire::error::{ModelError, ModelErrorKind};
use crate::wire::secret::Secret;
use crate::wire::sse::{Event, Splitter};

/// How long a server may take to end a stream whose answer has ended.
const LONGEST_DRAIN: Duration = Duration::from_secs(2);

/// The events of an answer under way. Dropping it closes the connection.
pub(crate) struct Events {
    response: Response,
    splitter: Splitter,
    ready: VecDeque<Event>,
    /// How many bytes may still come.
    left: usize,
    has_ended: bool,
    head: Head,
    client: Client,
    /// What the request's own headers hold.
    secrets: Arc<[Secret]>,
}

impl Events {
    /// The events of an answer whose first bytes were read already.
    pub(super) fn new(
        response: Response,
        begun: &[u8],
        head: Head,
        client: &Client,
        secrets: Arc<[Secret]>,
    ) -> Result<Self, ModelError> {
        let limit = client.0.max_response_bytes;
        let mut events = Self {
            response,
            splitter: Splitter::new(limit),
            ready: VecDeque::new(),
            left: limit,
            has_ended: false,
            head,
            client: client.clone(),
            secrets,
        };
        events.push(begun)?;
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
            let part: Option<Bytes> = match self.response.chunk().await {
                Ok(part) => part,
                Err(error) => return Err(self.at(transport(error, true))),
            };
            match part {
                Some(part) => self.push(&part)?,
                None => {
                    self.has_ended = true;
                    self.ready.extend(self.splitter.finish().filter(is_whole));
                }
            }
        }
    }

    /// Puts back an event that was looked at.
    pub(super) fn put_back(&mut self, event: Event) {
        self.ready.push_front(event);
    }

    fn push(&mut self, part: &[u8]) -> Result<(), ModelError> {
        let left = self.left.checked_sub(part.len());
        let pushed = self.splitter.push(part, &mut self.ready);
        let (Some(left), Ok(())) = (left, pushed) else {
            return Err(self.at(too_large(self.client.0.max_response_bytes)));
        };
        self.left = left;
        Ok(())
    }

    /// The answer has ended. What is left of the stream is read, so that the connection can be used
    /// again; nobody waits for it.
    pub(crate) fn drain(mut self) {
        let rest = async move { while let Ok(Some(_)) = self.next().await {} };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(tokio::time::timeout(LONGEST_DRAIN, rest));
        }
    }

    /// The stream ended, and the answer had not.
    pub(crate) fn broken(&self, how: &str) -> ModelError {
        self.at(ModelError::new(ModelErrorKind::Interrupted, how))
    }

    /// An error of this stream.
    pub(crate) fn at(&self, error: ModelError) -> ModelError {
        let error = error.with_head(&self.head);
        self.client.finished(error, &self.secrets)
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }
}

/// Whether an event that the end of the stream cut short, as far as one can tell, is all there.
fn is_whole(event: &Event) -> bool {
    match event {
        Event::Data(data) if data.starts_with("[DONE]") => true,
        Event::Data(data) | Event::Error(data) => {
            serde_json::from_str::<serde::de::IgnoredAny>(data).is_ok()
        }
    }
}
