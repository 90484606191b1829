//! A conversation that a run has loaded, and the commits of its turns.

use std::collections::VecDeque;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::entry::{Commit, Committed, Entry, EntryContent, Expected, Head, Revision};
use super::view::{Ranges, State};
use super::{Conversation, ConversationError, ConversationErrorKind, state_content};
use crate::callback::BoxError;
use crate::handoff::ReceivedPayload;
use crate::items::{Item, Items};
use crate::run::ways_back::PriorHandoff;

/// The number of times that a turn is committed beside marks of what was refused.
const MARK_ATTEMPTS: usize = 64;

/// A conversation that a run has loaded.
#[derive(Debug)]
pub(crate) struct OpenConversation {
    conversation: Conversation,
    /// The items that the model of the current agent is shown.
    pub(crate) view: Items,
    /// The notes of handoffs in it.
    pub(crate) notes: Vec<Item>,
    head: Option<Head>,
    state: State,
    state_at: Option<u64>,
    /// The items of the view, and those committed since, with their positions.
    known: Vec<(Item, u64)>,
    /// Set if `known` has the whole view.
    knows_view: bool,
    /// Set until the first commit of a run that goes on: it may have been made already.
    is_resumed: bool,
}

/// A turn that is committed.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct TurnCommitted {
    /// The revision before.
    pub(crate) expected: Option<Revision>,
    pub(crate) revision: Revision,
}

/// The changes that a turn makes to a conversation.
#[derive(Debug, Clone)]
pub(crate) struct TurnCommit<'a> {
    /// The revision that the run has seen; `None` for a conversation that did not exist.
    pub(crate) expected: Option<Revision>,
    pub(crate) run: &'a Arc<str>,
    /// The number of the commit in the run.
    pub(crate) number: u32,
    pub(crate) turn: u32,
    /// New input of the run.
    pub(crate) input: &'a [Item],
    /// Items of the turn.
    pub(crate) items: &'a [Item],
    /// The agent that took the turn.
    pub(crate) agent: Arc<str>,
    /// The agent that gets the next message.
    pub(crate) next_agent: Option<Arc<str>>,
    /// The payload that this agent keeps.
    pub(crate) received: Option<Arc<ReceivedPayload>>,
    /// The items of the next model call, where a handoff has rewritten them.
    pub(crate) view: Option<Items>,
    /// The notes of handoffs in the view.
    pub(crate) notes: &'a [Item],
    /// Further data of the conversation.
    pub(crate) details: Option<Arc<str>>,
    /// The run, if it waits for a decision, as JSON.
    pub(crate) waiting: Option<Arc<str>>,
    /// The handoffs that led to the agent that gets the next message.
    pub(crate) way_back: &'a [PriorHandoff],
}

/// Input or output that a guardrail refused, as its entry stores it.
#[derive(Debug, Serialize)]
pub(crate) struct Refusal<'a> {
    /// `input` or `output`.
    pub(crate) on: &'static str,
    pub(crate) guardrail: &'a str,
    /// The words, if they are kept for review.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) items: Option<&'a [Item]>,
}

impl Conversation {
    /// Loads the conversation; with a limit, the latest items of its view.
    pub(crate) async fn open(&self, limit: Option<usize>) -> Result<OpenConversation, BoxError> {
        let mut open = OpenConversation::empty(self.clone());
        let Some(head) = self.head().await? else {
            return Ok(open);
        };
        (open.state, open.state_at) = self.state_at(&head, head.revision.next).await?;
        open.head = Some(head);
        open.load_known(limit).await?;
        open.show_known();
        Ok(open)
    }

