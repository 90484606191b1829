//! Session updates that the server has not answered yet.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::{RealtimeModelSettings, ReportedError};

/// The session updates on their way, in the order in which they were sent. A server takes them in that
/// order, and its answer does not say which one it took.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct SessionUpdates {
    sent: VecDeque<SentUpdate>,
    counter: u64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct SentUpdate {
    event_id: Arc<str>,
    /// The identifiers of its commands. After a lost connection, one update carries out all that were on their
    /// way.
    pub(super) update_ids: Vec<Arc<str>>,
    /// The instructions that it sets, if any.
    instructions: Option<Arc<str>>,
    /// The settings before it, if it replaces all of them: those that stay if the server refuses it.
    before: Option<Box<RealtimeModelSettings>>,
    /// Set if it is the first of its connection.
    is_first: bool,
}

/// An update that the server has refused.
pub(super) struct RefusedUpdate {
    /// The identifiers of its commands.
    pub(super) update_ids: Vec<Arc<str>>,
    /// The settings to go back to. There are none if a later update has replaced them all.
    pub(super) before: Option<Box<RealtimeModelSettings>>,
    /// Set if the server has no settings at all now.
    pub(super) is_first: bool,
}

/// The updates that were on their way when the connection was lost.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct LostUpdates {
    update_ids: Vec<Arc<str>>,
    /// The settings before the first of them.
    before: Option<Box<RealtimeModelSettings>>,
}

impl LostUpdates {
    /// Adds an update that could not be sent.
    pub(super) fn add(&mut self, update_id: Option<Arc<str>>, before: Box<RealtimeModelSettings>) {
        self.update_ids.extend(update_id);
        self.before.get_or_insert(before);
    }
}

impl SessionUpdates {
    /// The number of updates that are remembered. A server that answers none must not grow memory.
    const LIMIT: usize = 1_024;

    /// Notes an update, and returns the identifier of its frame.
    pub(super) fn sent(
        &mut self,
        update_id: Option<Arc<str>>,
        instructions: Option<Arc<str>>,
        before: Option<Box<RealtimeModelSettings>>,
    ) -> Arc<str> {
        let event_id = match &update_id {
            Some(id) => id.clone(),
            None => self.next_id(),
        };
        self.push(SentUpdate {
            event_id: event_id.clone(),
            update_ids: update_id.into_iter().collect(),
            instructions,
            before,
            is_first: false,
        });
        event_id
    }

    /// Notes the first update of a connection, which carries out the lost ones as well, and returns the
    /// identifier of its frame.
    pub(super) fn opened(&mut self, lost: LostUpdates, instructions: Option<Arc<str>>) -> Arc<str> {
        let event_id = self.next_id();
        self.push(SentUpdate {
            event_id: event_id.clone(),
            update_ids: lost.update_ids,
            instructions,
            before: lost.before,
            is_first: true,
        });
        event_id
    }

    fn next_id(&mut self) -> Arc<str> {
        self.counter += 1;
        format!("switchboard_update_{}", self.counter).into()
    }

    fn push(&mut self, update: SentUpdate) {
        if self.sent.len() >= Self::LIMIT {
            self.sent.pop_front();
        }
        self.sent.push_back(update);
    }

    /// The updates that the server has taken, by the session that it reports: those up to the first
    /// with the reported instructions, or the oldest.
    pub(super) fn taken(&mut self, instructions: Option<&str>) -> Vec<SentUpdate> {
        let named = |update: &SentUpdate| {
            instructions.is_some() && update.instructions.as_deref() == instructions
        };
        let count = match self.sent.iter().position(named) {
            Some(position) => position + 1,
            None => {
                let oldest = self.sent.front();
                let may_be_oldest =
                    |update: &SentUpdate| instructions.is_none() || update.instructions.is_none();
                usize::from(oldest.is_some_and(may_be_oldest))
            }
        };
        self.sent.drain(..count).collect()
    }

    /// The update that the error refuses, if it is one of these.
    pub(super) fn refused(&mut self, error: &ReportedError) -> Option<RefusedUpdate> {
        let position = match &error.event_id {
            Some(id) => self.sent.iter().position(|update| *update.event_id == **id),
            None => {
                let param = error.param.as_deref();
                let is_session = param.is_some_and(|param| param.starts_with("session"));
                (is_session && !self.sent.is_empty()).then_some(0)
            }
        }?;
        let SentUpdate {
            update_ids,
            mut before,
            is_first,
            ..
        } = self.sent.remove(position)?;
        let mut later = self.sent.iter_mut().skip(position);
        if before.is_some()
            && let Some(later) = later.find(|later| later.before.is_some())
        {
            later.before = before.take();
        }
        Some(RefusedUpdate {
            update_ids,
            before,
            is_first,
        })
    }

    /// Adds the updates to those that were lost.
    pub(super) fn disconnected(&mut self, lost: &mut LostUpdates) {
        for update in self.sent.drain(..) {
            lost.update_ids.extend(update.update_ids);
            if lost.before.is_none() {
                lost.before = update.before;
            }
        }
    }
}
