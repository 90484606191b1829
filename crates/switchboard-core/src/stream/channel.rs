//! The channel from a run to its stream.
//!
//! There is no task: polling the stream polls the run. The run waits until its events are taken, so
//! the queue holds a few events at most; only progress reports of tools, which cannot wait, are
//! limited in number.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Weak};
use std::task::{Context, Poll, Waker};

use super::event::{EventKind, StreamEvent};
use crate::lock::lock;
use crate::run::Run;

/// The largest number of progress reports that wait in the queue.
const MAX_PROGRESS: usize = 256;

/// A handle to the channel; clones share it.
#[derive(Clone, Default)]
pub(crate) struct EventChannel(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// Events with the run at their time; weak, since the run must have a single owner to change.
    queue: VecDeque<(Box<StreamEvent>, Weak<Run>)>,
    /// The run at the time of the last event that was taken.
    run: Option<Arc<Run>>,
    /// The numbers of events sent and taken, without progress reports.
    sent: u64,
    taken: u64,
    /// The number of progress reports in the queue, and of those that were dropped.
    queued_progress: usize,
    dropped_progress: u64,
    stop: Stop,
    /// Set before the last event is sent: later progress reports and events of runs inside are dropped.
    is_closed: bool,
    /// The number of sessions that are being written, which a stop must not interrupt: that of the run, and
    /// those of runs inside it.
    saving: usize,
    /// The tasks that wait until their events are taken, and whether the events are of runs inside.
    senders: Vec<(Waker, bool)>,
    /// The task that polls the stream.
    listener: Option<Waker>,
}

/// A requested stop.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stop {
    #[default]
    None,
    AfterTurn,
    Now,
}

