//! The events of a run, for any number of readers.
//!
//! Readers pull: each has the number of the next event that it wants, and the log keeps no queue for it. A
//! reader that is slow, or comes back after its connection was cut, goes on where it was; one that is so far
//! behind that its event was dropped is told so.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use switchboard_core::stream::StreamEvent;
use tokio::sync::Notify;

use crate::provider_error::CutOff;

/// The bounds of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LogLimits {
    /// The number of events.
    pub(crate) events: usize,
    /// The bytes of their JSON.
    pub(crate) bytes: usize,
    /// Set if events are copied to the program's log.
    pub(crate) is_copied: bool,
}

/// The events of a run.
#[derive(Debug)]
pub(crate) struct EventLog {
    limits: LogLimits,
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug)]
struct State {
    events: VecDeque<LoggedEvent>,
    /// The number of the next event; the first is 1.
    next: u64,
    bytes: usize,
    /// Set once no event follows.
    is_ended: bool,
    is_closed: bool,
    /// Set once the events were removed: readers are at their end, wherever they were.
    is_removed: bool,
}

/// An event with its number in the run.
#[derive(Debug, Clone)]
pub(crate) struct LoggedEvent {
    pub(crate) id: u64,
    pub(crate) event: Arc<StreamEvent>,
    pub(crate) json: Arc<str>,
    /// Set in the last event if the provider has cut the answer off.
    pub(crate) cut_off: Option<CutOff>,
}

/// The next event for a reader.
#[derive(Debug)]
pub(crate) enum Read {
    Event(LoggedEvent),
    /// Events before this number were dropped, and the reader has not seen them all.
    Truncated(u64),
}

