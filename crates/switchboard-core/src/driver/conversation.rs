//! Loading a stored conversation at the start of a run, and committing its turns.

use std::sync::Arc;
use std::time::Duration;

use futures_timer::Delay;
use futures_util::future::{Either, select};

use super::Driver;
use crate::agent::Agent;
use crate::callback::{BoxError, call, catch_panic};
use crate::conversation::{Conversation, ConversationError, OpenConversation, Refusal, TurnCommit};
use crate::environment::environment;
use crate::error::{Error, ErrorKind};
use crate::filters::write_summary;
use crate::guardrail::InputGuardrail;
use crate::items::{Item, Items};
use crate::run::agent_keys;
use crate::run::conversation::{Details, TeamIdentity};
use crate::runner::{ActiveAgent, HistoryPolicy};

/// The time after which a lease ends by itself, and the time after which it is extended.
const LEASE: Duration = Duration::from_secs(30);
const LEASE_RENEWAL: Duration = Duration::from_secs(10);

/// The first and the longest pause between two attempts to get a lease.
const LEASE_PAUSES: (Duration, Duration) = (Duration::from_millis(5), Duration::from_millis(250));

/// The conversation of a run in this process.
#[derive(Debug)]
pub(super) struct AttachedConversation {
    open: OpenConversation,
    /// The team of the run, if the conversation does not have it yet.
    details: Option<Arc<str>>,
    /// The output that guardrails have refused, if it is to be kept.
    pub(super) refused: Option<Vec<Item>>,
}

/// The lease of a conversation.
#[derive(Debug, Clone)]
pub(super) struct Lease {
    conversation: Conversation,
    owner: String,
}

