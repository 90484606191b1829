//! Reading an answer that comes event by event, in any protocol.

use std::collections::VecDeque;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use serde_json::Value;
use switchboard_core::ModelEvent;
use tokio::time::{Instant, Sleep, sleep_until};

use super::Pieces;
use super::client::{Events, Head};
use super::error::ModelError;
use super::lenient::value;
use super::sse::Event;

/// How long a server may take to say what an answer cost, once the answer is all there.
const LONGEST_REST: Duration = Duration::from_secs(2);

/// What a protocol makes of events.
pub(super) trait Reader: Send {
    /// Takes the data of an event; what there is to tell of it is put into `told`.
    fn take(
        &mut self,
        data: Arc<str>,
        head: &Head,
        told: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError>;

    /// The stream is over; `is_done` says whether the server said so.
    fn end(
        &mut self,
        is_done: bool,
        head: &Head,
        told: &mut VecDeque<ModelEvent>,
    ) -> Result<(), ModelError>;

    /// The error for what a server says of its failure.
    fn failed(&self, said: &Value) -> ModelError;

    /// Whether the answer is all there, whatever may still come.
    fn is_all_there(&self) -> bool {
        false
    }
}

/// An answer under way.
pub(super) struct Listening<R> {
    reader: R,
    /// Gone once the answer has ended.
    events: Option<Events>,
    ready: VecDeque<ModelEvent>,
    head: Head,
    /// When to wait no longer for what comes after the answer.
    latest: Option<Instant>,
    /// Wakes whoever waits for that.
    rest: Option<Pin<Box<Sleep>>>,
}

impl<R: Reader> Listening<R> {
    pub(super) fn new(events: Events, reader: R) -> Self {
        Self {
            reader,
            head: events.head().clone(),
            events: Some(events),
            ready: VecDeque::new(),
            latest: None,
            rest: None,
        }
    }

    fn take(&mut self, event: Option<Event>) -> Result<(), ModelError> {
        let (head, told) = (&self.head, &mut self.ready);
        match event {
            Some(Event::Data(data)) if data.starts_with("[DONE]") => {
                self.reader.end(true, head, told)
            }
            Some(Event::Data(data)) => self.reader.take(data, head, told),
            Some(Event::Error(said)) => {
                let said = value(&said).unwrap_or_else(|| (&*said).into());
                Err(self.reader.failed(&said))
            }
            None => self.reader.end(false, head, told),
        }
    }

    /// The next event. Of an answer that is all there the stream is read only a while longer, and
    /// how it ends does not matter.
    fn poll_event(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Event>, ModelError>> {
        let Some(events) = &mut self.events else {
            return Poll::Ready(Ok(None));
        };
        // What has come is kept by the events, not by this future: another one goes on from there.
        let next = pin!(events.next()).poll(context);
        if !self.reader.is_all_there() {
            return next;
        }
        let latest = *self
            .latest
            .get_or_insert_with(|| Instant::now() + LONGEST_REST);
        match next {
            Poll::Ready(next) => Poll::Ready(Ok(next.unwrap_or_default())),
            Poll::Pending => {
                let rest = self
                    .rest
                    .get_or_insert_with(|| Box::pin(sleep_until(latest)));
                rest.as_mut().poll(context).map(|()| Ok(None))
            }
        }
    }
}

impl<R: Reader> Pieces for Listening<R> {
    fn poll_next(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<ModelEvent>, ModelError>> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Poll::Ready(Ok(Some(event)));
            }
            if self.events.is_none() {
                return Poll::Ready(Ok(None));
            }
            let event = ready!(self.poll_event(context))?;
            self.take(event).map_err(|error| match &self.events {
                Some(events) => events.at(error),
                None => error,
            })?;
            if matches!(self.ready.back(), Some(ModelEvent::Completed(_)))
                && let Some(events) = self.events.take()
            {
                events.drain();
            }
        }
    }
}