    /// Opens the conversation for a run that goes on, as it was at the revision that the run has seen. The
    /// run has the items that it needs.
    pub(crate) async fn reopen(
        &self,
        seen: Option<Revision>,
    ) -> Result<OpenConversation, BoxError> {
        let mut open = OpenConversation::empty(self.clone());
        open.is_resumed = true;
        open.knows_view = seen.is_none();
        let (Some(mut head), Some(seen)) = (self.head().await?, seen) else {
            return Ok(open);
        };
        // Its own commit may have been stored without an answer.
        head.revision = seen;
        if head.state.is_some_and(|state| state >= seen.next) {
            let (state, at) = self.state_at(&head, seen.next).await?;
            head.agent.clone_from(&state.agent);
            (open.state, open.state_at) = (state, at);
        } else {
            (open.state, open.state_at) = self.state_at(&head, seen.next).await?;
        }
        open.head = Some(head);
        Ok(open)
    }

    /// Opens the conversation for a run that is made again, as it was at a revision; with a limit, the latest
    /// items of its view.
    pub(crate) async fn open_at(
        &self,
        revision: Option<Revision>,
        limit: Option<usize>,
    ) -> Result<OpenConversation, BoxError> {
        let mut open = self.reopen(revision).await?;
        open.trust_number();
        open.knows_view = true;
        open.load_known(limit).await?;
        open.show_known();
        Ok(open)
    }
}

impl OpenConversation {
    fn empty(conversation: Conversation) -> Self {
        Self {
            conversation,
            view: Items::new(),
            notes: Vec::new(),
            head: None,
            state: State::default(),
            state_at: None,
            known: Vec::new(),
            knows_view: true,
            is_resumed: false,
        }
    }

    /// Reads the items of the view; with a limit, the latest.
    async fn load_known(&mut self, limit: Option<usize>) -> Result<(), BoxError> {
        let Some(head) = &self.head else {
            return Ok(());
        };
        let current = self
            .state
            .extended(self.state_at, head.first, head.revision.next);
        let is_shown = |content: &EntryContent| content.item().is_some();
        let entries = self
            .conversation
            .read_ranges(&current.view, limit, is_shown)
            .await?;
        let items = entries.into_iter().filter_map(|entry| {
            let item = entry.content.item().cloned()?;
            Some((item, entry.position))
        });
        self.known = items.collect();
        Ok(())
    }

    /// Tells a commit that was made before by its number alone: the journal of the run has one writer.
    pub(crate) fn trust_number(&mut self) {
        self.is_resumed = false;
    }

    /// Makes the view of the items that were read.
    fn show_known(&mut self) {
        self.view = self.known.iter().map(|(item, _)| item.clone()).collect();
        let is_note = |position: &u64| self.state.notes.contains(position);
        let notes = self.known.iter().filter(|(_, at)| is_note(at));
        self.notes = notes.map(|(item, _)| item.clone()).collect();
    }

    /// The name of the conversation.
    pub(crate) fn name(&self) -> &str {
        self.conversation.name()
    }

    /// The revision that was loaded; `None` if the conversation does not exist.
    pub(crate) fn revision(&self) -> Option<Revision> {
        self.head.as_ref().map(|head| head.revision)
    }

    /// Returns `true` if a run waits for a decision.
    pub(crate) fn has_waiting_run(&self) -> bool {
        self.state.waiting.is_some()
    }

    /// The revision before the entry that has the waiting run.
    pub(crate) fn waits_at(&self) -> Option<Revision> {
        Some(Revision::new(self.revision()?.epoch, self.state.waiting?))
    }

    /// Checks that the conversation is as the run that goes on has left it, before anything is done. What
    /// guardrails have refused since does not count. Returns the revision to go on from.
    pub(crate) async fn expect_unchanged(&self) -> Result<Option<Revision>, BoxError> {
        let stored = self.conversation.head().await?;
        let stored = stored.map(|head| head.revision);
        let seen = self.revision();
        let is_same = match (stored, seen) {
            (Some(stored), Some(seen)) if stored.epoch == seen.epoch => {
                let since = seen.next..stored.next;
                self.conversation.has_only_refusals(since).await?
            }
            (stored, seen) => stored == seen,
        };
        if is_same {
            Ok(stored)
        } else {
            Err(ConversationError::wait_is_over(self.name()).into())
        }
    }

