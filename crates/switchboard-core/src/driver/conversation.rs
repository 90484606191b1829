//! Loading a stored conversation at the start of a run, and committing its turns.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures_timer::Delay;
use futures_util::future::{Either, select};

use super::Driver;
use super::compaction::warn_of_failure;
use super::conversation_team::new_details;
use crate::agent::Agent;
use crate::callback::{BoxError, call, catch_panic};
use crate::conversation::{
    Conversation, ConversationError, ConversationErrorKind, OpenConversation, Refusal, TurnCommit,
    TurnCommitted, now, to_millis,
};
use crate::error::{Error, ErrorKind};
use crate::guardrail::InputGuardrail;
use crate::items::Item;
use crate::journal::{self, Carried, JournalScope, Repeat, StepKind};
use crate::lock::lock;
use crate::run::agent_keys;
use crate::runner::{ActiveAgent, Exclusive, HistoryPolicy};

/// The time after which a lease ends by itself, and the time after which it is extended.
const LEASE: Duration = Duration::from_secs(30);
const LEASE_RENEWAL: Duration = Duration::from_secs(10);
const LEASE_RENEWAL_MILLIS: i64 = 10_000;

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
    /// The reason for which the conversation could not be compacted.
    pub(super) failed_compaction: Option<String>,
}

/// The lease of a conversation.
#[derive(Debug, Clone)]
pub(super) struct Lease(Arc<LeaseState>);

