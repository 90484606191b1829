//! Checks that a stored conversation is one of the run's team, and finds its agent.

use std::sync::Arc;

use super::Driver;
use super::conversation::{load_error, session_error};
use crate::callback::catch_panic;
use crate::conversation::{ConversationError, OpenConversation};
use crate::error::Error;
use crate::run::agent_keys;
use crate::run::conversation::{Details, TeamIdentity};
use crate::tool::Tool;

impl<C: Send + Sync + 'static> Driver<C> {
    /// The team of the run.
    pub(super) fn team_identity(&self) -> TeamIdentity {
        let team = agent_keys::with_keys(&self.start);
        let tools = team.iter().filter_map(|(key, agent)| {
            let mut tools: Vec<Arc<str>> =
                agent.tools().iter().map(Tool::name_arc).cloned().collect();
            tools.sort();
            (!tools.is_empty()).then(|| (key.clone(), tools))
        });
        let tools = tools.collect();
        let mut agents: Vec<Arc<str>> = team.into_iter().map(|(key, _)| key).collect();
        agents.sort();
        TeamIdentity {
            name: self.config.team_name.clone(),
            source: self.config.team_source.clone(),
            start: self.start.name_arc().clone(),
            agents,
            tools,
        }
    }

    /// Checks that the conversation is one of this team.
    pub(super) fn check_team(
        &self,
        open: &OpenConversation,
        team: &TeamIdentity,
        is_new: bool,
    ) -> Result<(), Error> {
        let Some(stored) = stored_details(open)?.team else {
            return Ok(());
        };
        // An agent may have a conversation of another one whose name still exists.
        let fits = team.fits(&stored) || team.fits(&stored.renamed(|agent| self.renamed(agent)));
        if fits || self.config.take_over_conversations {
            return Ok(());
        }
        // The error for an agent that is gone is the better one.
        let agent = open.agent().map(|agent| self.renamed(agent));
        let is_gone = |agent: Arc<str>| agent_keys::find(&self.start, &agent).is_none();
        let is_agent_gone = team.start == stored.start && agent.is_some_and(is_gone);
        if is_new && is_agent_gone && !team.is_named_otherwise(&stored) {
            return Ok(());
        }
        let consequence = if is_new {
            "nothing was run"
        } else {
            "the run did not go on"
        };
        let (stored, current) = (stored.describe(team), team.describe(&stored));
        Err(session_error(
            consequence,
            ConversationError::other_team(open.name(), &stored, &current).into(),
        ))
    }

    /// Checks that the run's agents can go on with the conversation.
    pub(crate) async fn check_conversation(&mut self) -> Result<(), Error> {
        let Some(conversation) = self.stored_conversation() else {
            return Ok(());
        };
        let open = catch_panic(conversation.open(Some(0))).await;
        let open = open.map_err(load_error)?;
        self.check_team(&open, &self.team_identity(), true)?;
        self.take_stored_agent(&open)
    }

    /// The agent that gets the conversations of this one.
    fn renamed(&self, stored: &Arc<str>) -> Arc<str> {
        let renamed = self.config.stored_agents.iter().rev();
        let mut renamed = renamed.filter(|(from, _)| from == stored);
        renamed.next().map_or(stored, |(_, to)| to).clone()
    }

    /// Begins the run with the agent that has the conversation.
    pub(super) fn take_stored_agent(&mut self, open: &OpenConversation) -> Result<(), Error> {
        let Some(stored) = open.agent() else {
            return Ok(());
        };
        let key = self.renamed(stored);
        let mut way_back = open.way_back().to_vec();
        let (agent, received) = match agent_keys::find(&self.start, &key) {
            Some(agent) => (agent, open.received().cloned()),
            None if self.config.take_over_conversations => {
                way_back.clear();
                (self.start.clone(), None)
            }
            None => {
                let known = agent_keys::keys(&self.start);
                let known: Vec<&str> = known.iter().map(|key| &**key).collect();
                let start = self.start.name();
                let error = ConversationError::unknown_agent(open.name(), &key, start, &known);
                return Err(session_error("nothing was run", error.into()));
            }
        };
        let agent_ref = agent_keys::agent_ref(&self.start, &agent);
        for prior in &mut way_back {
            prior.from = self.renamed(&prior.from);
        }
        let run = self.run_mut();
        run.begin_with(agent_ref, received, agent.is_person());
        run.set_way_back(way_back);
        self.agent = agent;
        Ok(())
    }
}

fn stored_details(open: &OpenConversation) -> Result<Details, Error> {
    let Some(json) = open.details() else {
        return Ok(Details::default());
    };
    serde_json::from_str(json).map_err(|error| {
        let error = ConversationError::damaged(open.name(), error);
        session_error("nothing was run", error.into())
    })
}

/// The details to store with the first commit, if the team is not stored yet or has changed.
pub(super) fn new_details(
    open: &OpenConversation,
    team: TeamIdentity,
) -> Result<Option<Arc<str>>, Error> {
    let mut details = stored_details(open)?;
    if details.team.as_ref() == Some(&team) {
        return Ok(None);
    }
    details.team = Some(team);
    let json = serde_json::to_string(&details);
    let json = json.map_err(|error| session_error("nothing was run", error.into()))?;
    Ok(Some(json.into()))
}