impl EventChannel {
    /// Sends an event with the current state of the run. The future waits until it is taken.
    pub(super) fn send(&self, event: Box<StreamEvent>, run: Weak<Run>) -> Sent<'_> {
        let mut state = lock(&self.0);
        state.queue.push_back((event, run));
        state.sent += 1;
        Sent {
            channel: self,
            number: state.sent,
            is_inside: false,
        }
    }

    /// Sends an event of a run inside that of the stream, perhaps from another task. After the last event of
    /// the stream it is dropped.
    pub(super) fn send_from_inside(&self, event: Box<StreamEvent>, run: Weak<Run>) -> Sent<'_> {
        let mut sent = if lock(&self.0).is_closed {
            Sent {
                channel: self,
                number: 0,
                is_inside: true,
            }
        } else {
            self.send(event, run)
        };
        sent.is_inside = true;
        self.wake_listener();
        sent
    }

    fn poll_sent(&self, number: u64, is_inside: bool, cx: &Context<'_>) -> Poll<()> {
        let mut state = lock(&self.0);
        if state.taken >= number || (is_inside && state.is_closed) {
            return Poll::Ready(());
        }
        state.senders.push((cx.waker().clone(), is_inside));
        Poll::Pending
    }

    /// Queues a progress report without waiting. If too many wait already, it is dropped and counted.
    /// `wrap` makes the event of the stream of it.
    pub(super) fn report_progress(
        &self,
        mut event: StreamEvent,
        wrap: impl FnOnce(StreamEvent) -> StreamEvent,
        run: &Weak<Run>,
    ) {
        let mut state = lock(&self.0);
        if state.is_closed {
            return;
        }
        if state.queued_progress >= MAX_PROGRESS {
            state.dropped_progress += 1;
            return;
        }
        if let EventKind::ToolProgress { dropped, .. } = &mut event.kind {
            *dropped = std::mem::take(&mut state.dropped_progress);
        }
        state.queued_progress += 1;
        state.queue.push_back((Box::new(wrap(event)), run.clone()));
        drop(state);
        self.wake_listener();
    }

    /// Wakes the task that polls the stream.
    fn wake_listener(&self) {
        let listener = lock(&self.0).listener.take();
        if let Some(listener) = listener {
            listener.wake();
        }
    }

    /// Takes the oldest event.
    pub(super) fn take(&self) -> Option<StreamEvent> {
        let (event, senders) = {
            let mut guard = lock(&self.0);
            let state = &mut *guard;
            let (event, run) = state.queue.pop_front()?;
            state.run = run.upgrade().or(state.run.take());
            if event.is_progress() {
                state.queued_progress -= 1;
            } else {
                state.taken += 1;
            }
            // Whoever reads the stream polls the run before it waits again. A task that wakes
            // itself would be polled once more, and another thread woken to take it over.
            if let Some(listener) = &state.listener {
                let senders = &mut state.senders;
                senders.retain(|(sender, is_inside)| *is_inside || !listener.will_wake(sender));
            }
            (event, std::mem::take(&mut state.senders))
        };
        senders.into_iter().for_each(|(sender, _)| sender.wake());
        Some(*event)
    }

    /// Returns `true` if the oldest event is a progress report.
    pub(super) fn has_progress_first(&self) -> bool {
        let state = lock(&self.0);
        let first = state.queue.front();
        first.is_some_and(|(event, _)| event.is_progress())
    }

    /// Drops everything: nobody reads the events any more.
    pub(super) fn abandon(&self) {
        let dropped = {
            let mut state = lock(&self.0);
            state.is_closed = true;
            let queue = std::mem::take(&mut state.queue);
            let senders = std::mem::take(&mut state.senders);
            (queue, state.run.take(), state.listener.take(), senders)
        };
        // Outside the lock, since dropping a run may drop user values.
        let (_, _, _, senders) = dropped;
        senders.into_iter().for_each(|(sender, _)| sender.wake());
    }

    /// Drops all later progress reports and events of runs inside: the last event follows.
    pub(super) fn close(&self) {
        let senders = {
            let mut state = lock(&self.0);
            state.is_closed = true;
            std::mem::take(&mut state.senders)
        };
        senders.into_iter().for_each(|(sender, _)| sender.wake());
    }

    /// The run at the time of the last event.
    pub(super) fn run(&self) -> Option<Arc<Run>> {
        lock(&self.0).run.clone()
    }

    /// Prepares for polling the run: it changes without a copy only if it has a single owner.
    pub(super) fn before_poll(&self, cx: &Context<'_>) {
        let mut state = lock(&self.0);
        state.run = None;
        state.listener = Some(cx.waker().clone());
    }

    /// Requests a stop at the next await.
    pub(super) fn stop_now(&self) {
        lock(&self.0).stop = Stop::Now;
        self.wake_listener();
    }

    /// Requests a stop after the current turn.
    pub(super) fn stop_after_turn(&self) {
        let mut state = lock(&self.0);
        if state.stop == Stop::None {
            state.stop = Stop::AfterTurn;
        }
    }

    /// Returns `true` if the run is to stop before its next turn.
    pub(super) fn stops_before_next_turn(&self) -> bool {
        lock(&self.0).stop != Stop::None
    }

    /// Completes when the run must stop at once. The listener is woken for it.
    pub(super) fn stopped(&self) -> impl Future<Output = ()> + Unpin + '_ {
        poll_fn(|_cx| {
            let state = lock(&self.0);
            match state.stop {
                Stop::Now if state.saving == 0 => Poll::Ready(()),
                _ => Poll::Pending,
            }
        })
    }

    /// Delays a stop until the guard is dropped.
    pub(super) fn saving(&self) -> SavingGuard {
        lock(&self.0).saving += 1;
        SavingGuard(self.clone())
    }
}

impl_debug!(EventChannel);

/// Waits until an event is taken.
#[must_use = "an event is sent once its future was awaited"]
pub(crate) struct Sent<'a> {
    channel: &'a EventChannel,
    number: u64,
    is_inside: bool,
}

impl Future for Sent<'_> {
    type Output = ();

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        self.channel.poll_sent(self.number, self.is_inside, cx)
    }
}

/// Delays a stop while the session is written.
pub(crate) struct SavingGuard(EventChannel);

impl Drop for SavingGuard {
    fn drop(&mut self) {
        lock(&self.0.0).saving -= 1;
        // A stop that was delayed.
        if lock(&self.0.0).stop == Stop::Now {
            self.0.wake_listener();
        }
    }
}
