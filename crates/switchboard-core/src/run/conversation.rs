//! The state of a run that goes on with a stored conversation.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agent_keys::AgentRef;
use super::{Phase, Run};
use crate::conversation::Revision;
use crate::items::{Item, Items};

/// The team that a conversation is with, as its details store it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeamIdentity {
    /// The name, where the runner has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Arc<str>>,
    /// The agent of the runner.
    pub(crate) start: Arc<str>,
    /// The keys of all agents, sorted.
    pub(crate) agents: Vec<Arc<str>>,
}

/// The data of a conversation beside its record.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(crate) struct Details {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) team: Option<TeamIdentity>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub(crate) other: serde_json::Map<String, serde_json::Value>,
}

impl TeamIdentity {
    /// Returns `true` if a conversation with the `stored` team can go on with this one. Teams of the same
    /// name are the same team at different times; teams without names must have the same first agent, and
    /// another in common if both have others.
    pub(crate) fn fits(&self, stored: &Self) -> bool {
        match (&self.name, &stored.name) {
            (Some(name), Some(stored)) => name == stored,
            _ => {
                let shared = |agent: &Arc<str>| stored.agents.contains(agent);
                let is_other = |agent: &&Arc<str>| **agent != self.start;
                let mut others = self.agents.iter().filter(is_other);
                let is_alone = self.agents.len() == 1 || stored.agents.len() == 1;
                self.start == stored.start && (is_alone || others.any(shared))
            }
        }
    }

    /// The team as an error names it.
    pub(crate) fn describe(&self) -> String {
        match &self.name {
            Some(name) => format!("{name:?} (agents: {})", self.agents.join(", ")),
            None => format!("of {}", self.agents.join(", ")),
        }
    }
}

/// The state of a run with a stored conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ConversationState {
    /// The identifier of the run in the conversation's record.
    pub(crate) run: Arc<str>,
    /// The revision that the run has seen; `None` if the conversation does not exist yet.
    pub(crate) revision: Option<Revision>,
    /// The number of commits made.
    pub(crate) commits: u32,
    /// The number of leading unsaved items that are the run's input.
    pub(crate) new_input: usize,
    /// Set if a turn has ended that is not committed.
    pub(crate) has_turn: bool,
    /// Set if a handoff has rewritten what the model is shown since the last commit.
    pub(crate) is_rewritten: bool,
    /// The agent that took the turn.
    pub(crate) turn_agent: Option<Arc<str>>,
}

impl Run {
    /// Begins the run with a stored conversation that was just loaded.
    pub(crate) fn attach_conversation(&mut self, revision: Option<Revision>, notes: Vec<Item>) {
        let id = fastrand::u128(..);
        self.conversation.notes = notes;
        self.session.conversation = Some(Box::new(ConversationState {
            run: format!("{id:032x}").into(),
            revision,
            commits: 0,
            new_input: self.session.unsaved.len(),
            has_turn: false,
            is_rewritten: false,
            turn_agent: None,
        }));
    }

    /// Attaches a conversation to a run that began without one: it gets everything so far.
    pub(crate) fn attach_conversation_late(&mut self, revision: Option<Revision>) {
        self.attach_session_late();
        let notes = std::mem::take(&mut self.conversation.notes);
        self.attach_conversation(revision, notes);
        if let Some(state) = &mut self.session.conversation {
            state.has_turn = true;
            // What the conversation had before stays in its view.
            state.is_rewritten = revision.is_none();
        }
    }

    /// Begins the run with another agent than that of its runner.
    pub(crate) fn begin_with(&mut self, agent: AgentRef) {
        self.first_agent = agent.clone();
        self.agent = agent;
    }

    /// Notes that a turn of the current agent has ended.
    pub(crate) fn note_turn(&mut self) {
        if let Some(state) = &mut self.session.conversation {
            state.has_turn = true;
            state.turn_agent = Some(self.agent.name.clone());
        }
    }

    /// Notes that a handoff has rewritten what the model is shown.
    pub(crate) fn note_rewrite(&mut self) {
        if let Some(state) = &mut self.session.conversation {
            state.is_rewritten = true;
        }
    }

    /// The state of the conversation, if a turn is to be committed.
    pub(crate) fn uncommitted(&self) -> Option<&ConversationState> {
        let state = self.session.conversation.as_deref()?;
        state.has_turn.then_some(state)
    }

    /// What the model will be shown next, if a handoff has rewritten it since the last commit.
    pub(crate) fn rewritten_view(&self) -> Option<Items> {
        let state = self.session.conversation.as_ref()?;
        state.is_rewritten.then(|| self.turn_input())
    }

    /// The turn is committed.
    pub(crate) fn committed(&mut self, revision: Revision) {
        self.session.unsaved.clear();
        if let Some(state) = &mut self.session.conversation {
            state.revision = Some(revision);
            state.commits += 1;
            state.new_input = 0;
            state.has_turn = false;
            state.is_rewritten = false;
        }
    }

    /// Something that is no part of a turn was committed.
    pub(crate) fn mark_committed(&mut self, revision: Revision) {
        if let Some(state) = &mut self.session.conversation {
            let follows = match state.revision {
                Some(seen) => seen.epoch == revision.epoch && seen.next + 1 == revision.next,
                None => revision.next == 1,
            };
            // Otherwise another run was faster, and this one must not go on.
            if follows {
                state.revision = Some(revision);
            }
            state.commits += 1;
        }
    }

    /// Returns `true` once the run has its final output.
    pub(crate) fn is_done(&self) -> bool {
        matches!(self.position.phase, Phase::Done(_))
    }

    /// Items that the session has not got yet: the input of a run whose first turn has not ended, and
    /// items that could not be stored.
    pub fn unsaved_items(&self) -> &[Item] {
        &self.session.unsaved
    }
}
