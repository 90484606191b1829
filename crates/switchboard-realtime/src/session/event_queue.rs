//! The queue between a session and the reader of its events: bounded, and what is dropped is counted.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use crate::error::RealtimeError;
use crate::event::RealtimeEvent;

/// The limits of the queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct QueueLimits {
    pub(super) events: usize,
    pub(super) audio_bytes: usize,
}

/// The queue; clones share it.
#[derive(Debug, Clone)]
pub(super) struct EventQueue {
    limits: QueueLimits,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug, Default)]
struct Inner {
    events: VecDeque<RealtimeEvent>,
    audio_bytes: usize,
    dropped_events: u64,
    dropped_audio: u64,
    waker: Option<Waker>,
    end: Option<Result<(), RealtimeError>>,
}

impl EventQueue {
    pub(super) fn new(limits: QueueLimits) -> Self {
        Self {
            limits,
            inner: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an event. If there is no room, it or older ones are dropped and counted; events that tell of
    /// calls, handoffs and errors are dropped last.
    pub(super) fn push(&self, event: RealtimeEvent) {
        let mut inner = self.lock();
        if inner.end.is_some() {
            return;
        }
        let bytes = audio_bytes(&event);
        if bytes > 0 && inner.audio_bytes + bytes > self.limits.audio_bytes {
            inner.drop_event(&event);
        } else {
            inner.make_room(self.limits.events, &event);
            inner.audio_bytes += bytes;
            inner.events.push_back(event);
        }
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
    }

    /// Ends the events. With `delivers`, those that are queued are delivered before an error.
    pub(super) fn end(&self, end: Result<(), RealtimeError>, delivers: bool) {
        let mut inner = self.lock();
        if inner.end.is_some() {
            return;
        }
        // A reader that waits has had no chance to read what was queued since.
        if end.is_err() && !delivers && inner.waker.is_none() && !inner.is_fresh() {
            inner.events.clear();
        }
        inner.end = Some(end);
        if let Some(waker) = inner.waker.take() {
            waker.wake();
        }
    }

    pub(super) fn poll_next(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<RealtimeEvent, RealtimeError>>> {
        let mut inner = self.lock();
        if inner.dropped_events > 0 {
            let event = RealtimeEvent::Dropped {
                events: std::mem::take(&mut inner.dropped_events),
                audio_bytes: std::mem::take(&mut inner.dropped_audio),
            };
            return Poll::Ready(Some(Ok(event)));
        }
        if let Some(event) = inner.events.pop_front() {
            inner.audio_bytes -= audio_bytes(&event);
            return Poll::Ready(Some(Ok(event)));
        }
        match &mut inner.end {
            Some(end) => match std::mem::replace(end, Ok(())) {
                Err(error) => Poll::Ready(Some(Err(error))),
                Ok(()) => Poll::Ready(None),
            },
            None => {
                inner.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl Inner {
    /// Returns `true` if everything that is queued was queued since the reader began to wait.
    fn is_fresh(&self) -> bool {
        self.events.len() <= 1
    }

    fn drop_event(&mut self, event: &RealtimeEvent) {
        self.dropped_events += 1;
        self.dropped_audio += audio_bytes(event) as u64;
    }

    /// Drops events until there is room for one more: an older state of the history, which a newer one
    /// replaces, then those that matter least, then the oldest.
    fn make_room(&mut self, limit: usize, next: &RealtimeEvent) {
        if matches!(next, RealtimeEvent::HistoryUpdated(_))
            && let Some(RealtimeEvent::HistoryUpdated(_)) = self.events.back()
        {
            self.events.pop_back();
        }
        while self.events.len() >= limit.max(1) {
            let at = self.events.iter().position(is_minor).unwrap_or_default();
            let Some(event) = self.events.remove(at) else {
                return;
            };
            self.audio_bytes -= audio_bytes(&event);
            self.drop_event(&event);
        }
    }
}

fn audio_bytes(event: &RealtimeEvent) -> usize {
    match event {
        RealtimeEvent::Audio { data, .. } => data.len(),
        _ => 0,
    }
}

/// Returns `true` for events whose loss changes nothing that the application has to act on.
fn is_minor(event: &RealtimeEvent) -> bool {
    matches!(
        event,
        RealtimeEvent::Audio { .. }
            | RealtimeEvent::TranscriptDelta { .. }
            | RealtimeEvent::HistoryUpdated(_)
            | RealtimeEvent::HistoryAdded(_)
            | RealtimeEvent::Raw(_)
            | RealtimeEvent::SpeechStarted
            | RealtimeEvent::SpeechStopped
    )
}