#[derive(Debug)]
struct LeaseState {
    conversation: Conversation,
    owner: String,
    /// The time of the last extension, in milliseconds since 1970.
    extended: AtomicI64,
    /// The timer of the next extension, between two steps. A new one for each step would wake the thread of the timers.
    timer: Mutex<Option<Delay>>,
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
            None => self.open_recorded(&conversation, limit).await?,
            Some(state) => {
                let reopened = catch_panic(conversation.reopen(state.revision)).await;
                let mut reopened = reopened.map_err(load_error)?;
                if self.journal.is_some() {
                    reopened.trust_number();
                }
                reopened
            }
        };
        let team = self.team_identity();
        self.check_team(&open, &team, is_new)?;
        let mut failed_compaction = None;
        if is_new {
            self.take_stored_agent(&open)?;
            // Of a view that was not loaded as a whole, the rest would be lost.
            if limit.is_none() && self.config.compaction.is_some() {
                let compacted = self.compact_recorded(&conversation, &mut open).await?;
                if compacted.is_reopened {
                    self.check_team(&open, &team, is_new)?;
                    self.take_stored_agent(&open)?;
                }
                failed_compaction = compacted.failure;
            }
            if let Some(reason) = &failed_compaction {
                warn_of_failure(reason);
            }
            if open.has_waiting_run() {
                self.run_mut().answer_waiting_calls(&open.view);
            }
            self.add_history(&open, limit.is_some()).await?;
        } else if self.run.leaves_kept_wait() {
            let unchanged = async {
                let unchanged = catch_panic(open.expect_unchanged()).await;
                unchanged.map_err(|error| session_error("nothing was run", error))
            };
            let revision = effect!(self, Conversation, "resume", unchanged)?;
            self.run_mut().set_revision(revision);
        } else if self.run.session.conversation.is_none() {
            let (revision, id) = (open.revision(), self.id_in_conversation());
            self.run_mut().attach_conversation_late(id, revision);
        }
        let details = new_details(&open, team)?;
        self.conversation = Some(Box::new(AttachedConversation {
            open,
            details,
            refused: None,
            failed_compaction,
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
        let id = self.id_in_conversation();
        self.run_mut()
            .attach_conversation(id, open.revision(), open.notes.clone());
        Ok(())
    }

    /// The identifier of the run in the record of the conversation. That of a run with a journal is the same on a
    /// replay, so that a turn is committed once.
    fn id_in_conversation(&self) -> Arc<str> {
        match self.journal {
            None => format!("{:032x}", fastrand::u128(..)).into(),
            Some(_) => journal::lease_owner(&self.run).into(),
        }
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
        self.commit_as_turn(self.run.turns()).await
    }

    /// Commits what is not committed as parts of this turn.
    async fn commit_as_turn(&mut self, number: u32) -> Result<(), Error> {
        // The usage is stored with a run that waits.
        if self.run.has_unkept_wait() {
            self.count_added_usage();
        }
        let Some(state) = self.run.uncommitted() else {
            return Ok(());
        };
        let waiting = match self.run.waiting_to_keep() {
            None => None,
            Some(run) => {
                let json = serde_json::to_string(&run);
                let json = json.map_err(|error| session_error("the run waits", error.into()))?;
                Some(json.into())
            }
        };
        let next_agent = self.next_agent();
        let way_back = self.way_back_of(&next_agent).to_vec();
        let received = self.run.received.clone();
        let received = received.filter(|_| next_agent == self.run.agent.key);
        let Some(attached) = &mut self.conversation else {
            return Ok(());
        };
        let unsaved: &[Item] = if state.has_turn {
            &self.run.session.unsaved
        } else {
            &[]
        };
        let (input, items) = unsaved.split_at(state.new_input.min(unsaved.len()));
        let turn = TurnCommit {
            expected: state.revision,
            run: &state.run,
            number: state.commits + 1,
            turn: number,
            input,
            items,
            agent: (state.turn_agent.as_ref())
                .unwrap_or_else(|| self.agent.name_arc())
                .clone(),
            next_agent: Some(next_agent),
            received,
            view: self.run.rewritten_view(),
            notes: &self.run.conversation.notes,
            details: attached.details.clone(),
            waiting,
            way_back: &way_back,
        };
        // Items must not be stored and still count as unsaved: a stop waits for this.
        let _guard = self.events.as_ref().map(|events| events.saving());
        let commits = state.commits;
        let committed = match self.journal.as_deref() {
            None => catch_panic(attached.open.commit(turn)).await,
            Some(journal) => {
                let place = (self.run.turns(), StepKind::Conversation, "commit");
                Ok(commit_recorded(journal, place, &mut attached.open, turn, commits).await?)
            }
        };
        let committed = committed.map_err(|error| commit_error(commits, error))?;
        let revision = committed.revision;
        attached.details = None;
        let waits_at = attached.open.waits_at();
        self.run_mut().committed(revision, waits_at);
        Ok(())
    }

    /// Stores the message of a run that was stopped, and the part of the answer that was shown. Returns
    /// `false` if there is nothing to store.
    pub(crate) async fn store_stopped(&mut self, shown: &str) -> Result<bool, Error> {
        let is_stopped = !self.run.is_done() && !self.run.is_waiting();
        if !is_stopped || shown.trim().is_empty() || self.config.session.is_none() {
            return Ok(false);
        }
        let stored = self.store_shown(shown).await;
        if self.lease.is_some() {
            self.end_lease().await;
        }
        stored.map_err(|error| error.at_agent(self.agent.name()))
    }

    async fn store_shown(&mut self, shown: &str) -> Result<bool, Error> {
        self.load_session().await?;
        let is_unjudged = self.holds_input_back() || self.checks_input_beside_model();
        if self.run.turns() == 0 && is_unjudged {
            return Ok(false);
        }
        if self.conversation.is_some() {
            // A turn that had ended when the run was stopped.
            self.commit_turn().await?;
        }
        self.run_mut().add_shown(Item::assistant(shown));
        if self.conversation.is_some() {
            self.commit_as_turn(self.run.turns() + 1).await?;
        } else {
            self.save().await?;
        }
        Ok(true)
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
        let commit = async {
            let committed = catch_panic(commit).await;
            committed.map_err(|error| session_error("the refusal is not recorded", error))
        };
        let place = (self.run.turns(), StepKind::Conversation, "refusal");
        let committed = match self.journal.as_deref() {
            None => Box::pin(commit).await,
            Some(journal) => journal.carry_out(place, Box::pin(commit)).await,
        };
        match committed {
            Ok(revision) => self.run_mut().mark_committed(revision),
            Err(error) => tracing::warn!(%error, "a refused message could not be recorded"),
        }
    }

    /// Waits until no other run has the conversation, where the run is to have it alone.
    async fn take_lease(&mut self, conversation: &Conversation) -> Result<(), Error> {
        // Nobody else may resume the run while what was approved runs.
        let resumes = self.run.leaves_kept_wait() && !self.run.is_waiting();
        let exclusive = self.config.exclusive;
        let exclusive = exclusive.or(resumes.then(|| Exclusive::new(Duration::ZERO)));
        let Some(exclusive) = exclusive else {
            return Ok(());
        };
        let lease = Lease(Arc::new(LeaseState {
            conversation: conversation.clone(),
            // A run with a journal takes its own lease again after a crash.
            owner: self.id_in_conversation().as_ref().to_owned(),
            extended: AtomicI64::new(if exclusive.is_taken {
                to_millis(now())
            } else {
                0
            }),
            timer: Mutex::default(),
        }));
        if exclusive.is_taken {
            self.lease = Some(Box::new(lease));
            return Ok(());
        }
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

    /// Extends the lease of the conversation, unless that was done a short time ago. Nothing more is done if another run
    /// has it by now.
    pub(super) async fn extend_lease(&self) -> Result<(), Error> {
        let Some(lease) = self.lease.as_ref().filter(|lease| !lease.is_fresh()) else {
            return Ok(());
        };
        match Box::pin(lease.extend()).await {
            Ok(true) => Ok(()),
            Ok(false) => {
                let error = ConversationError::leased(lease.0.conversation.name());
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
        let kept = lock(&self.0.timer).take();
        let mut timer = kept.unwrap_or_else(|| Delay::new(LEASE_RENEWAL));
        let outcome = {
            let renew = std::pin::pin!(async {
                loop {
                    (&mut timer).await;
                    if let Err(error) = self.extend().await {
                        tracing::warn!(%error, "the lease of a conversation could not be extended");
                    }
                    timer.reset(LEASE_RENEWAL);
                }
            });
            match select(std::pin::pin!(step), renew).await {
                Either::Left((outcome, _)) => outcome,
                Either::Right((never, _)) => never,
            }
        };
        *lock(&self.0.timer) = Some(timer);
        outcome
    }

    async fn extend(&self) -> Result<bool, BoxError> {
        let begun = to_millis(now());
        let LeaseState {
            conversation,
            owner,
            extended,
            ..
        } = &*self.0;
        let is_own = conversation.lease(owner, LEASE).await?;
        if is_own {
            extended.store(begun, Ordering::Relaxed);
        }
        Ok(is_own)
    }

    /// Returns `true` if it need not be extended yet. By the clock of the system, which also counts the time for which the
    /// machine was suspended.
    fn is_fresh(&self) -> bool {
        let since = to_millis(now()) - self.0.extended.load(Ordering::Relaxed);
        (0..LEASE_RENEWAL_MILLIS).contains(&since)
    }

    async fn end(&self) -> Result<(), BoxError> {
        self.0.conversation.release(&self.0.owner).await
    }
}

/// Commits a turn, unless the journal has that it is committed. The commit that follows one whose record was lost
/// changes nothing, because the run and the number are the same.
async fn commit_recorded(
    journal: &JournalScope,
    place: (u32, StepKind, &str),
    open: &mut OpenConversation,
    turn: TurnCommit<'_>,
    commits: u32,
) -> Result<TurnCommitted, Error> {
    let commit = async {
        let committed = catch_panic(open.commit(turn.clone())).await;
        committed.map_err(|error| commit_error(commits, error))
    };
    match journal
        .step(place, Repeat::Idempotent, Box::pin(commit))
        .await?
    {
        Carried::Recorded(committed) => {
            let replayed = catch_panic(open.replay(turn, committed)).await;
            replayed.map_err(load_error)?;
            Ok(committed)
        }
        made => made.into_value(),
    }
}

/// The error for a turn that could not be committed, in a run that has made `commits`.
fn commit_error(commits: u32, error: BoxError) -> Error {
    let consequence = match commits {
        _ if !is_conflict(&error) => {
            "the turn is not lost to the application, which can resume the run once the session works \
             again"
        }
        // The run cannot be resumed: it would commit at the revision that it has seen.
        0 => "send the message again in a new run",
        _ => "the message and the turns before this one are stored, go on in a new run",
    };
    session_error(consequence, error)
}

/// Returns `true` if another writer was faster.
pub(super) fn is_conflict(error: &BoxError) -> bool {
    let cause = error.downcast_ref::<ConversationError>();
    cause.is_some_and(|cause| cause.kind() == ConversationErrorKind::Conflict)
}

pub(super) fn load_error(error: BoxError) -> Error {
    let message = format!("the session could not be read, so nothing was run: {error}");
    Error::new(ErrorKind::Session, message).caused_by(error)
}

pub(super) fn session_error(consequence: &str, error: BoxError) -> Error {
    let message = format!("the session cannot be used; {consequence}: {error}");
    Error::new(ErrorKind::Session, message).caused_by(error)
}
