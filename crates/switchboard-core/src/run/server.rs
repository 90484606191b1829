//! Conversations that the provider keeps.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::config::ServerHistory;
use super::machine::Run;
use crate::items::{Items, RunItemKind, RunItems};
use crate::model::{ModelResponse, ServerState};

/// What of a run the provider has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Delivered {
    /// Whether it has the input.
    input: bool,
    /// How much of what the run made.
    generated: usize,
    /// The last response.
    response: Option<Arc<str>>,
    /// The conversation it is in, where it has a name.
    conversation: Option<Arc<str>>,
}

fn named(history: &ServerHistory) -> Option<&Arc<str>> {
    match history {
        ServerHistory::Conversation(id) => Some(id),
        ServerHistory::Responses { .. } => None,
    }
}

impl Run {
    /// What the provider has not got yet, and what it is to go on from.
    pub(super) fn undelivered(&self, history: &ServerHistory) -> (Items, Option<ServerState>) {
        let delivered = self.delivered.as_deref().cloned().unwrap_or_default();
        let mut items = if delivered.input {
            Items::new()
        } else {
            self.input.items()
        };
        let made = RunItems::tail(&self.generated, delivered.generated);
        // The rest of what was made is what the provider itself said.
        let answers = made.into_iter().filter(|made| {
            matches!(
                made.kind(),
                RunItemKind::ToolCallOutput { .. } | RunItemKind::HandoffOutput { .. }
            )
        });
        items.extend(answers.map(|made| made.to_input_item()));
        let state = match history {
            ServerHistory::Conversation(id) => Some(ServerState::Conversation(id.clone())),
            ServerHistory::Responses { previous } => {
                let last = delivered.response.or_else(|| previous.clone());
                last.map(ServerState::PreviousResponse)
            }
        };
        (items, state)
    }

    /// What the provider has, once it has answered.
    pub(super) fn sent(&self, response: &ModelResponse, history: &ServerHistory) -> Delivered {
        Delivered {
            input: true,
            generated: self.generated.len(),
            response: response.response_id.clone(),
            conversation: named(history).cloned(),
        }
    }

    /// Whether the run was begun with this history, or has yet to begin: the provider has what came
    /// before.
    pub(super) fn is_kept_in(&self, history: &ServerHistory) -> bool {
        match &self.delivered {
            None => self.turns() == 0,
            Some(delivered) => delivered.conversation.as_ref() == named(history),
        }
    }
}
