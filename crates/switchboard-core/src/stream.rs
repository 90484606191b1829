//! Streamed runs and their events.

pub(crate) mod channel;
mod event;
mod event_json;
pub(crate) mod event_sink;
mod item_event;

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::future::{Either, select};

pub use event::{EventKind, HandoffEvent, HandoffStatus, STREAM_VERSION, StreamEvent};
pub use item_event::ItemEvent;

use crate::callback::BoxFuture;
use crate::driver::Driver;
use crate::error::Error;
use crate::run::Run;
use crate::runner::RunResult;
use channel::EventChannel;
use event_sink::EventSink;

/// A run in progress as a stream of events; see [`Runner::stream`](crate::Runner::stream).
///
/// The run advances only while the stream is polled, and dropping the stream cancels it: nothing
/// runs in the background. [`RunStream::finish`] returns the result or the error.
///
/// ```
/// use switchboard_core::testing::ScriptedModel;
/// use switchboard_core::{Agent, EventKind, Runner};
///
/// # futures_util::FutureExt::now_or_never(async {
/// let agent: Agent = Agent::new("Greeter").model(ScriptedModel::new().say("Hello!"));
/// let mut stream = Runner::new(&agent).stream("Hi");
/// while let Some(event) = stream.next().await {
///     if let EventKind::TextDelta { text, .. } = event.kind {
///         print!("{}: {text}", event.agent);
///     }
/// }
/// assert_eq!(stream.finish().await?.final_text(), "Hello!");
/// # Ok::<(), switchboard_core::Error>(())
/// # }).unwrap().unwrap();
/// ```
pub struct RunStream<C = ()> {
    run: Option<BoxFuture<'static, Result<RunResult<C>, Error>>>,
    channel: EventChannel,
    result: Option<Result<RunResult<C>, Error>>,
    /// Set if the run was polled since the last event was taken.
    is_polled: bool,
}

impl<C: Send + Sync + 'static> RunStream<C> {
    /// Drives a run as a stream of events.
    pub(crate) fn new(mut driver: Driver<C>) -> Self {
        let channel = EventChannel::default();
        driver.send_events_to(EventSink::new(channel.clone()));
        let stop = channel.clone();
        let run = async move {
            let outcome = {
                let driven = std::pin::pin!(driver.drive());
                match select(stop.stopped(), driven).await {
                    Either::Left(((), _)) => None,
                    Either::Right((outcome, _)) => Some(outcome),
                }
            };
            if outcome.is_none() {
                driver.clean_up_after_stop().await;
            }
            let outcome = outcome.unwrap_or(Ok(()));
            driver.report_end(&outcome).await;
            driver.finish(outcome)
        };
        Self {
            run: Some(Box::pin(run)),
            channel,
            result: None,
            is_polled: false,
        }
    }

    /// Returns the next event, or `None` once the run has ended.
    pub async fn next(&mut self) -> Option<StreamEvent> {
        poll_fn(|cx| Pin::new(&mut *self).poll_next(cx)).await
    }

    /// Discards the remaining events and returns the result.
    ///
    /// # Errors
    /// The error of the run.
    pub async fn finish(mut self) -> Result<RunResult<C>, Error> {
        loop {
            while self.next().await.is_some() {}
            if let Some(result) = self.result.take() {
                return result;
            }
        }
    }

    /// The run as it was at the last event; `None` before the first event, after the end, and after a
    /// call of [`RunStream::next`] that was cancelled.
    pub fn run(&self) -> Option<Arc<Run>> {
        self.channel.run()
    }

    /// Stops the run at once: work in progress is cancelled where it awaits, and the current turn
    /// is not part of the result.
    pub fn stop(&self) {
        self.channel.stop_now();
    }

    /// Stops the run after the current turn. Called before the first event, the run takes one turn:
    /// store [`RunResult::into_run`](super::RunResult::into_run) and continue with
    /// [`Runner::resume_stream`](crate::Runner::resume_stream) to stream a run turn by turn.
    pub fn stop_after_turn(&self) {
        self.channel.stop_after_turn();
    }

    /// Returns a handle that stops the run from elsewhere.
    pub fn stop_handle(&self) -> StopHandle {
        StopHandle(self.channel.clone())
    }
}

impl<C> Stream for RunStream<C> {
    type Item = StreamEvent;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<StreamEvent>> {
        loop {
            // Reports that come as fast as they are read must not keep the run from being polled.
            let may_take =
                self.is_polled || self.run.is_none() || !self.channel.has_progress_first();
            if may_take && let Some(event) = self.channel.take() {
                self.is_polled = false;
                return Poll::Ready(Some(event));
            }
            self.channel.before_poll(cx);
            self.is_polled = true;
            let Some(run) = &mut self.run else {
                return Poll::Ready(None);
            };
            match run.as_mut().poll(cx) {
                Poll::Ready(result) => {
                    self.channel.close();
                    self.run = None;
                    self.result = Some(result);
                }
                Poll::Pending => {
                    let Some(event) = self.channel.take() else {
                        return Poll::Pending;
                    };
                    self.is_polled = false;
                    return Poll::Ready(Some(event));
                }
            }
        }
    }
}

impl<C> Drop for RunStream<C> {
    fn drop(&mut self) {
        self.run = None;
        self.channel.abandon();
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
pub struct StopHandle(EventChannel);

impl StopHandle {
    /// Stops the run at once; see [`RunStream::stop`].
    pub fn stop(&self) {
        self.0.stop_now();
    }

    /// Stops the run after the current turn; see [`RunStream::stop_after_turn`].
    pub fn stop_after_turn(&self) {
        self.0.stop_after_turn();
    }
}
