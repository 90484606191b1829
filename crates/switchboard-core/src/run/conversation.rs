//! Runs that go on with a stored conversation: their policies, and their state in the machine.

use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::machine::{AgentRef, Phase, Run};
use crate::conversation::Revision;
use crate::items::{Item, Items};

/// Policy for what a session keeps from one run to the next.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HistoryPolicy {
    /// The conversation is kept: what filters left out stays left out while the agent has it, notes
    /// and summaries stay, the next message goes to the agent that has the conversation, a refused
    /// message is neither stored nor shown again, and a turn that failed leaves nothing behind.
    ///
    /// This needs a session that stores all of it, as Switchboard's own do (see
    /// [`Session::conversation`](crate::Session::conversation)). Other sessions are used as with
    /// `Reference`, and a warning is logged where a filter could not be kept.
    #[default]
    Kept,
    /// As the OpenAI Agents SDK does it: the session is a list of items. It gets the user's message
    /// before the model is asked, also one that a guardrail refuses; filters last for one run; each
    /// run begins with the agent of its runner.
    Reference,
}

/// Policy for the agent that gets the next message of a conversation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ActiveAgent {
    /// The agent that gave the last answer.
    #[default]
    Stay,
    /// The agent of the runner.
    ReturnToStart,
}

/// Policy for the stream of an output that guardrails have yet to pass.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum StreamedOutput {
    /// It is held back: where the agent or the run has output guardrails, the text of a response waits
    /// for their verdict, and what they refuse or replace is never shown. Guardrails that
    /// [judge parts](crate::guardrail::OutputGuardrail::judging_parts) let it through sentence by
    /// sentence.
    #[default]
    AfterGuardrails,
    /// It is shown while the model writes it, as the OpenAI Agents SDK does.
    AtOnce,
}

/// The wait for other runs with the same conversation; see
/// [`Runner::exclusive`](crate::Runner::exclusive).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Exclusive {
    /// The longest time to wait.
    pub wait: Duration,
}

impl Exclusive {
    /// Waits at most this long.
    pub fn new(wait: Duration) -> Self {
        Self { wait }
    }
}

/// The team that a conversation is with, as its details store it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct TeamIdentity {
    /// The name, where the runner has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) name: Option<Arc<str>>,
    /// The agent of the runner.
    pub(super) start: Arc<str>,
    /// The keys of all agents, sorted.
    pub(super) agents: Vec<Arc<str>>,
}

/// The data of a conversation beside its record.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Details {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) team: Option<TeamIdentity>,
    /// Fields that this version does not know.
    #[serde(flatten)]
    pub(super) other: serde_json::Map<String, serde_json::Value>,
}

impl TeamIdentity {
    /// Returns `true` if a conversation with the `stored` team can go on with this one. Teams of the same
    /// name are the same team at different times; teams without names must have the same first agent.
    pub(super) fn fits(&self, stored: &Self) -> bool {
        match (&self.name, &stored.name) {
            (Some(name), Some(stored)) => name == stored,
            _ => self.start == stored.start,
        }
    }

    /// The team as an error names it.
    pub(super) fn describe(&self) -> String {
        match &self.name {
            Some(name) => format!("{name:?} (agents: {})", self.agents.join(", ")),
            None => format!("of {}", self.agents.join(", ")),
        }
    }
}

/// The state of a run with a stored conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) struct ConversationState {
    /// The identifier of the run in the conversation's record.
    pub(super) run: Arc<str>,
    /// The revision that the run has seen; `None` if the conversation does not exist yet.
    pub(super) revision: Option<Revision>,
    /// The number of commits made.
    pub(super) commits: u32,
    /// The number of leading unsaved items that are the run's input.
    pub(super) new_input: usize,
    /// Set if a turn has ended that is not committed.
    pub(super) has_turn: bool,
    /// Set if a handoff has rewritten what the model is shown since the last commit.
    pub(super) is_rewritten: bool,
    /// The agent that took the turn.
    pub(super) turn_agent: Option<Arc<str>>,
}

impl Run {
    /// Begins the run with a stored conversation that was just loaded.
    pub(super) fn attach_conversation(&mut self, revision: Option<Revision>, notes: Vec<Item>) {
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
    pub(super) fn attach_conversation_late(&mut self, revision: Option<Revision>) {
        self.attach_session_late();
        let notes = std::mem::take(&mut self.conversation.notes);
        self.attach_conversation(revision, notes);
        if let Some(state) = &mut self.session.conversation {
            state.has_turn = true;
            state.is_rewritten = true;
        }
    }

    /// Begins the run with another agent than that of its runner.
    pub(super) fn begin_with(&mut self, agent: AgentRef) {
        self.first_agent = agent.clone();
        self.agent = agent;
    }

    /// Notes that a turn of the current agent has ended.
    pub(super) fn note_turn(&mut self) {
        if let Some(state) = &mut self.session.conversation {
            state.has_turn = true;
            state.turn_agent = Some(self.agent.name.clone());
        }
    }

    /// Notes that a handoff has rewritten what the model is shown.
    pub(super) fn note_rewrite(&mut self) {
        if let Some(state) = &mut self.session.conversation {
            state.is_rewritten = true;
        }
    }

    /// The state of the conversation, if a turn is to be committed.
    pub(super) fn uncommitted(&self) -> Option<&ConversationState> {
        let state = self.session.conversation.as_deref()?;
        state.has_turn.then_some(state)
    }

    /// What the model will be shown next, if a handoff has rewritten it since the last commit.
    pub(super) fn rewritten_view(&self) -> Option<Items> {
        let state = self.session.conversation.as_ref()?;
        state.is_rewritten.then(|| self.turn_input())
    }

    /// The turn is committed.
    pub(super) fn committed(&mut self, revision: Revision) {
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
    pub(super) fn mark_committed(&mut self, revision: Revision) {
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
    pub(super) fn is_done(&self) -> bool {
        matches!(self.position.phase, Phase::Done(_))
    }

    /// Items that the session has not got yet: the input of a run whose first turn has not ended, and
    /// items that could not be stored.
    pub fn unsaved_items(&self) -> &[Item] {
        &self.session.unsaved
    }
}
