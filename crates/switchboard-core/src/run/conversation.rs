//! The state of a run that goes on with a stored conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agent_keys::AgentRef;
use super::{Phase, Run};
use crate::conversation::Revision;
use crate::handoff::ReceivedPayload;
use crate::items::{Item, Items};

/// The team that a conversation is with, as its details store it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TeamIdentity {
    /// The name, where the runner has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<Arc<str>>,
    /// The place that the team was read from, where the runner has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) source: Option<Arc<str>>,
    /// The agent of the runner.
    pub(crate) start: Arc<str>,
    /// The keys of all agents, sorted; empty once the application has given the conversation to an agent.
    pub(crate) agents: Vec<Arc<str>>,
    /// The names of the tools of each agent that has any. The names of handoffs follow from the agents.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub(crate) tools: BTreeMap<Arc<str>, Vec<Arc<str>>>,
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
    /// Returns `true` if a conversation with the `stored` team can go on with this one.
    ///
    /// Teams of the same name are the same team at different times. Those without names must be from the
    /// same place, where both have one, and have the same first agent, and another in common if both have
    /// others. Unless they are from the same place, agents in common must have tools in common too: one of
    /// these agents must still have a tool that it had, if any of them has tools.
    pub(crate) fn fits(&self, stored: &Self) -> bool {
        if let Some(is_same) = is_equal(self.name.as_ref(), stored.name.as_ref()) {
            return is_same;
        }
        let has_same_source = is_equal(self.source.as_ref(), stored.source.as_ref());
        if has_same_source == Some(false) {
            return false;
        }
        if stored.agents.is_empty() {
            return true;
        }
        let is_alone = self.agents.len() == 1 || stored.agents.len() == 1;
        let is_shared = |agent: &&Arc<str>| stored.agents.contains(agent);
        let mut shared = self.agents.iter().filter(is_shared);
        self.start == stored.start
            && (is_alone || shared.any(|agent| *agent != self.start))
            && (has_same_source == Some(true) || self.has_tools_of(stored))
    }

    /// Returns `true` if a name or a place tells the teams apart.
    pub(crate) fn is_named_otherwise(&self, stored: &Self) -> bool {
        let has_same_name = is_equal(self.name.as_ref(), stored.name.as_ref());
        let has_same_source = is_equal(self.source.as_ref(), stored.source.as_ref());
        has_same_name.or(has_same_source) == Some(false)
    }

    /// Returns `false` if all agents that have tools in both teams have other ones.
    fn has_tools_of(&self, stored: &Self) -> bool {
        let mut tools = self.tools.iter().filter_map(|(agent, tools)| {
            let stored = stored.tools.get(agent)?;
            Some(tools.iter().any(|tool| stored.contains(tool)))
        });
        match tools.next() {
            None => true,
            Some(is_alike) => is_alike || tools.any(|is_alike| is_alike),
        }
    }

    /// The team with other names for its agents. The tools of an agent that has another name do not
    /// count.
    pub(crate) fn renamed(&self, name: impl Fn(&Arc<str>) -> Arc<str>) -> Self {
        let is_kept = |agent: &Arc<str>| name(agent) == *agent;
        let tools = self.tools.iter().filter(|(agent, _)| is_kept(agent));
        Self {
            name: self.name.clone(),
            source: self.source.clone(),
            start: name(&self.start),
            agents: self.agents.iter().map(&name).collect(),
            tools: tools
                .map(|(agent, tools)| (agent.clone(), tools.clone()))
                .collect(),
        }
    }

    /// The team as an error names it, beside another one.
    pub(crate) fn describe(&self, other: &Self) -> String {
        let agents = self.agents.join(", ");
        if let Some(name) = &self.name {
            return format!("{name:?} (agents: {agents})");
        }
        let is_alike = self.agents == other.agents;
        match &self.source {
            Some(source) if is_alike && other.source.is_some() => format!("of {source}"),
            _ if is_alike && !self.tools.is_empty() => {
                let tools: Vec<&str> = self.tools.values().flatten().map(|tool| &**tool).collect();
                format!("of {agents} (tools: {})", tools.join(", "))
            }
            _ => format!("of {agents}"),
        }
    }
}

/// Compares two values if there are two.
fn is_equal<T: PartialEq>(first: Option<T>, second: Option<T>) -> Option<bool> {
    first.zip(second).map(|(first, second)| first == second)
}

impl Details {
    /// Lets any team without a name, or of the same name, go on with the conversation. Returns `false` if
    /// nothing changes.
    pub(crate) fn forget_agents(&mut self) -> bool {
        let Some(team) = &mut self.team else {
            return false;
        };
        team.source = None;
        team.agents.clear();
        team.tools.clear();
        true
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
    /// The wait that the conversation has stored the run with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) kept_wait: Option<Arc<str>>,
    /// The revision before the entry that the conversation has stored the waiting run in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) waits_at: Option<Revision>,
}

impl Run {
    /// Begins the run with a stored conversation that was just loaded.
    pub(crate) fn attach_conversation(
        &mut self,
        id: Arc<str>,
        revision: Option<Revision>,
        notes: Vec<Item>,
    ) {
        self.conversation.notes = notes.into();
        self.session.conversation = Some(Box::new(ConversationState {
            run: id,
            revision,
            commits: 0,
            new_input: self.session.unsaved.len(),
            has_turn: false,
            is_rewritten: false,
            turn_agent: None,
            kept_wait: None,
            waits_at: None,
        }));
    }

