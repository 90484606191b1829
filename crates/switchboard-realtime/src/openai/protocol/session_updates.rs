//! Session updates that the server has not answered yet.

use std::collections::VecDeque;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::model::ReportedError;

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
    /// The identifier of the command.
    pub(super) update_id: Option<Arc<str>>,
    /// The instructions that it sets, if any.
    instructions: Option<Arc<str>>,
}

impl SessionUpdates {
    /// The number of updates that are remembered. A server that answers none must not grow memory.
    const LIMIT: usize = 1_024;

    /// Notes an update, and returns the identifier of its frame.
    pub(super) fn sent(
        &mut self,
        update_id: Option<Arc<str>>,
        instructions: Option<Arc<str>>,
    ) -> Arc<str> {
        let event_id = update_id.clone().unwrap_or_else(|| {
            self.counter += 1;
            format!("switchboard_update_{}", self.counter).into()
        });
        if self.sent.len() >= Self::LIMIT {
            self.sent.pop_front();
        }
        self.sent.push_back(SentUpdate {
            event_id: event_id.clone(),
            update_id,
            instructions,
        });
        event_id
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
    pub(super) fn refused(&mut self, error: &ReportedError) -> Option<SentUpdate> {
        let position = match &error.event_id {
            Some(id) => self.sent.iter().position(|update| *update.event_id == **id),
            None => {
                let param = error.param.as_deref();
                let is_session = param.is_some_and(|param| param.starts_with("session"));
                (is_session && !self.sent.is_empty()).then_some(0)
            }
        }?;
        self.sent.remove(position)
    }

    /// Forgets the updates, and returns the identifiers of their commands.
    pub(super) fn disconnected(&mut self) -> Vec<Arc<str>> {
        let updates = self.sent.drain(..);
        updates.filter_map(|update| update.update_id).collect()
    }

    /// Notes that an update of the commands with these identifiers was sent once more.
    pub(super) fn sent_again(&mut self, update_ids: Vec<Arc<str>>) {
        for update_id in update_ids {
            self.sent(Some(update_id), None);
        }
    }
}