impl EventLog {
    pub(crate) fn new(limits: LogLimits) -> Self {
        Self {
            limits,
            state: Mutex::new(State {
                events: VecDeque::new(),
                next: 1,
                bytes: 0,
                is_ended: false,
                is_closed: false,
                is_removed: false,
            }),
            changed: Notify::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends an event, and drops the oldest ones beyond the limits.
    pub(crate) fn push(&self, event: StreamEvent) {
        self.push_end(event, None);
    }

    /// Appends an event; the last one says if the provider has cut the answer off.
    pub(crate) fn push_end(&self, event: StreamEvent, cut_off: Option<CutOff>) {
        let Ok(json) = serde_json::to_string(&event) else {
            tracing::error!(kind = event.kind.name(), "an event has no JSON form");
            return;
        };
        if self.limits.is_copied {
            tracing::info!(event = json, "an event");
        }
        let mut state = self.state();
        if state.is_removed {
            return;
        }
        let id = state.next;
        state.next += 1;
        state.bytes += json.len();
        state.events.push_back(LoggedEvent {
            id,
            event: Arc::new(event),
            json: json.into(),
            cut_off,
        });
        while state.events.len() > 1
            && (state.events.len() > self.limits.events || state.bytes > self.limits.bytes)
        {
            if let Some(dropped) = state.events.pop_front() {
                state.bytes -= dropped.json.len();
            }
        }
        drop(state);
        self.changed.notify_waiters();
    }

    /// Appends the last event of a run that has ended without one.
    pub(crate) fn push_failure(&self, message: &str) {
        let event = serde_json::json!({
            "type": "run_failed", "agent": "", "turn": 0, "error": "user_code",
            "message": message, "turns": 0, "usage": {},
        });
        match serde_json::from_value(event) {
            Ok(event) => self.push(event),
            Err(error) => tracing::error!(%error, "an event cannot be made"),
        }
    }

    /// Ends the log: readers that have seen the last event get `None`.
    pub(crate) fn end(&self) {
        self.state().is_ended = true;
        self.changed.notify_waiters();
    }

    /// Ends the log, and tells those who wait for it that everything about the run is stored.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_ended = true;
        state.is_closed = true;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Removes all events, and ends the readers.
    pub(crate) fn remove(&self) {
        let mut state = self.state();
        state.events = VecDeque::new();
        state.bytes = 0;
        state.is_ended = true;
        state.is_removed = true;
        drop(state);
        self.changed.notify_waiters();
    }

    /// Waits until the log is closed.
    pub(crate) async fn closed(&self) {
        loop {
            let changed = self.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if self.state().is_closed {
                return;
            }
            changed.await;
        }
    }

    /// The events so far that are kept.
    pub(crate) fn so_far(&self) -> Vec<LoggedEvent> {
        self.state().events.iter().cloned().collect()
    }

    /// The last event.
    pub(crate) fn last(&self) -> Option<LoggedEvent> {
        self.state().events.back().cloned()
    }

    /// A reader of the events after the one with this number; 0 is all.
    pub(crate) fn read_after(self: &Arc<Self>, id: u64) -> EventReader {
        EventReader {
            log: self.clone(),
            next: id.saturating_add(1),
        }
    }
}

/// A reader of a log.
#[derive(Debug)]
pub(crate) struct EventReader {
    log: Arc<EventLog>,
    next: u64,
}

impl EventReader {
    /// Waits for the next event; `None` at the end.
    pub(crate) async fn next(&mut self) -> Option<Read> {
        loop {
            let changed = self.log.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            {
                let state = self.log.state();
                if state.is_removed {
                    return None;
                }
                let first = state.next - state.events.len() as u64;
                if self.next < first {
                    self.next = first;
                    return Some(Read::Truncated(first));
                }
                let at = usize::try_from(self.next - first).unwrap_or(usize::MAX);
                if let Some(event) = state.events.get(at) {
                    self.next = event.id + 1;
                    return Some(Read::Event(event.clone()));
                }
                if state.is_ended {
                    return None;
                }
            }
            changed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "in a test, a panic is the report")]

    use super::*;

    fn event(text: &str) -> StreamEvent {
        let json = serde_json::json!({
            "type": "text_delta", "agent": "A", "turn": 1, "item": "m", "text": text
        });
        serde_json::from_value(json).unwrap()
    }

    async fn read_all(mut reader: EventReader) -> Vec<String> {
        let mut seen = Vec::new();
        while let Some(read) = reader.next().await {
            seen.push(match read {
                Read::Event(event) => event.id.to_string(),
                Read::Truncated(first) => format!("from {first}"),
            });
        }
        seen
    }

    #[tokio::test]
    async fn a_reader_goes_on_after_the_event_it_names() {
        let log = Arc::new(EventLog::new(LogLimits {
            events: 10,
            bytes: 10_000,
            is_copied: false,
        }));
        for text in ["a", "b", "c"] {
            log.push(event(text));
        }
        log.close();
        assert_eq!(read_all(log.read_after(0)).await, ["1", "2", "3"]);
        assert_eq!(read_all(log.read_after(2)).await, ["3"]);
        assert!(read_all(log.read_after(u64::MAX)).await.is_empty());
    }

    #[tokio::test]
    async fn the_readers_of_a_log_that_is_removed_are_at_their_end() {
        let log = Arc::new(EventLog::new(LogLimits {
            events: 10,
            bytes: 10_000,
            is_copied: false,
        }));
        log.push(event("a"));
        log.push(event("b"));
        let mut reader = log.read_after(0);
        assert!(matches!(reader.next().await, Some(Read::Event(_))));
        log.remove();
        log.push(event("c"));
        assert!(reader.next().await.is_none());
        assert!(read_all(log.read_after(0)).await.is_empty());
        assert!(log.so_far().is_empty() && log.last().is_none());
    }

    #[tokio::test]
    async fn a_log_is_bounded_in_events_and_bytes_and_tells_of_what_it_dropped() {
        let log = Arc::new(EventLog::new(LogLimits {
            events: 2,
            bytes: 10_000,
            is_copied: false,
        }));
        for text in ["a", "b", "c"] {
            log.push(event(text));
        }
        log.close();
        assert_eq!(read_all(log.read_after(0)).await, ["from 2", "2", "3"]);
        assert_eq!(read_all(log.read_after(1)).await, ["2", "3"]);

        let log = Arc::new(EventLog::new(LogLimits {
            events: 10,
            bytes: 1,
            is_copied: false,
        }));
        log.push(event("a"));
        log.push(event("b"));
        log.close();
        assert_eq!(read_all(log.read_after(0)).await, ["from 2", "2"]);
    }
}