    /// The agent that has the conversation.
    pub(crate) fn agent(&self) -> Option<&Arc<str>> {
        self.head.as_ref()?.agent.as_ref()
    }

    /// The handoffs that led to that agent.
    pub(crate) fn way_back(&self) -> &[PriorHandoff] {
        &self.state.way_back
    }

    /// The payload that the agent keeps of the handoff by which it got the conversation.
    pub(crate) fn received(&self) -> Option<&Arc<ReceivedPayload>> {
        self.state.received.as_ref()
    }

    /// Further data of the conversation.
    pub(crate) fn details(&self) -> Option<&Arc<str>> {
        self.head.as_ref()?.details.as_ref()
    }

    /// Commits a turn. Returns the new revision.
    ///
    /// Marks of what was refused since the run has read the conversation are no part of it, so that a
    /// message that is refused does not make another one fail.
    pub(crate) async fn commit(
        &mut self,
        mut turn: TurnCommit<'_>,
    ) -> Result<TurnCommitted, BoxError> {
        if turn.view.is_some() && !self.knows_view {
            self.load_known(None).await?;
            self.knows_view = true;
        }
        let known = self.known.len();
        let mut attempts = 0;
        loop {
            let error = match self.commit_at(&turn).await {
                Ok(revision) => {
                    return Ok(TurnCommitted {
                        expected: turn.expected,
                        revision,
                    });
                }
                Err(error) => error,
            };
            // Nothing of it is stored.
            self.known.truncate(known);
            attempts += 1;
            let is_conflict = (error.downcast_ref::<ConversationError>())
                .is_some_and(|error| error.kind() == ConversationErrorKind::Conflict);
            if !is_conflict || attempts == MARK_ATTEMPTS {
                return Err(error);
            }
            match self.revision_after_marks(turn.expected).await? {
                Some(revision) => turn.expected = Some(revision),
                None => return Err(error),
            }
        }
    }

    /// The revision of the conversation, if it has only marks of what was refused since the `seen` one.
    async fn revision_after_marks(
        &mut self,
        seen: Option<Revision>,
    ) -> Result<Option<Revision>, BoxError> {
        let Some(stored) = self.conversation.head().await? else {
            return Ok(None);
        };
        let revision = stored.revision;
        let since = match seen {
            Some(seen) if seen.epoch != revision.epoch => return Ok(None),
            Some(seen) => seen.next,
            None => stored.first,
        };
        if since == revision.next {
            return Ok(None);
        }
        let has_marks_only = self.conversation.has_only_refusals(since..revision.next);
        if !has_marks_only.await? {
            return Ok(None);
        }
        self.head.get_or_insert(stored);
        Ok(Some(revision))
    }

    /// Takes note of a commit that was made before.
    pub(crate) async fn replay(
        &mut self,
        mut turn: TurnCommit<'_>,
        committed: TurnCommitted,
    ) -> Result<(), BoxError> {
        turn.expected = committed.expected;
        if turn.view.is_some() && !self.knows_view {
            self.load_known(None).await?;
            self.knows_view = true;
        }
        let (commit, state) = self.prepare(&turn)?;
        self.is_resumed = false;
        self.note_commit(&commit, committed.revision);
        self.set_state(state);
        Ok(())
    }

    fn set_state(&mut self, state: Option<(State, u64)>) {
        if let Some((state, at)) = state {
            self.state = state;
            self.state_at = Some(at);
        }
    }

