//! The way of a run's events to a stream: its own, or that of a run around it.

use std::sync::{Arc, Weak};

use super::channel::{EventChannel, SavingGuard};
use super::event::{EventKind, StreamEvent};
use crate::run::Run;

/// Takes the events of a run.
#[derive(Clone)]
pub(crate) struct EventSink {
    channel: EventChannel,
    /// The call that the run lies inside of, where the stream is that of a run around it.
    outer: Option<Arc<OuterEvents>>,
}

/// A call in a streamed run, for the events of the run inside it.
struct OuterEvents {
    call: CallPlace,
    /// The run of the stream. Weak, so that it is not copied when it changes.
    run: Weak<Run>,
    outer: Option<Arc<Self>>,
}

/// The place of a call in a streamed run.
#[derive(Clone)]
pub(crate) struct CallPlace {
    pub(crate) agent: Arc<str>,
    pub(crate) turn: u32,
    pub(crate) call_id: Arc<str>,
    pub(crate) tool: Arc<str>,
}

impl EventSink {
    pub(crate) fn new(channel: EventChannel) -> Self {
        Self {
            channel,
            outer: None,
        }
    }

    /// The sink for the run inside a call. `run` is the one that has made the call.
    pub(crate) fn inside(&self, call: CallPlace, run: &Weak<Run>) -> Self {
        let run = self.outer.as_ref().map_or(run, |outer| &outer.run).clone();
        Self {
            channel: self.channel.clone(),
            outer: Some(Arc::new(OuterEvents {
                call,
                run,
                outer: self.outer.clone(),
            })),
        }
    }

    /// Sends an event of `run`. The future waits until it is taken.
    pub(crate) fn send(
        &self,
        event: Box<StreamEvent>,
        run: &Arc<Run>,
    ) -> impl Future<Output = ()> + Send + use<'_> {
        match &self.outer {
            None => self.channel.send(event, Arc::downgrade(run)),
            Some(outer) => {
                let event = Box::new(outer.wrap(*event));
                self.channel.send_from_inside(event, outer.run.clone())
            }
        }
    }

    /// Sends an event of a run inside the call that has a stream of its own.
    pub(crate) async fn forward(&self, event: StreamEvent) {
        if let Some(outer) = &self.outer {
            let event = Box::new(outer.wrap(event));
            let sent = self.channel.send_from_inside(event, outer.run.clone());
            sent.await;
        }
    }

    /// Reports progress of a tool without waiting.
    pub(crate) fn report_progress(&self, event: StreamEvent, run: &Weak<Run>) {
        match &self.outer {
            None => self.channel.report_progress(event, |event| event, run),
            Some(outer) => {
                let wrap = |event| outer.wrap(event);
                self.channel.report_progress(event, wrap, &outer.run);
            }
        }
    }

    /// Returns `true` if the run is to stop before its next turn. A run inside a call goes on to its end.
    pub(crate) fn stops_before_next_turn(&self) -> bool {
        self.outer.is_none() && self.channel.stops_before_next_turn()
    }

    /// Ends the stream after the next event, unless it is that of a run around this one.
    pub(crate) fn close(&self) {
        if self.outer.is_none() {
            self.channel.close();
        }
    }

    /// Delays a stop until the guard is dropped.
    pub(crate) fn saving(&self) -> SavingGuard {
        self.channel.saving()
    }
}

impl_debug!(EventSink);

impl OuterEvents {
    /// An event of a run inside the call, as the stream shows it.
    fn wrap(&self, event: StreamEvent) -> StreamEvent {
        let CallPlace {
            agent,
            turn,
            call_id,
            tool,
        } = self.call.clone();
        let kind = EventKind::Inner {
            call_id,
            tool,
            event: Box::new(event),
        };
        let event = StreamEvent::new(kind, agent, turn);
        match &self.outer {
            Some(outer) => outer.wrap(event),
            None => event,
        }
    }
}