    /// Attaches a conversation to a run that began without one: it gets everything so far.
    pub(crate) fn attach_conversation_late(&mut self, id: Arc<str>, revision: Option<Revision>) {
        self.attach_session_late();
        let notes = std::mem::take(&mut self.conversation.notes);
        self.attach_conversation(id, revision, notes.into());
        if let Some(state) = &mut self.session.conversation {
            state.has_turn = true;
            // What the conversation had before stays in its view.
            state.is_rewritten = revision.is_none();
        }
    }

    /// Begins the run with another agent than that of its runner.
    pub(crate) fn begin_with(
        &mut self,
        agent: AgentRef,
        received: Option<Arc<ReceivedPayload>>,
        is_person: bool,
    ) {
        self.position.is_person = is_person;
        self.first_agent = agent.clone();
        self.agent = agent;
        self.received = received;
    }

    /// The conversation is at this revision, by changes that do not concern the run.
    pub(crate) fn set_revision(&mut self, revision: Option<Revision>) {
        if let Some(state) = &mut self.session.conversation {
            state.revision = revision;
        }
    }

    /// Notes that a turn of the current agent has ended.
    pub(crate) fn note_turn(&mut self) {
        if let Some(state) = &mut self.session.conversation {
            state.has_turn = true;
            state.turn_agent = Some(self.agent.name.clone());
        }
    }

    /// Adds a part of an answer that was shown before the run was stopped.
    pub(crate) fn add_shown(&mut self, part: Item) {
        self.session.unsaved.push(part);
        self.note_turn();
    }

    /// Notes that a handoff has rewritten what the model is shown.
    pub(crate) fn note_rewrite(&mut self) {
        if let Some(state) = &mut self.session.conversation {
            state.is_rewritten = true;
        }
    }

    /// The state of the conversation, if a turn or a wait is to be committed.
    pub(crate) fn uncommitted(&self) -> Option<&ConversationState> {
        let state = self.session.conversation.as_deref()?;
        (state.has_turn || self.has_unkept_wait()).then_some(state)
    }

    /// Returns `true` if the run waits for a decision, and the conversation does not have it yet.
    pub(crate) fn has_unkept_wait(&self) -> bool {
        let Some(state) = &self.session.conversation else {
            return false;
        };
        self.is_waiting() && state.kept_wait.as_ref() != self.wait_id()
    }

    /// The run as its conversation stores it, if it waits for a decision and is not stored yet.
    pub(crate) fn waiting_to_keep(&self) -> Option<Self> {
        if !self.has_unkept_wait() {
            return None;
        }
        let mut kept = self.clone();
        // The revision is known once it is stored; reading it sets the right one.
        kept.committed(Revision::new(0, 0), None);
        Some(kept)
    }

    /// The place in its stored conversation at which the run waits: the revision just before the entry that has the run.
    /// Whoever reads the run with [`Conversation::waiting_run`](crate::conversation::Conversation::waiting_run) finds the
    /// same one, until the run has gone on; when it waits again, also for the same person, that is at another. `None` for
    /// a run that no conversation has stored as waiting.
    pub fn waits_at(&self) -> Option<Revision> {
        self.session.conversation.as_ref()?.waits_at
    }

    /// The run was read from the entry after `waits_at` of its conversation, which is at this revision.
    pub(crate) fn waits_in_conversation(
        &mut self,
        revision: Revision,
        waits_at: Revision,
        wait: Arc<str>,
    ) {
        if let Some(state) = &mut self.session.conversation {
            state.revision = Some(revision);
            state.kept_wait = Some(wait.clone());
            state.waits_at = Some(waits_at);
        }
        self.approvals_mut().wait = Some(wait);
    }

    /// Returns `true` if the run goes on from a wait that its conversation has stored.
    pub(crate) fn leaves_kept_wait(&self) -> bool {
        let state = self.session.conversation.as_ref();
        state.is_some_and(|state| state.kept_wait.is_some())
    }

    /// The items that the model will be shown next, if a handoff has rewritten them since the last
    /// commit.
    pub(crate) fn rewritten_view(&self) -> Option<Items> {
        let state = self.session.conversation.as_ref()?;
        state.is_rewritten.then(|| self.turn_input())
    }

    /// The turn or the wait is committed.
    pub(crate) fn committed(&mut self, revision: Revision, waits_at: Option<Revision>) {
        let wait = self.wait_id().filter(|_| self.is_waiting()).cloned();
        let Some(state) = &mut self.session.conversation else {
            self.session.unsaved.clear();
            return;
        };
        state.revision = Some(revision);
        state.commits += 1;
        state.kept_wait = wait;
        state.waits_at = waits_at;
        // Of a turn whose output guardrails have yet to pass, only the wait is stored.
        if std::mem::take(&mut state.has_turn) {
            self.session.unsaved.clear();
            state.new_input = 0;
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