    /// The commit of a turn at the revision that it expects, and the state that it changes to.
    fn prepare(
        &mut self,
        turn: &TurnCommit<'_>,
    ) -> Result<(Commit, Option<(State, u64)>), BoxError> {
        let first = self.head.as_ref().map_or(0, |head| head.first);
        let start = turn.expected.map_or(0, |revision| revision.next);
        let mut entries = Vec::with_capacity(turn.input.len() + turn.items.len() + 1);
        for item in turn.input {
            entries.push(turn.entry(EntryContent::Item(item.clone()), 0, None));
        }
        let agent = Some(turn.agent.clone());
        for item in turn.items {
            let content = EntryContent::Item(item.clone());
            entries.push(turn.entry(content, turn.turn, agent.clone()));
        }
        let added = turn.input.iter().chain(turn.items);
        self.known.extend(added.cloned().zip(start..));

        let is_new_agent = turn.next_agent != self.state.agent;
        let is_new_way = turn.way_back != self.state.way_back;
        let is_new_payload = turn.received != self.state.received;
        // A run waits until the next state.
        let is_new_wait = turn.waiting.is_some() || self.state.waiting.is_some();
        let is_first = self.state_at.is_none();
        let is_changed = is_new_agent || is_new_way || is_new_payload || is_new_wait;
        let state = if is_changed || turn.view.is_some() || is_first {
            let mut view = None;
            if let Some(shown) = &turn.view {
                let (ranges, replacements) = self.positions(shown, start + entries.len() as u64);
                for item in replacements {
                    let content = EntryContent::Replacement(item);
                    entries.push(turn.entry(content, turn.turn, agent.clone()));
                }
                view = Some(ranges);
            }
            let mut waiting = None;
            if let Some(run) = &turn.waiting {
                waiting = Some(start + entries.len() as u64);
                let content = EntryContent::Waiting(run.clone());
                entries.push(turn.entry(content, turn.turn, agent.clone()));
            }
            let at = start + entries.len() as u64;
            let mut state = self.state.extended(self.state_at, first, at);
            state.agent = turn.next_agent.clone();
            state.received.clone_from(&turn.received);
            state.waiting = waiting;
            state.way_back = turn.way_back.to_vec();
            if let Some(view) = view {
                state.view = view;
                state.notes = self.note_positions(turn.notes);
                state = state.listed();
            }
            entries.push(turn.entry(state_content(&state)?, turn.turn, agent));
            Some((state, at))
        } else {
            None
        };

        let expected = turn.expected.map_or(Expected::New, Expected::At);
        let mut commit = Commit::new(expected, entries);
        commit.run = turn.run.clone();
        commit.number = turn.number;
        commit.agent = is_new_agent.then(|| turn.next_agent.clone());
        commit.details.clone_from(&turn.details);
        Ok((commit, state))
    }

    /// Commits a turn at the revision that it expects.
    async fn commit_at(&mut self, turn: &TurnCommit<'_>) -> Result<Revision, BoxError> {
        let (commit, state) = self.prepare(turn)?;
        let start = turn.expected.map_or(0, |revision| revision.next);
        let end = start + commit.entries.len() as u64;
        let made = self.is_resumed.then(|| commit.entries.clone());
        let revision = self.store(commit).await?;
        self.is_resumed = false;
        let conflict = || ConversationError::conflict(self.name());
        // The same commit was stored before, and others since.
        if revision.next != end {
            return Err(conflict().into());
        }
        if let Some(made) = made {
            let stored = self.conversation.entries(start..end).await?;
            let contents = |entries: &[Entry]| -> Vec<EntryContent> {
                entries.iter().map(|entry| entry.content.clone()).collect()
            };
            // The run was resumed twice, with different outcomes.
            if contents(&stored) != contents(&made) {
                return Err(conflict().into());
            }
        }
        self.set_state(state);
        Ok(revision)
    }

