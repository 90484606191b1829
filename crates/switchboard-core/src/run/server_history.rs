//! Conversations that the provider keeps.

use std::sync::Arc;

use rustc_hash::FxHashSet;
use serde::{Deserialize, Serialize};

use super::Run;
use crate::items::{Item, Items, RunItemKind};
use crate::model::{ModelResponse, ServerState};

/// A conversation that the provider keeps, so that only new items are sent.
///
/// Items at the provider cannot be changed afterwards. So handoffs must have no filter, which is
/// refused before the handoff does anything; history is not nested; and neither a session nor an
/// output guardrail can be used with it. An agent used as a tool has a conversation of its own.
///
/// A run that ends with the result of a tool
/// ([`ToolUseBehavior`](crate::agent::ToolUseBehavior)) leaves the tool's call unanswered at the
/// provider: pass the output to the next run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerHistory {
    /// The conversation with this identifier.
    Conversation(Arc<str>),
    /// Each response follows the one before it.
    Responses {
        /// The response that the first one of the run follows.
        previous: Option<Arc<str>>,
    },
}

impl ServerHistory {
    fn conversation(&self) -> Option<&Arc<str>> {
        match self {
            Self::Conversation(id) => Some(id),
            Self::Responses { .. } => None,
        }
    }
}

/// The part of a run that the provider has.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Delivered {
    /// Set if it has the input.
    input: bool,
    /// The number of generated items it has.
    generated: usize,
    /// The last response.
    response: Option<Arc<str>>,
    /// The conversation, where it has an identifier.
    conversation: Option<Arc<str>>,
    /// Items that a filter on model calls has left out so far.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<Item>,
}

/// The items that a filter has left out of a request. One that it has changed is not left out.
pub(crate) fn left_out(given: &Items, filtered: &Items) -> Vec<Item> {
    let sent: FxHashSet<&str> = filtered.iter().map(Item::as_json).collect();
    let known: FxHashSet<&str> = given.iter().map(Item::as_json).collect();
    let changed = filtered
        .iter()
        .filter(|item| !known.contains(item.as_json()));
    let missing = given.iter().filter(|item| !sent.contains(item.as_json()));
    missing.skip(changed.count()).cloned().collect()
}

impl Run {
    /// The items that the provider does not have yet, and the state they follow.
    pub(crate) fn undelivered(&self, history: &ServerHistory) -> (Items, Option<ServerState>) {
        let delivered = self.delivered.as_deref().cloned().unwrap_or_default();
        let mut items = if delivered.input {
            delivered.left_out.into()
        } else {
            self.conversation.input.items()
        };
        // The provider itself made the other items.
        let new = self.conversation.generated.tail(delivered.generated);
        let outputs = new.into_iter().filter(|made| {
            matches!(
                made.kind(),
                RunItemKind::ToolCallOutput { .. } | RunItemKind::HandoffOutput { .. }
            )
        });
        items.extend(outputs.map(|made| made.to_input_item()));
        let state = match history {
            ServerHistory::Conversation(id) => Some(ServerState::Conversation(id.clone())),
            ServerHistory::Responses { previous } => {
                let last = delivered.response.or_else(|| previous.clone());
                last.map(ServerState::PreviousResponse)
            }
        };
        (items, state)
    }

    /// The part of the run that the provider has once it has sent `response`.
    pub(crate) fn delivered_with(
        &self,
        response: &ModelResponse,
        history: &ServerHistory,
        left_out: Vec<Item>,
    ) -> Box<Delivered> {
        Box::new(Delivered {
            input: true,
            generated: self.conversation.generated.len(),
            response: response.response_id.clone(),
            conversation: history.conversation().cloned(),
            left_out,
        })
    }

    /// Returns `true` if the run began with this history, or has yet to begin.
    pub(crate) fn is_kept_in(&self, history: &ServerHistory) -> bool {
        match &self.delivered {
            None => self.turns() == 0,
            Some(delivered) => delivered.conversation.as_ref() == history.conversation(),
        }
    }
}
