//! The way back of a conversation: the handoffs that led to the agent that has it.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Run;

/// The number of handoffs that are remembered, so that agents that hand a conversation around do not make
/// it grow. The oldest are forgotten.
const REMEMBERED: usize = 32;

/// The handoffs that led to the current agent and were not undone, the oldest first.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(crate) struct WayBack(pub(crate) Vec<PriorHandoff>);

/// A handoff on the way to the current agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PriorHandoff {
    /// The key of the agent that handed over.
    pub(crate) from: Arc<str>,
    /// The name of the handoff's tool; empty if none of that agent's handoffs was taken.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub(crate) tool: Arc<str>,
    /// The identifier of the call.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub(crate) call_id: Arc<str>,
    /// The payload as JSON, where a person has got it.
    #[serde(default, skip_serializing_if = "is_empty")]
    pub(crate) payload: Arc<str>,
}

fn is_empty(text: &Arc<str>) -> bool {
    text.is_empty()
}

/// The change that a handoff makes to the way back.
#[derive(Debug)]
pub(crate) enum WayBackChange {
    /// The way back is not kept.
    None,
    /// The conversation goes on to another agent.
    Forward(PriorHandoff),
    /// The last handoff is undone.
    Return,
    /// There is no way back any more.
    Clear,
}

impl Run {
    /// The handoffs that led to the current agent and were not undone, the oldest first.
    pub(crate) fn way_back(&self) -> &[PriorHandoff] {
        self.way_back.as_ref().map_or(&[], |known| &known.0)
    }

    /// Begins the run with the way back of its conversation.
    pub(crate) fn set_way_back(&mut self, known: Vec<PriorHandoff>) {
        self.way_back = (!known.is_empty()).then(|| Box::new(WayBack(known)));
    }

    /// Notes that the conversation has come to the current agent, for which a person may answer.
    pub(crate) fn arrive(&mut self, change: WayBackChange, is_person: bool) {
        self.position.is_person = is_person;
        match change {
            WayBackChange::None => {}
            WayBackChange::Forward(prior) => {
                let known = &mut self.way_back.get_or_insert_default().0;
                if known.len() >= REMEMBERED {
                    known.drain(..=known.len() - REMEMBERED);
                }
                known.push(prior);
            }
            WayBackChange::Return => {
                let known = self.way_back.as_mut();
                let is_last = known.is_some_and(|known| {
                    known.0.pop();
                    known.0.is_empty()
                });
                if is_last {
                    self.way_back = None;
                }
            }
            WayBackChange::Clear => self.way_back = None,
        }
    }
}
