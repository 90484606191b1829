//! Reporting to the stream of a run.

use std::borrow::Cow;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::OptionFuture;

use super::Driver;
use crate::error::Error;
use crate::items::RunItem;
use crate::run::{Step, agent_keys};
use crate::stream::{EventKind, STREAM_VERSION, StreamEvent};

impl<C: Send + Sync + 'static> Driver<C> {
    /// Sends an event to the stream, and waits until it is taken. The event is made and queued at once,
    /// so that the futures that wait for it stay small.
    pub(super) fn emit<K: FnOnce() -> EventKind>(
        &self,
        kind: K,
    ) -> impl Future<Output = ()> + Send + use<'_, C, K> {
        self.emit_for(self.agent.name_arc(), kind)
    }

    /// Sends an event of an agent that may not have the conversation any more.
    pub(super) fn emit_for<'a, K: FnOnce() -> EventKind>(
        &'a self,
        agent: &Arc<str>,
        kind: K,
    ) -> impl Future<Output = ()> + Send + use<'a, C, K> {
        let sent: OptionFuture<_> = self
            .events
            .as_ref()
            .and_then(|events| {
                let event = Box::new(StreamEvent::new(kind(), agent.clone(), self.turn));
                let event = self.held.hold(event)?;
                Some(events.send(event, &self.run))
            })
            .into();
        sent.map(drop)
    }

    pub(super) async fn report_start(&self) {
        self.emit(|| EventKind::RunStarted {
            version: STREAM_VERSION,
            agents: agent_keys::names(&self.start),
            // What guardrails may refuse is not shown before they have passed it.
            input: match self.run.turns() {
                0 if !self.holds_input_back() && self.run.wait_id().is_none() => {
                    self.run.input().last_words().map(Cow::into_owned)
                }
                _ => None,
            },
        })
        .await;
        self.report_agent().await;
        let attached = self.conversation.as_ref();
        if let Some(reason) = attached.and_then(|attached| attached.failed_compaction.clone()) {
            Box::pin(self.emit(|| EventKind::CompactionFailed { reason })).await;
        }
    }

    pub(super) async fn report_agent(&self) {
        let model = || self.model().map(|model| model.shared_name());
        self.emit(|| EventKind::AgentUpdated {
            model: model().unwrap_or_default(),
        })
        .await;
    }

    /// Sends the last event of the stream.
    pub(crate) async fn report_end(&mut self, outcome: &Result<(), Error>) {
        if self.events.is_none() {
            return;
        }
        self.count_added_usage();
        let (turns, usage) = (self.run.turns(), *self.run.usage());
        let last = match (outcome, self.run.step()) {
            (Err(error), _) => EventKind::RunFailed {
                error: error.kind(),
                message: error.to_string(),
                guardrail: error.guardrail().cloned(),
                turns,
                usage,
            },
            (Ok(()), Step::Done(output)) => EventKind::RunFinished {
                output: output.to_value(),
                turns,
                usage,
            },
            (Ok(()), Step::AwaitDecision) => EventKind::RunInterrupted {
                interruptions: self.run.interruptions(),
                turns,
                usage,
            },
            (Ok(()), _) => EventKind::RunStopped { turns, usage },
        };
        if let Some(events) = &self.events {
            events.close();
        }
        self.emit(|| last).await;
    }

    /// Reports new items of the turn, each once.
    pub(super) async fn report_items(&mut self, items: &[RunItem]) {
        for event in self.item_events(items) {
            self.emit(|| event).await;
        }
    }

    /// Reports the items that were recorded since the record had `start` of them, at the end of a
    /// turn.
    pub(super) async fn report_recorded(&mut self, start: usize) {
        for event in self.recorded_events(start) {
            self.emit(|| event).await;
        }
    }

    /// The events of items that listeners were not notified of.
    pub(super) fn item_events(&mut self, items: &[RunItem]) -> Vec<EventKind> {
        if self.events.is_none() {
            return Vec::new();
        }
        let reported = self.reported.get_or_insert_default();
        let new = items.iter().filter(|item| reported.insert(item.key()));
        new.filter_map(|item| EventKind::of_item(item.clone()))
            .collect()
    }

    pub(super) fn recorded_events(&mut self, start: usize) -> Vec<EventKind> {
        if self.events.is_none() {
            return Vec::new();
        }
        let events = self.item_events(&self.run.items_since(start));
        self.reported = None;
        events
    }
}