impl<C: Send + Sync + 'static> Driver<C> {
    /// The conversation of the run's session, where it keeps one and the run is to use it.
    pub(super) fn stored_conversation(&self) -> Option<Conversation> {
        match self.config.history {
            HistoryPolicy::Kept => self.config.session.as_ref()?.conversation(),
            HistoryPolicy::Reference => None,
        }
    }

    /// Loads the conversation, and begins a new run with its view and its agent.
    pub(super) async fn open_conversation(
        &mut self,
        conversation: Conversation,
    ) -> Result<(), Error> {
        self.take_lease(&conversation).await?;
        let session = self.config.session.as_ref();
        let limit = self.config.session_limit;
        let limit = limit.or_else(|| session.and_then(|session| session.limit()));
        let is_new = self.run.session.conversation.is_none() && self.run.turns() == 0;
        let mut open = match &self.run.session.conversation {
            None => catch_panic(conversation.open(limit)).await,
            Some(state) => catch_panic(conversation.reopen(state.revision)).await,
        }
        .map_err(load_error)?;
        let details = if is_new {
            self.check_team(&open)?;
            self.take_stored_agent(&open)?;
            // Of a view that was not loaded as a whole, the rest would be lost.
            if limit.is_none() {
                self.compact(&mut open).await?;
            }
            self.add_history(&open, limit.is_some()).await?;
            self.new_details(&open)?
        } else {
            None
        };
        if self.run.session.conversation.is_none() {
            self.check_team(&open)?;
            let revision = open.revision();
            self.run_mut().attach_conversation_late(revision);
        }
        self.conversation = Some(Box::new(AttachedConversation {
            open,
            details,
            refused: None,
        }));
        Ok(())
    }

    /// Puts the view of the conversation before the input of a new run.
    async fn add_history(
        &mut self,
        open: &OpenConversation,
        is_truncated: bool,
    ) -> Result<(), Error> {
        if let Some(merge) = &self.config.session_input {
            let new = self.run.conversation.input.items();
            let merged = call(|| merge.call(self.ctx(), open.view.clone(), new));
            let merged = self.run_code(None, "the function for a session's input", merged);
            let merged = merged.await?;
            self.run_mut().attach_merged(&open.view, merged);
        } else {
            self.run_mut().attach_session(&open.view, is_truncated);
        }
        self.run_mut()
            .attach_conversation(open.revision(), open.notes.clone());
        Ok(())
    }

    /// Replaces the older part of a long view by a summary.
    async fn compact(&self, open: &mut OpenConversation) -> Result<(), Error> {
        let Some(compaction) = &self.config.compaction else {
            return Ok(());
        };
        let cut = compaction.cut(&open.view);
        let Some(model) = compaction.model.as_ref().or(self.model()) else {
            return Ok(());
        };
        if cut == 0 {
            return Ok(());
        }
        let older: Items = open.view.iter().take(cut).cloned().collect();
        let ctx = self.ctx();
        let written = write_summary(model, &older, &ctx);
        let summary = match catch_panic(written).await {
            Ok(summary) => summary,
            Err(error) => {
                // The error may quote the request.
                if environment().logs_model_data {
                    tracing::warn!(%error, "a long conversation could not be summarised");
                } else {
                    tracing::warn!("a long conversation could not be summarised");
                }
                return Ok(());
            }
        };
        let recent = open.view.skip(cut);
        let view: Items = std::iter::once(summary).chain(recent).collect();
        let rewritten = catch_panic(open.rewrite(view)).await;
        rewritten.map_err(|error| session_error("nothing was run", error))
    }

    /// The team of the run.
    fn team_identity(&self) -> TeamIdentity {
        let mut agents = agent_keys::keys(&self.start);
        agents.sort();
        TeamIdentity {
            name: self.config.team_name.clone(),
            start: self.start.name_arc().clone(),
            agents,
        }
    }

    /// Checks that the conversation is one of this team.
    fn check_team(&self, open: &OpenConversation) -> Result<(), Error> {
        let Some(stored) = stored_details(open)?.team else {
            return Ok(());
        };
        let team = self.team_identity();
        let mut renamed = stored.clone();
        for agent in &mut renamed.agents {
            *agent = self.renamed(agent);
        }
        if team.fits(&renamed) || self.config.take_over_conversations {
            return Ok(());
        }
        // The error for an agent that is gone is the better one.
        let agent = open.agent().map(|agent| self.renamed(agent));
        let is_gone = |agent: Arc<str>| agent_keys::find(&self.start, &agent).is_none();
        if team.start == stored.start && agent.is_some_and(is_gone) {
            return Ok(());
        }
        let (stored, current) = (stored.describe(), team.describe());
        Err(session_error(
            "nothing was run",
            ConversationError::other_team(open.name(), &stored, &current).into(),
        ))
    }

    /// The details to store with the first commit, if the team is not stored yet or has changed.
    fn new_details(&self, open: &OpenConversation) -> Result<Option<Arc<str>>, Error> {
        let mut details = stored_details(open)?;
        let team = self.team_identity();
        if details.team.as_ref() == Some(&team) {
            return Ok(None);
        }
        details.team = Some(team);
        let json = serde_json::to_string(&details);
        let json = json.map_err(|error| session_error("nothing was run", error.into()))?;
        Ok(Some(json.into()))
    }

    /// The agent that gets the conversations of this one.
    fn renamed(&self, stored: &Arc<str>) -> Arc<str> {
        let renamed = self.config.stored_agents.iter().rev();
        let mut renamed = renamed.filter(|(from, _)| from == stored);
        renamed.next().map_or(stored, |(_, to)| to).clone()
    }

    /// Begins the run with the agent that has the conversation.
    fn take_stored_agent(&mut self, open: &OpenConversation) -> Result<(), Error> {
        let Some(stored) = open.agent() else {
            return Ok(());
        };
        let key = self.renamed(stored);
        let agent = match agent_keys::find(&self.start, &key) {
            Some(agent) => agent,
            None if self.config.take_over_conversations => self.start.clone(),
            None => {
                let known = agent_keys::keys(&self.start);
                let known: Vec<&str> = known.iter().map(|key| &**key).collect();
                let start = self.start.name();
                let error = ConversationError::unknown_agent(open.name(), &key, start, &known);
                return Err(session_error("nothing was run", error.into()));
            }
        };
        let agent_ref = agent_keys::agent_ref(&self.start, &agent);
        self.run_mut().begin_with(agent_ref);
        self.agent = agent;
        Ok(())
    }

    /// Guardrails of the runner's agent, for a message that begins with another agent: what guards the
    /// entrance of a conversation guards all of it.
    pub(super) fn entrance_guardrails(&self) -> impl Iterator<Item = &InputGuardrail<C>> {
        let is_continued = self.conversation.is_some() && !self.agent.ptr_eq(&self.start);
        let guardrails = if is_continued {
            &*self.start.def.input_guardrails
        } else {
            &[]
        };
        let own = &self.agent.def.input_guardrails;
        let is_own = |guardrail: &InputGuardrail<C>| own.iter().any(|own| own.ptr_eq(guardrail));
        guardrails
            .iter()
            .filter(move |guardrail| !is_own(guardrail))
    }

    /// Commits the turn that has ended, if there is one.
    pub(super) async fn commit_turn(&mut self) -> Result<(), Error> {
        let Some(state) = self.run.uncommitted() else {
            return Ok(());
        };
        let next_agent = self.next_agent();
        let Some(attached) = &mut self.conversation else {
            return Ok(());
        };
        let unsaved = &self.run.session.unsaved;
        let (input, items) = unsaved.split_at(state.new_input.min(unsaved.len()));
        let turn = TurnCommit {
            expected: state.revision,
            run: &state.run,
            number: state.commits + 1,
            turn: self.run.turns(),
            input,
            items,
            agent: (state.turn_agent.as_ref())
                .unwrap_or_else(|| self.agent.name_arc())
                .clone(),
            next_agent: Some(next_agent),
            view: self.run.rewritten_view(),
            notes: &self.run.conversation.notes,
            details: attached.details.clone(),
        };
        // Items must not be stored and still count as unsaved: a stop waits for this.
        let _guard = self.events.as_ref().map(|events| events.saving());
        let revision = catch_panic(attached.open.commit(turn)).await;
        let revision = revision.map_err(|error| {
            session_error(
                "the run in this error still holds what was not stored, resume it once the session \
                 works again",
                error,
            )
        })?;
        attached.details = None;
        self.run_mut().committed(revision);
        Ok(())
    }

    /// The key of the agent that gets the next message.
    fn next_agent(&self) -> Arc<str> {
        let policy = self.agent.def.active_agent;
        match policy.unwrap_or(self.config.active_agent) {
            ActiveAgent::ReturnToStart if self.run.is_done() => {
                agent_keys::key(&self.start, &self.start)
            }
            _ if agent_keys::find(&self.start, &self.run.agent.key).is_none() => {
                tracing::warn!(
                    agent = self.agent.name(),
                    "the next message goes to the first agent: the agent that code picked is not found \
                     again; list the agents that a handoff may pick with candidate"
                );
                agent_keys::key(&self.start, &self.start)
            }
            _ => self.run.agent.key.clone(),
        }
    }

    /// Records that a guardrail has refused the message or the answer, in place of it.
    pub(super) async fn record_refusal(&mut self, error: &Error) {
        let on = match error.kind() {
            ErrorKind::InputGuardrail => "input",
            ErrorKind::OutputGuardrail => "output",
            _ => return,
        };
        let Some(guardrail) = error.guardrail() else {
            return;
        };
        let attached = self.conversation.as_mut();
        let refused = attached.and_then(|attached| attached.refused.take());
        let refused = refused.or_else(|| self.held.take_refused());
        let items: Option<Vec<Item>> = match on {
            _ if !self.config.keep_refused => None,
            "output" => refused,
            _ => Some(self.run.session.unsaved.clone()),
        };
        let (Some(attached), Some(state)) =
            (&mut self.conversation, &self.run.session.conversation)
        else {
            return;
        };
        let refusal = Refusal {
            on,
            guardrail: &guardrail.guardrail,
            items: items.as_deref(),
        };
        let (number, agent) = (state.commits + 1, self.agent.name_arc().clone());
        let commit = attached
            .open
            .commit_refusal(&state.run, number, agent, &refusal);
        match Box::pin(catch_panic(commit)).await {
            Ok(revision) => self.run_mut().mark_committed(revision),
            Err(error) => tracing::warn!(%error, "a refused message could not be recorded"),
        }
    }

    /// Waits until no other run has the conversation, where the run is to have it alone.
    async fn take_lease(&mut self, conversation: &Conversation) -> Result<(), Error> {
        let Some(exclusive) = self.config.exclusive else {
            return Ok(());
        };
        let lease = Lease {
            conversation: conversation.clone(),
            owner: format!("{:032x}", fastrand::u128(..)),
        };
        let (mut pause, longest) = LEASE_PAUSES;
        let mut waited = Duration::ZERO;
        while !lease.extend().await.map_err(load_error)? {
            if waited >= exclusive.wait {
                let error = ConversationError::leased(conversation.name());
                return Err(session_error("nothing was run", error.into()));
            }
            let next = pause.min(exclusive.wait - waited);
            Delay::new(next).await;
            waited += next;
            pause = (pause * 2).min(longest);
        }
        self.lease = Some(Box::new(lease));
        Ok(())
    }

    /// Extends the lease of the conversation. Nothing more is done if another run has it by now.
    pub(super) async fn extend_lease(&self) -> Result<(), Error> {
        let Some(lease) = &self.lease else {
            return Ok(());
        };
        match Box::pin(lease.extend()).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let error = ConversationError::leased(lease.conversation.name());
                Err(session_error(
                    "the run stopped before its next step",
                    error.into(),
                ))
            }
            Err(error) => {
                tracing::warn!(%error, "the lease of a conversation could not be extended");
                Ok(())
            }
        }
    }

    /// Ends the lease of the conversation.
    pub(super) async fn end_lease(&mut self) {
        if let Some(lease) = self.lease.take()
            && let Err(error) = Box::pin(lease.end()).await
        {
            tracing::warn!(%error, "the lease of a conversation could not be ended");
        }
    }

    /// Warns that the session cannot keep what a filter left out.
    pub(super) fn warn_of_lost_filter(&self, to: &Agent<C>) {
        let is_kept = self.conversation.is_some() || self.config.session.is_none();
        if !is_kept && self.config.history == HistoryPolicy::Kept {
            tracing::warn!(
                from = self.agent.name(),
                to = to.name(),
                "the session stores items only: what the filter of this handoff left out will be \
                 shown again with the next message; use a session that keeps the conversation, or \
                 set HistoryPolicy::Reference to say that this is meant"
            );
        }
    }
}

impl Lease {
    /// Does a step, and extends the lease while it takes long.
    pub(super) async fn kept_during<T>(&self, step: impl Future<Output = T>) -> T {
        let renew = std::pin::pin!(async {
            loop {
                Delay::new(LEASE_RENEWAL).await;
                if let Err(error) = self.extend().await {
                    tracing::warn!(%error, "the lease of a conversation could not be extended");
                }
            }
        });
        match select(std::pin::pin!(step), renew).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right((never, _)) => never,
        }
    }

    async fn extend(&self) -> Result<bool, BoxError> {
        self.conversation.lease(&self.owner, LEASE).await
    }

    async fn end(&self) -> Result<(), BoxError> {
        self.conversation.release(&self.owner).await
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

fn load_error(error: BoxError) -> Error {
    let message = format!("the session could not be read, so nothing was run: {error}");
    Error::new(ErrorKind::Session, message).caused_by(error)
}

fn session_error(consequence: &str, error: BoxError) -> Error {
    let message = format!("the session cannot be used; {consequence}: {error}");
    Error::new(ErrorKind::Session, message).caused_by(error)
}
