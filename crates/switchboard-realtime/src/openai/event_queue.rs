//! The events on their way to their reader: bounded in number and in bytes.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_core::Stream;

use crate::model::RealtimeModelEvent;

/// Creates a queue. It is full when it holds so many events, or events of so many bytes.
pub(super) fn event_queue(max_events: usize, max_bytes: usize) -> (EventWriter, EventReader) {
    let queue = Arc::new(Mutex::new(Queue {
        events: VecDeque::new(),
        bytes: 0,
        max_events: max_events.max(1),
        max_bytes: max_bytes.max(1),
        is_ended: false,
        has_reader: true,
        reader: None,
        writer: None,
    }));
    (EventWriter(queue.clone()), EventReader(queue))
}

struct Queue {
    events: VecDeque<RealtimeModelEvent>,
    bytes: usize,
    max_events: usize,
    max_bytes: usize,
    is_ended: bool,
    has_reader: bool,
    reader: Option<Waker>,
    writer: Option<Waker>,
}

impl Queue {
    fn is_full(&self) -> bool {
        self.events.len() >= self.max_events || self.bytes >= self.max_bytes
    }
}

type Shared = Arc<Mutex<Queue>>;

fn lock(queue: &Shared) -> MutexGuard<'_, Queue> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The side that adds events. Dropping it ends the stream after the events that are in it.
pub(super) struct EventWriter(Shared);

impl EventWriter {
    /// Adds an event, also to a full queue: wait for [`has_room`](Self::has_room) before reading what makes
    /// more of them.
    pub(super) fn push(&self, event: RealtimeModelEvent) {
        let mut queue = lock(&self.0);
        if !queue.has_reader || queue.is_ended {
            return;
        }
        queue.bytes += size(&event);
        queue.events.push_back(event);
        if let Some(reader) = queue.reader.take() {
            reader.wake();
        }
    }

    pub(super) fn is_full(&self) -> bool {
        lock(&self.0).is_full()
    }

    /// Returns `true` if events are read.
    pub(super) fn has_reader(&self) -> bool {
        lock(&self.0).has_reader
    }

    /// Waits until the queue is not full, or nobody reads it.
    pub(super) fn has_room(&self) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(|cx| {
            let mut queue = lock(&self.0);
            if !queue.is_full() || !queue.has_reader {
                return Poll::Ready(());
            }
            queue.writer = Some(cx.waker().clone());
            Poll::Pending
        })
    }

    /// Waits until nobody reads the events any more.
    pub(super) fn no_reader(&self) -> impl Future<Output = ()> + '_ {
        std::future::poll_fn(|cx| {
            let mut queue = lock(&self.0);
            if !queue.has_reader {
                return Poll::Ready(());
            }
            queue.writer = Some(cx.waker().clone());
            Poll::Pending
        })
    }
}

impl Drop for EventWriter {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.is_ended = true;
        if let Some(reader) = queue.reader.take() {
            reader.wake();
        }
    }
}

/// The side that reads events.
pub(super) struct EventReader(Shared);

impl Stream for EventReader {
    type Item = RealtimeModelEvent;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut queue = lock(&self.0);
        let Some(event) = queue.events.pop_front() else {
            if queue.is_ended {
                return Poll::Ready(None);
            }
            queue.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        queue.bytes -= size(&event);
        if let Some(writer) = queue.writer.take() {
            writer.wake();
        }
        Poll::Ready(Some(event))
    }
}

impl Drop for EventReader {
    fn drop(&mut self) {
        let mut queue = lock(&self.0);
        queue.has_reader = false;
        queue.events.clear();
        queue.bytes = 0;
        if let Some(writer) = queue.writer.take() {
            writer.wake();
        }
    }
}

/// The bytes of an event that a server can make long.
fn size(event: &RealtimeModelEvent) -> usize {
    match event {
        RealtimeModelEvent::Audio(audio) => audio.data.len(),
        RealtimeModelEvent::RawServerEvent(text) => text.len(),
        RealtimeModelEvent::TranscriptDelta(delta) | RealtimeModelEvent::OutputTextDelta(delta) => {
            delta.delta.len()
        }
        RealtimeModelEvent::ToolCall(call) => call.arguments.len(),
        RealtimeModelEvent::ItemUpdated(item) => item_size(item),
        _ => 0,
    }
}

fn item_size(item: &crate::items::RealtimeItem) -> usize {
    use crate::items::{RealtimeContent, RealtimeItem};
    let length = |text: &Option<String>| text.as_ref().map_or(0, String::len);
    match item {
        RealtimeItem::ToolCall(call) => {
            call.arguments.len() + call.output.as_ref().map_or(0, |output| output.len())
        }
        RealtimeItem::Message(message) => {
            let parts = message.content.iter().map(|part| match part {
                RealtimeContent::InputText { text } | RealtimeContent::Text { text } => {
                    length(text)
                }
                RealtimeContent::InputAudio { audio, transcript }
                | RealtimeContent::Audio { audio, transcript } => {
                    length(audio) + length(transcript)
                }
                RealtimeContent::InputImage { image_url, .. } => length(image_url),
            });
            parts.sum()
        }
    }
}