    /// Replaces the view, and commits that at once.
    pub(crate) async fn rewrite(&mut self, view: Items) -> Result<(), BoxError> {
        let Some(head) = &self.head else {
            return Ok(());
        };
        let (first, revision) = (head.first, head.revision);
        let (ranges, replacements) = self.positions(&view, revision.next);
        let replacements = replacements.into_iter().map(EntryContent::Replacement);
        let mut entries: Vec<Entry> = replacements.map(Entry::new).collect();
        let at = revision.next + entries.len() as u64;
        let mut state = self.state.extended(self.state_at, first, at).listed();
        state.view = ranges;
        self.notes
            .retain(|note| view.iter().any(|item| item == note));
        state.notes = self.note_positions(&self.notes);
        entries.push(Entry::new(state_content(&state)?));
        self.store(Commit::new(Expected::At(revision), entries))
            .await?;
        self.state = state;
        self.state_at = Some(at);
        self.view = view;
        Ok(())
    }

    /// Records that a guardrail has refused something. The mark is no part of any view.
    pub(crate) async fn commit_refusal(
        &mut self,
        run: &Arc<str>,
        number: u32,
        agent: Arc<str>,
        refusal: &Refusal<'_>,
    ) -> Result<Revision, BoxError> {
        let content = EntryContent::Refused(serde_json::to_string(refusal)?.into());
        let entry = Entry::new(content)
            .made_in(run.clone(), 0, number)
            .made_by(Some(agent));
        let mut commit = Commit::new(Expected::Any, vec![entry]);
        commit.run = run.clone();
        commit.number = number;
        self.store(commit).await
    }

    async fn store(&mut self, commit: Commit) -> Result<Revision, BoxError> {
        let mut noted = Commit::new(commit.expected, Vec::new());
        (noted.agent, noted.details) = (commit.agent.clone(), commit.details.clone());
        noted.time = commit.time;
        let id = self.conversation.id.clone();
        let committed = self.conversation.store().commit_dyn(&id, commit).await?;
        let Committed::At(revision) = committed else {
            return Err(ConversationError::conflict(&id).into());
        };
        self.note_commit(&noted, revision);
        Ok(revision)
    }

    /// Changes the head as a commit has, without its entries.
    fn note_commit(&mut self, commit: &Commit, revision: Revision) {
        let id = &self.conversation.id;
        let new = || Head::new(id.clone(), revision, commit.time);
        let head = self.head.get_or_insert_with(new);
        head.revision = revision;
        if let Some(agent) = &commit.agent {
            head.agent.clone_from(agent);
        }
        if let Some(details) = &commit.details {
            head.details = Some(details.clone());
        }
    }

    /// The positions of the items of a view, and the items that the conversation does not have, which
    /// get the positions from `next` on.
    fn positions(&mut self, view: &Items, next: u64) -> (Ranges, Vec<Item>) {
        let mut known: FxHashMap<&str, VecDeque<u64>> = FxHashMap::default();
        for (item, position) in &self.known {
            known
                .entry(item.as_json())
                .or_default()
                .push_back(*position);
        }
        let mut replacements = Vec::new();
        let mut new = Vec::new();
        let ranges = view
            .iter()
            .map(|item| match known.get_mut(item.as_json()) {
                // Equal items stand for each other; the last one may be shown again.
                Some(positions) if positions.len() > 1 => positions.pop_front().unwrap_or_default(),
                Some(positions) => positions[0],
                None => {
                    let position = next + replacements.len() as u64;
                    replacements.push(item.clone());
                    new.push((item.clone(), position));
                    position
                }
            })
            .collect();
        self.known.extend(new);
        (ranges, replacements)
    }

    fn note_positions(&self, notes: &[Item]) -> Vec<u64> {
        let known = self.known.iter().rev();
        let position = |note: &Item| {
            let mut known = known.clone();
            known.find_map(|(item, position)| (item == note).then_some(*position))
        };
        notes.iter().filter_map(position).collect()
    }
}

impl TurnCommit<'_> {
    fn entry(&self, content: EntryContent, turn: u32, agent: Option<Arc<str>>) -> Entry {
        Entry::new(content)
            .made_in(self.run.clone(), turn, self.number)
            .made_by(agent)
    }
}
