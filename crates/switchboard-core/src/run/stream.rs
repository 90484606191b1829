//! A run told as it happens.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;

use super::events::{Events, StreamEvent};
use super::result::RunResult;
use crate::callback::BoxFuture;
use crate::error::Error;

/// A run under way, told event by event; see [`Runner::stream`](crate::Runner::stream).
///
/// The run moves while the stream is polled, and only then: nothing runs in the background, and
/// dropping the stream stops the work. Errors are told by [`RunStream::finish`].
pub struct RunStream<C = ()> {
    run: Option<BoxFuture<'static, Result<RunResult<C>, Error>>>,
    events: Events<C>,
    result: Option<Result<RunResult<C>, Error>>,
}

impl<C: Send + Sync + 'static> RunStream<C> {
    pub(super) fn new(
        run: BoxFuture<'static, Result<RunResult<C>, Error>>,
        events: Events<C>,
    ) -> Self {
        Self {
            run: Some(run),
            events,
            result: None,
        }
    }

    /// The next event; `None` once the run has ended.
    pub async fn next(&mut self) -> Option<StreamEvent<C>> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// The result, after all events that are left.
    ///
    /// # Errors
    /// What went wrong in the run.
    pub async fn finish(mut self) -> Result<RunResult<C>, Error> {
        loop {
            while self.next().await.is_some() {}
            if let Some(result) = self.result.take() {
                return result;
            }
        }
    }

    /// Stops the run at once: what is under way is cancelled where it awaits, and the turn in
    /// flight is not part of the result.
    pub fn stop(&self) {
        self.events.stop_now();
    }

    /// Stops the run after the turn in flight.
    pub fn stop_after_turn(&self) {
        self.events.stop_after_turn();
    }

    /// A handle for stopping the run from elsewhere.
    pub fn stop_handle(&self) -> StopHandle<C> {
        StopHandle(self.events.clone())
    }
}

impl<C> Stream for RunStream<C> {
    type Item = StreamEvent<C>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent<C>>> {
        loop {
            if let Some(event) = self.events.take() {
                return Poll::Ready(Some(event));
            }
            let Some(run) = &mut self.run else {
                return Poll::Ready(None);
            };
            match run.as_mut().poll(cx) {
                Poll::Ready(result) => {
                    self.run = None;
                    self.result = Some(result);
                }
                Poll::Pending => {
                    return match self.events.take() {
                        Some(event) => Poll::Ready(Some(event)),
                        None => Poll::Pending,
                    };
                }
            }
        }
    }
}

impl<C> fmt::Debug for RunStream<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunStream")
            .field("ended", &self.run.is_none())
            .finish_non_exhaustive()
    }
}

/// Stops a streamed run from elsewhere; see [`RunStream::stop_handle`].
#[derive(Debug, Clone)]
pub struct StopHandle<C = ()>(Events<C>);

impl<C> StopHandle<C> {
    /// Stops the run at once.
    pub fn stop(&self) {
        self.0.stop_now();
    }

    /// Stops the run after the turn in flight.
    pub fn stop_after_turn(&self) {
        self.0.stop_after_turn();
    }
}
