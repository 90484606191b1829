//! Realtime sessions: the driver of the machine, over a realtime model.

mod agents;
mod driver;
mod event_queue;
mod handle;
mod keeper;
mod runner;
mod tasks;

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use futures_core::Stream;
use futures_util::StreamExt;
use tokio::task::AbortHandle;

pub use handle::RealtimeHandle;
pub use runner::RealtimeRunner;

use self::event_queue::EventQueue;
use crate::error::RealtimeError;
use crate::event::RealtimeEvent;

/// A realtime conversation: a stream of events, and a [handle](RealtimeSession::handle) to send with.
///
/// The events are read with [`next`](RealtimeSession::next), or as a `Stream`; the last is an error if
/// the session has failed. Reading slowly holds nothing up: events that find no room are dropped, and
/// [`RealtimeEvent::Dropped`] counts them.
///
/// Dropping the session closes the connection and stops everything that runs for it, tools included.
///
/// ```
/// use switchboard_realtime::testing::ScriptedRealtimeModel;
/// use switchboard_realtime::{RealtimeAgent, RealtimeEvent, RealtimeRunner};
///
/// # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
/// let billing: RealtimeAgent = RealtimeAgent::new("Billing").instructions("You handle bills.");
/// let desk = RealtimeAgent::new("Desk").instructions("Greet the caller.").handoff(&billing);
///
/// let model = ScriptedRealtimeModel::new()
///     .turn(|turn| turn.call("transfer_to_billing", "{}"))
///     .turn(|turn| turn.say("Your bill is fixed."));
/// let mut session = RealtimeRunner::new(&desk).model(model.clone()).connect().await?;
/// session.send_message("My bill is wrong").await?;
/// while let Some(event) = session.next().await {
///     match event? {
///         RealtimeEvent::Handoff { from, to } => println!("{from} → {to}"),
///         RealtimeEvent::AgentEnd { agent } if *agent == *"Billing" => break,
///         _ => {}
///     }
/// }
/// session.close().await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct RealtimeSession<C = ()> {
    events: EventQueue,
    handle: RealtimeHandle<C>,
    driver: AbortHandle,
}

impl<C: Send + Sync + 'static> RealtimeSession<C> {
    /// A handle that sends from anywhere; clones are cheap. It does not keep the session open.
    pub fn handle(&self) -> RealtimeHandle<C> {
        self.handle.clone()
    }

    /// The next event; `None` once the session has ended.
    pub async fn next(&mut self) -> Option<Result<RealtimeEvent, RealtimeError>> {
        StreamExt::next(self).await
    }
}

impl<C> std::ops::Deref for RealtimeSession<C> {
    type Target = RealtimeHandle<C>;

    fn deref(&self) -> &RealtimeHandle<C> {
        &self.handle
    }
}

impl<C> Stream for RealtimeSession<C> {
    type Item = Result<RealtimeEvent, RealtimeError>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.events.poll_next(cx)
    }
}

impl<C> Drop for RealtimeSession<C> {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl<C> fmt::Debug for RealtimeSession<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RealtimeSession")
            .field("handle", &self.handle)
            .finish_non_exhaustive()
    }
}
